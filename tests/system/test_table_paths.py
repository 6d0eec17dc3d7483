"""Every kind of file that the commands take, given to the estimators as a path: the same rows, names and messages."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import covalign as ca
from covalign._core.messages import BY_POSITION
from covalign.tables.table_files import read_table

N, K = 90, 4
NAMES = pd.Index([f"s{i:03}" for i in range(N)], name="sample")


@pytest.fixture
def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    s = ca.simulate.scenario("PN", n_samples=N, n_covariates=2, n_factors=K, random_state=0)
    Z = pd.DataFrame(s.Z, NAMES, [f"dim{i}" for i in range(K)])
    return Z, pd.DataFrame({"age": s.Y[:, 0].round(6), "dose": s.Y[:, 1].round(6)}, NAMES)


def csv(frame: pd.DataFrame, path: Path) -> Path:
    frame.to_csv(path)
    return path


def gzipped(frame: pd.DataFrame, path: Path) -> Path:
    return csv(frame.rename_axis("ID"), path.with_suffix(".csv.gz"))


def tsv(frame: pd.DataFrame, path: Path) -> Path:
    frame.rename_axis("ID").to_csv(path.with_suffix(".tsv"), sep="\t")
    return path.with_suffix(".tsv")


def german(frame: pd.DataFrame, path: Path) -> Path:
    frame.rename_axis("ID").to_csv(path, sep=";", decimal=",")
    return path


def indexed(frame: pd.DataFrame, path: Path) -> Path:
    """The index is where pandas keeps it."""
    pytest.importorskip("pyarrow")
    frame.to_parquet(path.with_suffix(".parquet"))
    return path.with_suffix(".parquet")


def folder(frame: pd.DataFrame, path: Path) -> Path:
    """Parts in a folder; row names are a column of text."""
    pytest.importorskip("pyarrow")
    target = path.with_suffix("")
    target.mkdir()
    for i, part in enumerate(np.array_split(np.arange(len(frame)), 3)):
        frame.iloc[part].rename_axis("ID").reset_index().to_parquet(target / f"{i}.parquet", index=False)
    return target


NAMED = [csv, gzipped, tsv, german, indexed, folder]


def npy(frame: pd.DataFrame, path: Path) -> Path:
    np.save(path.with_suffix(".npy"), frame.to_numpy())
    return path.with_suffix(".npy")


def npz(frame: pd.DataFrame, path: Path) -> Path:
    np.savez(path.with_suffix(".npz"), **{column: frame[column].to_numpy() for column in frame})
    return path.with_suffix(".npz")


def model() -> ca.InformedFactorAnalysis:
    return ca.InformedFactorAnalysis(4, tol=1e-3)


@pytest.mark.parametrize("written", NAMED)
def test_an_aligner_takes_every_table_with_names(tables, written, tmp_path):
    """In any order: rows are matched by name."""
    Z, Y = tables
    here = ca.LatentAligner().fit(Z, Y)
    z, y = written(Z, tmp_path / "z.csv"), written(Y.sample(frac=1, random_state=0), tmp_path / "y.csv")
    for got in (ca.LatentAligner().fit(z, y), ca.LatentAligner().fit(str(z), Y), ca.LatentAligner().fit(Z, y)):
        assert got.covariate_names_ == ["age", "dose"]
        np.testing.assert_allclose(got.transform_, here.transform_, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(got.transform(z), here.transform(Z), rtol=1e-6, atol=1e-9)
    frame, whole = (ca.cross_validated_frontier(rows, Y, [0, 1], 3) for rows in (z, Z))
    np.testing.assert_allclose(frame["alignment"], whole["alignment"], rtol=1e-6)


@pytest.mark.parametrize("written", NAMED)
def test_factors_take_every_table_with_names(tables, written, tmp_path):
    Z, Y = tables
    views = {"a": Z.iloc[:, :2], "b": Z.iloc[::-1, 2:]}
    paths = {name: written(view, tmp_path / f"{name}.csv") for name, view in views.items()}
    y = written(Y.iloc[5:], tmp_path / "y.csv")
    here = model().fit(views, Y.iloc[5:])
    with pytest.warns(UserWarning, match=r"5 of 90 rows of .* are not in .*: all their covariates are missing"):
        got = model().fit(paths, y)
    np.testing.assert_allclose(got.factors_, here.factors_, atol=1e-4)
    np.testing.assert_allclose(np.asarray(got.transform(paths)), np.asarray(here.transform(views)), atol=1e-4)
    alone = model().fit(written(Z, tmp_path / "z.csv"), Y)
    np.testing.assert_allclose(alone.factors_, model().fit(Z, Y).factors_, atol=1e-4)


@pytest.mark.parametrize("written", [npy, npz])
def test_tables_without_names_go_by_position(tables, written, tmp_path):
    Z, Y = tables
    z, y = npy(Z, tmp_path / "z"), written(Y, tmp_path / "y")
    np.testing.assert_allclose(ca.LatentAligner().fit(z, y).transform_, ca.LatentAligner().fit(Z, Y).transform_)
    np.testing.assert_allclose(model().fit(z, y).factors_, model().fit(Z, Y).factors_, atol=1e-4)
    Z.to_csv(tmp_path / "plain.csv", index=False)  # no row names, so named covariates are taken by position, too
    np.testing.assert_allclose(
        ca.LatentAligner().fit(tmp_path / "plain.csv", Y).alignment_, ca.LatentAligner().fit(Z, Y).alignment_
    )
    np.testing.assert_allclose(model().fit(tmp_path / "plain.csv", Y).factors_, model().fit(Z, Y).factors_, atol=1e-4)


def test_a_single_column_is_called_as_its_file(tables, tmp_path):
    Z, Y = tables
    age = npy(Y["age"], tmp_path / "age")
    assert ca.LatentAligner().fit(Z.to_numpy(), age).covariate_names_ == ["age"]


def test_covariates_are_columns_of_the_file(tables, tmp_path):
    Z, Y = tables
    both = csv(Z.join(Y), tmp_path / "both.csv")
    here = ca.LatentAligner().fit(Z, Y)
    np.testing.assert_allclose(ca.LatentAligner().fit(both, ["age", "dose"]).transform_, here.transform_)
    np.testing.assert_allclose(model().fit(both, ["age", "dose"]).factors_, model().fit(Z, Y).factors_, atol=1e-4)
    with pytest.raises(ValueError, match=r"both.csv' has no column 'dos'.* Did you mean 'dose'\?"):
        ca.LatentAligner().fit(both, ["age", "dos"])


def test_views_of_an_h5mu_file(tables, tmp_path):
    anndata, mudata = pytest.importorskip("anndata"), pytest.importorskip("mudata")
    from covalign.stream.h5ad import pulling

    Z, Y = tables
    views = {"a": Z.iloc[:, :2], "b": Z.iloc[:, 2:]}
    with pulling(False):
        study = mudata.MuData({name: anndata.AnnData(view) for name, view in views.items()})
        study.obs = Y.loc[study.obs_names]
        study.write_h5mu(tmp_path / "study.h5mu")
    here = model().fit(views, Y)
    for y in (["age", "dose"], tmp_path / "study.h5mu", Y):
        got = model().fit(tmp_path / "study.h5mu", y)
        assert list(got.loadings_) == ["a", "b"]
        np.testing.assert_allclose(got.factors_, here.factors_, atol=1e-4)
    np.testing.assert_allclose(
        np.asarray(here.transform(tmp_path / "study.h5mu")), np.asarray(here.transform(views)), atol=1e-6
    )


def test_a_column_of_row_names_can_be_chosen(tmp_path):
    frame = pd.DataFrame({"age": [40.0, 52.0, 40.0], "case": ["007", "NA", "3"]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert list(read_table(tmp_path / "t.csv", index="case").index) == ["007", "NA", "3"]
    assert isinstance(read_table(tmp_path / "t.csv").index, pd.RangeIndex)


# -- messages ---------------------------------------------------------------------------------------------------------


def said(words: list[str]) -> str:
    """What the command says on standard error."""
    testing = pytest.importorskip("typer.testing", reason="the command line needs typer")
    from covalign.cli import app

    return testing.CliRunner().invoke(app, words).stderr.strip()


def other_names(Y: pd.DataFrame) -> pd.DataFrame:
    return Y.set_axis([f"t{i}" for i in range(len(Y))], axis=0)


def twice(Y: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([Y, Y.iloc[:1]]).rename_axis(None)  # an empty header: these are names


def empty_name(Y: pd.DataFrame) -> pd.DataFrame:
    return Y.set_axis(["", *Y.index[1:]], axis=0)


@pytest.mark.parametrize("spoilt", [other_names, twice, empty_name])
def test_python_and_the_command_say_the_same_but_for_flags(tables, spoilt, tmp_path, monkeypatch):
    Z, Y = tables
    monkeypatch.chdir(tmp_path)
    csv(Z, Path("z.csv")), csv(spoilt(Y), Path("y.csv"))
    with pytest.raises(ValueError, match="name") as caught:
        ca.LatentAligner().fit("z.csv", "y.csv")
    with pytest.raises(ValueError, match="name") as of_factors:
        model().fit("z.csv", "y.csv")
    python = str(caught.value)
    assert str(of_factors.value) == python
    assert "--" not in python
    command = said(["align", "z.csv", "y.csv", "-o", "out.npy"]).removeprefix("covalign: ")
    remedy = rf"({re.escape(BY_POSITION)}|name the column of row names with read_table\(path, index=\.\.\.\))"
    words = re.split(remedy, python)
    assert len(words) == 3, python
    assert command.startswith(words[0])
    assert command.endswith(words[2])
    assert "--by-position" in command or "--index" in command


def test_what_is_left_out_is_a_warning_in_python_and_a_note_of_the_command(tables, tmp_path, monkeypatch):
    Z, Y = tables
    monkeypatch.chdir(tmp_path)
    csv(Z.iloc[3:], Path("z.csv")), csv(Y.iloc[:-2], Path("y.csv"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        al = ca.LatentAligner().fit("z.csv", "y.csv")
    notes = [str(warning.message) for warning in caught]
    assert notes == [
        "3 of 88 rows of y.csv are not in z.csv: left out",
        "2 of 87 rows of z.csv are not in y.csv: all their covariates are missing",
    ]
    assert al.n_pairs_.tolist() == [85, 85]
    assert said(["align", "z.csv", "y.csv", "-o", "out.npy"]).splitlines()[:2] == notes
