"""Permutation tests: the statistic is the aligner's own, and p-values mean what they say."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import covalign as ca
from covalign import LatentAligner
from covalign.closed_form import permutation
from tests.conftest import correlated, embedding


def gaps_in(Y: np.ndarray) -> np.ndarray:
    return np.where(np.random.default_rng(0).random(Y.shape) < 0.2, np.nan, Y)


@pytest.mark.parametrize("regime", ["independent", "tunable", "strongest", "exclusive"])
@pytest.mark.parametrize("shrinkage", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("gaps", [False, True])
def test_the_statistic_is_that_of_refitting(regime, shrinkage, gaps):
    for n, k in ((60, 6), (30, 50)):
        Z, Y = correlated(n, n, k, 2, offset=100)
        Z = np.hstack([Z, Z[:, :1], np.ones((n, 1))])
        Y = gaps_in(Y) if gaps else Y
        orders = np.array([np.random.default_rng(i).permutation(n) for i in range(2)])
        data = permutation.permutable(Z, Y, ((0,), (1,)), shrinkage)
        refitted = [LatentAligner(regime, 0.3, shrinkage).fit(Z, Y[order]).alignment_ for order in orders]
        np.testing.assert_allclose(permutation.alignments(data, orders, regime, 0.3), refitted, rtol=1e-7)


def test_enumeration_of_all_permutations():
    Z, Y = correlated(4, 5, 3, 2)
    al = LatentAligner(shrinkage=0.2).fit(Z, Y)
    every = [
        LatentAligner(shrinkage=0.2).fit(Z, Y[list(order)]).alignment_.to_numpy()
        for order in itertools.permutations(range(5))
    ]
    every = np.array([[*values, values.mean()] for values in every])
    exact = np.mean(every >= [*al.alignment_, al.alignment_.mean()] - np.array(1e-8), axis=0)
    assert 0.01 < exact.min() < 0.9
    table = al.permutation_test(Z, Y, 5000)
    np.testing.assert_allclose(table["p_value"], exact, atol=0.025)
    np.testing.assert_allclose(table["by_chance"], every.mean(axis=0), atol=0.01)


def test_signal_is_told_from_luck_where_dimensions_are_many():
    Z, Y = embedding(1, 80, 60, 1)
    nothing = np.random.default_rng(0).standard_normal(80)
    al = LatentAligner("strongest", shrinkage=0.0).fit(Z, np.column_stack([Y, nothing]))
    table = al.permutation_test(Z, np.column_stack([Y, nothing]))
    assert table.index.tolist() == ["y0", "y1", "overall"]
    np.testing.assert_allclose(table["alignment"][:2], al.alignment_, rtol=1e-9)
    assert table.loc["y1", "alignment"] > 0.8  # and yet
    assert table.loc["y1", "by_chance"] > 0.8
    assert table.loc["y1", "p_value"] > 0.05
    assert table.loc["y0", "p_value"] == 0.001
    assert table.loc["overall", "p_value"] < 0.05


def test_categories_sparse_rows_and_batches(monkeypatch):
    rng = np.random.default_rng(0)
    group = rng.choice(["a", "b", "c"], 150)
    Z = rng.standard_normal((150, 5)) + (group == "a")[:, None]
    Y = pd.DataFrame({"group": group, "x": Z[:, 1] + rng.standard_normal(150)})
    Y.loc[:9, "group"] = None
    al = LatentAligner(shrinkage=0.1, drop_first=False).fit(Z, Y)
    table = al.permutation_test(Z, Y, 199)
    assert table.loc["group_a", "p_value"] == table.loc["overall", "p_value"] == 0.005
    pd.testing.assert_frame_equal(al.permutation_test(sparse.csr_array(Z), Y, 199), table)
    monkeypatch.setattr("covalign.closed_form.permutation.BATCH_NUMBERS", 1)  # one permutation at a time
    pd.testing.assert_frame_equal(al.permutation_test(Z, Y, 199), table)
    assert not al.permutation_test(Z, Y, 199, random_state=1).equals(table)


def test_bad_requests_are_named():
    Z, Y = correlated(0, 50, 4, 2)
    al = LatentAligner().fit(Z, Y)
    with pytest.raises(ValueError, match="n_permutations needs a whole number"):
        al.permutation_test(Z, Y, 0)
    with pytest.raises(ValueError, match="50 and 49"):
        al.permutation_test(Z, Y[1:])
    with pytest.raises(ValueError, match="constant in column 'y0'"):
        al.permutation_test(Z, np.ones((50, 2)))
    with pytest.raises(ValueError, match="is not fitted"):
        ca.LatentAligner().permutation_test(Z, Y)
