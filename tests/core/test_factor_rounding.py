"""Where rounding begins: the bound never falls on odd data, a fall is not convergence, values beyond squares."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from covalign import InformedFactorAnalysis, simulate
from covalign.exceptions import OwnershipWarning
from covalign.factor.inference import realignment, sweeps, updates
from tests.conftest import thorough


def odd_data(rng):
    """Few samples; noise-free, repeated or badly scaled columns; gaps; one to three views."""
    n, d, p = (int(rng.integers(*of)) for of in ((5, 61), (2, 81), (1, 4)))
    k = p + int(rng.integers(0, 6))
    Z = rng.normal(size=(n, k))
    X = Z @ rng.normal(size=(k, d)) + rng.choice([0, 1e-8, 1e-3, 0.1, 1, 3]) * rng.normal(size=(n, d))
    if rng.random() < 0.3:
        X[:, : max(1, d // 4)] = X[:, :1]
    if rng.random() < 0.5:
        X *= 10.0 ** rng.uniform(-6, 6, size=d)
    if rng.random() < 0.3:
        X += 10.0 ** rng.uniform(-3, 6) * rng.normal(size=d)
    Y = Z[:, :p] + rng.choice([0, 0.1, 1, 10]) * rng.normal(size=(n, p))
    if rng.random() < 0.2:
        X[rng.random(X.shape) < 0.2] = np.nan
    elif rng.random() < 0.2:
        X[: n // 3, : d // 2] = np.nan
    cuts = np.sort(rng.choice(np.arange(1, d), int(rng.integers(0, 3)), replace=False)) if d > 5 else []
    return {f"v{i}": view for i, view in enumerate(np.split(X, cuts, axis=1))}, Y, k


def odd_settings(rng):
    """Engines, posteriors, warm-ups."""
    return {
        "scale": bool(rng.random() < 0.3),
        "engine": str(rng.choice(["auto", "gram", "dense"])),
        "posterior": str(rng.choice(["full", "mean_field", "coordinates"], p=[0.5, 0.4, 0.1])),
        "accelerate": bool(rng.random() < 0.8),
        "pretrain_iter": int(rng.choice([0, 0, 5, 20])),
        "supervision": float(rng.choice([1, 1, 4])),
        "beta_prior": float(rng.choice([0, 4])),
        "regime_from": str(rng.choice(["features", "model"])),
        "tol": float(rng.choice([1e-8, 0])),
        "max_iter": 60,
        "folds": 0,
    }


def largest_fall(X, Y, **settings):
    """The largest fall of the bound in a plain step of a fit and its realignment, in units of what rounding may do."""
    falls, real = [0.0], sweeps.iterate

    def watched(step, measure, state, max_iter, tol, refresh=None, tick=lambda elbo: None, rounding=0.0):
        known = {}

        def stepped(before):
            after = step(before)
            known[id(after)] = (after, measure(after))  # the state is kept, so no other has its id
            if id(before) in known:
                falls.append((known[id(before)][1] - known[id(after)][1]) / rounding)
            return after

        return real(stepped, measure, state, max_iter, tol, refresh, tick, rounding)

    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setattr(sweeps, "iterate", watched)
        patch.setattr(realignment, "iterate", watched)
        for kind in (ConvergenceWarning, OwnershipWarning):
            warnings.simplefilter("ignore", kind)
        model = InformedFactorAnalysis(**settings).fit(X, Y)
        if model.regime_from == "model":  # the other way has no sweeps
            model.realign(0.5)
    return max(falls)


@given(st.integers(0, 2**32 - 1))
def test_the_bound_never_falls_on_odd_data(seed):
    rng = np.random.default_rng(seed)
    (X, Y, k), settings = odd_data(rng), odd_settings(rng)
    gaps = any(np.isnan(view).any() for view in X.values())
    if gaps and settings["posterior"] == "coordinates":
        settings["posterior"] = "mean_field"
    if any(np.isnan(view).all(axis=0).any() for view in X.values()):
        return
    assert largest_fall(X, Y, n_factors=k, **settings) < 1


@pytest.mark.parametrize("posterior", ["full", "mean_field", "coordinates"])
@pytest.mark.parametrize("engine", ["gram", "dense"])
def test_noise_free_columns_at_a_million_converge(engine, posterior):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(40, 4))
    X, Y = 1e6 * Z @ rng.normal(size=(4, 12)), Z[:, :2]
    settings = {"engine": engine, "posterior": posterior, "scale": False, "folds": 0, "supervision": 1.0}
    assert largest_fall(X, Y, n_factors=4, max_iter=60, **settings) < 1
    if posterior == "full":
        assert InformedFactorAnalysis(4, **settings).fit(X, Y).converged_


def test_graded_eigenvalues_keep_their_own_precision():
    rng = np.random.default_rng(1)
    A = rng.normal(size=(30, 5))
    S, root = A.T @ A, 10.0 ** np.array([6, -2, 0, 5, -3])
    for stack in (S, np.array([S, 2 * S])):
        values, U = updates.scaled_eigh(stack, root)
        assert np.abs(np.swapaxes(U, -1, -2) @ U - np.eye(5)).max() < 1e-14
        # the determinant of the trailing block of the sorted, scaled matrix is that of its small eigenvalues
        product = np.prod(root**2) * np.linalg.det(S)
        assert np.prod(values[0] if stack.ndim > 2 else values) == pytest.approx(product, rel=1e-10)


@pytest.mark.parametrize(
    ("values", "rounding", "kept", "converged"),
    [
        ([0.0, 5.0, 4.0], 0.5, 2, False),
        ([0.0, 5.0, 4.9], 0.5, 2, True),
        ([0.0, 5.0, np.nan], 0.5, 2, False),
        ([0.0, 5.0, 5.0], 0.5, 3, True),
        ([0.0, 5.0, 9.0], 0.5, 3, False),
    ],
)
def test_a_fall_is_convergence_only_within_rounding_and_the_best_state_is_kept(values, rounding, kept, converged):
    found = sweeps.iterate(lambda i: i + 1, lambda i: values[i - 1], 0, 3, 1e-8, rounding=rounding)
    assert (found.state, len(found.elbo), found.converged) == (kept, kept, converged)


def test_a_fit_that_rounding_ended_says_so(monkeypatch):
    s, real = simulate.scenario("PN", n_samples=60, n_features=20), sweeps.bound
    values = iter(np.concatenate([np.arange(10.0), [0.0]]))
    monkeypatch.setattr(sweeps, "bound", lambda *given: next(values) if real(*given) else 0.0)
    with pytest.warns(ConvergenceWarning, match="rounding ended the fit after 10 sweeps"):
        fa = InformedFactorAnalysis(6, accelerate=False, supervision=1.0, folds=0).fit(s.X, s.Y)
    assert not fa.converged_


SAMPLES = simulate.scenario("PN", n_samples=60, n_features=12, n_factors=6)


def quick(**settings):
    """Loose: the same sweeps of both, not many of them."""
    return InformedFactorAnalysis(6, supervision=1.0, folds=0, tol=1e-4, **settings)


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("engine", ["gram", "dense"])
@pytest.mark.parametrize("power", [300, *thorough(-300)])
def test_powers_of_two_change_nothing(power, engine, gaps):
    X = SAMPLES.X.copy()
    if gaps:
        X[::7, 3:6] = np.nan
    other = X * np.where(np.arange(12) % 5 == 3, 2.0**power, 1.0)
    one, two = (quick(engine=engine).fit(of, SAMPLES.Y) for of in (X, other))
    np.testing.assert_allclose(two.factors_, one.factors_, atol=1e-9)
    np.testing.assert_allclose(two.transform(other), one.transform(X), atol=1e-9)


@pytest.mark.parametrize(
    ("scale", "size"), [(True, 1e160), (True, 1e-200), (True, 5e-324), (True, 1e300), (False, 1e160), (False, 1e40)]
)
@pytest.mark.parametrize("gaps", [False, True])
def test_values_whose_squares_are_no_numbers_are_refused_by_name(scale, size, gaps):
    X = SAMPLES.X.copy()
    X[:, 3] = size * np.where(np.arange(60) % 2, 1.0, 2.0 if size < 1e300 else 1.0)
    X[0, 5] = np.nan if gaps else 0.0
    with pytest.raises(ValueError, match="column '3'"):
        InformedFactorAnalysis(6, scale=scale).fit(X, SAMPLES.Y)


def test_covariates_whose_squares_are_no_numbers_are_refused_by_name():
    Y = SAMPLES.Y.copy()
    Y[:, 1] *= 1e160
    with pytest.raises(ValueError, match=r"Y needs values .* column 'y1'"):
        InformedFactorAnalysis(6).fit(SAMPLES.X, Y)


def test_tiny_features_are_refused_by_name():
    X = np.column_stack([SAMPLES.X, 1e-200 * SAMPLES.X[:, :2]])
    with pytest.raises(ValueError, match="column '12'"):
        quick(scale=False).fit(X, SAMPLES.Y)
