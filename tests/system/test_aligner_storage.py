"""A saved aligner is the same aligner: every number, of whatever it is asked, comes back to the last bit."""

from __future__ import annotations

import datetime
import decimal
import json
import shutil
import warnings
import zipfile
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

import covalign as ca
from covalign import LatentAligner
from covalign.exceptions import CannotBeSavedError, FileFormatError, SingularTransformWarning
from covalign.persist import values as packing
from tests.conftest import correlated, thorough

N, K = 240, 8


def data(seed: int = 0, n: int = N, dtype=np.float64) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Z, covariates of every kind, and confounders."""
    numbers, Y = correlated(seed, n, K, 3)
    rng = np.random.default_rng(seed)
    index = [f"s{i}" for i in range(n)]
    Z = pd.DataFrame(numbers.astype(dtype), columns=[f"pc{i}" for i in range(K)], index=index)
    third = pd.cut(Y[:, 2], [-np.inf, -1, 1, np.inf], labels=["low", "mid", "high"])
    table = pd.DataFrame({"dose": Y[:, 0], "treated": Y[:, 1] > 0, "stage": third}, index=index)
    table["subtype"] = np.array(["LumA", "Basal", "Her2"])[(Y[:, 2] > 0).astype(int) + (Y[:, 0] > 0)]
    C = pd.DataFrame({"batch": np.array(["x", "y", "z"])[rng.integers(3, size=n)], "age": rng.normal(size=n)}, index)
    return Z, table, C


def with_gaps(Y: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    Y, rng = Y.astype({"dose": float, "treated": object}), np.random.default_rng(seed)
    for name in Y.columns:
        Y.loc[rng.random(len(Y)) < 0.2, name] = None
    return Y


def again(aligner, tmp_path):
    path = tmp_path / "model.covalign"
    aligner.save(path)
    return ca.load(path)


def assert_same(one: LatentAligner, other: LatentAligner, Z, Y, C=None, more=None) -> None:
    """Everything that can be asked of an aligner."""
    given = {} if C is None else {"confounders": C}
    assert isinstance(other, LatentAligner)
    assert repr(one) == repr(other)
    assert one.get_params() == other.get_params()
    assert one._coding == other._coding
    assert list(one.get_feature_names_out()) == list(other.get_feature_names_out())
    pd.testing.assert_frame_equal(one.summary(), other.summary(), check_exact=True)
    pd.testing.assert_series_equal(one.mean_alignment_, other.mean_alignment_, check_exact=True)
    pd.testing.assert_frame_equal(one.category_alignment_, other.category_alignment_, check_exact=True)
    pd.testing.assert_frame_equal(one.frontier([0, 0.3, 1]), other.frontier([0, 0.3, 1]), check_exact=True)
    assert (one.shrinkage_path_ is None) == (other.shrinkage_path_ is None)
    if one.shrinkage_path_ is not None:
        pd.testing.assert_frame_equal(one.shrinkage_path_, other.shrinkage_path_, check_exact=True)
    for ask in (
        lambda a: a.transform(Z, **given),
        lambda a: a.inverse_transform(a.transform(Z, **given), **given),
        lambda a: a.erase(Z, one.covariate_names_[0], **given),
        lambda a: a.erase(Z, one.covariate_names_[-1], protect_others=True, **given),
        lambda a: a.steer(Z, {one.covariate_names_[0]: 1.0}),
        lambda a: a.at(max_coupling=0.1).transform(Z, **given),
        lambda a: a.at(regime="strongest").transform(Z, **given),
        lambda a: a.at(lam=0.9).summary(),
        lambda a: a.permutation_test(Z, Y, 19, **given),
    ):
        first, second = ask(one), ask(other)
        np.testing.assert_array_equal(np.asarray(first), np.asarray(second), strict=True)
    if more is not None:
        Z, Y, C = more
        given = {} if C is None else {"confounders": C}
        one.partial_fit(Z, Y, **given)
        other.partial_fit(Z, Y, **given)
        pd.testing.assert_frame_equal(one.summary(), other.summary(), check_exact=True)
        np.testing.assert_array_equal(one.transform(Z, **given), other.transform(Z, **given), strict=True)


@pytest.fixture(autouse=True)
def _inexact_inverses_are_fine():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ca.exceptions.LeastSquaresWarning)
        yield


@pytest.mark.parametrize("gaps", [False, True], ids=["complete", "gaps"])
@pytest.mark.parametrize("confounded", [False, True], ids=["plain", "confounders"])
@pytest.mark.parametrize(
    ("dtype", "options"),
    [
        pytest.param(np.float64, {}, marks=pytest.mark.thorough),
        (np.float32, {"shrinkage": 0.1, "keep_rest": True}),
    ],
    ids=["float64", "float32 with options"],
)
def test_everything_comes_back(tmp_path, gaps, confounded, dtype, options):
    Z, Y, C = data(dtype=dtype)
    Y = with_gaps(Y) if gaps else Y
    more_Z, more_Y, more_C = data(1, 60, dtype)
    options = {"drop_first": True, **options}
    aligner = LatentAligner(**options).fit(Z, Y, confounders=C if confounded else None)
    other = again(aligner, tmp_path)
    assert np.asarray(other.transform(Z, confounders=C if confounded else None)).dtype == dtype
    more = (more_Z, with_gaps(more_Y, 1) if gaps else more_Y, more_C if confounded else None)
    assert_same(aligner, other, Z, Y, C if confounded else None, more)


@given(seed=st.integers(0, 10**6), n=st.integers(12, 80), p=st.integers(1, 4), gaps=st.floats(0, 0.4))
def test_whatever_was_fitted_comes_back(tmp_path_factory, seed, n, p, gaps):
    Z, Y = correlated(seed, n, 5, p)
    Y[np.random.default_rng(seed).random(Y.shape) < gaps] = np.nan
    try:
        aligner = LatentAligner().fit(Z, Y)
    except ValueError:
        return  # too few rows with a covariate
    assert_same(aligner, again(aligner, tmp_path_factory.mktemp("saved")), Z, Y)


@pytest.mark.parametrize(
    "choice", [{"lam": 0.2}, {"regime": "exclusive"}, {"regime": "strongest"}, {"max_coupling": 0.05}], ids=str
)
def test_another_regime_is_saved_as_it_is(tmp_path, choice):
    Z, Y, _ = data()
    aligner = LatentAligner(drop_first=True).fit(Z, Y).at(**choice)
    assert_same(aligner, again(aligner, tmp_path), Z, Y)


def test_what_was_solved_counts_and_not_what_parameters_say_since(tmp_path):
    Z, Y = correlated(0)
    aligner = LatentAligner(keep_rest=True).fit(Z, Y).set_params(lam=0.9, shrinkage=0.5, keep_rest=False)
    other = again(aligner, tmp_path)
    assert other.get_params() == aligner.get_params()
    np.testing.assert_array_equal(other.transform(Z), aligner.transform(Z))


def test_rows_that_were_added_but_not_yet_solved(tmp_path):
    Z, Y = correlated(0)
    aligner = LatentAligner().partial_fit(Z[:100], Y[:100])
    other = again(aligner, tmp_path)
    assert_same(aligner, other, Z, Y, more=(Z[100:], Y[100:], None))


def test_one_row_only_is_enough_to_go_on(tmp_path):
    Z, Y = correlated(0)
    other = again(LatentAligner().partial_fit(Z[:1], Y[:1]), tmp_path).partial_fit(Z[1:], Y[1:])
    np.testing.assert_array_equal(
        other.transform(Z), LatentAligner().partial_fit(Z[:1], Y[:1]).partial_fit(Z[1:], Y[1:]).transform(Z)
    )


def test_streams_files_and_dask_are_saved_alike(tmp_path):
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    Z, Y = correlated(0)
    Y[:30, 1] = np.nan
    np.save(tmp_path / "z.npy", Z)
    halves = [(Z[:100], Y[:100]), (Z[100:], Y[100:])]
    for aligner in (
        LatentAligner().fit(iter(halves)),
        LatentAligner().fit(tmp_path / "z.npy", Y),
        LatentAligner().fit(da.from_array(Z, chunks=(70, 6)), Y),
    ):
        assert_same(aligner, again(aligner, tmp_path), Z, Y)


def test_many_patterns_of_gaps(tmp_path, monkeypatch):
    monkeypatch.setattr("covalign.moments.incomplete.SUMS_BYTES", 1)  # so that patterns are split
    Z, Y = correlated(0, n=300, p=5)
    Y[np.random.default_rng(0).random(Y.shape) < 0.3] = np.nan
    aligner = LatentAligner().fit(Z, Y)
    assert any(not part.counts for part in aligner._whole.parts)
    assert_same(aligner, again(aligner, tmp_path), Z, Y, more=(Z[:50] + 1, Y[:50] + 1, None))


def test_confounders_that_were_columns_of_y_still_are(tmp_path):
    Z, Y, C = data()
    both = Y[["dose", "treated"]].join(C)
    aligner = LatentAligner().fit(Z, both, confounders=["batch", "age"])
    other = again(aligner, tmp_path)
    more_Z, more_Y, more_C = data(1, 60)
    for one in (aligner, other):
        one.partial_fit(more_Z, more_Y[["dose", "treated"]].join(more_C))
    np.testing.assert_array_equal(aligner.transform(Z, confounders=C), other.transform(Z, confounders=C))


def test_features_are_known_by_name(tmp_path):
    Z, Y, _ = data()
    other = again(LatentAligner(drop_first=True).fit(Z, Y), tmp_path)
    assert list(other.feature_names_in_) == list(Z.columns)
    assert other.n_features_in_ == K
    with pytest.raises(ValueError, match="feature names"):
        other.transform(Z.rename(columns={"pc0": "other"}))
    nameless = again(LatentAligner(drop_first=True).fit(Z.to_numpy(), Y), tmp_path)
    assert not hasattr(nameless, "feature_names_in_")


def test_a_singular_map_warns_when_fitted_and_not_when_read(tmp_path):
    Z, Y = correlated(0)
    with pytest.warns(SingularTransformWarning):
        aligner = LatentAligner(lam=1.0).fit(Z, np.column_stack([Y, Y[:, 0] + Y[:, 1]]))
    np.testing.assert_array_equal(again(aligner, tmp_path).transform(Z), aligner.transform(Z))


LEVELS = {
    "text": ["a", "b", "c"],
    "integers": pd.Index([3, 1, 2]),
    "small integers": pd.Index(np.array([3, 1, 2], dtype=np.int8)),
    "nullable integers": pd.array([3, 1, 2], dtype="Int64"),
    "floats": [0.1, 1 / 3, 1e300],
    "single precision": pd.Index(np.array([0.1, 0.2, 0.3], dtype=np.float32)),
    "flags": [False, True],
    "flags the other way round": [True, False],
    "mixed": [1, "a", 2.5],
    "days": pd.date_range("2024-01-01", periods=3),
    "moments": pd.Index(pd.to_datetime([1, 10**9, 10**18 + 7])),
    "days in seconds": pd.date_range("2024-01-01", periods=3).as_unit("s"),
    "zones": pd.date_range("2024-10-27", periods=3, freq="h", tz="Europe/Warsaw") + pd.Timedelta("1h"),
    "offsets": pd.date_range("2024-01-01", periods=3, tz="UTC+01:00"),
    "dates": [datetime.date(2024, 1, day) for day in (1, 2, 3)],
    "times": [datetime.time(hour, 5, 0, 7) for hour in (1, 2, 3)],
    "durations": pd.to_timedelta([1, 10**9, 10**15 + 1]),
    "periods": pd.period_range("2024-01", periods=3, freq="M"),
    "quarters": pd.period_range("2024Q1", periods=3, freq="Q-NOV"),
    "intervals": pd.cut(np.linspace(0, 1, 9), 3).categories,
    "intervals of time": pd.interval_range(pd.Timestamp("2024-01-01"), periods=3, closed="left"),
    "decimals": [decimal.Decimal("1.10"), decimal.Decimal(2), decimal.Decimal("1e-30")],
    "pairs": pd.Index([("a", 1), ("b", 2), ("c", 3)], tupleize_cols=False),
}


@pytest.mark.parametrize("ordered", [True, *thorough(False)], ids=["ordered", "unordered"])
@pytest.mark.parametrize("kind", LEVELS)
def test_levels_of_any_type_are_recognised_in_new_rows(tmp_path, kind, ordered):
    levels = LEVELS[kind]
    Z, Y = correlated(0, n=90)
    codes = np.argsort(np.argsort(Y[:, 0])) * len(levels) // 90
    category = pd.Series(pd.Categorical.from_codes(codes, pd.Index(levels), ordered=ordered))
    table = pd.DataFrame({"y": Y[:, 1], "c": category})
    confounder, quick = pd.DataFrame({"c": category}), partial(LatentAligner, shrinkage=0.1)
    informed = ca.InformedFactorAnalysis(4, tol=0.1, supervision=1).fit(Z[:, :4], table)
    for model, ask in (
        (quick(drop_first=True).fit(Z, table), lambda m: m.partial_fit(Z[:5], table[:5]).transform(Z)),
        (quick().fit(Z, Y, confounders=confounder), lambda m: m.transform(Z[:5], confounders=confounder[:5])),
        (informed, lambda m: m.transform(Z[:5, :4], table[:5])),
    ):
        other = again(model, tmp_path)
        np.testing.assert_array_equal(ask(other), ask(model))
    assert other._table.encoding == informed._table.encoding
    for one, two in zip(
        other._table.encoding.columns[1].levels, informed._table.encoding.columns[1].levels, strict=True
    ):
        assert type(one) is type(two) or isinstance(two, np.generic)


def test_names_of_samples_come_back_as_they_were(tmp_path):
    s = ca.simulate.scenario("PN", n_samples=60, n_features=12, n_covariates=2)
    for index in (pd.date_range("2024-01-01", periods=60), pd.MultiIndex.from_product([list("abc"), range(20)])):
        model = ca.InformedFactorAnalysis(3, tol=1e-2, supervision=1.0)
        fa = model.fit(pd.DataFrame(s.X, index=index), pd.DataFrame(s.Y, index=index))
        pd.testing.assert_frame_equal(again(fa, tmp_path).impute(), fa.impute())


def test_a_level_that_no_file_can_hold_is_refused_by_name(tmp_path):
    Z, Y = correlated(0, n=90)
    odd = pd.Series(pd.Categorical.from_codes(np.arange(90) % 3, [1j, 2j, 3j]))
    aligner = LatentAligner().fit(Z, pd.DataFrame({"y": Y[:, 0], "odd": odd}))
    with pytest.raises(CannotBeSavedError, match=r"got a complex among the levels of 'odd': fit with .astype\(str\)"):
        aligner.save(tmp_path / "model.covalign")
    assert list(tmp_path.iterdir()) == []


def test_an_hour_that_occurs_twice_stays_the_one_it_was():
    twice = pd.date_range("2024-10-27 00:30", periods=2, freq="h", tz="UTC").tz_convert("Europe/Warsaw")
    assert [packing.unpacked(packing.packed(moment)) for moment in twice] == list(twice)


# -- files ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    Z, Y, C = data()
    path = tmp_path_factory.mktemp("saved") / "model.covalign"
    LatentAligner(drop_first=True).fit(Z, with_gaps(Y), confounders=C).save(path)
    return path


@pytest.fixture
def path(saved, tmp_path):
    """A file that a test may change."""
    return shutil.copy(saved, tmp_path / "model.covalign")


def test_an_aligner_without_a_fit_is_not_saved(tmp_path):
    with pytest.raises(NotFittedError, match="fit"):
        LatentAligner().save(tmp_path / "model.covalign")
    assert list(tmp_path.iterdir()) == []


def test_the_file_holds_arrays_and_json_and_no_row(path):
    with zipfile.ZipFile(path) as zipped:
        for name in zipped.namelist():
            with zipped.open(name) as member:
                values = np.lib.format.read_array(member, allow_pickle=False)  # an object array would need pickle
            if name == "meta.json.npy":
                meta = json.loads(values.tobytes())
            else:
                assert N not in values.shape
    assert meta["covalign"] == ca.__version__
    assert b"pickle" not in path.read_bytes()


@pytest.mark.parametrize(("k", "buckets"), [(64, 20), (1021, 5)])
def test_the_file_is_as_large_as_the_sums_of_the_buckets(tmp_path, k, buckets):
    rng = np.random.default_rng(0)
    LatentAligner().fit(rng.normal(size=(2000, k)), rng.normal(size=(2000, 3))).save(tmp_path / "model.covalign")
    sums = buckets * 8 * (k * k + k * 3 + 9 + k + 3)  # four buckets a fold where sums are small, otherwise the folds
    assert sums < (tmp_path / "model.covalign").stat().st_size < sums + 4_000 * buckets


@pytest.mark.parametrize("keep", [0, 10, 0.1, 0.5, 0.9, -100, -1])
def test_a_truncated_file_is_refused(path, keep):
    whole = path.read_bytes()
    path.write_bytes(whole[: int(keep * len(whole)) if 0 < keep < 1 else keep])
    with pytest.raises(FileFormatError, match="is not a model file written by covalign, or it is damaged"):
        ca.load(path)


@given(at=st.floats(0, 0.999), bit=st.integers(0, 7))
def test_a_flipped_bit_is_noticed_or_harmless(tmp_path_factory, at, bit):
    Z, Y = correlated(0)
    path = tmp_path_factory.mktemp("damaged") / "model.covalign"
    aligner = LatentAligner().fit(Z, Y)
    aligner.save(path)
    damaged = bytearray(path.read_bytes())
    damaged[int(at * len(damaged))] ^= 1 << bit
    path.write_bytes(damaged)
    try:
        other = ca.load(path)
    except FileFormatError:
        return
    np.testing.assert_array_equal(other.transform(Z), aligner.transform(Z))


def rewritten(path, **changes):
    """The same file with another head; None takes an entry out."""
    with np.load(path) as archive:
        contents = dict(archive)
    meta = json.loads(contents["meta.json"].tobytes()) | changes
    meta = {name: value for name, value in meta.items() if value is not None}
    contents["meta.json"] = np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8)
    with path.open("wb") as file:
        np.savez(file, **contents)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"version": 99}, "format 99"),
        ({"format": "other"}, "is not a model file"),
        ({"kind": "Nonsense"}, "does not know: 'Nonsense'"),
        ({"kind": ["LatentAligner"]}, "kind of model that this covalign does not know"),
        ({"kind": "InformedFactorAnalysis"}, "is not a model file written by covalign, or it is damaged"),
        ({"folds": None}, "damaged"),
        ({"folds": [3, 4]}, "damaged"),
        ({"folds": [None]}, "damaged"),
        ({"parameters": {"nonsense": 1}}, "damaged"),
        ({"encoding": [["dose", "binary", [{"pickle": "x"}, "b"], ["dose"]]]}, "damaged"),
        ({"chosen": ["nonsense", 1, 1, False]}, "damaged"),
    ],
    ids=str,
)
def test_another_head_is_refused(path, changes, words):
    rewritten(path, **changes)
    with pytest.raises(FileFormatError, match=words):
        ca.load(path)


def test_a_file_that_does_not_say_who_wrote_it_is_read(path):
    rewritten(path, covalign=None)
    assert isinstance(ca.load(path), LatentAligner)
