"""Left-out samples of a factor model: the fits, the placing and the regimes, against a loop that does it by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import covalign as ca
from covalign import InformedFactorAnalysis
from covalign.closed_form.fold_packing import fold_of_rows
from covalign.exceptions import CannotHoldOutError, NotHeldOutWarning
from covalign.factor import cross_validation as crossvalidation


def data(n: int = 240, seed: int = 0):
    s = ca.simulate.scenario("PN", n_samples=n, n_features=40, n_factors=6, n_covariates=3, random_state=seed)
    return s.X, s.Y


def fits_without(model, X, Y, folds=5, confounders=None):
    """For every fold: its samples, and the fit to all others."""
    fold_of = fold_of_rows(crossvalidation.buckets_of(model, folds), Y, folds)
    for fold in range(folds):
        test = fold_of == fold
        C = None if confounders is None else confounders[~test]
        yield test, clone(model).set_params(supervision=model.supervision_).fit(X[~test], Y[~test], confounders=C)


def by_hand(fits, X, Y, move, confounders=None):
    """Alignment: realign the fit of each fold, place its samples from X alone, correlate all left-out samples."""
    found, left = np.empty(Y.shape), np.empty(Y.shape)
    for test, fit in fits:
        C = [None, None] if confounders is None else [confounders[test], confounders[~test]]
        if fit.regime_from == "model":  # T z, z of stage 1
            z = fit.transform(X[test], confounders=C[0])[:, : Y.shape[1]] @ move(fit).T_.T
        else:  # factors of different fits are comparable once they have unit variance
            z, own = (move(fit).transform(X[at], confounders=c) for at, c in zip((test, ~test), C, strict=True))
            z = (z / own.std(axis=0))[:, : Y.shape[1]]
        y = Y[test]
        if confounders is not None:
            centred = confounders - confounders[~test].mean(axis=0)
            y = y - centred[test] @ np.linalg.lstsq(centred[~test], Y[~test] - Y[~test].mean(axis=0), rcond=None)[0]
        found[test], left[test] = z, y
    return np.array([np.corrcoef(a, b)[0, 1] for a, b in zip(found.T, left.T, strict=True)])


@pytest.fixture(scope="module", params=[{}, {"supervision": 5.0}, {"regime_from": "model"}], ids=str)
def judged(request):
    """Samples, covariates, their model, and the fits without each fold."""
    X, Y = data()
    model = InformedFactorAnalysis(6, **request.param).fit(X, Y)
    return X, Y, model, list(fits_without(model, X, Y))


@pytest.mark.parametrize(
    "move",
    [
        lambda fit: fit,
        lambda fit: fit.realign(0.4),
        lambda fit: fit.realign(regime="strongest"),
        lambda fit: fit.realign(regime="exclusive"),
    ],
    ids=["as fitted", "tunable", "strongest", "exclusive"],
)
def test_held_out_alignment_is_that_of_a_loop(move, judged):
    X, Y, model, fits = judged
    need = by_hand(fits, X, Y, move)
    table = move(model).summary()
    np.testing.assert_allclose(table["held_out"], need, atol=1e-5)
    assert (table["low"] < table["held_out"]).all()
    assert (table["held_out"] < table["high"]).all()
    np.testing.assert_array_equal(table["in_sample"], move(model).alignment_)
    assert table["rows"].tolist() == [240] * 3


def test_confounders_are_those_of_the_training_samples():
    X, Y = data(seed=1)
    C = np.random.default_rng(0).standard_normal((240, 1))
    X, Y = X + 2 * C, Y + C
    model = InformedFactorAnalysis(6).fit(X, Y, confounders=C)
    need = by_hand(fits_without(model, X, Y, confounders=C), X, Y, lambda fit: fit.realign(0.5), C)
    np.testing.assert_allclose(model.realign(0.5).summary()["held_out"], need, atol=1e-5)


def test_row_order_does_not_matter():
    X, Y = data(seed=4)
    order = np.random.default_rng(0).permutation(240)
    one, other = (InformedFactorAnalysis(6).fit(X[at], Y[at]).summary() for at in (slice(None), order))
    np.testing.assert_allclose(one, other, atol=1e-6)


def test_folds_are_fitted_once_for_all_regimes(monkeypatch):
    X, Y = data(seed=5)
    model, calls = InformedFactorAnalysis(6).fit(X, Y), []
    real = crossvalidation.without
    monkeypatch.setattr(crossvalidation, "without", lambda *a: calls.append(1) or real(*a))
    for moved in (model, model.realign(0.2), model.realign(0.9)):
        moved.summary()
    assert len(calls) == 5
    model.fit(X[:200], Y[:200]).summary()
    assert len(calls) == 10


def test_without_folds_nothing_is_fitted():
    X, Y = data(seed=6)
    table = InformedFactorAnalysis(6, folds=0).fit(X, Y).summary()
    assert table["held_out"].isna().all()
    assert table["in_sample"].notna().all()


def test_a_saved_model_can_be_judged_again(tmp_path):
    X, Y = data(seed=7)
    model = InformedFactorAnalysis(6).fit(X, Y).realign(0.5)
    model.save(tmp_path / "m.covalign")
    pd.testing.assert_frame_equal(ca.load(tmp_path / "m.covalign").summary(), model.summary())


def test_rows_that_are_read_by_chunks_cannot_be_judged_and_the_summary_says_why(tmp_path):
    X, Y = data()
    np.save(tmp_path / "x.npy", X)
    streamed = InformedFactorAnalysis(6).fit(tmp_path / "x.npy", Y)
    with pytest.warns(NotHeldOutWarning, match="rows in memory"):
        table = streamed.summary()
    assert table["in_sample"].notna().all()
    assert table["held_out"].isna().all()
    assert "rows in memory" in table.attrs["not_held_out"]
    without = streamed.set_params(folds=0).summary()
    assert without.attrs["not_held_out"] is None
    pd.testing.assert_frame_equal(without, table)


def test_a_group_is_left_out_as_a_whole():
    X, Y = data(seed=8)
    patient = [f"p{i // 4}" for i in range(240)]
    model = InformedFactorAnalysis(6).fit(X, Y, groups=patient)
    fold_of = fold_of_rows(crossvalidation.buckets_of(model, 5), Y, 5)
    assert all(len(set(fold_of[i : i + 4])) == 1 for i in range(0, 240, 4))
    assert model.n_groups_ == 60
    np.testing.assert_allclose(model.factors_, InformedFactorAnalysis(6).fit(X, Y).factors_)  # the fit is the same
    frame = pd.DataFrame(Y, columns=["a", "b", "c"]).assign(patient=patient)
    named = InformedFactorAnalysis(6).fit(X, frame, groups="patient")
    assert named.covariate_names_ == ["a", "b", "c"]
    np.testing.assert_allclose(named.summary()["held_out"], model.summary()["held_out"], atol=1e-9)


def test_groups_that_share_a_fold_cannot_be_left_out(monkeypatch):
    X, Y = data()
    with pytest.warns(NotHeldOutWarning, match="are based on 2 groups"):
        model = InformedFactorAnalysis(6).fit(X, Y, groups=["a", "b"] * 120)
    monkeypatch.setattr(crossvalidation, "buckets_of", lambda model, folds: np.zeros(240, dtype=int))
    with pytest.warns(NotHeldOutWarning, match="varying in the rest"):
        assert model.summary()["held_out"].isna().all()


@pytest.mark.filterwarnings("ignore::covalign.exceptions.OwnershipWarning")
@pytest.mark.parametrize("n", [4, 12, 19])
def test_a_model_of_few_samples_has_a_summary_and_says_why_nothing_is_held_out(n):
    X, Y = data()
    model = InformedFactorAnalysis(4).fit(X[:n], Y[:n])
    with pytest.warns(NotHeldOutWarning, match=f"needs at least 20, .*, got {n} in all"):
        table = model.summary()
    assert table[["held_out", "se", "low", "high"]].isna().all(axis=None)
    assert table["in_sample"].notna().all()
    assert table.attrs["not_held_out"].startswith("leaving samples out needs at least 20")
    assert model.informed_["verdict"].tolist() == ["unclear"] * 3  # without another warning
    assert model.frontier([0, 1])["held_out_coupling"].isna().all()
    assert "unknown" in model._repr_html_()
    with pytest.raises(CannotHoldOutError, match="needs at least 20"):
        model._judged()


def test_frames_as_outputs_leave_the_held_out_numbers_as_they_are():
    data = ca.simulate.scenario("PN", n_samples=60, n_features=12, n_covariates=2)
    fitted = [ca.InformedFactorAnalysis(4, folds=2, supervision=1).fit(data.X, data.Y) for _ in range(2)]
    fitted[1].set_output(transform="pandas")
    pd.testing.assert_frame_equal(fitted[0].summary(), fitted[1].summary())
