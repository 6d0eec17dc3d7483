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

from typing import NamedTuple

import numpy as np

from covalign import _validation as errors
from covalign._linalg import Array
from covalign.factor import updates
from covalign.factor.patterns import Gapped, Index, slices
from covalign.factor.state import RATE_0, SHAPE_0, Gamma, Loadings, Problem, State, View
from covalign.factor.statistics import Dense, Gram


class Factors(NamedTuple):
    """q(z_n) = N(mean_n, cov of its combination), and the sums the rest needs."""

    mean: Array  # N x K
    cov: Array  # one for each combination of row and label pattern
    group: Index
    means: Array  # sum over the observed rows of each column pattern: of m m' (H x K x K),
    covs: Array  # of Cov(z) (H x K x K),
    sums: Array  # and of m (H x K)
    total: Array  # sum_n Cov(z_n)
    zz: Array
    xz: Array  # X'E[Z], intercepts not taken out
    zy: Array  # E[Z'Y], missing covariates by their posterior
    excess: Array  # E[y_p'y_p] - N

    def second_moment(self, n: int) -> Array:
        """E[Z'Z]."""
        return self.zz + self.total

    def total_cov(self, n: int) -> Array:
        """sum_n Cov(z_n)."""
        return self.total

    def moved(self, R: Array, full: bool) -> Factors:
        """z -> R z; in the mean field only means move."""
        return self._replace(
            mean=self.mean @ R.T,
            cov=R @ self.cov @ R.T if full else self.cov,
            means=R @ self.means @ R.T,
            covs=R @ self.covs @ R.T if full else self.covs,
            sums=self.sums @ R.T,
            total=R @ self.total @ R.T if full else self.total,
            zz=R @ self.zz @ R.T,
            xz=self.xz @ R.T,
            zy=R @ self.zy,
        )

    def arranged(self, order: Index, signs: Array) -> Factors:
        """Factor k becomes ``signs[k]`` times factor ``order[k]``."""
        R = np.zeros((len(order), len(order)))
        R[np.arange(len(order)), order] = signs
        return self.moved(R, full=True)


class GroupedLoadings(NamedTuple):
    """q(w_d) = N(mean_d, V_h diag(scale_d) V_h'), h the column pattern of d; and intercepts."""

    mean: Array  # D x K
    V: Array  # H x K x K
    scale: Array  # D x K
    group: Index
    intercept: Array

    def by_pattern(self, weights: Array) -> Array:
        """sum over the features of each column pattern of weights_d E[w_d w_d'] (H x K x K)."""
        k, n_patterns = self.mean.shape[1], len(self.V)
        out = np.zeros((n_patterns, k, k))
        for part in slices(len(self.mean), k * k):
            outer = (self.mean[part] * weights[part, None])[:, :, None] * self.mean[part, None, :]
            np.add.at(out, self.group[part], outer) if n_patterns > 1 else out.__iadd__(outer.sum(axis=0))
        return out + self.covariance_by_pattern(weights)

    def covariance_by_pattern(self, weights: Array) -> Array:
        """sum over the features of each column pattern of weights_d Cov(w_d) (H x K x K)."""
        scales = np.zeros((len(self.V), self.mean.shape[1]))
        np.add.at(scales, self.group, weights[:, None] * self.scale)
        return np.asarray((self.V * scales[:, None, :]) @ self.V.transpose(0, 2, 1))

    def weighted_second_moment(self, weights: Array) -> Array:
        """sum_d weights_d E[w_d w_d']."""
        return np.asarray(self.by_pattern(weights).sum(axis=0))

    @property
    def second_moment_diagonal(self) -> Array:
        """sum_d E[w_dk^2]."""
        return np.asarray(np.sum(self.mean**2, axis=0) + self.variance.sum(axis=0))

    @property
    def variance(self) -> Array:
        """Var(w_dk), D x K."""
        return np.asarray(np.einsum("dj,dkj->dk", self.scale, (self.V**2)[self.group]))

    def quadratic(self, S: Array) -> Array:
        """E[w_d' S_h w_d] with S one matrix for each column pattern."""
        inner = np.einsum("hkj,hkl,hlj->hj", self.V, S, self.V, optimize=True)
        out = np.einsum("dj,dj->d", self.scale, inner[self.group])
        for part in slices(len(self.mean), S.shape[1] ** 2):
            m = self.mean[part]
            out[part] += np.einsum("dk,dk->d", np.matmul(m[:, None, :], S[self.group[part]])[:, 0], m)
        return np.asarray(out)

    @property
    def log_det(self) -> float:
        """sum_d log |C_d|."""
        return float(2 * np.linalg.slogdet(self.V)[1][self.group].sum() + np.sum(np.log(self.scale)))

    def moved(self, P: Array, full: bool) -> GroupedLoadings:
        """w -> P' w."""
        return self._replace(mean=self.mean @ P, V=P.T @ self.V if full else self.V)

    def arranged(self, order: Index, signs: Array) -> GroupedLoadings:
        """With their factors."""
        return self._replace(mean=self.mean[:, order] * signs, V=signs[:, None] * self.V[:, order])


# -- factors ----------------------------------------------------------------------------------------------------------


def evidence(data: Gapped, views: tuple[View, ...]) -> Array:
    """sum over observed features of E[tau_d] E[w_d w_d'] for every row pattern (G x K x K)."""
    by_column = np.sum([view.w.by_pattern(view.noise.mean) for view in views], axis=0)
    n_columns, k = by_column.shape[:2]
    return np.asarray(data.between @ by_column.reshape(n_columns, k * k)).reshape(-1, k, k)


def direct(data: Gapped, views: tuple[View, ...]) -> Array:
    """r_n = sum over observed features of E[tau_d] (x_nd - intercept_d) E[w_d] (N x K)."""
    W = np.vstack([view.w.mean * view.noise.mean[:, None] for view in views])
    intercepts = np.concatenate([view.w.intercept for view in views])
    shift = np.zeros((data.between.shape[1], W.shape[1]))
    np.add.at(shift, data.columns, intercepts[:, None] * W)
    return np.asarray(data.X @ W - data.one[:, None] * (data.between @ shift)[data.rows.group])


def update_factors(problem: Problem, views: tuple[View, ...], beta: Array) -> Factors:
    """E[z_n] = (Pi_n + Q_n)^-1 (r_n + Pi_n (b mu_n, 0)); in the mean field covariances as in ``updates``."""
    data: Gapped = problem.data
    p, k = problem.p, problem.k
    group, of_row, of_label = data.samples
    priors = [prior(one.cov, beta, k) for one in data.labels]
    precision = np.array(priors)[of_label] + evidence(data, views)[of_row]
    inverse = symmetric_inverses(precision)
    r = direct(data, views)
    for one, Pi in zip(data.labels, priors, strict=True):
        r[one.rows] += (one.mean * beta) @ Pi[:p]
    mean = grouped_product(r, inverse, group)
    cov = inverse if problem.full else mean_field_covariances(precision, p)
    return with_sums(problem, mean, cov, beta)


def prior(cov_y: Array, beta: Array, k: int) -> Array:
    """Pi = (b C b + D^-1)^-1 for the informed factors, I for free ones."""
    p, Pi = len(beta), np.eye(k)
    Pi[:p, :p] = updates.symmetric_inverse(beta[:, None] * cov_y * beta + np.diag(1 - beta**2))
    return Pi


def mean_field_covariances(precision: Array, p: int) -> Array:
    """The informed block inverted alone, free factors one by one."""
    k = precision.shape[1]
    cov = np.zeros_like(precision)
    free = np.arange(p, k)
    cov[:, free, free] = 1 / precision[:, free, free]
    cov[:, :p, :p] = symmetric_inverses(precision[:, :p, :p])
    return cov


def with_sums(problem: Problem, mean: Array, cov: Array, beta: Array) -> Factors:
    """Factors and everything that is summed over them."""
    data: Gapped = problem.data
    k = mean.shape[1]
    zy, excess = with_covariates(data, mean, cov, beta)
    means, sums = over_columns(data, mean)
    covs = (data.has * data.sizes[:, None]).T @ cov.reshape(len(cov), k * k)
    return Factors(
        mean=mean,
        cov=cov,
        group=data.samples[0],
        means=means,
        covs=covs.reshape(-1, k, k),
        sums=sums,
        total=np.tensordot(data.sizes, cov, 1),
        zz=mean.T @ mean,
        xz=data.X.T @ mean,
        zy=zy,
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


def few(groups: int, rows: int) -> bool:
    """Whether one product for each group is better than one for all rows at once."""
    return groups <= max(1, rows // 8)


def with_covariates(data: Gapped, mean: Array, cov: Array, beta: Array) -> tuple[Array, Array]:
    """E[Z'Y] and E[y_p'y_p] - N, with q(y | z, y_o) = p(y | z, y_o): y = mu + G (z_I - b mu) + rest, G = C b Pi_I."""
    p, k = len(beta), mean.shape[1]
    zy, squares = np.zeros((k, p)), np.zeros(p)
    for i, one in enumerate(data.labels):
        m = mean[one.rows]
        G = one.cov * beta @ prior(one.cov, beta, k)[:p, :p]
        y = one.mean + (m[:, :p] - beta * one.mean) @ G.T
        zy += m.T @ y
        squares += np.sum(y**2, axis=0)
        if one.cov.any():
            here = np.flatnonzero(data.samples[2] == i)
            C = np.tensordot(data.sizes[here], cov[here], 1)
            zy += C[:, :p] @ G.T
            rest = one.cov - G @ (beta[:, None] * one.cov)
            squares += np.diag(G @ C[:p, :p] @ G.T) + data.of_label[i] * np.diag(rest)
    return zy, squares - data.n


def grouped_product(r: Array, matrices: Array, group: Index) -> Array:
    """r_n' matrices[group_n] for every n."""
    if len(matrices) == 1:
        return np.asarray(r @ matrices[0])
    out = np.empty((len(r), matrices.shape[2]))
    if few(len(matrices), len(r)):
        order = np.argsort(group, kind="stable")
        for rows in np.split(order, np.cumsum(np.bincount(group, minlength=len(matrices)))[:-1]):
            if len(rows):
                out[rows] = r[rows] @ matrices[group[rows[0]]]
        return out
    for part in slices(len(r), r.shape[1] ** 2):
        out[part] = np.matmul(r[part, None, :], matrices[group[part]])[:, 0]
    return out


def symmetric_inverses(S: Array) -> Array:
    """Of many positive definite matrices."""
    inverse = np.linalg.inv(S)
    return np.asarray((inverse + inverse.transpose(0, 2, 1)) / 2)


def shifted(problem: Problem, state: State, held: int = 0) -> State:
    """z -> z + c for all samples and intercept_d -> intercept_d - E[w_d]'c, at the c where the bound is highest.

    The means of X see no difference, so sweeps, which move z and intercepts in turn, would crawl along this direction:

        c = -(sum_n Pi_n + sum_d tau_d n_d C_d)^-1 (sum_n Pi_n (m_n - prior mean_n) + sum_d tau_d C_d sum_n m_n),

    C_d = Cov(w_d), n over the samples that have feature d. Complete data are centred, and c is 0.
    It is 0 for the first ``held`` factors by request.
    """
    data: Gapped = problem.data
    z: Factors = state.z
    p, k, beta = problem.p, problem.k, state.beta
    curvature, slope = np.zeros((k, k)), np.zeros(k)
    for one, count in zip(data.labels, data.of_label, strict=True):
        Pi, weights = prior(one.cov, beta, k), data.one[one.rows]
        away = weights @ z.mean[one.rows]
        away[:p] -= beta * (weights @ one.mean)
        curvature += count * Pi
        slope += Pi @ away
    for view in state.views:
        C = view.w.covariance_by_pattern(view.noise.mean)
        curvature += np.tensordot(data.column_counts, C, 1)
        slope += np.einsum("hkl,hl->k", C, z.sums)
    c = np.zeros(k)
    c[held:] = -np.linalg.solve(curvature[held:, held:], slope[held:])
    views = tuple(v._replace(w=v.w._replace(intercept=v.w.intercept - v.w.mean @ c)) for v in state.views)
    return state._replace(z=with_sums(problem, z.mean + np.outer(data.one, c), z.cov, beta), views=views)


# -- views ------------------------------------------------------------------------------------------------------------


def update_views(problem: Problem, z: Factors, views: tuple[View, ...]) -> tuple[View, ...]:
    """Loadings, intercepts, ARD and noise of every view, given the factors."""
    data: Gapped = problem.data
    S, new = z.means + z.covs, []
    for view, where in zip(views, problem.bounds, strict=True):
        group, counts = data.columns[where], data.counts[where]
        xz = centred_products(data, z, where, view.w.intercept)
        w = update_loadings(S, xz, view, group, problem.full)
        w = w._replace(intercept=(data.x[where] - np.sum(w.mean * z.sums[group], axis=1)) / np.maximum(counts, 1.0))
        residuals = expected_residuals(data, z, where, S, w)
        noise = Gamma(SHAPE_0 + counts / 2, RATE_0 + residuals / 2)
        new.append(View(w, updates.update_ard(w), noise))
    return tuple(new)


def centred_products(data: Gapped, z: Factors, where: slice, intercept: Array) -> Array:
    """sum over observed n of (x_nd - intercept_d) E[z_n] (D x K)."""
    return np.asarray(z.xz[where] - intercept[:, None] * z.sums[data.columns[where]])


def update_loadings(S: Array, xz: Array, view: View, group: Index, full: bool) -> GroupedLoadings:
    """As ``updates.update_loadings``, with one S, and so one V, for each column pattern."""
    a, tau = view.ard.mean, view.noise.mean[:, None]
    root = 1 / np.sqrt(a)
    L, U = np.linalg.eigh(S * root * root[:, None])
    V, shrink = root[:, None] * U, 1 / (1 + tau * np.maximum(L, 0)[group])
    mean = np.empty_like(xz)
    for part in slices(len(xz), len(a) ** 2):
        V_d = V[group[part]]
        turned = np.matmul(xz[part, None, :], V_d) * (tau[part] * shrink[part])[:, None, :]
        mean[part] = np.matmul(turned, V_d.transpose(0, 2, 1))[:, 0]
    if full:
        return GroupedLoadings(mean, V, shrink, group, view.w.intercept)
    diagonal = np.einsum("hkk->hk", S)[group]
    eye = np.broadcast_to(np.eye(len(a)), V.shape).copy()
    return GroupedLoadings(mean, eye, 1 / (a + tau * diagonal), group, view.w.intercept)


def expected_residuals(data: Gapped, z: Factors, where: slice, S: Array, w: GroupedLoadings) -> Array:
    """E sum over observed n of (x_nd - intercept_d - w_d'z_n)^2."""
    mu = w.intercept
    squares = data.xx[where] - 2 * mu * data.x[where] + data.counts[where] * mu**2
    cross = np.sum(w.mean * centred_products(data, z, where, mu), axis=1)
    return np.asarray(np.maximum(squares - 2 * cross + w.quadratic(S), 0.0))


# -- bound ------------------------------------------------------------------------------------------------------------


def of_views(problem: Problem, state: State) -> float:
    """Likelihood, loadings, ARD and noise of every view."""
    data: Gapped = problem.data
    z: Factors = state.z
    S, total = z.means + z.covs, 0.0
    for view, where in zip(state.views, problem.bounds, strict=True):
        residuals, counts = expected_residuals(data, z, where, S, view.w), data.counts[where]
        total += float(np.sum(counts / 2 * (view.noise.mean_log - np.log(2 * np.pi)) - view.noise.mean * residuals / 2))
        total -= updates.kl_loadings(view.w, view.ard) + view.ard.kl() + view.noise.kl()
    return total


def kl_factors(problem: Problem, state: State) -> float:
    """sum_n KL(q(z_n) || N((b mu_n, 0), Pi_n^-1)), missing covariates integrated out."""
    data: Gapped = problem.data
    z: Factors = state.z
    p, k, beta, total = problem.p, problem.k, state.beta, 0.0
    for i, (one, count) in enumerate(zip(data.labels, data.of_label, strict=True)):
        Pi = prior(one.cov, beta, k)
        away = z.mean[one.rows].copy()
        away[:, :p] -= one.mean * beta
        here = np.flatnonzero(data.samples[2] == i)
        log_dets = data.sizes[here] @ np.linalg.slogdet(z.cov[here])[1]
        distance = np.sum((away @ Pi) * away) + np.sum(Pi * np.tensordot(data.sizes[here], z.cov[here], 1))
        total += float(distance - count * (k + np.linalg.slogdet(Pi)[1]) - log_dets) / 2
    return total


# -- realigning -------------------------------------------------------------------------------------------------------


class Held(NamedTuple):
    """q(z~) of the informed factors, and their divergence from the prior."""

    mean: Array  # N x P
    cov: Array  # one for each combination
    kl: float
    beta: Array


def hold(problem: Problem, state: State, T: Array) -> Held:
    """mu -> T mu, Sigma -> T Sigma T' for every sample; the divergence is that of z itself."""
    z: Factors = state.z
    p = problem.p
    informed = z._replace(mean=z.mean[:, :p], cov=z.cov[:, :p, :p])
    kl = kl_factors(problem._replace(k=p), state._replace(z=informed))
    return Held(z.mean[:, :p] @ T.T, T @ z.cov[:, :p, :p] @ T.T, kl, state.beta)


def update_free(problem: Problem, views: tuple[View, ...], held: Held) -> Factors:
    """q(z_F | z_I) = N(C (r_F - Q_FI z_I), C), C = (I + Q_FF)^-1, one Q for each row pattern."""
    data: Gapped = problem.data
    p, k = problem.p, problem.k
    group, of_row, _ = data.samples
    Q = evidence(data, views)[of_row]
    inverse = symmetric_inverses(np.eye(k - p) + Q[:, p:, p:])
    r = direct(data, views)[:, p:] - grouped_product(held.mean, Q[:, :p, p:], group)
    mean = np.hstack([held.mean, grouped_product(r, inverse, group)])
    cov = np.zeros((len(Q), k, k))
    cov[:, :p, :p] = held.cov
    if problem.full:
        B = -inverse @ Q[:, p:, :p]
        cov[:, p:, :p] = B @ held.cov
        cov[:, :p, p:] = cov[:, p:, :p].transpose(0, 2, 1)
        cov[:, p:, p:] = inverse + B @ held.cov @ B.transpose(0, 2, 1)
    else:
        free = np.arange(p, k)
        cov[:, free, free] = 1 / (1 + Q[:, free, free])
    return with_sums(problem, mean, cov, held.beta)


def kl_free(problem: Problem, state: State) -> float:
    """sum_n E KL(q(z_F | z_I) || N(0, I)): log-determinants are those of the conditional's covariance."""
    data: Gapped = problem.data
    p, k = problem.p, problem.k
    precision = np.eye(k - p) + evidence(data, state.views)[data.samples[1]][:, p:, p:]
    if problem.full:
        log_dets = -np.linalg.slogdet(precision)[1]
    else:
        log_dets = -np.log(np.einsum("ckk->ck", precision)).sum(axis=1)
    S = state.z.second_moment(problem.n)
    return float(np.trace(S[p:, p:]) - problem.n * (k - p) - data.sizes @ log_dets) / 2


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


def as_complete(data: Gapped, Y: Array) -> Dense | Gram:
    """Zeros for gaps in X; the cheaper engine for a matrix of this shape."""
    if data.X.shape[1] <= data.n:
        return Gram(data.n, data.X.T @ data.X, data.X.T @ Y, Y.T @ Y)
    return Dense(data.X, Y)


def started(problem: Problem, state: State) -> State:
    """A start made as if gaps were zeros (means), with the updates that know better."""
    data: Gapped = problem.data
    views = []
    for view, where in zip(state.views, problem.bounds, strict=True):
        w: Loadings = view.w
        V = np.broadcast_to(w.V, (data.between.shape[1], *w.V.shape)).copy()
        grouped = GroupedLoadings(w.mean, V, w.scale, data.columns[where], np.zeros(len(w.mean)))
        counts = data.counts[where]
        noise = Gamma(SHAPE_0 + counts / 2, view.noise.rate * (SHAPE_0 + counts / 2) / view.noise.shape)
        views.append(View(grouped, view.ard, noise))
    made = tuple(views)
    return State(update_factors(problem, made, state.beta), made, state.beta)


def resumed(problem: Problem, state: State) -> State:
    """Loadings as they are, on data with other gaps."""
    data: Gapped = problem.data
    if all(isinstance(view.w, Loadings) for view in state.views):
        return started(problem, state)
    same = [
        len(view.w.V) == data.between.shape[1] and np.array_equal(view.w.group, data.columns[where])
        for view, where in zip(state.views, problem.bounds, strict=True)
    ]
    if not all(same):
        raise errors.cannot_resume()
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


def own_variances(state: State, group: Index) -> Array:
    """Var(z_nk) of samples that have these combinations (n x K)."""
    return np.asarray(np.einsum("ckk->ck", state.z.cov)[group])
