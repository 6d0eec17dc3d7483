"""The methods of the arena, fitted to training rows so that they can place others from their features alone.

Every method gets the same rows, the same K, the same budget of iterations and its own defaults. A representation is
judged twice: alone, with its factors matched to covariates on the training rows, and followed by T, where
``LatentAligner`` is fitted to the representation of the training rows (placed from their features, as new rows are).
Methods that cannot take missing cells get the mean of the training rows in their place.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from sklearn import decomposition

from covalign._core.linalg import Array, is_constant
from covalign._core.messages import listed, message
from covalign.aligner.latent import LatentAligner
from covalign.closed_form import metrics
from covalign.factor import InformedFactorAnalysis
from covalign.study import baselines
from covalign.study.arena.collection import Case
from covalign.study.baselines import ivae
from covalign.study.baselines.method import BuiltIn, Fitted, Method, Scale, Views, split, stacked, versions_of
from covalign.study.baselines.peers import Peer, SparsePLS
from covalign.study.contenders import NOT_PLACED

LAMS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
NO_T, THEN_T = ", alone", ", then T"
FEATURES = "aligner on the features"
SWITCHED_OFF = 1e-8  # a factor with less than this share of the largest deviation is 0: MOFA shrinks some to 1e-100
LEVEL = 0.9  # of the intervals whose coverage is counted
T = TypeVar("T")
Placing = Callable[[Views], Array]  # views of new rows -> settings x n x P


class Rules(NamedTuple):
    """What all methods share."""

    n_factors: int
    seed: int
    budget: int
    cpu_limit: float | None  # seconds of a fit


class Announced(NamedTuple):
    """The mean alignment on new rows that a fit expects, and its standard error."""

    alignment: float
    se: float


class Trained(NamedTuple):
    """A fit: placing functions by name of the contestant, and what else can be judged."""

    placings: dict[str, Placing]
    seconds: float
    rebuild: Callable[[Views], Views] | None = None  # views with gaps -> all cells, in the units of the views
    announced: dict[str, Announced] | None = None
    coverage: Callable[[Views], float] | None = None  # complete training views -> share of hidden cells in intervals
    memory: float | None = None
    failures: Mapping[str, Exception] = {}


# -- a representation, alone and followed by T ------------------------------------------------------------------------


@dataclass(frozen=True)
class FactorAnalysis(BuiltIn):
    """Maximum likelihood factor analysis of scikit-learn."""

    name = "FactorAnalysis"
    paired = False

    def fit(self, views: Views, Y: Array, n_factors: int, seed: int, budget: int) -> Fitted:
        """At most ``budget`` iterations."""
        X = stacked(views)
        model = decomposition.FactorAnalysis(min(n_factors, *X.shape), max_iter=budget, random_state=seed).fit(X)
        loadings = split(model.components_.T, views)

        def place(new: Views) -> Array:
            return np.asarray(model.transform(stacked(new)))

        return Fitted(place(views), loadings, versions=versions_of("scikit-learn"), place=place)


@dataclass(frozen=True)
class BlindIVAE(ivae.IVAE):
    """iVAE; the encoder gets the mean of the covariates in place of those of a sample, which are not known."""

    def fit(self, views: Views, Y: Array, n_factors: int, seed: int, budget: int) -> Fitted:
        """``budget`` epochs."""
        with ivae.one_thread():
            model, _ = ivae.train(stacked(views), Y, n_factors, seed, budget)

        def place(new: Views) -> Array:
            X = stacked(new)
            return ivae.posterior_mean(model, X, np.zeros((len(X), Y.shape[1])))

        return Fitted(place(views), versions=versions_of("torch"), place=place)


def timed(work: Callable[[], T]) -> tuple[T, float]:
    """What the work returns, and its seconds of computation: other work on the machine does not change them."""
    start = time.process_time()
    return work(), time.process_time() - start


def scale_of(view: Array) -> Scale:
    """Mean and standard deviation of columns over the cells that are there."""
    mean, variance = np.nanmean(view, axis=0), np.nanvar(view, axis=0)
    constant = is_constant(mean, variance)
    return Scale(mean, np.where(constant, 1.0, np.sqrt(variance)), np.where(constant, 0.0, 1.0))


def represented(method: Method, data: Case, rules: Rules) -> Trained:
    """Fit a representation and T after it."""
    scales = {name: scale_of(view) for name, view in data.views.items()}
    takes_gaps = getattr(method, "takes_gaps", False)

    def scaled(views: Views) -> Views:
        made = {name: scales[name].apply(view) for name, view in views.items()}
        return made if takes_gaps else {name: np.nan_to_num(view) for name, view in made.items()}

    own = scaled(data.views)
    Y = Scale.of(data.Y).apply(data.Y)
    fitted, seconds = timed(lambda: method.fit(own, Y, rules.n_factors, rules.seed, rules.budget))
    if fitted.place is None:
        raise ValueError(message("New samples cannot be placed", got=NOT_PLACED.get(method.name, "no way to do it")))
    given = fitted.place
    Z = given(own)
    sd = Z.std(axis=0)
    active = np.where(sd > SWITCHED_OFF * sd.max(), 1.0, 0.0)

    def place(views: Views) -> Array:
        return given(views) * active

    Z, p = Z * active, Y.shape[1]
    pairs = metrics.Matching(np.arange(p), np.ones(p)) if method.paired else metrics.match(Z, Y)
    placings: dict[str, Placing] = {method.name + NO_T: lambda new: pairs.apply(place(scaled(new)))[None]}
    rebuild = None
    if fitted.loadings is not None:
        rebuild = rebuilder(lambda new: place(scaled(new)), fitted.loadings, scales)
    seconds, memory = (seconds, None) if fitted.cost is None else fitted.cost
    made = Trained(placings, seconds, rebuild, memory=memory)
    return with_T(made, method.name + THEN_T, Z, data, lambda new: place(scaled(new)))


def with_T(made: Trained, name: str, Z: Array, data: Case, place: Callable[[Views], Array]) -> Trained:
    """The fit with T after its representation Z; that T does not exist says nothing about the representation alone."""
    try:
        aligner, more = timed(lambda: LatentAligner().fit(Z, data.Y, groups=data.groups))
    except ValueError as error:
        return made._replace(failures={name: error})
    maps = along_lambda(aligner)
    placings = {**made.placings, name: lambda new: place(new) @ maps}
    return made._replace(placings=placings, seconds=made.seconds + more, announced={name: announced_by(aligner)})


def along_lambda(model: LatentAligner | InformedFactorAnalysis) -> Array:
    """T' in every regime (lambdas x K x P): rows times T' are what ``transform`` gives, but for a constant."""
    return np.stack([model.at(lam).T_.T for lam in LAMS])


def announced_by(model: Any) -> Announced:
    """The held-out alignment that a model expects at its own lambda."""
    found = model.mean_alignment_
    return Announced(float(found["held_out"]), float(found["se"]))


def rebuilder(place: Callable[[Views], Array], loadings: Views, scales: dict[str, Scale]) -> Callable[[Views], Views]:
    """Cells from factors: mean + sd (z W')."""

    def rebuild(views: Views) -> Views:
        z = place(views)
        return {name: scales[name].mean + scales[name].sd * (z @ W.T) for name, W in loadings.items()}

    return rebuild


# -- the aligner on the features, and informed factor analysis --------------------------------------------------------


def features_aligned(data: Case, rules: Rules) -> Trained:
    """``LatentAligner`` with its defaults on the features of all views, standardised."""
    scales = {name: scale_of(view) for name, view in data.views.items()}

    def features(views: Views) -> Array:
        return np.nan_to_num(stacked({name: scales[name].apply(view) for name, view in views.items()}))

    aligner, seconds = timed(lambda: LatentAligner().fit(features(data.views), data.Y, groups=data.groups))
    maps = along_lambda(aligner)
    placings: dict[str, Placing] = {FEATURES: lambda new: features(new) @ maps}
    return Trained(placings, seconds, announced={FEATURES: announced_by(aligner)})


def informed(name: str, model: InformedFactorAnalysis, data: Case) -> Trained:
    """iFA at every lambda, and before any regime (alone)."""
    fitted, seconds = timed(lambda: model.fit(data.views, data.Y, groups=data.groups))
    p = data.Y.shape[1]
    moved = [fitted.at(lam) for lam in LAMS]

    def placed(new: Views) -> Array:
        if fitted.regime_from == "features":
            return np.asarray(fitted.transform(new)) @ along_lambda(fitted)
        return np.stack([np.asarray(one.transform(new))[:, :p] for one in moved])

    placings: dict[str, Placing] = {
        name: placed,
        name + NO_T: lambda new: np.asarray(fitted.transform(new))[None, :, :p],
    }
    scales = {view: scale_of(values) for view, values in data.views.items()}
    rebuild = rebuilder(lambda new: np.asarray(fitted.transform(new)), fitted.loadings_, scales)
    return Trained(placings, seconds, rebuild, coverage=lambda whole: cell_coverage(fitted, data.views, whole))


def cell_coverage(model: InformedFactorAnalysis, seen: Views, whole: Views) -> float:
    """The share of hidden training cells within the intervals of ``impute``."""
    from scipy.stats import norm

    inside = []
    for name, view in seen.items():
        hidden = np.isnan(view) & ~np.isnan(whole[name])
        if hidden.any():
            mean, std = (np.asarray(part) for part in model.impute(name, return_std=True))
            far = np.abs(whole[name] - mean)[hidden] > norm.ppf((1 + LEVEL) / 2) * std[hidden]
            inside.append(~far)
    return float(np.mean(np.concatenate(inside))) if inside else float("nan")


def ours(data: Case, rules: Rules) -> Trained:
    """iFA with its defaults."""
    return informed(
        "iFA", InformedFactorAnalysis(rules.n_factors, max_iter=rules.budget, random_state=rules.seed, folds=0), data
    )


def with_own_number(data: Case, rules: Rules) -> Trained:
    """iFA that chooses its number of factors; no other method does that."""
    return informed(
        "iFA (own K)", InformedFactorAnalysis("auto", max_iter=rules.budget, random_state=rules.seed, folds=0), data
    )


def as_in_the_paper(data: Case, rules: Rules) -> Trained:
    """``.paper()``; with missing cells its posterior is "mean_field", because the paper's takes complete data only."""
    gaps = any(np.isnan(view).any() for view in data.views.values())
    more = {"posterior": "mean_field"} if gaps else {}
    model = InformedFactorAnalysis.paper(
        rules.n_factors, max_iter=rules.budget, random_state=rules.seed, folds=0, **more
    )
    return informed("iFA (paper)", model, data)


# -- all of them ------------------------------------------------------------------------------------------------------

OWN: dict[str, Callable[[Case, Rules], Trained]] = {
    FEATURES: features_aligned,
    "iFA": ours,
    "iFA (own K)": with_own_number,
    "iFA (paper)": as_in_the_paper,
}
REPRESENTATIONS: dict[str, Method] = {
    method.name: method
    for method in (
        baselines.PCA(),
        FactorAnalysis(),
        baselines.PLS(),
        baselines.BairSPCA(),
        baselines.BarshanSPCA(),
        baselines.YAsFactors(),
        baselines.MOFA(),
        BlindIVAE(),
        baselines.MOFAFLEX(),
        baselines.SOFA(),
        baselines.MuVI(),
        SparsePLS(),
    )
}
STEADY = ("iFA", "iFA (own K)", "iFA (paper)", "MOFA", "sparse PLS")  # further repetitions come last
SLOW = ("iVAE", "MOFA-FLEX", "SOFA (sf=0.1)", "MuVI")  # fewer repetitions, complete data only
NAMES = (*OWN, *REPRESENTATIONS)


def chosen(names: Iterable[str]) -> list[str]:
    """Methods by name, all if there are none; upper or lower case."""
    wanted = [*names]
    known = {name.lower(): name for name in NAMES}
    unknown = [name for name in wanted if name.lower() not in known]
    if unknown:
        remedy = f"The methods are {'; '.join(NAMES)}"
        raise ValueError(message(f"There is no method {listed(unknown)}", remedy=remedy, wrong=unknown, known=NAMES))
    return [known[name.lower()] for name in wanted] or [*NAMES]


def methods(names: Iterable[str]) -> list[Method]:
    """The methods among these names that may be absent here."""
    return [REPRESENTATIONS[name] for name in names if name in REPRESENTATIONS]


def trained(name: str, data: Case, rules: Rules) -> Trained:
    """Fit a method of the arena."""
    if name in OWN:
        return OWN[name](data, rules)
    method = REPRESENTATIONS[name]
    patient = replace(method, cpu_limit=rules.cpu_limit) if isinstance(method, Peer) else method
    return represented(patient, data, rules)
