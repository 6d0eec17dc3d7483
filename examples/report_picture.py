"""Take the screenshots of reports for the documentation.

python examples/report_picture.py --out docs/img   (needs playwright, and chromium on the path)
"""

from __future__ import annotations

import argparse
import io
import shutil
import tempfile
from pathlib import Path

from demo import clinic, digits
from PIL import Image
from playwright.sync_api import sync_playwright

import covalign as ca


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/img"))
    out = parser.parse_args().out
    pages = {
        "report.png": (ca.LatentAligner(lam=0.5).fit(*digits()), "Handwritten digits, as a network sees them", 1060),
        "report_factors.png": (clinic(), "A clinic, simulated", 2475),
    }
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, (model, title, height) in pages.items():
            file = ca.report.write(model, Path(folder) / "report.html", title=title, overwrite=True)
            page = browser.new_page(viewport={"width": 1160, "height": height})
            page.goto(file.as_uri())
            page.wait_for_selector("html.live")
            taken = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
            taken.quantize(128, dither=Image.Dither.NONE).save(out / name, optimize=True)
            print(out / name)
        browser.close()


if __name__ == "__main__":
    main()
