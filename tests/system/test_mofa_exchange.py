"""Models to and from MOFA: the layout that mofax and MOFA2 read, models of other packages, hostile files, loadings."""

from __future__ import annotations

import json
import struct
import sys

import numpy as np
import pandas as pd
import pytest

import covalign as ca
from covalign.exceptions import CannotBeSavedError, DataNotFoundError, FileFormatError, LeastSquaresWarning

h5py = pytest.importorskip("h5py", reason="h5py is not installed")

N, K, FEATURES = 40, 7, {"rna": 12, "protein": 9}
SAMPLES = [f"patient{i}" for i in range(N)]
GROUPS = pd.Series(["treated" if i % 3 else "control" for i in range(N)], SAMPLES)
SETTINGS = {"max_iter": 30, "tol": 1e-4, "supervision": 1.0, "folds": 0}


def study(gaps=True):
    """Two views and five covariates, with samples that lack a view, cells and a covariate."""
    s = ca.simulate.scenario("PN", n_samples=N, n_features=FEATURES)
    X = {v: pd.DataFrame(3 + 2 * x, SAMPLES, [f"{v}{i}" for i in range(x.shape[1])]) for v, x in s.X.items()}
    Y = pd.DataFrame(10 + 3 * s.Y, SAMPLES, ["age", "dose/kg", "group", "weight", "stage"])
    if gaps:
        X["rna"].iloc[:3, :2], X["protein"].iloc[30:], Y.iloc[4, 0] = np.nan, np.nan, np.nan
    return X, Y


@pytest.fixture(scope="module")
def fa():
    return ca.InformedFactorAnalysis(K, **SETTINGS).fit(*study())


@pytest.fixture(scope="module")
def file(fa, tmp_path_factory):
    path = tmp_path_factory.mktemp("mofa") / "model.hdf5"
    fa.to_mofa(path, groups=GROUPS)
    return path


def opened(path):
    """Path -> values of every dataset."""
    found = {}
    with h5py.File(path, "r") as file:
        file.visititems(lambda name, node: found.update({name: node[()]}) if isinstance(node, h5py.Dataset) else None)
    return found


# -- to MOFA ----------------------------------------------------------------------------------------------------------


def test_the_file_has_all_that_mofax_and_mofa2_read(file):
    """Members that mofax.mofa_model and MOFA2's load_model open, with the shapes and types that mofapy2 gives them."""
    text, n = h5py.string_dtype("utf-8"), {"treated": int((GROUPS == "treated").sum())}
    n["control"] = N - n["treated"]
    need = {"views/views": ((2,), text), "groups/groups": ((2,), text), "training_opts": ((6,), "f8")}
    for group, size in n.items():
        need |= {f"samples/{group}": ((size,), text), f"expectations/Z/{group}": ((K, size), "f8")}
        need |= {f"variance_explained/r2_per_factor/{group}": ((2, K), "f8")}
        need |= {f"variance_explained/r2_total/{group}": ((2,), "f8")}
    for view, width in FEATURES.items():
        need |= {f"features/{view}": ((width,), text), f"expectations/W/{view}": ((K, width), "f8")}
        for group, size in n.items():
            need |= {f"data/{view}/{group}": ((size, width), "f8"), f"intercepts/{view}/{group}": ((width,), "f8")}
    options = ("spikeslab_factors", "spikeslab_weights", "ard_factors", "ard_weights")
    need |= {"model_options/likelihoods": ((2,), "S8"), **{f"model_options/{name}": ((), None) for name in options}}
    with h5py.File(file, "r") as found:
        for at, (shape, dtype) in need.items():
            assert found[at].shape == shape, at
            assert dtype is None or found[at].dtype == dtype, at
        sweeps = {found[f"training_stats/{name}"].shape for name in ("elbo", "number_factors", "time")}
        assert len(sweeps) == 1
        assert found["training_opts"].attrs["names"].tolist()[0] == b"maxiter"
        assert {found[f"model_options/{name}"][()] for name in options} == {b"False", b"True"}
        assert set(found["samples_metadata/treated"]) == {"age", "dose-kg", "group_covariate", "weight", "stage"}


def test_what_is_read_is_what_was_written(fa, file):
    m, order = ca.datasets.mofa(file), [*GROUPS.index[GROUPS == "control"], *GROUPS.index[GROUPS == "treated"]]
    pd.testing.assert_frame_equal(m.Z, fa.factors_frame().loc[order].rename_axis("sample"))
    assert m.groups.to_dict() == GROUPS.to_dict()
    for view, W in fa.loadings_.items():
        assert (m.loadings[view].to_numpy() == W).all()
        assert m.loadings[view].index.tolist() == [f"{view}{i}" for i in range(FEATURES[view])]
        assert m.loadings[view].columns.tolist() == fa.factor_names_
    Y = study()[1].loc[order]
    np.testing.assert_allclose(m.metadata[["age", "dose-kg", "group_covariate"]], Y[["age", "dose/kg", "group"]])


@pytest.mark.parametrize("gaps", [True, False])
def test_data_and_intercepts_are_the_features_and_reconstruct_them(gaps, tmp_path):
    X, Y = study(gaps)
    fa = ca.InformedFactorAnalysis(K, **SETTINGS).fit(X, Y)
    fa.to_mofa(tmp_path / "m.hdf5")
    found, whole = opened(tmp_path / "m.hdf5"), fa.reconstruct()
    for view, x in X.items():
        sd, centre = found[f"features_metadata/{view}/sd"], found[f"intercepts/{view}/group1"]
        np.testing.assert_allclose((found[f"data/{view}/group1"] + centre) * sd, x)
        fitted = found["expectations/Z/group1"].T @ found[f"expectations/W/{view}"]
        np.testing.assert_allclose((fitted + centre) * sd, whole[view])


def test_shares_of_variance_are_those_of_mofa(file):
    """1 - |Y - z_k w_k'|^2 / |Y|^2 over observed cells, in percent, for every group and view."""
    found = opened(file)
    for group in ("treated", "control"):
        Z = found[f"expectations/Z/{group}"]
        for v, view in enumerate(FEATURES):
            X, W = found[f"data/{view}/{group}"], found[f"expectations/W/{view}"]
            each = [
                100 * (1 - np.nansum((X - np.outer(z, w)) ** 2) / np.nansum(X**2)) for z, w in zip(Z, W, strict=True)
            ]
            total = 100 * (1 - np.nansum((X - Z.T @ W) ** 2) / np.nansum(X**2))
            np.testing.assert_allclose(found[f"variance_explained/r2_per_factor/{group}"][v], each)
            np.testing.assert_allclose(found[f"variance_explained/r2_total/{group}"][v], total)


def test_a_view_that_a_group_lacks_explains_nothing(fa, tmp_path):
    fa.to_mofa(tmp_path / "m.hdf5", groups=["late" if i >= 30 else "early" for i in range(N)])
    found = opened(tmp_path / "m.hdf5")
    assert found["variance_explained/r2_total/late"][1] == 0  # and not NaN, which load_model cannot compare
    assert found["variance_explained/r2_total/early"][1] > 0


def test_rows_that_are_read_by_chunks_are_not_written(tmp_path):
    X, Y = study(gaps=False)
    for view, x in X.items():
        np.save(tmp_path / f"{view}.npy", x.to_numpy())
    paths = {view: tmp_path / f"{view}.npy" for view in X}
    streamed = ca.InformedFactorAnalysis(K, chunk_rows=7, **SETTINGS)
    streamed.fit({v: ca.open_rows(path, chunk_rows=7) for v, path in paths.items()}, Y.to_numpy())
    streamed.to_mofa(tmp_path / "a.hdf5")
    whole = ca.InformedFactorAnalysis(K, **SETTINGS).fit({v: x.to_numpy() for v, x in X.items()}, Y.to_numpy())
    whole.to_mofa(tmp_path / "b.hdf5")
    a, b = opened(tmp_path / "a.hdf5"), opened(tmp_path / "b.hdf5")
    assert {at for at in b if at not in a} == {"data/rna/group1", "data/protein/group1"}
    for at in ("variance_explained/r2_per_factor/group1", "variance_explained/r2_total/group1"):
        np.testing.assert_allclose(a[at], b[at], rtol=1e-6)
    assert ca.datasets.mofa(tmp_path / "a.hdf5").Z.index[0] == "sample1"


def test_a_regime_is_written_as_it_is(fa, tmp_path):
    moved = fa.at(1.0)
    moved.to_mofa(tmp_path / "m.hdf5")
    m = ca.datasets.mofa(tmp_path / "m.hdf5")
    np.testing.assert_array_equal(m.Z, moved.factors_)
    assert abs(m.Z.to_numpy() - fa.factors_).max() > 0.01


def test_a_saved_model_is_written_alike(fa, file, tmp_path):
    fa.save(tmp_path / "m.covalign")
    ca.load(tmp_path / "m.covalign").to_mofa(tmp_path / "m.hdf5", groups=GROUPS)
    again, first = opened(tmp_path / "m.hdf5"), opened(file)
    assert list(again) == list(first)
    for at, values in first.items():
        np.testing.assert_array_equal(again[at], values, err_msg=at)


def test_a_saved_model_of_rows_that_were_read_by_chunks_says_so(tmp_path):
    X, Y = study(gaps=False)
    fa = ca.InformedFactorAnalysis(K, **SETTINGS).fit(ca.open_rows(X["rna"].to_numpy(), chunk_rows=9), Y.to_numpy())
    fa.save(tmp_path / "m.covalign")
    with pytest.raises(ValueError, match="rows"):
        ca.load(tmp_path / "m.covalign").to_mofa(tmp_path / "m.hdf5")
    assert not (tmp_path / "m.hdf5").exists()


@pytest.mark.parametrize("views", [("a/b", "a-b"), (".", "b"), ("a\0", "b")])
def test_names_that_no_file_can_have(views, tmp_path):
    X, Y = study(gaps=False)
    fa = ca.InformedFactorAnalysis(5, **SETTINGS).fit(dict(zip(views, X.values(), strict=True)), Y)
    (tmp_path / "m.hdf5").write_text("old")
    with pytest.raises(CannotBeSavedError, match="name"):
        fa.to_mofa(tmp_path / "m.hdf5")
    assert [path.name for path in tmp_path.iterdir()] == ["m.hdf5"]
    assert (tmp_path / "m.hdf5").read_text() == "old"


def test_groups_need_a_label_for_every_sample(fa, tmp_path):
    with pytest.raises(ValueError, match="one label for each of the 40 rows"):
        fa.to_mofa(tmp_path / "m.hdf5", groups=["a", "b"])


def test_without_h5py_the_extra_is_named(fa, file, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    for call in (lambda: fa.to_mofa(tmp_path / "m.hdf5"), lambda: ca.datasets.mofa(file)):
        with pytest.raises(ca.exceptions.MissingExtraError, match=r"covalign\[mofa\]"):
            call()


def test_mofax_reads_it(fa, file):
    mofax = pytest.importorskip("mofax", reason="mofax is not installed")
    model = mofax.mofa_model(str(file))
    order = ca.datasets.mofa(file).Z.index
    assert (model.shape, model.nfactors, model.groups) == ((N, sum(FEATURES.values())), K, ["control", "treated"])
    np.testing.assert_array_equal(model.get_factors(), fa.factors_frame().loc[order])
    np.testing.assert_array_equal(model.get_weights("rna"), fa.loadings_["rna"])
    assert model.metadata.loc["patient1", "group"] == "treated"
    stored = model.get_variance_explained(factors=[0]).set_index(["Group", "View"])["R2"]
    again = model.calculate_variance_explained(factors=[0]).set_index(["Group", "View"])["R2"]
    np.testing.assert_allclose(stored.loc[again.index], again)
    model.close()


# -- from other packages ----------------------------------------------------------------------------------------------


def write_mofa(path, named=True, factors=False, **changed):
    """A model as mofapy2 writes it, with some members changed, or left out (None)."""
    rng = np.random.default_rng(0)
    members = {"samples/a": ["s1", "s2", "s3"], "samples/b": ["s4", "s5"], "features/rna": ["g1", "g2", "g3", "g4"]}
    members |= {"features/met": ["m1", "m2"], "views/views": ["rna", "met"], "groups/groups": ["b", "a"]}
    members |= {f"expectations/Z/{g}": rng.normal(size=(2, n)) for g, n in (("a", 3), ("b", 2))}
    members |= {f"expectations/W/{v}": rng.normal(size=(2, d)) for v, d in (("rna", 4), ("met", 2))}
    members |= {"samples_metadata/a/age": np.arange(3.0), "samples_metadata/b/age": np.arange(2.0)}
    if not named:
        members = {at: values for at, values in members.items() if at.split("/")[0] not in ("views", "groups")}
    if factors:
        members |= {f"factors/{g}": ["immune", "age"] for g in "ab"}
    members |= changed
    with h5py.File(path, "w") as file:
        for at, values in members.items():
            if callable(values):
                values(file, at)
            elif values is not None:
                file[at] = values
    return members


def test_a_model_of_mofapy2(tmp_path):
    members = write_mofa(tmp_path / "m.hdf5")
    m = ca.datasets.mofa(str(tmp_path / "m.hdf5"))
    assert m.Z.index.tolist() == ["s4", "s5", "s1", "s2", "s3"]
    assert m.Z.columns.tolist() == ["Factor1", "Factor2"]
    assert m.groups.tolist() == ["b", "b", "a", "a", "a"]
    np.testing.assert_array_equal(m.Z.loc[["s1", "s2", "s3"]].T, members["expectations/Z/a"])
    np.testing.assert_array_equal(m.loadings["met"].T, members["expectations/W/met"])
    assert list(m.loadings) == ["rna", "met"]
    assert m.metadata["age"].tolist() == [0, 1, 0, 1, 2]


def test_a_model_of_the_first_versions_of_mofapy2(tmp_path):
    write_mofa(tmp_path / "m.hdf5", named=False)
    assert list(ca.datasets.mofa(tmp_path / "m.hdf5").loadings) == ["met", "rna"]


def test_muvi_names_its_factors_in_hdf5(tmp_path):
    write_mofa(tmp_path / "m.hdf5", factors=True)
    assert ca.datasets.mofa(tmp_path / "m.hdf5").Z.columns.tolist() == ["immune", "age"]


@pytest.mark.filterwarnings("ignore")  # of mofapy2, about its own logarithms
def test_mofapy2_itself(tmp_path):
    entry = pytest.importorskip("mofapy2.run.entry_point", reason="mofapy2 is not installed")
    s = ca.simulate.scenario("PN", n_samples=60, n_features=FEATURES, n_factors=5, n_covariates=2)
    model = entry.entry_point()
    model.set_data_matrix([[x] for x in s.X.values()], views_names=list(s.X))
    model.set_model_options(factors=5)
    model.set_train_options(iter=30, seed=1)
    model.build()
    model.run()
    model.save(str(tmp_path / "m.hdf5"))
    m = ca.datasets.mofa(tmp_path / "m.hdf5")
    Z = model.model.nodes["Z"].getExpectation()
    order = [int(np.argmax(abs(np.corrcoef(z, Z.T)[0, 1:]))) for z in m.Z.to_numpy().T]  # sorted by variance
    np.testing.assert_allclose(m.Z, Z[:, order])
    assert (ca.LatentAligner(lam=1).fit(m.Z, s.Y).alignment_ > 0.5).all()


def write_mofaflex(path, sparse=True):
    """A model as MOFA-FLEX 0.1.2 writes it: a dict through anndata, and a pickle that nobody may read."""
    io = pytest.importorskip("anndata.io", reason="anndata is not installed")
    rng = np.random.default_rng(1)
    state = {
        "factors": {"mean": {"a": rng.normal(size=(3, 4))}, "std": {"a": np.ones((3, 4))}},
        "weights": {"mean": {"rna": rng.normal(size=(3, 5))}, "std": {"rna": np.ones((3, 5))}},
        "sparse_weights_probabilities": {"rna": rng.uniform(size=(3, 5))} if sparse else {},
        "sparse_factors_probabilities": {},
        "factor_names": np.array(["Factor 1", "age", "Factor 2"]),
        "factor_order": np.array([1, 0, 2]),
        "group_names": np.array(["a"]),
        "view_names": np.array(["rna"]),
        "sample_names": {"a": np.array([f"s{i}" for i in range(4)])},
        "feature_names": {"rna": np.array([f"g{i}" for i in range(5)])},
    }
    with h5py.File(path, "w") as file:
        io.write_elem(file.create_group("mofaflex"), "state", state)
        file["mofaflex/pickle"] = np.frombuffer(b"cos\nabort\n(tR.", dtype=np.uint8)
        file["mofaflex"].attrs["version"] = "0.1.2"
    return state


@pytest.mark.parametrize("sparse", [True, False])
def test_a_model_of_mofaflex(sparse, tmp_path):
    state = write_mofaflex(tmp_path / "m.h5", sparse)
    m = ca.datasets.mofa(tmp_path / "m.h5")
    assert m.Z.columns.tolist() == ["Factor 1", "age", "Factor 2"]
    assert (m.Z.index.tolist(), m.groups.unique().tolist()) == ([f"s{i}" for i in range(4)], ["a"])
    np.testing.assert_array_equal(m.Z.T, state["factors"]["mean"]["a"])
    here = state["sparse_weights_probabilities"]["rna"] if sparse else 1.0
    np.testing.assert_array_equal(m.loadings["rna"].T, state["weights"]["mean"]["rna"] * here)


def write_muvi(folder, **changed):
    """A folder as MuVI 0.2.2 writes it. Its structure.npz is a pickle that nobody may read."""
    folder.mkdir()
    rng = np.random.default_rng(2)
    meta = {"view_names": ["rna", "met"], "feature_names": {"rna": ["g1", "g2", "g3"], "met": ["m1", "m2"]}}
    meta |= {"sample_names": ["s1", "s2", "s3", "s4"], "_old_factor_names": ["f0", "f1"], "factor_names": ["f1", "f0"]}
    meta |= {"nmf": {"rna": False, "met": False}, "pos_transform": "relu", **changed}
    params = {
        "loc::z": rng.normal(size=(4, 2)),
        "loc::w_0": rng.normal(size=(2, 3)),
        "loc::w_1": rng.normal(size=(2, 2)),
    }
    (folder / "metadata.json").write_text(json.dumps(meta))
    np.savez(folder / "params.npz", **{f"{name}_unconstrained": values for name, values in params.items()})
    (folder / "structure.npz").write_bytes(b"cos\nabort\n(tR.")
    return params


def test_a_folder_of_muvi(tmp_path):
    params = write_muvi(tmp_path / "m")
    m = ca.datasets.mofa(tmp_path / "m")
    assert m.Z.columns.tolist() == ["f1", "f0"]
    W = np.vstack([m.loadings["rna"], m.loadings["met"]])
    assert (W.sum(axis=0) > 0).all()
    np.testing.assert_allclose(
        m.Z[["f0", "f1"]].to_numpy() @ m.loadings["rna"][["f0", "f1"]].T, params["loc::z"] @ params["loc::w_0"]
    )


def test_a_folder_of_muvi_with_positive_loadings_and_other_names(tmp_path):
    params = write_muvi(tmp_path / "m", nmf={"rna": True, "met": False}, factor_names=["x", "y"])
    m = ca.datasets.mofa(tmp_path / "m")
    assert m.Z.columns.tolist() == ["f0", "f1"]  # the order of x and y is in the pickle alone
    np.testing.assert_array_equal(m.Z, np.maximum(params["loc::z"], 0))
    np.testing.assert_array_equal(m.loadings["rna"].T, np.maximum(params["loc::w_0"], 0))
    np.testing.assert_array_equal(m.loadings["met"].T, params["loc::w_1"])


# -- hostile files ----------------------------------------------------------------------------------------------------


def virtual(file, at):
    source = h5py.VirtualLayout((2, 3), "f8")
    source[:] = h5py.VirtualSource("elsewhere.h5", "x", (2, 3))
    file.create_virtual_dataset(at, source)


HOSTILE = {
    "expectations/Z/a": [
        None,
        ["text"] * 3,
        np.zeros((3, 3)),
        np.zeros((2, 3, 1)),
        np.full((2, 3), np.nan),
        np.zeros((2, 3), dtype="c16"),
        lambda file, at: file.create_group(at),
        lambda file, at: file.create_dataset(at, data=h5py.Empty("f8")),
        lambda file, at: file.update({at: h5py.ExternalLink("other.h5", "/x")}),
        lambda file, at: file.update({at: h5py.SoftLink("/expectations/W/rna")}),
        virtual,
        lambda file, at: file.create_dataset(at, (2, 3), "f8", external=[("/dev/zero", 0, 48)]),
    ],
    "expectations/Z/b": [np.zeros((0, 2)), np.zeros(2)],
    "expectations/W/met": [None, np.zeros((2, 3)), np.array([[np.inf, 0], [0, 0]])],
    "samples/a": [
        None,
        [1, 2, 3],
        ["s1", "s1", "s3"],
        [["s1", "s2", "s3"]],
        ["s1", "s2"],
        np.array([b"\xff", b"b", b"c"]),
        lambda file, at: file.create_dataset(at, (10**12,), h5py.string_dtype(), chunks=(1000,)),
        lambda file, at: file.create_dataset(at, (0,), h5py.string_dtype()),
    ],
    "features/rna": [None, np.array([0.5] * 4)],
    "groups/groups": [["a", "c"], 3, ["a", "a"], ["."]],
    "views/views": [["rna", "none"]],
    "factors/b": [["one"], ["one", "one"], 5],
    "samples_metadata/a/age": [np.zeros(2)],
}


SEEN_AT = {"samples/a": "expectations/Z/a", "groups/groups": "samples/", "views/views": "features/none"}  # wrong names


@pytest.mark.parametrize(("at", "values"), [(at, v) for at, many in HOSTILE.items() for v in many])
def test_a_malformed_member_is_named(at, values, tmp_path):
    write_mofa(tmp_path / "m.hdf5", **{at: values})
    with pytest.raises(FileFormatError, match=r"m\.hdf5") as error:
        ca.datasets.mofa(tmp_path / "m.hdf5")
    assert at in str(error.value) or SEEN_AT.get(at, at) in str(error.value)


@pytest.mark.parametrize(
    ("name", "content"),
    [("m.hdf5", b""), ("m.hdf5", b"\x89HDF\r\n\x1a\n"), ("m.rds", b"\x1f\x8b\x08"), ("m.pkl", b"cos\nabort\n(tR.")],
)
def test_what_is_no_model_says_what_is_read(name, content, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FileFormatError, match="mofapy2, of MuVI's save_as_hdf5, of MOFA-FLEX"):
        ca.datasets.mofa(tmp_path / name)


def test_other_hdf5_files_and_folders_are_no_models(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["counts"] = np.eye(2)
    (tmp_path / "folder").mkdir()
    for path, says in ((tmp_path / "x.h5", "'counts'"), (tmp_path / "folder", "metadata.json")):
        with pytest.raises(FileFormatError, match=says):
            ca.datasets.mofa(path)
    with pytest.raises(DataNotFoundError):
        ca.datasets.mofa(tmp_path / "none.hdf5")


@pytest.mark.parametrize(
    "changed",
    [
        {"view_names": "rna"},
        {"feature_names": []},
        {"sample_names": ["s", "s"]},
        {"sample_names": [None]},
        {"_old_factor_names": ["f0"], "factor_names": ["f0"]},
        {"nmf": {"rna": True, "met": False}, "pos_transform": "__import__"},
        {"feature_names": {"rna": ["g1"], "met": ["m1"]}},
    ],
)
def test_a_malformed_folder_of_muvi(changed, tmp_path):
    write_muvi(tmp_path / "m", **changed)
    with pytest.raises(FileFormatError, match=r"metadata\.json|params\.npz"):
        ca.datasets.mofa(tmp_path / "m")


def test_a_pickle_among_the_parameters_is_not_loaded(tmp_path):
    params = write_muvi(tmp_path / "m")
    ca.datasets.mofa(tmp_path / "m")
    np.savez(tmp_path / "m/params.npz", **{**params, "loc::z": np.array([object()], dtype=object)})
    with pytest.raises(FileFormatError, match=r"params\.npz"):
        ca.datasets.mofa(tmp_path / "m")


def test_damaged_text_is_refused_before_hdf5_reads_it(file, tmp_path):
    """HDF5 would walk through a damaged heap without end, and allocate the length that a text claims."""
    whole = bytearray(file.read_bytes())
    heap = whole.index(b"GCOL")
    with h5py.File(file, "r") as found:
        names = found["samples/treated"].id.get_offset()
    free = heap + 16
    while struct.unpack_from("<H", whole, free)[0]:
        free += 16 + -(-struct.unpack_from("<Q", whole, free + 8)[0] // 8) * 8
    for at, width, value, says in (
        (heap + 24, 8, 2**64 - 16, f"damaged list of texts at byte {heap}"),
        (heap + 8, 8, 2**40, f"damaged list of texts at byte {heap}"),
        (free + 8, 8, 0, f"damaged list of texts at byte {heap}"),
        (names, 4, 2**32 - 1, "samples/treated has texts longer than the file"),
    ):
        damaged = bytearray(whole)
        damaged[at : at + width] = value.to_bytes(width, "little")
        (tmp_path / "m.hdf5").write_bytes(damaged)
        with pytest.raises(FileFormatError, match=says):
            ca.datasets.mofa(tmp_path / "m.hdf5")


def test_damaged_bytes_are_an_error_or_a_model(file, tmp_path):
    """Never another exception. Lengths and flips are drawn once, so that every run sees the same files."""
    whole, rng, refused = file.read_bytes(), np.random.default_rng(3), 0
    damaged = [whole[: int(end)] for end in rng.integers(0, len(whole), 20)]
    for _ in range(60):
        copy = np.frombuffer(whole, dtype=np.uint8).copy()
        copy[rng.integers(0, len(copy), 30)] = rng.integers(0, 256, 30)
        damaged.append(copy.tobytes())
    for content in damaged:
        (tmp_path / "m.hdf5").write_bytes(content)
        try:
            ca.datasets.mofa(tmp_path / "m.hdf5")
        except FileFormatError as error:
            refused += "m.hdf5" in str(error)
    assert refused >= 20


# -- loadings of aligned dimensions -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def factors():
    s = ca.simulate.scenario("PN", n_samples=150, n_features=FEATURES)
    return s, pd.DataFrame(s.Z + 2, columns=[f"Factor{i + 1}" for i in range(s.Z.shape[1])])


@pytest.mark.parametrize("regime", ["independent", "tunable", "strongest", "exclusive"])
@pytest.mark.parametrize("shrinkage", ["auto", 0.0, 0.3])
def test_loadings_reconstruct_what_the_factors_do(regime, shrinkage, factors):
    s, Z = factors
    al = ca.LatentAligner(regime, shrinkage=shrinkage, keep_rest=True).fit(Z, s.Y)
    for view, W in s.W.items():
        carried = al.loadings({view: W})[view]
        np.testing.assert_allclose(al.transform(Z) @ carried.T, (Z - Z.mean()).to_numpy() @ W.T, atol=1e-8)


def test_without_the_rest_loadings_are_least_squares_and_the_same(factors):
    s, Z = factors
    al, W = ca.LatentAligner().fit(Z, s.Y), s.W["rna"]
    carried, z = al.loadings(W), al.transform(Z)
    target = (Z - Z.mean()).to_numpy() @ W.T
    np.testing.assert_allclose(carried.T, np.linalg.lstsq(z, target, rcond=None)[0])
    kept = ca.LatentAligner(keep_rest=True).fit(Z, s.Y).loadings(W)
    np.testing.assert_allclose(kept[:, :5], carried)


def test_loadings_with_confounders_are_of_what_they_leave(factors):
    s, Z = factors
    batch = pd.DataFrame({"batch": np.arange(len(Z)) % 2.0})
    al = ca.LatentAligner(keep_rest=True).fit(Z + 3 * batch.to_numpy(), s.Y, confounders=batch)
    left = al.transform(Z + 3 * batch.to_numpy(), confounders=batch) @ al.loadings(s.W["rna"]).T
    C = np.column_stack([np.ones(len(Z)), batch])
    residual = Z - C @ np.linalg.lstsq(C, Z, rcond=None)[0]
    np.testing.assert_allclose(left, residual.to_numpy() @ s.W["rna"].T, atol=1e-8)


def test_loadings_keep_names_and_follow_those_of_columns(factors):
    s, Z = factors
    al = ca.LatentAligner(keep_rest=True).fit(Z, s.Y)
    W = pd.DataFrame(s.W["rna"], [f"gene{i}" for i in range(12)], Z.columns)
    carried = al.loadings({"rna": W[W.columns[::-1]], "plain": s.W["rna"]})
    assert carried["rna"].index.equals(W.index)
    assert carried["rna"].columns.tolist() == al.get_feature_names_out().tolist()
    np.testing.assert_allclose(carried["rna"], carried["plain"])
    assert isinstance(carried["plain"], np.ndarray)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda W: W.T, r"needs a row for each feature and 10 columns.*got shape \(10, 12\): transpose"),
        (lambda W: W[:, 0], r"got shape \(12,\)"),
        (lambda W: W.astype(str), "real numbers"),
        (lambda W: pd.DataFrame(W, columns=[f"factor {i + 1}" for i in range(10)]), "Did you mean 'factor 1'"),
        (lambda W: {"rna": W[:, :3]}, r"W\['rna'\]"),
    ],
)
def test_loadings_that_do_not_fit(make, says, factors):
    s, Z = factors
    with pytest.raises(ValueError, match=says):
        ca.LatentAligner().fit(Z, s.Y).loadings(make(s.W["rna"]))


def test_a_singular_map_has_least_squares_loadings(factors):
    s, Z = factors
    Y = np.column_stack([s.Y, s.Y[:, 0] + s.Y[:, 1]])
    with pytest.warns(ca.exceptions.SingularTransformWarning):
        al = ca.LatentAligner("strongest", shrinkage=0.0).fit(Z, Y)
    with pytest.warns(LeastSquaresWarning, match="singular"):
        carried = al.loadings(s.W["rna"])
    target = (Z - Z.mean()).to_numpy() @ s.W["rna"].T
    left = target - al.transform(Z) @ carried.T
    np.testing.assert_allclose(al.transform(Z).T @ left, 0, atol=1e-8)


def test_factors_of_a_file_are_named_and_explain_as_much(file):
    """From a path as from a frame; W~ z~ of all dimensions is W z of the factors."""
    m, Y = ca.datasets.mofa(file), study()[1][["weight", "stage"]]
    al = ca.LatentAligner(keep_rest=True).fit(m.Z, Y.loc[m.Z.index])
    assert al.covariate_names_ == ["weight", "stage"]
    for view, W in al.loadings(m.loadings).items():
        whole = (m.Z - m.Z.mean()).to_numpy() @ m.loadings[view].T.to_numpy()
        np.testing.assert_allclose(al.transform(m.Z) @ W.T.to_numpy(), whole, atol=1e-8)
    again = ca.LatentAligner(keep_rest=True).fit(str(file), Y.loc[m.Z.index])
    np.testing.assert_allclose(again.T_, al.T_)


# -- the command line -------------------------------------------------------------------------------------------------


def test_a_fit_for_mofa_and_the_alignment_of_its_factors(tmp_path, monkeypatch):
    testing = pytest.importorskip("typer.testing", reason="the command line needs typer")
    from covalign.cli import app

    monkeypatch.chdir(tmp_path)
    X, Y = study(gaps=False)
    X["rna"].to_csv("rna.csv")
    Y[["weight", "stage"]].iloc[::-1].to_csv("clinic.csv")
    fit = ["fit", "rna.csv", "--covariates", "clinic.csv", "--n-factors", "4", "--folds", "0", "--supervision", "1"]
    run = testing.CliRunner().invoke
    assert run(app, [*fit, "--mofa-out", "m.txt"]).exit_code == 2
    made = run(app, [*fit, "--mofa-out", "m.hdf5"])
    assert (made.exit_code, "m.hdf5" in made.stdout) == (0, True), made.stderr
    assert run(app, [*fit, "--mofa-out", "m.hdf5"]).exit_code == 3  # it exists
    aligned = run(app, ["align", "m.hdf5", "clinic.csv", "-o", "aligned.csv"])
    assert aligned.exit_code == 0, aligned.stderr
    found = pd.read_csv("aligned.csv", index_col=0)
    Z = ca.datasets.mofa("m.hdf5").Z
    np.testing.assert_allclose(
        found, ca.LatentAligner().fit(Z, Y.loc[Z.index, ["weight", "stage"]]).transform(Z), atol=1e-6
    )
    assert found.columns.tolist() == ["weight", "stage"]
    assert found.index.tolist() == SAMPLES
