"""Factor gaps: statements that need many repetitions, much memory or real data."""

# ruff: noqa: F811  (fixtures are imported by name)

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from covalign import InformedFactorAnalysis
from covalign.factor.inference import gaps
from covalign.factor.inference import sweeps as fitting
from covalign.factor.inference.bound import bound
from covalign.factor.inference.start import start
from tests.core.test_factor_gaps import (  # noqa: F401
    P,
    agreement,
    assert_the_bound_never_falls,
    clinic,
    full_or_not,
    gapped_problem,
    tumours,
    whole_fit,
)


def test_breast_cancer_with_half_of_the_labels(tumours, whole_fit):
    some = tumours.covariates.copy()
    some.iloc[np.random.default_rng(0).permutation(150)[:75], 0] = np.nan
    model = InformedFactorAnalysis(20, drop_first=False)
    alone = model.set_params(regression_share=0)  # samples without a label have the factors of the model
    whole, part = clone(alone).fit(tumours.views, tumours.covariates), clone(alone).fit(tumours.views, some)
    assert agreement(whole, part) >= 0.9
    mixed = model.set_params(regression_share="auto").fit(tumours.views, some)
    a, b = (np.asarray(fa.realign(0.75).transform(tumours.views))[:, :3] for fa in (whole_fit, mixed))
    assert np.mean([np.corrcoef(a[:, p], b[:, p])[0, 1] for p in range(3)]) >= 0.93


def test_breast_cancer_without_proteins_for_half(tumours, whole_fit):
    rows = tumours.views["protein"].index[np.random.default_rng(0).permutation(150)[:75]]
    views = {**tumours.views, "protein": tumours.views["protein"].drop(index=rows)}
    assert agreement(whole_fit, InformedFactorAnalysis(20, drop_first=False).fit(views, tumours.covariates)) >= 0.95


def test_breast_cancer_with_a_fifth_of_the_cells_deleted(tumours, whole_fit):
    rng = np.random.default_rng(0)
    hidden = {name: rng.random(view.shape) < 0.2 for name, view in tumours.views.items()}
    views = {name: view.mask(hidden[name]) for name, view in tumours.views.items()}
    fa = InformedFactorAnalysis(20, tol=1e-7, drop_first=False).fit(views, tumours.covariates)
    assert agreement(whole_fit, fa) >= 0.95
    off, inside = [], []
    for name, view in tumours.views.items():
        filled, std = fa.impute(name, return_std=True)
        away = (filled - view).to_numpy()[hidden[name]]
        off.append(away / np.broadcast_to(view.std(ddof=0).to_numpy(), view.shape)[hidden[name]])
        inside.append(np.abs(away) < 1.645 * std.to_numpy()[hidden[name]])
    assert np.sqrt(np.mean(np.concatenate(off) ** 2)) < 0.76  # mofapy2 .759 on these deletions, column means 1.006
    assert 0.85 <= np.mean(np.concatenate(inside)) <= 0.95


def test_trying_which_dummy_to_give_up_does_not_end_lower(tumours, whole_fit, monkeypatch):
    """Worth more than 20 nats with numpy 2.4; elsewhere rounding may find as good an end without it.

    The choice is made after a few sweeps, so the end may be a fraction of a nat lower (.34 with numpy 1.26).
    """
    from covalign.factor import fit_search

    monkeypatch.setattr(fit_search, "alternatives", lambda problem: [])
    first = InformedFactorAnalysis(20, drop_first=False).fit(tumours.views, tumours.covariates)
    gain = whole_fit.elbo_[-1] - first.elbo_[-1]
    assert gain > 20 or abs(gain) < 1


def test_at_the_end_beta_is_where_the_bound_with_covariates_integrated_out_is_flat():
    problem = gapped_problem(True, 0.1, 0.4)
    state = fitting.fit(problem, start(problem), True, 1000, 1e-12).state

    def at(beta):
        moved = state._replace(beta=beta)
        return bound(problem, moved._replace(z=gaps.update_factors(problem, moved.views, beta)))

    for p in range(P):
        e = 1e-4 * np.eye(P)[p]
        slope = (at(state.beta + e) - at(state.beta - e)) / 2e-4
        bend = (at(state.beta + e) - 2 * at(state.beta) + at(state.beta - e)) / 1e-8
        assert abs(slope / bend) < 2e-3  # how far from flat, in units of beta


@pytest.mark.parametrize("posterior", ["full", "mean_field"])
def test_mixed_covariates_and_gaps_converge_without_a_fall(posterior):
    X, Y = clinic()
    fa = InformedFactorAnalysis(8, posterior).fit(X, Y)
    assert fa.converged_
    assert np.diff(fa.elbo_).min() > -1e-9 * abs(fa.elbo_[-1])


@full_or_not
@pytest.mark.parametrize("accelerate", [True, False])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_bound_never_falls_in_many_sweeps(full, accelerate, seed):
    assert_the_bound_never_falls(full, accelerate, seed)
