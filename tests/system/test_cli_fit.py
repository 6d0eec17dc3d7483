"""fit and transform from the command line: studies as they are kept, the model of the library."""

from __future__ import annotations

import json
import signal
import sys
import time
from functools import cache

import numpy as np
import pandas as pd
import pytest

import covalign as ca

testing = pytest.importorskip("typer.testing", reason="the command line needs typer")

from covalign.cli import app  # noqa: E402  (only where typer is installed)
from covalign.factor.fit_search import Search  # noqa: E402
from covalign.stream.h5ad import pulling  # noqa: E402
from covalign.tables import representations as matching  # noqa: E402

from .test_cli import process  # noqa: E402

N, FEATURES = 60, {"rna": 20, "protein": 16}
NAMES = [f"patient{i}" for i in range(N)]
VIEWS = ["--view", "rna=rna.csv", "--view", "protein=protein.csv"]
HELD_OUT = [*VIEWS, "--covariates", "clinic.csv", "--n-factors", "3", "--supervision", "1"]
NO_FOLDS = ["--folds", "0", "--supervision", "1"]  # held-out numbers need five more fits, and so does auto
STUDY = [*HELD_OUT, *NO_FOLDS]
QUICK = [*STUDY, "--max-iter", "2"]  # where the numbers do not matter


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with two views and covariates, each in an order of its own and with gaps."""
    monkeypatch.chdir(tmp_path)
    views, clinic = study()
    for name, view in views.items():
        view.to_csv(f"{name}.csv")
    clinic.to_csv("clinic.csv", index_label="patient")
    return tmp_path


def study():
    s = ca.simulate.scenario("PN", n_samples=N, n_features=FEATURES, n_factors=3, n_covariates=2)
    views = {
        name: pd.DataFrame(s.X[name], NAMES, [f"{name}{i}" for i in range(width)]) for name, width in FEATURES.items()
    }
    views["rna"].iloc[3, 4] = np.nan
    views["protein"] = views["protein"].iloc[::-1].iloc[:40]
    clinic = pd.DataFrame(s.Y, NAMES, ["age", "dose"])
    clinic.loc["patient7", "dose"] = np.nan
    return views, clinic.sample(frac=1, random_state=0).iloc[:50]


def run(*words, code=0):
    result = testing.CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "200"})
    assert result.exit_code == code, (result.stdout, result.stderr, result.exception)
    return result


@cache
def expected(**settings):
    return ca.InformedFactorAnalysis(3, **{"supervision": 1, **settings}).fit(*study())


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A file with a model of the study."""
    path = tmp_path_factory.mktemp("saved") / "m.covalign"
    expected().save(path)
    return path


def the_same(found, want):
    np.testing.assert_allclose(found, want, rtol=1e-6, atol=1e-6)


def numbers(path):
    return pd.read_csv(path, index_col=0)


# -- fit --------------------------------------------------------------------------------------------------------------


def test_fit_is_that_of_the_library():
    result = run("fit", *STUDY, "-o", "m.covalign", "--factors-out", "f.csv", "--loadings-out", "loadings")
    want, found = expected(), numbers("f.csv")
    assert found.index.tolist() == NAMES  # in the order of the first view
    assert found.columns.tolist() == want.factor_names_ == ["age", "dose", "free0"]
    the_same(found.to_numpy(), want.factors_)
    for name in FEATURES:
        loadings = numbers(f"loadings/{name}.csv")
        assert loadings.index.tolist() == [f"{name}{i}" for i in range(FEATURES[name])]
        the_same(loadings.to_numpy(), want.loadings_[name])
    the_same(ca.load("m.covalign").factors_, want.factors_)
    assert "20 of 60 samples are not in protein.csv: protein is missing for them" in result.stderr
    assert "10 of 60 rows of rna.csv and protein.csv are not in clinic.csv" in result.stderr
    assert f"{want.alignment_['age']:.3f}" in result.stdout
    assert result.stdout.splitlines()[-3:] == ["m.covalign", "f.csv", "loadings"]
    assert "next: covalign transform m.covalign --view rna=NEW" in result.stderr


def test_fit_for_machines():
    answer = json.loads(run("fit", *HELD_OUT, "-o", "m.covalign", "--json", "--lam", "0.8").stdout)
    want = expected().realign(0.8)
    assert answer["alignment"] == pytest.approx(want.alignment_.to_dict(), rel=1e-5)
    for name, held_out in want.summary()["held_out"].items():
        assert answer["held_out"][name]["held_out"] == pytest.approx(held_out, rel=1e-5)
    assert (answer["regime"], answer["lam"], answer["converged"], answer["samples"]) == ("tunable", 0.8, True, N)
    for view, total in want.total_variance_explained().items():
        assert answer["variance_explained"][view]["total"] == pytest.approx(total, rel=1e-5)
        assert [*answer["variance_explained"][view]["factors"]] == want.factor_names_
    the_same(ca.load("m.covalign").T_, want.T_)


@pytest.mark.parametrize(
    ("words", "settings"),
    [
        (["--posterior", "mean_field"], {"posterior": "mean_field"}),
        (["--n-init", "2", "--random-state", "3"], {"n_init": 2, "random_state": 3}),
    ],
)
def test_settings_reach_the_model(words, settings):
    answer = json.loads(run("fit", *STUDY, "-o", "m.covalign", "--json", *words).stdout)
    assert answer["bound"] == pytest.approx(expected(**settings).elbo_[-1])
    saved = ca.load("m.covalign").get_params()
    assert {name: saved[name] for name in settings} == settings


def noise_study(folder):
    """Features that carry age and nothing of noise."""
    views, clinic = study()
    clinic["noise"] = np.random.default_rng(5).standard_normal(len(clinic))
    clinic.to_csv(folder / "clinic.csv", index_label="patient")
    return views, clinic[["age", "noise"]]


def test_the_answer_the_file_and_info_say_which_covariates_are_captured(folder):
    supervision = 4.0
    views, clinic = noise_study(folder)
    words = [*VIEWS, "--covariates", "clinic.csv", "-c", "age", "-c", "noise", "--n-factors", "3", "--folds", "3"]
    words += ["--supervision", supervision, "--regression-share", 0.25, "-o", "m.covalign", "--force"]
    want = ca.InformedFactorAnalysis(3, folds=3, supervision=supervision, regression_share=0.25).fit(views, clinic)
    answer = json.loads(run("fit", *words, "--json").stdout)
    assert answer["supervision"] == want.supervision_ == ca.load("m.covalign").supervision_ == supervision
    assert answer["regression_share"] == want.regression_share_ == ca.load("m.covalign").regression_share_ == 0.25
    for name, row in want.informed_.iterrows():
        found = answer["informed"][name]
        assert found.pop("verdict") == row["verdict"]
        assert found == pytest.approx(row.drop("verdict").to_dict(), rel=1e-4, abs=1e-5)
    told, page = run("fit", *words).stdout, run("info", "m.covalign").stdout
    assert f"supervision {supervision:g}, share of the regression on all features 0.25\n" in told
    rows = [" ".join(line.split()) for line in page.splitlines()]
    assert {f"supervision {supervision:g}", "regression share 0.25"} <= set(rows)
    said = json.loads(run("info", "m.covalign", "--json").stdout)
    summary, kept = want.summary(), said["informed"]
    assert [row["held_out"] for row in said["alignment"]] == pytest.approx(summary["held_out"].tolist())
    assert said["mean_alignment"]["low"] == pytest.approx(want.mean_alignment_["low"])
    assert [row["verdict"] for row in kept] == want.informed_["verdict"].tolist()
    for text in (told, page):
        (line,) = [line for line in text.splitlines() if line.startswith("age") and "captured" in line]
        assert line.split()[1:-1] == [f"{value:.3f}" for value in want.informed_.loc["age"].tolist()[:-1]]


def test_a_covariate_that_features_do_not_carry_is_marked(monkeypatch):
    frame = expected().informed_.assign(verdict=["captured", "not captured"])
    monkeypatch.setattr(ca.InformedFactorAnalysis, "informed_", property(lambda _: frame))
    told = run("fit", *HELD_OUT, "-o", "m.covalign").stdout
    assert "dose (not captured)" in told
    assert "age (not captured)" not in told
    page = run("info", "m.covalign").stdout
    assert "dose (not captured)" in page
    assert "age (not captured)" not in page


def test_a_model_without_held_out_numbers_has_no_verdicts():
    told = run("fit", *QUICK, "-o", "m.covalign").stdout
    assert "captured" not in told
    assert "verdict" not in told
    assert "does not say which covariates are captured" in run("info", "m.covalign").stdout


def test_as_many_factors_as_needed():
    complete = study()[0]["rna"].fillna(0.0)
    complete.to_csv("rna.csv")
    words = ["rna.csv", "--covariates", "clinic.csv", "-c", "age", "--n-factors", "auto", "-o", "m", *NO_FOLDS]
    answer = json.loads(run("fit", *words, "--json").stdout)
    assert (
        answer["factors"]
        == ca.InformedFactorAnalysis("auto", supervision=1).fit(complete, study()[1][["age"]]).n_factors_
    )
    assert "'auto' or a whole number" in run("fit", *STUDY, "--n-factors", "many", "-o", "n", code=2).stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--lam", "2"], "--lam needs"),
        (["--lam", "0.5", "--regime", "exclusive"], "--regime exclusive"),
        (["--folds", "1"], "--folds needs"),
        (["--supervision", "0.5"], "--supervision needs a number from 1"),
        (["--regression-share", "1.5"], "--regression-share needs a number from 0 to 1"),
        (["--supervision", "much"], "--supervision needs 'auto' or a number"),
        (["--random-state", "-1"], "'--random-state'"),
    ],
)
def test_settings_are_looked_at_before_any_work(words, says, folder):
    stderr = run("fit", "no.csv", "--covariates", "no.csv", "-o", "m.covalign", *words, code=2).stderr
    assert says in stderr
    assert not (folder / "m.covalign").exists()


def test_a_budget_of_coupling():
    answer = json.loads(run("fit", *STUDY, "-o", "m.covalign", "--max-coupling", "0.1", "--json").stdout)
    want = expected().at(max_coupling=0.1)
    assert 0 < want.lam_ < 1
    assert (answer["regime"], answer["lam"]) == ("tunable", pytest.approx(want.lam_, rel=1e-4))
    assert answer["coupling"] == pytest.approx(want.coupling_, rel=1e-4)
    assert "--max-coupling" in run("fit", *STUDY, "--max-coupling", "1", "--lam", "1", "-o", "n", code=2).stderr


def test_regimes_by_name():
    run("fit", *STUDY, "--regime", "exclusive", "-o", "m.covalign")
    the_same(ca.load("m.covalign").T_, expected().realign(regime="exclusive").T_)
    assert "leave one" in run("fit", *STUDY, "--regime", "exclusive", "--lam", "1", "-o", "n", code=2).stderr


def test_what_has_not_converged_is_done_and_said():
    result = run("fit", *STUDY, "-o", "m.covalign", "--max-iter", "1", "--json")
    assert json.loads(result.stdout)["converged"] is False
    assert [line for line in result.stderr.splitlines() if line.startswith("warning: ")]
    assert ".py:" not in result.stderr
    again = run("fit", *STUDY, "-o", "m.covalign", "--max-iter", "1", "--force")
    assert "not converged after 1 sweeps" in again.stdout


def test_confounders_and_a_choice_of_covariates():
    views, clinic = study()
    clinic = clinic.reindex(NAMES)
    clinic["batch"] = ["a", "b"] * (N // 2)
    clinic.to_csv("clinic.csv")
    run("fit", *STUDY, "-c", "age", "--confounder", "batch", "-o", "m.covalign", "--factors-out", "f.npy")
    want = ca.InformedFactorAnalysis(3, supervision=1).fit(views, clinic[["age", "batch"]], confounders=["batch"])
    the_same(np.load("f.npy"), want.factors_)
    assert "'batch'" in run("fit", *STUDY, "--confounder", "batsch", "-o", "n", code=2).stderr
    # New samples need theirs, from whichever table has them.
    words = ["m.covalign", "--view", "rna=rna.csv", "-o", "t.csv"]
    assert "batch" in run("transform", *words, code=2).stderr
    run("transform", *words, "--confounders", "clinic.csv")
    the_same(numbers("t.csv"), want.transform({"rna": views["rna"]}, confounders=clinic[["batch"]]))
    run("transform", *words, "--covariates", "clinic.csv", "--force")
    the_same(numbers("t.csv"), want.transform({"rna": views["rna"]}, clinic[["age", "batch"]]))


def test_one_view_needs_no_name():
    views, clinic = study()
    run("fit", "rna.csv", "--covariates", "clinic.csv", "--n-factors", "3", "-o", "m.covalign", *NO_FOLDS)
    want = ca.InformedFactorAnalysis(3, supervision=1).fit(views["rna"], clinic)
    the_same(ca.load("m.covalign").factors_, want.factors_)
    run("transform", "m.covalign", "rna.csv", "-o", "t.csv")
    the_same(numbers("t.csv"), want.transform(views["rna"]))
    both = views["rna"].join(clinic)
    both.to_csv("both.csv")
    run("fit", "both.csv", "-c", "age", "-c", "dose", "--n-factors", "3", "-o", "both.covalign", *NO_FOLDS)
    the_same(ca.load("both.covalign").factors_, want.factors_)
    run("transform", "both.covalign", "both.csv", "-o", "again.csv")  # columns that the model does not know are left
    the_same(numbers("again.csv"), want.transform(views["rna"]))


@pytest.mark.parametrize("in_memory", [True, False])
def test_arrays_go_by_position(in_memory, monkeypatch):
    monkeypatch.setattr(matching, "LOADED_BYTES", 2**28 if in_memory else 0)
    s = ca.simulate.scenario("PN", n_samples=N, n_features=FEATURES, n_factors=3, n_covariates=2)
    for name, values in s.X.items():
        np.save(f"{name}.npy", values)
    pd.DataFrame(s.Y, NAMES, ["age", "dose"]).to_csv("clinic.csv")
    words = ["--view", "rna=rna.npy", "--view", "protein=protein.npy", "--covariates", "clinic.csv", "--n-factors", "3"]
    words += NO_FOLDS if in_memory else ["--supervision", "1"]
    result = run("fit", *words, "-o", "m.covalign", "--factors-out", "f.csv", "--loadings-out", "l.csv")
    assert ("nothing is held out" in result.stderr) is not in_memory
    want = ca.InformedFactorAnalysis(3, supervision=1).fit(s.X, pd.DataFrame(s.Y, columns=["age", "dose"]))
    the_same(numbers("f.csv"), want.factors_)
    assert numbers("f.csv").index.tolist() == NAMES
    loadings = pd.read_csv("l.csv")
    assert loadings.columns.tolist() == ["view", "feature", *want.factor_names_]
    the_same(loadings[loadings["view"] == "protein"].iloc[:, 2:], want.loadings_["protein"])
    for name in ("t.npy", "t.parquet", "t.zarr"):
        run("transform", "m.covalign", "--view", "rna=rna.npy", "-o", name, "--return-std")
    means, stds = want.transform({"rna": s.X["rna"]}, return_std=True)
    the_same(np.load("t.npy"), np.hstack([means, stds]))
    frame = pd.read_parquet("t.parquet")
    assert frame.columns.tolist() == [*want.factor_names_, *(f"{name}_std" for name in want.factor_names_)]
    the_same(frame, np.hstack([means, stds]))
    the_same(pytest.importorskip("zarr").open_array("t.zarr")[:], np.hstack([means, stds]))


def test_some_names_are_no_names():
    np.save("protein.npy", study()[0]["rna"].to_numpy())
    words = ["--view", "rna=rna.csv", "--view", "protein=protein.npy", "--covariates", "clinic.csv", "-o", "m"]
    assert "names in 'rna' and none in 'protein'" in run("fit", *words, code=2).stderr


def write_mudata():
    anndata = pytest.importorskip("anndata", reason="anndata is not installed")
    mudata = pytest.importorskip("mudata", reason="mudata is not installed")
    views, clinic = study()
    with pulling(False):
        whole = mudata.MuData({name: anndata.AnnData(view) for name, view in views.items()})
        for name in clinic:
            whole.obs[name] = clinic[name].reindex(whole.obs_names)
        whole.write("study.h5mu")
    return views, clinic


@pytest.mark.parametrize("named", [True, False])
def test_a_study_in_one_file(named):
    views, clinic = write_mudata()
    chosen = ["--covariates", "clinic.csv"] if named else ["-c", "age", "-c", "dose"]
    run("fit", "study.h5mu", *chosen, "--n-factors", "3", "-o", "m.covalign", "--factors-out", "f.csv", *NO_FOLDS)
    want, found = expected(), numbers("f.csv")
    the_same(found.loc[NAMES], want.factors_)
    the_same(ca.load("m.covalign").loadings_["protein"], want.loadings_["protein"])
    run("transform", "m.covalign", "study.h5mu", "-o", "t.csv", "--covariates", "study.h5mu")
    the_same(numbers("t.csv").loc[NAMES], want.transform(views, clinic))


def test_cells_in_a_file(monkeypatch):
    anndata = pytest.importorskip("anndata", reason="anndata is not installed")
    views, clinic = study()
    whole = views["rna"].fillna(0.0)
    cells = anndata.AnnData(whole.iloc[:, :3], obs=clinic.reindex(NAMES))
    cells.obsm["counts"] = whole.to_numpy()
    cells.write_h5ad("cells.h5ad")
    want = ca.InformedFactorAnalysis(3, supervision=1).fit(whole, clinic)
    words = ["--key", "counts", "--n-factors", "3", "-o", "m", "--factors-out", "f.csv", "--force", *NO_FOLDS]
    for most in (2**28, 0):  # loaded, and streamed
        monkeypatch.setattr(matching, "LOADED_BYTES", most)
        run("fit", "cells.h5ad", *words)
        the_same(numbers("f.csv"), want.factors_)
        assert numbers("f.csv").index.tolist() == NAMES
    run("transform", "m", "cells.h5ad", "--key", "counts", "-o", "t.npy")
    the_same(np.load("t.npy"), want.transform(whole))


def test_without_mudata_the_extra_is_named(monkeypatch):
    write_mudata()
    monkeypatch.setitem(sys.modules, "mudata", None)
    assert "scverse" in run("fit", "study.h5mu", "-o", "m", code=4).stderr


# -- transform --------------------------------------------------------------------------------------------------------


def test_new_samples_from_some_views_in_any_order():
    run("fit", *STUDY, "-o", "m.covalign")
    views, clinic = study()
    want = expected()
    new = {"rna": views["rna"].iloc[5:20], "protein": views["protein"].iloc[:35].iloc[:, ::-1]}
    new["rna"].to_csv("rna_new.csv")
    new["protein"].to_csv("protein_new.tsv", sep="\t")
    words = ["--view", "rna=rna_new.csv", "--view", "protein=protein_new.tsv", "-o", "t.csv", "--return-std", "--json"]
    answer = json.loads(run("transform", "m.covalign", *words).stdout)
    found, (means, stds) = numbers("t.csv"), want.transform(new, return_std=True)
    assert (answer["rows"], answer["model"]) == (len(found), "InformedFactorAnalysis")
    assert answer["columns"] == found.columns.tolist()
    the_same(found, np.hstack([means, stds]))
    run("transform", "m.covalign", "--view", "rna=rna_new.csv", "--covariates", "clinic.csv", "-o", "y.npy")
    the_same(np.load("y.npy"), want.transform({"rna": new["rna"]}, clinic.reindex(new["rna"].index)))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["rna.csv"], "--view NAME=PATH"),
        (["--view", "rma=rna.csv"], "rna"),
        (["--view", "rna"], "NAME=PATH"),
        (["--view", "rna=rna.csv", "--view", "rna=rna.csv"], "more than once"),
        (["rna.csv", "--view", "rna=rna.csv"], "both"),
        ([], "neither"),
        (["--view", "rna=protein.csv"], "rna0"),
        (["--view", "rna=rna.csv", "--confounders", "clinic.csv"], "confounders"),
    ],
)
def test_views_that_the_model_does_not_have(words, says, saved):
    assert says in run("transform", saved, *words, "-o", "t.csv", code=2).stderr


def test_a_file_that_is_no_model():
    stderr = run("transform", "clinic.csv", "rna.csv", "-o", "t.csv", code=2).stderr
    assert "clinic.csv" in stderr
    assert len(stderr.splitlines()) == 1


# -- outputs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["-o", "--factors-out", "--loadings-out", "--mofa-out", "--report"])
def test_nothing_is_replaced_unless_forced(option, folder):
    name = {"-o": "m", "--mofa-out": "m.hdf5", "--report": "r.html"}.get(option, "f.csv")
    (folder / name).write_text("precious")
    assert "--force" in run("fit", "no.csv", option, name, code=3).stderr
    assert (folder / name).read_text() == "precious"


def test_forced_loadings_leave_other_files_alone(folder):
    (folder / "loadings").mkdir()
    (folder / "loadings" / "mine.txt").write_text("precious")
    (folder / "loadings" / "rna.csv").write_text("old")
    assert "--force" in run("fit", *STUDY, "--loadings-out", "loadings", code=3).stderr
    run("fit", *STUDY, "--loadings-out", "loadings", "--force")
    assert (folder / "loadings" / "mine.txt").read_text() == "precious"
    the_same(numbers("loadings/rna.csv"), expected().loadings_["rna"])


def test_views_with_names_that_are_no_files(folder):
    words = ["--covariates", "clinic.csv", "--max-iter", "2", "--loadings-out", "loadings", *NO_FOLDS]
    run("fit", "--view", "../a b=rna.csv", *words)
    assert [path.name for path in (folder / "loadings").iterdir()] == ["_a_b.csv"]
    views = ["--view", "a/b=rna.csv", "--view", "a b=protein.csv"]
    assert "'a_b.csv'" in run("fit", *views, *words, "--force", code=2).stderr


def test_an_interrupted_fit_leaves_nothing(folder, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Search, "run", interrupted)
    before = sorted(path.name for path in folder.iterdir())
    stderr = run("fit", *STUDY, "-o", "m.covalign", "--loadings-out", "l", "--factors-out", "f.csv", code=130).stderr
    assert "covalign: interrupted" in stderr
    assert sorted(path.name for path in folder.iterdir()) == before


ENDLESS = """
import pathlib
from covalign.factor.inference import sweeps
real = sweeps.fit
def endless(*given, **named):
    while True:
        real(*given, **named)
        pathlib.Path("fitting").touch()
sweeps.fit = endless
"""


def interrupted_while_fitting(folder, *words):
    """Exit code, answer and notes of a command that gets Control-C during a fit."""
    with process(*words, first=ENDLESS) as running:
        until = time.monotonic() + 100
        while not (folder / "fitting").exists() and running.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        try:
            out, err = running.communicate(timeout=60)
        finally:
            running.kill()
    return running.returncode, out, err


def test_control_c_ends_a_fit_with_130(folder):
    before = sorted(path.name for path in folder.iterdir())
    code, out, err = interrupted_while_fitting(folder, "fit", *QUICK, "-o", "m.covalign")
    assert code == 130, err
    assert out == ""
    assert "covalign: interrupted" in err
    assert sorted(path.name for path in folder.iterdir()) == sorted([*before, "fitting"])


def test_what_is_said_about_samples_is_not_in_the_answer():
    result = run("fit", *QUICK, "-o", "m.covalign", "--json")
    assert json.loads(result.stdout)["files"] == ["m.covalign"]
    noted = result.stderr.splitlines()
    assert len(noted) == 3
    assert noted[2].startswith("warning: ")  # not converged in two sweeps


def test_a_write_that_fails_leaves_no_half(folder, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    before = sorted(path.name for path in folder.iterdir())
    monkeypatch.setattr(pd.DataFrame, "to_csv", full)
    assert "disk is full" in run("fit", *QUICK, "--factors-out", "f.csv", code=2).stderr
    assert "disk is full" in run("fit", *QUICK, "--loadings-out", "l", code=2).stderr
    assert sorted(path.name for path in folder.iterdir()) == before


def test_the_report_is_of_the_realigned_model(monkeypatch):
    asked = {}
    monkeypatch.setattr(ca.report, "write", lambda model, path, **options: asked.update(model=model, **options))
    run("fit", *QUICK, "--lam", "0.3", "--report", "r.html")
    assert asked["model"].lam_ == 0.3
    assert asked["title"] == "Informed factors of rna, protein"
    assert asked["overwrite"] is False
