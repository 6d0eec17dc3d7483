"""The page of benchmarks has the committed numbers."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).parents[2]


def shapes(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(ROOT / "benchmarks"), *sys.path])
    spec = importlib.util.spec_from_file_location("shapes", ROOT / "benchmarks" / "shapes.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_of_shapes_is_that_of_the_file(monkeypatch):
    module = shapes(monkeypatch)
    rows = pd.read_csv(ROOT / "docs" / "shapes.csv", dtype=str, keep_default_na=False)
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    assert module.HEAD + module.table(rows) + module.END in page
    assert tuple(rows.columns) == module.COLUMNS


def test_rows_are_written_to_page_and_file(tmp_path, monkeypatch):
    module = shapes(monkeypatch)
    (tmp_path / "benchmarks.md").write_text(f"before\n{module.HEAD}old{module.END}\nafter\n")
    row = module.as_cells(module.Row("fit", "SVD", 3.0, 2.0, 1.2))
    module.write(pd.DataFrame([row]), tmp_path)
    page = (tmp_path / "benchmarks.md").read_text()
    assert "| fit | SVD | 3 | 2 | 1.50 | 1.2 |" in page
    assert "old" not in page
    assert page.endswith("after\n")
    assert pd.read_csv(tmp_path / "shapes.csv")["ratio"].tolist() == [1.5]
