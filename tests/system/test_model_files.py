"""Model files that are damaged, foreign or hostile: FileFormatError, or a model that transforms finite numbers."""

from __future__ import annotations

import json
import os
import re
import struct
import warnings
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import covalign as ca
from covalign.exceptions import DataNotFoundError, FileFormatError
from covalign.factor import cross_validation
from covalign.persist import archive
from covalign.persist.model_fields import CHECKS
from covalign.persist.schema import Fault
from tests import hostile
from tests.system.test_saved_models import SAVED, answers, asked  # noqa: F401  # a fixture

MODELS = sorted(path.stem for path in SAVED.glob("*.covalign"))
SOME = ["aligner", "aligner_gaps", "factors_confounders", "factors_gaps", "factors_sparse"]  # one of each layout
seeds = given(st.integers(0, 2**32 - 1))


def saved(name):
    return SAVED / f"{name}.covalign"


def refused_or_finite(path, name, given_rows):
    """The file is refused, or the model works, without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "X has feature names")  # of a model whose names were taken away
        try:
            model = ca.load(path)
        except FileFormatError as error:
            refusal = str(error)
        else:
            refusal = f"{path}: {transformed(model, name, given_rows)}"
    assert str(path) in refusal


def transformed(model, name, given_rows):
    """Finite numbers, or the words of a model whose names and confounders are others."""
    rows, options = asked(given_rows, name)
    try:
        found = np.asarray(model.transform(rows, **options))
    except ValueError as error:
        if not any(word in str(error) for word in ("eature", "confounder", "level")):
            raise
        return str(error)
    assert np.isfinite(found).all()
    return "finite"


@seeds
def test_random_bytes(tmp_path_factory, answers, seed):  # noqa: F811
    rng, path = np.random.default_rng(seed), tmp_path_factory.getbasetemp() / "bytes.covalign"
    for name in MODELS:
        path.write_bytes(hostile.damaged(rng, saved(name).read_bytes()))
        refused_or_finite(path, name, answers)  # some bytes mean nothing, such as the times of members


@seeds
def test_random_edits_of_the_json(tmp_path_factory, answers, seed):  # noqa: F811
    rng, path = np.random.default_rng(seed), tmp_path_factory.getbasetemp() / "json.covalign"
    for name in SOME:
        meta, arrays = hostile.unpacked(saved(name))
        refused_or_finite(hostile.pack(path, hostile.edited_json(rng, meta), arrays), name, answers)


@seeds
def test_random_edits_of_the_arrays(tmp_path_factory, answers, seed):  # noqa: F811
    rng, path = np.random.default_rng(seed), tmp_path_factory.getbasetemp() / "arrays.covalign"
    for name in SOME:
        meta, arrays = hostile.unpacked(saved(name))
        which = list(arrays)[int(rng.integers(len(arrays)))]
        arrays[which] = hostile.edited_array(rng, arrays[which])
        refused_or_finite(hostile.pack(path, meta, arrays), name, answers)


@pytest.mark.parametrize("name", SOME)
def test_every_field_is_needed(name):
    """All that a file of this kind has, but for what no reader uses and what later versions added."""
    meta, arrays = hostile.unpacked(saved(name))
    free = {
        "format",
        "version",
        "covalign",
        "path.se",
        "realigned.R",
        "scale",
        "path_scales",
        "budget",
    }  # some read before
    if "tails.counts" in arrays:
        free |= {"tails.counts"}  # the rows are then looked for
    for field in [*meta, *arrays]:
        if field in free or field.startswith("path."):
            continue
        one, others = ({k: v for k, v in kept.items() if k != field} for kept in (meta, arrays))
        with pytest.raises(Fault, match=re.escape(field) if field != "tails.kurtosis" else "tails"):
            CHECKS[meta["kind"]](one, others)


def negative(array):
    return -np.abs(array) - 1


def with_nan(array):
    return np.where(np.arange(array.size).reshape(array.shape) == 0, np.nan, array)


WRONG = [
    ("aligner", "fold0.cov_z", with_nan),
    ("aligner", "fold1.cov_y", negative),
    ("aligner", "fold0.mean_z", with_nan),
    ("aligner", "fold0.cov_zy", lambda a: a * 1e6),
    ("aligner", "fold0.cov_z", lambda a: a[:, :-1]),
    ("aligner", "fold0.cov_z", lambda a: a.astype(str)),
    ("aligner", "path.shrinkage", lambda a: a + 2),
    ("factors", "now.beta", lambda a: a * 0 + 1.5),
    ("factors", "now.beta", lambda a: a * 0 - 1),
    ("factors", "table.0.sd", negative),
    ("factors", "table.sd_y", lambda a: a * 0),
    ("factors", "stage1.0.noise.rate", negative),
    ("factors", "stage1.0.w.scale", negative),
    ("factors", "now.z.cov", negative),
    ("factors", "data.gram", with_nan),
    ("factors_gaps", "now.z.group", lambda a: a + 1000),
    ("factors_gaps", "data.observed", lambda a: a.astype(float)),
    ("factors_sparse", "data.indices", lambda a: a + 1000),
    ("factors_sparse", "data.indptr", lambda a: a[::-1]),
    ("factors_dense", "realigned.T", lambda a: a[:1]),
]


@pytest.mark.parametrize(("name", "member", "edit"), WRONG, ids=[f"{name}-{member}" for name, member, _ in WRONG])
def test_an_array_that_cannot_be_is_named(name, member, edit, tmp_path):
    meta, arrays = hostile.unpacked(saved(name))
    arrays[member] = edit(arrays[member])
    with pytest.raises(
        FileFormatError, match=rf"m\.covalign' is not a model .* damaged: {member} needs .*Save the model again"
    ):
        ca.load(hostile.pack(tmp_path / "m.covalign", meta, arrays))


READINGS = [
    ("aligner", "log", ["X"], None),
    ("aligner", "log", ["rna"], "no view"),
    ("aligner", "columns", {"X": [0]}, "a column for every feature"),
    ("factors", "match", "prefix", None),
    ("factors", "match", "nearest", "one of exact, prefix, first"),
    ("factors", "match", 1, "one of"),
    ("factors", "strip", "(", "a regular expression"),
    ("factors", "strip", ["a"], "to be text"),
    ("factors", "na", "-", "a list"),
    ("factors", "key", {}, "to be text"),
    ("factors", "columns", {"X": [-1]}, "a whole number"),
    ("factors", "later", {"version": 9}, None),
]


@pytest.mark.parametrize(("name", "field", "value", "wrong"), READINGS)
def test_how_tables_were_read_is_checked(name, field, value, wrong, tmp_path):
    meta, arrays = hostile.unpacked(saved(name))
    path = hostile.pack(tmp_path / "m.covalign", {**meta, "reading": {field: value}}, arrays)
    if wrong is None:
        assert ca.load(path)._reading == {field: value}
        return
    with pytest.raises(FileFormatError, match=rf"damaged: reading.*{wrong}"):
        ca.load(path)


def test_an_older_file_knows_nothing_of_its_tables(tmp_path):
    for name in ("aligner", "factors"):
        assert "reading" not in hostile.unpacked(saved(name))[0]
        assert ca.load(saved(name))._reading is None


@pytest.mark.parametrize("version", ["1", None, True, 1.0, [1], 0, -1, {}])
def test_a_version_that_is_no_number(version, tmp_path):
    meta, arrays = hostile.unpacked(saved("aligner"))
    with pytest.raises(FileFormatError, match=r"m\.covalign', member 'meta\.json' cannot be read: its version is"):
        ca.load(hostile.pack(tmp_path / "m.covalign", {**meta, "version": version}, arrays))


def test_a_later_version_says_update(tmp_path):
    meta, arrays = hostile.unpacked(saved("aligner"))
    with pytest.raises(FileFormatError, match=r"has format 99; this covalign reads formats up to 1\. Update covalign"):
        ca.load(hostile.pack(tmp_path / "m.covalign", {**meta, "version": 99}, arrays))


@pytest.mark.parametrize("text", [b"[" * 100_000, b'{"a":' * 100_000, b"", b"null", b"\xff\xfe", b"{", b"9" * 10_000])
def test_json_that_is_none(text, tmp_path):
    with pytest.raises(FileFormatError, match=r"m\.covalign'"):
        ca.load(hostile.pack(tmp_path / "m.covalign", text, {}))


# -- zip archives -----------------------------------------------------------------------------------------------------


def members():
    with zipfile.ZipFile(saved("aligner")) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_compressed_and_reordered_members_are_read(tmp_path, answers):  # noqa: F811
    for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        path = hostile.zipped(tmp_path / "m.covalign", dict(reversed(members().items())), method)
        np.testing.assert_allclose(ca.load(path).transform(answers["Z"]), answers["aligner"], rtol=1e-10)


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_corrupt_stream(method, tmp_path):
    path = hostile.zipped(tmp_path / "m.covalign", members(), method)
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo("fold0.cov_z.npy")
        start = info.header_offset + 30 + len(info.filename)
    data = bytearray(path.read_bytes())
    for at in range(start + 20, start + info.compress_size - 5):
        data[at] ^= 0x5A
    path.write_bytes(data)
    with pytest.raises(FileFormatError, match=r"m\.covalign'.* member 'fold0\.cov_z\.npy'"):
        ca.load(path)


def patched(path, **fields):
    """The entry of one member in the table of contents, with other flags, compression or sizes."""
    data = bytearray(path.read_bytes())
    at = data.index(b"PK\x01\x02")
    while not data[at + 46 :].startswith(b"fold0.cov_z.npy"):
        at = data.index(b"PK\x01\x02", at + 4)
    places = {"flags": (8, "<H"), "method": (10, "<H"), "compressed": (20, "<I"), "size": (24, "<I")}
    for name, value in fields.items():
        struct.pack_into(places[name][1], data, at + places[name][0], value)
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"flags": 1}, "it is encrypted"),
        ({"method": 99}, r"its compression \(99\) is unknown"),
        ({"size": 2**32 - 2}, "and claims 4294967294"),
        ({"method": 8, "size": 2**32 - 2}, "it claims 4294967294 bytes from"),
    ],
)
def test_an_entry_that_lies(fields, why, tmp_path):
    path = patched(hostile.zipped(tmp_path / "m.covalign", members()), **fields)
    with pytest.raises(FileFormatError, match=rf"m\.covalign', member 'fold0\.cov_z\.npy' cannot be read: .*{why}"):
        ca.load(path)


def test_members_larger_than_the_file(tmp_path):
    path = patched(hostile.zipped(tmp_path / "m.covalign", members()), compressed=2**30, size=2**30)
    with pytest.raises(FileFormatError, match="members are larger than the file"):
        ca.load(path)


def test_a_member_that_is_there_twice(tmp_path):
    path = hostile.zipped(tmp_path / "m.covalign", members())
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("fold0.cov_z.npy", b"")
    with pytest.raises(FileFormatError, match=r"member 'fold0\.cov_z\.npy' cannot be read: it is in the archive twice"):
        ca.load(path)


def test_a_bomb(tmp_path, monkeypatch):
    """A member that expands 900 times is within what deflate can do; the sum of all is too much for a model."""
    monkeypatch.setattr(archive, "SMALL", 2**18)
    bomb = {**members(), "bomb.npy": hostile.npy_bytes(np.zeros(2**18))}
    path = hostile.zipped(tmp_path / "m.covalign", bomb, zipfile.ZIP_DEFLATED)
    with pytest.raises(FileFormatError, match=r"its members claim 21\d{5} bytes"):
        ca.load(path)


@pytest.mark.parametrize("shape", [(10**12,), (2**62, 4), (2**40, 2**40), (-1,), (7,)])
def test_a_header_that_claims_too_much(shape, tmp_path):
    wrong = {**members(), "fold0.cov_z.npy": hostile.npy_bytes(np.zeros(6), shape=shape)}
    with pytest.raises(FileFormatError, match=r"member 'fold0\.cov_z\.npy'"):
        ca.load(hostile.zipped(tmp_path / "m.covalign", wrong))


def test_pickled_objects_are_never_loaded(tmp_path):
    meta, arrays = hostile.unpacked(saved("aligner"))
    arrays["groups"] = np.array([{}], dtype=object)
    with pytest.raises(FileFormatError, match=r"member 'groups\.npy', needs plain numbers, got pickled objects"):
        ca.load(hostile.pack(tmp_path / "m.covalign", meta, arrays))


# -- what is no file --------------------------------------------------------------------------------------------------


def test_what_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    for path, why in [(tmp_path / "fifo", "is a FIFO"), ("/dev/zero", "is a device"), ("", "it is a folder")]:
        with pytest.raises(FileFormatError, match=why):  # a FIFO would block for ever
            ca.load(path)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for path in (tmp_path / "loop", tmp_path / ("n" * 300), "x" * 5000, "a\0b"):
        with pytest.raises(FileFormatError, match="cannot be read as a model file written by covalign"):
            ca.load(path)
    with pytest.raises(DataNotFoundError, match="There is no"):
        ca.load(tmp_path / "nothing")
    for path in (None, 3, b"x"):
        with pytest.raises(ValueError, match="The path of a model file is needed, got "):
            ca.load(path)


def test_other_formats(tmp_path):
    with (tmp_path / "m.npz").open("wb") as file:
        np.savez(file, a=np.zeros(3))
    (tmp_path / "m.json").write_text(json.dumps({"format": "covalign", "version": 1}))
    (tmp_path / "empty").write_bytes(b"")
    for name in ("m.npz", "m.json", "empty"):
        with pytest.raises(FileFormatError, match=name):
            ca.load(tmp_path / name)


# -- fits without each fold -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def with_folds():
    """A small model whose file has its held-out numbers; some covariates are missing."""
    data = ca.simulate.scenario("PN", n_samples=60, n_features=12, n_covariates=2, random_state=0)
    data.Y[:9, 1] = np.nan
    model = ca.InformedFactorAnalysis(4, folds=3, supervision=4).fit(data.X, data.Y, groups=np.arange(60) // 2)
    assert model.summary()["held_out"].notna().all()
    return model


@pytest.fixture(scope="module")
def held_file(with_folds, tmp_path_factory):
    path = tmp_path_factory.mktemp("held") / "m.covalign"
    with_folds.save(path)
    return path


def test_a_saved_model_needs_no_fit_for_its_held_out_numbers(with_folds, held_file, monkeypatch, tmp_path):
    for fits in ("without", "with_supervision_1"):
        monkeypatch.setattr(cross_validation, fits, None)  # nothing is fitted again
    loaded = ca.load(held_file)
    assert loaded.summary().equals(with_folds.summary())
    assert loaded.informed_.equals(with_folds.informed_)
    assert loaded.frontier([0, 1]).equals(with_folds.frontier([0, 1]))
    assert ca.report.summary(loaded) == ca.report.summary(with_folds)
    assert loaded.at(0.7).summary().equals(with_folds.at(0.7).summary())
    ca.load(held_file).save(tmp_path / "again.covalign")  # before anybody asked for the numbers
    assert ca.load(tmp_path / "again.covalign").informed_.equals(with_folds.informed_)


def test_other_folds_are_fitted(with_folds, held_file):
    other = ca.load(held_file).set_params(folds=2)
    assert not other._shows_held_out()
    assert np.isfinite(other.summary()["held_out"]).all()


def test_a_saved_model_says_why_nothing_is_held_out(tmp_path):
    data = ca.simulate.scenario("PN", n_samples=15, n_features=8, n_covariates=2)
    model = ca.InformedFactorAnalysis(3).fit(data.X, data.Y)
    with pytest.warns(ca.exceptions.NotHeldOutWarning, match="at least 20"):
        model.summary()
    model.save(tmp_path / "m.covalign")
    loaded = ca.load(tmp_path / "m.covalign")
    assert "at least 20" in ca.report.summary(loaded)["why_not_held_out"]


def test_every_field_of_the_folds_is_needed_and_checked(held_file):
    meta, arrays = hostile.unpacked(held_file)
    names = [name for name in arrays if name.startswith("held.")]
    assert len(names) == 2 * 15
    for name in names:
        for other in (None, arrays[name][1:], arrays[name].astype(str)):
            wrong = {**arrays, name: other} if other is not None else {k: v for k, v in arrays.items() if k != name}
            with pytest.raises(Fault, match=r"held\."):
                CHECKS[meta["kind"]](meta, wrong)


@pytest.mark.parametrize(
    ("member", "edit"),
    [
        ("held.plain.T_0", lambda a: a * 0),
        ("held.plain.M", with_nan),
        ("held.in_regimes.fold", lambda a: a * 0),
        ("held.in_regimes.part", lambda a: a + 1000),
        ("held.in_regimes.n", lambda a: a * 0),
        ("held.in_regimes.cov_zy", lambda a: a + 1e6),
        ("held.plain.cov_z", negative),
        ("held.plain.counts", lambda a: a & False),
    ],
)
def test_folds_that_cannot_be(held_file, member, edit, tmp_path):
    meta, arrays = hostile.unpacked(held_file)
    with pytest.raises(FileFormatError, match=rf"damaged: {member.rsplit('.', 1)[0]}\.\w+ needs"):
        ca.load(hostile.pack(tmp_path / "m.covalign", meta, {**arrays, member: edit(arrays[member])}))


@seeds
def test_random_edits_of_the_folds(tmp_path_factory, held_file, seed):
    rng, path = np.random.default_rng(seed), tmp_path_factory.getbasetemp() / "folds.covalign"
    meta, arrays = hostile.unpacked(held_file)
    names = [name for name in arrays if name.startswith("held.")]
    which = names[int(rng.integers(len(names)))]
    try:
        model = ca.load(hostile.pack(path, meta, {**arrays, which: hostile.edited_array(rng, arrays[which])}))
    except FileFormatError as error:
        refusal = str(error)
    else:
        refusal = held_out_of(model)
    assert "held." in refusal


def held_out_of(model):
    """Alignments are correlations, or NaN."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = model.summary()
    assert found["held_out"].dropna().abs().le(1).all()
    return "held.: correlations"
