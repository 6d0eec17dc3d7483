"""Results of a fitted model, with or without gaps: factors of samples, imputed cells, shares of variance."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from covalign._core.linalg import Array
from covalign.closed_form.measures import loading_shares, marginal_shares, mean_share, quotient
from covalign.factor.inference import heavy_tails, row_evidence, updates
from covalign.factor.inference.heavy_tails import Scales
from covalign.factor.inference.kernel import kernel_of
from covalign.factor.inference.patterns import Gapped, Index, grouped_product, slices
from covalign.factor.inference.row_evidence import feature_moments, intercept
from covalign.factor.inference.state import Problem, State, View
from covalign.factor.table import ViewScale


class Placed(NamedTuple):
    """Posterior means of new samples, and the covariance of each group of them."""

    mean: Array
    cov: Array
    group: Index
    scales: Scales | None = None  # of every sample, where noise has heavy tails

    def moved(self, R: Array) -> Placed:
        """z -> R z."""
        return self._replace(mean=self.mean @ R.T, cov=R @ self.cov @ R.T)

    @property
    def variances(self) -> Array:
        """Var(z_nk) of every sample (n x K)."""
        return np.asarray(np.einsum("ckk->ck", self.cov)[self.group])


def joint_evidence(views: tuple[View, ...], new: Gapped) -> tuple[Array, Array]:
    """sum of E[tau_d] E[w_d w_d'] for every row pattern, and of E[tau_d] (x_nd - intercept_d) E[w_d] for every row."""
    parts = row_evidence.of_views(views, new)
    return np.sum([part.Q for part in parts], axis=0), np.sum([part.r for part in parts], axis=0)


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
    labels, means = new.labels, np.zeros((len(X), k))
    means[:, :p] = (labels.mean * beta) @ T.T
    prior_cov = np.tile(np.eye(k), (len(of_label), 1, 1))
    own = beta[:, None] * labels.cov[of_label] * beta + np.diag(1 - beta**2)
    prior_cov[:, :p, :p] = T @ own @ T.T
    if state.scales is not None:
        return settled(state, new, means, prior_cov[group])
    Q, r = joint_evidence(state.views, new)
    cov = posterior_covariance(prior_cov, Q[of_row])
    away = r - grouped_product(means, Q[of_row], group)
    return Placed(means + grouped_product(away, cov, group), cov, group)


def settled(state: State, new: Gapped, means: Array, prior_cov: Array) -> Placed:
    """``place`` where noise has heavy tails: factors and scales of every row in turns, from scales of 1.

    ``means`` and ``prior_cov`` are those of the prior of each row.
    """
    parts, of_row, dof = row_evidence.of_views(state.views, new), new.rows.group, state.scales.dof
    ends = np.cumsum([len(view.w.mean) for view in state.views[: len(dof)]]).tolist()
    cells = heavy_tails.observed_cells(new.observed, [slice(a, b) for a, b in zip([0, *ends], ends, strict=False)])
    u = np.ones((len(new.X), len(dof)))
    for _ in range(heavy_tails.MOST_STEPS):
        counts = np.hstack([u, np.ones((len(u), len(parts) - len(dof)))])  # covariates always count 1
        Q = np.sum([c[:, None, None] * part.Q[of_row] for c, part in zip(counts.T, parts, strict=True)], axis=0)
        r = np.sum([c[:, None] * part.r for c, part in zip(counts.T, parts, strict=True)], axis=0)
        cov = posterior_covariance(prior_cov, Q)
        own = np.arange(len(u))
        mean = means + grouped_product(r - grouped_product(means, Q, own), cov, own)
        s = np.column_stack([part.distances(new, mean, cov) for part in parts[: len(dof)]])
        scales = heavy_tails.of_distances(s, cells, dof)
        if np.all(np.abs(scales.mean - u) <= heavy_tails.SETTLED * u):
            break
        u = scales.mean
    return Placed(mean, cov, own, scales._replace(rate=scales.shape / u))  # E[u] is what mean and cov are for


def with_settled_scales(problem: Problem, state: State) -> tuple[Problem, State]:
    """A fit whose scales and factors are those that ``place`` gives its rows, and the problem with these scales."""
    data = problem.data
    Y = np.where(data.has_y, data.Y, np.nan)
    placed = place(state, data.S_y, data.table, Y, np.eye(problem.p))
    problem = heavy_tails.scaled(problem, state._replace(scales=placed.scales))
    z = kernel_of(problem).update_factors(problem, state.views, state.beta)
    return problem, state._replace(z=z, scales=placed.scales)


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
    Q, r = joint_evidence(state.views, new)
    C = updates.symmetric_inverse(updates.free_precision(Q, p))
    away = r[:, p:] - grouped_product(informed, Q[:, :p, p:], new.rows.group)
    return np.hstack([informed, grouped_product(away, C, new.rows.group)])


def predicted(z: Placed, view: View, at: int, wanted: NDArray[np.bool_]) -> tuple[Array, Array]:
    """E[x_nd] and Var(x_nd) = w'C_z w + z'C_w z + tr(C_w C_z) + 1 / E[tau], standardised; variances if ``wanted``.

    Var(w'z) = E[w'(zz' + C_z)w] - (w'z)^2: with E[ww'] = ww' + C_w the three terms are one sum over entries. Sample n
    has the covariance ``cov[group[n]]``. With heavy tails, 1 / E[tau] is multiplied by E[1 / u_nv], v = ``at``.
    """
    w, means = view.w, z.mean
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
        both = np.einsum("ikl,ikl->i", W2[d], z.cov[z.group[n]])
        both += np.einsum("ik,ikl,il->i", means[n], C_w[d], means[n])
        noise = 1.0 if z.scales is None else z.scales.mean_inverse[n, at]
        variance[n, d] = both + noise / view.noise.mean[d]
    return mean, variance


def imputed(X: Array, scale: ViewScale, view: View, at: int, z: Placed) -> tuple[Array, Array]:
    """The cells of view ``at``, missing ones as posterior means; and their standard deviations (0 if observed)."""
    values, missing = X.astype(np.float64), np.isnan(X)
    mean, variance = predicted(z, view, at, missing)
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
