"""Factor model: statements that need many repetitions, much memory or real data."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

import covalign as ca
from covalign import InformedFactorAnalysis
from tests.core.test_factor_model import recovery


def test_with_negative_correlations_recovery_varies_and_no_restart_does_better():
    """Among covariates that sum to zero one direction is left to X alone, so a few seeds recover less (sd .05)."""
    found, gained = [], []
    for seed in range(100, 116):
        s = ca.simulate.scenario("N", n_samples=5000, random_state=seed)
        fa = InformedFactorAnalysis(10).fit(s.X, s.Y)
        found.append(np.mean(recovery(fa, s)))
        gained.append(InformedFactorAnalysis(10, n_init=3, random_state=seed).fit(s.X, s.Y).elbo_[-1] - fa.elbo_[-1])
    assert np.mean(found) >= 0.93
    assert np.quantile(gained, 0.9) < 0.1


def test_breast_cancer_subtypes(shared_data):
    folder = shared_data("breast_tcga")
    X = {view: pd.read_csv(folder / f"{view}.csv.gz", index_col=0) for view in ("mrna", "mirna", "protein")}
    y = pd.read_csv(folder / "subtype.csv", index_col=0)
    every = InformedFactorAnalysis(20, tol=1e-7, drop_first=False)  # a factor for each subtype
    fa = clone(every).fit(X, y)
    shares = [fa.realign(lam).variance_explained().iloc[:, :3].to_numpy().mean() for lam in (0, 0.5, 0.9)]
    assert shares == sorted(shares)
    right = []
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(y, y["subtype"]):
        model = clone(every).fit({v: t.iloc[train] for v, t in X.items()}, y.iloc[train])
        Z = model.realign(0.75).transform({v: X[v].iloc[test] for v in ("mrna", "mirna")})
        named = np.array(model.covariate_names_)[Z.to_numpy()[:, :3].argmax(axis=1)]
        right.extend(named == "subtype_" + y["subtype"].iloc[test].to_numpy())
    assert np.mean(right) >= 0.85


def test_auto_with_gaps_and_views_and_saved(tmp_path):
    s = ca.simulate.scenario("PN", n_samples=300, n_features=60, n_factors=8, random_state=5)
    X = {"a": s.X[:, :30].copy(), "b": s.X[:, 30:]}
    X["a"][:100] = np.nan
    fa = InformedFactorAnalysis("auto").fit(X, s.Y)
    assert abs(fa.n_factors_ - 8) <= 1
    fa.save(tmp_path / "m.covalign")
    again = ca.load(tmp_path / "m.covalign")
    assert again.n_factors == "auto"
    assert again.n_factors_ == fa.n_factors_
    pd.testing.assert_series_equal(again.n_factors_path_, fa.n_factors_path_)


@pytest.mark.parametrize("name", ["PN", "AR", "P", "N"])
@pytest.mark.parametrize(("n", "d", "k"), [(500, 100, 10), (150, 300, 8), (400, 60, 6), (600, 120, 20)])
def test_auto_finds_the_number_of_factors(name, n, d, k):
    s = ca.simulate.scenario(name, n_samples=n, n_features=d, n_factors=k, random_state=31)
    fa = InformedFactorAnalysis("auto").fit(s.X, s.Y)
    assert abs(fa.n_factors_ - k) <= 1
    assert fa.factors_.shape == (n, fa.n_factors_)
    assert fa.n_factors_path_.idxmax() == fa.n_factors_
    assert fa.n_factors_path_.max() == fa.elbo_[-1]
    assert np.diff(fa.elbo_).min() >= 0


@pytest.mark.parametrize(("name", "least"), [("PN", 0.985), ("AR", 0.985), ("P", 0.985), ("N", 0.93)])
def test_informed_factors_are_recovered(name, least):
    found, error = [], {500: [], 5000: []}
    for seed in range(5):
        for n in error:
            s = ca.simulate.scenario(name, n_samples=n, random_state=seed)
            fa = InformedFactorAnalysis(10).fit(s.X, s.Y)
            error[n].append(np.mean((fa.beta_ - s.beta) ** 2))
            if n == 5000:
                found.append(np.mean(recovery(fa, s)))
    assert np.mean(found) >= least
    assert np.mean(error[500]) / np.mean(error[5000]) == pytest.approx(10, rel=0.6)  # falls as 1/N
