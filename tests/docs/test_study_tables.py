"""The committed tables and claims of the study are those of the committed results."""

from __future__ import annotations

from pathlib import Path

import pytest

from covalign.study import claim_verdicts, contenders, paper_tables
from covalign.study.experiments import EXPERIMENTS
from covalign.study.paper_figures import FIGURES
from covalign.study.profiles import FULL, Inputs
from covalign.study.results_store import ReadOnce, Store
from covalign.study.simulations import INFERENCES

DOCS = Path(__file__).resolve().parents[2] / "docs"
STORE = ReadOnce(Store(DOCS / "study" / "results"))
INPUTS = Inputs(embeddings={"efficientnet": Path()})  # tables are made from results, not from data
PROFILE = FULL._replace(reps=20, slow_reps=1)  # those of ``make study``
MEASURED = [name for name in paper_tables.TABLES if name != "sup_methods"]  # which says what is installed here


@pytest.mark.parametrize("name", MEASURED)
def test_a_table_is_that_of_the_results(name):
    made = paper_tables.TABLES[name].make(STORE, PROFILE, INPUTS)
    assert (DOCS / "study" / "tables" / f"{name}.md").read_text() == made


def test_the_page_of_claims_is_that_of_the_results():
    page = (DOCS / "claims.md").read_text()
    assert page == paper_tables.claims_page(STORE, PROFILE, INPUTS)
    assert all(f"| {claim.name} | {claim.statement} |" in page for claim in claim_verdicts.CLAIMS.values())
    assert claim_verdicts.UNKNOWN not in page


def test_the_page_on_steering_has_its_table():
    table = (DOCS / "study" / "tables" / "steering_table.md").read_text()
    assert (DOCS / "steering.md").read_text().endswith(table)


def test_methods_whose_fit_takes_less_than_a_second_have_every_repetition():
    quick = ("iFA", *contenders.CLASSICAL, *INFERENCES)
    for name in ("methods", "tcga", "consistency", "inference"):
        units = EXPERIMENTS[name].units(PROFILE, INPUTS._replace(tcga=Path()))
        wanted = [unit for unit in units if unit.method in quick]
        assert max(unit.rep for unit in wanted) == PROFILE.reps - 1
        assert set(wanted) <= STORE.units(name)
    assert {contenders.repetitions(name, PROFILE.reps) for name in contenders.SECONDS} == {contenders.FEWER}


def test_every_figure_is_committed_and_small():
    for name in FIGURES:
        assert (DOCS / "study" / "figures" / f"{name}.png").stat().st_size < 1_000_000
    assert (DOCS / "img" / "steering.png").read_bytes() == (DOCS / "study" / "figures" / "steering.png").read_bytes()


def test_the_makefile_runs_this_size():
    text = (DOCS.parent / "Makefile").read_text()
    assert f"covalign reproduce --reps {PROFILE.reps} --slow-reps {PROFILE.slow_reps} --out docs/study" in text
