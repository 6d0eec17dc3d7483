"""The lasso with a cross-validated penalty: exact paths by least-angle regression for few dimensions.

scikit-learn's ``LassoCV`` solves the same problem (same penalties, same folds) by coordinate descent, to a tolerance
and many times slower for few dimensions. It is used for many or dependent dimensions.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from covalign._core.linalg import Array

FEW = 50  # dimensions
PENALTIES, SPAN = 100, 1e-3  # LassoCV's grid: from the penalty that sets all coefficients to 0, down three decades


def importances_and_predictions(Z: Array, y: Array, folds: Any) -> tuple[Array, Array]:
    """Coefficients on all rows (K), and predictions of each row by a lasso that has not seen it; Z and y centred."""
    from sklearn.model_selection import cross_val_predict

    fitted = CrossValidatedLasso(folds).fit(Z, y) if paths_are_safe(Z) else None
    if fitted is not None:
        predictions = np.empty(len(y))
        for train, test in folds.split(Z):
            predictions[test] = CrossValidatedLasso(folds).fit(Z[train], y[train]).predict(Z[test])
        return fitted.coef_, predictions
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LassoCV

    lasso = LassoCV(cv=folds, max_iter=10_000)
    with warnings.catch_warnings():
        # If K is near n, a few of the weakest penalties do not quite reach the solver's tolerance. They are compared on
        # held-out rows like the others, and the caller has no option to change this.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return lasso.fit(Z, y).coef_, cross_val_predict(lasso, Z, y, cv=folds)


def paths_are_safe(Z: Array) -> bool:
    """True for few dimensions, many rows and no near dependence: the path has few, well-determined corners."""
    n, k = Z.shape
    if k > min(FEW, n // 5):
        return False
    values = np.linalg.eigvalsh(Z.T @ Z)
    return bool(values[0] > 1e-6 * values[-1])


class CrossValidatedLasso:
    """min_w |y - Zw|^2 / 2n + a |w|_1, a from a grid by the mean squared error over held-out folds."""

    coef_: Array
    intercept_: float

    def __init__(self, folds: Any) -> None:
        self.folds = folds

    def fit(self, Z: Array, y: Array) -> CrossValidatedLasso:
        """Choose the penalty, then fit to all rows."""
        top = np.abs((Z - Z.mean(axis=0)).T @ (y - y.mean())).max() / len(y)
        grid = np.geomspace(top, SPAN * top, PENALTIES) if top > 0 else np.zeros(1)
        losses = []
        for train, test in self.folds.split(Z):
            W, b = solutions(Z[train], y[train], grid)
            losses.append(np.mean((y[test, None] - Z[test] @ W - b) ** 2, axis=0))
        best = grid[[int(np.argmin(np.mean(losses, axis=0)))]]
        W, b = solutions(Z, y, best)
        self.coef_, self.intercept_ = W[:, 0], float(b[0])
        return self

    def predict(self, Z: Array) -> Array:
        """Z w + intercept."""
        return np.asarray(Z @ self.coef_ + self.intercept_)


def solutions(Z: Array, y: Array, grid: Array) -> tuple[Array, Array]:
    """Coefficients (K x penalties) and intercepts: the path is piecewise linear between its corners."""
    from sklearn.linear_model import lars_path_gram

    mean, centred = Z.mean(axis=0), y - y.mean()
    inner = Z - mean
    corners, _, W = lars_path_gram(inner.T @ centred, inner.T @ inner, n_samples=len(y), method="lasso", alpha_min=0.0)
    W = np.array([np.interp(grid, corners[::-1], along[::-1]) for along in W])
    return W, y.mean() - mean @ W
