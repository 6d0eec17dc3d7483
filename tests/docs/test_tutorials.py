"""Code on documentation pages runs, and its outputs are those that the page shows.

``python examples/tutorials.py --write PAGE`` updates the outputs of a page.
"""

from __future__ import annotations

import importlib.util
import warnings
from pathlib import Path

import numpy as np
import pytest

from tests import fits

ROOT = Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("tutorials", ROOT / "examples" / "tutorials.py")
tutorials = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tutorials)

# tests/docs/test_gallery.py tests the gallery, because a script writes it. The page on leukaemia has its own test.
PAGES = [
    page
    for page in sorted((ROOT / "docs").glob("*.md"))
    if page.stem not in ("gallery", "tutorial_cll") and tutorials.BLOCK.search(page.read_text())
]
FEWER_ROWS = "40000"  # instead of a million


def prepare(page: Path, folder: Path) -> None:
    """Write the files that a page needs: here an embedding, which would need a pretrained model."""
    if page.name == "tutorial_embeddings.md":
        rng = np.random.default_rng(0)
        np.savez(folder / "clip.npz", Z=rng.normal(size=(60, 8)), labels=np.tile(["cat", "dog", "newt"], 20))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_it_says_what_its_code_says(page, tmp_path, monkeypatch):
    plt = pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed")
    monkeypatch.setenv("ROWS", FEWER_ROWS)
    for package in ("anndata", "scanpy"):
        if f"import {package}" in page.read_text() and importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    prepare(page, tmp_path)
    with warnings.catch_warnings():
        if "import scanpy" in page.read_text():
            warnings.simplefilter("ignore")  # those of scanpy and of what it imports
        assert tutorials.differences(tutorials.run(page, tmp_path)) == []
    for picture in (tmp_path / "img").iterdir():
        assert f"img/{picture.name}" in page.read_text(), "a picture that is not shown"
        assert (ROOT / "docs" / "img" / picture.name).exists()
    plt.close("all")


def test_leukaemia_has_its_drugs_and_mutations(shared_data, tmp_path, monkeypatch):
    """With fits that stop early: the same outputs but for numbers, and the findings that the page names."""
    page = ROOT / "docs" / "tutorial_cll.md"
    fits.loosen(monkeypatch, 1e-3)
    monkeypatch.setenv("CLL", str(shared_data("cll")))
    monkeypatch.setenv("MOFA", str(ROOT / "examples" / "cll_mofaflex.h5"))
    *_, factors, flex, named = tutorials.run(page, tmp_path)
    of_ighv, of_trisomy = factors.printed.partition("free")[0].split("trisomy12")
    for text, findings in ((of_ighv, ("-dasatinib", "+del11q22.3")), (of_trisomy, ("-duvelisib", "-del13q14_any"))):
        for finding in findings:
            assert finding in text
            assert finding in page.read_text()
    assert tutorials.differences([flex, named]) == []  # no fit of ours is in these


def test_the_tutorials_are_found():
    found = {page.stem for page in PAGES}
    assert {"tutorial_digits", "tutorial_omics", "tutorial_cells", "tutorial_editing", "tutorial_million"} <= found


def test_no_output_is_left_empty():
    for page in PAGES:
        for block in tutorials.BLOCK.finditer(page.read_text()):
            assert block["shown"] is None or block["shown"].strip(), page.name


@pytest.mark.parametrize(
    ("shown", "printed", "agree"),
    [
        ("a 0.25", "a   0.26", True),
        ("a 0.25", "a 0.27", False),
        ("a 0.25", "b 0.25", False),
        ("5 rows", "6 rows", False),
        ("[0.5, 1.0]", "[0.5]", False),
    ],
)
def test_numbers_may_differ_by_one_in_the_last_place(shown, printed, agree):
    assert tutorials.same(shown, printed) == agree


def test_what_is_printed_is_written(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("Text\n\n```python\nprint(1 + 1)\n```\n\n```text\nold\n```\n\n```python\nx = 1\n```\n")
    blocks = tutorials.run(page, tmp_path)
    assert len(tutorials.differences(blocks)) == 1
    page.write_text(tutorials.written(page.read_text(), blocks))
    assert "```text\n2\n```" in page.read_text()
    assert tutorials.differences(tutorials.run(page, tmp_path)) == []
