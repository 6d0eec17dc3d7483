"""Data from files: rows meet by name, R's objects arrive as they left, and a wrong file says what is wrong with it."""

from __future__ import annotations

import csv
import gzip
import sys

import numpy as np
import pandas as pd
import pytest
import rdata
from rdata.conversion.to_r import DEFAULT_CLASS_MAP, build_r_object
from rdata.parser import RObjectType

import covalign as ca
from covalign.bridges import datasets
from covalign.exceptions import MissingExtraError

SAMPLES = ["A0FJ", "001", "NA", "A1E5", "A2B6", "A3C7"]
LEVELS = ["LumA", "Basal", "Her2"]  # not in alphabetical order, as a factor's levels need not be


def omics(seed: int = 0, samples: list[str] = SAMPLES) -> dict[str, pd.DataFrame]:
    """Three views and the subtypes of the same samples."""
    rng = np.random.default_rng(seed)
    sizes = {"mrna": 4, "mirna": 3, "protein": 2}
    tables = {
        name: pd.DataFrame(
            rng.standard_normal((len(samples), d)),
            index=pd.Index(samples, name="sample"),
            columns=[f"{name}-{i}" for i in range(d)],
        )
        for name, d in sizes.items()
    }
    subtype = pd.Categorical([LEVELS[i % 3] for i in range(len(samples))], categories=LEVELS)
    return {**tables, "subtype": pd.DataFrame({"subtype": subtype}, index=tables["mrna"].index)}


def shuffled(table: pd.DataFrame, seed: int) -> pd.DataFrame:
    return table.sample(frac=1, random_state=seed)


def write_folder(folder, tables, suffix=".csv.gz"):
    for name, table in tables.items():
        table.to_csv(folder / (f"{name}{suffix}" if name != "subtype" else "subtype.csv"))
    return folder


def r_matrix(table, converter):
    """A matrix with dimnames; row names are NULL where the table has none."""
    rows = None if isinstance(table.index, pd.RangeIndex) else np.array(table.index, dtype="U")
    attributes = {"dim": np.array(table.shape), "dimnames": [rows, np.array(table.columns, dtype="U")]}
    return build_r_object(
        RObjectType.REAL,
        value=np.ravel(table.to_numpy(), order="F"),
        attributes=converter.convert_to_r_attributes(attributes),
    )


def r_named_factor(series, converter):
    """What names(f) <- samples makes of a factor."""
    attributes = {
        "names": np.array(series.index, dtype="U"),
        "levels": np.array(series.cat.categories, dtype="U"),
        "class": "factor",
    }
    return build_r_object(
        RObjectType.INT,
        value=np.where(series.cat.codes < 0, -(2**31), series.cat.codes + 1).astype(np.int32),
        is_object=True,
        attributes=converter.convert_to_r_attributes(attributes),
    )


def write_rda(path, contents, **options):
    as_in_r = {**DEFAULT_CLASS_MAP, pd.DataFrame: r_matrix, pd.Series: r_named_factor}
    rdata.write_rda(path, contents, constructor_dict=as_in_r, **options)
    return path


def as_r_list(tables, *, names=True):
    """A part of breast.TCGA: in mixOmics' order, the subtype a factor with or without names."""
    subtype = tables["subtype"]["subtype"]
    views = {name: tables[name] for name in ("mirna", "mrna", "protein") if name in tables}
    return {**views, "subtype": subtype if names else subtype.array}


def assert_same(data, tables):
    assert list(data.views) == [name for name in ("mrna", "mirna", "protein") if name in tables]
    for name, view in data.views.items():
        pd.testing.assert_frame_equal(view, tables[name], check_index_type=False, check_column_type=False)
    assert data.covariates.columns.tolist() == ["subtype"]
    assert isinstance(data.covariates["subtype"].dtype, pd.CategoricalDtype)
    assert data.covariates["subtype"].astype(str).to_dict() == tables["subtype"]["subtype"].astype(str).to_dict()
    assert all(view.index.equals(data.covariates.index) for view in data.views.values())


# -- breast cancer: a folder ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_a_folder_is_read_as_written(tmp_path, suffix):
    # Among the samples are "001", which is not 1, and "NA", which is not missing.
    assert_same(datasets.breast_tcga(write_folder(tmp_path, omics(), suffix)), omics())


def test_a_folder_as_r_writes_it(tmp_path):
    tables = {name: table.rename_axis(None) for name, table in omics().items()}  # write.csv leaves the corner empty
    tables["mirna"].iloc[1, 2] = np.nan
    for name, table in tables.items():
        table.to_csv(tmp_path / f"{name}.csv", na_rep="NA", quoting=csv.QUOTE_NONNUMERIC)
    assert (tmp_path / "mirna.csv").read_text().startswith('"","mirna-0"')
    assert_same(datasets.breast_tcga(tmp_path), {name: table.rename_axis("sample") for name, table in tables.items()})


def test_rows_in_a_folder_meet_by_name(tmp_path):
    moved = {name: shuffled(table, seed) for seed, (name, table) in enumerate(omics().items())}
    data = datasets.breast_tcga(write_folder(tmp_path, moved))
    order = moved["mrna"].index
    assert order.tolist() != SAMPLES
    assert not moved["subtype"].index.equals(order)
    assert_same(data, {name: table.loc[order] for name, table in omics().items()})


@pytest.mark.parametrize("absent", ["mrna", "protein", "subtype"])
def test_a_missing_file_is_named_with_what_is_needed(tmp_path, absent):
    tables = omics()
    del tables[absent]
    with pytest.raises(FileNotFoundError, match=rf"There is no '.*{absent}.csv'. Give .*subtype.csv, or mixOmics'"):
        datasets.breast_tcga(write_folder(tmp_path, tables))


def test_nothing_there(tmp_path):
    with pytest.raises(ValueError, match=r"There is no '.*nowhere'. Give .*breast.TCGA.rda"):
        datasets.breast_tcga(tmp_path / "nowhere")


def test_a_folder_has_no_test_part(tmp_path):
    with pytest.raises(ValueError, match=r"has the training part only. Pass the path of mixOmics' breast.TCGA.rda"):
        datasets.breast_tcga(write_folder(tmp_path, omics()), part="test")
    with pytest.raises(ValueError, match=r"part needs one of train, test, got 'valid'"):
        datasets.breast_tcga(tmp_path, part="valid")


def test_other_samples_are_named(tmp_path):
    tables = omics()
    tables["protein"] = tables["protein"].rename(index={"A0FJ": "B000"})
    with pytest.raises(
        ValueError,
        match=r"mrna and protein need the same row names, got 1 in mrna and not in protein \('A0FJ'\); "
        r"1 in protein and not in mrna \('B000'\)",
    ):
        datasets.breast_tcga(write_folder(tmp_path, tables))


def test_a_missing_subtype_row_is_not_filled_in(tmp_path):
    tables = omics()
    tables["subtype"] = tables["subtype"].drop(index="A1E5")
    with pytest.raises(ValueError, match=r"mrna and subtype need the same row names, got 1 in mrna .*'A1E5'"):
        datasets.breast_tcga(write_folder(tmp_path, tables))


def test_a_sample_that_occurs_twice(tmp_path):
    tables = omics()
    tables["mirna"] = pd.concat([tables["mirna"], tables["mirna"].loc[["A2B6"]]])
    with pytest.raises(ValueError, match=r"need distinct names, got 'A2B6' more than once in mirna"):
        datasets.breast_tcga(write_folder(tmp_path, tables))


def test_text_among_the_numbers(tmp_path):
    tables = omics()
    tables["mrna"] = tables["mrna"].assign(stage="II")
    with pytest.raises(ValueError, match=r"mrna.csv.gz needs .* got text in column 'stage'"):
        datasets.breast_tcga(write_folder(tmp_path, tables))


def test_subtypes_under_another_name(tmp_path):
    tables = omics()
    tables["subtype"] = tables["subtype"].rename(columns={"subtype": "pam50"})
    with pytest.raises(ValueError, match=r"subtype.csv needs a column 'subtype', got 'pam50'"):
        datasets.breast_tcga(write_folder(tmp_path, tables))


@pytest.mark.parametrize(
    "content",
    [b"", b"no gzip at all", gzip.compress(b"sample,a\nx,1\n" * 99)[:-20]],
    ids=["empty", "plain", "cut"],
)
def test_a_damaged_table(tmp_path, content):
    folder = write_folder(tmp_path, omics())
    (folder / "mirna.csv.gz").write_bytes(content)
    with pytest.raises(ValueError, match=r"mirna.csv.gz' cannot be read as a table of comma-separated values"):
        datasets.breast_tcga(folder)


# -- breast cancer: R's own file --------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [True, False])
@pytest.mark.parametrize("compression", ["gzip", "xz"])
def test_an_rda_is_read_as_written(tmp_path, names, compression):
    train, test = omics(0), omics(1, [f"T{i}" for i in range(7)])
    del test["protein"]
    parts = {"data.train": as_r_list(train, names=names), "data.test": as_r_list(test, names=names)}
    path = write_rda(tmp_path / "breast.TCGA.rda", {"breast.TCGA": parts}, compression=compression)
    assert_same(datasets.breast_tcga(path), train)
    assert_same(datasets.breast_tcga(path, part="test"), test)
    assert datasets.breast_tcga(path).covariates["subtype"].cat.categories.tolist() == LEVELS


def test_both_sources_give_the_same_data(tmp_path):
    path = write_rda(tmp_path / "b.rda", {"breast.TCGA": {"data.train": as_r_list(omics())}})
    from_r, from_csv = datasets.breast_tcga(path), datasets.breast_tcga(write_folder(tmp_path, omics()))
    for name, view in from_csv.views.items():
        pd.testing.assert_frame_equal(from_r.views[name], view)


def test_rows_in_an_rda_meet_by_name(tmp_path):
    moved = {name: shuffled(table, seed) for seed, (name, table) in enumerate(omics().items())}
    path = write_rda(tmp_path / "b.rda", {"breast.TCGA": {"data.train": as_r_list(moved)}})
    order = moved["mrna"].index
    assert_same(datasets.breast_tcga(path), {name: table.loc[order] for name, table in omics().items()})


def test_position_is_not_trusted_where_orders_differ(tmp_path):
    moved = {**omics(), "mirna": shuffled(omics()["mirna"], 1)}
    path = write_rda(tmp_path / "b.rda", {"breast.TCGA": {"data.train": as_r_list(moved, names=False)}})
    with pytest.raises(ValueError, match=r"subtype has no sample names, and mrna and mirna differ"):
        datasets.breast_tcga(path)


def test_without_any_names_position_is_all_there_is(tmp_path):
    tables = {name: table.reset_index(drop=True) for name, table in omics().items()}
    path = write_rda(tmp_path / "b.rda", {"breast.TCGA": {"data.train": as_r_list(tables, names=False)}})
    data = datasets.breast_tcga(path)
    np.testing.assert_array_equal(data.views["protein"], tables["protein"])
    assert data.covariates["subtype"].tolist() == tables["subtype"]["subtype"].tolist()
    tables["protein"] = tables["protein"].iloc[:-1]
    write_rda(path, {"breast.TCGA": {"data.train": as_r_list(tables, names=False)}})
    with pytest.raises(ValueError, match=r"mrna and protein need the same number of rows \(samples\), got 6 and 5"):
        datasets.breast_tcga(path)


def test_a_missing_subtype_stays_missing(tmp_path):
    tables = omics()
    tables["subtype"].loc["A1E5", "subtype"] = np.nan
    path = write_rda(tmp_path / "b.rda", {"breast.TCGA": {"data.train": as_r_list(tables)}})
    missing = datasets.breast_tcga(path).covariates["subtype"].isna()
    assert missing[missing].index.tolist() == ["A1E5"]


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        ({"nutrimouse": {"gene": 1.0}}, r"needs an R list 'breast.TCGA', got 'nutrimouse'"),
        ({"breast.TCGA": np.arange(3.0)}, r"needs an R list 'breast.TCGA'"),
        ({"breast.TCGA": {"data.test": {"mrna": 1.0}}}, r"needs a list 'data.train', got 'data.test'"),
        (
            {"breast.TCGA": {"data.train": {"mrna": 1.0, "mirna": 1.0}}},
            r"needs 'protein', 'subtype' in 'data.train', got 'mrna', 'mirna'",
        ),
        ({"breast.TCGA": {"data.train": {**as_r_list(omics()), "mrna": "text"}}}, r"needs a matrix 'mrna'"),
        (
            {"breast.TCGA": {"data.train": {**as_r_list(omics()), "subtype": np.ones((6, 2))}}},
            r"needs a factor 'subtype'",
        ),
    ],
)
def test_a_foreign_rda_says_what_it_holds(tmp_path, contents, message):
    with pytest.raises(ValueError, match=message):
        datasets.breast_tcga(write_rda(tmp_path / "other.rda", contents))


@pytest.mark.parametrize("content", [b"", b"not R", gzip.compress(b"RDX3\nX\n")], ids=["empty", "plain", "header only"])
def test_a_file_that_is_not_rs(tmp_path, content):
    path = tmp_path / "breast.TCGA.rda"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"rda' cannot be read as .*mixOmics' breast.TCGA.rda"):
        datasets.breast_tcga(path)


def test_rdata_is_an_extra(tmp_path, monkeypatch):
    path = write_rda(tmp_path / "b.rda", {"breast.TCGA": {"data.train": as_r_list(omics())}})
    monkeypatch.setitem(sys.modules, "rdata", None)
    with pytest.raises(MissingExtraError, match=r"covalign\[rdata\]"):
        datasets.breast_tcga(path)


# -- embeddings -------------------------------------------------------------------------------------------------------

LABELS = pd.DataFrame(
    {
        "file": [f"{i}.jpg" for i in range(6)],
        "wnid": ["n2", "n1", "n3", "n2", "n3", "n1"],
        "name": ["newt", "NA", "crab", "newt", "crab", "NA"],
        "labelled": [1, 1, 0, 1, 0, 1],
    }
)
Z = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32)
DUMMIES = pd.DataFrame({"newt": [1.0, 0, 0, 1, 0, 0], "NA": [0.0, 1, 0, 0, 0, 1]})


def write_embedding(folder, labels=LABELS, values=Z):
    np.save(folder / "embeddings.npy", values)
    labels.to_csv(folder / "labels.csv", index=False)
    return folder


def write_npz(folder, **arrays):
    np.savez(folder / "images.npz", **arrays)
    return folder / "images.npz"


def test_labelled_classes_become_dummies_in_order_of_appearance(tmp_path):
    data = datasets.embedding(write_embedding(tmp_path))
    assert data.name == tmp_path.name
    assert data.Z.dtype == np.float32
    np.testing.assert_array_equal(data.Z, Z)
    pd.testing.assert_frame_equal(data.covariates, DUMMIES, check_column_type=False)
    assert data.labels["name"].tolist() == LABELS["name"].tolist()


def test_rows_withheld_from_a_shown_class_are_zero(tmp_path):
    labels = LABELS.assign(labelled=[1, 1, 0, 0, 0, 1])
    assert datasets.embedding(write_embedding(tmp_path, labels)).covariates["newt"].tolist() == [1, 0, 0, 0, 0, 0]


def test_without_labelled_every_class_is_a_dummy(tmp_path):
    data = datasets.embedding(write_embedding(tmp_path, LABELS.drop(columns="labelled")))
    assert data.covariates.columns.tolist() == ["newt", "NA", "crab"]
    assert (data.covariates.sum(axis=1) == 1).all()


@pytest.mark.parametrize("flag", [np.int64, np.bool_, np.float32])
def test_an_archive_with_labels_is_the_folder(tmp_path, flag):
    names, labelled = LABELS["name"].to_numpy(dtype="U"), LABELS["labelled"].to_numpy(dtype=flag)
    data = datasets.embedding(write_npz(tmp_path, Z=Z, labels=names, labelled=labelled))
    assert (data.name, data.Z.dtype) == ("images", np.float32)
    pd.testing.assert_frame_equal(data.covariates, DUMMIES, check_column_type=False)
    assert data.labels["name"].tolist() == names.tolist()
    assert datasets.embedding(write_npz(tmp_path, Z=Z, labels=names)).covariates.shape == (6, 3)


def test_an_archive_with_covariates_keeps_them(tmp_path):
    Y = DUMMIES.to_numpy(dtype=np.int8)
    named = datasets.embedding(write_npz(tmp_path, Z=Z, Y=Y, names=np.array(["newt", "NA"])))
    pd.testing.assert_frame_equal(named.covariates, DUMMIES, check_column_type=False)
    assert named.labels is None
    assert datasets.embedding(write_npz(tmp_path, Z=Z, Y=Y)).covariates.columns.tolist() == ["y0", "y1"]
    assert datasets.embedding(write_npz(tmp_path, Z=Z, Y=Y[:, 0])).covariates.shape == (6, 1)


def test_whole_numbers_become_floats(tmp_path):
    assert datasets.embedding(write_embedding(tmp_path, values=np.ones((6, 2), np.uint8))).Z.dtype == np.float64


def test_an_aligner_takes_what_comes(tmp_path):
    labels = pd.concat([LABELS] * 10)
    values = np.random.default_rng(0).standard_normal((60, 4))
    data = datasets.embedding(write_embedding(tmp_path, labels, values))
    al = ca.LatentAligner("independent").fit(data.Z, data.covariates)
    in_memory = ca.LatentAligner("independent").fit(values, data.covariates)
    np.testing.assert_array_equal(al.transform_, in_memory.transform_)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (LABELS.drop(columns="name"), r"labels.csv needs a column 'name', got 'file', 'wnid', 'labelled'"),
        (LABELS.iloc[:5], r"Z and its labels need the same number of rows \(samples\), got 6 and 5"),
        (LABELS.assign(labelled=[1, 1, 2, 1, 0, 1]), r"labelled of .* needs 1 .* or 0 .* got '2'"),
        (LABELS.assign(labelled=[1, 1, None, 1, 0, 1]), r"labelled of .* needs 1 .* or 0 .* got 'nan'"),
        (LABELS.assign(labelled=0), r"has no labelled class"),
        (
            LABELS.assign(name=["newt", "", "", "newt", "crab", "NA"]),
            r"1 labelled row\(s\) .* no class name, first at row '1'",
        ),
        (LABELS.assign(name="crane"), r"distinct names, got 'crane' for more than one wnid"),
    ],
)
def test_wrong_labels(tmp_path, labels, message):
    with pytest.raises(ValueError, match=message):
        datasets.embedding(write_embedding(tmp_path, labels))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.ones(6), r"Z needs two dimensions"),
        (np.full((6, 2), "a"), r"Z needs real numbers"),
        (np.full((6, 2), None), r"embeddings.npy' cannot be read as an .npy file with an array of numbers"),
    ],
)
def test_wrong_embeddings(tmp_path, values, message):
    with pytest.raises(ValueError, match=message):
        datasets.embedding(write_embedding(tmp_path, values=values))


@pytest.mark.parametrize("absent", ["embeddings.npy", "labels.csv"])
def test_half_a_folder(tmp_path, absent):
    (write_embedding(tmp_path) / absent).unlink()
    with pytest.raises(FileNotFoundError, match=rf"There is no '.*{absent}'. Give .*embeddings.npy and labels.csv"):
        datasets.embedding(tmp_path)


NAMES = LABELS["name"].to_numpy(dtype="U")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"Z": Z}, r"needs an array Z and either Y or labels, got 'Z': save"),
        ({"X": Z, "Y": Z}, r"needs an array Z and either Y or labels, got 'X', 'Y': save"),
        ({"Z": Z, "Y": Z[:, :2], "labels": NAMES}, r"either Y or labels, got 'Z', 'Y', 'labels'"),
        ({"Z": Z, "labels": np.arange(6)}, r"labels needs one name \(text\) per row of Z, got values of type int64"),
        ({"Z": Z, "labels": NAMES[:4]}, r"Z and its labels need the same number of rows \(samples\), got 6 and 4"),
        ({"Z": Z, "labels": NAMES, "labelled": np.ones(4)}, r"labels and labelled need .* got 6 and 4"),
        ({"Z": Z, "labels": NAMES.astype(object)}, r"cannot be read as .* arrays of numbers and text .*allow_pickle"),
        ({"Z": Z, "Y": Z[:5]}, r"Z and Y need the same number of rows \(samples\), got 6 and 5"),
        (
            {"Z": Z, "Y": Z[:, :2], "names": np.array(["a"])},
            r"names needs 2 names, .* got shape \(1,",
        ),
        ({"Z": Z, "Y": Z[:, :2], "names": np.array(["a", "a"])}, r"distinct column names, got 'a'"),
        ({"Z": Z, "Y": NAMES}, r"Y needs real numbers"),
    ],
)
def test_wrong_archives(tmp_path, arrays, message):
    with pytest.raises(ValueError, match=message):
        datasets.embedding(write_npz(tmp_path, **arrays))


def test_a_damaged_archive(tmp_path):
    path = write_npz(tmp_path, Z=Z, Y=Z)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ValueError, match=r"images.npz' cannot be read as an .npz with arrays"):
        datasets.embedding(path)


# -- the real ones ----------------------------------------------------------------------------------------------------


def test_breast_cancer_of_the_paper(shared_data):
    data = datasets.breast_tcga(shared_data("breast_tcga"))
    assert {name: view.shape for name, view in data.views.items()} == {
        "mrna": (150, 200),
        "mirna": (150, 184),
        "protein": (150, 142),
    }
    assert data.covariates["subtype"].value_counts().to_dict() == {"LumA": 75, "Basal": 45, "Her2": 30}
    assert all(np.isfinite(view.to_numpy()).all() for view in data.views.values())


def test_images_of_the_paper(shared_data):
    data = datasets.embedding(shared_data("tinyimagenet_efflite0"))
    assert (data.name, data.Z.shape, data.Z.dtype) == ("tinyimagenet_efflite0", (2000, 1280), np.float32)
    assert data.covariates.shape == (2000, 20)
    assert (data.covariates.sum() == 50).all()
    assert (data.covariates.sum(axis=1) == data.labels["labelled"]).all()
