"""Gene sets, columns of the metadata and top features, as a fitted model finds them."""

from __future__ import annotations

import gzip
import warnings
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import covalign as ca
from covalign.closed_form import set_tests
from covalign.exceptions import MissingExtraError, UnmatchedNamesWarning
from covalign.factor.enrichment import FIXED, residuals
from covalign.tables.gene_sets import matched, read_gmt

GENES = [f"Gene{i}" for i in range(60)]
PLANTED = GENES[:10]
SETS = {"planted": PLANTED, "other": GENES[20:30], "lower": [name.lower() for name in GENES[40:50]]}


@pytest.fixture(scope="module")
def study():
    """A covariate whose factor raises the genes of a set, a free factor, and gaps."""
    rng = np.random.default_rng(0)
    n = 80
    dose, hidden = rng.standard_normal(n), rng.standard_normal(n)
    W = 0.3 * rng.standard_normal((60, 2))
    W[:10, 0] += 1.0
    names = pd.Index([f"p{i}" for i in range(n)])
    rna = pd.DataFrame(np.c_[dose, hidden] @ W.T + rng.standard_normal((n, 60)), names, GENES)
    protein = pd.DataFrame(np.c_[dose, hidden] @ rng.standard_normal((2, 8)), names, [f"P{i}" for i in range(8)])
    protein += rng.standard_normal((n, 8))
    rna = rna.mask(rng.random(rna.shape) < 0.02)
    fa = ca.InformedFactorAnalysis(3, folds=0, tol=1e-5).fit(
        {"rna": rna, "protein": protein.iloc[:60]}, pd.DataFrame({"dose": dose}, index=names)
    )
    metadata = pd.DataFrame(
        {
            "dose": dose,
            "hidden": hidden + 0.1 * rng.standard_normal(n),
            "site": rng.choice(["a", "b", "c"], n),
            "stage": pd.Categorical(np.where(hidden > 0.5, "III", np.where(hidden < 0, "I", "II")), ordered=True),
            "smoker": rng.random(n) < 0.5,
            "patient": names,
            "visit": pd.date_range("2020-01-01", periods=n),
            "same": 1.0,
        },
        index=names,
    )
    metadata.loc[names[:7], "hidden"] = np.nan
    return fa, metadata


# -- gene sets --------------------------------------------------------------------------------------------------------


def test_a_planted_set_is_found(study):
    found = study[0].enrichment(SETS)
    assert found.columns.tolist() == [
        "view",
        "factor",
        "set",
        "size",
        "correlation",
        "direction",
        "statistic",
        "p",
        "q",
    ]
    first = found.iloc[0]
    assert (first["view"], first["factor"], first["set"], first["direction"]) == ("rna", "dose", "planted", "up")
    assert first["q"] < 1e-4
    assert found["view"].unique().tolist() == ["rna"]  # no set names a protein
    assert found.attrs["unmatched"]["protein"][:2] == ["Gene0", "Gene1"]
    assert found.query("set == 'lower'")["size"].eq(10).all()  # names that differ in capitals


@pytest.mark.parametrize("method", ["camera", "rank"])
@pytest.mark.parametrize("statistic", ["loading", "ratio"])
def test_the_numbers_are_those_of_the_tests(study, method, statistic):
    fa = study[0].realign(0.5)
    found = fa.enrichment(SETS, "rna", ["dose", 1], method=method, statistic=statistic)
    W = fa.loadings_["rna"] if statistic == "loading" else fa.loadings_["rna"] / fa.loadings_std_["rna"]
    sets = [np.arange(10), np.arange(20, 30), np.arange(40, 50)]
    rho, rows = set_tests.mean_correlations(lambda: residuals(fa, "rna"), sets)
    t, p = set_tests.TESTS[method](W[:, :2], sets, rho, min(rows - 3, 58))
    for k, factor in enumerate(fa.factor_names_[:2]):
        one = found[found["factor"] == factor].set_index("set").loc[list(SETS)]
        np.testing.assert_allclose(one["statistic"], t[:, k])
        np.testing.assert_allclose(one["p"], p[:, k])
        np.testing.assert_allclose(one["q"], stats.false_discovery_control(p[:, k]))
        np.testing.assert_allclose(one["correlation"], rho)
        assert found[found["factor"] == factor]["p"].is_monotonic_increasing


def test_residuals_are_what_the_model_leaves_of_the_data(study):
    fa = study[0]
    left = np.vstack(list(residuals(fa, "rna"))) * fa._table.views["rna"].sd
    X = fa._rows.X[:, :60]
    np.testing.assert_allclose(left, X - fa.reconstruct()["rna"], atol=1e-10)


def test_other_signs_other_direction(study):
    fa = study[0]
    low = fa.top_features("dose", "rna", 60).query("loading < 0")["feature"][:8].tolist()
    assert fa.enrichment({"low": low, "other": GENES[20:30]}, "rna", "dose").iloc[0]["direction"] == "down"


def test_a_model_without_its_rows_takes_a_fixed_correlation(tmp_path):
    s = ca.simulate.scenario("PN", n_samples=100, n_features=20, n_covariates=1)
    fa = ca.InformedFactorAnalysis(3, folds=0, tol=1e-3).fit(iter([(s.X[:50], s.Y[:50]), (s.X[50:], s.Y[50:])]))
    found = fa.enrichment({"a": range(6), "b": range(6, 14)})
    assert found["correlation"].eq(FIXED).all()
    assert "did not keep its rows" in found.attrs["note"]
    asked = fa.enrichment({"a": range(6), "b": range(6, 14)}, correlation=FIXED)
    pd.testing.assert_frame_equal(found, asked)
    assert "note" not in asked.attrs


def test_rows_that_can_be_read_again_give_the_correlation(tmp_path):
    s = ca.simulate.scenario("PN", n_samples=100, n_features=20, n_covariates=1)
    np.save(tmp_path / "X.npy", s.X)
    sets = {"a": range(6), "b": range(6, 14)}
    fa = ca.InformedFactorAnalysis(3, folds=0, tol=1e-3, chunk_rows=30).fit(tmp_path / "X.npy", s.Y)
    left = s.X - fa.reconstruct()
    rho, _ = set_tests.mean_correlations(lambda: [left], [np.arange(6), np.arange(6, 14)])
    found = fa.enrichment(sets, factor=0).set_index("set")["correlation"]
    np.testing.assert_allclose(found[["a", "b"]], rho, atol=1e-10)
    fa.save(tmp_path / "fa.covalign")  # without the rows
    assert ca.load(tmp_path / "fa.covalign").enrichment(sets)["correlation"].eq(FIXED).all()


def test_samples_that_count_less_count_less_in_the_correlation():
    s = ca.simulate.scenario("PN", n_samples=60, n_features=20, n_covariates=1)
    s.X[3, ::2] += 8.0
    fa = ca.InformedFactorAnalysis(1, folds=0, tol=1e-3, noise="student").fit(s.X, s.Y)
    weight = fa.sample_weights_.to_numpy()
    assert weight.argmin() == 3
    left = (s.X - fa.reconstruct()) / fa._table.views["X"].sd
    np.testing.assert_allclose(np.vstack(list(residuals(fa, "X"))), left * np.sqrt(weight), atol=1e-10)


def test_a_gmt_file_is_a_dict(study, tmp_path):
    text = "\n".join("\t".join([name, "http://x", *genes]) for name, genes in SETS.items()) + "\n\n"
    (tmp_path / "h.gmt").write_text("\ufeff" + text.replace("\n", "\r\n"), encoding="utf-8")
    (tmp_path / "h.gmt.gz").write_bytes(gzip.compress(text.encode()))
    assert read_gmt(tmp_path / "h.gmt") == read_gmt(tmp_path / "h.gmt.gz") == SETS
    pd.testing.assert_frame_equal(study[0].enrichment(tmp_path / "h.gmt"), study[0].enrichment(SETS))
    pd.testing.assert_frame_equal(study[0].enrichment(str(tmp_path / "h.gmt")), study[0].enrichment(SETS))


def test_names_are_matched_exactly_first():
    found = matched({"s": ["abc", "ABC", "Def", "xyz"]}, ["ABC", "abc", "DEF", "def"])["s"]
    assert found.members.tolist() == [0, 1, 2, 3]  # Def has two spellings here and no exact one
    assert matched({"s": ["abc"]}, ["ABC", "abc"])["s"].members.tolist() == [1]
    assert (found.given, found.unmatched) == (4, ["xyz"])


def test_what_is_lost_is_said(study):
    lost = {"half": [*GENES[:5], *"abcdef"], "small": GENES[:2], "large": GENES[:30], "all": GENES, "whole": GENES[:9]}
    with pytest.warns(UnmatchedNamesWarning, match=r"'half \(5 of 11\)'"):
        found = study[0].enrichment(lost, "rna", max_size=20)
    assert set(found["set"]) == {"half", "whole"}
    assert found.attrs["unmatched"] == {"rna": list("abcdef")}
    why = found.attrs["left_out"]["rna"]
    assert "min_size=5" in why["small"]
    assert "max_size=20" in why["large"]
    assert "no others" in study[0].enrichment(lost | {"half": GENES[:7]}, "rna").attrs["left_out"]["rna"]["all"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        study[0].enrichment({"most": [*GENES[:6], *"abcdef"]}, "rna")


@pytest.mark.parametrize(
    ("sets", "options", "says"),
    [
        (
            {"s": ["ENSG1", "ENSG2"]},
            {},
            "'ENSG1', 'ENSG2' in the sets and 'Gene0', 'Gene1', 'Gene2' and 57 more in view",
        ),
        ({"s": GENES[:2]}, {}, "min_size"),
        ({"s": "TP53"}, {}, "list of names"),
        ({}, {}, "at least one set"),
        ([GENES], {}, "a dict of sets"),
        ("none.gmt", {}, "no 'none.gmt'"),
        (SETS, {"view": "dna"}, "'rna', 'protein'"),
        (SETS, {"factor": "dos"}, "'dose'"),
        (SETS, {"method": "gsea"}, "camera, rank"),
        (SETS, {"statistic": "t"}, "loading, ratio"),
        (SETS, {"correlation": 1.5}, "from 0 to 1"),
        (SETS, {"min_size": 0}, "min_size"),
        (SETS, {"min_size": 9, "max_size": 8}, "max_size"),
    ],
)
def test_errors_of_gene_sets(study, sets, options, says):
    with pytest.raises(ValueError, match=says):
        study[0].enrichment(sets, **options)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "an empty file"),
        (b"SET\tonly a description\n", "line 1 .* separated by tabs"),
        (b"A\tx\tG1\nB G1 G2\n", "line 2 .* got 'B G1 G2'"),
        (b"A\tx\tG1\nA\tx\tG2\n", "'A' a second time in line 2"),
        (b"\xff\xfe\x00", "cannot be read as a file of gene sets"),
    ],
)
def test_errors_of_a_gmt_file(tmp_path, content, says):
    (tmp_path / "h.gmt").write_bytes(content)
    with pytest.raises(ValueError, match=says):
        read_gmt(tmp_path / "h.gmt")


# -- metadata ---------------------------------------------------------------------------------------------------------


def pairs(study, factor, column):
    both = pd.concat([study[0].factors_frame()[factor].rename("z"), study[1][column]], axis=1).dropna()
    return both["z"], both[column]


def test_a_free_factor_is_named_by_the_metadata(study):
    fa, metadata = study
    found = fa.associations(metadata)
    assert found.columns.tolist() == ["factor", "informed", "column", "measure", "value", "rows", "p", "q"]
    first = found.iloc[0]
    assert (first["column"], first["informed"], first["rows"]) == ("hidden", False, 73)
    assert found["p"].is_monotonic_increasing
    np.testing.assert_allclose(found["q"], stats.false_discovery_control(found["p"]))
    assert found.groupby("factor")["informed"].first().to_dict() == {"dose": True, "free0": False, "free1": False}
    assert set(found["column"]) == {"hidden", "site", "stage", "smoker"}
    assert set(found.attrs["left_out"]) == {"dose", "patient", "visit", "same"}
    assert "covariate" in found.attrs["left_out"]["dose"]


def test_p_values_are_those_of_scipy(study):
    fa, metadata = study
    plain, ranks = (
        fa.associations(metadata, method=method).set_index(["factor", "column"]) for method in ("pearson", "rank")
    )
    for factor in fa.factor_names_:
        z, y = pairs(study, factor, "hidden")
        for frame, test in ((plain, stats.pearsonr), (ranks, stats.spearmanr)):
            r, p = test(z, y)
            assert frame.loc[(factor, "hidden"), ["value", "p"]].tolist() == pytest.approx([r, p], rel=1e-8)
        z, y = pairs(study, factor, "stage")
        r, p = stats.spearmanr(z, y.cat.codes)
        assert ranks.loc[(factor, "stage"), ["value", "p"]].tolist() == pytest.approx([r, p], rel=1e-8)
        z, y = pairs(study, factor, "site")
        levels = [z[y == level] for level in "abc"]
        assert plain.loc[(factor, "site"), "p"] == pytest.approx(stats.f_oneway(*levels).pvalue, rel=1e-8)
        assert ranks.loc[(factor, "site"), "p"] == pytest.approx(stats.kruskal(*levels).pvalue, rel=1e-8)


def test_metadata_are_matched_by_name(study, tmp_path):
    fa, metadata = study
    shuffled = metadata[["hidden", "site"]].iloc[::-1]
    expected = fa.associations(metadata[["hidden", "site"]])
    pd.testing.assert_frame_equal(fa.associations(shuffled), expected)
    shuffled.to_csv(tmp_path / "clinic.csv")
    pd.testing.assert_frame_equal(fa.associations(tmp_path / "clinic.csv"), expected)
    some = fa.associations(metadata[["site"]].iloc[:50])
    assert some["rows"].eq(50).all()


def test_survival_names_its_extra(study):
    if find_spec("lifelines"):
        pytest.skip("lifelines is installed")
    metadata = study[1].assign(months=3.0, died=1)
    with pytest.raises(MissingExtraError, match=r"covalign\[survival\]"):
        study[0].associations(metadata, survival=("months", "died"))


@pytest.mark.filterwarnings("ignore")  # lifelines warns of its own code
def test_cox_finds_the_factor_that_kills(study):
    lifelines = pytest.importorskip("lifelines", reason="lifelines is not installed")
    fa, rng = study[0], np.random.default_rng(0)
    Z = fa.factors_frame()
    months = rng.exponential(np.exp(-1.5 * Z["free0"] / Z["free0"].std()))
    table = pd.DataFrame({"months": months, "died": rng.random(80) < 0.7}, index=Z.index)
    table.iloc[0, 0] = np.nan
    found = fa.associations(table, survival=("months", "died"))
    assert found.iloc[0][["factor", "column", "measure", "rows"]].tolist() == [
        "free0",
        "survival",
        "log_hazard_ratio",
        79,
    ]
    data = pd.DataFrame({"z": Z["free0"] / Z["free0"][1:].std(), **table.astype(float)}).iloc[1:]
    expected = lifelines.CoxPHFitter().fit(data, "months", "died").summary.loc["z"]
    assert found.iloc[0][["value", "p"]].tolist() == pytest.approx(expected[["coef", "p"]].tolist(), rel=1e-6)


@pytest.mark.parametrize(
    ("change", "options", "says"),
    [
        ({}, {"method": "kendall"}, "pearson, rank"),
        ({}, {"survival": "months"}, "two columns"),
        ({}, {"survival": ("month", "died")}, "'months'"),
        ({"months": -1.0}, {"survival": ("months", "died")}, "'months' needs times of at least 0"),
        ({"died": 2}, {"survival": ("months", "died")}, "'died'"),
        ({"died": "perhaps"}, {"survival": ("months", "died")}, "dead and alive, in column 'died'"),
        ({"months": "long"}, {"survival": ("months", "died")}, "numbers in column 'months'"),
    ],
)
def test_errors_of_associations(study, change, options, says):
    metadata = study[1].assign(months=3.0, died=1).assign(**change)
    with pytest.raises(ValueError, match=says):
        study[0].associations(metadata, **options)


def test_a_table_of_covariates_has_nothing_to_test(study):
    with pytest.raises(ValueError, match="'dose': the model has it as a covariate"):
        study[0].associations(study[1][["dose"]])


# -- top features -----------------------------------------------------------------------------------------------------


def test_all_top_features_in_one_table(study):
    fa = study[0]
    frame = fa.features_frame(n=9)
    assert len(frame) == 3 * (9 + 8)  # all of the eight proteins
    for (view, factor), one in frame.groupby(["view", "factor"], sort=False):
        expected = fa.top_features(factor, view, 9)
        pd.testing.assert_frame_equal(one[["feature", "loading", "std"]].reset_index(drop=True), expected)
        assert one["rank"].tolist() == list(range(1, len(one) + 1))
    some = fa.features_frame(2, ["free0", "dose"], "protein")
    assert some["factor"].tolist() == ["free0", "free0", "dose", "dose"]
    with pytest.raises(ValueError, match="n needs a whole number"):
        fa.features_frame(0)
