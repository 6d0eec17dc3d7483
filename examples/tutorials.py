"""Run the code of documentation pages, and check or update the outputs that they show.

    python examples/tutorials.py docs/tutorial_digits.md            # checks the outputs of the page
    python examples/tutorials.py --write docs/tutorial_digits.md    # updates outputs and figures

Blocks marked ``python`` run in order, in one namespace and an empty folder. A block marked ``text`` after such a block
is its output. The page shows the figures saved to ``img/``. Two numbers agree if they differ by at most one in the last
digit, because other processors round differently.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```\n(?:\n*^```text\n(?P<shown>.*?)^```\n)?", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"[-+]?\d+(?:\.\d*)?(?:e[-+]?\d+)?")


class Block(NamedTuple):
    """Code, the output that the page shows (None: no output), and the output of the run."""

    code: str
    shown: str | None
    printed: str


def run(page: Path, folder: Path) -> list[Block]:
    """Run all code of the page in the folder."""
    os.environ.setdefault("MPLBACKEND", "Agg")
    names: dict[str, Any] = {"__name__": "__main__"}
    blocks, back = [], Path.cwd()
    (folder / "img").mkdir(exist_ok=True)
    os.chdir(folder)
    try:
        for match in BLOCK.finditer(page.read_text()):
            line = page.read_text()[: match.start()].count("\n") + 1
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):  # empty lines: errors give line numbers of the page
                exec(compile("\n" * line + match["code"], str(page), "exec"), names)
            blocks.append(Block(match["code"], match["shown"], printed.getvalue()))
    finally:
        os.chdir(back)
    return blocks


def differences(blocks: list[Block]) -> list[str]:
    """Blocks whose output differs from the page."""
    return [
        f"shown:\n{block.shown}\nprinted:\n{block.printed}"
        for block in blocks
        if block.shown is not None and not same(block.shown, block.printed)
    ]


def same(shown: str, printed: str) -> bool:
    """The same words, and numbers that differ by at most one in the last digit."""
    if NUMBER.sub("0", shown).split() != NUMBER.sub("0", printed).split():
        return False
    pairs = zip(NUMBER.findall(shown), NUMBER.findall(printed), strict=True)
    return all(abs(float(a) - float(b)) <= 1.01 * last_place(a) * ("." in a) for a, b in pairs)


def last_place(number: str) -> float:
    """.01 for 0.25."""
    return float(10.0 ** -len(number.partition(".")[2]))


def written(text: str, blocks: list[Block]) -> str:
    """The page with the outputs of the run."""
    fresh = iter(blocks)

    def shown(match: re.Match[str]) -> str:
        block = next(fresh)
        return match[0] if block.shown is None else f"```python\n{block.code}```\n\n```text\n{block.printed}```\n"

    return BLOCK.sub(shown, text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--write", action="store_true", help="change the pages and their pictures")
    asked = parser.parse_args()
    for page in (page.resolve() for page in asked.pages):
        with tempfile.TemporaryDirectory() as name:
            blocks = run(page, Path(name))
            if asked.write:
                page.write_text(written(page.read_text(), blocks))
                for picture in sorted((Path(name) / "img").iterdir()):
                    shutil.copy(picture, page.parent / "img" / picture.name)
            elif wrong := differences(blocks):
                sys.exit(f"{page.name} shows other outputs than its code; --write updates them\n" + "\n".join(wrong))
        print(page.name, "written" if asked.write else "shows the outputs of its code")


if __name__ == "__main__":
    main()
