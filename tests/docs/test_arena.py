"""The page of the arena and its tables are those of the committed results."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from covalign.study.arena import arena_page, collection, entrants, standings, tournament
from covalign.study.profiles import ARENA
from covalign.study.results_store import Store
from tests.conftest import thorough

DOCS = Path(__file__).resolve().parents[2] / "docs"
STORE = Store(DOCS / "arena")


@pytest.fixture(scope="module")
def results():
    return standings.results(STORE)


def test_the_page_is_written_from_the_results():
    assert (DOCS / "arena.md").read_text() == arena_page.page(STORE, tournament.settings(ARENA))


def test_the_page_says_where_ours_lose_before_anything_else():
    text = (DOCS / "arena.md").read_text()
    first, second, *_ = text.split("\n### ")[1:]
    assert first.startswith("Where ours lose\n\n- **iFA loses** on ")
    assert "**The aligner on the features loses** on " in first
    assert second.startswith("Which to take\n")
    assert "take " not in text.partition("\n### ")[0]


def test_the_losses_that_are_named_are_those_of_the_areas(results):
    """Counted again from the table, without the functions of the page."""
    behind = (results.areas.max(axis=1) - results.areas["iFA"]).dropna()
    lost = behind[behind > standings.TIE]
    text = (DOCS / "arena.md").read_text()
    assert f"**iFA loses** on {len(lost)} of {len(behind)} data sets with complete data, most of all" in text
    assert f"{lost.max():.2f} on {lost.idxmax()} to " in text


def test_there_are_at_least_twelve_data_sets_and_every_method_has_a_result(results):
    assert len(results.areas) >= 12
    judged = {name.removesuffix(entrants.THEN_T).removesuffix(entrants.NO_T) for name in results.areas}
    assert judged | {*results.failed["method"]} >= {"Y as factors", "PCA", "PLS", "iFA", entrants.FEATURES, "MOFA"}


def test_all_numbers_are_possible(results):
    wide = results.wide
    for metric in ("area", *(f"alignment at {budget}" for budget in ("0.1", "0.5", "1"))):
        assert wide[metric].dropna().between(-1, 1).all()
    better = wide[wide["alignment at 1"] > 0]  # a share of a negative alignment is larger than all of it
    assert (better["alignment at 0.1"] <= better["alignment at 1"] + 1e-9).all()
    assert wide["coverage"].dropna().between(0, 1).all()
    assert (wide["seconds"].dropna() >= 0).all()


def test_sizes_are_those_of_the_bundled_data(results):
    from covalign.study.profiles import Inputs

    for name in ("iris", "wine", "diabetes"):
        found, line = collection.case(name, Inputs()), results.data.loc[name]
        assert (line["samples"], line["covariates"], line["factors"]) == (*found.Y.shape, found.n_factors)


def test_a_changed_number_changes_the_page(results, tmp_path):
    lines = STORE.path("arena").read_text().splitlines()
    at = next(i for i, line in enumerate(lines) if ",area," in line and "condition=complete" in line)
    head, _, _ = lines[at].rpartition(",")
    lines[at] = f"{head},0.0123"
    (tmp_path / "arena.csv").write_text("\n".join(lines) + "\n")
    results.data.to_csv(tmp_path / "data.csv")
    assert arena_page.page(Store(tmp_path), tournament.settings(ARENA)) != (DOCS / "arena.md").read_text()


def test_ranks_are_those_of_the_areas(results):
    again = standings.standings(standings.table_of(results.wide, "complete"))
    pd.testing.assert_frame_equal(again, results.ranks)


@pytest.mark.parametrize("method", ["PCA", entrants.FEATURES, *thorough("iFA", "MOFA")])
def test_a_run_of_one_method_has_a_page(results, tmp_path, method):
    head, *lines = STORE.path("arena").read_text().splitlines()
    some = [line for line in lines if line.replace('"', "").startswith(f"arena,{method}")]
    (tmp_path / "arena.csv").write_text("\n".join([head, *some]) + "\n")
    results.data.to_csv(tmp_path / "data.csv")
    assert f"| {method}" in arena_page.page(Store(tmp_path), tournament.settings(ARENA))
