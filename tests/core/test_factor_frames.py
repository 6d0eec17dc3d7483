"""A model's tables hold its numbers."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import covalign as ca
from covalign.factor import frames


@pytest.fixture(scope="module")
def fitted() -> tuple[ca.InformedFactorAnalysis, dict[str, pd.DataFrame], pd.DataFrame]:
    """With whole samples, single cells and covariates missing."""
    rng = np.random.default_rng(0)
    s = ca.simulate.scenario("PN", n_samples=80, n_features={"rna": 12, "protein": 8}, n_covariates=2)
    names = [f"p{i}" for i in range(80)]
    X = {v: pd.DataFrame(x, index=names, columns=[f"{v}{d}" for d in range(x.shape[1])]) for v, x in s.X.items()}
    X["rna"] = X["rna"].mask(rng.random(X["rna"].shape) < 0.02)
    X["protein"] = X["protein"].iloc[:50]
    Y = pd.DataFrame({"age": s.Y[:, 0], "site": rng.choice(["x", "y", "z"], 80)}, index=names)
    Y = Y.mask(rng.random(Y.shape) < 0.2)
    return ca.InformedFactorAnalysis(6, tol=1e-2, supervision=1.0).fit(X, Y), X, Y


def test_factors(fitted):
    frame = fitted[0].factors_frame()
    np.testing.assert_array_equal(frame, fitted[0].factors_)
    assert frame.index.tolist() == list(fitted[1]["rna"].index)
    assert frame.columns.tolist() == fitted[0].factor_names_
    frame.iloc[:] = 0  # a copy
    assert fitted[0].factors_.any()


def test_all_loadings(fitted):
    model = fitted[0]
    frame = model.loadings_frame()
    assert len(frame) == (12 + 8) * 6
    for view, feature, factor, loading, std in frame.itertuples(index=False):
        d, k = int(feature.removeprefix(view)), model.factor_names_.index(factor)
        assert (loading, std) == (model.loadings_[view][d, k], model.loadings_std_[view][d, k])


def test_the_largest_loadings_of_one_factor_are_its_top_features(fitted):
    frame = fitted[0].loadings_frame("age", "rna", 5)
    expected = fitted[0].top_features("age", "rna", 5)
    pd.testing.assert_frame_equal(frame[["feature", "loading", "std"]], expected)


def test_the_largest_loadings_of_several_factors_are_those_of_any(fitted):
    model = fitted[0]
    frame = model.loadings_frame(["age", -1], n=2)
    for view in ("rna", "protein"):
        of_any = {f for k in ("age", 5) for f in model.top_features(k, view, 2)["feature"]}
        one = frame[frame["view"] == view]
        assert set(one["feature"]) == of_any
        wide = one.pivot(index="feature", columns="factor", values="loading").abs()
        wide = wide.loc[list(dict.fromkeys(one["feature"])), ["age", model.factor_names_[-1]]].to_numpy()
        best = wide.argmax(axis=1)
        assert (np.diff(best) >= 0).all()
        assert all((np.diff(wide[best == k, k]) <= 0).all() for k in (0, 1))


@pytest.mark.parametrize("name", ["agee", 6, True, 1.5])
def test_unknown_factors(fitted, name):
    says = {"agee": "Did you mean 'age'", True: "needs a name"}.get(name, "has no factor")
    with pytest.raises(ValueError, match=says):
        fitted[0].loadings_frame([name])


def test_unknown_views_and_numbers(fitted):
    with pytest.raises(ValueError, match="the model has the views 'rna', 'protein', got 'dna'"):
        fitted[0].loadings_frame(views=["rna", "dna"])
    with pytest.raises(ValueError, match="n needs"):
        fitted[0].loadings_frame(n=0)


def test_the_bound(fitted):
    model = fitted[0]
    frame = model.bound_frame()
    assert frame["sweep"].tolist() == list(range(1, model.n_iter_ + 1))
    np.testing.assert_array_equal(frame["elbo"], model.elbo_)
    np.testing.assert_array_equal(frame["below_end"], model.elbo_[-1] - model.elbo_)
    assert frame["converged"].tolist() == [False] * (model.n_iter_ - 1) + [True]
    assert not frames.bound(model.elbo_, False)["converged"].any()


def test_patterns_of_gaps_are_those_of_the_cells(fitted):
    model, X, Y = fitted
    index = X["rna"].index
    tables = {"rna": X["rna"], "protein": X["protein"].reindex(index), "age": Y[["age"]], "site": Y[["site"]]}
    share = pd.DataFrame({name: table.notna().mean(axis=1) for name, table in tables.items()})
    state = share.map(lambda s: "all" if s == 1 else "none" if s == 0 else "some")
    found = model.missing_frame()
    assert found.drop_duplicates("name").set_index("name")["kind"].to_dict() == {
        "rna": "view", "protein": "view", "age": "covariate", "site": "covariate",
    }  # fmt: skip
    samples = found.drop_duplicates("pattern")["samples"]
    assert samples.sum() == len(index)
    assert samples.is_monotonic_decreasing
    expected = {
        key: share[(state == list(key)).all(axis=1)] for key in itertools.product(["all", "some", "none"], repeat=4)
    }
    seen = 0
    for _, one in found.groupby("pattern"):
        key = tuple("all" if s == 1 else "none" if s == 0 else "some" for s in one["observed"])
        assert one["samples"].iloc[0] == len(expected[key])
        np.testing.assert_allclose(one["observed"], expected[key].mean())
        seen += 1
    assert seen == sum(len(rows) > 0 for rows in expected.values())


def test_gaps_by_chunks_and_in_memory_are_the_same(fitted, tmp_path):
    _, X, Y = fitted
    rna, y = X["rna"].to_numpy(), Y[["age"]].to_numpy(dtype=float)
    np.save(tmp_path / "x.npy", rna)
    model = ca.InformedFactorAnalysis(3, tol=1e-2, supervision=1.0)
    in_memory, streamed = (model.fit({"rna": x}, y).missing_frame() for x in (rna, tmp_path / "x.npy"))
    pd.testing.assert_frame_equal(in_memory, streamed)


def test_complete_data_have_one_pattern():
    s = ca.simulate.scenario("PN", n_samples=50, n_covariates=2)
    frame = ca.InformedFactorAnalysis(3, tol=1e-2, supervision=1.0).fit(s.X, s.Y).missing_frame()
    assert frame["samples"].eq(50).all()
    assert frame["observed"].eq(1).all()
    assert frame["name"].tolist() == ["X", "y0", "y1"]


@pytest.mark.parametrize("method", ["factors_frame", "loadings_frame", "bound_frame", "missing_frame"])
def test_unfitted(method):
    with pytest.raises(NotFittedError):
        getattr(ca.InformedFactorAnalysis(), method)()


def test_tables_of_a_model_from_a_file(fitted, tmp_path):
    fitted[0].save(tmp_path / "m.covalign")
    same = ca.load(tmp_path / "m.covalign")
    for method in ("factors_frame", "loadings_frame", "bound_frame", "missing_frame"):
        pd.testing.assert_frame_equal(getattr(same, method)(), getattr(fitted[0], method)())
