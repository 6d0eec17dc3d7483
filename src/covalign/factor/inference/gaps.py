"""Informed factor analysis with gaps: the same model, summed over what was observed. One of two kernels (``kernel``).

A sample's precision sums over its observed features, a feature's over the samples that have it:

    Cov(z_n)^-1 = Pi_n + sum_{d in O_n} E[tau_d] E[w_d w_d'],     Cov(w_d)^-1 = A + E[tau_d] sum_{n in O_d} E[z_n z_n'].

Rows (and columns) with the same pattern of gaps share these matrices. Features keep an intercept, since means over
observed rows need not be means over all. Covariates are Gaussian, y ~ N(0, S_y) with S_y estimated from Y alone;
missing ones are further latent variables, whose conditional given z and the observed part y_o is exact:

    z_I | y_o ~ N(b mu, b C b + D^-1),  mu = E[y | y_o], C = Cov(y | y_o),  b = diag(beta), D^-1 = diag(1 - beta^2).

Nothing missing gives the updates of ``complete`` to rounding. Rows may stand for several samples
(``patterns.compressed``), so 1 is ``data.one`` here, and numbers of samples are ``data.sizes``.
"""

from __future__ import annotations

import numpy as np

from covalign._core.linalg import Array
from covalign.factor.inference import updates
from covalign.factor.inference.engines import Dense, Gram, Sparse
from covalign.factor.inference.grouped import Factors, GroupedLoadings
from covalign.factor.inference.patterns import Gapped, Index, few, group_sums, grouped_product, slices
from covalign.factor.inference.sparse_gaps import SparseGapped
from covalign.factor.inference.state import SHAPE_0, Gamma, Held, Loadings, Problem, State, View, cannot_resume

# -- factors ----------------------------------------------------------------------------------------------------------


def evidence(problem: Problem, views: tuple[View, ...]) -> tuple[Array, Array]:
    """sum over observed features of E[tau_d] E[w_d w_d'] for every combination (C x K x K), and its samples."""
    data: Gapped = problem.data
    k = views[0].w.mean.shape[1]
    by_column = np.zeros((data.between.shape[1], k, k))
    for view in views:
        by_column[view.w.patterns] += view.w.by_pattern(view.precision)
    return symmetric_sums(data.between, by_column)[data.samples[1]], data.sizes


def known_covariates(problem: Problem) -> Array:
    """1 where a covariate was observed, else 1 - Var(y | y_o), for every combination (C x P)."""
    data: Gapped = problem.data
    unknown = np.einsum("lpp->lp", data.labels.cov)[data.samples[2]]
    return np.asarray(np.clip(1 - unknown, 0.0, 1.0))


def direct(data: Gapped, views: tuple[View, ...]) -> Array:
    """r_n = sum over observed features of E[tau_d] (x_nd - intercept_d) E[w_d] (N x K)."""
    W = np.vstack([view.w.mean * view.precision[:, None] for view in views])
    intercepts = np.concatenate([view.w.intercept for view in views])
    shift = group_sums(intercepts[:, None] * W, data.columns, data.between.shape[1])
    return np.asarray(data.X @ W - data.one[:, None] * (data.between @ shift)[data.rows.group])


def update_factors(problem: Problem, views: tuple[View, ...], beta: Array) -> Factors:
    """E[z_n] = (Pi_n + Q_n)^-1 (r_n + Pi_n (b mu_n, 0)); in the mean field covariances as in ``updates``."""
    data: Gapped = problem.data
    p, k = problem.p, problem.k
    group, _, of_label = data.samples
    Pi = priors(data.labels.cov, beta, k)
    precision = Pi[of_label] + evidence(problem, views)[0]
    inverse = updates.symmetric_inverse(precision)
    r = direct(data, views)
    r[:, :p] += grouped_product(data.labels.mean * beta, Pi[:, :p, :p], data.labels.group)
    mean = grouped_product(r, inverse, group)
    cov = inverse if problem.full else updates.mean_field_covariance(precision, p)
    return with_sums(problem, mean, cov, beta)


def priors(cov_y: Array, beta: Array, k: int) -> Array:
    """Pi = (b C b + D^-1)^-1 for the informed factors, I for free ones, for every pattern of missing covariates."""
    p, Pi = len(beta), np.tile(np.eye(k), (len(cov_y), 1, 1))
    Pi[:, :p, :p] = updates.symmetric_inverse(beta[:, None] * cov_y * beta + np.diag(1 - beta**2))
    return Pi


def away_from_prior(data: Gapped, z: Factors, beta: Array) -> Array:
    """E[z_n] - (b mu_n, 0) (N x K)."""
    away = z.mean.copy()
    away[:, : len(beta)] -= beta * data.labels.mean
    return away


def with_sums(problem: Problem, mean: Array, cov: Array, beta: Array) -> Factors:
    """Factors and everything that is summed over them."""
    data: Gapped = problem.data
    zy, zy_held, excess = with_covariates(data, mean, cov, beta)
    means, sums = over_columns(data, mean)
    return Factors(
        mean=mean,
        cov=cov,
        group=data.samples[0],
        means=means,
        covs=symmetric_sums((data.has * data.sizes[:, None]).T, cov),
        sums=sums,
        total=np.tensordot(data.sizes, cov, 1),
        zz=mean.T @ mean,
        xz=data.X.T @ mean,
        zy=zy,
        zy_held=zy_held,
        excess=excess,
    )


def over_columns(data: Gapped, mean: Array) -> tuple[Array, Array]:
    """sum m m' (H x K x K) and sum m (H x K) over the rows that have each column pattern."""
    k, group = mean.shape[1], data.samples[0]
    if few(len(data.has), len(mean)):
        of_rows = [np.flatnonzero(group == c) for c in range(len(data.has))]
        products = np.array([mean[rows].T @ mean[rows] for rows in of_rows])
        sums = np.array([data.one[rows] @ mean[rows] for rows in of_rows])
        return np.tensordot(data.has.T, products, 1), data.has.T @ sums
    i, j = np.triu_indices(k)  # half of m m'
    half, sums = np.zeros((data.has.shape[1], len(i))), np.zeros((data.has.shape[1], k))
    for part in slices(len(mean), k * k):
        m, flags = mean[part], data.has[group[part]].T
        half += flags @ (m[:, i] * m[:, j])
        sums += flags @ (data.one[part, None] * m)
    means = np.empty((len(half), k, k))
    means[:, i, j] = means[:, j, i] = half
    return means, sums


def symmetric_sums(weights: Array, matrices: Array) -> Array:
    """sum_i weights_ji S_i of symmetric matrices for every j: their upper halves alone, as one product."""
    k = matrices.shape[1]
    i, j = np.triu_indices(k)
    out = np.empty((len(weights), k, k))
    out[:, i, j] = out[:, j, i] = weights @ matrices[:, i, j]
    return out


def with_covariates(data: Gapped, mean: Array, cov: Array, beta: Array) -> tuple[Array, Array, Array]:
    """E[Z'Y], the part of it that is covariance, and E[y_p'y_p] - N.

    q(y | z, y_o) = p(y | z, y_o): y = mu + G (z_I - b mu) + rest, G = C b Pi_I.
    """
    p, labels = len(beta), data.labels
    G = labels.cov * beta @ priors(labels.cov, beta, p)
    y = labels.mean + grouped_product(mean[:, :p] - beta * labels.mean, G.transpose(0, 2, 1), labels.group)
    held, squares = np.zeros((mean.shape[1], p)), np.sum(y**2, axis=0)
    if labels.cov.any():
        of_label = data.samples[2]
        C = np.zeros((len(labels.cov), *cov.shape[1:]))
        np.add.at(C, of_label, data.sizes[:, None, None] * cov)
        held = np.einsum("lkp,lqp->kq", C[:, :, :p], G)
        rest = labels.cov - G @ (beta[:, None] * labels.cov)
        squares += np.einsum("lpq,lqr,lpr->p", G, C[:, :p, :p], G, optimize=True)
        squares += data.of_label @ np.einsum("lpp->lp", rest)
    return mean.T @ y + held, held, squares - data.n


def shifted(problem: Problem, state: State, held: int = 0) -> State:
    """z -> z + c for all samples and intercept_d -> intercept_d - E[w_d]'c, at the c where the bound is highest.

    The means of X see no difference, so sweeps, which move z and intercepts in turn, would crawl along this direction:

        c = -(sum_n Pi_n + sum_d tau_d n_d C_d)^-1 (sum_n Pi_n (m_n - prior mean_n) + sum_d tau_d C_d sum_n m_n),

    C_d = Cov(w_d), n over the samples that have feature d. Complete data are centred, and c is 0.
    It is 0 for the first ``held`` factors by request.
    """
    data: Gapped = problem.data
    z: Factors = state.z
    k, beta = problem.k, state.beta
    Pi, away = priors(data.labels.cov, beta, k), away_from_prior(data, z, beta)
    sums = np.zeros((len(Pi), k))
    np.add.at(sums, data.labels.group, data.one[:, None] * away)
    curvature, slope = np.tensordot(data.of_label, Pi, 1), np.einsum("lkj,lj->k", Pi, sums)
    for view in state.views:
        C = view.w.covariance_by_pattern(view.precision)
        curvature += np.tensordot(data.column_counts[view.w.patterns], C, 1)
        slope += np.einsum("hkl,hl->k", C, z.sums[view.w.patterns])
    c = np.zeros(k)
    c[held:] = -np.linalg.solve(curvature[held:, held:], slope[held:])
    views = tuple(v._replace(w=v.w._replace(intercept=v.w.intercept - v.w.mean @ c)) for v in state.views)
    return state._replace(z=moved_by(data, z, c, beta), views=views)


def moved_by(data: Gapped, z: Factors, c: Array, beta: Array) -> Factors:
    """z + c for every sample, and what that makes of the sums."""
    mean = z.mean + np.outer(data.one, c)
    zy, zy_held, excess = with_covariates(data, mean, z.cov, beta)
    by_column = z.sums[:, :, None] * c
    by_all = np.outer(data.one @ z.mean, c)
    return z._replace(
        mean=mean,
        means=z.means + by_column + by_column.transpose(0, 2, 1) + data.column_counts[:, None, None] * np.outer(c, c),
        sums=z.sums + np.outer(data.column_counts, c),
        zz=z.zz + by_all + by_all.T + data.n * np.outer(c, c),
        xz=z.xz + np.outer(data.x, c),
        zy=zy,
        zy_held=zy_held,
        excess=excess,
    )


# -- views ------------------------------------------------------------------------------------------------------------


def update_loadings(problem: Problem, z: Factors, where: slice, view: View) -> GroupedLoadings:
    """Loadings and intercepts of a view: ``updates.update_loadings`` with one S, and so one V, per column pattern."""
    data: Gapped = problem.data
    a, tau, xz = view.ard.mean, view.precision[:, None], centred_products(data, z, where, view.w.intercept)
    patterns, group = view.w.patterns, view.w.group
    S = (z.means + z.covs)[patterns]
    V, scale = decomposed(S, a, tau, group)
    mean = grouped_product(tau * grouped_product(xz, V, group) * scale, V.transpose(0, 2, 1), group)
    if not problem.full:
        V = np.broadcast_to(np.eye(len(a)), V.shape).copy()
        scale = 1 / (a + tau * np.einsum("hkk->hk", S)[group])
    left = data.x[where] - np.sum(mean * z.sums[data.columns[where]], axis=1)
    return GroupedLoadings(mean, V, scale, group, patterns, left / np.maximum(data.counts[where], 1.0))


def centred_products(data: Gapped, z: Factors, where: slice, intercept: Array) -> Array:
    """sum over observed n of (x_nd - intercept_d) E[z_n] (D x K)."""
    return np.asarray(z.xz[where] - intercept[:, None] * z.sums[data.columns[where]])


def decomposed(S: Array, a: Array, tau: Array, group: Index) -> tuple[Array, Array]:
    """V and scale with (A + tau_d S_h)^-1 = V_h diag(scale_d) V_h', h the pattern of feature d.

    Features that share a pattern share an eigendecomposition, A^(-1/2) S A^(-1/2) = U L U'; where none does, a Cholesky
    factor of I + tau A^(-1/2) S A^(-1/2) is a few times cheaper.
    """
    root = 1 / np.sqrt(a)
    if len(S) == len(group):
        own = np.argsort(group)  # the one feature of every pattern
        L = np.linalg.cholesky(np.eye(len(a)) + tau[own, :, None] * S * root * root[:, None])
        return root[:, None] * np.linalg.inv(L).transpose(0, 2, 1), np.ones((len(group), len(a)))
    values, U = updates.scaled_eigh(S, root)
    return root[:, None] * U, 1 / (1 + tau * values[group])


def expected_residuals(problem: Problem, z: Factors, where: slice, w: GroupedLoadings) -> Array:
    """E sum over observed n of (x_nd - intercept_d - w_d'z_n)^2."""
    data: Gapped = problem.data
    mu = w.intercept
    squares = data.xx[where] - 2 * mu * data.x[where] + data.counts[where] * mu**2
    cross = np.sum(w.mean * centred_products(data, z, where, mu), axis=1)
    return np.asarray(np.maximum(squares - 2 * cross + w.quadratic(z.means + z.covs), 0.0))


def counts(problem: Problem, where: slice) -> Array:
    """Observed cells of each feature."""
    return np.asarray(problem.data.cells[where])


# -- bound ------------------------------------------------------------------------------------------------------------


def kl_factors(problem: Problem, state: State) -> float:
    """sum_n KL(q(z_n) || N((b mu_n, 0), Pi_n^-1)), missing covariates integrated out."""
    data: Gapped = problem.data
    z: Factors = state.z
    k, beta = problem.k, state.beta
    Pi, away = priors(data.labels.cov, beta, k), away_from_prior(data, z, beta)
    distance = np.sum(grouped_product(away, Pi, data.labels.group) * away)
    distance += np.einsum("c,ckl,ckl->", data.sizes, Pi[data.samples[2]], z.cov)
    log_dets = data.sizes @ np.linalg.slogdet(z.cov)[1] + data.of_label @ np.linalg.slogdet(Pi)[1]
    return float(distance - problem.n * k - log_dets) / 2


# -- realigning -------------------------------------------------------------------------------------------------------


def update_free(problem: Problem, views: tuple[View, ...], held: Held) -> Factors:
    """q(z_F | z_I) = N(C (r_F - Q_FI z_I), C), C = (I + Q_FF)^-1, one Q for each row pattern."""
    data: Gapped = problem.data
    p, Q = problem.p, evidence(problem, views)[0]
    inverse = updates.symmetric_inverse(updates.free_precision(Q, p))
    r = direct(data, views)[:, p:] - grouped_product(held.z.mean, Q[:, :p, p:], data.samples[0])
    mean = np.hstack([held.z.mean, grouped_product(r, inverse, data.samples[0])])
    return with_sums(problem, mean, updates.held_covariance(Q, held.z.cov, problem.full), held.beta)


# -- start ------------------------------------------------------------------------------------------------------------


def filled(problem: Problem) -> Problem:
    """The data with gaps at a guess: features at 0, their mean; covariates at their (ridge) regression on k components.

    A start that took missing covariates for average ones would begin with a beta too small, and stay there.
    """
    data: Gapped = problem.data
    Y = data.Y.copy()
    components = data.X @ as_complete(data, Y).principal_map(problem.k)
    for p in np.flatnonzero(~data.has_y.all(axis=0)):
        known = data.has_y[:, p]
        U = components[known]
        coefficients = np.linalg.solve(U.T @ U + U.shape[1] * np.eye(U.shape[1]), U.T @ Y[known, p])
        Y[~known, p] = components[~known] @ coefficients
    return problem._replace(data=as_complete(data, Y))


def as_complete(data: Gapped, Y: Array) -> Dense | Gram | Sparse:
    """Zeros for gaps in X; the cheaper engine for a matrix of this shape."""
    if isinstance(data, SparseGapped):
        return Sparse(data.X, Y)
    if data.X.shape[1] <= data.n:
        return Gram(data.n, data.X.T @ data.X, data.X.T @ Y, Y.T @ Y)
    return Dense(data.X, Y)


def started(problem: Problem, state: State) -> State:
    """A start made as if gaps were zeros (means), with the updates that know better."""
    data: Gapped = problem.data
    views = []
    for view, where in zip(state.views, problem.bounds, strict=True):
        w: Loadings = view.w
        patterns, group = np.unique(data.columns[where], return_inverse=True)
        V = np.broadcast_to(w.V, (len(patterns), *w.V.shape)).copy()
        grouped = GroupedLoadings(w.mean, V, w.scale, group, patterns, np.zeros(len(w.mean)))
        counts = view.weight * data.cells[where]
        noise = Gamma(SHAPE_0 + counts / 2, view.noise.rate * (SHAPE_0 + counts / 2) / view.noise.shape)
        views.append(View(grouped, view.ard, noise, view.weight))
    made = tuple(views)
    return State(update_factors(problem, made, state.beta), made, state.beta)


def resumed(problem: Problem, state: State) -> State:
    """Loadings as they are, on data with other gaps."""
    data: Gapped = problem.data
    if all(isinstance(view.w, Loadings) for view in state.views):
        return started(problem, state)
    same = [
        np.array_equal(view.w.patterns[view.w.group], data.columns[where])
        for view, where in zip(state.views, problem.bounds, strict=True)
    ]
    if not all(same):
        raise cannot_resume()
    return state._replace(z=update_factors(problem, state.views, state.beta))


# -- what a fitted model shows ----------------------------------------------------------------------------------------


def observed_sums(problem: Problem, state: State, where: slice) -> tuple[Array, Array, Array]:
    """Per feature, over its observed rows and centred there: x'x, X'M (D x K) and the diagonal of M'M (D x K)."""
    data: Gapped = problem.data
    z: Factors = state.z
    group, counts = data.columns[where], np.maximum(data.counts[where], 1.0)
    means = z.sums[group] / counts[:, None]
    xx = data.xx[where] - data.x[where] ** 2 / counts
    xz = z.xz[where] - data.x[where, None] * means
    zz = np.einsum("hkk->hk", z.means)[group] - counts[:, None] * means**2
    return xx, xz, zz


def centred_products_of_means(problem: Problem, state: State) -> tuple[Array, Index]:
    """M'M over the rows that have each column pattern, centred there (H x K x K), and the pattern of each feature."""
    data: Gapped = problem.data
    z: Factors = state.z
    centre = z.sums / np.maximum(data.column_counts, 1.0)[:, None]
    return z.means - data.column_counts[:, None, None] * centre[:, :, None] * centre[:, None, :], data.columns
