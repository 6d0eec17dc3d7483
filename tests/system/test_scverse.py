"""AnnData and MuData in, the same numbers as from arrays out, in places that files can hold."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import covalign as ca
from covalign.bridges.scverse.slots import written_as
from covalign.exceptions import NotHeldOutWarning
from covalign.stream.h5ad import pulling
from tests.conftest import thorough

anndata = pytest.importorskip("anndata", reason="anndata is not installed")
mudata = pytest.importorskip("mudata", reason="mudata is not installed")

AGES = ["age", "dose"]
QUICK = {"folds": 0, "tol": 1e-3, "supervision": 1.0}  # where a fit is needed, and not its last digits

PULLS = [False, True] if hasattr(mudata, "set_options") else [False]  # from mudata 0.4 on, columns are never pulled


def scanpy_like(n=160, seed=0):
    """As after scanpy's usual steps: sparse X of logarithms, float32 components, obs and uns of all sorts."""
    rng = np.random.default_rng(seed)
    Y = rng.standard_normal((n, 3))
    Z = (Y @ rng.standard_normal((3, 8)) + rng.standard_normal((n, 8))).astype(np.float32)
    counts = sparse.csr_matrix(rng.poisson(np.exp(Z[:, :6] @ rng.standard_normal((6, 30)) / 6)).astype(np.float32))
    obs = pd.DataFrame(
        {
            "age": Y[:, 0],
            "dose": Y[:, 1].astype(np.float32),
            "sex": np.where(Y[:, 2] > 0, "M", "F"),
            "leiden": pd.Categorical(np.digitize(Y[:, 0], [-0.5, 0.5]).astype(str)),
            "treated": Y[:, 1] > 0,
            "batch": pd.Categorical(np.array(["b1", "b2"])[np.arange(n) % 2]),
            "n_counts": np.asarray(counts.sum(axis=1)).ravel(),
        },
        index=[f"CELL{i}-1" for i in rng.permutation(n)],
    )
    var = pd.DataFrame({"highly_variable": np.arange(30) % 3 > 0}, index=[f"gene{i}" for i in range(30)])
    adata = anndata.AnnData(counts.log1p(), obs=obs, var=var, obsm={"X_pca": Z})
    adata.layers["dense"] = counts.log1p().toarray()
    adata.layers["counts"] = counts
    adata.varm["PCs"] = rng.standard_normal((30, 8))
    adata.uns["pca"] = {"variance": np.arange(8.0), "params": {"zero_center": True}}
    adata.uns["leiden_colors"] = ["#111111", "#222222"]
    return adata


def muon_like(n=160, seed=0, pull=False):
    """Two modalities with different cells in different orders; columns of obs as muon pulls them, or not."""
    rng = np.random.default_rng(seed)
    data = ca.simulate.scenario("PN", n_samples=n, n_features={"rna": 20, "prot": 8}, n_covariates=2, random_state=seed)
    cells = np.array([f"c{i}" for i in range(n)])
    first, second = rng.permutation(n)[: n - 20], rng.permutation(n)[: n - 30]
    rna = anndata.AnnData(
        sparse.csc_matrix(data.X["rna"][first].astype(np.float32)),
        obs=pd.DataFrame({"age": data.Y[first, 0], "total": 1.0}, index=cells[first]),
        var=pd.DataFrame({"highly_variable": np.arange(20) != 3}, index=[f"g{i}" for i in range(20)]),
    )
    prot = anndata.AnnData(
        data.X["prot"][second],
        obs=pd.DataFrame({"dose": data.Y[second, 1], "total": 2.0}, index=cells[second]),
        var=pd.DataFrame(index=[f"p{i}" for i in range(8)]),
    )
    with pulling(pull):
        return mudata.MuData({"rna": rna, "prot": prot})


def reread(data, tmp_path):
    if isinstance(data, anndata.AnnData):
        data.write_h5ad(tmp_path / "a.h5ad")
        return anndata.read_h5ad(tmp_path / "a.h5ad")
    with pulling(False):
        data.write(tmp_path / "m.h5mu")
        return mudata.read_h5mu(tmp_path / "m.h5mu")


def same(a, b):
    """Equal in value, through nested dicts."""
    if isinstance(a, dict):
        return set(a) == set(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, pd.DataFrame):
        pd.testing.assert_frame_equal(a, b, check_dtype=False, check_names=False)
        return True
    return bool(np.array_equal(np.asarray(a), np.asarray(b), equal_nan=np.asarray(a).dtype.kind == "f"))


def contents(data):
    """Everything in an AnnData, as bytes and plain values."""
    X = data.X.toarray() if sparse.issparse(data.X) else np.asarray(data.X)
    tables = {f"obsm/{k}": np.asarray(v).tobytes() for k, v in data.obsm.items()}
    tables |= {f"varm/{k}": np.asarray(v).tobytes() for k, v in data.varm.items()}
    return X.tobytes(), data.obs.to_csv(), data.var.to_csv(), tables, repr(dict(data.uns))


# -- align ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rep", ["X_pca", "obsm/X_pca", "X", "layers/dense"])
def test_align_gives_the_numbers_of_the_aligner(rep):
    adata = scanpy_like()
    columns = ["age", "sex", "leiden", "treated"]
    arrays = {"X": adata.X, "layers/dense": adata.layers["dense"]}
    Z = arrays.get(rep, adata.obsm["X_pca"])
    assert ca.scverse.align(adata, rep, columns, mask_var=None, confounders="batch", lam=0.7) is None
    plain = ca.LatentAligner(lam=0.7).fit(Z, adata.obs[columns], confounders=adata.obs[["batch"]])
    table, found = ca.scverse.table(adata), adata.uns["aligned"]
    np.testing.assert_allclose(table, plain.transform(Z, confounders=adata.obs[["batch"]]), rtol=1e-4, atol=1e-5)
    assert list(table.columns) == plain.covariate_names_
    assert [name for name in table if name.startswith("leiden")] == ["leiden_1", "leiden_2"]
    assert "sex_M" in table
    assert table.index.equals(adata.obs_names)
    np.testing.assert_allclose(found["transform"], plain.transform_, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found["alignment"]["held_out"], plain.held_out_alignment_, rtol=1e-6)
    assert found["shrinkage"] == pytest.approx(plain.shrinkage_)
    assert found["coupling"] == pytest.approx(plain.coupling_)
    assert found["params"]["shrinkage"] == "auto"
    assert found["params"]["confounders"].tolist() == ["batch"]
    assert found["covalign"] == ca.__version__


def test_the_stored_map_is_the_one_that_was_applied():
    adata = scanpy_like()
    ca.scverse.align(adata, "X_pca", AGES)
    found = adata.uns["aligned"]
    by_hand = (adata.obsm["X_pca"] - found["mean"]) @ found["transform"].T
    np.testing.assert_allclose(adata.obsm["X_aligned"], by_hand, rtol=1e-4, atol=1e-5)


def test_plots_of_scanpy_find_arrays(tmp_path):
    """``sc.pl.embedding`` takes ``obsm[basis][:, dimensions]`` and ``sc.pl.ranking`` ``varm[key][:, indices]``."""
    adata = scanpy_like()
    ca.scverse.align(adata, covariates=AGES)
    ca.scverse.ifa(adata, AGES, 4, **QUICK)
    for data in (adata, reread(adata, tmp_path)):
        for held in (data.obsm["X_aligned"], data.obsm["X_ifa"], data.varm["ifa"]):
            assert isinstance(held, np.ndarray)
            assert np.isfinite(held[:, [1, 0]]).all()
        assert list(ca.scverse.names(data)) == AGES
        assert ca.scverse.table(data, "X_ifa").columns.tolist() == [*AGES, "free0", "free1"]
        assert (ca.scverse.loadings(data).loc[~data.var["highly_variable"]] == 0).all(axis=None)
    mdata = muon_like()
    ca.scverse.ifa(mdata, ["age", "dose"], 3, **QUICK)
    assert isinstance(mdata.obsm["X_ifa"], np.ndarray)
    loadings = ca.scverse.loadings(mdata, modality="prot")
    assert (loadings.index.tolist(), loadings.columns.tolist()) == (
        mdata["prot"].var_names.tolist(),
        ["age", "dose", "free0"],
    )
    with pytest.raises(ValueError, match=r"There are 'prot', 'rna'; name one"):
        ca.scverse.loadings(mdata)


def test_a_table_in_place_of_an_array(tmp_path):
    adata = scanpy_like()
    ca.scverse.align(adata, "X_pca", AGES)
    array = adata.obsm["X_aligned"]
    ca.scverse.align(adata, "X_pca", AGES, as_frame=True)
    table = reread(adata, tmp_path).obsm["X_aligned"]
    assert np.array_equal(table, array)
    pd.testing.assert_frame_equal(table, ca.scverse.table(adata), check_names=False)
    ca.scverse.transform(adata, like=adata, as_frame=True)
    assert adata.obsm["X_aligned"].columns.tolist() == AGES


def test_layers_and_masks():
    """A layer by its name, and features by a mask, also in new cells."""
    adata = scanpy_like()
    keep = adata.var["highly_variable"]
    adata.var["few"] = np.arange(30) < 12
    for mask, used in (("auto", keep), ("few", adata.var["few"]), (keep.to_numpy(), keep)):
        ca.scverse.align(adata, covariates=AGES, layer="dense", mask_var=mask)
        Z = adata.layers["dense"][:, used]
        expected = ca.LatentAligner().fit(Z, adata.obs[AGES]).transform(Z)
        np.testing.assert_allclose(adata.obsm["X_aligned"], expected, rtol=1e-4, atol=1e-5)
    again = adata[:50, ::-1].copy()
    ca.scverse.transform(again, like=adata)
    np.testing.assert_allclose(again.obsm["X_aligned"], adata.obsm["X_aligned"][:50], rtol=1e-4, atol=1e-5)
    ca.scverse.ifa(adata, AGES, 3, layer="dense", mask_var="few", **QUICK)
    model = ca.InformedFactorAnalysis(3, **QUICK).fit(adata.layers["dense"][:, :12], adata.obs[AGES])
    np.testing.assert_allclose(adata.obsm["X_ifa"], model.factors_, rtol=1e-4, atol=1e-5)
    for wrong, words in (
        ({"use_rep": "X", "layer": "dense"}, "use_rep and layer exclude each other"),
        ({"layer": "dens"}, "Did you mean 'layers/dense'"),
        ({"mask_var": "few"}, r"mask_var chooses features of X or of a layer, got data.obsm\['X_pca'\]"),
    ):
        with pytest.raises(ValueError, match=words):
            ca.scverse.align(adata, covariates=AGES, **wrong)


@pytest.mark.parametrize("layout", ["csr", "csc", "dense"])
def test_raw_counts_are_noticed(layout):
    adata = scanpy_like()
    counts = adata.layers["counts"]
    adata.layers["counts"] = counts.toarray() if layout == "dense" else counts.asformat(layout)
    with pytest.warns(ca.exceptions.RawCountsWarning, match=r"layers\['counts'\] looks like raw counts.*log1p") as said:
        ca.scverse.align(adata, covariates=AGES, layer="counts")
    assert said[0].filename == __file__
    with pytest.warns(ca.exceptions.RawCountsWarning, match="Log-normalise first") as said:
        ca.scverse.ifa(adata, AGES, 3, layer="counts", **QUICK)
    assert said[0].filename == __file__
    adata.layers["flags"] = adata.layers["counts"] > 0  # whole numbers, and no counts
    ca.scverse.align(adata, covariates=AGES, layer="flags")


ODD = ["a/b", "50%", "100%2F", ".", "..", "_index", "cell", "7", "Größe μ/ß", "__categories", " ", "x" * 300, "%/", "é"]


@pytest.mark.filterwarnings("ignore")  # zarr's and anndata's, of their formats
@pytest.mark.parametrize("kind", ["h5ad", *thorough("zarr")])
def test_odd_names_survive_a_file(tmp_path, kind):
    if kind == "zarr":
        pytest.importorskip("zarr")
    odd = [name for name in ODD if kind == "h5ad" or len(name) < 200]  # in zarr it is the name of a folder
    rng = np.random.default_rng(1)
    Z = rng.standard_normal((160, len(odd)))
    index = pd.Index([f"CELL{i}" for i in range(160)], name="cell")
    obs = pd.DataFrame(Z + rng.standard_normal(Z.shape), index=index, columns=odd)
    adata = anndata.AnnData(obs=obs, obsm={"X_pca": Z})
    ca.scverse.align(adata, "X_pca", odd, lam=1.0, as_frame=True)
    assert list(ca.scverse.names(adata).values()) == odd
    table, found = adata.obsm["X_aligned"].copy(), adata.uns["aligned"]
    assert list(ca.scverse.table(adata)) == odd
    adata.obs = adata.obs[[]]  # h5ad could not store the columns themselves
    path = tmp_path / f"a.{kind}"
    adata.write_h5ad(path) if kind == "h5ad" else adata.write_zarr(path)
    back = anndata.read_h5ad(path) if kind == "h5ad" else anndata.read_zarr(path)
    assert same(table, back.obsm["X_aligned"])
    assert same(found, back.uns["aligned"])
    assert back.uns["aligned"]["alignment"].index.tolist() == odd
    assert list(ca.scverse.names(back).values()) == odd
    assert list(back.obsm["X_aligned"].rename(columns=ca.scverse.names(back))) == odd


def test_levels_with_slashes_become_columns_that_files_take(tmp_path):
    adata = scanpy_like()
    adata.obs["type"] = pd.Categorical(np.array(["CD4/CD8", "NK", "B/plasma"])[np.arange(160) % 3])
    ca.scverse.align(adata, "X_pca", ["type"], keep_rest=True, drop_first=False, as_frame=True)
    back = reread(adata, tmp_path)
    assert list(back.obsm["X_aligned"])[:3] == ["type_B%2Fplasma", "type_CD4%2FCD8", "type_NK"]
    assert ca.scverse.names(back)["type_CD4%2FCD8"] == "type_CD4/CD8"


def test_escapes_are_undone_by_any_url_decoder():
    from urllib.parse import unquote

    for name in [*ODD, "%25", "%2", "%2/", "%%2F", "/", "//", "%é2F"]:
        assert unquote(written_as(name, "cell")) == name
        assert "/" not in written_as(name)
        assert written_as(name, "cell") not in (".", "_index", "cell")
    assert written_as("plain name (50 %)") == "plain name (50 %)"


def test_the_aligner_comes_back_from_a_file(tmp_path):
    adata = scanpy_like()
    model = ca.scverse.align(adata, "X_pca", ["age", "leiden"], confounders=["batch"], return_model=True)
    back = reread(adata, tmp_path)
    again = ca.scverse.aligner(back)
    C = adata.obs[["batch"]]
    for one, other in ((model, again), (model.at(lam=0.9), again.at(lam=0.9))):
        assert np.array_equal(one.transform_, other.transform_)
        pd.testing.assert_frame_equal(one.summary(), other.summary())
    Z = adata.obsm["X_pca"]
    assert np.array_equal(model.transform(Z, confounders=C), again.transform(Z, confounders=C))


def test_other_cells_are_turned_alike(tmp_path):
    adata = scanpy_like()
    old, new = adata[:100].copy(), adata[100:].copy()
    model = ca.scverse.align(old, "X_pca", AGES, confounders="batch", return_model=True)
    del new.obs["age"]
    old = reread(old, tmp_path)
    assert ca.scverse.transform(new, like=old) is None
    expected = model.transform(new.obsm["X_pca"], confounders=new.obs[["batch"]])
    np.testing.assert_array_equal(new.obsm["X_aligned"], expected)
    assert not new.uns["aligned"]["fitted_here"]
    assert old.uns["aligned"]["fitted_here"]
    new = reread(new, tmp_path)
    assert ca.scverse.names(new) == ca.scverse.names(old)


def test_genes_of_other_cells_are_matched_by_name():
    adata = scanpy_like()
    old = adata[:100].copy()
    new = adata[100:, np.random.default_rng(0).permutation(30)].copy()
    ca.scverse.align(old, "X", AGES, mask_var=None)
    ca.scverse.transform(new, like=old)
    straight = ca.scverse.transform(adata[100:], like=old, copy=True)
    np.testing.assert_allclose(new.obsm["X_aligned"], straight.obsm["X_aligned"], rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match=r"lack 2 features of the fit \('gene0', 'gene1'\)"):
        ca.scverse.transform(adata[:, 2:].copy(), like=old)


def test_a_copy_leaves_the_original_alone():
    adata = scanpy_like()
    before = contents(adata)
    other = ca.scverse.align(adata, "X_pca", AGES, copy=True)
    assert contents(adata) == before
    assert "X_aligned" in other.obsm
    again, model = ca.scverse.align(adata, "X_pca", AGES, copy=True, return_model=True)
    assert same(other.obsm["X_aligned"], again.obsm["X_aligned"])
    assert isinstance(model, ca.LatentAligner)
    factored = ca.scverse.ifa(adata, AGES, n_factors=4, **QUICK, copy=True)
    assert contents(adata) == before
    assert "ifa" in factored.varm
    assert "ifa" in factored.uns


def test_a_view_becomes_an_object_and_its_parent_stays():
    adata = scanpy_like()
    before = contents(adata)
    view = adata[adata.obs["sex"] == "M"]
    whole = view.copy()
    ca.scverse.align(view, "X_pca", AGES)
    ca.scverse.align(whole, "X_pca", AGES)
    assert contents(adata) == before
    assert not view.is_view
    assert same(view.obsm["X_aligned"], whole.obsm["X_aligned"])
    view = adata[::2, 3:]
    ca.scverse.ifa(view, AGES, n_factors=4, **QUICK)
    assert contents(adata) == before
    assert view.varm["ifa"].shape == (27, 4)


@pytest.mark.parametrize("layout", ["csr", "csc", "dense"])
def test_backed_objects(tmp_path, layout):
    adata = scanpy_like()
    adata.X = adata.X.toarray() if layout == "dense" else adata.X.asformat(layout)
    adata.write_h5ad(tmp_path / "b.h5ad")
    backed = anndata.read_h5ad(tmp_path / "b.h5ad", backed="r")
    ca.scverse.align(backed, "X_pca", AGES)
    ca.scverse.align(adata, "X_pca", AGES)
    assert same(adata.obsm["X_aligned"], backed.obsm["X_aligned"])
    for data in (backed, adata):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ca.exceptions.ColumnLayoutWarning)
            ca.scverse.align(data, "X", AGES, key_added="X_genes")
        ca.scverse.ifa(data, AGES, n_factors=4, **QUICK)
    np.testing.assert_allclose(adata.obsm["X_genes"], backed.obsm["X_genes"], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(adata.obsm["X_ifa"], backed.obsm["X_ifa"], rtol=1e-6, atol=1e-8)
    for call in (lambda: ca.scverse.align(backed, "X_pca", AGES, copy=True), lambda: _on_part(backed)):
        with pytest.raises(ValueError, match=r"backed by a file.*to_memory"):
            call()
    backed.file.close()


def _on_part(backed):
    ca.scverse.align(backed[:50], "X_pca", AGES)


def test_order_of_cells_leaves_no_trace():
    adata = scanpy_like()
    shuffled = adata[np.random.default_rng(3).permutation(160)].copy()
    for data in (adata, shuffled):
        ca.scverse.align(data, "X_pca", AGES)
    np.testing.assert_allclose(
        ca.scverse.table(shuffled).loc[adata.obs_names], adata.obsm["X_aligned"], rtol=1e-4, atol=1e-5
    )


def test_repeated_cell_names_do_not_matter_within_one_object():
    adata = scanpy_like()
    ca.scverse.align(adata, "X_pca", ["age"], confounders="batch")
    values = adata.obsm["X_aligned"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # anndata's own
        twice = scanpy_like()
        twice.obs_names = ["same"] * 160
    ca.scverse.align(twice, "X_pca", ["age"], confounders="batch")
    assert np.array_equal(twice.obsm["X_aligned"], values)


def test_repeated_genes_are_refused_where_new_cells_would_be_matched_by_them():
    adata = scanpy_like()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # anndata's own
        adata.var_names = ["g", "g", *adata.var_names[2:]]
    with pytest.raises(ValueError, match=r"'g' more than once in data.X: call var_names_make_unique"):
        ca.scverse.align(adata, "X", AGES)
    ca.scverse.ifa(adata, AGES, 4, mask_var=None, **QUICK)  # loadings have positions
    assert (adata.varm["ifa"] != 0).all()


def test_nullable_columns():
    adata = scanpy_like()
    adata.obs["sure"] = adata.obs["treated"].astype("boolean")
    adata.obs["text"] = adata.obs["sex"].astype("string")
    adata.obs.loc[adata.obs_names[1], "sure"] = pd.NA
    ca.scverse.align(adata, "X_pca", ["sure", "text"])
    assert adata.uns["aligned"]["alignment"]["rows"].to_dict() == {"sure": 159, "text_M": 160}


def test_columns_called_by_numbers():
    adata = scanpy_like()
    plain = ca.scverse.align(adata, "X_pca", "age", copy=True).obsm["X_aligned"]
    adata.obs = adata.obs.rename(columns={"age": 7})
    for asked in (7, [7], "7", np.array([7])):
        ca.scverse.align(adata, "X_pca", asked)
        assert list(ca.scverse.table(adata)) == ["7"]
        assert np.array_equal(adata.obsm["X_aligned"], plain)


def test_columns_of_one_name_are_refused():
    adata = scanpy_like()
    adata.obs = adata.obs.rename(columns={"dose": "age"})
    with pytest.raises(ValueError, match=r"several columns 'age'\. Rename or drop"):
        ca.scverse.align(adata, "X_pca", ["age"])


def test_covariates_called_like_other_dimensions(tmp_path):
    adata = scanpy_like()
    adata.obs["rest1"], adata.obs["free0"] = adata.obs["age"], adata.obs["age"]
    ca.scverse.align(adata, "X_pca", ["rest1"], keep_rest=True)
    ca.scverse.ifa(adata, ["free0"], 3, **QUICK)
    back = reread(adata, tmp_path)
    assert list(ca.scverse.table(back)) == ["rest1", "rest0", *(f"rest{i}" for i in range(2, 8))]
    assert list(ca.scverse.table(back, "X_ifa")) == ["free0", "free1", "free2"]


def test_objects_opened_lazily(tmp_path):
    pytest.importorskip("xarray")
    lazily = pytest.importorskip("anndata.experimental")
    adata = scanpy_like()
    adata.write_h5ad(tmp_path / "a.h5ad")
    lazy = lazily.read_lazy(tmp_path / "a.h5ad")
    for data in (adata, lazy):
        ca.scverse.align(data, "X_pca", ["age", "leiden", "treated"])
        ca.scverse.ifa(data, AGES, 3, **QUICK)
    np.testing.assert_allclose(lazy.obsm["X_aligned"], adata.obsm["X_aligned"], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(lazy.obsm["X_ifa"], adata.obsm["X_ifa"], rtol=1e-4, atol=1e-5)


def test_covariates_with_gaps():
    adata = scanpy_like()
    adata.obs.loc[adata.obs_names[:40], "age"] = np.nan
    ca.scverse.align(adata, "X_pca", AGES)
    assert adata.uns["aligned"]["alignment"]["rows"].to_dict() == {"age": 120, "dose": 160}
    assert np.isfinite(adata.obsm["X_aligned"]).all()


def test_running_again_replaces_what_was_there():
    adata = scanpy_like()
    ca.scverse.align(adata, "X_pca", AGES)
    ca.scverse.align(adata, "X_pca", ["leiden"], lam=0.9, store_model=False)
    assert adata.obsm["X_aligned"].shape[1] == 2
    assert "model" not in adata.uns["aligned"]
    with pytest.raises(ValueError, match="store_model=True"):
        ca.scverse.aligner(adata)


def test_what_others_wrote_is_never_replaced():
    adata = scanpy_like()
    components = adata.varm["PCs"].copy()
    for _ in range(2):  # the second time uns has a result of that name, but these loadings are not of it
        ca.scverse.align(adata, "X_pca", AGES, key_added="X_PCs")
    assert np.array_equal(adata.varm["PCs"], components)
    with pytest.raises(ValueError, match=r"varm\['PCs'\] already holds"):
        ca.scverse.ifa(adata, AGES, 3, **QUICK, key_added="X_PCs")
    adata.obsm["aligned"] = np.zeros((160, 2))
    ca.scverse.align(adata, "X_pca", AGES)
    with pytest.raises(ValueError, match=r"obsm\['aligned'\] already holds"):
        ca.scverse.align(adata, "X_pca", AGES, key_added="aligned")
    del adata.obsm["aligned"]
    with pytest.raises(ValueError, match=r"uns\['aligned'\] already holds"):  # it describes X_aligned
        ca.scverse.align(adata, "X_pca", ["leiden"], key_added="aligned")
    assert list(ca.scverse.names(adata)) == AGES


def test_loadings_of_an_earlier_run_go_with_it():
    adata = scanpy_like()
    ca.scverse.ifa(adata, AGES, 3, **QUICK)
    ca.scverse.align(adata, "X_pca", AGES, key_added="X_ifa")
    assert "ifa" not in adata.varm
    mdata = muon_like()
    ca.scverse.ifa(mdata, ["age"], 3, modalities=["rna"], **QUICK)
    mdata["prot"].varm["ifa"] = np.zeros((8, 2))  # not a result of that run
    ca.scverse.ifa(mdata, ["age"], 3, modalities=["rna"], **QUICK)
    assert mdata["prot"].varm["ifa"].shape == (8, 2)
    with pytest.raises(ValueError, match=r"prot.varm\['ifa'\] already holds"):
        ca.scverse.ifa(mdata, ["age"], 3, **QUICK)


def test_an_embedding_of_a_mudata():
    mdata = muon_like(pull=False)
    rng = np.random.default_rng(0)
    mdata.obsm["X_mofa"] = rng.standard_normal((mdata.n_obs, 5))
    ca.scverse.align(mdata, "X_mofa", ["rna:age", "dose"])
    age = mdata["rna"].obs["age"].reindex(mdata.obs_names)
    dose = mdata["prot"].obs["dose"].reindex(mdata.obs_names)
    plain = ca.LatentAligner().fit(mdata.obsm["X_mofa"], pd.DataFrame({"rna:age": age, "dose": dose}))
    np.testing.assert_allclose(mdata.obsm["X_aligned"], plain.transform(mdata.obsm["X_mofa"]))
    mdata["rna"].obsm["X_pca"] = np.zeros((140, 2))
    with pytest.raises(ValueError, match=r"no array 'X_pca' .*There are 'X_mofa', 'X_aligned'. .* mdata\['rna'\]"):
        ca.scverse.align(mdata, "X_pca", ["age"])  # which cells a modality has is in obsm, too, but no embedding


# -- ifa --------------------------------------------------------------------------------------------------------------


def test_ifa_of_an_anndata_gives_the_numbers_of_the_model(tmp_path):
    adata = scanpy_like()
    keep = adata.var["highly_variable"].to_numpy()
    settings = {"folds": 2, "tol": 1e-4, "supervision": 1.0}
    ca.scverse.ifa(adata, ["age", "leiden"], 6, lam=0.5, confounders=["batch"], as_frame=True, **settings)
    X = pd.DataFrame(adata.X.toarray()[:, keep], index=adata.obs_names)
    Y, C = adata.obs[["age", "leiden"]], adata.obs[["batch"]]
    plain = ca.InformedFactorAnalysis(6, **settings).fit({"X": X}, Y, confounders=C).realign(0.5)
    np.testing.assert_allclose(adata.obsm["X_ifa"], plain.factors_, rtol=1e-6, atol=1e-9)
    assert list(adata.obsm["X_ifa"]) == ["age", "leiden_1", "leiden_2", "free0", "free1", "free2"]
    np.testing.assert_allclose(adata.varm["ifa"].to_numpy()[keep], plain.loadings_["X"], rtol=1e-6, atol=1e-9)
    assert adata.varm["ifa"].to_numpy()[~keep].size
    assert np.isnan(adata.varm["ifa"].to_numpy()[~keep]).all()
    found = adata.uns["ifa"]
    pd.testing.assert_frame_equal(found["alignment"], pd.DataFrame(plain.summary()), rtol=1e-5)
    np.testing.assert_allclose(found["variance_explained"].T, plain.variance_explained(), rtol=1e-6)
    np.testing.assert_allclose(found["beta"]["beta"], plain.beta_)
    np.testing.assert_allclose(found["elbo"], plain.elbo_)
    back = reread(adata, tmp_path)
    assert same(found, back.uns["ifa"])
    assert same(adata.obsm["X_ifa"], back.obsm["X_ifa"])
    assert same(adata.varm["ifa"], back.varm["ifa"])


def test_an_index_called_like_a_covariate(tmp_path):
    adata = scanpy_like()
    adata.var.index.name = "age"
    ca.scverse.ifa(adata, ["age"], 3, **QUICK, as_frame=True)
    back = reread(adata, tmp_path)
    assert list(back.varm["ifa"]) == list(back.obsm["X_ifa"])
    assert list(back.varm["ifa"].rename(columns=ca.scverse.names(back, "X_ifa"))) == ["age", "free0", "free1"]


@pytest.mark.parametrize("pull", PULLS)
def test_ifa_of_a_mudata_matches_cells_by_name(tmp_path, pull):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # mudata's, of its old behaviour
        mdata = muon_like(pull=pull)
    assert ("rna:age" in mdata.obs) is pull
    settings = {"folds": 2, "tol": 1e-4, "supervision": 1.0}
    model = ca.scverse.ifa(mdata, ["age", "dose"], 5, as_frame=True, return_model=True, **settings)
    rna, prot = mdata["rna"], mdata["prot"]
    used = rna.var_names[rna.var["highly_variable"]]
    views = {"rna": rna[:, used].to_df(), "prot": prot.to_df()}
    Y = pd.DataFrame({"age": rna.obs["age"], "dose": prot.obs["dose"]})
    plain = ca.InformedFactorAnalysis(5, **settings).fit(views, Y)
    samples = pd.Index(plain._table.samples)
    expected = pd.DataFrame(plain.factors_, index=samples).loc[mdata.obs_names]
    np.testing.assert_allclose(mdata.obsm["X_ifa"], expected, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(rna.varm["ifa"].loc[used], plain.loadings_["rna"], rtol=1e-5, atol=1e-7)
    assert rna.varm["ifa"].loc["g3"].isna().all()
    assert model.n_factors_ == 5
    np.testing.assert_allclose(prot.varm["ifa"], plain.loadings_["prot"], rtol=1e-5, atol=1e-7)
    views_found = mdata.uns["ifa"]["views"]
    assert views_found["cells"].to_dict() == {"rna": 140, "prot": 130}
    assert views_found["features"].to_dict() == {"rna": 19, "prot": 8}
    back = reread(mdata, tmp_path)
    assert same(mdata.uns["ifa"], back.uns["ifa"])
    assert same(mdata.obsm["X_ifa"], back.obsm["X_ifa"])
    assert same(rna.varm["ifa"], back["rna"].varm["ifa"])


def test_ifa_of_shuffled_modalities_is_the_same():
    mdata = muon_like()
    rng = np.random.default_rng(5)
    parts = {m: part[rng.permutation(part.n_obs)].copy() for m, part in mdata.mod.items()}
    with pulling(False):
        shuffled = mudata.MuData(parts)
    for data in (mdata, shuffled):
        ca.scverse.ifa(data, ["age", "dose"], 4, **QUICK)
    assert not mdata.obs_names.equals(shuffled.obs_names)
    np.testing.assert_allclose(
        ca.scverse.table(shuffled, "X_ifa").loc[mdata.obs_names], mdata.obsm["X_ifa"], rtol=1e-4, atol=1e-5
    )


def test_columns_of_modalities():
    mdata = muon_like()
    with pytest.raises(ValueError, match=r"column of several modalities. Write 'rna:total' or 'prot:total'"):
        ca.scverse.ifa(mdata, ["total"])
    with pytest.raises(ValueError, match=r"no column 'rna:agee'.*Did you mean 'rna:age'"):
        ca.scverse.ifa(mdata, ["rna:agee"])
    ca.scverse.ifa(mdata, "rna:age", 3, **QUICK)
    assert ca.scverse.table(mdata, "X_ifa").columns[0] == "rna:age"
    with pulling(False), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # mudata warns of its own way with pandas
        mdata.pull_obs("age")
    assert "rna:age" in mdata.obs or "age" in mdata.obs
    first = mdata.obsm["X_ifa"].copy()
    ca.scverse.ifa(mdata, "rna:age", 3, **QUICK)
    assert same(first, mdata.obsm["X_ifa"])
    # A column of its own goes before those of modalities.
    mdata.obs["total"] = np.random.default_rng(0).standard_normal(mdata.n_obs)
    ca.scverse.ifa(mdata, "total", 3, **QUICK)


def test_flags_of_a_modality_that_lacks_cells():
    mdata = muon_like()
    mdata["prot"].obs["flag"] = mdata["prot"].obs["dose"] > 0
    model = ca.scverse.ifa(mdata, ["flag"], 3, **QUICK, return_model=True)
    flags = mdata["prot"].obs["flag"].astype(float).reindex(mdata.obs_names)
    there = flags.notna()
    assert 0 < there.sum() < mdata.n_obs
    views = {name: part.to_df() for name, part in mdata.mod.items()}
    placed = model.set_output(transform="pandas").transform(views)["flag"].reindex(mdata.obs_names)  # by features alone
    expected = np.corrcoef(placed[there], flags[there])[0, 1]
    assert model.alignment_["flag"] == pytest.approx(expected)
    informed = ca.scverse.table(mdata, "X_ifa")["flag"]
    assert np.corrcoef(informed[there], flags[there])[0, 1] > expected  # which also know the flag


def test_ifa_says_its_supervision_and_what_left_out_cells_show(tmp_path):
    adata = scanpy_like()
    model = ca.scverse.ifa(adata, AGES, 3, **{**QUICK, "folds": 3, "supervision": 4}, return_model=True)
    found = adata.uns["ifa"]
    assert (found["supervision"], model.supervision) == (4, 4)
    pd.testing.assert_frame_equal(found["informed"], model.informed_)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    again = anndata.read_h5ad(tmp_path / "cells.h5ad").uns["ifa"]["informed"]
    assert again["verdict"].tolist() == model.informed_["verdict"].tolist()


def test_features_are_chosen_by_name():
    adata = scanpy_like()
    wanted = adata.var["highly_variable"]
    ca.scverse.ifa(adata, AGES, 3, **QUICK, mask_var=wanted[::-1], as_frame=True)
    assert (adata.varm["ifa"].notna().all(axis=1) == wanted).all()
    with pytest.raises(ValueError, match="does not name each of them once"):
        ca.scverse.ifa(adata, AGES, 3, **QUICK, mask_var=wanted.reset_index(drop=True))


def test_choice_of_features_tables_and_modalities():
    mdata = muon_like()
    rna, prot = mdata["rna"], mdata["prot"]
    rna.layers["twice"] = rna.X * 2
    prot.obsm["X_lsi"] = np.asarray(prot.X[:, :4])
    ca.scverse.ifa(mdata, ["age"], 3, use_rep={"rna": "layers/twice", "prot": "X_lsi"}, mask_var=None, **QUICK)
    assert mdata.uns["ifa"]["views"]["features"].to_dict() == {"rna": 20, "prot": 4}
    assert mdata.uns["ifa"]["loadings"]["prot"].shape == (4, 3)
    assert "ifa" not in prot.varm
    ca.scverse.ifa(mdata, ["age"], 3, modalities=["rna"], mask_var={"rna": np.arange(20) < 9}, **QUICK)
    assert rna.varm["ifa"].all(axis=1).sum() == 9
    ca.scverse.ifa(mdata, ["age"], 3, **QUICK)
    assert prot.varm["ifa"].shape == (8, 3)
    ca.scverse.ifa(mdata, ["age"], 3, modalities="rna", **QUICK)
    assert "ifa" not in prot.varm  # these would be loadings of other factors
    for wrong, message in (
        ({"mask_var": "hihgly_variable"}, "Did you mean 'highly_variable'"),
        ({"mask_var": {"rna": np.ones(3, bool)}}, r"each of the 20 features of modality 'rna', got shape \(3,\)"),
        ({"mask_var": {"rna": np.zeros(20, bool)}}, "leaves no feature of modality 'rna'"),
        ({"mask_var": {"rna": np.full(20, 2.5)}}, "values of type float64"),
        ({"modalities": ["rnaa"]}, "Did you mean 'rna'"),
        ({"modalities": []}, "modalities is empty. There are 'rna', 'prot'"),
        ({"use_rep": {"atac": "X"}}, "no modality 'atac'"),
        ({"use_rep": "layers/twic"}, "Did you mean 'layers/twice'"),
    ):
        with pytest.raises(ValueError, match=message):
            ca.scverse.ifa(mdata, ["age"], 3, **wrong)


def test_a_view_and_a_copy_of_a_mudata():
    mdata = muon_like()
    part = mdata[mdata.obs_names[:120]]
    ca.scverse.ifa(part, ["age", "dose"], 4, **QUICK)
    assert not part.is_view
    assert "X_ifa" in part.obsm
    assert "ifa" in part["rna"].varm
    assert "X_ifa" not in mdata.obsm
    assert "ifa" not in mdata["rna"].varm
    other = ca.scverse.ifa(mdata, ["age", "dose"], 4, **QUICK, copy=True)
    assert "ifa" in other["prot"].varm
    assert "ifa" in other.uns
    assert "X_ifa" not in mdata.obsm
    assert "ifa" not in mdata["rna"].varm
    assert "ifa" not in mdata.uns


def test_backed_mudata(tmp_path):
    mdata = muon_like()
    with pulling(False):
        mdata.write(tmp_path / "m.h5mu")
        backed = mudata.read_h5mu(tmp_path / "m.h5mu", backed="r")
    for data in (mdata, backed):
        ca.scverse.ifa(data, ["age", "dose"], 4, **QUICK)
    np.testing.assert_allclose(mdata.obsm["X_ifa"], backed.obsm["X_ifa"], rtol=1e-6, atol=1e-9)
    assert "ifa" in backed["rna"].varm
    backed.file.close()


def test_cells_that_only_obs_or_only_a_modality_has():
    mdata = muon_like()
    mdata.mod["rna"] = mdata["rna"][5:].copy()
    mdata.mod["prot"] = mdata["prot"][mdata["prot"].obs_names.isin(mdata["rna"].obs_names)].copy()
    ca.scverse.ifa(mdata, ["age", "dose"], 3, **QUICK)
    there = mdata.obs_names.isin(mdata["rna"].obs_names)
    assert (np.isfinite(mdata.obsm["X_ifa"]).all(axis=1) == there).all()
    assert not there.all()
    mdata.mod["rna"].obs_names = [f"other{i}" for i in range(mdata["rna"].n_obs)]
    with pytest.raises(ValueError, match=r"mdata.obs lacks .* cells of modality 'rna'.*mdata.update\(\)"):
        ca.scverse.ifa(mdata, ["dose"], 3, **QUICK)


# -- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"covariates": ["agee"]}, r"no column 'agee'.*Did you mean 'age'\?"),
        ({"covariates": []}, "Name at least one"),
        ({"covariates": ["age", "age"]}, "'age' more than once"),
        ({"covariates": ["age"], "confounders": "age"}, "named once, as a covariate, as a confounder or as groups"),
        ({"covariates": ["age"], "confounders": "bach"}, "Did you mean 'batch'"),
        ({"use_rep": "X_pc", "covariates": ["age"]}, "Did you mean 'X_pca'"),
        ({"use_rep": "X_PCA", "covariates": ["age"]}, "Did you mean 'X_pca'"),
        ({"use_rep": "counts", "covariates": ["age"]}, "'layers/dense'"),
        ({"covariates": ["age"], "key_added": "X_pca"}, r"obsm\['X_pca'\] already holds"),
        ({"covariates": ["age"], "key_added": "pca"}, r"uns\['pca'\] already holds"),
        ({"covariates": ["age"], "key_added": "a/b"}, "without '/'"),
        ({"covariates": ["age"], "lam": 2}, "lam"),
        ({"covariates": ["age"], "regime": "best"}, "regime"),
    ],
)
def test_errors_say_what_to_do_and_write_nothing(call, message):
    adata = scanpy_like()
    before = contents(adata)
    with pytest.raises(ValueError, match=message):
        ca.scverse.align(adata, **call)
    assert contents(adata) == before


@pytest.mark.filterwarnings("ignore::covalign.exceptions.OwnershipWarning")
def test_errors_of_ifa_write_nothing():
    adata = scanpy_like()
    adata.varm["ifa"] = np.zeros((30, 2))
    before = contents(adata)
    with pytest.raises(ValueError, match=r"varm\['ifa'\] already holds"):
        ca.scverse.ifa(adata, ["age"])
    with pytest.raises(ValueError, match="lam"):
        ca.scverse.ifa(adata, ["age"], 3, lam=7, key_added="X_f", **QUICK)
    assert contents(adata) == before


@pytest.mark.filterwarnings("ignore::covalign.exceptions.OwnershipWarning")
def test_few_cells_have_factors_and_nothing_held_out():
    few = scanpy_like(15)
    with pytest.warns(NotHeldOutWarning, match="needs at least 20"):
        ca.scverse.ifa(few, ["age"], 3, folds=5, tol=1e-3, key_added="X_f")
    assert few.obsm["X_f"].shape == (15, 3)
    assert few.uns["f"]["alignment"]["held_out"].isna().all()


def test_names_that_no_file_can_hold():
    adata = scanpy_like()
    adata.obs[""] = adata.obs["age"]
    with pytest.raises(ValueError, match="rename the column"):
        ca.scverse.align(adata, "X_pca", [""])
    assert "X_aligned" not in adata.obsm


def test_wrong_objects_and_missing_results():
    with pytest.raises(ValueError, match="got a DataFrame: put the rows into"):
        ca.scverse.align(pd.DataFrame({"a": [1.0]}), covariates=["a"])
    adata = scanpy_like()
    ca.scverse.align(adata, "X_pca", AGES)
    with pytest.raises(ValueError, match="Did you mean 'X_aligned'"):
        ca.scverse.names(adata, "X_alinged")
    with pytest.raises(ValueError, match="no result of covalign under 'X_pca'"):
        ca.scverse.aligner(adata, "X_pca")
    del adata.uns["aligned"]["model"]["arrays"]["fold0.cov_z"]
    with pytest.raises(ValueError, match=r"under 'X_aligned' is damaged. Run align again"):
        ca.scverse.aligner(adata)
    later = scanpy_like(80)
    later.obs_names = [f"later{i}" for i in range(80)]
    with pulling(False):
        other = mudata.MuData({"a": scanpy_like(), "b": later}, axis=1)
    with pytest.raises(ValueError, match="axis=1"):
        ca.scverse.ifa(other, ["age"])


def test_repeated_cells_are_refused_where_names_match_modalities():
    mdata = muon_like()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        mdata["prot"].obs_names = ["c0", "c0", *mdata["prot"].obs_names[2:]]
    with pytest.raises(ValueError, match=r"'c0' more than once in modality 'prot': call obs_names_make_unique"):
        ca.scverse.ifa(mdata, ["age"], 3)
