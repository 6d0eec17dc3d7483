"""The store: what is finished stays, what is not is forgotten."""

from __future__ import annotations

import multiprocessing

import numpy as np
import pytest

from covalign.study.results_store import Row, Store, Unit, setting

PCA = Unit("methods", "PCA", setting(scenario="PN", alpha=0.5, n=500), 0)


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path / "results")


def rows(value: float) -> list[Row]:
    return [Row("PCA", "alignment", value), Row("PCA, again", "coupling", 2 * value)]


def test_rows_come_back_with_their_settings_as_columns(store):
    store.append(PCA, rows(1 / 3))
    frame = store.frame("methods")
    assert frame[["method", "metric", "rep"]].to_numpy().tolist() == [
        ["PCA", "alignment", 0],
        ["PCA, again", "coupling", 0],
    ]
    assert frame["value"].tolist() == [1 / 3, 2 / 3]  # to the last bit
    assert frame["alpha"].tolist() == [0.5, 0.5]
    assert frame["scenario"].tolist() == ["PN", "PN"]
    assert store.units("methods") == {PCA}


def test_an_empty_store(store):
    assert store.units("methods") == set()
    assert store.frame("methods").empty


def test_nan_and_infinity_survive(store):
    store.append(PCA, [Row("PCA", "alignment", np.nan), Row("PCA", "coupling", np.inf)])
    assert store.frame("methods")["value"].isna().tolist() == [True, False]


@pytest.mark.parametrize("cut", [1, 5, 40, 90])
def test_a_unit_cut_short_is_forgotten_and_can_be_done_again(store, cut):
    other = PCA._replace(rep=1)
    store.append(PCA, rows(1.0))
    whole = store.path("methods").read_bytes()
    store.append(other, rows(2.0))
    path = store.path("methods")
    both = path.read_bytes()
    path.write_bytes(both[:-cut])
    assert store.units("methods") == {PCA}
    assert store.frame("methods")["value"].tolist() == [1.0, 2.0]
    store.append(other, rows(2.0))
    assert path.read_bytes() == both
    assert both.startswith(whole)


def test_a_unit_done_twice_counts_once_with_its_last_value(store):
    store.append(PCA, rows(1.0))
    store.append(PCA, rows(5.0))
    assert store.frame("methods")["value"].tolist() == [5.0, 10.0]


def append_many(folder: str, first: int) -> None:
    for rep in range(first, first + 25):
        Store(folder).append(PCA._replace(rep=rep), rows(float(rep)))


def test_two_studies_may_write_at_once(store):
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=append_many, args=(str(store.folder), first)) for first in (0, 100)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert {unit.rep for unit in store.units("methods")} == {*range(25), *range(100, 125)}
    assert len(store.frame("methods")) == 100
