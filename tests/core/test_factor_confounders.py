"""Confounders in informed factor analysis: a fit to what they leave of X and y, without doing it by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import covalign as ca
from covalign import InformedFactorAnalysis

N, D, P, K = 240, 24, 2, 5
ROWS = [f"s{i}" for i in range(N)]


def confounded(seed: int = 0):
    """Views, covariates and confounders; batch and age drive both X and y."""
    rng = np.random.default_rng(seed)
    s = ca.simulate.scenario("PN", n_samples=N, n_features=D, n_factors=K, n_covariates=P, random_state=seed)
    C = pd.DataFrame({"batch": rng.choice(["a", "b", "c"], N), "age": rng.normal(60, 10, N)}, index=ROWS)
    design = coded(C)
    X = s.X + design @ rng.normal(0, 3, (3, D)) + 5
    Y = s.Y + design @ rng.normal(0, 1, (3, P))
    views = {"a": pd.DataFrame(X[:, :14], index=ROWS).add_prefix("g"), "b": pd.DataFrame(X[:, 14:], index=ROWS)}
    return views, pd.DataFrame(Y, index=ROWS, columns=["dose", "time"]), C, s


def coded(C: pd.DataFrame) -> np.ndarray:
    return np.column_stack([C["batch"] == "b", C["batch"] == "c", (C["age"] - 60) / 10]).astype(float)


def residual(C: pd.DataFrame, M: pd.DataFrame) -> pd.DataFrame:
    """What least squares leaves of each column, on the rows that have it, its mean put back."""
    A, out = np.column_stack([np.ones(len(C)), coded(C)]), M.copy()
    for name in M.columns:
        has = M[name].notna().to_numpy()
        b = np.linalg.lstsq(A[has], M.loc[has, name].to_numpy(), rcond=None)[0]
        out[name] = M[name] - A[:, 1:] @ b[1:]
    return out


def holes(views, Y, seed=1):
    rng = np.random.default_rng(seed)
    X = {name: view.mask(rng.random(view.shape) < 0.1) for name, view in views.items()}
    X["b"] = X["b"].iloc[60:]
    return X, Y.mask(rng.random(Y.shape) < 0.2)


@pytest.mark.parametrize("engine", ["gram", "dense"])
@pytest.mark.parametrize("gaps", [False, True])
def test_it_is_the_fit_to_what_the_confounders_leave(gaps, engine):
    X, Y, C, _ = confounded()
    if gaps:
        X, Y = holes(X, Y)
    ours = InformedFactorAnalysis(K, engine=engine).fit(X, Y, confounders=C)
    left = {name: residual(C.loc[view.index], view) for name, view in X.items()}
    by_hand = InformedFactorAnalysis(K, engine=engine).fit(left, residual(C, Y))
    assert ours.elbo_[-1] == pytest.approx(by_hand.elbo_[-1], rel=1e-9)
    np.testing.assert_allclose(ours.factors_, by_hand.factors_, atol=1e-6)
    np.testing.assert_allclose(ours.factor_std_, by_hand.factor_std_, atol=1e-6)
    np.testing.assert_allclose(ours.loadings_["b"], by_hand.loadings_["b"], atol=1e-6)
    np.testing.assert_allclose(ours.realign(0.5).factors_, by_hand.realign(0.5).factors_, atol=1e-6)


def test_factors_do_not_know_the_confounders_and_recover_the_truth():
    X, Y, C, s = confounded()
    plain = InformedFactorAnalysis(K).fit(X, Y).factors_[:, :P]
    fa = InformedFactorAnalysis(K).fit(X, Y, confounders=C)
    F = fa.factors_[:, :P]
    design = coded(C)
    by_confounders = [np.corrcoef(F[:, p], design[:, q])[0, 1] for p in range(P) for q in range(3)]
    assert np.abs(by_confounders).max() < 1e-8
    Z = s.Z[:, :P]

    def recovered(factors):
        return min(abs(np.corrcoef(factors[:, p], Z[:, p])[0, 1]) for p in range(P))

    assert recovered(F) > 0.9
    assert recovered(plain) < 0.8
    assert fa.confounder_names_ == ["batch_a", "batch_b", "batch_c", "age"]


@pytest.mark.parametrize("with_y", [True, False])
def test_new_samples_are_treated_alike(with_y):
    X, Y, C, _ = confounded()
    train, new = ROWS[:200], ROWS[200:]
    fa = InformedFactorAnalysis(K).fit({n: v.loc[train] for n, v in X.items()}, Y.loc[train], confounders=C.loc[train])
    views, y = {n: v.loc[new] for n, v in X.items()}, Y.loc[new] if with_y else None
    placed, std = fa.transform(views, y, confounders=C.loc[new[::-1]], return_std=True)
    A = np.column_stack([np.ones(N), coded(C)])

    def left(M):
        b = np.linalg.lstsq(A[:200], M.loc[train].to_numpy(), rcond=None)[0]
        return M - A @ b

    by_hand = InformedFactorAnalysis(K).fit({n: left(v).loc[train] for n, v in X.items()}, left(Y).loc[train])
    expected = by_hand.transform(
        {n: left(v).loc[new] for n, v in X.items()}, left(Y).loc[new] if with_y else None, return_std=True
    )
    np.testing.assert_allclose(placed, expected[0], atol=1e-6)
    np.testing.assert_allclose(std, expected[1], atol=1e-6)


def test_gaps_are_filled_in_the_units_of_the_data():
    X, Y, C, _ = confounded()
    hidden = np.random.default_rng(2).random(X["a"].shape) < 0.15
    holed = {"a": X["a"].mask(hidden), "b": X["b"]}
    fa = InformedFactorAnalysis(K).fit(holed, Y, confounders=C)
    filled = fa.impute("a")
    np.testing.assert_allclose(filled.to_numpy()[~hidden], X["a"].to_numpy()[~hidden], rtol=1e-12)
    error = (filled - X["a"]).to_numpy()[hidden] / np.tile(X["a"].std().to_numpy(), (N, 1))[hidden]
    assert np.sqrt(np.mean(error**2)) < 0.3
    whole = fa.reconstruct()["a"]
    np.testing.assert_allclose(whole[hidden], filled.to_numpy()[hidden], rtol=1e-9)


def test_order_form_and_coding_of_the_confounders_change_nothing():
    X, Y, C, _ = confounded()
    reference = InformedFactorAnalysis(K).fit(X, Y, confounders=C)
    shuffled = C.sample(frac=1, random_state=0)
    other = C.assign(age=C["age"] * 12 + 3, again=C["batch"].map({"a": "z", "b": "y", "c": "x"}), one=1.0)
    in_y = pd.concat([C[["age"]], Y, C[["batch"]]], axis=1)
    for fitted in (
        InformedFactorAnalysis(K).fit(X, Y, confounders=shuffled),
        InformedFactorAnalysis(K).fit(X, Y, confounders=other),
        InformedFactorAnalysis(K).fit(X, in_y, confounders=["batch", "age"]),
    ):
        assert fitted.covariate_names_ == ["dose", "time"]
        np.testing.assert_allclose(fitted.factors_, reference.factors_, atol=1e-7)
    named = InformedFactorAnalysis(K).fit(X, in_y, confounders=["batch", "age"])
    np.testing.assert_allclose(named.transform(X, in_y), reference.transform(X, Y, confounders=C), atol=1e-7)
    np.testing.assert_allclose(named.transform(X, confounders=C), reference.transform(X, confounders=C), atol=1e-7)


def test_saved_and_loaded(tmp_path):
    X, Y, C, _ = confounded()
    fa = InformedFactorAnalysis(K).fit(X, Y, confounders=C)
    fa.save(tmp_path / "m.covalign")
    again = ca.load(tmp_path / "m.covalign")
    assert again.confounder_names_ == fa.confounder_names_
    np.testing.assert_array_equal(again.transform(X, confounders=C), fa.transform(X, confounders=C))
    np.testing.assert_array_equal(again.reconstruct()["b"], fa.reconstruct()["b"])


def test_a_feature_that_follows_from_the_confounders_is_left_alone():
    X, Y, C, _ = confounded()
    X["a"] = X["a"].assign(age=C["age"] * 3)
    fa = InformedFactorAnalysis(K).fit(X, Y, confounders=C)
    assert np.abs(fa.loadings_["a"][-1]).max() < 1e-6
    np.testing.assert_allclose(fa.reconstruct()["a"][:, -1], C["age"] * 3, rtol=1e-9)


def test_bad_input():
    X, Y, C, _ = confounded()
    fa = InformedFactorAnalysis(K, tol=1e-2, supervision=1.0)
    with pytest.raises(ValueError, match=r"confounders need a value for every sample, got 1 missing in 'age'"):
        fa.fit(X, Y, confounders=C.assign(age=C["age"].where(C["age"] < C["age"].max())))
    with pytest.raises(ValueError, match=r"every row of the data needs a row of confounders, got none for 's3'"):
        fa.fit(X, Y, confounders=C.drop(index="s3"))
    with pytest.raises(ValueError, match=r"covariates need to vary where the confounders are the same, got 'age'"):
        fa.fit(X, Y.assign(age=C["age"] / 7), confounders=C)
    with pytest.raises(ValueError, match=r"'stage'"):
        fa.fit(X, Y, confounders=["stage"])
    with pytest.raises(ValueError, match="besides the confounders"):
        fa.fit(X, Y, confounders=["dose", "time"])
    with pytest.raises(ValueError, match=r"240.*10"):
        fa.fit({n: v.to_numpy() for n, v in X.items()}, Y.to_numpy(), confounders=np.ones((10, 1)))
    fa.fit(X, Y)
    with pytest.raises(ValueError, match="fitted without any"):
        fa.transform(X, confounders=C)
    fa.fit(X, Y, confounders=C)
    with pytest.raises(ValueError, match=r"fitted with confounders \('batch', 'age'\)"):
        fa.transform(X)
    with pytest.raises(ValueError, match=r"'batch'.*'d'|'d'.*'batch'"):
        fa.transform(X, confounders=C.assign(batch="d"))
