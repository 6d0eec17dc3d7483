"""Many classes: sums over the rows of levels, a search among shrinkages, regimes without singular values."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import covalign as ca
from covalign.closed_form import regimes, validation
from covalign.closed_form.regimes import polar as polar_form
from covalign.closed_form.ridge_path import of_solutions, ridge_path
from covalign.closed_form.shrinkage import SHRINKAGE_GRID
from covalign.stream.folds import FoldSorter, fold_of_rows
from covalign.stream.levels import Levels
from covalign.tables.covariates import Encoding


def classes(n=560, levels=70, k=75, seed=0):
    rng = np.random.default_rng(seed)
    label, stage = rng.permutation(np.arange(n) % levels), rng.integers(0, 3, n)
    Z = (rng.normal(size=(n, k)) + rng.normal(size=(levels, k))[label]) * np.exp(rng.normal(size=k)) + 3
    Y = pd.DataFrame(
        {
            "age": 1e6 + Z[:, 0] + rng.normal(size=n),
            "class": [f"c{i:03d}" for i in label],
            "stage": [f"s{i}" for i in stage],
        }
    )
    return Z, Y


def dense(patch):
    """Covariates travel as columns of 0 and 1."""
    patch.setattr(Encoding, "levels", property(lambda self: None))


def test_levels_become_the_columns_of_the_coding():
    _, Y = classes()
    Y.loc[::7, "class"] = None
    for drop_first in (True, False):
        coding = Encoding.learn(Y, drop_first=drop_first)
        expected = coding.apply(Y).to_numpy()
        table = coding.short(Y).to_numpy()
        assert table.shape == (len(Y), 3)
        np.testing.assert_array_equal(coding.levels.expanded(table), expected)
        at = [70, 3, 0]
        np.testing.assert_array_equal(coding.levels.expanded(table, at), expected[:, at])


def test_few_columns_travel_as_they_are():
    _, Y = classes(levels=20)
    assert Encoding.learn(Y).levels is None
    assert Encoding.learn(pd.DataFrame(np.random.default_rng(0).normal(size=(5, 100)))).levels is None


def test_moments_are_those_of_columns_of_0_and_1():
    """The independent route: numpy's covariances of all columns."""
    Z, Y = classes()
    al = ca.LatentAligner(shrinkage=0.1).fit(Z, Y)
    columns = np.hstack([Z, ca.covariates.encode(Y).to_numpy()])
    expected = np.cov(columns.T, ddof=0)
    m, k = al.moments_, Z.shape[1]
    sd = np.sqrt(np.diag(expected))
    for part, at in (
        (m.cov_z, np.ix_(range(k), range(k))),
        (m.cov_zy, np.ix_(range(k), range(k, len(sd)))),
        (m.cov_y, np.ix_(range(k, len(sd)), range(k, len(sd)))),
    ):
        np.testing.assert_allclose(part / np.outer(sd, sd)[at], (expected / np.outer(sd, sd))[at], atol=1e-9)
    np.testing.assert_allclose(m.mean_y, columns[:, k:].mean(axis=0), rtol=1e-13)


@pytest.mark.parametrize("case", ["complete", "gaps", "groups", "confounders", "batches", "sparse", "float32"])
def test_fits_are_those_of_columns_of_0_and_1(case, monkeypatch):
    Z, Y = classes()
    rest, rng = {}, np.random.default_rng(1)
    if case == "gaps":
        Y = Y.mask(rng.random(Y.shape) < 0.1)
    if case == "groups":
        rest = {"groups": [f"g{i % 30}" for i in range(len(Y))]}
    if case == "confounders":
        rest = {"confounders": pd.DataFrame({"batch": rng.choice(["a", "b", "c"], len(Y))})}
    if case == "sparse":
        from scipy import sparse

        Z = sparse.csr_matrix(np.where(np.abs(Z) > 2, Z, 0))
    if case == "float32":
        Z = Z.astype(np.float32)

    def fitted():
        if case == "batches":
            declared = Y.assign(**{"class": pd.Categorical(Y["class"]), "stage": pd.Categorical(Y["stage"])})
            return ca.LatentAligner().fit((Z[i : i + 170], declared[i : i + 170]) for i in range(0, len(Y), 170))
        return ca.LatentAligner().fit(Z, Y, **rest)

    al = fitted()
    with monkeypatch.context() as patch:
        dense(patch)
        expected = fitted()
    assert al.covariate_names_ == expected.covariate_names_
    assert (al.shrinkage_, al.scale_) == (expected.shrinkage_, expected.scale_)
    np.testing.assert_allclose(al.T_, expected.T_, atol=1e-8 * np.abs(expected.T_).max())
    np.testing.assert_allclose(al.held_out_alignment_, expected.held_out_alignment_, atol=1e-8)


def test_partial_fits_join_their_levels():
    Z, Y = classes()
    Y["class"], Y["stage"] = pd.Categorical(Y["class"]), pd.Categorical(Y["stage"])
    al = ca.LatentAligner()
    for i in range(0, len(Y), 200):
        al.partial_fit(Z[i : i + 200], Y[i : i + 200])
    np.testing.assert_allclose(al.alignment_, ca.LatentAligner().fit(Z, Y).alignment_, atol=1e-9)


def test_folds_are_those_of_columns_of_0_and_1():
    Z, Y = classes()
    coding = Encoding.learn(Y)
    table = coding.short(Y).to_numpy()
    expected = fold_of_rows(Z, coding.apply(Y).to_numpy(), 5)
    for fold, z, _ in FoldSorter(5, levels=coding.levels).sorted(Z, table):
        np.testing.assert_array_equal(z, Z[expected == fold])


def test_constant_columns_are_named():
    Z, Y = classes()
    for column, value, name in (("age", 1.0, "age"), ("class", "c001", "class_c")):
        wrong = Y.assign(**{column: value})
        if column == "class":  # a level that was declared, and has no row
            wrong["class"] = pd.Categorical(Y["class"], categories=[*sorted(set(Y["class"])), "c999"])
            assert (
                Encoding.learn(wrong, declared=True)
                .levels.varies(Encoding.learn(wrong, declared=True).short(wrong).to_numpy())
                .tolist()
                == [True] * 70 + [False] + [True] * 2
            )
            continue
        with pytest.raises(ValueError, match=name):
            ca.LatentAligner().fit(Z, wrong)


def test_a_missing_column_is_named():
    Z, Y = classes()
    al = ca.LatentAligner().partial_fit(Z, Y.assign(**{"class": pd.Categorical(Y["class"])}))
    with pytest.raises(ValueError, match="'stage'"):
        al.partial_fit(Z, Y.drop(columns="stage"))


def test_places_of_levels():
    levels = Levels(np.array([0, 1, 1, 2, 2]), np.array([-1, 1, 2, 0, 1]))
    assert levels.places(np.array([[0, 0], [2, 1], [1, 0]])).tolist() == [[-1, 2], [1, 3], [0, 2]]


# -- the choice of a shrinkage and the regimes ------------------------------------------------------------------------


def test_the_search_finds_the_best_of_the_grid(monkeypatch):
    Z, Y = classes(n=1300, levels=110, k=120)
    few = ca.LatentAligner(folds=3)
    with monkeypatch.context() as patch:
        patch.setattr(validation, "MANY_COVARIATES", 50)  # long steps look at every second covariate
        few.fit(Z, Y[["class"]])
    with monkeypatch.context() as patch:
        patch.setattr(validation, "MANY_COVARIATES", 10**6)
        full = ca.LatentAligner(folds=3).fit(Z, Y[["class"]])
    both = few.shrinkage_path_.merge(full.shrinkage_path_, on=["scale", "shrinkage"], suffixes=("", "_full"))
    np.testing.assert_allclose(both["alignment"], both["alignment_full"], atol=1e-9)
    np.testing.assert_allclose(both["se"], both["se_full"], atol=1e-9)
    assert len(both) > 2
    assert len(few.shrinkage_path_) < len(full.shrinkage_path_)
    assert full.shrinkage_path_["alignment"].max() - few.shrinkage_path_["alignment"].max() < 1e-3


@pytest.mark.parametrize("scale", ["raw", "root"])
def test_solutions_are_the_regressions_of_eigenvectors(scale):
    Z, Y = classes(n=300, levels=12, k=20)
    m = ca.Moments.from_arrays(Z, ca.covariates.encode(Y[["class"]]).to_numpy())
    path, found = ridge_path(m, SHRINKAGE_GRID, scale), of_solutions(m, SHRINKAGE_GRID, scale)
    np.testing.assert_allclose(found.own, path.own, rtol=1e-9)
    np.testing.assert_allclose(found.variance(m), path.own, rtol=1e-9)
    np.testing.assert_allclose(found.products(m.cov_zy), path.products(m.cov_zy), rtol=1e-9)


@pytest.mark.parametrize("shrinkage", [0.0, 1e-3, 0.3])
def test_products_give_the_regimes_of_singular_values(shrinkage, monkeypatch):
    Z, Y = classes(n=700, levels=110, k=125)
    m = ca.Moments.from_arrays(Z, ca.covariates.encode(Y[["class"]]).to_numpy())
    found = polar_form._regular_polar
    calls = []
    monkeypatch.setattr(polar_form, "_regular_polar", lambda whitened: calls.append(found(whitened)) or calls[-1])
    fast = regimes.whitened_polar(m, shrinkage, "root")
    assert calls[0] is not None
    monkeypatch.setattr(polar_form, "MANY_COVARIATES", 10**6)
    slow = regimes.whitened_polar(m, shrinkage, "root")
    for name in ("T_0", "M", "M_inverse", "basis"):
        expected = getattr(slow, name)
        np.testing.assert_allclose(getattr(fast, name), expected, atol=1e-10 * np.abs(expected).max())
    np.testing.assert_allclose(fast.T_0 @ m.cov_z @ fast.T_0.T, np.eye(109), atol=1e-11)
    assert fast.null.shape == slow.null.shape


def test_dependent_classes_keep_singular_values():
    """All dummies of a category, and a column that is nearly another."""
    Z, Y = classes(n=700, levels=110, k=125)
    for columns in (
        ca.covariates.encode(Y[["class"]], drop_first=False).to_numpy(),
        np.hstack([d := ca.covariates.encode(Y[["class"]]).to_numpy(), d[:, :1] + 1e-5 * Z[:, :1]]),
    ):
        m = ca.Moments.from_arrays(Z, columns)
        polar = regimes.whitened_polar(m, 0.1)
        assert polar.M.shape == (110, 110)
        np.testing.assert_allclose(polar.T_0 @ m.cov_z @ polar.T_0.T, np.eye(110), atol=1e-9)
        S_zy = regimes.standardised_cross_covariance(m)
        np.testing.assert_allclose(polar.T_0 @ S_zy, polar.M, atol=1e-9)
