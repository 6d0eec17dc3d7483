"""Tables whose numbers have the byte order of other machines, which pandas cannot select rows of."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import covalign as ca

RNG = np.random.default_rng(0)
Z = RNG.normal(size=(40, 4))
Y = Z[:, :2] + RNG.normal(size=(40, 2))
GROUPS = np.arange(40) % 8
TABLES = {
    "arrays": (Z.astype(">f8"), Y.astype(">f8"), GROUPS.astype(">i4")),
    "frames": (
        pd.DataFrame(Z.astype(">f8"), columns=list("abcd")),
        pd.DataFrame(Y.astype(">f8"), columns=["y0", "y1"]),
        pd.DataFrame({"g": GROUPS.astype(">i8")}),
    ),
    "labels": (Z, pd.DataFrame(Y.astype(">f8"), columns=["y0", "y1"]), pd.Series(GROUPS.astype(">u2"))),
}


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_every_function_reads_them(kind):
    z, y, groups = TABLES[kind]
    aligner = ca.LatentAligner().fit(z, y, groups=groups)
    here = ca.LatentAligner().fit(Z, Y, groups=GROUPS)
    np.testing.assert_array_equal(aligner.alignment_, here.alignment_)
    np.testing.assert_array_equal(np.asarray(aligner.transform(z)), here.transform(Z))
    assert aligner.score(z, y) == here.score(Z, Y)
    assert aligner.permutation_test(z, y, 9)["p_value"].tolist() == here.permutation_test(Z, Y, 9)["p_value"].tolist()
    settings = {"max_iter": 3, "supervision": 1.0, "folds": 0}
    model = ca.InformedFactorAnalysis(3, **settings).fit(z, y, groups=groups)
    same = ca.InformedFactorAnalysis(3, **settings).fit(Z, Y, groups=GROUPS)
    np.testing.assert_array_equal(model.factors_, same.factors_)
    np.testing.assert_array_equal(np.asarray(model.transform(z)), same.transform(Z))
    assert ca.covariates.encode(y).to_numpy().tolist() == Y.tolist()
    np.testing.assert_array_equal(ca.Moments.from_batches([(z, y)]).cov_z, ca.Moments.from_batches([(Z, Y)]).cov_z)


def test_a_matrix_that_scipy_keeps_as_a_dict_is_no_dict_of_views():
    settings = {"max_iter": 3, "supervision": 1.0, "folds": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = [
            ca.InformedFactorAnalysis(3, **settings).fit(kind(Z), Y).factors_
            for kind in (sparse.dok_matrix, sparse.dok_array, sparse.csr_array)
        ]
    np.testing.assert_array_equal(made[0], made[2])
    np.testing.assert_array_equal(made[1], made[2])


@pytest.mark.parametrize(
    "odd", [Y.astype(complex), np.full((40, 2), "abc"), Y.astype("M8[s]"), np.array([[1j, "a"]] * 40)]
)
def test_covariates_of_new_rows_are_numbers_as_in_the_fit(odd):
    """Complex numbers lost their imaginary parts, dates became nanoseconds."""
    aligner = ca.LatentAligner(shrinkage=0.1).fit(Z, Y)
    for call in (lambda: aligner.score(Z, odd), lambda: aligner.permutation_test(Z, odd, 9)):
        with pytest.raises(ValueError, match="column 'y0' needs numbers as in the rows of the fit"):
            call()


def test_sizes_that_cannot_be_squared():
    rows = Z * 1e200
    for call in (
        lambda: ca.principal_components(rows, 2),
        lambda: ca.baselines.run(ca.baselines.PCA(), rows, Y, 2),
        lambda: ca.LatentAligner(shrinkage=0.1).fit(Z, Y).permutation_test(Z, Y * 1e-200, 9),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(ValueError, match="values between 1e-100 and 1e\\+100"):
                call()


def test_a_view_has_columns():
    with pytest.raises(ValueError, match="view 'b' has 0 feature"):
        ca.InformedFactorAnalysis(2).fit({"a": Z, "b": Z[:, :0]}, Y)
