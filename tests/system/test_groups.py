"""Groups of rows (cells of a donor): no group is on both sides of a split, however rows arrive and whoever asks."""

from __future__ import annotations

import json
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import covalign as ca
from covalign.closed_form.fold_packing import packed
from covalign.exceptions import NotHeldOutWarning, UngroupedRowsWarning
from covalign.factor.cross_validation import buckets_of
from covalign.show import report
from covalign.stream.folds import fold_of_groups
from covalign.study import scores
from covalign.study.comparison import compare
from covalign.tables import groups as grouping
from tests.conftest import thorough

N = 400


def donors(seed=0, n=N, n_donors=8, k=10, effect=1.0):
    """Z of cells: a donor's own place, noise, and dose; age belongs to the donor and has no effect."""
    rng = np.random.default_rng(seed)
    donor, age, dose = rng.integers(n_donors, size=n), rng.standard_normal(n_donors), rng.standard_normal(n)
    Z = rng.standard_normal((n_donors, k))[donor] + rng.standard_normal((n, k))
    Z[:, 0] += effect * dose
    return Z, pd.DataFrame({"age": age[donor], "dose": dose, "donor": [f"d{i}" for i in donor]})


@pytest.fixture(scope="module")
def cells():
    return donors()


@pytest.fixture(scope="module")
def fitted(cells):
    Z, Y = cells
    return ca.LatentAligner().fit(Z, Y, groups="donor")


def covariates(Y):
    return Y[["age", "dose"]]


def assert_same_fit(a, b):
    assert a.n_groups_ == b.n_groups_
    assert a.shrinkage_ == pytest.approx(b.shrinkage_, rel=1e-9)
    np.testing.assert_allclose(a.T_, b.T_, atol=1e-9)
    np.testing.assert_allclose(a.summary().to_numpy(float), b.summary().to_numpy(float), atol=1e-9)


# -- however rows arrive ----------------------------------------------------------------------------------------------


def by_labels(Z, Y, folder):
    return ca.LatentAligner().fit(Z, covariates(Y), groups=Y["donor"].tolist())


def by_arrays(Z, Y, folder):
    return ca.LatentAligner().fit(Z, covariates(Y).to_numpy(), groups=Y["donor"].to_numpy()[:, None])


def by_names_of_rows(Z, Y, folder):
    names = [f"c{i}" for i in range(len(Y))]
    Z, Y = pd.DataFrame(Z, names).add_prefix("z"), Y.set_axis(names, axis=0)
    others, labels = covariates(Y).sample(frac=1, random_state=0), Y["donor"].sample(frac=1, random_state=1)
    return ca.LatentAligner().fit(Z, others, groups=labels)


def shuffled(Z, Y, folder):
    order = np.random.default_rng(0).permutation(len(Y))
    return ca.LatentAligner().fit(Z[order], Y.iloc[order], groups="donor")


def by_categories(Z, Y, folder):
    return ca.LatentAligner().fit(Z, Y.astype({"donor": "category"}), groups="donor")


def sparse_rows(Z, Y, folder):
    return ca.LatentAligner().fit(sparse.csr_matrix(Z), Y, groups="donor")


def npy_file(Z, Y, folder):
    np.save(folder / "Z.npy", Z)
    return ca.LatentAligner(chunk_rows=70).fit(folder / "Z.npy", Y, groups="donor")


def npy_and_csv_files(Z, Y, folder):
    np.save(folder / "Z.npy", Z)
    Y.to_csv(folder / "Y.csv", index=False)
    return ca.LatentAligner().fit(folder / "Z.npy", folder / "Y.csv", groups="donor")


def one_csv_file(Z, Y, folder):
    pd.concat([pd.DataFrame(Z).add_prefix("z"), Y], axis=1).to_csv(folder / "all.csv", index=False)
    return ca.LatentAligner().fit(folder / "all.csv", ["age", "dose", "donor"], groups="donor")


def pieces(Z, Y, size=97):
    return [(Z[i : i + size], Y[i : i + size]) for i in range(0, len(Y), size)]


def batches(Z, Y, folder):
    return ca.LatentAligner().fit(pieces(Z, Y), groups="donor")


def partial_fits_by_name(Z, Y, folder):
    model = ca.LatentAligner()
    for z, y in pieces(Z, Y):
        model.partial_fit(z, y, groups="donor")
    return model


def partial_fits_by_labels(Z, Y, folder):
    model = ca.LatentAligner()
    for z, y in pieces(Z, Y):
        model.partial_fit(z, covariates(y), groups=y["donor"].tolist())
    return model


def one_donor_at_a_time(Z, Y, folder):
    model = ca.LatentAligner()
    for _, y in Y.groupby("donor"):
        model.partial_fit(Z[y.index], y, groups="donor")
    return model


def dask_array(Z, Y, folder):
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    return ca.LatentAligner().fit(da.from_array(Z, chunks=(150, -1)), Y, groups="donor")


def dask_array_and_labels(Z, Y, folder):
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    return ca.LatentAligner().fit(da.from_array(Z, chunks=(150, 4)), covariates(Y), groups=Y["donor"])


def dask_frame(Z, Y, folder):
    dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")
    return ca.LatentAligner().fit(dd.from_pandas(pd.DataFrame(Z).add_prefix("z"), npartitions=3), Y, groups="donor")


def both_in_dask(Z, Y, folder):
    dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")
    Z = dd.from_pandas(pd.DataFrame(Z).add_prefix("z"), npartitions=3)
    return ca.LatentAligner().fit(Z, dd.from_pandas(Y, npartitions=3), groups="donor")


WAYS = [
    *(by_labels, by_arrays, by_names_of_rows, shuffled, by_categories, sparse_rows),
    *(npy_file, npy_and_csv_files, one_csv_file, batches, partial_fits_by_name, partial_fits_by_labels),
    *(one_donor_at_a_time, dask_array, dask_array_and_labels, dask_frame, both_in_dask),
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_the_fit_is_the_same_however_rows_arrive(way, cells, fitted, tmp_path):
    assert_same_fit(way(*cells, tmp_path), fitted)


def test_the_frontier_is_the_same_from_a_file(cells, tmp_path):
    Z, Y = cells
    np.save(tmp_path / "Z.npy", Z)
    here = ca.cross_validated_frontier(Z, Y, [0, 1], groups="donor")
    there = ca.cross_validated_frontier(tmp_path / "Z.npy", covariates(Y), [0, 1], groups=Y["donor"].tolist())
    pd.testing.assert_frame_equal(here, there, rtol=1e-9)
    free = ca.cross_validated_frontier(Z, covariates(Y), [0, 1])
    assert here["age"].max() < free["age"].min() - 0.2


def test_a_saved_aligner_keeps_its_groups(cells, fitted, tmp_path):
    Z, Y = cells
    fitted.save(tmp_path / "m.covalign")
    loaded = ca.load(tmp_path / "m.covalign")
    assert_same_fit(loaded, fitted)
    with pytest.raises(ValueError, match="groups are needed for all rows or for none"):
        loaded.partial_fit(Z, covariates(Y))
    assert loaded.partial_fit(Z, Y.assign(donor="another"), groups="donor").n_groups_ == 9


def test_a_factor_model_keeps_its_groups(cells, tmp_path):
    Z, Y = cells
    quick = {"folds": 3, "tol": 1e-3, "max_iter": 60, "supervision": 1}  # auto leaves groups out to decide
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it need not converge
        named = ca.InformedFactorAnalysis(4, **quick).fit(Z, Y, groups="donor")
        labels = ca.InformedFactorAnalysis(4, **quick).fit(Z, covariates(Y), groups=Y["donor"].tolist())
        alone = ca.InformedFactorAnalysis(4, **quick).fit(Z, covariates(Y))
    named.save(tmp_path / "m.covalign")
    loaded = ca.load(tmp_path / "m.covalign")
    for model in (labels, loaded):
        assert model.n_groups_ == 8
        pd.testing.assert_frame_equal(model.summary(), named.summary(), rtol=1e-9)
    np.testing.assert_allclose(named.factors_, alone.factors_)  # groups do not change the fit
    age = named.summary().loc["age"]
    assert age["low"] < 0 < age["high"]
    assert alone.summary().loc["age", "low"] > 0


# -- no group on both sides -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_donors", [3, *thorough(2, 8, 100)])
def test_no_group_is_on_both_sides(n_donors):
    Z, Y = donors(1, n_donors=n_donors)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotHeldOutWarning)
        model = ca.LatentAligner().fit(Z, Y, groups="donor")
    numbers = grouping.numbers(Y["donor"], N)
    bucket = fold_of_groups(numbers, len(model._folds))
    assert pd.Series(bucket).groupby(Y["donor"]).nunique().max() == 1
    # The sums of every bucket are those of its groups, and every bucket is in one fold.
    counts = np.bincount(bucket, minlength=len(model._folds))
    assert [0 if rows is None else rows.n for rows in model._folds] == counts.tolist()
    folds = packed(model._folds, model.folds)
    assert sorted(b for fold in folds for b in fold) == np.flatnonzero(counts).tolist()
    assert len(folds) == min(np.count_nonzero(counts), model.folds)
    # In a comparison and in a factor model, few groups have a bucket each.
    divided = scores.divisions(covariates(Y).to_numpy(), 5, 0, numbers)
    for train, test in divided:
        assert not set(Y["donor"][train]) & set(Y["donor"][test])
        assert len(train) + len(test) == N
    assert len(divided) == min(n_donors, 5)
    fa = ca.InformedFactorAnalysis(3, max_iter=3, folds=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fa.fit(Z, Y, groups="donor")
    own = pd.Series(buckets_of(fa, 5))
    assert own.groupby(Y["donor"]).nunique().max() == 1
    assert n_donors > 64 or own.nunique() == n_donors


def test_the_donor_example():
    """3,000 cells of 8 donors: without groups age, which has no effect, seems to have one; dose has one."""
    Z, Y = donors(0, 3000)
    free, grouped = ca.LatentAligner().fit(Z, covariates(Y)), ca.LatentAligner().fit(Z, Y, groups="donor")
    assert free.summary().loc["age", "low"] > 0.5
    assert free.permutation_test(Z, covariates(Y), 99).loc["age", "p_value"] == 0.01
    assert grouped.summary().loc["age", "held_out"] < free.summary().loc["age", "held_out"] - 0.4
    # On cells of new donors no direction is better than Z_0 = donor + noise + dose: corr(Z_0, dose) = 1 / sqrt(3).
    dose = grouped.summary().loc["dose"]
    assert 0.3 < dose["low"] < dose["held_out"] < 1 / np.sqrt(3)
    assert free.summary().loc["dose", "held_out"] > 1 / np.sqrt(3)
    assert grouped.permutation_test(Z, Y, 99, groups="donor").loc["dose", "p_value"] == 0.01


# -- bad input --------------------------------------------------------------------------------------------------------


def gaps(Y):
    return Y["donor"].where(Y.index > 2).tolist()


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (gaps, "every row needs a group, got 3 rows without a label"),
        (lambda Y: np.where(Y.index > 2, 1.0, np.nan), "every row needs a group"),
        (lambda Y: ["one"] * N, "at least two groups, got only 'one'"),
        (lambda Y: [1, "1"] * (N // 2), "at least two groups, got only '1'"),
        (lambda Y: Y["donor"].tolist()[:10], f"one label for each of the {N} rows, got 10"),
        (lambda Y: Y["donor"][:10], "row of the data needs a row of groups|one label for each of the 400 rows"),
        (lambda Y: "doner", r"Did you mean 'donor'"),
        (lambda Y: Y[["donor", "dose"]].to_numpy(), rf"one label for every row, got a table of shape \({N}, 2\)"),
        (lambda Y: 3, "one label for every row"),
    ],
)
def test_wrong_groups_are_refused(cells, labels, words):
    Z, Y = cells
    given = labels(Y)
    table = Y if isinstance(given, str) else covariates(Y)
    with pytest.raises(ValueError, match=words):
        ca.LatentAligner().fit(Z, table, groups=given)
    with pytest.raises(ValueError, match=words):
        ca.cross_validated_frontier(Z, table, groups=given)
    with pytest.raises(ValueError, match=words):
        ca.InformedFactorAnalysis(3).fit(Z, table, groups=given)
    with pytest.raises(ValueError, match=words):
        compare(Z, table, 3, ["PCA"], groups=given)


@pytest.mark.filterwarnings("ignore::covalign.exceptions.OwnershipWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ridge, then T_0.5", ca.LatentAligner),
        pytest.param("iFA (no T)", ca.InformedFactorAnalysis, marks=pytest.mark.thorough),
    ],
)
def test_compare_chooses_settings_by_groups(cells, monkeypatch, name, kind):
    """Every fit knows the groups of its rows, so what it leaves out to choose its settings are whole groups."""
    Z, Y = cells
    fit, seen = kind.fit, []

    def spied(self, X, y, **how):
        if "confounders" not in how:  # a fit of the comparison, not one of those that choose its settings
            seen.append((len(y), how["groups"]))
        return fit(self, X, y, **how)

    monkeypatch.setattr(kind, "fit", spied)
    compare(Z, Y, 3, [name], folds=2, slow_folds=2, budget=5, groups="donor")
    whole, *training = seen
    assert whole[0] == N
    assert len(training) == 2
    for n, groups in seen:
        assert len(groups) == n
    assert not set(training[0][1]) & set(training[1][1])  # with two folds, one trains on what the other leaves out


def test_groups_in_some_calls_of_partial_fit_only(cells):
    Z, Y = cells
    with pytest.raises(ValueError, match="got no groups, unlike the rows before"):
        ca.LatentAligner().partial_fit(Z, Y, groups="donor").partial_fit(Z, covariates(Y))
    with pytest.raises(ValueError, match="got groups, unlike the rows before"):
        ca.LatentAligner().partial_fit(Z, covariates(Y)).partial_fit(Z, Y, groups="donor")


def test_groups_need_a_covariate_beside_them(cells):
    Z, Y = cells
    with pytest.raises(ValueError, match="at least one covariate is needed besides the groups"):
        ca.LatentAligner().fit(Z, Y[["donor"]], groups="donor")


def test_labels_of_batches_are_a_column(cells):
    Z, Y = cells
    with pytest.raises(ValueError, match="Groups of batches need to be a column"):
        ca.LatentAligner().fit(pieces(Z, Y), groups=Y["donor"])


def test_as_many_groups_as_rows_are_independent_rows(cells):
    Z, Y = cells
    alone = ca.LatentAligner().fit(Z, covariates(Y))
    every = ca.LatentAligner().fit(Z, covariates(Y), groups=np.arange(N))
    assert every.n_groups_ == N
    np.testing.assert_allclose(every.alignment_, alone.alignment_, atol=0.02)
    a, b = every.summary(), alone.summary()
    np.testing.assert_allclose(a["held_out"], b["held_out"], atol=0.03)  # other folds
    np.testing.assert_allclose(a["high"] - a["low"], b["high"] - b["low"], rtol=0.5)


def test_groups_that_are_a_covariate_too(cells):
    Z, Y = cells
    # The values of age name the donors, so the answer is that of donors, whose buckets have other numbers.
    by_age = ca.LatentAligner().fit(Z, covariates(Y), groups=Y["age"])
    assert by_age.n_groups_ == 8
    age = by_age.summary().loc["age"]
    assert age["low"] < 0 < age["high"]
    # A donor that was never fitted has no dimension: its dummy cannot be judged.
    both = ca.LatentAligner().fit(Z, Y, groups=Y["donor"])
    dummies = [name for name in both.covariate_names_ if name.startswith("donor")]
    assert both.summary().loc[dummies, ["held_out", "low", "high"]].isna().all(axis=None)
    assert both.summary().loc["dose", "held_out"] > 0.4


def test_labels_are_compared_as_text(cells):
    Z, Y = cells
    whole = Y["donor"].str[1:].astype(int)
    first = ca.LatentAligner().fit(Z, covariates(Y), groups=whole)
    for labels in (whole.astype(float), whole.astype(str), whole.astype(object), whole.astype(np.float32)):
        assert_same_fit(ca.LatentAligner().fit(Z, covariates(Y), groups=labels), first)
    half = N // 2
    parts = ca.LatentAligner().partial_fit(Z[:half], covariates(Y)[:half], groups=whole[:half])
    parts.partial_fit(Z[half:], covariates(Y)[half:], groups=whole[half:].astype(float))
    assert_same_fit(parts, first)
    mixed = [str(i) if at % 2 else i for at, i in enumerate(whole)]
    assert_same_fit(ca.LatentAligner().fit(Z, covariates(Y), groups=mixed), first)


# -- warnings ---------------------------------------------------------------------------------------------------------


def warned(call, kind=UngroupedRowsWarning):
    """The texts of warnings of a kind."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        call()
    return [str(one.message) for one in seen if issubclass(one.category, kind)]


QUICK = {"max_iter": 5, "folds": 3}


def test_a_column_that_may_name_groups_is_pointed_out(cells):
    Z, Y = cells
    calls = {
        "align": lambda Y, **how: ca.LatentAligner().fit(Z, Y, **how),
        "ifa": lambda Y, **how: ca.InformedFactorAnalysis(10, **QUICK).fit(Z, Y, **how).summary(),
        "compare": lambda Y, **how: compare(Z, Y, 10, ["PCA"], folds=2, **how),
    }
    for name, call in calls.items():
        (said,) = warned(lambda call=call: call(Y))
        assert "'age' is constant within every value of 'donor'" in said, name
        assert "groups='donor'" in said
        assert not warned(lambda call=call: call(Y, groups="donor")), name
        assert not warned(lambda call=call: call(covariates(Y))), name
        unique = Y.assign(donor=np.arange(N))  # another ID in every row
        assert not warned(lambda call=call, unique=unique: call(unique)), name
        assert not warned(lambda call=call: call(Y[["dose", "donor"]])), name  # dose differs within donors


def test_few_groups_say_how_little_is_known():
    Z, Y = donors(1, n_donors=3)
    for call in (
        lambda: ca.LatentAligner().fit(Z, Y, groups="donor"),
        lambda: ca.InformedFactorAnalysis(3, **QUICK).fit(Z, Y, groups="donor"),
        lambda: compare(Z, Y, 3, ["PCA"], folds=3, groups="donor"),
    ):
        (said,) = warned(call, NotHeldOutWarning)
        assert "are based on 3 groups" in said


# -- compare ----------------------------------------------------------------------------------------------------------


def test_compare_leaves_groups_out(cells):
    Z, Y = cells
    methods = ["PLS", "PCA, then T_0.5"]
    free, grouped = compare(Z, covariates(Y), 4, methods), compare(Z, Y, 4, methods, groups="donor")
    assert free["groups"].tolist() == [0, 0]
    assert grouped["groups"].tolist() == [8, 8]
    assert grouped["folds"].tolist() == [5, 5]
    both = free.set_index("method").join(grouped.set_index("method"), rsuffix="_grouped")
    np.testing.assert_allclose(both["alignment"], both["alignment_grouped"])
    assert (both["held_out_alignment_grouped"] < both["held_out_alignment"] - 0.1).all()
    assert (both["held_out_se_grouped"] > 2 * both["held_out_se"]).all()


def test_compare_matches_labels_by_name_and_keeps_results_apart(cells, tmp_path):
    Z, Y = cells
    names = [f"c{i}" for i in range(N)]
    Z, Y = pd.DataFrame(Z, names), Y.set_axis(names, axis=0)
    first = compare(Z, Y, 4, ["PLS"], groups="donor", keep=tmp_path / "kept")
    labels = Y["donor"].sample(frac=1, random_state=0)
    other = compare(Z, covariates(Y).sample(frac=1, random_state=1), 4, ["PLS"], groups=labels)
    assert first.loc[0, "held_out_alignment"] == pytest.approx(other.loc[0, "held_out_alignment"], rel=1e-9)
    again = compare(Z, covariates(Y), 4, ["PLS"], keep=tmp_path / "kept")  # other numbers, not the kept ones
    assert again.loc[0, "held_out_alignment"] > first.loc[0, "held_out_alignment"] + 0.1
    some = Y.iloc[:-5]  # the last samples have neither covariates nor groups
    left = compare(Z, some, 4, ["PLS"], groups="donor", missing="drop")
    assert left.loc[0, "groups"] == 8


# -- AnnData ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def adata(cells):
    anndata = pytest.importorskip("anndata", reason="anndata is not installed")
    Z, Y = cells
    names = [f"cell{i}" for i in range(N)]
    obs = Y.set_axis(names, axis=0).astype({"donor": "category"})
    return anndata.AnnData(Z, obs=obs, obsm={"X_pca": Z})


def test_scverse_takes_a_column_of_obs(adata, fitted, tmp_path):
    assert not warned(lambda: ca.scverse.align(adata, "X_pca", ["age", "dose"], groups="donor"))
    found = adata.uns["aligned"]
    np.testing.assert_allclose(found["alignment"].to_numpy(float), fitted.summary().to_numpy(float), atol=1e-9)
    assert found["params"]["groups"] == "donor"
    assert found["n_groups"] == 8
    assert_same_fit(ca.scverse.aligner(adata), fitted)
    ca.scverse.ifa(adata, ["age", "dose"], 3, groups="donor", folds=2, tol=1e-2)
    assert adata.uns["ifa"]["params"]["groups"] == "donor"
    assert adata.uns["ifa"]["n_groups"] == 8
    adata.write_h5ad(tmp_path / "cells.h5ad")
    import anndata

    assert anndata.read_h5ad(tmp_path / "cells.h5ad").uns["aligned"]["n_groups"] == 8


def test_scverse_points_out_a_column_of_obs(adata):
    (said,) = warned(lambda: ca.scverse.align(adata, "X_pca", ["age", "dose"]))
    assert "groups='donor'" in said
    assert "groups" not in adata.uns["aligned"]["params"]
    (said,) = warned(lambda: ca.scverse.align(adata, "X_pca", ["age", "donor"]))
    (said,) = warned(lambda: ca.scverse.ifa(adata, ["age"], 3, folds=2, tol=1e-2))
    assert not warned(lambda: ca.scverse.align(adata, "X_pca", ["dose"]))
    assert not warned(lambda: ca.scverse.ifa(adata, ["age"], 3, folds=0, tol=1e-2))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ({"groups": "doner"}, r"obs has no column 'doner'.*Did you mean 'donor'"),
        ({"groups": "age"}, "'age' more than once"),
        ({"groups": ["donor"]}, "groups needs the name of a column of obs, got a list"),
    ],
)
def test_scverse_refuses_wrong_groups(adata, call, words):
    for run in (
        lambda: ca.scverse.align(adata, "X_pca", ["age"], **call),
        lambda: ca.scverse.ifa(adata, ["age"], **call),
    ):
        with pytest.raises(ValueError, match=words):
            run()
    assert "X_aligned" not in adata.obsm


# -- the report -------------------------------------------------------------------------------------------------------


def test_the_report_says_that_groups_were_left_out(cells, fitted):
    Z, Y = cells
    sentence = "Rows were left out by group; there are 8 groups."
    facts = report.summary(fitted)
    assert (facts["groups"], facts["about_groups"]) == (8, sentence)
    assert facts["code"].endswith(".fit(Z, Y, groups=groups)")
    page = report.page(facts, "r")
    assert f"<p>{sentence}</p>" in page
    assert f"{N} rows in 8 groups, 10 dimensions" in page
    alone = report.summary(ca.LatentAligner().fit(Z, covariates(Y)))
    assert (alone["groups"], alone["about_groups"]) == (None, None)
    assert "by group" not in report.page(alone, "r")


def test_the_report_says_that_few_groups_tell_little():
    Z, Y = donors(1, n_donors=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotHeldOutWarning)
        model = ca.LatentAligner().fit(Z, Y, groups="donor")
    said = report.summary(model)["about_groups"]
    assert said == "Rows were left out by group; there are only 3 groups, so little is known about new groups."


# -- commands ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def run(cells, tmp_path, monkeypatch):
    """Runs a command in a folder with Z.npy and covariates.csv."""
    testing = pytest.importorskip("typer.testing", reason="the command line needs typer")
    from covalign.cli import app

    monkeypatch.chdir(tmp_path)
    Z, Y = cells
    np.save("Z.npy", Z)
    Y.to_csv("covariates.csv", index=False)

    def invoke(*words, code=0):
        result = testing.CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "200"})
        assert result.exit_code == code, (result.stdout, result.stderr, result.exception)
        return result

    return invoke


CALLS = {
    "align": ("align", "Z.npy", "covariates.csv", "-o", "out.npy"),
    "frontier": ("frontier", "Z.npy", "covariates.csv", "--lams", "0,1"),
    "fit": ("fit", "Z.npy", "--covariates", "covariates.csv", "--max-iter", 5, "--folds", 2, "-o", "m.covalign"),
    "compare": ("compare", "Z.npy", "covariates.csv", "-m", "PLS", "-k", 10),
}


@pytest.mark.parametrize("name", CALLS)
def test_commands_leave_groups_out(run, name):
    force = [] if name in ("frontier", "compare") else ["--force"]
    chosen = ("-c", "age", "-c", "dose")
    every = json.loads(run(*CALLS[name], "--groups", "donor", "--json").stdout)
    assert every["groups"] == 8
    some = run(*CALLS[name], *chosen, "--groups", "donor", "--json", *force)
    told = json.loads(some.stdout)
    for answer in (every, told):
        for method in answer.get("methods", []):
            method.pop("seconds")
    assert told == every
    assert "constant within" not in some.stderr
    assert re.search(rf"{N} (rows|samples), 8 groups", run(*CALLS[name], "--groups", "donor", *force).stdout)
    # Without groups, the column is pointed out, as a flag and once.
    without = run(*CALLS[name], *chosen, "--json", *force)
    assert json.loads(without.stdout)["groups"] is None
    assert without.stderr.count("Pass --groups donor to leave groups out.") == 1


def test_align_with_groups_is_the_aligner(run, fitted):
    run(*CALLS["align"], "--groups", "donor", "--save", "m.covalign", "--report", "r.html")
    assert_same_fit(ca.load("m.covalign"), fitted)
    assert json.loads(run("info", "m.covalign", "--json").stdout)["groups"] == 8
    assert re.search("groups +8", run("info", "m.covalign").stdout)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--groups", "doner"], "has no column 'doner'.*Did you mean 'donor'"),
        (["--groups", "age", "-c", "age"], "got 'age' as groups and as a covariate"),
        (["--groups", "same"], "got only 'x': pass no --groups if rows are independent"),
        (["--groups", "gaps"], "every row needs a group, got 5 rows without a label"),
    ],
)
@pytest.mark.parametrize("name", ["align", "frontier", "fit"])
def test_errors_of_commands_name_flags(run, name, words, said):
    table = pd.read_csv("covariates.csv").assign(same="x")
    table["gaps"] = table["donor"].where(table.index >= 5)
    table.to_csv("covariates.csv", index=False)
    chosen = [] if "-c" in words else ["-c", "dose"]
    assert re.search(said, run(*CALLS[name], *chosen, *words, code=2).stderr)


def test_a_comparison_says_how_many_groups_there_are(run):
    run(*CALLS["compare"], "--groups", "donor", "-o", "table.csv", "--figure", "figure.svg")
    assert pd.read_csv("table.csv")["groups"].tolist() == [8]
