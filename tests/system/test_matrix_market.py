"""Counts of Cell Ranger, as Matrix Market files, folders and HDF5: cells become rows, names are found, rows sparse."""

from __future__ import annotations

import gzip
import json
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy import io, sparse

import covalign as ca
from covalign.exceptions import FileFormatError
from covalign.stream.memory import SparseRows
from covalign.tables.estimator_input import rows_of

testing = pytest.importorskip("typer.testing", reason="the command line needs typer")

from covalign.cli import app  # noqa: E402  (only where typer is installed)

N, D = 60, 9
CELLS = [f"AAAC{i:03}-1" for i in range(N)]
SYMBOLS = [*(f"G{j}" for j in range(D - 2)), "TWIN", "TWIN"]
IDS = [f"ENSG{j}" for j in range(D)]
NAMES = [*SYMBOLS[:-2], *IDS[-2:]]  # a symbol of two genes names neither of them
TYPES = ["Gene Expression"] * 6 + ["Antibody Capture"] * 3


def counts():
    rng = np.random.default_rng(0)
    level = rng.gamma(2, 1, (N, 2)) @ rng.gamma(1, 1, (2, D))
    return rng.poisson(level)


def write(folder, *, prefix="", packed=True, cells_as_rows=False, genes="features", kinds=None, barcodes=CELLS):
    folder.mkdir(exist_ok=True)
    end = ".gz" if packed else ""
    opened = gzip.open if packed else open
    matrix = sparse.coo_matrix(counts() if cells_as_rows else counts().T)
    with opened(folder / f"{prefix}matrix.mtx{end}", "wb") as file:
        io.mmwrite(file, matrix)
    lines = {"barcodes": barcodes, genes: ["\t".join(row) for row in zip(IDS, SYMBOLS, kinds or [""] * D, strict=True)]}
    for stem, names in lines.items():
        with opened(folder / f"{prefix}{stem}.tsv{end}", "wt") as file:
            file.write("\n".join(names) + "\n")
    return folder


def write_h5(path, *, kinds=None, version=3, genomes=("GRCh38",), **changed):
    """An HDF5 file of Cell Ranger; ``changed`` are arrays that differ from what it writes."""
    h5py = pytest.importorskip("h5py")
    matrix = sparse.csr_matrix(counts())  # of cells: the columns of the matrix of features
    parts = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr, "shape": [D, N]}
    parts["barcodes"] = np.array(CELLS, dtype="S")
    names = ("features/id", "features/name") if version == 3 else ("genes", "gene_names")
    parts |= {name: np.array(texts, dtype="S") for name, texts in zip(names, (IDS, SYMBOLS), strict=True)}
    if kinds is not None:
        parts["features/feature_type"] = np.array(kinds, dtype="S")
    with h5py.File(path, "w") as file:
        for group in ("matrix",) if version == 3 else genomes:
            for name, array in (parts | changed).items():
                file[f"{group}/{name}"] = array
    return path


def values(source):
    return np.concatenate([chunk.toarray() for chunk in source.chunks(7)])


LAYOUTS = {
    "folder": lambda at: write(at / "outs"),
    "folder, not packed": lambda at: write(at / "outs", packed=False, genes="genes"),
    "file": lambda at: write(at / "outs") / "matrix.mtx.gz",
    "file with a prefix": lambda at: write(at / "outs", prefix="GSM7_donor1_") / "GSM7_donor1_matrix.mtx.gz",
    "cells as rows": lambda at: write(at / "outs", cells_as_rows=True),
    "text of the path": lambda at: str(write(at / "outs")),
    "HDF5": lambda at: write_h5(at / "filtered.h5", kinds=["Gene Expression"] * D),
    "HDF5 without types": lambda at: write_h5(at / "filtered.h5"),
    "HDF5 of version 2": lambda at: write_h5(at / "filtered.h5", version=2),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_cells_are_rows_whatever_was_written(tmp_path, name):
    source = ca.open_rows(LAYOUTS[name](tmp_path))
    assert list(source.index) == CELLS
    assert list(source.names) == NAMES
    np.testing.assert_array_equal(values(source), counts())
    assert all(sparse.issparse(chunk) for chunk in source.chunks())


def test_a_matrix_without_names_is_taken_as_it_is_written(tmp_path):
    io.mmwrite(tmp_path / "counts.mtx", sparse.coo_matrix(counts()))
    source = ca.open_rows(tmp_path / "counts.mtx")
    assert source.names is None
    assert source.index is None
    np.testing.assert_array_equal(values(source), counts())


def test_estimators_get_sparse_rows_and_match_cells_by_name(tmp_path):
    write(tmp_path / "outs")
    assert isinstance(rows_of(tmp_path / "outs").data, SparseRows)
    Y = pd.DataFrame({"depth": counts().sum(axis=1) * 1.0}, CELLS)
    Y.iloc[::-1].to_csv(tmp_path / "cells.csv", index_label="barcode")
    fitted = ca.LatentAligner(shrinkage=0.1).fit(str(tmp_path / "outs"), str(tmp_path / "cells.csv"))
    again = ca.LatentAligner(shrinkage=0.1).fit(pd.DataFrame(counts(), CELLS, NAMES), Y)
    np.testing.assert_allclose(fitted.T_, again.T_, rtol=1e-9)
    np.testing.assert_allclose(
        fitted.transform(str(tmp_path / "outs")), again.transform(pd.DataFrame(counts(), CELLS, NAMES)), rtol=1e-9
    )


def test_types_of_features_are_chosen_by_key(tmp_path):
    folder = write(tmp_path / "outs", kinds=TYPES)
    with pytest.raises(ValueError, match=r"pass key= with one of 'Gene Expression', 'Antibody Capture'"):
        ca.open_rows(folder)
    source = ca.open_rows(folder, key="Antibody Capture")
    assert list(source.names) == NAMES[6:]
    np.testing.assert_array_equal(values(source), counts()[:, 6:])
    with pytest.raises(ValueError, match="needs no key="):
        ca.open_rows(write(tmp_path / "plain"), key="Gene Expression")


def test_types_and_genomes_of_hdf5_are_chosen_by_key(tmp_path):
    file = write_h5(tmp_path / "raw.h5", kinds=TYPES)
    with pytest.raises(ValueError, match=r"pass key= with one of 'Gene Expression', 'Antibody Capture'"):
        ca.open_rows(file)
    source = ca.open_rows(file, key="Antibody Capture")
    assert list(source.names) == NAMES[6:]
    np.testing.assert_array_equal(values(source), counts()[:, 6:])
    both = write_h5(tmp_path / "both.h5", version=2, genomes=("hg19", "mm10"))
    for key in (None, "rn6"):
        with pytest.raises(ValueError, match="pass key= with one of 'hg19', 'mm10'"):
            ca.open_rows(both, key=key)
    np.testing.assert_array_equal(values(ca.open_rows(both, key="mm10")), counts())


@pytest.mark.parametrize(
    "changed",
    [
        {"indices": np.full(sparse.csr_matrix(counts()).nnz, D)},
        {"indptr": np.arange(N + 1)[::-1]},
        {"shape": [D, N + 1]},
        {"shape": [D + 1, N]},
        {"shape": [-1, N]},
        {"barcodes": np.array(CELLS[1:], dtype="S")},
        {"barcodes": np.array([b"\xff\xfe"] * N)},
        {"shape": [D, 2**60]},
    ],
)
def test_wrong_hdf5_is_refused_by_name(tmp_path, changed):
    file = write_h5(tmp_path / "raw.h5", **changed)
    with pytest.raises(FileFormatError, match=r"raw\.h5' cannot be read as counts of Cell Ranger"):
        ca.open_rows(file)


@pytest.mark.parametrize("kind", ["folder", "HDF5"])
def test_commands_fit_and_place_cells(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    outs = write(tmp_path / "outs", kinds=TYPES) if kind == "folder" else write_h5(tmp_path / "outs.h5", kinds=TYPES)
    pd.DataFrame({"depth": counts().sum(axis=1)}, CELLS).to_csv("cells.csv", index_label="barcode")
    views = ["--view", f"rna={outs.name}::Gene Expression", "--view", f"adt={outs.name}::Antibody Capture"]
    quick = ["--n-factors", "2", "--supervision", "1", "--folds", "0", "--max-iter", "3", "--log", "all"]
    run("fit", *views, "--covariates", "cells.csv", *quick, "-o", "m.covalign", "--factors-out", "f.csv")
    run("transform", "m.covalign", *views, "-o", "t.csv")
    assert pd.read_csv("t.csv", index_col=0).shape == (N, 2)
    assert pd.read_csv("f.csv", index_col=0).index.tolist() == CELLS
    model = ca.load("m.covalign")
    assert [*model.loadings_] == ["rna", "adt"]
    assert model.loadings_["adt"].shape == (3, 2)
    checked = json.loads(run("check", *views, "--covariates", "cells.csv", "--json").stdout)
    assert checked["samples"] == N


def run(*words):
    result = testing.CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, (result.stdout, result.stderr, result.exception)
    return result


def test_a_large_matrix_stays_sparse_on_its_way_to_a_fit(tmp_path):
    """40,000 x 300 numbers are 96 MB, of which one in a hundred is not zero."""
    rng = np.random.default_rng(0)
    n, d = 40_000, 300
    (tmp_path / "outs").mkdir()
    io.mmwrite(tmp_path / "outs" / "matrix.mtx", sparse.random(d, n, 0.01, random_state=rng, format="coo"))
    cells = [f"c{i}" for i in range(n)]
    (tmp_path / "outs" / "barcodes.tsv").write_text("\n".join(cells))
    (tmp_path / "outs" / "genes.tsv").write_text("\n".join(f"g{i}\tG{i}" for i in range(d)))
    Y = pd.DataFrame({"a": rng.standard_normal(n)}, cells)
    ca.LatentAligner(shrinkage=0.5).fit(counts(), counts()[:, 0])  # what a first fit imports is not measured
    tracemalloc.start()
    try:
        fitted = ca.LatentAligner(shrinkage=0.5).fit(str(tmp_path / "outs"), Y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert fitted.n_features_in_ == d
    assert peak < 8 * n * d / 2


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda at: (at / "barcodes.tsv").write_text("a\nb\n"), r"60.* numbers and needs as many names, got 2 names"),
        (lambda at: (at / "other.mtx").write_text(""), r"needs one matrix .*got 'matrix.mtx', 'other.mtx'"),
        (lambda at: (at / "matrix.mtx").write_text("x"), "cannot be read as a matrix in the Matrix Market format"),
        (
            lambda at: (at / "matrix.mtx").write_text(
                f"%%MatrixMarket matrix coordinate real general\n{10**13} 3 1\n1 1 2\n"
            ),
            "claims",
        ),
        (
            lambda at: (at / "matrix.mtx").write_text("%%MatrixMarket matrix coordinate real general\n9 60 5\n1 1 2\n"),
            "cannot be read",
        ),
    ],
)
def test_what_is_wrong_is_said(tmp_path, change, says):
    folder = write(tmp_path / "outs", packed=False)
    change(folder)
    with pytest.raises((ValueError, FileFormatError), match=says):
        ca.open_rows(folder)
