"""``covalign enrich``, ``features``, ``associations`` and ``report`` say what the library finds; and the dot plot."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

typer_testing = pytest.importorskip("typer.testing", reason="typer is not installed")

import covalign as ca  # noqa: E402
from covalign.cli import app  # noqa: E402

SETS = {"FIRST": [f"g{i}" for i in range(8)], "SECOND": [f"G{i}" for i in range(10, 17)], "ABSENT": ["x", "y"]}


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("findings")
    s = ca.simulate.scenario("PN", n_samples=80, n_features={"rna": 30, "protein": 8}, n_covariates=2, n_factors=3)
    tables = {"rna": pd.DataFrame(s.X["rna"]).add_prefix("g"), "protein": pd.DataFrame(s.X["protein"]).add_prefix("p")}
    fa = ca.InformedFactorAnalysis(3, tol=1e-3, folds=0).fit(tables, pd.DataFrame(s.Y, columns=["age", "dose"]))
    fa.save(folder / "ifa.covalign")
    ca.LatentAligner().fit(s.Z, s.Y).save(folder / "aligner.covalign")
    (folder / "h.gmt").write_text("".join("\t".join([name, "-", *genes]) + "\n" for name, genes in SETS.items()))
    rng = np.random.default_rng(0)
    clinic = pd.DataFrame(
        {"age": s.Y[:, 0], "crp": fa.factors_[:, 2] + rng.standard_normal(80), "day": ["2020-01-02"] * 80}
    )
    clinic.assign(site=rng.choice(["a", "b", "c"], 80)).to_csv(folder / "clinic.csv", index=False)
    return fa, folder


@pytest.fixture
def run(kept, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def call(command: str, *words: str, code: int = 0):
        named = [str(kept[1] / word) if (kept[1] / word).exists() else word for word in words]
        done = typer_testing.CliRunner().invoke(app, [command, *named])
        assert done.exit_code == code, done.output
        return done

    return call


@pytest.mark.parametrize("name", ["table.csv", "table.tsv.gz", "table.parquet"])
def test_the_table_of_gene_sets_is_that_of_the_library(kept, run, name, tmp_path):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    fa, folder = kept
    done = run("enrich", "ifa.covalign", "--sets", "h.gmt", "-o", name, "--json")
    expected = fa.enrichment(folder / "h.gmt")
    read = pd.read_parquet if name.endswith("parquet") else lambda path: pd.read_csv(path, sep=None, engine="python")
    pd.testing.assert_frame_equal(read(tmp_path / name), expected, check_dtype=False)
    answer = json.loads(done.stdout)
    assert answer["tests"] == len(answer["enrichment"]) == len(expected)
    assert answer["found"] == int((expected["q"] < 0.05).sum())
    assert answer["files"] == [name]
    assert answer["unmatched"]["rna"] == ["x", "y"]
    assert answer["left_out"]["rna"]["ABSENT"]


def test_options_of_enrich_are_those_of_the_library(kept, run):
    words = "--view rna --factor age --factor free0 --method rank --statistic ratio --correlation 0.1 --min-size 8"
    answer = json.loads(run("enrich", "ifa.covalign", "--sets", "h.gmt", *words.split(), "--json").stdout)
    asked = {"method": "rank", "statistic": "ratio", "correlation": 0.1, "min_size": 8}
    expected = kept[0].enrichment(SETS, "rna", ["age", "free0"], **asked)
    pd.testing.assert_frame_equal(pd.DataFrame(answer["enrichment"]), expected, check_dtype=False)
    assert set(expected["set"]) == {"FIRST"}
    assert "--min-size 8" in run("enrich", "ifa.covalign", "--sets", "h.gmt", *words.split()).stderr


def test_the_answer_for_readers(run, tmp_path):
    done = run("enrich", "ifa.covalign", "--sets", "h.gmt", "--figure", "dots.png")
    head, first, *_ = done.stdout.splitlines()
    assert head.split() == ["factor", "view", "set", "size", "direction", "statistic", "p", "q"]
    assert first.split()[:2] == ["age", "rna"]
    assert "tests have q < 0.05" in done.stdout
    assert "2 names of gene sets are no features of view 'rna'" in done.stderr
    assert (tmp_path / "dots.png").stat().st_size > 1000


def test_features_of_all_factors(kept, run, tmp_path):
    done = run("features", "ifa.covalign", "-n", "6", "-o", "features.csv")
    expected = kept[0].features_frame(6)
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "features.csv"), expected)
    assert f"{expected['feature'][0]} ({expected['loading'][0]:+.2f})" in done.stdout.splitlines()[1]
    answer = json.loads(run("features", "ifa.covalign", "--factor", "dose", "--view", "protein", "--json").stdout)
    pd.testing.assert_frame_equal(pd.DataFrame(answer["features"]), kept[0].features_frame(20, "dose", "protein"))


@pytest.mark.parametrize("method", ["pearson", "rank"])
def test_associations_of_all_factors(kept, run, method, tmp_path):
    fa, folder = kept
    words = ["associations", "ifa.covalign", "clinic.csv", "--method", method]
    done = run(*words, "-o", "associations.csv")
    expected = fa.associations(folder / "clinic.csv", method=method)
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "associations.csv"), expected)
    assert done.stdout.splitlines()[1].split()[:2] == ["free0", "crp"]
    assert "age*" in done.stdout
    assert "column 'age' was not tested" in done.stderr
    answer = json.loads(run(*words, "--json").stdout)
    pd.testing.assert_frame_equal(pd.DataFrame(answer["associations"]), expected)
    assert set(answer["left_out"]) == {"age", "day"}


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ("enrich aligner.covalign --sets h.gmt", 2, "covalign fit"),
        ("features aligner.covalign", 2, "covalign fit"),
        ("associations aligner.covalign clinic.csv", 2, "covalign fit"),
        ("associations ifa.covalign none.csv", 2, "none.csv"),
        ("associations ifa.covalign clinic.csv --survival crp", 2, "months,died"),
        ("associations ifa.covalign clinic.csv --survival cpr,age", 2, "'crp'"),
        ("enrich ifa.covalign", 2, "--sets"),
        ("enrich ifa.covalign --sets none.gmt", 2, "none.gmt"),
        ("enrich ifa.covalign --sets h.gmt --view dna", 2, "'rna', 'protein'"),
        ("enrich ifa.covalign --sets h.gmt --view protein", 2, "'p0', 'p1', 'p2'"),
        ("enrich ifa.covalign --sets h.gmt --factor agee", 2, "'age'"),
        ("enrich ifa.covalign --sets h.gmt --min-size 20", 2, "--min-size"),
        ("enrich ifa.covalign --sets h.gmt --correlation 2", 2, "--correlation"),
        ("features ifa.covalign -o features.xyz", 2, ".csv"),
    ],
)
def test_errors_name_flags(run, words, code, says):
    done = run(*words.split(), code=code)
    assert says in done.output


# -- the dot plot -----------------------------------------------------------------------------------------------------


def test_dots_are_the_numbers_of_the_frame(kept):
    plt = pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed")
    frame = kept[0].enrichment(SETS, "rna")
    ax = ca.plot.enrichment(frame, title="sets")
    dots = ax.collections[0]
    np.testing.assert_allclose(sorted(dots.get_array()), sorted(frame["statistic"]))
    rows = {label.get_text(): at for label, at in zip(ax.get_yticklabels(), ax.get_yticks(), strict=True)}
    columns = [label.get_text() for label in ax.get_xticklabels()]
    value = frame.set_index(["factor", "set"])["statistic"]
    for (x, y), shown in zip(dots.get_offsets(), dots.get_array(), strict=True):
        (name,) = [name for name, at in rows.items() if at == y]
        assert shown == value[columns[int(x)], name]
    order = np.argsort(frame["q"].to_numpy())
    by_q = dict(zip(np.round(dots.get_array(), 12), dots.get_sizes(), strict=True))
    areas = [by_q[round(t, 12)] for t in frame["statistic"].to_numpy()[order]]
    assert areas == sorted(areas, reverse=True)
    plt.close("all")


def test_only_the_best_sets_are_drawn():
    plt = pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed")
    p = np.linspace(1e-9, 1, 20)
    frame = pd.DataFrame({"view": "rna", "factor": "age", "set": [f"s{i}" for i in range(20)], "p": p, "q": p})
    ax = ca.plot.enrichment(frame.assign(statistic=1.0), n=3)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["rna", "s0", "s1", "s2"]
    with pytest.raises(ValueError, match="enrichment"):
        ca.plot.enrichment(frame)
    plt.close("all")


def test_a_report_of_a_saved_model_has_its_gene_sets(kept, run):
    done = run("report", "ifa.covalign", "--sets", "h.gmt", "-o", "findings.html", "--title", "A cohort", "--json")
    answer, facts = json.loads(done.stdout), ca.report.summary(kept[0], kept[1] / "h.gmt")
    assert answer == {"conclusion": facts["conclusion"], "files": ["findings.html"]}
    text = Path("findings.html").read_text()
    assert "<title>A cohort</title>" in text
    assert json.loads(re.search(r'id="facts">(.*?)</script>', text)[1])["factors"]["sets"]["given"] == 3
    run("report", "ifa.covalign", "-o", "findings.html", code=3)
    plain = run("report", "aligner.covalign", "-o", "aligner.html").stdout
    assert plain.splitlines()[0].endswith("covariates are captured on new rows.")
    assert "<title>aligner</title>" in Path("aligner.html").read_text()


def test_gene_sets_of_an_aligner_are_refused(run):
    done = run("report", "aligner.covalign", "--sets", "h.gmt", "-o", "page.html", code=2)
    assert "needs a factor model" in done.stderr
    assert not Path("page.html").exists()
    assert "none.gmt" in run("report", "ifa.covalign", "--sets", "none.gmt", "-o", "page.html", code=2).stderr


def test_fit_tests_gene_sets_beside_its_report(kept, run, tmp_path):
    """One command writes model, report with gene sets, and their table, which is that of enrich."""
    s = ca.simulate.scenario("PN", n_samples=60, n_features={"rna": 30, "protein": 8}, n_covariates=2, n_factors=3)
    pd.DataFrame(s.X["rna"]).add_prefix("g").to_csv("rna.csv", index=False)
    pd.DataFrame(s.X["protein"]).add_prefix("p").to_csv("protein.csv", index=False)
    pd.DataFrame(s.Y, columns=["age", "dose"]).to_csv("y.csv", index=False)
    data = ["--view", "rna=rna.csv", "--view", "protein=protein.csv", "--covariates", "y.csv"]
    quick = ["--n-factors", "3", "--supervision", "1", "--folds", "0", "--max-iter", "20"]
    wanted = ["--sets", "h.gmt", "-o", "m.covalign", "--report", "r.html"]
    done = run("fit", *data, *quick, *wanted)
    assert done.stdout.splitlines()[-3:] == ["m.covalign", "r_sets.csv", "r.html"]
    assert "none of the gene sets can be tested in view 'protein'" in done.stderr
    assert "set 'ABSENT' was not tested in view 'rna'" in done.stderr
    run("enrich", "m.covalign", "--sets", "h.gmt", "-o", "e.csv")
    pd.testing.assert_frame_equal(pd.read_csv("r_sets.csv"), pd.read_csv("e.csv"))
    assert '"sets":{"given":3' in Path("r.html").read_text()
    again = run("fit", *data, *quick, "--sets", "h.gmt", "--sets-out", "t.tsv", "-o", "n.covalign")
    assert "next: covalign report n.covalign --sets GENE_SETS.gmt -o findings.html" in again.stderr
    assert len(pd.read_csv("t.tsv", sep="\t")) == len(pd.read_csv("e.csv"))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--sets h.gmt -o m.covalign", "--sets needs an output. Give one with --report or --sets-out."),
        ("--sets-out s.csv -o m.covalign", "--sets-out needs gene sets. Name a GMT file with --sets."),
        ("--sets none.gmt --report r.html", "'none.gmt'"),
        ("--sets other.gmt --report r.html", "gene sets need names of features"),
    ],
)
def test_fit_refuses_gene_sets_before_it_fits(run, words, says, monkeypatch):
    monkeypatch.setattr(ca.InformedFactorAnalysis, "fit", None)
    Path("other.gmt").write_text("A\t-\t" + "\t".join(f"q{i}" for i in range(9)) + "\n")
    pd.DataFrame(np.eye(9)).add_prefix("g").assign(age=range(9)).to_csv("x.csv", index=False)
    said = run("fit", "x.csv", "-c", "age", "--n-factors", "1", *words.split(), code=2)
    assert says in said.stderr
    assert not Path("r.html").exists()


def test_features_shows_active_factors(kept, run, tmp_path):
    fa, _ = kept
    fa.active_factors_.all() or pytest.fail("the factors of the fixture are active")
    data = ca.simulate.scenario("PN", n_samples=60, n_covariates=1, n_factors=2)
    idle = ca.InformedFactorAnalysis(8, tol=1e-3, folds=0, supervision=1).fit(data.X, data.Y)
    assert not idle.active_factors_.all()
    idle.save("idle.covalign")
    lost = [name for name, on in zip(idle.factor_names_, idle.active_factors_, strict=True) if not on]
    said = run("features", "idle.covalign", "-o", "all.csv").stdout
    assert f"Inactive, and not shown: {', '.join(lost)}." in said
    assert set(pd.read_csv("all.csv")["factor"]) == {*idle.factor_names_}
    shown = [line.split()[1] for line in said.splitlines()[1:] if "(" in line]
    assert not {*shown} & {*lost}
    assert lost[0] in run("features", "idle.covalign", "--factor", lost[0]).stdout.splitlines()[1]
