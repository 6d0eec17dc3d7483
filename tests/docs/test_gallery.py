"""The gallery can be written without data, and its page shows the code of its figures."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path

import pytest

import covalign as ca
from tests import fits

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def gallery(monkeypatch):
    spec = importlib.util.spec_from_file_location("gallery", ROOT / "examples" / "gallery.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "gallery", module)
    spec.loader.exec_module(module)
    return module


def test_the_gallery_is_made_without_any_data(gallery, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(gallery, "DPI", (40,))
    fits.loosen(monkeypatch)
    monkeypatch.setattr(
        sys, "argv", ["gallery.py", "--out", str(tmp_path / "img"), "--page", str(tmp_path / "page.md")]
    )
    gallery.main()
    page = (tmp_path / "page.md").read_text()
    for figure in gallery.FIGURES:
        assert (tmp_path / "img" / f"{figure.name}.png").stat().st_size > 1000
        assert f"(img/{figure.name}.png)" in page
        assert f"```python\n{figure.code}\n```" in page
    assert gallery.SIMULATED + gallery.FIT in page
    assert "page.md" in capsys.readouterr().out


def test_the_committed_page_is_that_of_the_script(gallery):
    page = ROOT / "docs" / "gallery.md"
    asked = argparse.Namespace(out=ROOT / "docs" / "img" / "gallery", tcga=Path("folder"))
    assert page.read_text() == gallery.written(gallery.TCGA + gallery.FIT, asked, page)
    for figure in gallery.FIGURES:
        assert (asked.out / f"{figure.name}.png").stat().st_size < gallery.LARGEST


def test_every_figure_is_in_the_gallery(gallery):
    code = "".join(figure.code for figure in gallery.FIGURES)
    figures = [name for name in ca.plot.__all__ if callable(getattr(ca.plot, name))]
    assert [name for name in figures if f"ca.plot.{name}(" not in code] == []
