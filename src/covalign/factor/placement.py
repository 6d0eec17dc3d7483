"""Results of a fitted model, with or without gaps: factors of samples, imputed cells, shares of variance."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from covalign._core.linalg import Array
from covalign.closed_form.measures import loading_shares, marginal_shares, mean_share, quotient
from covalign.factor.inference import updates
from covalign.factor.inference.grouped import GroupedLoadings
from covalign.factor.inference.kernel import kernel_of
from covalign.factor.inference.patterns import Gapped, Index, grouped_product, slices
from covalign.factor.inference.state import Problem, State, View
from covalign.factor.table import ViewScale


class Placed(NamedTuple):
    """Posterior means of new samples, and the covariance of each group of them."""

    mean: Array
    cov: Array
    group: Index

    def moved(self, R: Array) -> Placed:
        """z -> R z."""
        return Placed(self.mean @ R.T, R @ self.cov @ R.T, self.group)

    @property
    def variances(self) -> Array:
        """Var(z_nk) of every sample (n x K)."""
        return np.asarray(np.einsum("ckk->ck", self.cov)[self.group])


def intercept(w: Any) -> Array:
    """Intercepts of the features; 0 for complete data, which are centred."""
    return np.asarray(w.intercept) if isinstance(w, GroupedLoadings) else np.zeros(len(w.mean))


def feature_moments(w: Any, weights: Array) -> Array:
    """weights_d E[w_d w_d'] for every feature (D x K x K)."""
    V = w.V[w.group] if isinstance(w, GroupedLoadings) else np.broadcast_to(w.V, (len(w.mean), *w.V.shape))
    cov = (V * w.scale[:, None, :]) @ V.transpose(0, 2, 1)
    return np.asarray(weights[:, None, None] * (w.mean[:, :, None] * w.mean[:, None, :] + cov))


def evidence(views: tuple[View, ...], new: Gapped) -> tuple[Array, Array]:
    """sum of E[tau_d] E[w_d w_d'] for every row pattern, and of E[tau_d] (x_nd - intercept_d) E[w_d] for every row.

    The sums are over observed features. The rows need not have the patterns of the fit.
    """
    k, at = views[0].w.mean.shape[1], 0
    Q, r = np.zeros((len(new.rows.distinct), k, k)), np.zeros((len(new.X), k))
    for view in views:
        d = len(view.w.mean)
        flags, tau, W = new.rows.distinct[:, at : at + d], view.precision, view.w.mean
        if flags.all():  # the same sum for all rows
            Q += view.w.weighted_second_moment(tau)
        elif flags.any():
            for part in slices(d, k * k):
                moments = feature_moments(_part(view.w, part), tau[part])
                Q += (flags[:, part] @ moments.reshape(-1, k * k)).reshape(-1, k, k)
        shifted = np.where(new.observed[:, at : at + d], new.X[:, at : at + d] - intercept(view.w), 0.0)
        r += shifted @ (W * tau[:, None])
        at += d
    return Q, r


def posterior_covariance(prior_cov: Array, Q: Array) -> Array:
    """(P^-1 + Q)^-1 as (I + P Q)^-1 P, which exists also if P, the prior covariance, is singular."""
    cov = np.asarray(np.linalg.solve(np.eye(Q.shape[-1]) + prior_cov @ Q, prior_cov), dtype=np.float64)
    return (cov + updates.transposed(cov)) / 2


def place(state: State, S_y: Array, X: Array, Y: Array, T: Array) -> Placed:
    """q(z) of new samples from their observed cells (NaN where missing), informed factors in the regime of T."""
    if sum(len(view.w.mean) for view in state.views) > X.shape[1]:  # covariates are a view, too
        X = np.hstack([X, Y])
    new, beta = Gapped.of_rows(X, Y, S_y), state.beta
    k, p = state.views[0].w.mean.shape[1], len(beta)
    group, of_row, of_label = new.samples
    Q, r = evidence(state.views, new)
    labels, means = new.labels, np.zeros((len(X), k))
    means[:, :p] = (labels.mean * beta) @ T.T
    prior_cov = np.tile(np.eye(k), (len(of_label), 1, 1))
    own = beta[:, None] * labels.cov[of_label] * beta + np.diag(1 - beta**2)
    prior_cov[:, :p, :p] = T @ own @ T.T
    cov = posterior_covariance(prior_cov, Q[of_row])
    away = r - grouped_product(means, Q[of_row], group)
    return Placed(means + grouped_product(away, cov, group), cov, group)


class Linear(NamedTuple):
    """E[z] = x of_x + y of_y + shift for standardised rows without gaps, and the covariance they share."""

    of_x: Array  # D x K
    of_y: Array  # P x K
    shift: Array
    cov: Array

    def moved(self, R: Array) -> Linear:
        """z -> R z."""
        return Linear(self.of_x @ R.T, self.of_y @ R.T, self.shift @ R.T, R @ self.cov @ R.T)


def linear(state: State, S_y: Array, T: Array, present: list[bool], has_y: bool) -> Linear:
    """``place`` as a linear map, for rows whose only gaps are absent views and, unless ``has_y``, all covariates.

    ``present`` are views of features; where covariates are a view, it is the last one.
    """
    k, p, beta = state.views[0].w.mean.shape[1], len(state.beta), state.beta
    supervised = len(state.views) > len(present)
    present = [*present, has_y] if supervised else present
    tau = [view.precision * there for view, there in zip(state.views, present, strict=True)]
    direct = np.vstack([view.w.mean * t[:, None] for view, t in zip(state.views, tau, strict=True)])
    Q = np.sum([view.w.weighted_second_moment(t) for view, t in zip(state.views, tau, strict=True)], axis=0)
    prior_cov, prior_mean = np.eye(k), np.zeros((p, k))
    own = np.diag(1 - beta**2) if has_y else beta[:, None] * S_y * beta + np.diag(1 - beta**2)
    prior_cov[:p, :p], prior_mean[:, :p] = T @ own @ T.T, beta[:, None] * T.T
    cov = posterior_covariance(prior_cov, Q)
    of_x = direct @ cov
    intercepts = np.concatenate([intercept(view.w) for view in state.views])
    of_y, shift, d = prior_mean - prior_mean @ Q @ cov, -intercepts @ of_x, len(of_x) - p * supervised
    return Linear(of_x[:d], of_y + of_x[d:] if supervised else of_y, shift, cov)


def fitted(first: State, state: State, S_y: Array, X: Array, Y: Array, T: Array) -> Array:
    """E[z_n] of some samples of the fit: T z_I with the z_I of stage 1, and z_F = C (r_F - Q_FI z_I)."""
    p = len(first.beta)
    z = place(first, S_y, X, Y, np.eye(p)).mean
    if state is first:
        return z
    if sum(len(view.w.mean) for view in state.views) > X.shape[1]:
        X = np.hstack([X, Y])
    new, informed = Gapped.of_rows(X, Y, S_y), z[:, :p] @ T.T
    Q, r = evidence(state.views, new)
    C = updates.symmetric_inverse(updates.free_precision(Q, p))
    away = r[:, p:] - grouped_product(informed, Q[:, :p, p:], new.rows.group)
    return np.hstack([informed, grouped_product(away, C, new.rows.group)])


def _part(w: Any, part: slice) -> Any:
    """The loadings of some features."""
    if isinstance(w, GroupedLoadings):
        return w._replace(mean=w.mean[part], scale=w.scale[part], group=w.group[part], intercept=w.intercept[part])
    return w._replace(mean=w.mean[part], scale=w.scale[part])


def predicted(cov_z: Array, group: Index, view: View, means: Array, wanted: NDArray[np.bool_]) -> tuple[Array, Array]:
    """E[x_nd] and Var(x_nd) = w'C_z w + z'C_w z + tr(C_w C_z) + 1 / E[tau], standardised; variances if ``wanted``.

    Var(w'z) = E[w'(zz' + C_z)w] - (w'z)^2: with E[ww'] = ww' + C_w the three terms are one sum over entries. Sample n
    has the covariance ``cov_z[group[n]]``.
    """
    w = view.w
    mean = means @ w.mean.T + intercept(w)
    variance = np.zeros_like(mean)
    if not wanted.any():
        return mean, variance
    rows, features = np.nonzero(wanted)
    W2 = feature_moments(w, np.ones(len(w.mean)))
    C_w = W2 - w.mean[:, :, None] * w.mean[:, None, :]
    k = means.shape[1]
    for part in slices(len(rows), k * k):
        n, d = rows[part], features[part]
        both = np.einsum("ikl,ikl->i", W2[d], cov_z[group[n]])
        both += np.einsum("ik,ikl,il->i", means[n], C_w[d], means[n])
        variance[n, d] = both + 1 / view.noise.mean[d]
    return mean, variance


def imputed(X: Array, scale: ViewScale, view: View, z: Placed) -> tuple[Array, Array]:
    """The cells of a view, missing ones as posterior means; and their standard deviations (0 if observed)."""
    values, missing = X.astype(np.float64), np.isnan(X)
    mean, variance = predicted(z.cov, z.group, view, z.mean, missing)
    values[missing] = (mean * scale.sd + scale.mean)[missing]
    return values, np.where(missing, np.sqrt(variance) * scale.sd, 0.0)


def shares(problem: Problem, state: State, kind: str) -> Array:
    """Variance explained by each factor in each view, over observed cells (views x K)."""
    sums = [kernel_of(problem).observed_sums(problem, state, where) for where in problem.features]
    if kind == "marginal":
        return np.array([marginal_shares(*of_view) for of_view in sums])
    views = zip(state.views[: len(sums)], sums, strict=True)
    return np.array([loading_shares(*of_view, view.w.mean) for view, of_view in views])


def total_shares(problem: Problem, state: State) -> list[float]:
    """R^2 of each feature on all factors jointly, over its observed cells, averaged over each view's features."""
    zz, group = kernel_of(problem).centred_products_of_means(problem, state)
    inverse = np.asarray(np.linalg.pinv(zz, hermitian=True, rcond=1e-10), dtype=np.float64)
    out = []
    for where in problem.features:
        xx, xz, _ = kernel_of(problem).observed_sums(problem, state, where)
        explained = np.sum(grouped_product(xz, inverse, group[where]) * xz, axis=1)
        out.append(float(mean_share(quotient(explained, xx), xx)))
    return out
