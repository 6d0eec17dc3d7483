"""How much the covariates count against the features: the weight of the supervision, chosen on left-out samples.

With hundreds of features and a few covariates, the informed factors follow the variance of X. With supervision s, the
covariates are also a view, y = V z + noise, whose likelihood has the power s - 1: covariates count s times, once in the
prior of the informed factors. It is a bound on a proper objective (a power likelihood), so it never falls; s = 1 is the
paper's model. New samples have no such view, and their factors come from their features.

Most data need no choice: where ridge regression on the features predicts the covariates no better than the factors do,
it stays at 1. With more samples than features, both are judged by generalised cross-validation, from sums of the fit;
with more features, both on left-out samples.
"""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from covalign._core.linalg import Array, rank_cutoff
from covalign._core.messages import message
from covalign._core.progress import Progress
from covalign.exceptions import CannotHoldOutError
from covalign.factor import cross_validation
from covalign.factor.feature_regression import PENALTIES, is_possible
from covalign.factor.fitted_rows import Rows
from covalign.factor.inference.engines import Gram, RowEngine, Sparse
from covalign.factor.inference.kernel import kernel_of
from covalign.factor.inference.patterns import Gapped
from covalign.factor.inference.sparse_gaps import SparseGapped
from covalign.factor.inference.state import Problem
from covalign.moments.moments import Moments

WEIGHTS = (1.0, 4.0, 16.0)
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
USUAL = 0.5  # of these shares: the one that is best on most data
LOST, LOST_BY_ONE = 0.01, 0.03  # of alignment, on average or of one covariate, before weights are tried
FOLDS, SWEEPS, MOST_ROWS = 3, 15, 10_000
LAM = 0.5
LARGE, COMPONENTS = 500, 60
MOST_SQUARED = 2000  # samples whose N x N matrix is decomposed as quickly as a model is fitted


def is_lost(problem: Problem, factors: Moments) -> bool:
    """Whether features predict the covariates clearly better than the factors that they give.

    With more features than samples nothing in sample can tell: factors have seen the covariates that they predict.
    """
    if problem.features[-1].stop > problem.n:
        return True
    data = kernel_of(problem).filled(problem).data
    lost = of_features(data, problem.n) - of_factors(factors)
    return bool(lost.mean() > LOST or lost.max() > LOST_BY_ONE)


def of_features(data: Any, n: int) -> Array:
    """The alignment that ridge regression on all features promises for new samples, one for each covariate."""
    S = (data.gram if isinstance(data, Gram) else data.rows) / n
    values, vectors = leading(S)
    known = (
        (vectors.T @ data.xy / n) ** 2 / values[:, None] if isinstance(data, Gram) else (vectors.T @ data.Y) ** 2 / n
    )
    return promised(values, known, np.trace(S) / len(S), n)


def of_factors(m: Moments) -> Array:
    """The same for the factors."""
    values, vectors = leading(m.cov_z)
    known = (vectors.T @ (m.cov_zy / np.sqrt(np.diag(m.cov_y)))) ** 2 / values[:, None]
    return promised(values, known, np.trace(m.cov_z) / len(m.cov_z), m.n or 1)


def promised(values: Array, known: Array, unit: float, n: int) -> Array:
    """Generalised cross-validation (Golub, Heath and Wahba 1979): 1 - R^2 = RSS / (1 - df / n)^2, at the best penalty.

    ``known`` is what each component explains of each (standardised) covariate, ``unit`` the unit of the penalty.
    """
    kept = values[:, None] / (values[:, None] + PENALTIES * unit)
    left = 1 - known.T @ (kept * (2 - kept))  # P x penalties
    errors = left / np.maximum(1 - (kept.sum(axis=0) + 1) / n, 1e-3) ** 2  # the mean is among the df
    return np.asarray(np.sqrt(np.clip(1 - errors[:, np.argmin(errors.mean(axis=0))], 0.0, 1.0)))


def leading(S: Array) -> tuple[Array, Array]:
    """Eigenvalues above rounding and their vectors; of a large matrix roughly the first, by subspace iteration."""
    if len(S) <= LARGE:
        values, vectors = np.linalg.eigh(S)
    else:
        Q = np.random.default_rng(0).normal(size=(len(S), COMPONENTS))
        for _ in range(4):
            Q = np.linalg.qr(S @ Q)[0]
        values, turn = np.linalg.eigh(Q.T @ S @ Q)
        vectors = Q @ turn
    there = values > rank_cutoff(len(S), float(values.max(initial=0.0)))
    return values[there], vectors[:, there]


def suffices(model: Any, of_factors: Array) -> bool:
    """Whether the factors predict covariates of left-out samples as well as ridge regression on all features.

    For data with more features than samples, which ``is_lost`` cannot judge; others have been judged. With gaps, ridge
    regression on means in place of missing cells knows too little to be a measure.
    """
    problem = model._problem
    if isinstance(problem.data, Gapped) and not problem.data.observed[:, : problem.features[-1].stop].all():
        return False
    data = kernel_of(problem).filled(problem).data
    if problem.features[-1].stop <= problem.n or problem.n > MOST_SQUARED or not isinstance(data, RowEngine):
        return False
    ridge = left_out_ridge(data.rows, data.Y, cross_validation.folds_of(model, FOLDS)[0])
    lost = np.maximum(ridge, 0.0) - np.maximum(of_factors, 0.0)
    return not (lost.mean() > LOST or lost.max() > LOST_BY_ONE)


def left_out_ridge(G: Array, Y: Array, fold_of: NDArray[np.intp]) -> Array:
    """corr(prediction, y) of left-out samples at the best penalty, G = XX':  y_test ~ G_test,train (G + penalty)^-1 y.

    One number for each covariate.
    """
    made, unit = np.zeros((*Y.shape, len(PENALTIES))), np.trace(G) / len(G)
    for fold in np.unique(fold_of):
        test, train = fold_of == fold, fold_of != fold
        values, vectors = np.linalg.eigh(G[np.ix_(train, train)])
        coefficients = (vectors.T @ Y[train])[:, :, None] / (values[:, None, None] + PENALTIES * unit)
        made[test] = np.tensordot(G[np.ix_(test, train)] @ vectors, coefficients, 1)
    away = made - made.mean(axis=0)
    norms = np.sqrt(np.sum(away**2, axis=0)) * np.sqrt(np.sum(Y**2, axis=0))[:, None]
    found = np.sum(away * Y[:, :, None], axis=0) / np.where(norms > 0, norms, 1.0)  # P x penalties; Y is centred
    return np.asarray(found[:, np.argmax(found.mean(axis=0))])


def with_few_rows(model: Any) -> Any:
    """The model with rows spread evenly over all, at most ``MOST_ROWS``, in memory: enough to rank weights."""
    step = -(-model.n_rows_ // MOST_ROWS)
    if step == 1 and isinstance(model._rows, Rows):
        return model
    few = copy.copy(model)
    few._rows = model._rows.every(step, model._table)
    few._groups = None if model._groups is None else model._groups[::step]
    return few


def can_leave_out(model: Any) -> bool:
    """Whether rows can be left out: they are in memory, or can be read again and are more than the features.

    A sparse matrix would have to be made dense.
    """
    if isinstance(model._problem.data, Sparse | SparseGapped):
        return False
    wide = model._problem.features[-1].stop > model._problem.n
    return isinstance(model._rows, Rows) or (model._rows.kept and not wide)


def chosen(model: Any) -> float:
    """``weighed`` alone."""
    return weighed(model)[0]


def weighed(model: Any) -> tuple[float, float]:
    """The weight whose mean alignment on left-out samples is the highest, and the share of the regression.

    The weight is 1 if that is clearly better than the others. Left-out samples of small data say little, and where
    features know more than the factors, weights above 1 are better on nearly all data (``docs/notes.md``). It is also 1
    if no weight places left-out samples better than chance may do. ``model`` is fitted with supervision 1. Fits without
    a fold get a few sweeps: they rank weights, no more. Where rows cannot be left out, it stays at 1.
    """
    if not can_leave_out(model):
        return WEIGHTS[0], share(model, WEIGHTS[0])
    few, given = with_few_rows(model), model.regression_share
    reached: dict[float, list[float]] = {}
    with Progress(None) as bar, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for weight in WEIGHTS:
            bar.update(len(reached), f"supervision {weight:g} on left-out samples")
            tried = [given] if given != "auto" else SHARES if reached and is_possible(model._problem) else SHARES[:1]
            try:
                judged = cross_validation.with_shares(few, FOLDS, trial_of(few, weight), tried)
            except CannotHoldOutError:
                return WEIGHTS[0], 0.0 if given == "auto" else given
            if not reached and suffices(few, judged[0].in_regimes.measure("strongest", 1.0).alignment.value):
                return WEIGHTS[0], tried[0]
            reached[weight] = [float(held.in_regimes.measure("tunable", LAM).mean.value) for held in judged]
    best = max(WEIGHTS[1:], key=lambda weight: reached[weight][0])
    clear = 0.003 + 1.5 / few.n_rows_
    if reached[WEIGHTS[0]][0] > reached[best][0] + clear or reached[best][0] < chance(few):
        return WEIGHTS[0], share(model, WEIGHTS[0])
    return best, given if given != "auto" else best_share(few, reached[best])


def chance(model: Any) -> float:
    """The standard deviation of a correlation with nothing."""
    return float(model.n_rows_**-0.5)


def trial_of(model: Any, weight: float) -> Any:
    """The settings of the fits that compare weights and shares."""
    return clone(model).set_params(supervision=weight, max_iter=SWEEPS, n_init=1, folds=FOLDS)


def share(model: Any, weight: float) -> float:
    """The share that is given, or that left-out samples of fits with this weight ask for."""
    if model.regression_share != "auto":
        return float(model.regression_share)
    if not is_possible(model._problem):
        return 0.0
    if not can_leave_out(model):
        return USUAL if isinstance(model._problem.data, Gram) else 0.0
    few = with_few_rows(model)
    with Progress(None) as bar, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        bar.update(0, "share of the regression on left-out samples")
        try:
            judged = cross_validation.with_shares(few, FOLDS, trial_of(few, weight), SHARES)
        except CannotHoldOutError:
            return 0.0
    return best_share(few, [float(held.in_regimes.measure("tunable", LAM).mean.value) for held in judged])


def best_share(model: Any, reached: list[float]) -> float:
    """The share with the highest of these alignments on left-out samples.

    An average of two predictions is rarely worse than either, so shares have to be the better the further they are from
    ``USUAL``. It is 0 if no share places left-out samples better than chance may do.
    """
    if max(reached) < chance(model) or len(reached) < len(SHARES):
        return 0.0
    cost = (0.001 + 5 / model.n_rows_) * np.abs(np.array(SHARES) - USUAL) / USUAL
    return SHARES[int(np.argmax(reached - cost))]


def to_regress(model: Any) -> tuple[Any, Any]:
    """Rows in memory for a regression on all features, and their folds; None where the sums of the fit are enough."""
    if isinstance(model._problem.data, Gram) and model._groups is None:
        return None, None
    if not can_leave_out(model):
        need = "regression_share needs rows in memory, or more complete rows than features"
        raise ValueError(message(need, got=model.regression_share, remedy="use regression_share=0"))
    few = model if isinstance(model._rows, Rows) else with_few_rows(model)
    return few._rows, cross_validation.folds_of(few, FOLDS)[0]
