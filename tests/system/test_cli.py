"""align and frontier from the command line: the answers of the library, with the files that people have."""

from __future__ import annotations

import gzip
import io
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import covalign as ca
from tests.conftest import correlated

testing = pytest.importorskip("typer.testing", reason="the command line needs typer")

from covalign._core import progress  # noqa: E402
from covalign.cli import app  # noqa: E402  (only where typer is installed)
from covalign.cli import watched as watching  # noqa: E402
from covalign.stream import is_source, open_rows  # noqa: E402

N = 120
NAMES = [f"s{i:03d}" for i in range(N)]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with a representation and covariates, and the commands run in it."""
    monkeypatch.chdir(tmp_path)
    Z, Y = data()
    np.save("Z.npy", Z)
    Y.to_csv("covariates.csv", index=False)
    return tmp_path


def data():
    Z, Y = correlated(0, N, 6, 3)
    return Z, pd.DataFrame(Y, columns=["age", "dose", "bmi"])


def run(*words, code=0):
    """The result of a command, which ended with this code."""
    result = testing.CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "200"})
    assert result.exit_code == code, (result.stdout, result.stderr, result.exception)
    return result


def text(frame, index=None):
    """A named table in a CSV file; its name."""
    frame = frame if index is None else frame.set_axis(index, axis=0)
    frame.to_csv("table.csv")
    return "table.csv"


def expected(Z=None, Y=None, **settings):
    Z, Y = (data()[0] if Z is None else Z), (data()[1] if Y is None else Y)
    return ca.LatentAligner(**settings).fit(Z, Y)


def the_same(found, want):
    np.testing.assert_allclose(found, want, rtol=1e-9, atol=1e-9)


# -- align ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "settings"),
    [
        ([], {}),
        (["--lam", "0.9"], {"lam": 0.9}),
        (["--regime", "exclusive"], {"regime": "exclusive"}),
        (["--regime", "tunable", "--lam", "0.2", "--shrinkage", "0.1"], {"lam": 0.2, "shrinkage": 0.1}),
        (["--keep-rest", "--folds", "3"], {"keep_rest": True, "folds": 3}),
    ],
)
def test_align_writes_what_the_library_computes(words, settings):
    run("align", "Z.npy", "covariates.csv", "-o", "out.npy", *words)
    the_same(np.load("out.npy"), expected(**settings).transform(data()[0]))


def test_a_budget_of_coupling():
    answer = json.loads(
        run("align", "Z.npy", "covariates.csv", "-o", "o.npy", "--max-coupling", "0.1", "--json").stdout
    )
    want = expected().at(max_coupling=0.1)
    assert answer["lam"] == pytest.approx(want.lam)
    assert answer["coupling"] <= 0.1 + 1e-9
    the_same(np.load("o.npy"), want.transform(data()[0]))


def test_the_exact_trade_off():
    words = ["--max-coupling", "0.1", "--exact", "--weight", "dose=3", "--uncoupled", "age,dose"]
    more = ["-o", "o.npy", "--report", "exact.html", "--json"]
    answer = json.loads(run("align", "Z.npy", "covariates.csv", *more, *words).stdout)
    want = expected().at(max_coupling=0.1, exact=True, weights={"dose": 3}, uncoupled=[("age", "dose")])
    flags = shlex.split(ca.report.summary(want)["limits"]["flags"])
    again = json.loads(run("align", "Z.npy", "covariates.csv", "-o", "p.npy", "--json", *flags).stdout)
    assert again["coupling"] == pytest.approx(answer["coupling"], abs=1e-4)  # weights are written with four digits
    assert 'covalign align Z.npy covariates.csv"' in Path("exact.html").read_text()  # the regime's flags follow it
    assert (answer["regime"], answer["lam"]) == ("exact", None)
    assert answer["gap"] == want.gap_
    the_same(np.load("o.npy"), want.transform(data()[0]))


def test_json_has_the_numbers_of_the_summary():
    answer = json.loads(run("align", "Z.npy", "covariates.csv", "-o", "out.npy", "--json").stdout)
    want = expected()
    summary = want.summary()
    for name in ("age", "dose", "bmi"):
        for column in ("in_sample", "held_out", "low", "high"):
            assert answer["alignment"][name][column] == pytest.approx(summary.loc[name, column])
    assert answer["rows"] == N
    assert answer["files"] == ["out.npy"]
    assert (answer["regime"], answer["lam"]) == ("tunable", 0.5)
    assert answer["shrinkage"] == pytest.approx(want.shrinkage_)


def test_a_fixed_shrinkage_has_nothing_held_out():
    answer = json.loads(run("align", "Z.npy", "covariates.csv", "-o", "o.npy", "--shrinkage", "0", "--json").stdout)
    assert answer["alignment"]["age"]["held_out"] is None
    assert answer["alignment"]["age"]["in_sample"] > 0


def test_the_table_for_people():
    result = run("align", "Z.npy", "covariates.csv", "-o", "out.npy", "--report", "report.html")
    head, *rows = result.stdout.splitlines()
    assert head.split("  ")[0] == "covariate"
    assert [row.split()[0] for row in rows[:4]] == ["age", "dose", "bmi", "mean"]
    assert f"{expected().alignment_['age']:.3f}" in rows[0]
    assert result.stdout.splitlines()[-2:] == ["out.npy", "report.html"]
    assert "next: covalign frontier Z.npy covariates.csv" in result.stderr
    assert "Z.npy aligned with covariates.csv" in Path("report.html").read_text()


@pytest.mark.parametrize("name", ["o.npy", "o.parquet", "o.zarr", "o.csv", "o.tsv", "o.csv.gz"])
def test_every_format_holds_the_same(name):
    run("align", "Z.npy", "covariates.csv", "-o", name)
    kind = name.split(".", 1)[1]
    if kind == "zarr":
        found = np.asarray(pytest.importorskip("zarr").open_array(name)[:])
    elif kind == "npy":
        found = np.load(name)
    else:
        frame = pd.read_parquet(name) if kind == "parquet" else pd.read_csv(name, sep="\t" if kind == "tsv" else ",")
        assert frame.columns.tolist() == ["age", "dose", "bmi"]
        found = frame.to_numpy()
    the_same(found, expected().transform(data()[0]))


def test_a_choice_of_covariates_and_confounders():
    Z, Y = data()
    Y["batch"] = ["a", "b", "c"] * (N // 3)
    Y.to_csv("covariates.csv", index=False)
    run("align", "Z.npy", "covariates.csv", "-c", "dose", "--confounder", "batch", "-o", "out.npy")
    want = ca.LatentAligner().fit(Z, Y[["dose", "batch"]], confounders=["batch"])
    the_same(np.load("out.npy"), want.transform(Z, confounders=Y[["batch"]]))
    run("align", "Z.npy", "covariates.csv", "--confounder", "batch", "-o", "all.npy")
    assert np.load("all.npy").shape == (N, 3)


def test_gaps_are_pairs_unless_told_otherwise():
    Z, Y = data()
    Y.loc[:30, "dose"] = np.nan
    Y.to_csv("covariates.csv", index=False)
    answer = json.loads(run("align", "Z.npy", "covariates.csv", "-o", "a.npy", "--json").stdout)
    assert answer["alignment"]["dose"]["rows"] == N - 31
    assert answer["rows"] == N
    the_same(np.load("a.npy"), ca.LatentAligner().fit(Z, Y).transform(Z))
    answer = json.loads(run("align", "Z.npy", "covariates.csv", "-o", "b.npy", "--missing", "drop", "--json").stdout)
    assert answer["rows"] == N - 31
    assert "dose" in run("align", "Z.npy", "covariates.csv", "-o", "c.npy", "--missing", "raise", code=2).stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--lam", "0.5", "--regime", "strongest"], "--regime strongest"),
        (["--lam", "0.5", "--max-coupling", "1"], "--max-coupling"),
        (["--exact"], "--exact needs --max-coupling or --uncoupled"),
        (["--weight", "dose=3"], "need --exact"),
        (["--exact", "--max-coupling", "1", "--weight", "dose"], "--weight needs NAME=NUMBER"),
        (["--exact", "--max-coupling", "1", "--weight", "dos=2"], "Did you mean 'dose'"),
        (["--exact", "--uncoupled", "age"], "--uncoupled needs NAME,NAME"),
        (["--exact", "--max-coupling", "1", "--regime", "strongest"], "--max-coupling"),
        (["--lam", "2"], "between 0"),
        (["--shrinkage", "much"], "'auto' or a number"),
        (["--regime", "strong"], "strongest"),
        (["--folds", "1"], "at least 2"),
    ],
)
def test_settings_that_make_no_sense(words, says, folder):
    assert says in run("align", "Z.npy", "covariates.csv", "-o", "out.npy", *words, code=2).stderr
    assert not (folder / "out.npy").exists()


def test_a_warning_is_one_line():
    _, Y = data()
    Y.assign(twice=2 * Y["age"]).to_csv("covariates.csv", index=False)
    result = run("align", "Z.npy", "covariates.csv", "-o", "out.npy", "--regime", "strongest")
    warned = [line for line in result.stderr.splitlines() if line.startswith("warning: ")]
    assert len(warned) == 1
    assert "twice" in warned[0]
    assert ".py:" not in result.stderr


@pytest.mark.skipif(not hasattr(ca.LatentAligner, "save"), reason="LatentAligner has no save yet")
def test_a_saved_aligner_transforms_new_rows():
    Z, _ = data()
    pd.DataFrame(Z, columns=[f"d{i}" for i in range(6)]).to_csv("Z.csv", index=False)
    run("align", "Z.csv", "covariates.csv", "--save", "model.covalign")
    want = expected().transform(Z[:20])
    # Columns by name, in any order, beside others.
    new = pd.DataFrame(Z[:20], index=NAMES[:20], columns=[f"d{i}" for i in range(6)])[
        ["d3", "d0", "d1", "d2", "d5", "d4"]
    ]
    new.assign(other="x").to_csv("new.csv")
    result = run("transform", "model.covalign", "new.csv", "-o", "new_out.csv")
    assert result.stdout.startswith("new_out.csv: 20 x 3 (age, dose, bmi)")
    found = pd.read_csv("new_out.csv", index_col=0)
    assert found.index.tolist() == NAMES[:20]
    the_same(found.to_numpy(), want)
    new.assign(other=1.0).to_parquet("new.parquet")
    run("transform", "model.covalign", "new.parquet", "-o", "new_out.npy")
    the_same(np.load("new_out.npy"), want)
    assert "covalign fit" in run("transform", "model.covalign", "new.csv", "-o", "x.npy", "--return-std", code=2).stderr


@pytest.mark.skipif(not hasattr(ca.LatentAligner, "save"), reason="LatentAligner has no save yet")
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_new_rows_need_the_columns_of_the_model(suffix):
    Z = pd.DataFrame(data()[0], NAMES, [f"dim{i}" for i in range(6)])
    Z.to_csv("Z.csv")
    run("align", "Z.csv", "covariates.csv", "--save", "model.covalign")
    new = Z.rename(columns={"dim3": "Dim_3"})
    new.to_csv("new.csv") if suffix == "csv" else new.to_parquet("new.parquet")
    stderr = run("transform", "model.covalign", f"new.{suffix}", "-o", "out.npy", code=2).stderr
    assert "has no column 'dim3'" in stderr
    assert "Did you mean 'Dim_3'" in stderr
    assert len(stderr.splitlines()) == 1


def test_new_rows_need_their_confounders(folder):
    Z, Y = data()
    Y["batch"] = ["a", "b"] * (N // 2)
    Y.to_csv("covariates.csv", index=False)
    run("align", "Z.npy", "covariates.csv", "--confounder", "batch", "--save", "model.covalign")
    assert "batch" in run("transform", "model.covalign", "Z.npy", "-o", "x.npy", code=2).stderr
    run("transform", "model.covalign", "Z.npy", "--confounders", "covariates.csv", "-o", "x.npy")
    want = ca.LatentAligner().fit(Z, Y, confounders=["batch"]).transform(Z, confounders=Y[["batch"]])
    the_same(np.load("x.npy"), want)
    broken = Z.copy()
    broken[-1, 2] = np.nan
    np.save("broken.npy", broken)
    words = ["broken.npy", "--confounders", "covariates.csv", "-o", "y.npy"]
    assert "row 119" in run("transform", "model.covalign", *words, code=2).stderr
    assert not [path.name for path in folder.iterdir() if path.name.startswith((".", "y"))]


# -- names of rows ----------------------------------------------------------------------------------------------------


def named_z():
    Z, _ = data()
    pd.DataFrame(Z, NAMES, [f"d{i}" for i in range(6)]).to_csv("Z.csv")
    return "Z.csv"


def test_rows_are_matched_by_name():
    Z, Y = data()
    table = text(Y.set_axis(NAMES, axis=0).sample(frac=1, random_state=1))
    result = run("align", named_z(), table, "-o", "out.csv")
    found = pd.read_csv("out.csv", index_col=0)
    assert found.index.tolist() == NAMES
    the_same(found.to_numpy(), expected().transform(Z))
    assert "not in" not in result.stderr


def test_rows_that_do_not_match_are_counted():
    Z, Y = data()
    there = Y.set_axis(NAMES, axis=0).iloc[7:]
    more = pd.concat([there, pd.DataFrame(0.0, ["x1", "x2"], Y.columns)])
    result = run("align", named_z(), text(more.sample(frac=1, random_state=1)), "-o", "out.npy")
    assert "2 of 115 rows of table.csv are not in Z.csv: left out" in result.stderr
    assert "7 of 120 rows of Z.csv are not in table.csv: all their covariates are missing" in result.stderr
    gaps = Y.copy()
    gaps.iloc[:7] = np.nan
    the_same(np.load("out.npy"), expected(Y=gaps).transform(Z))


def test_rows_without_confounders_cannot_be_used():
    _, Y = data()
    table = text(Y.assign(batch=["a", "b"] * (N // 2)).set_axis(NAMES, axis=0).iloc[5:])
    assert "s000" in run("align", named_z(), table, "--confounder", "batch", "-o", "o.npy", code=2).stderr


def test_no_name_in_common_is_an_error_unless_by_position():
    Z, Y = data()
    table = text(Y, [f"t{i}" for i in range(N)])
    stderr = run("align", named_z(), table, "-o", "out.npy", code=2).stderr
    assert "--by-position" in stderr
    assert "'s000'" in stderr
    assert "'t0'" in stderr
    run("align", "Z.csv", table, "-o", "out.npy", "--by-position")
    the_same(np.load("out.npy"), expected().transform(Z))


def test_a_name_twice_is_an_error():
    _, Y = data()
    table = text(Y, [*NAMES[:-1], NAMES[0]])
    assert "'s000' more than once in table.csv" in run("align", named_z(), table, "-o", "o.npy", code=2).stderr


def test_without_names_lengths_need_to_be_equal():
    _, Y = data()
    Y.iloc[1:].to_csv("covariates.csv", index=False)
    stderr = run("align", "Z.npy", "covariates.csv", "-o", "out.npy", code=2).stderr
    assert "120" in stderr
    assert "119" in stderr


def test_names_that_are_not_used_are_said_and_kept():
    _, Y = data()
    table = text(Y, NAMES)
    assert "by position" in run("align", "Z.npy", table, "-o", "out.csv").stderr
    assert pd.read_csv("out.csv", index_col=0).index.tolist() == NAMES
    assert "by position" not in run("align", "Z.npy", text(Y), "-o", "out2.csv").stderr  # 0, 1, 2 say nothing


@pytest.mark.parametrize("words", [[], ["--by-position"]])
def test_rows_without_names_take_those_of_the_table(words):
    Z, Y = data()
    pd.DataFrame(Z).to_csv("Z.csv", index=False)
    table = text(Y, NAMES)
    run("align", "Z.csv", table, "-o", "out.csv", *words)
    found = pd.read_csv("out.csv", index_col=0)
    assert found.index.tolist() == NAMES
    the_same(found.to_numpy(), expected().transform(Z))
    run("frontier", "Z.csv", table, "--lams", "0.5", *words)


def test_an_index_of_several_levels_is_refused():
    Z, Y = data()
    levels = pd.MultiIndex.from_arrays([NAMES, NAMES])
    pd.DataFrame(Z, levels, [f"d{i}" for i in range(6)]).to_parquet("Z.parquet")
    Y.set_axis(levels, axis=0).to_parquet("Y.parquet")
    for files in (["Z.npy", "Y.parquet"], ["Z.parquet", "covariates.csv"]):
        assert "of 2 levels" in run("align", *files, "-o", "out.npy", code=2).stderr


def test_a_column_of_names_that_is_said():
    Z, Y = data()
    ids = [f"{i % 40:03d}" for i in range(N)]  # not distinct, so no names by themselves
    Y.insert(0, "clinic", ids)
    Y["patient"] = [f"{i:03d}" for i in range(N)]  # numbers, of which the zeros count
    Y.sample(frac=1, random_state=2).to_csv("table.csv", index=False)
    pd.DataFrame(Z).assign(patient=Y["patient"]).to_csv("Z.csv", index=False)
    words = ["-c", "age", "-c", "dose", "-c", "bmi", "-o", "out.csv"]
    run("align", "Z.csv", "table.csv", "--index", "patient", *words)
    found = pd.read_csv("out.csv", converters={0: str}).set_index("Unnamed: 0")
    assert found.index.tolist()[:3] == ["000", "001", "002"]
    the_same(found.to_numpy(), expected().transform(Z))
    assert "'patient'" in run("align", "Z.csv", "table.csv", "--index", "patiant", *words[:-1], "o.npy", code=2).stderr


def test_numbers_of_rows_as_a_covariate_are_said():
    _, Y = data()
    Y.insert(0, "case", range(N))
    Y.to_csv("covariates.csv", index=False)
    result = run("align", "Z.npy", "covariates.csv", "-o", "a.npy", "--json")
    assert "--index case" in result.stderr
    assert "case" in json.loads(result.stdout)["alignment"]
    result = run("align", "Z.npy", "covariates.csv", "-o", "b.npy", "--json", "--index", "case")
    assert "--index case" not in result.stderr
    assert [*json.loads(result.stdout)["alignment"]] == ["age", "dose", "bmi"]


def test_na_is_a_name_and_nothing_is_none(folder):
    _, Y = data()
    table = text(Y, ["NA", *NAMES[1:]])
    pd.DataFrame(data()[0], ["NA", *NAMES[1:]]).to_csv("Z.csv")
    assert "missing" not in run("align", "Z.csv", table, "-o", "out.npy").stderr
    table = text(Y, ["", *NAMES[1:]])
    assert "needs a name" in run("align", "Z.csv", table, "-o", "o.npy", code=2).stderr


# -- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["tsv", "semicolon", "gz", "bom", "txt", "R", "parquet", "npy", "npz"])
def test_tables_as_people_have_them(kind):
    Z, Y = data()
    named = Y.set_axis(NAMES, axis=0).iloc[::-1]
    name = {"semicolon": "t.csv", "gz": "t.csv.gz", "bom": "t.csv", "R": "t.txt"}.get(kind, f"t.{kind}")
    if kind == "tsv":
        named.to_csv(name, sep="\t")
    elif kind in ("semicolon", "txt"):
        named.to_csv(name, sep=";" if kind == "semicolon" else " ")
    elif kind == "R":  # write.table: the header has no place for names
        body = named.to_csv(sep="\t", header=False)
        Path(name).write_text("\t".join(named.columns) + "\n" + body)
    elif kind == "gz":
        Path(name).write_bytes(gzip.compress(named.to_csv().encode()))
    elif kind == "bom":
        named.to_csv(name, encoding="utf-8-sig")
    elif kind == "parquet":
        named.to_parquet(name)
    elif kind == "npy":
        np.save(name, Y.to_numpy())
    else:
        np.savez(name, Z=Z, Y=Y.to_numpy(), names=np.array(Y.columns, dtype=str))
    run("align", named_z(), name, "-o", "out.npy")
    the_same(np.load("out.npy"), expected().transform(Z))


@pytest.mark.parametrize("made", ["empty lines", "decimal commas", "marks for gaps"])
def test_a_first_column_of_numbers_is_a_covariate(made):
    Z, Y = data()
    if made == "empty lines":
        Path("covariates.csv").write_text("\n\n" + Y.to_csv(index=False))
    elif made == "decimal commas":
        Y.to_csv("covariates.csv", index=False, sep=";", decimal=",")
    else:  # which are not known as such, so that the column is not one of numbers
        Y.astype({"age": object}).replace({"age": {Y["age"][3]: "unknown"}}).to_csv("covariates.csv", index=False)
        assert "column 'age'" in run("align", "Z.npy", "covariates.csv", "-o", "out.npy", code=2).stderr
        return
    run("align", "Z.npy", "covariates.csv", "-o", "out.npy")
    the_same(np.load("out.npy"), expected().transform(Z))


@pytest.mark.parametrize("made", ["a line before", "separators at the ends"])
def test_rows_longer_than_the_header_are_refused(made):
    head, *rows = data()[1].to_csv(index=False).splitlines()
    lines = ["made by hand", head, *rows] if made == "a line before" else [head, *(f"{row}," for row in rows)]
    Path("covariates.csv").write_text("\n".join(lines))
    words = ["-c", "age"] if made == "separators at the ends" else []
    assert "first line" in run("align", "Z.npy", "covariates.csv", "-o", "out.npy", *words, code=2).stderr


def test_names_with_commas_quotes_and_umlauts_survive():
    Z, Y = data()
    columns = ['Größe, "cm"', "naïve\u2009T", "Δ;dose"]
    Y.set_axis(columns, axis=1).to_csv("covariates.csv", index=False)
    result = run("align", "Z.npy", "covariates.csv", "-o", "out.csv", "--json")
    assert list(json.loads(result.stdout)["alignment"]) == columns
    found = pd.read_csv("out.csv")
    assert found.columns.tolist() == columns
    the_same(found.to_numpy(), expected().transform(Z))
    assert "Größe" in run("align", "Z.npy", "covariates.csv", "-c", columns[0], "-o", "o.npy").stdout


def test_a_typo_is_answered_by_the_nearest_name():
    stderr = run("align", "Z.npy", "covariates.csv", "-c", "dosis", "-o", "out.npy", code=2).stderr
    assert "'covariates.csv' has no column 'dosis'" in stderr
    assert "Did you mean 'dose'?" in stderr
    assert "'age', 'dose', 'bmi'" in stderr
    assert "Did you mean 'bmi'?" in run("align", "Z.npy", "covariates.csv", "-c", "BMI", "-o", "out.npy", code=2).stderr
    assert "aeg" in run("align", "Z.npy", "covariates.csv", "--confounder", "aeg", "-o", "out.npy", code=2).stderr
    both = ["-c", "age", "--confounder", "age"]
    assert "as both" in run("align", "Z.npy", "covariates.csv", *both, "-o", "out.npy", code=2).stderr


def test_a_column_twice_is_an_error():
    _, Y = data()
    Y.set_axis(["age", "dose", "age"], axis=1).to_csv("covariates.csv", index=False)
    assert "'age'" in run("align", "Z.npy", "covariates.csv", "-o", "out.npy", code=2).stderr


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe\x00a,b\n1", b'"open,quote\n1,2'], ids=["empty", "not text", "open quote"]
)
def test_a_file_that_is_no_table(content, folder):
    (folder / "covariates.csv").write_bytes(content)
    stderr = run("align", "Z.npy", "covariates.csv", "-o", "out.npy", code=2).stderr
    assert len(stderr.splitlines()) == 1
    assert "Traceback" not in stderr


def test_nothing_is_unpickled(folder):
    class Dangerous:
        def __reduce__(self):
            return (open, (str(folder / "pwned"), "w"))

    np.save("Y.npy", np.array([Dangerous()] * N, dtype=object), allow_pickle=True)
    np.savez("Y.npz", Y=np.array([Dangerous()] * N, dtype=object))
    for name in ("Y.npy", "Y.npz"):
        run("align", "Z.npy", name, "-o", "out.npy", code=2)
        run("align", name, "covariates.csv", "-o", "out.npy", code=2)
    assert not (folder / "pwned").exists()


def test_cells_bring_their_covariates_along():
    anndata = pytest.importorskip("anndata", reason="anndata is not installed")
    Z, Y = data()
    cells = anndata.AnnData(np.zeros((N, 2)), obs=Y.set_axis(NAMES, axis=0))
    cells.obsm["X_pca"] = Z
    cells.write_h5ad("cells.h5ad")
    run("align", "cells.h5ad", "--key", "obsm/X_pca", "-o", "out.csv")
    found = pd.read_csv("out.csv", index_col=0)
    assert found.index.tolist() == NAMES
    the_same(found.to_numpy(), expected().transform(Z))
    table = text(Y.set_axis(NAMES, axis=0).iloc[::-1])
    run("align", "cells.h5ad", table, "--key", "X_pca", "-o", "out.npy")
    the_same(np.load("out.npy"), expected().transform(Z))
    assert "obsm/X_pca" in run("align", "cells.h5ad", "--key", "obsm/X_umap", "-o", "o.npy", code=2).stderr
    run("align", named_z(), "cells.h5ad", "-o", "obs.npy")  # obs as a table
    the_same(np.load("obs.npy"), expected().transform(Z))


@pytest.mark.parametrize("names", ["pandas", "column", "none"])
def test_parquet_may_hold_both(names):
    Z, Y = data()
    both = pd.concat([pd.DataFrame(Z, columns=[f"d{i}" for i in range(6)]), Y], axis=1)
    if names == "pandas":
        both = both.set_axis(NAMES, axis=0)
    if names == "column":
        both.insert(0, "cell", NAMES)
    both.to_parquet("both.parquet")
    choice = ["-c", "age", "-c", "dose", "-c", "bmi"]
    run("align", "both.parquet", *choice, "-o", "out.csv")
    found = pd.read_csv("out.csv", index_col=None if names == "none" else 0)
    the_same(found.to_numpy(), expected().transform(Z))
    if names != "none":
        assert found.index.tolist() == NAMES
        both.drop(columns=Y.columns).to_parquet("Z.parquet")
        run("align", "Z.parquet", text(Y.set_axis(NAMES, axis=0).iloc[::-1]), "-o", "out.npy")
        the_same(np.load("out.npy"), expected().transform(Z))
    assert "'dose'" in run("align", "both.parquet", "-c", "dosis", "-o", "o.npy", code=2).stderr
    assert "--covariate" in run("align", "both.parquet", "-o", "o.npy", code=2).stderr


def test_what_embed_wrote_has_its_labels():
    Z, Y = data()
    Y["colour"] = ["red", "green", "blue", ""] * (N // 4)
    columns = {f"column_{name}": Y[name].to_numpy(dtype=str if name == "colour" else None) for name in Y}
    np.savez("z.npz", Z=Z, files=np.array(NAMES), model=np.array("m"), **columns)
    answer = json.loads(run("align", "z.npz", "-o", "out.npy", "--json").stdout)
    assert [*answer["alignment"]] == ["age", "dose", "bmi", "colour_green", "colour_red"]
    assert answer["alignment"]["colour_red"]["rows"] == 3 * N // 4
    the_same(np.load("out.npy"), expected(Y=Y.replace("", None)).transform(Z))


# -- outputs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["-o", "--report", "--save"])
def test_nothing_is_replaced_unless_forced(option, folder):
    name = {"-o": "o.npy", "--report": "r.html", "--save": "m.covalign"}[option]
    (folder / name).write_text("precious")
    # Before anything is read: the data need not even exist.
    assert "--force" in run("align", "no.npy", "no.csv", option, name, code=3).stderr
    assert (folder / name).read_text() == "precious"
    if option != "--save" or hasattr(ca.LatentAligner, "save"):
        run("align", "Z.npy", "covariates.csv", option, name, "--force")
        assert (folder / name).read_bytes() != b"precious"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "Nothing to write. Give an output file with --out, --report or --save."),
        (["-o", "out.xlsx"], ".parquet"),
        (["-o", "out.npy.gz"], ".csv.gz"),
        (["-o", "nowhere/out.npy"], "folder"),
        (["-o", "Z.npy", "--force"], "an input"),
        (["-o", "a.npy", "--save", "a.npy"], "--out"),
        (["-o", "a.npy", "--lam", "2"], "between 0"),
        (["-o", "a.npy", "--max-coupling", "nan"], "--max-coupling needs"),
        (["--report", "report.pdf"], ".html"),
    ],
)
def test_outputs_are_looked_at_first(words, says):
    assert says in run("align", "Z.npy", "no.csv", *words, code=2).stderr


@pytest.mark.parametrize(
    ("option", "name"), [("-o", "o.npy"), ("-o", "o.zarr"), ("--report", "r.html"), ("--save", "m")]
)
def test_a_folder_is_never_replaced_by_a_file(option, name, folder):
    (folder / name).mkdir()
    (folder / name / "precious").touch()
    # Before anything is read: the data need not even exist.
    assert "got the folder" in run("align", "no.npy", "no.csv", option, name, "--force", code=2).stderr
    assert (folder / name / "precious").exists()


def test_a_zarr_is_replaced_by_another():
    run("align", "Z.npy", "covariates.csv", "-o", "o.zarr", "--lam", "0")
    run("align", "Z.npy", "covariates.csv", "-o", "o.zarr", "--force")
    the_same(next(open_rows("o.zarr").chunks()), expected().transform(data()[0]))


def test_a_folder_that_may_not_be_written_to_is_noticed_first(monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert "is not writable" in run("align", "no.npy", "no.csv", "-o", "out.npy", code=2).stderr


def test_failure_leaves_nothing_behind(folder):
    Z, _ = data()
    Z[3, 1] = np.nan
    np.save("Z.npy", Z)
    before = sorted(path.name for path in folder.iterdir())
    for name in ("o.npy", "o.parquet", "o.zarr", "o.csv"):
        stderr = run("align", "Z.npy", "covariates.csv", "-o", name, "--report", "r.html", code=2).stderr
        assert "row 3" in stderr
    assert sorted(path.name for path in folder.iterdir()) == before


def test_a_file_that_is_not_there():
    assert "no.npy" in run("align", "no.npy", "covariates.csv", "-o", "out.npy", code=2).stderr
    assert "no.csv" in run("align", "Z.npy", "no.csv", "-o", "out.npy", code=2).stderr


# -- frontier ---------------------------------------------------------------------------------------------------------


def test_frontier_is_that_of_the_library(folder):
    Z, Y = data()
    words = ["--lams", "0,0.25,1", "-o", "f.csv", "--figure", "f.png"]
    result = run("frontier", "Z.npy", "covariates.csv", *words)
    want = ca.cross_validated_frontier(Z, Y, [0, 0.25, 1])
    found = pd.read_csv("f.csv")
    pd.testing.assert_frame_equal(found, pd.DataFrame(want), check_exact=False, rtol=1e-9)
    assert (folder / "f.png").read_bytes().startswith(b"\x89PNG")
    assert [line.split()[0] for line in result.stdout.splitlines()[1:5]] == want["regime"].tolist()
    assert f"{want['alignment'][1]:.3f}" in result.stdout


def test_frontier_for_machines():
    Z, Y = data()
    answer = json.loads(
        run("frontier", "Z.npy", "covariates.csv", "--lams", "0.5", "--shrinkage", "0", "--json").stdout
    )
    want = ca.cross_validated_frontier(Z, Y, [0.5], shrinkage=0.0)
    assert [point["regime"] for point in answer["frontier"]] == ["tunable", "exclusive"]
    assert answer["frontier"][0]["alignment"] == pytest.approx(want["alignment"][0])
    assert answer["frontier"][0]["covariates"]["dose"] == pytest.approx(want["dose"][0])
    assert answer["frontier"][1]["lam"] is None
    assert (answer["shrinkage"], answer["rows"]) == (0.0, N)


@pytest.mark.parametrize("lams", ["0,2", "a", "", "0;1"])
def test_lambdas_are_numbers_between_0_and_1(lams):
    assert "--lams" in run("frontier", "Z.npy", "covariates.csv", "--lams", lams, code=2).stderr


# -- the process ------------------------------------------------------------------------------------------------------


def process(*words, first="", **options):
    """covalign in a process of its own, where ``first`` is run before."""
    # A process started in the background may have been told to ignore SIGINT.
    code = f"import signal, sys\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n{first}\n"
    code += "from covalign.cli import main; main()"
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", code, *map(str, words)], **pipes, **options)


def test_standard_output_has_the_answer_and_nothing_else():
    _, Y = data()
    table = text(Y.set_axis(NAMES, axis=0).iloc[2:])
    with process("align", named_z(), table, "-o", "out.npy", "--json") as running:
        out, err = running.communicate(timeout=120)
    assert running.returncode == 0, err
    assert json.loads(out)["files"] == ["out.npy"]
    assert err == "2 of 120 rows of Z.csv are not in table.csv: all their covariates are missing\n"


def test_an_exit_code_is_that_of_the_process(folder):
    words = ["align", "Z.npy", "covariates.csv", "-o", "out.zarr"]
    with process(*words, first="sys.modules['zarr'] = None") as running:
        out, err = running.communicate(timeout=120)
    assert (running.returncode, out) == (4, ""), err
    assert err.startswith("covalign: ")
    assert len(err.splitlines()) == 1
    assert not (folder / "out.zarr").exists()


@pytest.mark.parametrize(("words", "code"), [(["-c", "aeg", "-o", "out.npy"], 2), (["-o", "covariates.csv"], 3)])
def test_errors_are_one_line_and_leave_nothing(words, code, folder):
    result = run("align", "Z.npy", "covariates.csv", *words, code=code)
    assert result.stdout == ""
    assert result.stderr.startswith("covalign: ")
    assert len(result.stderr.splitlines()) == 1
    assert not (folder / "out.npy").exists()


@pytest.mark.parametrize(("words", "code"), [(["-c", "aeg"], 2), (["-o", "covariates.csv"], 3)])
def test_machines_are_told_of_errors_too(words, code):
    result = run(
        "align", "Z.npy", "covariates.csv", *(words if "-o" in words else [*words, "-o", "o.npy"]), "--json", code=code
    )
    answer = json.loads(result.stdout)
    assert answer["exit_code"] == code
    assert result.stderr == f"covalign: {answer['error']}\n"


def test_json_is_plain_ascii():
    _, Y = data()
    Y.rename(columns={"age": "Größe"}).to_csv("covariates.csv", index=False)
    result = run("align", "Z.npy", "covariates.csv", "-o", "out.npy", "--json")
    assert result.stdout.isascii()
    assert "Größe" in json.loads(result.stdout)["alignment"]


def test_who_has_read_enough_is_told_nothing(folder):
    with process("simulate", "PN", "--n-samples", "5", "-o", "made") as running:
        running.stdout.close()
        err = running.stderr.read()
    assert "pipe" not in err.lower()
    assert (folder / "made").exists()


WAITING = """
import pathlib, time
from covalign.aligner.latent import LatentAligner

def fit(self, *args, **settings):
    pathlib.Path("waiting").touch()
    time.sleep(120)

LatentAligner.fit = fit
"""


def test_interrupted_is_130(folder):
    end = time.monotonic() + 120
    with process("align", "Z.npy", "covariates.csv", "-o", "out.npy", first=WAITING) as running:
        while not (folder / "waiting").exists() and time.monotonic() < end:
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=60)
    assert running.returncode == 130, err
    assert out == ""
    assert "covalign: interrupted" in err
    assert sorted(path.name for path in folder.iterdir()) == ["Z.npy", "covariates.csv", "waiting"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_named_pipe_is_refused(folder):
    os.mkfifo("slow.csv")
    assert "slow.csv" in run("align", "Z.npy", "slow.csv", "-o", "out.npy", code=2).stderr


def test_regimes_are_completed():
    typed = {"COMP_WORDS": "covalign align --regime in", "COMP_CWORD": "3", "_COVALIGN_COMPLETE": "complete_bash"}
    result = testing.CliRunner().invoke(app, [], prog_name="covalign", env=typed)
    assert result.stdout.split() == ["independent"]


# -- progress ---------------------------------------------------------------------------------------------------------


def test_a_long_read_shows_how_far_it_is_and_leaves_nothing(monkeypatch):
    shown = []
    monkeypatch.setattr(watching.Progress, "update", lambda bar, done: shown.append((done, bar.total)))
    rows = watching.Watched(open_rows(np.arange(40.0).reshape(20, 2), chunk_rows=8))
    assert is_source(rows)
    for _ in range(2):  # every pass anew
        np.testing.assert_array_equal(np.vstack(list(rows.chunks())), np.arange(40.0).reshape(20, 2))
    assert shown == [(8, 20), (16, 20)] * 2


def test_the_bar_is_on_a_terminal_only(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for stream in (io.StringIO(), Terminal()):
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.setattr(progress, "PATIENCE", -1.0)
        rows = watching.Watched(open_rows(np.zeros((10, 2)), name="Z[0].npy", chunk_rows=5))
        next(rows.chunks()), list(rows.chunks())
        progress.close_bars()
        assert ("Z[0].npy" in stream.getvalue()) == stream.isatty()
