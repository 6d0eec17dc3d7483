"""What features say about the covariates beyond K factors: ridge regression on all of them, as a share of E[z | x].

K factors hold what features have in common, and may lack what predicts a covariate. So the informed factors of a sample
without covariates are a mixture of what the model says and of what ridge regression on all features says:

    z_I = (1 - s) E[z_I | x_o] + s B'x*,    x*_d = x_d where observed, and w_d'E[z | x_o] where not.

E[y | x] = beta E[z_I | x] puts predictions on the scale of factors: B is the ridge regression of y / beta, with at most
the variance that z has in its prior. The share s is chosen on left-out samples. Regimes follow from the moments of
these factors, so their constraints hold exactly. Samples with covariates have the factors of the model.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from covalign._core.linalg import Array, rank_cutoff
from covalign.factor import placement
from covalign.factor.inference.row_evidence import intercept
from covalign.factor.inference.state import Problem, State

PENALTIES = np.logspace(-4, 3, 29)  # of the mean eigenvalue
LEAST_BETA = 0.3  # below, y / beta would be mostly noise
MOST = 4000  # features or samples, whichever are fewer: their matrix is decomposed


class Regression(NamedTuple):
    """The share, the coefficients B (D x P), and what fills gaps: loadings (D x K) and intercepts of the features."""

    share: float
    of_x: Array
    loadings: Array
    intercept: Array

    @classmethod
    def of(cls, share: float, of_x: Array, state: State) -> Regression:
        """With the loadings of a state."""
        return cls(share, of_x, *reconstruction(state, len(of_x)))

    def mixed(self, z: Array, X: Array, observed: NDArray[np.bool_], one: Any = 1.0) -> Array:
        """The factors of rows; X is 0 in gaps. Rows that stand for several samples count ``one`` in a sum."""
        said = X @ self.of_x
        if not observed.all():
            rows = np.broadcast_to(one, len(X))[:, None]
            said += np.where(observed, 0.0, z @ self.loadings.T + rows * self.intercept) @ self.of_x
        return self._towards(z, said)

    def linear(self, of: placement.Linear, present: NDArray[np.bool_]) -> placement.Linear:
        """``mixed`` as a linear map, for rows whose only gaps are absent features."""
        B = np.where(present[:, None], self.of_x, 0.0)
        filling, constant = self.loadings.T @ (self.of_x - B), self.intercept @ (self.of_x - B)
        return of._replace(
            of_x=self._towards(of.of_x, B + of.of_x @ filling),
            shift=self._towards(of.shift[None], (constant + of.shift @ filling)[None])[0],
        )

    def _towards(self, z: Array, said: Array) -> Array:
        moved, p = z.copy(), self.of_x.shape[1]
        moved[:, :p] += self.share * (said - z[:, :p])
        return moved


def reconstruction(state: State, d: int) -> tuple[Array, Array]:
    """Loadings and intercepts of the first d features: all but covariates that are a view."""
    loadings = np.vstack([view.w.mean for view in state.views])[:d]
    return loadings, np.concatenate([intercept(view.w) for view in state.views])[:d]


def is_possible(problem: Problem) -> bool:
    """Whether the regression takes no longer than a fit."""
    return bool(min(problem.n, problem.features[-1].stop) <= MOST)


def coefficients(problem: Problem, state: State, X: Array | None, Y: Array | None, folds: Any) -> Array:
    """B (D x P): ridge regression of y / beta on the standardised features.

    From the sums of complete data, or from rows ``X`` without gaps and ``Y`` with NaN in gaps. ``folds`` are those of
    the rows; None: the penalty is that of generalised cross-validation.
    """
    if X is None or Y is None:
        d, data = problem.features[-1].stop, problem.data
        parts = _of_sums(data.gram[:d, :d] / problem.n, data.xy[:d] / problem.n)
        return parts.coefficients(parts.by_validation(problem.n), state.beta)
    known = ~np.isnan(Y)
    B = np.zeros((X.shape[1], Y.shape[1]))
    for columns in _alike(known):
        rows = known[:, columns[0]]
        own = None if folds is None else folds[rows]
        B[:, columns] = of_rows(X[rows], Y[rows][:, columns], own, state.beta[columns])
    return B


def of_rows(X: Array, Y: Array, folds: Any, beta: Array) -> Array:
    """Ridge regression of rows; the penalty is that which predicts left-out folds best."""
    parts = Parts.of(X - X.mean(axis=0), Y - Y.mean(axis=0))
    return parts.coefficients(parts.by_validation(len(X)) if folds is None else best_left_out(X, Y, folds), beta)


class Parts(NamedTuple):
    """Ridge regression by components: S_x = V diag(values) V', and V's_xy."""

    values: Array
    vectors: Array  # D x r
    said: Array  # r x P
    unit: float  # of penalties

    @classmethod
    def of(cls, X: Array, Y: Array) -> Parts:
        """From centred rows."""
        n, d = X.shape
        if d <= n:
            return _of_sums(X.T @ X / n, X.T @ Y / n)
        values, U = _decomposed(X @ X.T / n)
        vectors = X.T @ (U / np.sqrt(n * values))
        return cls(values, vectors, np.sqrt(values / n)[:, None] * (U.T @ Y), float(values.sum() / d))

    def coefficients(self, at: int, beta: Array) -> Array:
        """B at one of the penalties."""
        of_parts = self.said / (self.values + PENALTIES[at] * self.unit)[:, None]
        sd = np.sqrt(self.values @ of_parts**2)  # of predictions
        return np.asarray(self.vectors @ (of_parts / np.maximum(np.maximum(beta, LEAST_BETA), sd)))

    def path(self, X: Array) -> Array:
        """Predictions for rows at all penalties (n x P x penalties)."""
        kept = self.said[:, :, None] / (self.values[:, None, None] + PENALTIES * self.unit)
        return np.asarray(np.tensordot(X @ self.vectors, kept, 1))

    def by_validation(self, n: int) -> int:
        """The penalty of generalised cross-validation (Golub, Heath and Wahba 1979), for covariates of variance 1."""
        kept = self.values[:, None] / (self.values[:, None] + PENALTIES * self.unit)
        left = 1 - (self.said**2 / self.values[:, None]).T @ (kept * (2 - kept))
        errors = left / np.maximum(1 - (kept.sum(axis=0) + 1) / n, 1e-3) ** 2
        return int(np.argmin(errors.mean(axis=0)))


def _of_sums(S: Array, s_xy: Array) -> Parts:
    values, vectors = _decomposed(S)
    return Parts(values, vectors, vectors.T @ s_xy, float(np.trace(S) / len(S)))


def _decomposed(S: Array) -> tuple[Array, Array]:
    values, vectors = np.linalg.eigh(S)
    there = values > rank_cutoff(len(S), float(values.max(initial=0.0)))
    return values[there], vectors[:, there]


def best_left_out(X: Array, Y: Array, folds: NDArray[np.intp]) -> int:
    """The penalty whose predictions of left-out rows correlate best with the covariates."""
    made = np.zeros((*Y.shape, len(PENALTIES)))
    for fold in np.unique(folds):
        test, train = folds == fold, folds != fold
        if not train.any():
            continue
        centre = X[train].mean(axis=0)
        parts = Parts.of(X[train] - centre, Y[train] - Y[train].mean(axis=0))
        made[test] = parts.path(X[test] - centre)
    made, Y = made - made.mean(axis=0), Y - Y.mean(axis=0)
    norms = np.sqrt(np.sum(made**2, axis=0)) * np.sqrt(np.sum(Y**2, axis=0))[:, None]
    found = np.sum(made * Y[:, :, None], axis=0) / np.where(norms > 0, norms, 1.0)
    return int(np.argmax(found.mean(axis=0)))


def _alike(known: NDArray[np.bool_]) -> list[list[int]]:
    """Columns with the same rows together."""
    groups: dict[bytes, list[int]] = {}
    for p, column in enumerate(known.T):
        groups.setdefault(column.tobytes(), []).append(p)
    return list(groups.values())


def of_model(model: Any, rows: Any, folds: Any) -> Array:
    """``coefficients`` of a fitted model, from the sums of its fit or from rows in memory and their folds."""
    problem, first = model._problem, model._stage_1
    if rows is None:
        return coefficients(problem, first, None, None, None)
    ((_, parts, Y, C),) = rows.chunks(model._table)
    X = model._table.standardised(parts, C)
    gaps = np.isnan(X)
    if gaps.any():
        z = placement.place(first, model._sy, X, np.full_like(Y, np.nan), np.eye(problem.p)).mean
        loadings, constant = reconstruction(first, X.shape[1])
        X = np.where(gaps, z @ loadings.T + constant, X)
    wide = X.shape[1] > len(X)
    return coefficients(problem, first, X, Y, folds if wide or model._groups is not None else None)
