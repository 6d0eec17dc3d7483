"""Tables as laboratories have them: samples as columns, barcodes for patients, counts, stages as text."""

from __future__ import annotations

import json
import shlex
import sys
import warnings
import zipfile
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import covalign as ca
from covalign.exceptions import TransposedWarning
from covalign.tables import overview
from covalign.tables.survival import event_numbers, likely_survival

testing = pytest.importorskip("typer.testing", reason="the command line needs typer")

from covalign.cli import app  # noqa: E402  (only where typer is installed)

N, FEATURES = 40, {"rna": 12, "protein": 9}
PATIENTS = [f"TCGA-{'AB' if i % 2 else 'C8'}-{1000 + i}" for i in range(N)]
QUICK = ["--n-factors", "3", "--supervision", "1", "--folds", "0", "--max-iter", "3"]
VIEWS = ["--view", "rna=rna.csv", "--view", "protein=protein.csv", "--covariates", "clinic.csv"]
STAGES = ["stage i", "stage ii", "stage iii", "stage iv"]


@cache
def study():
    s = ca.simulate.scenario("PN", n_samples=N, n_features=FEATURES, n_covariates=2)
    views = {n: pd.DataFrame(s.X[n], PATIENTS, [f"{n}{i}" for i in range(w)]) for n, w in FEATURES.items()}
    return views, pd.DataFrame(s.Y, PATIENTS, ["age", "dose"])


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with a view whose samples are columns, one whose samples are rows, and covariates."""
    monkeypatch.chdir(tmp_path)
    views, clinic = study()
    views["rna"].T.to_csv("rna.csv", index_label="gene")
    views["protein"].to_csv("protein.csv")
    clinic.to_csv("clinic.csv", index_label="patient")
    return tmp_path


def run(*words, code=0):
    result = testing.CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "200"})
    assert result.exit_code == code, (result.stdout, result.stderr, result.exception)
    return result


def fitted(*words, data=VIEWS):
    """The factors and the loadings of a quick fit, and what it said."""
    result = run("fit", *data, *QUICK, *words, "--factors-out", "f.csv", "--loadings-out", "l.csv", "--force")
    return pd.read_csv("f.csv", index_col=0), pd.read_csv("l.csv", index_col=[0, 1]), result.stderr


def expected(views=None, clinic=None):
    model = ca.InformedFactorAnalysis(3, supervision=1, folds=0, max_iter=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # three sweeps do not converge
        return model.fit(study()[0] if views is None else views, study()[1] if clinic is None else clinic).factors_


def barcodes(names, centre="07"):
    return [f"{name}-01A-11R-{centre}" for name in names]


# -- orientation ------------------------------------------------------------------------------------------------------


def test_samples_as_columns_are_found_and_said():
    factors, loadings, said = fitted()
    assert factors.index.tolist() == PATIENTS
    np.testing.assert_allclose(factors.to_numpy(), expected(), atol=1e-6)
    assert loadings.loc["rna"].index.tolist() == [f"rna{i}" for i in range(12)]
    assert "warning: rna.csv has samples as columns (40 of 40 have names of rows of clinic.csv): it is read" in said
    assert "protein.csv has samples" not in said


def test_align_frontier_and_compare_find_them_too():
    for words in (["align", "-o", "a.csv"], ["frontier", "--lams", "0,1"], ["compare", "-m", "PCA", "--folds", "0"]):
        assert "rna.csv has samples as columns" in run(words[0], "rna.csv", "clinic.csv", *words[1:]).stderr
    assert pd.read_csv("a.csv", index_col=0).index.tolist() == PATIENTS


def test_new_samples_as_columns_are_placed():
    run("fit", "rna.csv", "--covariates", "clinic.csv", *QUICK, "-o", "m.covalign")
    study()[0]["rna"].iloc[:5].to_csv("upright.csv")
    study()[0]["rna"].iloc[:5].T.to_csv("flat.csv")
    for name in ("upright", "flat"):
        said = run("transform", "m.covalign", f"{name}.csv", "-o", f"{name}_out.csv").stderr
        assert ("samples as columns" in said) == (name == "flat")
    pd.testing.assert_frame_equal(*(pd.read_csv(f"{name}_out.csv") for name in ("upright", "flat")))


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_python_warns_of_samples_as_columns(suffix):
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
        study()[0]["rna"].T.to_parquet("rna.parquet")
    Z, Y = study()[0]["rna"], study()[1]
    here = ca.LatentAligner().fit(Z, Y)
    for y in (Y, "clinic.csv"):
        with pytest.warns(TransposedWarning, match="has samples as columns"):
            got = ca.LatentAligner().fit(f"rna{suffix}", y)
        np.testing.assert_allclose(got.transform_, here.transform_, rtol=1e-6)
    with pytest.warns(TransposedWarning, match="has samples as columns"):
        model = ca.InformedFactorAnalysis(3, supervision=1, folds=0, tol=1).fit({"rna": f"rna{suffix}"}, Y)
    assert model.factors_.shape == (N, 3)
    with pytest.raises(
        ValueError, match=r"the columns of Z have the row names of Y, so pass the transposed table \(.T\)"
    ):
        ca.LatentAligner().fit(Z.T, Y)  # a table in memory is never turned


def test_transpose_turns_what_names_do_not_tell():
    views, clinic = study()
    pd.DataFrame(views["rna"].to_numpy().T).to_csv("plain.csv", index=False)
    clinic.to_csv("plain_clinic.csv", index=False)
    data = ["plain.csv", "--covariates", "plain_clinic.csv"]
    factors, _, _ = fitted("--transpose", "all", data=data)
    np.testing.assert_allclose(factors.to_numpy(), expected(views["rna"], clinic), atol=1e-6)
    assert "number" in run("fit", *data, *QUICK, "-o", "m", code=2).stderr
    said = run("fit", *VIEWS, "--transpose", "rn", "-o", "m", code=2).stderr
    assert "--transpose needs the name of a view or all, got 'rn'" in said
    assert "Did you mean 'rna'?" in said
    said = run("fit", "rna.csv", "-c", "age", "--transpose", "all", "-o", "m", code=2).stderr
    assert "no column 'age'" in said


def test_numbers_of_columns_are_no_names_of_samples():
    """Columns 0, 1, 2, ... are no samples, even if samples are numbered: nothing is turned."""
    rows = pd.DataFrame(np.eye(5), [f"s{i}" for i in range(5)], [str(i) for i in range(5)])
    rows.to_csv("rows.csv", index_label="id")
    study()[1].iloc[:5].set_axis([str(i) for i in range(5)], axis=0).to_csv("numbered.csv")
    said = run("align", "rows.csv", "numbered.csv", "-o", "o.csv", code=2).stderr
    assert "need row names in common" in said
    assert "--by-position" in said


# -- names ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def barcoded():
    """Barcodes of samples in both views (as R writes them in one), patients in the clinic."""
    views, _ = study()
    views["rna"].set_axis([name.replace("-", ".") for name in barcodes(PATIENTS)], axis=0).T.to_csv("rna.csv")
    views["protein"].set_axis(barcodes(PATIENTS, "20"), axis=0).to_csv("protein.csv")


@pytest.mark.usefixtures("barcoded")
def test_barcodes_for_patients_are_answered_with_the_flag():
    said = run("fit", *VIEWS, "-o", "m", code=2).stderr
    assert "'TCGA.C8.1000.01A.11R.07' begins with 'TCGA-C8-1000', so use --match prefix." in said
    assert "--by-position" not in said
    said = run("align", "protein.csv", "clinic.csv", "-o", "m.csv", code=2).stderr
    assert "'TCGA-C8-1000-01A-11R-20' begins with 'TCGA-C8-1000', so use --match prefix." in said
    with pytest.raises(ValueError, match=r"begins with 'TCGA-C8-1000', so match them with .*match='prefix'"):
        ca.LatentAligner().fit("protein.csv", "clinic.csv")


@pytest.mark.usefixtures("barcoded")
@pytest.mark.parametrize("words", [["--match", "prefix"], ["--match", "first"]])
def test_barcodes_match_patients_by_prefix(words):
    factors, _, said = fitted(*words)
    assert factors.index.tolist() == PATIENTS
    np.testing.assert_allclose(factors.to_numpy(), expected(), atol=1e-6)
    assert "40 of 40 rows of protein.csv were renamed to match: 'TCGA-C8-1000-01A-11R-20' is 'TCGA-C8-1000'" in said
    assert "rna.csv has samples as columns (40 of 40" in said


def test_a_pattern_is_stripped_from_all_names():
    study()[0]["protein"].set_axis(barcodes(PATIENTS), axis=0).to_csv("protein.csv")
    factors, _, said = fitted("--strip", r"-\d\dA.*$")
    np.testing.assert_allclose(factors.to_numpy(), expected(), atol=1e-6)
    assert "40 of 40 rows of protein.csv were renamed to match" in said
    assert "--strip needs a regular expression, got '('" in run("fit", *VIEWS, "--strip", "(", "-o", "m", code=2).stderr
    said = run("fit", *VIEWS, "--strip", ".*", "-o", "m", code=2).stderr
    assert "--strip '.*' needs to leave a part of every row name, got nothing of 'TCGA-C8-1000' in clinic.csv" in said


def test_covariates_of_samples_match_views_of_patients():
    study()[1].set_axis(barcodes(PATIENTS), axis=0).to_csv("clinic.csv")
    factors, _, _ = fitted("--match", "prefix")
    np.testing.assert_allclose(factors.to_numpy(), expected(), atol=1e-6)


def test_several_samples_of_a_patient_are_refused_or_the_first_is_used():
    views, _ = study()
    again = views["protein"].iloc[:3] + 100
    both = pd.concat([views["protein"].set_axis(barcodes(PATIENTS), axis=0), again.rename(lambda name: f"{name}-11A")])
    both.to_csv("protein.csv")
    said = run("fit", *VIEWS, "--match", "prefix", "-o", "m", code=2).stderr
    assert "every sample needs one row of protein.csv, and 3 rows share the name of another" in said
    assert "'TCGA-C8-1000-01A-11R-07', 'TCGA-C8-1000-11A' for 'TCGA-C8-1000': use --match first" in said
    factors, _, said = fitted("--match", "first")
    np.testing.assert_allclose(factors.to_numpy(), expected(), atol=1e-6)
    assert "3 of 43 rows of protein.csv are left out, because an earlier row has the same name" in said


def test_spellings_of_a_name_are_one_name():
    """Views write one patient in three ways; the name of all is that of the covariates."""
    views, _ = study()
    views["rna"].set_axis([name.replace("-", ".") for name in PATIENTS], axis=0).T.to_csv("rna.csv", index_label="gene")
    views["protein"].set_axis([f"{name.lower()}-01A" for name in PATIENTS], axis=0).to_csv("protein.csv")
    for words in (VIEWS, [*VIEWS[2:4], *VIEWS[:2], *VIEWS[4:]]):
        factors, _, said = fitted("--match", "prefix", data=words)
        assert factors.index.tolist() == PATIENTS
        assert "missing" not in said
        assert "left out" not in said


def test_match_rows_by_prefix_in_python():
    Z = pd.DataFrame({"z": [1, 2, 3]}, index=["s1-a", "s10-a", "s1-b"])
    Y = pd.DataFrame({"age": [40, 50]}, index=["s10", "S1"])
    found = ca.covariates.match_rows(Z, Y, match="prefix")
    assert found["age"].to_dict() == {"s1-a": 50, "s10-a": 40, "s1-b": 50}  # s10 does not begin with s1
    assert ca.covariates.match_rows(Z.iloc[:2], Y.set_axis(["S10", "S1"]), match="prefix")["age"].tolist() == [50, 40]
    stripped = ca.covariates.match_rows(Z.iloc[:2], Y.set_axis(["s10x", "s1x"]), strip="-a$|x$")
    assert stripped["age"].tolist() == [50, 40]
    several = pd.DataFrame({"age": [1, 2, 3]}, index=["s1-a-1", "s1-a-2", "s10-a"])
    with pytest.raises(ValueError, match=r"'s1-a-1', 's1-a-2' for 's1-a': .* match='first'"):
        ca.covariates.match_rows(Z.iloc[:2], several, match="prefix")
    assert ca.covariates.match_rows(Z.iloc[:2], several, match="first")["age"].tolist() == [1, 3]
    with pytest.raises(ValueError, match="match needs to be one of 'exact', 'prefix', 'first', got 'like'"):
        ca.covariates.match_rows(Z, Y, match="like")
    with pytest.raises(ValueError, match="strip needs a regular expression"):
        ca.covariates.match_rows(Z, Y, strip="(")


# -- numbers and stages -----------------------------------------------------------------------------------------------


def counted():
    """The view rna as counts, in rna.csv."""
    views, _ = study()
    counts = np.exp(views["rna"] * np.linspace(0.5, 2, 12)).round()
    counts.T.to_csv("rna.csv", index_label="gene")
    return {**views, "rna": counts}


def test_logarithms_and_the_features_that_vary_most():
    views = counted()
    logs = np.log1p(views["rna"])
    kept = logs.loc[:, logs.var().rank(ascending=False) <= 5]
    factors, loadings, _ = fitted("--log", "rna", "--top-variable", "rna=5")
    assert loadings.loc["rna"].index.tolist() == kept.columns.tolist()
    np.testing.assert_allclose(factors.to_numpy(), expected({**views, "rna": kept}), atol=1e-6)
    _, loadings, _ = fitted("--top-variable", "5")
    assert [len(loadings.loc[name]) for name in FEATURES] == [5, 5]
    said = run("fit", *VIEWS, "--log", "all", "-o", "m", code=2).stderr
    assert (
        "A logarithm needs numbers of at least 0 (such as counts) in protein.csv, got negative ones in column 'protein"
        in said
    )
    for wrong in ("0", "many", "=3", "rna="):
        assert "--top-variable needs a number" in run("fit", *VIEWS, "--top-variable", wrong, "-o", "m", code=2).stderr


def test_streamed_rows_are_logged_and_chosen():
    counts = counted()["rna"]
    np.save("counts.npy", counts.to_numpy())
    counts.to_csv("counts.csv", index=False)
    study()[1].to_csv("plain.csv", index=False)
    found = []
    for name in ("counts.npy", "counts.csv"):
        factors, _, _ = fitted("--log", "all", "--top-variable", "5", data=[name, "--covariates", "plain.csv"])
        found.append(factors.to_numpy())
        run("align", name, "plain.csv", "--log", "all", "-o", f"{name}.out.csv")
    np.testing.assert_allclose(*found, atol=1e-5)
    aligned = [pd.read_csv(f"counts.{kind}.out.csv").to_numpy() for kind in ("npy", "csv")]
    np.testing.assert_allclose(*aligned, atol=1e-6)
    np.testing.assert_allclose(aligned[1], ca.LatentAligner().fit_transform(np.log1p(counts), study()[1]), atol=1e-6)


def test_transform_takes_the_logarithms_and_features_that_fit_took():
    views = counted()
    said = run("fit", *VIEWS, *QUICK, "--log", "rna", "--top-variable", "rna=5", "-o", "m.covalign").stderr
    assert "next: covalign transform m.covalign --view rna=NEW -o OUT" in said
    model = ca.load("m.covalign")
    logs = np.log1p(views["rna"])[model._table.views["rna"].names]
    said = run("transform", "m.covalign", *VIEWS[:4], "-o", "new.csv").stderr
    assert "note: tables are read as those of the fit: --log rna\n" in said
    want = model.transform({"rna": logs, "protein": views["protein"]})
    np.testing.assert_allclose(pd.read_csv("new.csv", index_col=0).loc[PATIENTS], want, atol=1e-6)
    said = run("transform", "m.covalign", *VIEWS[2:4], "-o", "p.csv").stderr
    assert "as those of the fit" not in said  # no view of the fit that was logged is here
    logs.to_csv("logs.csv")
    new = ["transform", "m.covalign", "--view", "rna=logs.csv", "--force"]
    said = run(*new, "--log", "none", "-o", "new.csv").stderr
    assert "as those of the fit" not in said
    found = pd.read_csv("new.csv", index_col=0)
    np.testing.assert_allclose(found, model.transform({"rna": logs}), atol=1e-6)
    assert "--log needs the name of a view or all" in run(*new, "--log", "nun", "-o", "new.csv", code=2).stderr


def test_one_file_is_read_again_as_it_was():
    """Features without names are chosen by position; the covariates' order is that of the fit."""
    counts = counted()["rna"]
    np.save("counts.npy", counts.to_numpy())
    stage = np.resize(STAGES, N)
    study()[1].assign(stage=stage).to_csv("plain.csv", index=False)
    order = ["--ordered", "stage=" + "<".join(STAGES)]
    words = ["--covariates", "plain.csv", "-c", "age", "-c", "stage", *order, "--log", "all", "--top-variable", "5"]
    run("fit", "counts.npy", *words, *QUICK, "-o", "m.covalign")
    said = run("transform", "m.covalign", "counts.npy", "--covariates", "plain.csv", "-o", "t.npy").stderr
    assert "as those of the fit: --log all\n" in said
    logs = np.log1p(counts.to_numpy())
    at = np.sort(np.argsort(-logs.var(axis=0))[:5])
    Y = study()[1][["age"]].assign(stage=stage).reset_index(drop=True)
    np.testing.assert_allclose(np.load("t.npy"), ca.load("m.covalign").transform(logs[:, at], Y), atol=1e-6)
    info = run("info", "m.covalign").stdout
    assert "read with --log all" in info
    run("align", "counts.npy", "plain.csv", "-c", "age", "--log", "all", "-o", "a.csv", "--save", "a.covalign")
    run("transform", "a.covalign", "counts.npy", "-o", "again.csv")
    np.testing.assert_allclose(pd.read_csv("again.csv"), pd.read_csv("a.csv"), atol=1e-9)


def test_views_keep_their_scale_on_request():
    run("fit", *VIEWS, *QUICK, "--no-scale", "protein", "-o", "m.covalign")
    assert ca.load("m.covalign").scale == {"rna": True, "protein": False}
    run("fit", "protein.csv", "--covariates", "clinic.csv", *QUICK, "--no-scale", "all", "-o", "one.covalign")
    assert ca.load("one.covalign").scale is False


def test_stages_are_ordered():
    clinic = study()[1]
    stage = pd.Series(np.resize(STAGES, N), clinic.index)
    stage.iloc[3] = None
    clinic.assign(stage=stage, grade=np.resize([1, 2, 3], N)).to_csv("clinic.csv", index_label="patient")
    order = "stage=" + "<".join(STAGES)
    names = ["-c", "stage", "-c", "grade"]
    factors, _, _ = fitted(*names, "--ordered", order, "--ordered", "grade=1<3<2")
    assert factors.columns.tolist()[:2] == ["stage", "grade"]
    coded = pd.DataFrame({"stage": stage.map(STAGES.index, na_action="ignore"), "grade": np.resize([0, 2, 1], N)})
    np.testing.assert_allclose(factors.to_numpy(), expected(clinic=coded.astype(float)), atol=1e-6)
    said = run("fit", *VIEWS, *names, "--ordered", "stage=stage i<stage ii", "-o", "m", code=2).stderr
    assert "--ordered needs every level of column 'stage', got 'stage iii', 'stage iv' as well" in said
    said = run("align", "rna.csv", "clinic.csv", "--ordered", "stag=a<b", "-o", "m.csv", code=2).stderr
    assert "--ordered needs columns of covariates, got 'stag'" in said
    assert "Did you mean 'stage'" in said
    for wrong in ("stage", "stage=i", "=i<ii", "stage=i<<ii", "stage=i<i"):
        assert "--ordered needs NAME=A<B<C" in run("fit", *VIEWS, "--ordered", wrong, "-o", "m", code=2).stderr


# -- formats ----------------------------------------------------------------------------------------------------------


def test_a_zip_archive_of_one_table_is_read():
    study()[1].to_csv("clinic.csv.zip", index_label="patient")
    pd.testing.assert_frame_equal(ca.read_table("clinic.csv.zip"), ca.read_table("clinic.csv"))
    with zipfile.ZipFile("two.zip", "w") as archive:
        archive.write("clinic.csv")
        archive.write("rna.csv")
    with pytest.raises(ValueError, match=r"needs exactly one table .* inside, got 'clinic.csv', 'rna.csv'"):
        ca.read_table("two.zip")


def test_tables_of_r_are_read():
    rdata = pytest.importorskip("rdata")
    rdata.write_rds("clinic.rds", study()[1])
    rdata.write_rda("clinic.rda", {"clinic": study()[1]})
    for name in ("clinic.rds", "clinic.rda"):
        pd.testing.assert_frame_equal(ca.read_table(name), study()[1], check_index_type=False)
    rdata.write_rda("two.rda", {"a": study()[1], "b": study()[1]})
    with pytest.raises(ValueError, match="needs exactly one data frame or matrix, got 'a', 'b'"):
        ca.read_table("two.rda")


@pytest.mark.parametrize(("suffix", "module"), [(".xlsx", "openpyxl"), (".ods", "odf")])
def test_sheets_are_read(suffix, module):
    pytest.importorskip(module)
    book = f"study{suffix}"
    with pd.ExcelWriter(book) as file:
        study()[1].to_excel(file, sheet_name="clinic", index_label="patient")
        study()[0]["protein"].to_excel(file, sheet_name="protein")
    pd.testing.assert_frame_equal(ca.read_table(book), study()[1], check_index_type=False)
    data = ["--view", "rna=rna.csv", "--view", f"protein={book}::protein", "--covariates", book]
    np.testing.assert_allclose(fitted(data=data)[0].to_numpy(), expected(), atol=1e-6)
    said = run("fit", "rna.csv", "--covariates", f"{book}::clinik", "-o", "m", code=2).stderr
    assert "has no sheet 'clinik'. It has 'clinic', 'protein'. Did you mean 'clinic'?" in said


def test_a_sheet_without_its_package_names_the_extra(monkeypatch):
    Path("clinic.xlsx").touch()
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    said = run("fit", "rna.csv", "--covariates", "clinic.xlsx", "-o", "m", code=4).stderr
    assert "needs openpyxl" in said
    assert "covalign[excel]" in said


def test_an_unknown_format_lists_what_is_read_csv_first():
    Path("rna.doc").touch()
    for words in (["fit", "rna.doc", "--covariates", "clinic.csv"], ["fit", "rna.csv", "--covariates", "rna.doc"]):
        said = run(*words, "-o", "m", code=2).stderr
        assert "a table needs to be .csv, .tsv or .txt (also .gz or .zip), .xlsx" in said
        assert "torch" not in said


def test_a_cell_that_is_no_number_is_named():
    frame = pd.read_csv("protein.csv", index_col=0).astype(object)
    frame.iloc[4, 2] = "-"
    frame.to_csv("protein.csv")
    said = run("fit", *VIEWS, "-o", "m", code=2).stderr
    assert f"protein.csv needs numbers in every column, got '-' in row '{PATIENTS[4]}' of column 'protein2'" in said
    assert "leave cells without a number empty" in said


# -- check ------------------------------------------------------------------------------------------------------------


def rough():
    """A folder that nobody prepared: counts by barcode with genes as rows, and a clinic with all kinds of columns."""
    views = counted()
    odd = views["rna"].set_axis(barcodes(PATIENTS), axis=0)
    odd.iloc[5] = 90_000.0
    odd.T.to_csv("rna.csv", index_label="gene")
    gaps = views["protein"].mask(np.arange(9) == np.arange(N)[:, None] % 9)
    gaps.to_csv("protein.csv")
    clinic = study()[1].assign(
        stage=np.resize(STAGES, N), site="Berlin", sample=[f"id{i}x" for i in range(N)], weight=70.5
    )
    clinic["weight"] = clinic["weight"].astype(object)
    clinic.iloc[2, -1] = "heavy"
    clinic.iloc[:4, 0] = np.nan
    clinic.to_csv("clinic.csv", index_label="patient")


def test_check_says_what_it_understood_and_its_command_runs():
    rough()
    answer = json.loads(run("check", *VIEWS, "--json").stdout)
    rna, protein = answer["views"]["rna"], answer["views"]["protein"]
    assert (rna["samples"], rna["features"], rna["in_common"], rna["counts"]) == (N, 12, N, True)
    assert (protein["counts"], protein["gaps"]) == (False, pytest.approx(1 / 9))
    assert rna["outlying"] == [PATIENTS[5]]
    assert protein["outlying"] == []
    kinds = {name: facts["kind"] for name, facts in answer["covariates"].items()}
    assert kinds == {
        **{"age": "number", "dose": "number", "stage": "category", "site": "constant"},
        **{"sample": "identifier", "weight": "unusable"},
    }
    assert answer["covariates"]["age"]["gaps"] == 4
    why = f"'heavy' in row '{PATIENTS[2]}' is no number: use --na heavy if it marks a gap"
    assert answer["covariates"]["weight"]["why"] == why
    assert "rna.csv has samples as columns" in answer["notes"][0]
    words = shlex.split(answer["command"])
    assert words[:2] == ["covalign", "fit"]
    for flags in (["--match", "prefix"], ["--log", "rna"], ["--ordered", f"stage={'<'.join(STAGES)}"], ["-c", "age"]):
        assert any(words[i : i + 2] == flags for i in range(len(words))), flags
    assert "site" not in words
    run(*words[1:], "--supervision", "1", "--folds", "0", "--max-iter", "3")
    assert ca.load("model.covalign").covariate_names_ == ["age", "dose", "stage"]
    said = run("check", *VIEWS)
    assert f"rna: samples far from all others: '{PATIENTS[5]}'" in said.stdout
    assert said.stdout.splitlines()[-1] == answer["command"]


def test_check_finds_marks_of_gaps_and_survival():
    """The suggested command runs as it is, reads these texts as gaps and leaves survival to associations."""
    clinic = study()[1].astype({"age": object})
    clinic["os_months"], clinic["dead"] = np.arange(N) + 1.5, np.arange(N) % 2
    clinic["status"] = np.resize(["positive", "negative", "[Not Available]"], N)
    clinic["drug"] = np.resize(["none", "given"], N)
    clinic.iloc[[2, 3], 0] = ["-", "unk"]
    clinic.to_csv("clinic.csv", index_label="patient")
    answer = json.loads(run("check", *VIEWS, "--json").stdout)
    assert answer["marks_of_gaps"] == ["-", "unk", "[Not Available]"]
    assert {name: facts["gaps"] for name, facts in answer["covariates"].items() if facts["gaps"]} == {
        "age": 2,
        "status": N // 3,
    }
    assert answer["survival"] == ["os_months", "dead"]
    said = run("check", *VIEWS).stdout
    later = "covalign associations model.covalign clinic.csv --survival os_months,dead"
    assert f"'os_months' and 'dead' look like survival, which cannot be a covariate. After fit: {later}\n" in said
    words = shlex.split(said.splitlines()[-1])[1:]
    run(*words[:-2], *QUICK[2:], "--n-factors", "5")  # without the report
    model = ca.load("model.covalign")
    assert model.covariate_names_ == ["age", "dose", "status_positive", "drug_none"]
    assert model._reading["na"] == ["-", "unk", "[Not Available]"]
    run("associations", "model.covalign", "clinic.csv", "-o", "a.csv")
    assert set(pd.read_csv("a.csv")["column"]) == {"os_months", "dead"}
    words = shlex.split(run("check", *VIEWS, "-c", "dead").stdout.splitlines()[-1])
    assert "dead" in words  # asked for


def test_check_of_a_folder_finds_views_covariates_and_gene_sets(folder):
    """From a folder to a report with gene sets: what check suggests runs as it is."""
    rough()
    Path("h.gmt").write_text("A\t-\t" + "\t".join(f"rna{i}" for i in range(6)) + "\n")
    Path("read.me").write_text("nothing")
    pd.DataFrame({"feature": ["a", "b"], "factor": ["age", "age"], "loading": [1.0, 2.0]}).to_csv("found.csv")
    found = run("check", ".")
    assert "note: read.me is not used: no table" in found.stderr
    assert "note: found.csv is not used: it has columns of text" in found.stderr
    words = shlex.split(found.stdout.splitlines()[-1])
    assert words[:8] == ["covalign", "fit", "--view", "protein=protein.csv", "--view", "rna=rna.csv", *VIEWS[4:]]
    run(*words[1:], "--supervision", "1", "--folds", "0", "--max-iter", "3")
    assert ca.load("model.covalign").covariate_names_ == ["age", "dose", "stage"]
    assert pd.read_csv("report_sets.csv")["set"].unique().tolist() == ["A"]
    (folder / "empty").mkdir()
    assert "needs tables of features and a table of covariates, got an empty" in run("check", "empty", code=2).stderr


def test_check_of_a_folder_takes_sheets_marks_and_decimal_commas(folder):
    """A workbook whose first sheet is a note, "-" among numbers, decimal commas, samples as columns."""
    pytest.importorskip("openpyxl", reason="openpyxl is not installed")
    rna, protein = study()[0].values()
    for name in ("rna", "protein"):
        Path(f"{name}.csv").unlink()
    rna.T.to_csv("Rna level 3.txt", sep=";", decimal=",")
    odd = protein.astype(object)
    odd.iloc[3, 1] = "-"
    with pd.ExcelWriter("assays.xlsx") as book:
        pd.DataFrame({"Note": ["from the core facility", "normalised"]}).to_excel(
            book, sheet_name="Read me", index=False
        )
        odd.to_excel(book, sheet_name="protein")
        (protein + 1).T.to_excel(book, sheet_name="phospho")
    found = run("check", ".")
    assert "note: assays.xlsx::Read me is not used: it has no table of several rows and columns" in found.stderr
    assert "These texts are read as missing values: '-' (--na)." in found.stdout
    words = shlex.split(found.stdout.splitlines()[-1])[1:]
    views = [text for flag, text in pairwise(words) if flag == "--view"]
    assert views == ["Rna level 3=Rna level 3.txt", "protein=assays.xlsx::protein", "phospho=assays.xlsx::phospho"]
    run(*words[:-2], *QUICK[2:])
    model = ca.load("model.covalign")
    assert model._rows.X.shape == (N, rna.shape[1] + 2 * protein.shape[1])
    assert np.isnan(model._rows.X).sum() == 1
    np.testing.assert_allclose(model._rows.X[:, 0], rna.iloc[:, 0], rtol=1e-9)
    first = run("check", "--view", "protein=assays.xlsx", "--covariates", "clinic.csv", code=2).stderr
    assert "This is its first sheet, 'Read me'. Name another: assays.xlsx::protein." in first


@pytest.mark.parametrize(
    ("time", "event", "survival"),
    [
        ("OS.time", "OS", True),
        ("days_to_death", "vital_status", True),
        ("pfs_months", "pfs_status", True),
        ("time to relapse", "event", True),
        ("age_years", "dead", False),
        ("os_months", "smoker", False),
        ("cost", "costume", False),
    ],
)
def test_names_of_survival(time, event, survival):
    table = pd.DataFrame({time: [3.0, 4.5, 6.0], event: [0, 1, 0]})
    known = {name: overview.of_column(name, table[name]) for name in table}
    assert likely_survival(known, table) == ((time, event) if survival else None)


def test_times_that_only_the_dead_have_are_no_survival():
    """Clinical tables of TCGA have days_to_death beside days_to_last_followup, and words for the event."""
    table = pd.DataFrame(
        {
            "days_to_death": [100.0, np.nan, 300.0, np.nan],
            "days_to_last_followup": [100.0, 250.0, 300.0, 80.0],
            "vital_status": ["Dead", "Alive", "dead", "ALIVE"],
        }
    )
    known = {name: overview.of_column(name, table[name]) for name in table}
    assert likely_survival(known, table) == ("days_to_last_followup", "vital_status")


@pytest.mark.parametrize("words", [("1:DECEASED", "0:LIVING"), ("yes", "no"), ("1", "0"), ("Dead ", "alive"), (1, 0)])
def test_words_of_events(words):
    column = pd.Series([words[0], words[1], None, words[0]])
    assert event_numbers(column).tolist() == pytest.approx([1, 0, np.nan, 1], nan_ok=True)


def test_words_that_are_no_event():
    with pytest.raises(ValueError, match=r"'maybe'.*recode"):
        event_numbers(pd.Series(["dead", "maybe"], name="died"))


@pytest.mark.parametrize(
    ("levels", "order"),
    [
        (["Stage II", "stage III", "Stage I"], ["Stage I", "Stage II", "stage III"]),
        (["IIB", "I", "IIA", "II", "IV"], ["I", "II", "IIA", "IIB", "IV"]),
        (["T1", "T1a", "T3", "T2"], ["T1", "T1a", "T2", "T3"]),
        (["grade 2", "grade 1", "grade 3"], ["grade 1", "grade 2", "grade 3"]),
        (["batch 2", "batch 1", "batch 3"], None),
        (["d1", "d2", "d3"], None),
        (["stage i", "Stage I", "stage ii"], None),  # two names of a level
        (["B1", "low", "high"], None),
    ],
)
def test_levels_with_an_order(levels, order):
    assert overview.likely_order(levels) == order


def test_levels_that_differ_in_capitals():
    assert overview.same_but_for_capitals(["Male", "female", "male ", "Her2"]) == ["Male", "male "]


def test_check_asks_for_data_and_writes_nothing(folder):
    before = sorted(folder.iterdir())
    for command in ("check", "fit"):
        assert "data are needed once" in run(command, code=2).stderr  # before an output
    run("check", "protein.csv", "--covariates", "clinic.csv")
    assert sorted(folder.iterdir()) == before
    said = run("check", "protein.csv", "--covariates", "clinic.csv", "--match", "like", code=2).stderr
    assert "prefix" in said


def test_errors_of_commands_give_no_advice_for_python():
    pd.read_csv("protein.csv", index_col=0).assign(sex=np.resize(["f", "m"], N)).to_csv("protein.csv")
    clinic = study()[1]
    clinic.assign(free=[f"text {i}" for i in range(N)]).to_csv("free.csv", index_label="patient")
    for words in (["fit", *VIEWS], ["align", "rna.csv", "free.csv"]):
        said = run(*words, "-o", "m.npy", code=2).stderr
        assert "covalign: " in said
        assert not [word for word in ("columns=", "astype", "drop_first", "pandas") if word in said], said


# -- gaps with a mark -------------------------------------------------------------------------------------------------


def with_mark(mark="-", values=None):
    """The covariates with a mark in the column of ages, which has few distinct values."""
    clinic = study()[1].assign(age=np.arange(N) % 7 if values is None else values).astype({"age": object})
    clinic.iloc[3, 0] = mark
    clinic.to_csv("clinic.csv", index_label="patient")
    return clinic


@pytest.mark.parametrize("distinct", [3, 7, N])
def test_a_mark_among_the_numbers_of_a_covariate_is_named_with_its_remedy(distinct):
    """However few distinct numbers there are: they are no levels."""
    clinic = with_mark(values=np.arange(N) % distinct)
    views = study()[0]
    with pytest.raises(
        ValueError, match=r"got '-' among the numbers of column 'age' \(row .*read_table\(path, na='-'\)"
    ):
        ca.InformedFactorAnalysis(3).fit(views["protein"], clinic.astype(str))
    with pytest.raises(ValueError, match=r"if these are levels, use \.astype"):
        ca.LatentAligner().fit("protein.csv", "clinic.csv")
    for command in (["fit", *VIEWS, "-o", "m"], ["align", "protein.csv", "clinic.csv", "-o", "a.csv"]):
        said = run(*command, code=2).stderr
        assert f"got '-' among the numbers of column 'age' (row '{PATIENTS[3]}')" in said
        assert "read the table with --na -; if these are levels, put a letter before every number" in said
    said = run("check", *VIEWS).stdout
    assert "These texts are read as missing values: '-' (--na)." in said
    assert " --na - " in said.splitlines()[-1]
    with_mark("heavy", values=np.arange(N) % distinct)
    assert "use --na heavy if it marks a gap" in run("check", *VIEWS).stdout


def test_the_remedy_for_a_mark_works_in_all_places():
    clinic = with_mark()
    gap = clinic.assign(age=clinic["age"].where(clinic["age"] != "-").astype(float))
    factors, _, _ = fitted("--na", "-")
    np.testing.assert_allclose(factors.to_numpy(), expected(clinic=gap), atol=1e-6)
    pd.testing.assert_frame_equal(ca.read_table("clinic.csv", na="-"), gap, check_names=False)
    for suffix in ("parquet", "xlsx"):
        table = Path(f"clinic.{suffix}")
        getattr(clinic.astype({"age": str}), {"parquet": "to_parquet", "xlsx": "to_excel"}[suffix])(table)
        pd.testing.assert_frame_equal(ca.read_table(table, na=["-", "?"]), gap, check_names=False)
    views = pd.read_csv("protein.csv", index_col=0).astype(object)
    views.iloc[4, 2] = "-"
    views.to_csv("protein.csv")
    fitted("--na", "-")
    run("align", "protein.csv", "clinic.csv", "--na", "-", "--na", "?", "-o", "a.csv", code=2)  # a gap in Z is refused


def test_semicolons_decimal_commas_and_a_mark():
    Path("c.csv").write_text("id;age;sex\na;1,5;f\nb;-;m\nc;2,25;f\n")
    assert ca.read_table("c.csv", na="-")["age"].tolist()[::2] == [1.5, 2.25]


def test_a_mark_is_no_mark_in_names_and_other_kinds():
    Path("c.csv").write_text("id,age\n-,1\nb,2\nc,3\n")
    assert ca.read_table("c.csv", na="-").index.tolist() == ["-", "b", "c"]
    with pytest.raises(ValueError, match="na needs one text or several, got 3"):
        ca.read_table("c.csv", na=3)


# -- new rows ---------------------------------------------------------------------------------------------------------


def test_transform_matches_names_and_turns_views_as_fit_does():
    run("fit", *VIEWS, *QUICK, "-o", "m.covalign")
    run("transform", "m.covalign", *VIEWS, "-o", "plain.csv")
    views, want = study()[0], pd.read_csv("plain.csv", index_col=0)
    views["rna"].set_axis(barcodes(PATIENTS), axis=0).T.to_csv("rna.csv", index_label="gene")
    views["protein"].set_axis([f"x{name}-02B" for name in PATIENTS], axis=0).to_csv("protein.csv")
    rules = ["--match", "prefix", "--strip", "^x", "--transpose", "rna"]
    said = run("transform", "m.covalign", *VIEWS, *rules, "-o", "t.csv").stderr
    assert f"'x{PATIENTS[0]}-02B' is '{PATIENTS[0]}'" in said
    got = pd.read_csv("t.csv", index_col=0)
    assert got.index.tolist() == PATIENTS
    np.testing.assert_allclose(got, want.loc[PATIENTS], atol=1e-9)
    run("transform", "m.covalign", *VIEWS, "-o", "u.csv", code=2)


def test_transform_without_tables_matches_views_with_each_other():
    run("fit", *VIEWS, *QUICK, "-o", "m.covalign")
    study()[0]["rna"].set_axis(barcodes(PATIENTS), axis=0).to_csv("rna.csv")
    run("transform", "m.covalign", *VIEWS[:4], "--match", "prefix", "-o", "t.csv")
    assert pd.read_csv("t.csv", index_col=0).index.tolist() == PATIENTS


def test_transform_of_an_aligner_matches_its_confounders_by_prefix():
    clinic = study()[1].assign(batch=["a", "b"] * (N // 2))
    clinic.to_csv("clinic.csv", index_label="patient")
    fit = ["align", "protein.csv", "clinic.csv", "--confounder", "batch", "-o", "a.csv", "--save", "m.covalign"]
    run(*fit)
    study()[0]["protein"].set_axis(barcodes(PATIENTS), axis=0).T.to_csv("protein.csv", index_label="feature")
    new = ["transform", "m.covalign", "protein.csv", "--confounders", "clinic.csv", "-o", "t.csv"]
    run(*new, "--match", "prefix", "--transpose", "all")
    got, want = pd.read_csv("t.csv", index_col=0), pd.read_csv("a.csv", index_col=0)
    np.testing.assert_allclose(got, want, atol=1e-9)
    assert got.index.tolist() == PATIENTS


def test_new_names_are_matched_as_in_the_fit():
    views, clinic = study()
    views["rna"].set_axis(barcodes(PATIENTS), axis=0).T.to_csv("rna.csv", index_label="gene")
    views["protein"].set_axis([f"x{name}-02B" for name in PATIENTS], axis=0).to_csv("protein.csv")
    clinic.assign(age=["-", *clinic["age"][1:]], id=PATIENTS).to_csv("clinic.csv", index=False)
    rules = ["--match", "prefix", "--strip", "^x", "--na", "-", "--index", "id", "--transpose", "rna"]
    run("fit", *VIEWS, *QUICK, *rules, "-o", "m.covalign", "--factors-out", "f.csv")
    said = run("transform", "m.covalign", *VIEWS, "-o", "t.csv").stderr
    assert "of the fit: --transpose rna --match prefix --strip '^x' --na - --index id\n" in said
    found, want = pd.read_csv("t.csv", index_col=0), pd.read_csv("f.csv", index_col=0)
    np.testing.assert_allclose(found.loc[PATIENTS], want.loc[PATIENTS], atol=1e-5)
    views["rna"].to_csv("rna.csv")
    views["protein"].to_csv("protein.csv")
    said = run("transform", "m.covalign", *VIEWS, "--match", "exact", "--strip", "", "-o", "u.csv").stderr
    assert "of the fit: --transpose rna --na - --index id\n" in said
    assert "rna.csv has the features of the model as columns: it is not transposed" in said
    np.testing.assert_allclose(pd.read_csv("u.csv", index_col=0).loc[PATIENTS], want.loc[PATIENTS], atol=1e-5)


def test_a_new_fit_forgets_how_tables_were_read():
    counted()
    run("fit", *VIEWS, *QUICK, "--log", "rna", "-o", "m.covalign")
    model = ca.load("m.covalign")
    assert model.at(0.5)._reading == {"log": ["rna"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(*study()).save("n.covalign")
    assert ca.load("n.covalign")._reading is None


@pytest.mark.parametrize(("asked", "grouped"), [([], True), (["-c", "age", "-c", "donor"], False)])
def test_check_holds_the_rows_of_a_donor_out_together(asked, grouped):
    study()[1].assign(donor=[f"d{i % 8}" for i in range(N)]).to_csv("clinic.csv", index_label="patient")
    said = run("check", *VIEWS, *asked).stdout
    words = shlex.split(said.splitlines()[-1])
    assert ("--groups" in words) == grouped
    assert (("-c", "donor") in pairwise(words)) != grouped
    assert "--groups donor holds them out together" in said
    run(*words[1:-2], *QUICK[2:], "--n-factors", "9")
    assert ca.load("model.covalign").n_groups_ == (8 if grouped else None)


def test_a_covariate_that_a_view_has_as_a_feature_is_named():
    study()[1].rename(columns={"dose": "RNA3"}).to_csv("clinic.csv", index_label="patient")
    said = "covariate 'RNA3' is also feature 'rna3' of rna: a factor may be nothing but that feature"
    assert said in run("check", *VIEWS).stderr
    assert said in fitted()[2]
