"""Tables of odd classes, in every place that takes a table: the numbers in them, or a refusal in our words."""

from __future__ import annotations

import types

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import covalign as ca

RNG = np.random.default_rng(3)
Z = RNG.normal(size=(30, 4))
Y = Z[:, :2] + RNG.normal(size=(30, 2))
FRAME = pd.DataFrame(Z, columns=[*"abcd"])


class Stubborn:
    """An array that does not let anyone read it."""

    shape, ndim = Z.shape, 2

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("no")


class Loud(np.ndarray):
    """An array that refuses every function of numpy."""

    def __array_function__(self, *_, **__):
        raise RuntimeError("no")


def aligner():
    return ca.LatentAligner(shrinkage=0.1)


def factors():
    return ca.InformedFactorAnalysis(2, max_iter=5, tol=1.0, supervision=1.0, folds=0)


def damaged(**edits):
    matrix = sp.csr_matrix(Z)
    for name, (at, value) in edits.items():
        changed = getattr(matrix, name).copy()
        changed[at] = value
        setattr(matrix, name, changed)
    return matrix


BAD = {
    "class": lambda: np.ndarray,
    "module": lambda: np,
    "cannot be read": Stubborn,
    "raw bytes": lambda: np.zeros((30, 4), "V8"),
    "index beyond the columns": lambda: damaged(indices=(3, 99)),
    "negative index": lambda: damaged(indices=(3, -1)),
    "index beyond the data": lambda: damaged(indptr=(5, 10**6)),
    "whole numbers beyond all floats": lambda: FRAME.assign(a=pd.Series([10**400] * 30, dtype=object)),
    "dicts": lambda: FRAME.assign(a=pd.Series([{}] * 30)),
    "no dimension": lambda: np.array(1.0),
    "one dimension less": lambda: types.SimpleNamespace(shape=(3,)),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("make", [aligner, factors])
@pytest.mark.parametrize("kind", BAD)
def test_what_cannot_be_a_table_is_refused_in_our_words(make, kind):
    data, model = BAD[kind](), make().fit(Z, Y)
    calls = [
        lambda: make().fit(data, Y),
        lambda: make().fit(Z, data),
        lambda: make().fit(Z, Y, confounders=data),
        lambda: make().fit(Z, Y, groups=data),
        lambda: model.transform(data),
        lambda: ca.Moments.from_arrays(data, Y),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"[.?]$") as caught:
            call()
        assert "/covalign/" in caught.traceback[-1].path.as_posix()
        assert "\n" not in str(caught.value)


def kinds():
    half = sp.coo_matrix((np.tile(Z.ravel() / 2, 2), np.tile(np.indices(Z.shape).reshape(2, -1), 2)), Z.shape)
    backwards = np.tile(np.arange(4)[::-1], 30)
    yield "subclass", Z.view(Loud)
    yield "sparse columns with gaps for zero", FRAME.astype(pd.SparseDtype("float64", np.nan))
    yield "text, to the last digit", FRAME.map(repr)
    yield "repeated entries", half
    yield "unsorted entries", sp.csr_matrix((Z[:, ::-1].ravel(), backwards, np.arange(0, 121, 4)), Z.shape)
    yield "memory", memoryview(Z)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("make", [ca.LatentAligner, factors])
@pytest.mark.parametrize(("name", "data"), [pytest.param(*pair, id=pair[0]) for pair in kinds()])
def test_the_same_numbers_give_the_same_model(make, name, data):
    """Also the same folds, which depend on every digit."""
    expected = make().fit(Z, Y).transform(Z)
    np.testing.assert_allclose(np.asarray(make().fit(data, Y).transform(data)), expected, atol=1e-9)


def test_tensors_are_tables_everywhere():
    torch = pytest.importorskip("torch")
    rows, labels = torch.tensor(Z, requires_grad=True), torch.tensor(Y, requires_grad=True)
    groups = torch.arange(30) // 2
    expected = aligner().fit(Z, Y, confounders=Z[:, 3], groups=groups.numpy())
    found = aligner().fit(rows, labels, confounders=rows[:, 3], groups=groups)
    np.testing.assert_allclose(found.T_, expected.T_, atol=1e-12)
    fitted = aligner().fit(Z, Y)
    for bad in (torch.tensor(Z).to_sparse(), torch.empty(Z.shape, device="meta")):
        for call in (
            lambda bad=bad: aligner().fit(bad, Y),
            lambda bad=bad: aligner().fit(Z, bad),
            lambda bad=bad: aligner().fit(Z, Y, confounders=bad),
            lambda bad=bad: aligner().fit(Z, Y, groups=bad),
            lambda bad=bad: fitted.transform(bad),
        ):
            with pytest.raises(ValueError, match="of torch"):
                call()


def test_tables_of_pyarrow_have_names():
    table = pytest.importorskip("pyarrow").table({name: FRAME[name].to_numpy() for name in FRAME})
    for make in (aligner, factors):
        expected = make().fit(FRAME, Y).transform(FRAME)
        np.testing.assert_allclose(np.asarray(make().fit(table, Y).transform(table)), expected, atol=1e-9)


@pytest.mark.parametrize("labels", [[{}] * 30, np.array([[1], [2, 3]] * 15, dtype=object)])
def test_groups_need_labels(labels):
    with pytest.raises(ValueError, match="groups need labels that are text or numbers"):
        aligner().fit(Z, Y, groups=labels)


def test_dask_arrays_that_are_not_what_they_say():
    da = pytest.importorskip("dask.array")
    rows = da.from_array(Z, chunks=(10, 4))
    fitted = aligner().fit(Z, Y)
    narrow = rows.map_blocks(lambda block: block[:, :3], dtype=float)
    bad = {"3 in one of them": narrow, "complex": rows + 1j, "NaN": da.ma.masked_greater(rows, 1), "shape": rows[:, 0]}
    for words, data in bad.items():
        with pytest.raises(ValueError, match=words):
            aligner().fit(data, Y)
        if words == "NaN":  # lazily, row by row
            continue
        with pytest.raises(ValueError, match=words):
            fitted.transform(data).compute()
    for words, data in {"Delayed": pytest.importorskip("dask").delayed(Z)}.items():
        with pytest.raises(ValueError, match=words):
            aligner().fit(data, Y)


VARIES_NOT = {
    "constant": lambda: factors().fit(np.ones((30, 4)), Y),
    "constant with gaps": lambda: factors().fit(np.where(Z > 1, np.nan, 1.0), Y),
    "constant in chunks": lambda: factors().fit(ca.open_rows(np.ones((30, 4)), chunk_rows=7), Y),
    "constant in batches": lambda: factors().fit([(np.ones((30, 4)), Y)] * 2),
    "explained by confounders": lambda: factors().fit(Z, Y, confounders=Z),
}


@pytest.mark.parametrize("kind", VARIES_NOT)
def test_factors_need_a_feature_that_varies(kind):
    """They would have NaN as alignment."""
    with pytest.raises(ValueError, match="X needs a feature that varies, got only constant ones"):
        VARIES_NOT[kind]()


def test_permutations_beyond_all_patience():
    with pytest.raises(ValueError, match="n_permutations needs a whole number from 1 to 10000000"):
        aligner().fit(Z, Y).permutation_test(Z, Y, 10**400)
