"""Every argument of every public function with values of every wrong kind: an answer, or a refusal in our words."""

from __future__ import annotations

import decimal
import fractions
import inspect
import itertools
import re
import warnings

import numpy as np
import pandas as pd
import pytest

import covalign as ca
from covalign import baselines, covariates, metrics, plot, regimes, report, simulate
from tests.conftest import thorough

RNG = np.random.default_rng(3)
Z = RNG.normal(size=(30, 4))
Y = Z[:, :2] + RNG.normal(size=(30, 2))
VIEWS = {"a": Z, "b": RNG.normal(size=(30, 3))}
FRAME = pd.DataFrame({"dose": Y[:, 0], "sex": ["f", "m"] * 15})
M = ca.Moments.from_arrays(Z, Y)
POLAR = regimes.whitened_polar(M)


class Mute:
    """Raises whatever is asked of it."""

    def __repr__(self):
        raise RuntimeError

    def __array__(self, *_, **__):
        raise RuntimeError


ODD = {
    "nothing": [None, pd.NA, pd.NaT, ...],
    "numbers": [np.nan, np.inf, -np.inf, -1, 10**400, -(10**400), 1e-320, 1j],
    "other numbers": [
        np.int8(3),
        np.longdouble(0.5),
        fractions.Fraction(1, 2),
        decimal.Decimal("0.5"),
        np.float16(0.5),
    ],
    "flags": [True, np.True_],
    "times": [np.timedelta64(3, "s"), pd.Timestamp(0)],
    "text": ["no", "", "0.5", b"x", "\ud800", "a\0b", "x" * 5000],
    "arrays": [np.array([1.0, 2.0]), np.array(0.5), np.array([]), np.eye(3), np.ma.masked, pd.Series([1.0])],
    "tables": [pd.DataFrame({"a": [1]}), [[1, 2], [3]]],
    "containers": [[], [1], {}, {"a": 1}, {1}, range(3), (1, "a")],
    "objects": [object(), int, len, np, Mute()],
}
FOREIGN = (
    r"no attribute|unhashable|ufunc|broadcast|ambiguous|NoneType|<class|<func| at 0x|dtype\(|not iterable|argument"
)


@pytest.fixture(scope="module")
def models():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        aligner = ca.LatentAligner(shrinkage=0.1, keep_rest=True).fit(Z, Y)
        factors = ca.InformedFactorAnalysis(3, max_iter=3, tol=0, supervision=1.0).fit(VIEWS, Y)
    return aligner, factors


def fitted(kind, **settings):
    return kind(**settings).fit(Z, Y)


def functions_of_models(aligner, factors):
    moved = {"lam": None, "regime": None, "max_coupling": None, "exact": False}
    exact = {"max_coupling": 0.1, "exact": True, "weights": {"y0": 2}, "uncoupled": [("y0", "y1")]}
    for model in (aligner, factors):
        yield model.at, moved
        yield model.at, exact
        yield model.path, {"lams": [0.5]}
        yield model.frontier, {"lams": [0.5]}
        yield model.score, {"X": Z if model is aligner else VIEWS, "y": Y, "confounders": None}
    yield aligner.transform, {"Z": Z, "confounders": None}
    yield aligner.inverse_transform, {"Zt": Z, "confounders": None}
    yield aligner.steer, {"Z": Z, "amounts": {"y0": 1.0}}
    yield lambda amount: aligner.steer(Z, {"y0": amount}), {"amount": 1.0}
    yield aligner.erase, {"Z": Z, "names": "y0", "protect_others": False, "confounders": None}
    yield aligner.permutation_test, {"Z": Z, "Y": Y, "n_permutations": 9, "random_state": 0, "groups": None}
    yield factors.transform, {"X": VIEWS, "y": None, "confounders": None, "return_std": False}
    yield factors.impute, {"view": "a", "return_std": False}
    yield factors.variance_explained, {"kind": "marginal"}
    yield factors.top_features, {"factor": 0, "view": "a", "n": 3}
    yield factors.loadings_frame, {"factors": None, "views": None, "n": 3}
    yield factors.features_frame, {"n": 3, "factors": None, "views": None}
    yield factors.associations, {"metadata": FRAME, "survival": None, "method": "pearson"}
    yield lambda cell: factors.associations(pd.DataFrame({"a": [cell] * 30}, dtype=object)), {"cell": "x"}
    sets = {"s": ["0", "1", "2"]}
    yield factors.enrichment, {"gene_sets": sets, "view": "a", "factor": None, "min_size": 2, "max_size": 10}
    yield lambda names: factors.enrichment({"s": names}, "a", min_size=1), {"names": ["0"]}


def functions_of_data():
    settings = {"regime": "tunable", "lam": 0.5, "shrinkage": 0.1, "keep_rest": False, "folds": 3, "drop_first": True}
    settings |= {"missing": "pairs", "chunk_rows": None, "precision": "double"}
    yield lambda **given: fitted(ca.LatentAligner, **given), settings
    settings = {"n_factors": 3, "posterior": "full", "accelerate": True, "max_iter": 2, "tol": 0.0, "pretrain_iter": 0}
    settings |= {"random_state": 0, "n_init": 1, "scale": True, "engine": "auto", "drop_first": True, "folds": 0}
    settings |= {"supervision": 1.0, "beta_prior": 4.0, "regime_from": "features", "noise": "gaussian"}
    yield lambda **given: fitted(ca.InformedFactorAnalysis, **given), settings
    rows = {"confounders": None, "groups": None}
    yield ca.LatentAligner(shrinkage=0.1).fit, {"Z": Z, "Y": Y, **rows}
    brief = ca.InformedFactorAnalysis(3, max_iter=2, supervision=1.0, folds=0)
    yield brief.fit, {"X": VIEWS, "y": Y, **rows, "warm_start": False}
    options = {"folds": 3, "shrinkage": 0.1, "drop_first": True, "missing": "pairs", "chunk_rows": None, **rows}
    yield ca.cross_validated_frontier, {"Z": Z, "Y": Y, "lams": [0, 0.5], **options}
    yield ca.principal_components, {"Z": Z, "rank": 2, "passes": 2, "random_state": 0}
    yield metrics.alignment, {"Z": Z, "Y": Y, "per_covariate": False}
    yield metrics.dci, {"Z": Z, "Y": Y, "random_state": 0}
    yield metrics.variance_explained, {"X": Z, "Z": Y, "kind": "marginal", "W": RNG.normal(size=(4, 2))}
    for name in ("association", "match", "nsap", "sap"):
        yield getattr(metrics, name), {"Z": Z, "Y": Y}
    yield covariates.encode, {"Y": FRAME, "drop_first": True, "missing": "raise"}
    yield baselines.run, {"method": baselines.PCA(), "X": Z, "Y": Y, "n_factors": 3, "seed": 0, "budget": 5}
    yield lambda lam: baselines.Aligned(lam), {"lam": 0.5}
    yield lambda **given: baselines.IFA(**given), {"lam": 0.5, "exclusive": False}
    yield baselines.BairSPCA, {"quantile": 0.5}
    yield baselines.BarshanSPCA, {"kernel": "rbf"}


def functions_of_moments():
    sizes = {"n_samples": 20, "n_features": 8, "n_factors": 6, "n_covariates": 5}
    yield simulate.scenario, {"name": "PN", **sizes, "alpha": 1.0, "b": 1.0, "noise": 0.1, "random_state": 0}
    yield simulate.population_moments, {"name": "PN", "alpha": 1.0, "b": 1.0, "n_covariates": 5}
    yield simulate.coefficients, {"n_covariates": 5, "b": 1.0}
    yield simulate.covariate_correlation, {"name": "PN", "n_covariates": 5, "alpha": 1.0}
    yield ca.Moments.from_arrays, {"Z": Z, "Y": Y}
    yield ca.Moments.from_batches, {"batches": [(Z, Y)]}
    yield lambda batch: ca.Moments.from_batches([batch]), {"batch": (Z, Y)}
    yield lambda Z: ca.Moments.from_batches([(Z, Y)]), {"Z": Z}
    blocks = {"cov_z": M.cov_z, "cov_zy": M.cov_zy, "cov_y": M.cov_y, "mean_z": M.mean_z, "mean_y": M.mean_y}
    yield ca.Moments.from_covariances, {**blocks, "n": 30, "covariate_names": ["a", "b"]}
    yield M.select, {"columns": [0]}
    yield M.shifted, {"by": M.mean_z}
    yield M.transform, {"T": POLAR.T_0}
    yield M.regression, {"q": 1}
    yield M.with_names, {"names": ["a", "b"]}
    for name in ("independent", "strongest", "exclusive"):
        yield getattr(regimes, name), {"m": M, "shrinkage": 0.0}
    yield regimes.tunable, {"m": M, "lam": 0.5, "shrinkage": 0.0}
    yield regimes.frontier, {"m": M, "lams": [0.5], "shrinkage": 0.0}
    yield regimes.matrices, {"m": M, "settings": [("tunable", 0.5)], "shrinkage": 0.0}
    yield regimes.lam_within, {"M": POLAR.M, "max_coupling": 0.1}
    for name in ("alignment", "coupling"):
        yield getattr(regimes, name), {"T": POLAR.T_0, "m": M}
    for name in ("canonical_alignment", "eta_squared"):
        yield getattr(regimes, name), {"T": POLAR.T_0, "m": M, "columns": [0]}


def functions_of_pages(aligner, factors, folder):
    yield lambda title: report.write(aligner, folder / "r.html", title=title, overwrite=True), {"title": "t"}
    yield lambda command: report.write(aligner, folder / "r.html", command=command, overwrite=True), {"command": ""}
    yield report.show, {"model": aligner, "title": "t", "height": 800, "gene_sets": None}
    yield report.page, {"facts": report.summary(aligner), "title": "t"}


def answered_or_refused(call):
    """The call ends without a foreign warning, or raises one line of ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UserWarning)  # ours
        try:
            call()
        except ValueError as error:
            return str(error)
    return None


def every_value(functions, values):
    for function, arguments in functions:
        for name, value in itertools.product(arguments, values):
            said = answered_or_refused(lambda f=function, a=arguments, n=name, v=value: f(**{**a, n: v}))
            where = f"{getattr(function, '__qualname__', function)}({name}={type(value).__name__}): {said}"
            if said is not None and "is expecting" not in said:  # scikit-learn's own words for other columns
                assert said.endswith((".", "?")), where
                assert "\n" not in said, where
                assert len(said) < 1200, where
                assert not re.search(FOREIGN, said), where


QUICK = ["nothing", "times", "text", "objects"]
SOME = [*QUICK, *thorough(*(kind for kind in ODD if kind not in QUICK))]


@pytest.mark.parametrize("kind", SOME)
def test_models(kind, models):
    every_value(functions_of_models(*models), ODD[kind])


@pytest.mark.parametrize("kind", SOME)
def test_data(kind):
    every_value(functions_of_data(), ODD[kind])


@pytest.mark.parametrize("kind", ODD)
def test_moments(kind):
    every_value(functions_of_moments(), ODD[kind])


@pytest.mark.parametrize("kind", ODD)
def test_pages(kind, models, tmp_path):
    every_value(functions_of_pages(*models, tmp_path), ODD[kind])


def drawn(name, aligner, factors):
    frames = {
        "alignment": aligner.summary,
        "association": lambda: metrics.association(Z, Y),
        "bound": factors.bound_frame,
        "enrichment": lambda: factors.enrichment({"s": ["0", "1"]}, "a", min_size=1),
        "factor_by_category": factors.factors_frame,
        "factors": factors.factors_frame,
        "frontier": aligner.frontier,
        "loadings": factors.loadings_frame,
        "matrices": lambda: regimes.matrices(M),
        "missing": factors.missing_frame,
        "top_features": lambda: factors.top_features(0, "a"),
        "variance_explained": factors.variance_explained,
    }
    more = {"factors": {"x": "y0", "y": "y1"}, "factor_by_category": {"factor": "y0", "category": FRAME["sex"]}}
    return frames[name](), more.get(name, {})


@pytest.mark.parametrize("name", [name for name in plot.__all__ if inspect.isfunction(getattr(plot, name))])
def test_figures(name, models):
    """Columns, titles and Axes of other kinds leave no figure behind."""
    plt = pytest.importorskip("matplotlib.pyplot")
    frame, more = drawn(name, *models)
    figure = getattr(plot, name)
    axes = "axes" if name == "matrices" else "ax"
    calls = [{"frame": value} for kind in ("nothing", "text", "objects", "tables") for value in ODD[kind]]
    calls += [{"title": value} for kind in ("numbers", "times", "objects", "tables") for value in ODD[kind]]
    calls += [{axes: value} for value in ("x", 3, [], np.eye(2))]
    for column, value in itertools.product(frame.columns, ("x", np.inf, 1e300, 1j, [1], object())):
        calls.append({"frame": frame.assign(**{column: pd.Series([value] * len(frame), frame.index, dtype=object)})})
    calls += [{"frame": frame.drop(columns=[column])} for column in frame.columns]
    calls.append({"frame": pd.concat([frame, frame], axis=1)})
    calls.append({"frame": frame.iloc[:0]})
    for call in calls:
        before = plt.get_fignums()
        said = answered_or_refused(lambda c=call: figure(**{"frame": frame, **more, **c}))
        assert said is None or not re.search(FOREIGN, said), (call, said)
        assert said is None or plt.get_fignums() == before, (call, said)
        plt.close("all")


@pytest.mark.parametrize("title", [r"$\frac{", "$", "cost in $", "$a$ and $b$", "x" * 100, "a\nb"])
def test_titles_that_are_no_mathematics(title, models):
    plt = pytest.importorskip("matplotlib.pyplot")
    figure = plot.alignment(models[0].summary(), title=title).figure
    figure.canvas.draw()
    plt.close("all")


def test_flags_that_are_not_passed_on_are_checked():
    """These went through unseen: text that says no counted as True."""
    for call in (
        lambda: ca.cross_validated_frontier(Z, Y, drop_first="no"),
        lambda: ca.cross_validated_frontier(Z, Y, chunk_rows="many"),
        lambda: ca.InformedFactorAnalysis(3, max_iter=2, folds=0).fit(Z, Y, warm_start="no"),
        lambda: metrics.alignment(Z, Y, per_covariate="no"),
        lambda: simulate.covariate_correlation("PN", alpha=3),
        lambda: simulate.coefficients(b=-2),
    ):
        with pytest.raises(ValueError, match=r"needs|True or False"):
            call()


@pytest.mark.parametrize("value", [np.float32(1.5), np.longdouble(1.5), fractions.Fraction(3, 2), np.float16(1.5)])
@pytest.mark.parametrize("name", ["tol", "beta_prior", "supervision"])
def test_numbers_of_every_kind_are_the_same_number(name, value, tmp_path):
    settings = {"max_iter": 3, "supervision": 1.0, "folds": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = [ca.InformedFactorAnalysis(3, **{**settings, name: v}).fit(Z, Y) for v in (value, 1.5)]
    np.testing.assert_array_equal(made[0].factors_, made[1].factors_)
    assert isinstance(made[0].supervision_, float)


def test_lambdas_of_a_generator_are_read_once():
    frame = ca.cross_validated_frontier(Z, Y, (lam for lam in (0, 0.5)), shrinkage=0.1)
    pd.testing.assert_frame_equal(frame, ca.cross_validated_frontier(Z, Y, [0, 0.5], shrinkage=0.1))


def test_every_function_is_here(models, tmp_path):
    """A new public function has its line above."""
    tried = {
        getattr(function, "__name__", "")
        for function, _ in itertools.chain(
            functions_of_models(*models),
            functions_of_data(),
            functions_of_moments(),
            functions_of_pages(*models, tmp_path),
        )
    }
    wanted = {name for name, value in vars(metrics).items() if name in metrics.__all__ and inspect.isfunction(value)}
    assert wanted - {"coupling", "total_variance_explained"} <= tried
