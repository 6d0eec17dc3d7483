"""Factors with covariates: every pair from the rows that have both."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from covalign.closed_form import metrics


def table(seed: int, n: int = 60) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Factors and covariates of all kinds, both with gaps."""
    rng = np.random.default_rng(seed)
    Z = pd.DataFrame(rng.standard_normal((n, 3)), columns=["a", "b", "c"])
    Y = pd.DataFrame(
        {
            "dose": Z["a"] + rng.standard_normal(n),
            "flag": (Z["b"] + rng.standard_normal(n) > 0).astype(object),
            "sex": rng.choice(["f", "m"], n),
            "stage": pd.Categorical(rng.choice(["I", "II", "III"], n), ["I", "II", "III"], ordered=True),
            "site": rng.choice(["x", "y", "z"], n),
        }
    )
    Z = Z.mask(rng.random(Z.shape) < 0.1)
    return Z, Y.mask(rng.random(Y.shape) < 0.2)


def number(y: pd.Series) -> pd.Series:
    if y.name == "sex":
        return y.map({"f": 0, "m": 1})
    return y.cat.codes if y.name == "stage" else y.astype(float)


@given(st.integers(0, 10_000))
def test_every_value_is_that_of_the_rows_with_both(seed):
    Z, Y = table(seed)
    found = metrics.association(Z, Y)
    assert len(found) == 15
    for factor, covariate, measure, value, rows in found.itertuples(index=False):
        source = covariate.removesuffix("_m")
        both = pd.concat([Z[factor].rename("z"), Y[source]], axis=1).dropna()
        assert rows == len(both)
        if measure == "correlation":
            assert value == pytest.approx(np.corrcoef(both["z"], number(both[source]))[0, 1], abs=1e-12)
        else:
            fitted = both.groupby("site")["z"].transform("mean")
            assert value == pytest.approx(fitted.var() / both["z"].var(), abs=1e-12)


def test_measures_and_names_follow_the_kind():
    found = metrics.association(*table(0)).drop_duplicates("covariate").set_index("covariate")["measure"]
    assert found[["dose", "flag", "sex_m", "stage"]].eq("correlation").all()
    assert found["site"] == "eta_squared"


def test_what_does_not_vary_is_associated_with_nothing():
    Z = pd.DataFrame({"flat": np.full(6, 0.1), "z": np.arange(6.0)})
    Y = pd.DataFrame(
        {
            "flat": 0.1,
            "gone": np.nan,
            "none": [None] * 6,
            "one": ["a"] * 6,
            "once": [1.0, *[np.nan] * 5],
            "ok": [0, 1, 2, 3, 4, 6.0],
            "site": ["a", "b", "c"] * 2,
        }
    )
    found = metrics.association(Z, Y).pivot(index="covariate", columns="factor", values="value")
    assert found["flat"].isna().all()
    assert found["z"].dropna().index.tolist() == ["ok", "site"]


def test_rows_are_matched_by_index():
    Z, Y = table(1)
    pd.testing.assert_frame_equal(metrics.association(Z, Y.iloc[::-1]), metrics.association(Z, Y))


def test_a_large_offset_does_no_harm():
    Z, Y = table(2)
    here, there = (metrics.association(Z + at, Y)["value"] for at in (0, 1e6))
    np.testing.assert_allclose(here, there, atol=1e-8)


def test_the_inputs_stay_as_they_were():
    Z, Y = table(3)
    before = Z.copy(), Y.copy()
    metrics.association(Z, Y)
    pd.testing.assert_frame_equal(Z, before[0])
    pd.testing.assert_frame_equal(Y, before[1])


@pytest.mark.parametrize(
    ("Z", "message"),
    [
        (np.zeros(60), "two dimensions"),
        (np.zeros((5, 2)), "5"),
        (np.full((60, 2), np.inf), "finite"),
        (np.full((60, 2), "x"), "number"),
    ],
)
def test_errors(Z, message):
    with pytest.raises(ValueError, match=message):
        metrics.association(Z, table(0)[1])
