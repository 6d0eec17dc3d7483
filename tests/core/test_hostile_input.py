"""Input of the wrong kind, and numbers at the edges: a clear refusal or the right answer, for both estimators."""

from __future__ import annotations

import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import covalign as ca
from covalign.show import report

RNG = np.random.default_rng(0)
Z = RNG.normal(size=(40, 5))
Y = Z[:, :2] + RNG.normal(size=(40, 2))
HOLES = np.zeros(Y.shape, dtype=bool)
HOLES[:4, 0] = True


def aligner(**settings):
    return ca.LatentAligner(**settings)


def factors(**settings):
    return ca.InformedFactorAnalysis(**{"n_factors": 3, "max_iter": 60, "tol": 1e-3, "supervision": 1.0, **settings})


BOTH = pytest.mark.parametrize("make", [aligner, factors])


@pytest.fixture(autouse=True)
def quiet():
    """Few sweeps do not converge."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def refused(call, *words):
    """The call raises our error: one line with these words, of no other library."""
    with pytest.raises(ValueError, match=r"[.?]$") as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text
    for foreign in ("float()", "inhomogeneous", "unsupported operand", "not iterable", "LAPACK", "ambiguous"):
        assert foreign not in text
    for word in words:
        assert word in text


# -- masked arrays ----------------------------------------------------------------------------------------------------


@BOTH
def test_masked_covariates_are_gaps(make):
    masked, gaps = np.ma.masked_array(Y, HOLES), np.where(HOLES, np.nan, Y)
    a, b = make().fit(Z, masked), make().fit(Z, gaps)
    assert a.n_pairs_.tolist() == [36, 40]
    np.testing.assert_array_equal(a.transform(Z), b.transform(Z))
    whole = np.ma.masked_array((Y * 9).astype(int), HOLES)
    assert make().fit(Z, whole).n_pairs_.tolist() == [36, 40]
    text = np.ma.masked_array(np.array(["a", "b"] * 20), HOLES[:, 0])
    assert make().fit(Z, text).n_pairs_.tolist() == [36]
    refused(lambda: make().fit(Z, Y, confounders=masked), "missing in 'c0'")
    with pytest.raises(ValueError, match="every row needs a group"):
        make().fit(Z, Y, groups=np.ma.masked_array(np.arange(40) // 2, HOLES[:, 0]))


def test_masked_rows_are_refused_by_the_aligner():
    masked = np.ma.masked_array(Z, np.zeros_like(Z, dtype=bool))
    masked[0, 1] = np.ma.masked
    al = aligner(keep_rest=True).fit(Z, Y)
    calls = [
        lambda: aligner().fit(masked, Y),
        lambda: aligner().fit([(masked, Y), (Z, Y)]),
        lambda: aligner().partial_fit(masked, Y),
        lambda: al.transform(masked),
        lambda: al.erase(masked, "y0"),
        lambda: al.steer(masked, {"y0": 1.0}),
        lambda: al.inverse_transform(np.ma.masked_array(al.transform(Z), masked.mask)),
        lambda: al.score(masked, Y),
        lambda: ca.Moments.from_arrays(masked, Y),
        lambda: list(aligner().fit(ca.open_rows(masked), Y)),
    ]
    for call in calls:
        refused(call, "finite numbers", "NaN")
    np.testing.assert_array_equal(al.transform(np.ma.masked_array(Z)), al.transform(Z))


def test_masked_cells_are_gaps_for_the_factor_model():
    mask = RNG.random(Z.shape) < 0.05
    masked, gaps = np.ma.masked_array(Z, mask), np.where(mask, np.nan, Z)
    a, b = factors().fit({"a": masked, "b": Z}, Y), factors().fit({"a": gaps, "b": Z}, Y)
    np.testing.assert_array_equal(a.factors_, b.factors_)
    np.testing.assert_array_equal(a.transform({"a": masked}), a.transform({"a": gaps}))


# -- failed fits ------------------------------------------------------------------------------------------------------


@BOTH
def test_a_fit_that_fails_changes_nothing(make):
    names = list("abcde")
    frame = pd.DataFrame(Z, columns=names)
    model = make().fit(frame, Y)
    before, kept = model.transform(frame), dict(vars(model))
    infinite = np.where(np.arange(5) == 3, np.inf, Z)
    bad = {
        "infinite": lambda: model.fit(infinite, Y),
        "other columns and too many covariates": lambda: model.fit(Z[:, :3], RNG.normal(size=(40, 5))),
        "constant": lambda: model.fit(Z[:, :4], np.ones(40)),
        "text": lambda: model.fit(Z[:, :4], [f"t{i}" for i in range(40)]),
        "one group": lambda: model.fit(Z[:, :4], Y, groups=[1] * 40),
        "parameters": lambda: model.set_params(folds="five").fit(Z[:, :4], Y),
    }
    if make is aligner:
        bad["no dimension"] = lambda: model.fit(np.zeros((40, 3)), Y)
        bad["rows"] = lambda: model.partial_fit(infinite, Y)
        bad["other rows"] = lambda: model.partial_fit(Z[:, :2], Y)
    for why, call in bad.items():
        refused(call)
        model.set_params(folds=5)
        assert {name: value is kept[name] for name, value in vars(model).items()} == dict.fromkeys(kept, True), why
        np.testing.assert_array_equal(model.transform(frame), before)


def test_a_warning_that_is_an_error_changes_nothing():
    model = factors(max_iter=500).fit(Z, Y)
    kept = dict(vars(model))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning):
            model.set_params(max_iter=1).fit(Z[:, :4], Y)
    assert all(value is kept[name] for name, value in vars(model).items() if name != "max_iter")


# -- words of others --------------------------------------------------------------------------------------------------

NO_TABLES = {
    "ragged": [[1, 2], [3]],
    "nested": [[[1, 2], [3]]] * 40,
    "structured": np.zeros(40, dtype=[("a", float), ("b", float)]),
    "number": 3.0,
    "object": object(),
    "set": {1, 2},
    "complex": Z + 1j,
    "dates": np.full((40, 5), np.datetime64("2020-01-01")),
    "spans": np.full((40, 5), np.timedelta64(1, "D")),
    "objects": np.full((40, 5), object(), dtype=object),
    "three dimensions": np.zeros((40, 2, 2)),
    "no columns": np.empty((40, 0)),
    "dates in a column": pd.DataFrame({"a": pd.date_range("2020", periods=40), "b": 1.0 * np.arange(40), "c": Y[:, 0]}),
    "complex in a column": pd.DataFrame({"a": Z[:, 0] + 1j, "b": Z[:, 1], "c": Z[:, 2]}),
    "bytes": np.full((40, 5), b"x"),
    "surrogates": pd.DataFrame(Z, columns=["a\udc80", *"bcde"]),
    "repeated": pd.DataFrame(Z, columns=list("aabcd")),
    "repeated as text": pd.DataFrame(Z, columns=[1, "1", 2, 3, 4]),
}


@BOTH
@pytest.mark.parametrize("kind", NO_TABLES)
def test_what_is_no_table_is_refused(make, kind):
    data = NO_TABLES[kind]
    refused(lambda: make().fit(data, Y))
    if kind not in ("surrogates", "repeated", "repeated as text"):
        refused(lambda: make().fit(Z, data))
        refused(lambda: make().fit(Z, Y, confounders=data))
    if make is aligner:
        al = aligner(keep_rest=True).fit(Z, Y)
        for call in (al.transform, al.inverse_transform, lambda z: al.erase(z, "y0"), lambda z: al.steer(z, {"y0": 1})):
            if not kind.startswith(("surrogates", "repeated")):
                refused(lambda call=call: call(data))


@BOTH
def test_numbers_of_other_kinds_are_the_same_numbers(make):
    expected = make().fit(Z, Y).alignment_.to_numpy()
    kinds = [Z.astype(">f8"), Z.tolist(), pd.DataFrame(Z), np.asfortranarray(Z), Z.astype(object)]
    for rows in kinds:
        np.testing.assert_allclose(make().fit(rows, Y).alignment_, expected, atol=1e-9)
        np.testing.assert_allclose(
            make().fit(Z, np.asarray(rows)[:, :2] + (Y - Z[:, :2])).alignment_, expected, atol=1e-9
        )
    exact = pd.DataFrame(Y, columns=["a", "b"]).map(lambda value: Decimal(repr(float(value))))
    np.testing.assert_allclose(make().fit(Z, exact).alignment_, expected, atol=1e-9)


@pytest.mark.parametrize("missing", ["drop", "pairs"])
def test_flags_with_gaps(missing):
    table = pd.DataFrame({"smoker": [True, False, None, True] * 10, "age": Y[:, 0]})
    assert aligner(missing=missing).fit(Z, table).n_pairs_["smoker"] == 30


def test_views_that_are_the_same_text():
    refused(lambda: factors().fit({1: Z, "1": Z}, Y), "'1' more than once")
    fitted = factors().fit({"1": Z}, Y)
    refused(lambda: fitted.transform({1: Z, "1": Z}), "'1' more than once")


WRONG = [
    None,
    "x",
    -1,
    np.nan,
    np.inf,
    [1],
    np.array([1, 2]),
    {1: 2},
    1j,
    b"x",
    Decimal("0.5"),
    pd.NA,
    pd.Series([1, 2]),
]
ALLOWED = {"chunk_rows": [None], "random_state": [None, [1], np.array([1, 2])]}


@pytest.mark.parametrize("make", [ca.LatentAligner, ca.InformedFactorAnalysis])
def test_every_parameter_has_its_kind_and_range(make):
    for name in make().get_params():
        for value in WRONG:
            if not any(value is one or str(value) == str(one) for one in ALLOWED.get(name, [])):
                refused(lambda value=value, name=name: make(**{name: value}).fit(Z, Y), name)


def test_small_integers_do_not_overflow():
    for folds in (np.int8(5), np.uint8(5), np.int64(5)):
        expected, got = aligner(folds=5).fit(Z, Y), aligner(folds=folds).fit(Z, Y)
        np.testing.assert_array_equal(got.transform_, expected.transform_)
        pd.testing.assert_frame_equal(got.summary(), expected.summary())


@pytest.mark.parametrize("amounts", [None, {}, 3, [], ["y0"], "y0", {"y0": None}, {"y0": np.nan}, {"y0": "a"}])
def test_steering_needs_numbers(amounts):
    al = aligner().fit(Z, Y)
    refused(lambda: al.steer(Z, amounts))
    for amount in ([np.nan] * 40, 1j, {}, Z, True, np.inf, np.ma.masked_array(np.ones(40), HOLES[:, 0])):
        refused(lambda amount=amount: al.steer(Z, {"y0": amount}))
    refused(lambda: al.steer(Z), "for example {'y0': 1.0}")


@pytest.mark.parametrize("names", [(), None, 3, [], {}, True, [None], b"y0", [0]])
def test_erasing_needs_names(names):
    al = aligner().fit(Z, Y)
    refused(lambda: al.erase(Z, names))
    refused(lambda: al.erase(Z), "'y0', 'y1'")


def test_inverses_need_real_and_finite_numbers():
    al = aligner(keep_rest=True).fit(Z, Y)
    rows = al.transform(Z)
    for bad in (np.where(np.arange(5) == 1, np.nan, rows), rows + 1j, rows.astype(str) + np.full(rows.shape, "x")):
        refused(lambda bad=bad: al.inverse_transform(bad))


@pytest.mark.parametrize("shrinkage", [2, np.nan, -1, "auto", None, [0.1], True, np.array([0.1]), 1j])
def test_regimes_need_a_shrinkage_between_0_and_1(shrinkage):
    m = ca.Moments.from_arrays(Z, Y)
    for name in ("independent", "strongest", "exclusive", "frontier", "matrices"):
        refused(
            lambda name=name: getattr(ca.regimes, name)(m, shrinkage=shrinkage), "shrinkage needs a number in [0, 1]"
        )
    refused(lambda: ca.regimes.ridge(m, shrinkage), "shrinkage")
    refused(lambda: ca.regimes.whitened_polar(m, shrinkage), "shrinkage")


def test_regimes_need_moments():
    refused(lambda: ca.regimes.independent(Z), "Moments.from_arrays")
    refused(lambda: ca.regimes.ridge(ca.Moments.from_arrays(Z, Y), 0.1, "x"), "raw, root, standard")


@pytest.mark.parametrize("make", [ca.LatentAligner, ca.InformedFactorAnalysis])
def test_use_before_fit(make):
    model = make()
    calls = [model.summary, model.frontier, lambda: model.path([0.5]), lambda: report.summary(model)]
    names = ["alignment_", "mean_alignment_", "n_rows_", "T_", "regime_", "n_groups_"]
    names += ["beta_std_", "factors_"] if make is ca.InformedFactorAnalysis else ["moments_", "shrinkage_"]
    for call in [*calls, *(lambda name=name: getattr(model, name) for name in names)]:
        with pytest.raises(NotFittedError, match=f"This {make.__name__} is not fitted"):
            call()


# -- numbers at the edges ---------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("size", [1e308, 1e200, 1e160, 1e155, 1e-120, 1e-160, 1e-200, 1e-310])
def test_sizes_that_cannot_be_squared_are_refused(make, size):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for scaled in (slice(None), slice(1, 2)):
            rows, labels = np.clip(Z, -1, 1), np.clip(Y, -1, 1)
            rows[:, scaled] *= size
            labels[:, scaled] *= size
            frame = pd.DataFrame(rows, columns=[*"abcde"])
            refused(lambda frame=frame: make().fit(frame, Y), f"{'abcde'[scaled.start or 0]!r}")
            refused(lambda labels=labels: make().fit(Z, labels), f"'y{scaled.start or 0}'")


@pytest.mark.parametrize("power", [-300, -60, 60, 300])
def test_powers_of_two_change_nothing(power):
    """Columns far from 1, but within the range, are as good as others."""
    rows, labels = Z * 2.0**power, Y * 2.0**-power
    expected = aligner(regime="independent", shrinkage=0.0).fit(Z, Y)
    got = aligner(regime="independent", shrinkage=0.0).fit(rows, labels)
    np.testing.assert_allclose(got.transform(rows), expected.transform(Z), atol=1e-10)


@pytest.mark.parametrize("shape", [(6, 2, 2), (12, 4, 4), (5, 3, 3), (4, 2, 1), (3, 2, 1), (3, 1, 1), (2, 2, 1)])
@pytest.mark.parametrize("single", ["none", "Z", "Y"])
def test_what_can_be_fitted_can_be_summarised_and_reported(shape, single):
    n, k, p = shape
    rng = np.random.default_rng(1)
    rows, labels = rng.normal(size=(n, k)), rng.normal(size=(n, p))
    for name, table in (("Z", rows), ("Y", labels)):
        if single == name:  # varies in one row only
            table[:, 0], table[-1, 0] = 0.0, 1.0
    for settings in ({}, {"shrinkage": 0.0, "folds": 0}):
        if np.linalg.matrix_rank(rows - rows.mean(axis=0)) < p:
            refused(lambda settings=settings: aligner(**settings).fit(rows, labels), "linearly independent")
            continue
        al = aligner(**settings).fit(rows, labels)
        assert len(al.summary()) == p
        assert len(al.frontier([0, 1])) >= 2
        assert "<html" in report.page(report.summary(al), "small")


# -- names ------------------------------------------------------------------------------------------------------------

TAKEN = [
    ["view", "feature"],
    ["row", "column"],
    ["value", "a_std"],
    ["a", "a_std"],
    ["sample", "factor"],
    ["lam", "regime"],
]


@pytest.mark.parametrize("names", TAKEN)
def test_covariates_may_have_any_name(names, tmp_path):
    table = pd.DataFrame(Y, columns=names)
    frame = ca.regimes.matrices(ca.Moments.from_arrays(Z, table))
    assert sorted(set(frame["row"])) == sorted(set(frame["column"])) == sorted(names)
    for model in (aligner().fit(Z, table), factors(folds=0).fit(Z, table)):
        assert model.summary().index.tolist() == names
        assert model.frontier([0, 1]).columns.is_unique
        assert set(names) <= set(report.summary(model)["covariates"])
    fa = factors(folds=0).fit(Z, table)
    fa.transform(Z, return_std=True, out=tmp_path / "o.parquet")
    columns = pd.read_parquet(tmp_path / "o.parquet").columns
    assert columns.is_unique
    assert list(columns[:2]) == names
    assert len(columns) == 6
