"""From aligned dimensions back to Z: the decoder of inverses and steering, erasure, and the map as a torch layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from covalign._core.data_errors import no_exclusive
from covalign._core.extras import optional
from covalign._core.linalg import Array
from covalign._core.messages import message, shown
from covalign.closed_form import regimes
from covalign.closed_form.crowded import only_strongest
from covalign.closed_form.regimes import Polar
from covalign.moments.moments import Moments


def decoder(m: Moments, polar: Polar, mixing: Array) -> Array:
    """cov(Z, z~) cov(z~)^+ = S_z T_0' mixing^+ (K x P)."""
    return np.asarray(m.cov_z @ polar.T_0.T @ np.linalg.pinv(mixing))


def eraser(
    m: Moments, polar: Polar, shrinkage: float, named: Sequence[int], protect_others: bool
) -> tuple[Array, Array]:
    """E (K x p) and S (K x p) such that Z - (Z - mean) E S' is uncorrelated with these covariates.

    E = B (S_zy'B)^+, B the (ridge) regressions. With B of the named covariates alone the change is the smallest. With B
    of all covariates, and the columns of the named ones, the covariance of Z with all other covariates is unchanged.
    """
    S_zy = regimes.standardised_cross_covariance(m)
    B = regimes.ridge(m, shrinkage) if shrinkage > 0 else polar.whitener.T @ polar.whitener @ S_zy
    among = np.arange(S_zy.shape[1]) if protect_others else np.array(named)
    dual = np.linalg.pinv(B[:, among].T @ S_zy[:, among], hermitian=True, rcond=1e-10) @ B[:, among].T
    if protect_others:
        if polar.crowded:
            raise only_strongest(*polar.basis.shape[::-1])
        if polar.null.shape[1]:
            raise no_exclusive(polar.dependent)
        dual = dual[named]
    return np.asarray(dual.T), S_zy[:, named]


def layer(weight: Array, bias: Array, single: bool, dtype: Any = None) -> Any:
    """``torch.nn.Linear`` with these weights, as ``dtype``; by default float32 if ``single``, else float64."""
    torch = optional("torch", "torch")
    if dtype is None:
        dtype = torch.float32 if single else torch.float64
    if not (isinstance(dtype, torch.dtype) and dtype.is_floating_point):
        problem = "to_torch needs a torch type of real numbers"
        raise ValueError(message(problem, got=shown(dtype), remedy="use for example torch.float32"))
    linear = torch.nn.Linear(weight.shape[1], weight.shape[0], dtype=dtype)
    with torch.no_grad():
        linear.weight.copy_(torch.from_numpy(weight))
        linear.bias.copy_(torch.from_numpy(bias))
    return linear


def response(polar: Polar, mixing: Array) -> Array:
    """M' mixing^+ (P x P): change of the least-squares probe of covariate q per unit of dimension p, on fitted rows.

    Probes are B = S_z^-1 S_zy (Y standardised), moves the columns of the decoder D, and B'D = S_yz T_0' mixing^+, where
    T_0 S_zy = M for any shrinkage.
    """
    return np.asarray(polar.M.T @ np.linalg.pinv(mixing))


def leakage(R: Array) -> float:
    """sum_(q != p) R_qp^2 / sum_p R_pp^2: the effect of a move on other probes, relative to that on its own."""
    own = float(np.sum(np.diag(R) ** 2))
    return float((np.sum(R**2) - own) / own) if own > 0 else float("nan")
