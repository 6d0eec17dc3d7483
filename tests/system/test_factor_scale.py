"""Informed factor analysis of rows that are read a chunk at a time: the same fit as from an array, in little memory."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import covalign as ca
from covalign import InformedFactorAnalysis
from covalign.factor import factor_archive as storage
from covalign.factor import preparation as data_module
from covalign.factor import sparse_fit
from covalign.factor import view_sums as gathering
from covalign.factor import views as streaming
from covalign.factor.fitted_rows import Streamed
from covalign.factor.inference import engines as statistics
from covalign.factor.nuisance import Nuisance
from covalign.stream import open_rows, reduction
from covalign.stream.memory import ArrayRows, SparseRows
from covalign.tables.covariates import Encoding
from tests.conftest import thorough

pytestmark = pytest.mark.filterwarnings("ignore")
N, K = 300, 5


def model(**settings) -> InformedFactorAnalysis:
    """Few sweeps: rounding has no time to grow."""
    return InformedFactorAnalysis(K, **{"max_iter": 8, "tol": 0, **settings})


@pytest.fixture(scope="module")
def data():
    s = ca.simulate.scenario("PN", n_samples=N, n_features=20, n_factors=K, n_covariates=3, random_state=0)
    X = (s.X + 5).astype(np.float32)
    X[X < 3.5] = 0  # so that a sparse matrix is one
    return X, s.Y


@pytest.fixture(scope="module")
def reference(data):
    return model().fit(*data)


def frame(X) -> pd.DataFrame:
    return pd.DataFrame(X, columns=[f"g{i}" for i in range(X.shape[1])], index=[f"cell{i}" for i in range(len(X))])


def npy(X, folder):
    np.save(folder / "X.npy", X)
    return folder / "X.npy"


def memmap(X, folder):
    return np.load(npy(X, folder), mmap_mode="r")


def npz(X, folder):
    np.savez_compressed(folder / "X.npz", X=X)
    return str(folder / "X.npz")


def zarr_array(X, folder):
    zarr = pytest.importorskip("zarr")
    made = zarr.create_array(str(folder / "X.zarr"), shape=X.shape, chunks=(37, X.shape[1]), dtype=X.dtype)
    made[:] = X
    return made


def zarr_path(X, folder):
    zarr_array(X, folder)
    return folder / "X.zarr"


def parquet(X, folder):
    pytest.importorskip("pyarrow")
    frame(X).to_parquet(folder / "X.parquet", row_group_size=70)
    return folder / "X.parquet"


def parquet_folder(X, folder):
    pytest.importorskip("pyarrow")
    (folder / "parts").mkdir()
    for i in range(0, len(X), 90):
        frame(X).iloc[i : i + 90].to_parquet(folder / "parts" / f"{i:05}.parquet")
    return folder / "parts"


def columns_by_name(X, folder):
    pytest.importorskip("pyarrow")
    table = frame(X)
    table.insert(0, "label", "text")
    table.to_parquet(folder / "more.parquet")
    return open_rows(folder / "more.parquet", columns=list(frame(X).columns))


def csr(X, folder):
    return sparse.csr_matrix(X)


def csc_array(X, folder):
    return sparse.csc_array(X)


def tensor(X, folder):
    return pytest.importorskip("torch").from_numpy(X.copy())


def in_anndata(X, folder):
    table = frame(X)
    return pytest.importorskip("anndata").AnnData(
        sparse.csr_matrix(X), obs=pd.DataFrame(index=table.index), var=pd.DataFrame(index=table.columns)
    )


def h5ad(X, folder):
    in_anndata(X, folder).write_h5ad(folder / "X.h5ad")
    return folder / "X.h5ad"


def backed(X, folder):
    return pytest.importorskip("anndata").read_h5ad(h5ad(X, folder), backed="r")


def dask_array(X, folder):
    return pytest.importorskip("dask.array").from_array(X, chunks=(64, -1))


def source(X, folder):
    return ArrayRows(X, "X", chunk_rows=11)


FORMATS = [
    memmap,
    npy,
    npz,
    zarr_array,
    zarr_path,
    parquet,
    parquet_folder,
    columns_by_name,
    csr,
    csc_array,
    tensor,
    in_anndata,
    h5ad,
    backed,
    dask_array,
    source,
]


def assert_same_fit(got, need, atol=1e-7):
    np.testing.assert_allclose(got.elbo_, need.elbo_, rtol=1e-9)
    np.testing.assert_allclose(got.beta_, need.beta_, atol=atol)
    for view in need.loadings_:
        np.testing.assert_allclose(got.loadings_[view], need.loadings_[view], atol=atol)
        np.testing.assert_allclose(got.noise_precision_[view], need.noise_precision_[view], rtol=1e-6)
    np.testing.assert_allclose(got.alignment_, need.alignment_, atol=atol)
    np.testing.assert_allclose(got.beta_std_, need.beta_std_, rtol=1e-6)


# -- one fit, whatever the rows are in --------------------------------------------------------------------------------


@pytest.mark.parametrize("kept_in", FORMATS, ids=lambda f: f.__name__)
def test_every_format_gives_the_fit_of_the_array(kept_in, data, reference, tmp_path):
    X, Y = data
    kept = kept_in(X, tmp_path)
    fa = model().fit(kept, Y)
    assert isinstance(fa._rows, Streamed)
    assert_same_fit(fa, reference)
    np.testing.assert_allclose(fa.factors_, reference.factors_, atol=1e-7)
    np.testing.assert_allclose(fa.factor_std_, reference.factor_std_, rtol=1e-6)
    np.testing.assert_allclose(fa.transform(kept, Y), reference.transform(X, Y), atol=1e-7)
    named = kept_in in (parquet, parquet_folder, columns_by_name, in_anndata, h5ad, backed)
    assert fa.top_features(0)["feature"].str.startswith("g").all() == named


@pytest.mark.parametrize("rows", [7, 300, *thorough(1, 64, 299, 1000)])
def test_chunks_leave_no_trace(rows, data):
    X, Y = data
    whole, cut = (model().fit(ArrayRows(X, "X", chunk_rows=c), Y) for c in (None, rows))
    np.testing.assert_array_equal(whole._problem.data.gram, cut._problem.data.gram)
    np.testing.assert_array_equal(whole.factors_.shape, cut.factors_.shape)
    np.testing.assert_allclose(whole.factors_, cut.factors_, atol=1e-12)


@pytest.mark.parametrize("threads", [2, *thorough(1, 3)])
def test_the_number_of_threads_leaves_only_rounding(threads, data, reference, monkeypatch):
    monkeypatch.setattr(reduction, "FEW", 0)
    monkeypatch.setattr(reduction.Size, "threads", (threads, threads))
    monkeypatch.setattr(gathering.Sizes, "slab", property(lambda sizes: 32))
    X, Y = data
    made = [model().fit(ArrayRows(X, "X", chunk_rows=c), Y) for c in (50, 7)]
    for fa in made:
        assert_same_fit(fa, reference)
    np.testing.assert_array_equal(made[0]._problem.data.gram, made[1]._problem.data.gram)


def test_views_are_read_in_step_and_never_joined(data, tmp_path, monkeypatch):
    X, Y = data
    parts = {"a": X[:, :12], "b": X[:, 12:].astype(np.float64)}
    need = model().fit(parts, Y)
    np.save(tmp_path / "a.npy", parts["a"])
    kept = {"a": tmp_path / "a.npy", "b": sparse.csr_matrix(parts["b"])}
    widest, hstack = [], np.hstack

    def spy(tables, *rest, **options):
        joined = hstack(tables, *rest, **options)
        widest.append(joined.shape)
        return joined

    monkeypatch.setattr(np, "hstack", spy)
    monkeypatch.setattr(gathering.Sizes, "slab", property(lambda sizes: 50))
    got = model().fit(kept, Y)
    assert max(rows for rows, columns in widest if columns == 20) == 50
    assert_same_fit(got, need)
    np.testing.assert_allclose(got.factors_, need.factors_, atol=1e-7)
    only = got.transform({"b": kept["b"]})
    np.testing.assert_allclose(only, need.transform({"b": parts["b"]}), atol=1e-7)


def test_a_view_may_be_in_memory_beside_one_that_is_not(data, tmp_path):
    X, Y = data
    got = model().fit({"a": frame(X).iloc[:, :12], "b": memmap(X[:, 12:], tmp_path)}, Y)
    assert_same_fit(got, model().fit({"a": X[:, :12], "b": X[:, 12:]}, Y))
    assert got.top_features(0, "a")["feature"].str.startswith("g").all()


def test_covariates_are_matched_by_the_names_of_the_rows(data, reference, tmp_path):
    X, Y = data
    table = pd.DataFrame(Y, index=frame(X).index, columns=["p", "q", "r"])
    shuffled = table.sample(frac=1, random_state=0)
    got = model().fit(parquet(X, tmp_path), shuffled)
    assert_same_fit(got, model().fit(X, table))
    fewer = model().fit(parquet(X, tmp_path), shuffled.drop(index=["cell3", "cell200"]))
    assert_same_fit(fewer, model().fit(frame(X), table.drop(index=["cell3", "cell200"])), atol=1e-5)
    with pytest.raises(ValueError, match="X and y need row names in common"):
        model().fit(parquet(X, tmp_path), table.set_axis(range(N)))


def test_confounders_ride_along(data, tmp_path):
    X, Y = data
    rng = np.random.default_rng(0)
    batch = pd.Series(rng.choice(["u", "v", "w"], N), name="batch")
    X = X + 2 * (batch == "v").to_numpy()[:, None].astype(np.float32)
    table = pd.DataFrame(Y, columns=["p", "q", "r"]).assign(batch=batch)
    need, path = model().fit(X, table, confounders="batch"), npy(X, tmp_path)
    for got in (
        model().fit(path, table, confounders="batch"),
        model().fit(path, table[["p", "q", "r"]], confounders=batch),
        model().fit([(X[:100], table[:100]), (X[100:], table[100:])], confounders="batch"),
    ):
        assert_same_fit(got, need, atol=1e-6)
        np.testing.assert_allclose(got.factors_, need.factors_, atol=1e-6)
        assert got.confounder_names_ == need.confounder_names_
        np.testing.assert_allclose(
            got.transform(path, table[["p", "q", "r"]], confounders=batch), need.transform(X, table), atol=1e-6
        )


def test_more_features_than_rows_are_loaded_once(data, tmp_path):
    X, Y = data[0][:15], data[1][:15]
    need = model().fit(X, Y)
    for kept in (npy(X, tmp_path), [(X[:4], Y[:4]), (X[4:], Y[4:])]):
        got = model().fit(kept) if isinstance(kept, list) else model().fit(kept, Y)
        np.testing.assert_array_equal(got.factors_, need.factors_)
        assert not isinstance(got._rows, Streamed)
    gram, need = (model(engine=engine, supervision=1).fit(npy(X, tmp_path), Y) for engine in ("gram", "auto"))
    np.testing.assert_allclose(gram.factors_, need.factors_, atol=1e-6)
    assert not isinstance(model(engine="dense").fit(npy(data[0], tmp_path), data[1])._rows, Streamed)


# -- batches ----------------------------------------------------------------------------------------------------------


def batches_of(X, Y, size):
    return [(X[i : i + size], Y[i : i + size]) for i in range(0, len(X), size)]


@pytest.mark.parametrize("size", [40, *thorough(1, 400)])
def test_batches_give_the_fit_of_all_rows(size, data, reference):
    X, Y = data
    fa = model().fit(batches_of(X, Y, size))
    assert_same_fit(fa, reference)
    np.testing.assert_allclose(fa.factors_, reference.factors_, atol=1e-7)


def test_batches_may_have_views_names_and_categories(data):
    X, Y = data
    table = pd.DataFrame(Y, columns=["p", "q", "r"]).assign(kind=pd.Categorical(np.arange(N) // 100, [0, 1, 2]))
    pairs = [({"a": frame(x).iloc[:, :9], "b": sparse.csr_matrix(x[:, 9:])}, y) for x, y in batches_of(X, table, 100)]
    need = model(max_iter=4, drop_first=True).fit({"a": X[:, :9], "b": X[:, 9:]}, table)
    got = model(max_iter=4, drop_first=True).fit(pairs)
    assert got.covariate_names_ == need.covariate_names_
    assert_same_fit(got, need, atol=1e-6)
    assert got.top_features(0, "a")["feature"].str.startswith("g").all()


def test_a_stream_cannot_be_read_again(data, reference):
    X, Y = data
    fa = model().fit(iter(batches_of(X, Y, 50)))
    assert_same_fit(fa, reference)
    with pytest.raises(ValueError, match=r"they were a stream.*transform\(X, y\)"):
        _ = fa.factors_
    np.testing.assert_allclose(fa.transform(X, Y), reference.factors_, atol=1e-7)
    assert_same_fit(fa.realign(0.5), reference.realign(0.5), atol=1e-6)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda b: b[0][:2], "pair"),
        (lambda b: (b[0][:, :5], b[1]), "view 'X' needs 20 columns in every batch as in the first, got 5 in batch 3"),
        (lambda b: (b[0], b[1][:, :2]), "Y needs 3 columns in every batch as in the first, got 2 in batch 3"),
        (lambda b: (b[0][:-1], b[1]), "same number of rows.*in batch 3"),
        (lambda b: ({"X": b[0], "more": b[0]}, b[1]), "views of the first, 'X', got 'X', 'more' in batch 3"),
        (lambda b: (b[0].astype(str), b[1]), "view 'X' needs real numbers"),
    ],
)
def test_ragged_batches(spoil, said, data):
    pairs = batches_of(*data, 50)
    pairs[3] = spoil(pairs[3])
    with pytest.raises(ValueError, match=said):
        model().fit(iter(pairs))


def test_what_is_not_a_stream_needs_y(data):
    for X in (data[0], frame(data[0]), {"a": data[0]}, sparse.csr_matrix(data[0]), "X.npy"):
        with pytest.raises(ValueError, match="y"):
            model().fit(X)
    with pytest.raises(ValueError, match="row"):
        model().fit([])


# -- gaps -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def gappy(data):
    X, Y = (part.copy() for part in data)
    rng = np.random.default_rng(1)
    X[np.ix_(rng.random(N) < 0.3, range(12))] = np.nan  # a view that many lack
    X[:60, 15:] = np.nan
    X[7, 3] = np.nan  # combinations of few rows
    X[8], Y[9] = np.nan, np.nan
    Y[rng.random(N) < 0.2, 0] = np.nan
    return X, Y


@pytest.mark.parametrize("rows", [None, 13])
@pytest.mark.parametrize("threads", [1, 2])
def test_gaps_by_chunks_are_gaps_in_memory(gappy, rows, threads, monkeypatch):
    monkeypatch.setattr(reduction, "FEW", 0)
    monkeypatch.setattr(reduction.Size, "threads", (threads, threads))
    monkeypatch.setattr(gathering.Sizes, "slab", property(lambda sizes: 40))
    X, Y = gappy
    need, got = model().fit(X, Y), model().fit(ArrayRows(X, "X", chunk_rows=rows), Y)
    one, other = (np.column_stack([d.X, d.Y, d.one]) for d in (need._problem.data, got._problem.data))
    np.testing.assert_allclose(one.T @ one, other.T @ other, atol=1e-8)
    assert got._problem.n == N
    assert_same_fit(got, need, atol=1e-5)
    np.testing.assert_allclose(got.factors_, need.factors_, atol=1e-5)
    np.testing.assert_allclose(got.factor_std_, need.factor_std_, atol=1e-5)
    a, b = got.realign(0.5), need.realign(0.5)
    np.testing.assert_allclose(a.factors_, b.factors_, atol=1e-5)
    np.testing.assert_allclose(a.factor_std_, b.factor_std_, atol=1e-5)
    for y in (None, Y):
        for x, z in zip(
            a.transform(ArrayRows(X, "X"), y, return_std=True), b.transform(X, y, return_std=True), strict=True
        ):
            np.testing.assert_allclose(x, z, atol=1e-5)


def test_complete_rows_are_mapped_as_they_are_placed(gappy, data):
    """Rows without gaps take a shorter way; the model's features have intercepts of their own."""
    fa = model().fit(*gappy).realign(0.5)
    for y in (None, data[1]):
        mapped = fa.transform(ArrayRows(data[0], "X", chunk_rows=70), y, return_std=True)
        for got, need in zip(mapped, fa.transform(data[0], y, return_std=True), strict=True):
            np.testing.assert_allclose(got, need, atol=1e-10)


def test_gaps_that_never_recur_are_refused_before_memory_is_full(data, monkeypatch):
    X = data[0].copy()
    X[np.random.default_rng(0).random(X.shape) < 0.5] = np.nan
    monkeypatch.setattr(gathering, "MOST_HELD", 1000)
    with pytest.raises(ValueError, match=r"need to recur, got .* combinations .* load X into memory"):
        model().fit(ArrayRows(X, "X", chunk_rows=20), data[1])


def test_a_feature_nobody_has_is_named(gappy, tmp_path):
    X, Y = gappy
    X = X.copy()
    X[:, 4] = np.nan
    with pytest.raises(ValueError, match="view 'X' needs an observed cell in every feature, got none in 'g4'"):
        model().fit(parquet(X, tmp_path), Y)


# -- memory -----------------------------------------------------------------------------------------------------------


def test_a_sparse_matrix_is_densified_a_chunk_at_a_time(data, monkeypatch):
    X, Y = data
    tallest = []
    for kind in (sparse.csr_matrix, sparse.csr_array):
        dense = kind.toarray

        def spy(matrix, *rest, dense=dense, **options):
            tallest.append(matrix.shape[0])
            return dense(matrix, *rest, **options)

        monkeypatch.setattr(kind, "toarray", spy)
    fa = model().fit(SparseRows(sparse.csr_matrix(X), "X", chunk_rows=25), Y)
    assert fa.factors_.shape == (N, K)
    assert fa.transform(SparseRows(sparse.csr_matrix(X), "X", chunk_rows=25), Y).shape == (N, K)
    assert max(tallest) == 25


@pytest.fixture(scope="module")
def wide():
    """Sparse counts, more features than rows, one of them constant."""
    s = ca.simulate.scenario("PN", n_samples=60, n_features=200, n_factors=K, n_covariates=3, random_state=2)
    X = np.floor(np.maximum(s.X + 1, 0) * 2)
    X[:, 5] = 0
    return X, s.Y


@pytest.mark.parametrize("posterior", ["full", "mean_field"])
def test_a_wide_sparse_matrix_stays_sparse(wide, posterior, monkeypatch, tmp_path):
    X, Y = wide
    need = model(posterior=posterior).fit(X, Y)
    widths = []
    for kind in (sparse.csr_matrix, sparse.csr_array, sparse.csc_matrix):
        dense = kind.toarray
        monkeypatch.setattr(
            kind, "toarray", lambda m, *r, dense=dense, **o: widths.append(m.shape[1]) or dense(m, *r, **o)
        )
    fa = model(posterior=posterior).fit(sparse.csr_matrix(X), Y)
    assert isinstance(fa._problem.data, statistics.Sparse)
    assert max(widths) < X.shape[1]
    assert_same_fit(fa, need)
    np.testing.assert_allclose(fa.factors_, need.factors_, atol=1e-7)
    fa.save(tmp_path / "m.covalign")
    again = ca.load(tmp_path / "m.covalign")
    np.testing.assert_allclose(again.transform(X, Y), need.transform(X, Y), atol=1e-7)
    np.testing.assert_allclose(again.realign(lam=0.5).beta_, need.realign(lam=0.5).beta_, atol=1e-7)


@pytest.mark.parametrize("scale", [True, False])
def test_engines_agree_on_wide_data(wide, scale):
    X, Y = wide
    Y = (Y - Y.mean(axis=0)) / Y.std(axis=0)
    names, nuisance = {"X": [str(i) for i in range(X.shape[1])]}, Nuisance.none(Encoding(()), X.shape[1])
    dense, thin = (
        data_module.assembled(found, Y, names, True, None, nuisance, scale)[1]
        for found in (data_module.complete(X, Y, False), sparse_fit.measured([sparse.csr_matrix(X)]))
    )
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((X.shape[1], 4)), rng.standard_normal((3, 4))
    for need, got in zip(dense.sums(A, B), thin.sums(A, B), strict=True):
        np.testing.assert_allclose(got, need, atol=1e-9 * np.abs(need).max())
    for name in ("xx", "xy", "yy"):
        np.testing.assert_allclose(getattr(thin, name), getattr(dense, name), atol=1e-9)
    np.testing.assert_allclose(thin.spectrum(), dense.spectrum(), atol=1e-9)
    np.testing.assert_allclose(thin.principal_map(3), dense.principal_map(3), atol=1e-9)


def test_two_wide_sparse_views(wide):
    X, Y = wide
    views = {"a": sparse.csc_array(X[:, :120]), "b": sparse.csr_matrix(X[:, 120:])}
    need = model(scale={"a": True, "b": False}).fit({"a": X[:, :120], "b": X[:, 120:]}, Y)
    assert_same_fit(model(scale={"a": True, "b": False}).fit(views, Y), need)
    views["b"] = views["b"].copy()
    views["b"][7, 13] = np.inf
    with pytest.raises(ValueError, match=r"(?i)view 'b'.*inf in row 7, column '?13"):
        model().fit(views, Y)


def test_wide_sparse_data_with_gaps_or_confounders(wide):
    X, Y = wide
    holes = Y.copy()
    holes[4, 1] = np.nan
    assert_same_fit(model().fit(sparse.csr_matrix(X), holes), model().fit(X, holes))
    C = np.arange(60.0)[:, None] % 7
    assert_same_fit(model().fit(sparse.csr_matrix(X), Y, confounders=C), model().fit(X, Y, confounders=C))


MEASURE = """
import resource, sys, warnings
import numpy as np, covalign as ca
warnings.simplefilter("ignore")
kind, path, Y = sys.argv[1], sys.argv[2], np.load(sys.argv[3])
X = np.load(path) if kind == "memory" else np.load(path, mmap_mode="r") if kind == "memmap" else path
model = ca.InformedFactorAnalysis(5, max_iter=2)
model.fit(np.random.default_rng(0).normal(size=(500, 50)), Y[:500])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
model.fit(X, Y)
if kind != "memory":
    model.factors_
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


# -- what is read, and when -------------------------------------------------------------------------------------------


class Counted(ArrayRows):
    """Counts passes."""

    passes = 0

    def chunks(self, rows=None, start=0):
        self.passes += 1
        return super().chunks(rows, start)


def test_a_fit_is_one_pass_and_the_path_none(data, reference):
    X, Y = data
    counted = Counted(X, "X")
    fa = model().fit(counted, Y)
    assert counted.passes == 1
    path = fa.path([0.0, 0.3, 1.0])
    _ = fa.alignment_, fa.beta_std_, fa.variance_explained(), fa.total_variance_explained()
    assert counted.passes == 1
    for lam, other in path.items():
        np.testing.assert_allclose(other.factors_, reference.realign(lam).factors_, atol=1e-6)
    assert counted.passes == 4
    _ = path[0.3].factors_, path[0.3].factors_
    assert counted.passes == 4


def test_in_memory_the_path_makes_no_pass_either(data, monkeypatch):
    fa = model().fit(*data)
    monkeypatch.setattr(InformedFactorAnalysis, "_means", lambda *_: pytest.fail("a pass over the rows"))
    fa.path([0.0, 0.5])


def test_float32_in_memory_is_the_same_fit_as_float64(data):
    X, Y = data
    narrow, wide = model().fit(X, Y), model().fit(X.astype(np.float64), Y)
    assert narrow._rows.X is X
    np.testing.assert_array_equal(narrow.factors_, wide.factors_)
    np.testing.assert_array_equal(narrow.impute(), wide.impute())


# -- factors to a file ------------------------------------------------------------------------------------------------


def written(path: Path):
    if path.suffix == ".npy":
        return np.load(path)
    if path.suffix == ".parquet":
        return pd.read_parquet(path).to_numpy()
    return pytest.importorskip("zarr").open(str(path), mode="r")[:]


class Breaks(ArrayRows):
    """Fails at a row, but not when it is first read, to tell whether rows have changed."""

    fail_at: int | None = 200
    first = None
    passes = 0

    def chunks(self, rows=None, start=0):
        self.first, at = start, start
        self.passes += 1
        fail_at = self.fail_at if self.passes > 1 else None
        for chunk in super().chunks(rows, start):
            at += len(chunk)
            if fail_at is not None and start == 0 and at > fail_at:
                raise OSError("the network is gone")
            yield chunk


@pytest.mark.parametrize("suffix", [".npy", ".zarr", ".parquet"])
def test_transform_to_a_file_goes_on_where_it_was_interrupted(suffix, data, reference, tmp_path):
    X, Y = data
    out = tmp_path / f"Z{suffix}"
    rows = Breaks(X, "X", chunk_rows=20)
    with pytest.raises(OSError, match="network"):
        reference.transform(rows, Y, out=out)
    assert not out.exists()
    rows.fail_at = None
    assert reference.transform(rows, Y, out=out) == out
    if suffix == ".npy":  # the others write whole row groups and chunks, of which this table has but one
        assert rows.first == 200
    np.testing.assert_array_equal(written(out), reference.transform(ArrayRows(X, "X", chunk_rows=20), Y))
    assert [path.name for path in tmp_path.iterdir()] == [out.name]
    with pytest.raises(ValueError, match="exist"):
        reference.transform(rows, Y, out=out)


def test_another_model_does_not_go_on_with_the_work_of_this_one(data, reference, tmp_path):
    X, Y = data
    rows = Breaks(X, "X", chunk_rows=20)
    with pytest.raises(OSError, match="network"):
        reference.transform(rows, Y, out=tmp_path / "Z.npy")
    rows.fail_at = None
    other = reference.realign(0.9)
    other.transform(rows, Y, out=tmp_path / "Z.npy")
    assert rows.first == 0
    np.testing.assert_allclose(np.load(tmp_path / "Z.npy"), other.transform(X, Y), atol=1e-10)


def test_a_file_has_names_and_standard_deviations(data, reference, tmp_path):
    pytest.importorskip("pyarrow")
    X, Y = data
    out = reference.transform(X, Y, return_std=True, out=tmp_path / "Z.parquet")
    table = pd.read_parquet(out)
    assert list(table.columns) == [*reference.factor_names_, *(f"{name}_std" for name in reference.factor_names_)]
    np.testing.assert_allclose(table, np.hstack(reference.transform(X, Y, return_std=True)), atol=1e-10)


def test_new_columns_are_found_by_name(data, tmp_path):
    pytest.importorskip("pyarrow")
    X, Y = data
    fa = model().fit(parquet(X, tmp_path), Y)
    turned = frame(X).iloc[:, ::-1].assign(more=1.0)
    turned.to_parquet(tmp_path / "new.parquet")
    np.testing.assert_allclose(fa.transform(tmp_path / "new.parquet"), fa.transform(frame(X)), atol=1e-10)
    turned.drop(columns="g3").to_parquet(tmp_path / "less.parquet")
    with pytest.raises(ValueError, match="g3"):
        fa.transform(tmp_path / "less.parquet")
    with pytest.raises(ValueError, match="20 columns"):
        fa.transform(sparse.csr_matrix(X[:, :5]))


# -- saved models -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("with_gaps", [False, True])
def test_a_saved_model_carries_no_rows_and_still_works(with_gaps, data, gappy, tmp_path):
    X, Y = gappy if with_gaps else data
    fa = model().fit(npy(X, tmp_path), Y)
    fa.save(tmp_path / "model.covalign")
    again = ca.load(tmp_path / "model.covalign")
    for other in (again, pickle.loads(pickle.dumps(fa))):
        np.testing.assert_allclose(other.transform(X, Y), fa.transform(X, Y), atol=1e-12)
        np.testing.assert_allclose(other.beta_std_, fa.beta_std_, rtol=1e-9)
        np.testing.assert_allclose(other.realign(0.5).loadings_["X"], fa.realign(0.5).loadings_["X"], atol=1e-9)
        for what in (lambda o=other: o.factors_, lambda o=other: o.factor_std_, lambda o=other: o.reconstruct()):
            with pytest.raises(ValueError, match="needs the rows of the fit"):
                what()
        with pytest.raises(ValueError, match="impute needs rows in memory"):
            other.impute()
    if not with_gaps:
        np.testing.assert_allclose(again.alignment_, fa.alignment_)
        assert all(N not in array.shape for array in storage.pack(fa)[1].values())


def test_reconstruction_needs_only_factors_that_can_be_read(data, reference, tmp_path):
    fa = model().fit(npy(data[0], tmp_path), data[1])
    np.testing.assert_allclose(fa.reconstruct(), reference.reconstruct(), atol=1e-6)


def test_a_file_that_changed_after_the_fit_is_noticed(data, tmp_path):
    X, Y = data
    rows = ArrayRows(X, "X")
    fa = model().fit(rows, Y)
    for other in (X[:200], np.vstack([X, X])):
        rows.stored, rows.shape = other, other.shape
        with pytest.raises(ValueError, match="need to be the same when they are read again"):
            _ = fa.realign(0.5).factors_


# -- bad rows ---------------------------------------------------------------------------------------------------------


def test_an_infinite_number_is_named_with_its_row_and_column(data, reference, tmp_path):
    X, Y = data[0].copy(), data[1]
    X[231, 7] = -np.inf
    for kept, column in ((npy(X, tmp_path), "7"), (parquet(X, tmp_path), "g7"), (sparse.csr_matrix(X), "7")):
        label = r" \('cell231'\)" if column == "g7" else ""
        with pytest.raises(ValueError, match=rf"finite numbers, got -inf in row 231{label}, column '?{column}'?"):
            model().fit(kept, Y)
    with pytest.raises(ValueError, match=r"got -inf in row 231, column '?7'?"):
        reference.transform(npy(X, tmp_path), out=tmp_path / "Z.npy")
    assert not (tmp_path / "Z.npy").exists()
    with pytest.raises(ValueError, match=r"view 'X' .*got -inf in row 231, column '?7'?"):
        model().fit(iter(batches_of(X, Y, 50)))


def test_a_truncated_file(data, reference, tmp_path):
    path = npy(data[0], tmp_path)
    path.write_bytes(path.read_bytes()[:-100])
    for work in (lambda: model().fit(path, data[1]), lambda: reference.transform(path)):
        with pytest.raises(ValueError, match="truncated"):
            work()


def test_views_of_different_length_and_order(data, tmp_path):
    X, Y = data
    with pytest.raises(ValueError, match=r"same number of rows.*300 in 'a', 299 in 'b'"):
        model().fit({"a": npy(X, tmp_path), "b": sparse.csr_matrix(X[:-1])}, Y)
    with pytest.raises(ValueError, match=r"got 300 and 299"):
        model().fit(npy(X, tmp_path), Y[:-1])
    with pytest.raises(ValueError, match="same row names in the same order"):
        model().fit({"a": parquet(X, tmp_path), "b": frame(X).iloc[::-1]}, Y)


def test_where_no_rows_can_be_read(data, tmp_path):
    with pytest.raises(ValueError, match=r"nothing\.npy"):
        model().fit(tmp_path / "nothing.npy", data[1])
    with pytest.raises(ValueError, match="an array, a DataFrame"):
        model().fit(42, data[1])


def test_what_counts_as_in_memory(data):
    X = data[0]
    for table in (X, frame(X), X.tolist(), {"a": X, "b": frame(X)}):
        assert streaming.is_in_memory(table)
    for other in ("X.npy", Path("X.npy"), sparse.csr_matrix(X), {"a": X, "b": Path("X.npy")}):
        assert not streaming.is_in_memory(other)
