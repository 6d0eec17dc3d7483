"""Flags, maps, numbers and paths of the wrong kind: refused in our words by every public function that takes them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import covalign as ca
from covalign import datasets, metrics, regimes, report

RNG = np.random.default_rng(5)
Z = RNG.normal(size=(30, 4))
Y = Z[:, :2] + RNG.normal(size=(30, 2))
MOMENTS = ca.Moments.from_arrays(Z, Y)
POLAR = regimes.whitened_polar(MOMENTS)
ODD = [
    *(None, "no", b"x", np.nan, 1j, object(), int, [1], {}),
    *(np.array([1.0, 2.0]), np.eye(3), pd.NA, pd.DataFrame({"a": [1]})),
]
PATHS = ["x" * 5000, f"{'x' * 300}.csv", "a\0b.csv", f"{'x/' * 3000}.npy", f"{'x' * 300}.h5ad"]


@pytest.fixture(scope="module")
def aligner():
    return ca.LatentAligner(shrinkage=0.1).fit(Z, Y)


@pytest.fixture(scope="module")
def factors():
    with pytest.warns(UserWarning, match="3 sweeps"):
        return ca.InformedFactorAnalysis(2, max_iter=3, tol=0, supervision=1.0, folds=0).fit(Z, Y)


def refused(call):
    """The call raises a ValueError of one line, in our code."""
    with pytest.raises(ValueError, match=r"[.?]$") as caught:
        call()
    assert "/covalign/" in caught.traceback[-1].path.as_posix()
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_flags_are_true_or_false(aligner, factors, tmp_path):
    """Text that says no is true for Python, and would replace a file."""
    page, rows = tmp_path / "r.html", tmp_path / "o.npy"
    page.write_text("mine")
    np.save(rows, Z)
    for odd in ODD:
        refused(lambda odd=odd: aligner.at(max_coupling=0.1, exact=odd))
        refused(lambda odd=odd: aligner.erase(Z, "y0", protect_others=odd))
        refused(lambda odd=odd: aligner.transform(Z, out=rows, overwrite=odd))
        refused(lambda odd=odd: factors.transform(Z, return_std=odd))
        refused(lambda odd=odd: factors.impute(return_std=odd))
        refused(lambda odd=odd: report.write(aligner, page, overwrite=odd))
    assert page.read_text() == "mine"
    np.testing.assert_array_equal(np.load(rows), Z)


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: type(odd).__name__)
def test_functions_of_moments_name_what_they_need(odd):
    for call in (
        lambda: regimes.alignment(odd, MOMENTS),
        lambda: regimes.alignment(POLAR.T_0, odd),
        lambda: regimes.coupling(odd, MOMENTS),
        lambda: regimes.coupling(POLAR.T_0, odd),
        lambda: regimes.mixing(odd, "tunable"),
        lambda: regimes.turned(odd, "exclusive"),
        lambda: regimes.mixed(odd, 0.5) if np.ndim(odd) < 2 else regimes.mixed(POLAR.M, [odd]),
        lambda: regimes.rest_of_space(odd, POLAR),
        lambda: regimes.rest_of_space(MOMENTS, odd),
    ):
        refused(call)


def test_whole_numbers_beyond_all_floats():
    for call in (
        lambda: regimes.tunable(MOMENTS, 10**400),
        lambda: regimes.ridge(MOMENTS, 10**400),
        lambda: ca.LatentAligner(lam=10**400).fit(Z, Y),
        lambda: ca.InformedFactorAnalysis(supervision=10**400).fit(Z, Y),
    ):
        refused(call)
    fitted = ca.LatentAligner(shrinkage=0.1).fit(Z, Y)
    assert fitted.at(max_coupling=10**400).lam_ == 1


def test_ragged_lists_in_metrics():
    ragged = [[1, 2], [3]]
    for name in ("alignment", "association", "dci", "match", "nsap", "sap", "variance_explained"):
        refused(lambda name=name: getattr(metrics, name)(Z, ragged))
        refused(lambda name=name: getattr(metrics, name)(ragged, Y))
    refused(lambda: metrics.coupling(ragged))


@pytest.mark.parametrize("path", PATHS)
def test_paths_that_no_file_can_have(aligner, factors, path):
    for call in (
        lambda: ca.LatentAligner().fit(path, Y),
        lambda: ca.LatentAligner().fit(Z, path),
        lambda: aligner.transform(path),
        lambda: aligner.score(path, Y),
        lambda: ca.read_table(path),
        lambda: ca.open_rows(path),
        lambda: ca.load(path),
        lambda: factors.enrichment(Path(path)),
        lambda: datasets.embedding(path),
    ):
        refused(call)


@pytest.mark.parametrize("names", [np.array("y0"), np.array([["y0"]]), [pd.NA], "y" * 5000, [np.nan], [["y0"]]])
def test_erasing_needs_a_list_of_names(aligner, names):
    refused(lambda: aligner.erase(Z, names))


def test_names_and_choices_of_results(aligner, factors, tmp_path):
    numbers = pd.DataFrame({"age": RNG.normal(size=30)})
    for odd in [*ODD[1:], [], [None], [["y0"]], np.array("y0")]:
        for call in (
            lambda odd=odd: factors.features_frame(views=odd),
            lambda odd=odd: factors.loadings_frame(n=odd if odd is not None else 0),
            lambda odd=odd: factors.top_features(odd),
            lambda odd=odd: factors.top_features(0, odd),
            lambda odd=odd: factors.impute(odd),
            lambda odd=odd: factors.variance_explained(odd),
            lambda odd=odd: metrics.variance_explained(Z, Z, kind=odd),
            lambda odd=odd: factors.associations(numbers, method=odd),
            lambda odd=odd: factors.associations(numbers, survival=odd),
            lambda odd=odd: factors.enrichment({"s": ["0", "1"]}, method=odd),
            lambda odd=odd: factors.enrichment({"s": ["0", "1"]}, statistic=odd),
            lambda odd=odd: factors.enrichment({"s": ["0", "1"]}, correlation=odd),
            lambda odd=odd: aligner.get_feature_names_out(odd),
            lambda odd=odd: ca.LatentAligner().set_output(transform=odd),
        ):
            refused(call)
        if not (isinstance(odd, list) and odd == [1]):  # the second factor
            refused(lambda odd=odd: factors.loadings_frame(factors=odd))
        if not isinstance(odd, dict):  # no view
            refused(lambda odd=odd: aligner.loadings(odd))
        if not isinstance(odd, str):
            refused(lambda odd=odd: aligner.save(odd))
            refused(lambda odd=odd: aligner.transform(Z, out=odd))
            for read in (ca.read_table, ca.load, datasets.embedding, datasets.mofa, datasets.breast_tcga):
                refused(lambda odd=odd, read=read: read(odd))


@pytest.mark.parametrize("name", ["n_samples", "n_features", "n_factors", "n_covariates", "alpha", "b", "noise"])
def test_sizes_of_simulations(name):
    for odd in [*ODD, -1, 10**400, "3", True, {"a": 0}, {"a": 1.5}]:
        refused(lambda odd=odd: ca.simulate.scenario("PN", **{name: odd}))
        if name in ("n_covariates", "alpha", "b"):
            refused(lambda odd=odd: ca.simulate.population_moments("PN", **{name: odd}))
    for odd in ODD:
        refused(lambda odd=odd: ca.simulate.scenario(odd))


def test_layers_of_torch_need_a_type(aligner):
    torch = pytest.importorskip("torch")
    for odd in (*ODD[1:], torch.int32, torch.complex64):
        refused(lambda odd=odd: aligner.to_torch(odd))


def test_helpers_for_covariates():
    from covalign import covariates

    for odd in (one for one in ODD if not isinstance(one, pd.DataFrame)):
        for call in (
            lambda odd=odd: covariates.ordered(odd, {"a": ["x"]}),
            lambda odd=odd: covariates.ordered(
                pd.DataFrame({"a": ["x"]}), odd or None if isinstance(odd, dict) else odd
            ),
            lambda odd=odd: covariates.complete_rows(odd),
            lambda odd=odd: covariates.refuse_constant(odd),
            lambda odd=odd: covariates.numbered("a", odd, []),
        ):
            refused(call)
    refused(lambda: covariates.numbered("a", 10**400, []))
