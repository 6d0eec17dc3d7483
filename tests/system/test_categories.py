"""The reference level of a category: the same however rows arrive, kept in files, and said wherever numbers are."""

from __future__ import annotations

import html
import json

import numpy as np
import pandas as pd
import pytest

import covalign as ca
from covalign.show import report
from covalign.study.comparison import compare

testing = pytest.importorskip("typer.testing", reason="the command line needs typer")

from covalign.cli import app  # noqa: E402  (only where typer is installed)

NAMES = ["age", "kind_b", "kind_c"]
EVERY = ["age", "kind_a", "kind_b", "kind_c"]
WITHOUT = "except the reference level 'a'. Use drop_first=False for all levels."
ALL = "3 levels have only 2 independent directions"


def data(n: int = 150) -> tuple[np.ndarray, pd.DataFrame]:
    s = ca.simulate.scenario("PN", n_samples=n, n_factors=6, n_covariates=3, random_state=3)
    kind = np.array(["c", "a", "b"])[np.digitize(s.Y[:, 1], [-0.5, 0.5])]
    return s.Z, pd.DataFrame({"age": s.Y[:, 0], "kind": kind})


# -- rows -------------------------------------------------------------------------------------------------------------


def test_batches_have_the_reference_level_of_the_whole_table():
    Z, Y = data()
    whole = ca.LatentAligner().fit(Z, Y)
    assert whole.covariate_names_ == NAMES
    Y["kind"] = pd.Categorical(Y["kind"])
    for size in (30, 70):
        cuts = [slice(i, i + size) for i in range(0, len(Z), size)]
        streamed = ca.LatentAligner().fit((Z[cut], Y[cut]) for cut in cuts)
        assert streamed.covariate_names_ == NAMES
        np.testing.assert_allclose(streamed.T_, whole.T_, atol=1e-8)
        factors = ca.InformedFactorAnalysis(6, tol=1e-4).fit((Z[cut], Y[cut]) for cut in cuts)
        assert factors.covariate_names_ == NAMES


def test_batches_of_a_factor_model_need_rows_of_the_reference_level():
    Z, Y = data()
    Y["kind"] = pd.Categorical(Y["kind"], categories=["none", "a", "b", "c"])
    cuts = [slice(i, i + 50) for i in (0, 50, 100)]
    with pytest.raises(ValueError, match="the reference level of 'kind' needs rows, got none with 'none'"):
        ca.InformedFactorAnalysis(6).fit((Z[cut], Y[cut]) for cut in cuts)


def test_dask_has_the_reference_level_of_the_whole_table():
    da, dd = pytest.importorskip("dask.array"), pytest.importorskip("dask.dataframe")
    Z, Y = data()
    Y["kind"] = pd.Categorical(Y["kind"], categories=["b", "c", "a"])
    lazy = ca.LatentAligner().fit(da.from_array(Z, chunks=(50, -1)), dd.from_pandas(Y, npartitions=3))
    assert lazy.covariate_names_ == ["age", "kind_c", "kind_a"]
    np.testing.assert_allclose(lazy.T_, ca.LatentAligner().fit(Z, Y).T_, atol=1e-8)


@pytest.mark.parametrize("drop_first", [True, False])
def test_a_saved_model_keeps_its_coding(drop_first, tmp_path):
    Z, Y = data()
    makers = (ca.LatentAligner(drop_first=drop_first), ca.InformedFactorAnalysis(6, tol=1e-3, drop_first=drop_first))
    for model in makers:
        path = tmp_path / f"{type(model).__name__}.covalign"
        model.fit(Z, Y).save(path)
        again = ca.load(path)
        assert again.covariate_names_ == (NAMES if drop_first else EVERY)
        assert again.drop_first is drop_first
        assert again.summary().attrs["categories"] == model.summary().attrs["categories"]


# -- what is said -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [ca.LatentAligner, lambda **of: ca.InformedFactorAnalysis(6, tol=1e-3, folds=0, **of)])
def test_the_report_says_which_level_has_no_dimension(make):
    for drop_first, said in ((True, WITHOUT), (False, ALL)):
        model = make(drop_first=drop_first).fit(*data())
        facts = report.summary(model)
        (about,) = facts["about_categories"]
        assert said in about
        page = report.page(facts, "r")
        assert html.escape(about) in page  # in the copy without scripts
        assert "facts.about_categories" in page
    assert report.summary(make().fit(data()[0], data()[1][["age"]]))["about_categories"] == []


def test_compare_has_the_coding_of_the_estimators():
    Z, Y = data()
    for drop_first, p in ((True, 3), (False, 4)):
        table = compare(Z, Y, n_factors=5, methods=["Y as factors"], folds=0, drop_first=drop_first)
        assert table.attrs["categories"]["kind"]["reference"] == ("a" if p == 3 else None)
    default = compare(Z, Y, n_factors=3, methods=["Y as factors"], folds=0)  # three factors are enough
    assert default["status"].tolist() == ["done"]
    with pytest.raises(ValueError, match="4 covariates need at least 4 factors"):
        compare(Z, Y, n_factors=3, methods=["Y as factors"], folds=0, drop_first=False)


COMMANDS = {
    "align": (["align", "Z.npy", "Y.csv", "-o", "out.csv"], "dimensions"),
    "frontier": (["frontier", "Z.npy", "Y.csv", "--lams", "0,1"], "dimensions"),
    "fit": (["fit", "Z.npy", "--covariates", "Y.csv", "--n-factors", "6", "--folds", "0", "-o", "m"], "factors"),
    "compare": (["compare", "Z.npy", "Y.csv", "-k", "5", "-m", "PCA", "--folds", "0"], "dimensions"),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Z, Y = data()
    np.save("Z.npy", Z)
    Y.to_csv("Y.csv", index=False)
    return tmp_path


def run(*words):
    result = testing.CliRunner().invoke(app, list(words), env={"COLUMNS": "200"})
    assert result.exit_code == 0, (result.stdout, result.stderr, result.exception)
    return result


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_say_which_level_has_no_dimension(name, folder):
    words, called = COMMANDS[name]
    sentence = f"kind: 2 {called}, one for every level except the reference level 'a'. Use --all-levels for all levels."
    (line,) = (line for line in run(*words).stdout.splitlines() if line.startswith(sentence))
    whole = " All its levels together have the canonical alignment "  # of a fitted model
    assert line.removeprefix(sentence).startswith(whole if name in ("align", "fit") else "")
    answer = json.loads(run(*words, "--drop-first", "--json", "--force").stdout)
    assert answer["categories"]["kind"]["reference"] == "a"
    said = run(*words, "--all-levels", "--force").stdout
    assert f"kind: 3 {called}, one for every level. {ALL}" in said
    assert "Use --drop-first to leave out the first level." in said


def test_all_levels_of_the_command_line(folder):
    run("align", "Z.npy", "Y.csv", "-o", "out.csv", "--all-levels", "--report", "r.html")
    assert pd.read_csv("out.csv").columns[-4:].tolist() == EVERY
    page = (folder / "r.html").read_text()
    assert "covalign align Z.npy Y.csv --all-levels" in page  # the command that repeats the fit
    assert "ca.LatentAligner(drop_first=False)" in page
    run("align", "Z.npy", "Y.csv", "-o", "out.csv", "--force", "--report", "r.html")
    assert pd.read_csv("out.csv").columns[-3:].tolist() == NAMES
    assert "--all-levels --" not in (folder / "r.html").read_text()


def test_info_names_the_reference_level(folder):
    run("align", "Z.npy", "Y.csv", "--save", "model.covalign")
    assert "kind: dummies kind_b, kind_c; reference level a" in run("info", "model.covalign").stdout
    run("align", "Z.npy", "Y.csv", "--save", "all.covalign", "--all-levels")
    assert "reference level" not in run("info", "all.covalign").stdout
