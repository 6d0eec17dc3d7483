"""Independent dimensions stay uncorrelated on the fitted rows, however badly Z is conditioned."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import covalign as ca


def badly_conditioned(seed: int, least: float = 0, most: float = 5):
    """Z of a condition number of 10^least to 10^most; columns in other units, or repeated, or far from 0."""
    rng = np.random.default_rng(seed)
    p = int(rng.integers(2, 7))
    k = p if seed % 2 else p + int(rng.integers(1, 12))
    n = int(rng.integers(2 * k + 10, 200))
    U, V = (np.linalg.qr(rng.standard_normal((rows, k)))[0] for rows in (n, k))
    Z = (U * np.geomspace(1, 10 ** -rng.uniform(least, most), k)) @ V.T * np.sqrt(n)
    Y = U[:, :p] * np.sqrt(n) + rng.standard_normal((n, p))
    if seed % 3 == 0:
        Z = Z * 10 ** rng.uniform(-6, 6, k)
    if seed % 4 == 0:
        Z = np.hstack([Z, Z[:, :1], 2 * Z[:, -1:]])
    return Z + (100 * np.std(Z, axis=0) if seed % 7 == 0 else 0), Y


def coupling(z):
    C = np.corrcoef(np.asarray(z).T)
    return np.sum((C - np.diag(np.diag(C))) ** 2)


def fitted(Z, Y, **settings):
    """The aligner, or None where Z has too few dimensions that differ from rounding."""
    try:
        return ca.LatentAligner(**{"lam": 0.0, "shrinkage": 0.0, **settings}).fit(Z, Y)
    except ValueError as error:
        if "linearly independent" not in str(error):
            raise
        return None


@pytest.mark.parametrize("shrinkage", [0.0, 0.1])
@pytest.mark.parametrize("orders", [(0, 5), (5, 8)])
def test_independent_dimensions_are_uncorrelated_on_the_fitted_rows(shrinkage, orders):
    tried = 0
    for seed in range(40):
        Z, Y = badly_conditioned(seed, *orders)
        al = fitted(Z, Y, shrinkage=shrinkage)
        if al is not None:
            tried += 1
            assert coupling(al.transform(Z)) < 1e-10, seed
            assert al.coupling_ < 1e-6
    assert tried > 25


def corrected():
    """Rows whose moments alone give a coupling above 1e-10, and their aligner."""
    for seed in range(40):
        Z, Y = badly_conditioned(seed, 6, 7.5)
        al, streamed = fitted(Z, Y), fitted(ca.open_rows(Z, chunk_rows=50), Y)
        if al is not None and coupling(streamed.transform(Z)) > 1e-10:
            return Z, Y, al
    raise AssertionError("moments suffice")


def test_every_kind_of_rows_in_memory_is_corrected(tmp_path):
    Z, Y, al = corrected()
    number = np.arange(len(Z)) % 3
    batch, shift = np.array(["a", "b", "c"])[number], number[:, None]
    for rows in (pd.DataFrame(Z), sp.csr_matrix(Z), np.asfortranarray(Z)):
        assert coupling(fitted(rows, Y).transform(rows)) < 1e-10
    within = fitted(Z, Y, keep_rest=True)
    assert coupling(within.transform(Z)[:, : Y.shape[1]]) < 1e-10
    assert coupling(fitted(Z, np.where(number[:, None] == 1, np.nan, Y)).transform(Z)) < 1e-10
    other = ca.LatentAligner(lam=0.0, shrinkage=0.0).fit(Z + shift, Y, confounders=batch)
    assert coupling(other.transform(Z + shift, confounders=batch)) < 1e-10

    al.save(tmp_path / "m.covalign")
    loaded = ca.load(tmp_path / "m.covalign")
    np.testing.assert_array_equal(loaded.transform(Z), al.transform(Z))
    for model in (al, loaded, copy.deepcopy(al)):
        np.testing.assert_array_equal(model.at(0.7).at(0.0).T_, al.T_)
        np.testing.assert_array_equal(model.at(0.7).T_, al.at(0.7).T_)
    exact = al.at(max_coupling=0.1, exact=True)
    assert coupling(exact.transform(Z)) <= 0.1 + 1e-6
    exact.save(tmp_path / "m.covalign")
    np.testing.assert_array_equal(ca.load(tmp_path / "m.covalign").transform(Z), exact.transform(Z))


@pytest.mark.filterwarnings("ignore::covalign.exceptions.LeastSquaresWarning")
def test_a_correction_changes_no_inverse_and_ends_with_its_rows():
    Z, Y, al = corrected()
    streamed = fitted(ca.open_rows(Z, chunk_rows=50), Y)
    back, expected = (model.inverse_transform(model.transform(Z)) for model in (al, streamed))
    np.testing.assert_allclose(back, expected, atol=1e-7 * np.abs(Z).max())
    al.partial_fit(Z, Y)  # other sums, of rows that are not there
    twice = ca.LatentAligner(lam=0.0, shrinkage=0.0).partial_fit(Z, Y).partial_fit(Z, Y)
    np.testing.assert_array_equal(al.T_, twice.T_)


def test_ordinary_rows_are_read_once(monkeypatch):
    Z, Y = badly_conditioned(1, 0, 2)
    monkeypatch.setattr(ca.LatentAligner, "_mapped", lambda *_: pytest.fail("a second pass"))
    assert fitted(Z, Y) is not None
