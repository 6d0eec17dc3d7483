"""Tables of pages that a benchmark measured are those of its CSV file."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("held_out_tables", ROOT / "benchmarks" / "held_out.py")
held_out = importlib.util.module_from_spec(spec)
sys.modules["held_out_tables"] = held_out
spec.loader.exec_module(held_out)
PAGE, DATA = ROOT / "docs" / "held_out.md", ROOT / "docs" / "held_out.csv"


def test_the_page_on_held_out_numbers_has_the_tables_of_its_csv():
    page, made = PAGE.read_text(), held_out.tables(DATA, list(held_out.PARTS))
    assert len(made) >= 4
    assert held_out.with_tables(page, made) == page


def test_a_table_replaces_that_of_the_same_heading_and_leaves_the_others():
    page = "text\n\n<!-- measured -->\n\n### One\n\n| 1 |\n\n### Two\n\n| 2 |\n"
    found = held_out.with_tables(page, ["### Two\n\n| 3 |\n", "### Three\n\n| 4 |\n"])
    assert found == "text\n\n<!-- measured -->\n\n### One\n\n| 1 |\n\n### Two\n\n| 3 |\n\n### Three\n\n| 4 |\n"
    assert held_out.with_tables(page, []) == page


def test_a_setting_that_is_measured_again_replaces_the_earlier_one(tmp_path):
    out = tmp_path / "measured.csv"
    for setting, mean in (("a", 1), ("b", 2), ("a", 3)):
        row = ("coverage", setting, 5, "covered", mean, 0.1)
        held_out.kept(out, pd.DataFrame([row], columns=["part", "setting", "reps", "quantity", "mean", "error"]))
    assert pd.read_csv(out)[["setting", "mean"]].to_numpy().tolist() == [["b", 2], ["a", 3]]
    assert [path.name for path in tmp_path.iterdir()] == ["measured.csv"]
