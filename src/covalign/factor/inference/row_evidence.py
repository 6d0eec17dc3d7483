"""What the observed features of each row say about its factors, with any pattern of gaps."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from covalign._core.linalg import Array
from covalign.factor.inference.grouped import GroupedLoadings
from covalign.factor.inference.patterns import Gapped, grouped_product, slices
from covalign.factor.inference.state import View


class Evidence(NamedTuple):
    """Of one view: sum_d E[tau_d] E[w_d w_d'] for every row pattern, and for every row the sums with x.

    The sums are over the observed features d of the view, x_nd without its intercept.
    """

    Q: Array  # patterns x K x K
    r: Array  # sum_d E[tau_d] x_nd E[w_d] (N x K)
    squares: Array  # sum_d E[tau_d] x_nd^2 (N)

    def distances(self, new: Gapped, mean: Array, cov: Array) -> Array:
        """E sum_d tau_d (x_nd - w_d'z_n)^2 of every row, for q(z_n) = N(mean_n, cov_n)."""
        group = new.rows.group
        quadratic = np.sum(grouped_product(mean, self.Q, group) * mean, axis=1)
        spread = np.einsum("nkl,nkl->n", self.Q[group], cov)
        distances = self.squares - 2 * np.sum(mean * self.r, axis=1) + quadratic + spread
        return np.asarray(np.maximum(distances, 0.0))


def intercept(w: Any) -> Array:
    """Intercepts of the features; 0 for complete data, which are centred."""
    return np.asarray(w.intercept) if isinstance(w, GroupedLoadings) else np.zeros(len(w.mean))


def feature_moments(w: Any, weights: Array) -> Array:
    """weights_d E[w_d w_d'] for every feature (D x K x K)."""
    V = w.V[w.group] if isinstance(w, GroupedLoadings) else np.broadcast_to(w.V, (len(w.mean), *w.V.shape))
    cov = (V * w.scale[:, None, :]) @ V.transpose(0, 2, 1)
    return np.asarray(weights[:, None, None] * (w.mean[:, :, None] * w.mean[:, None, :] + cov))


def evidence(view: View, new: Gapped, where: slice) -> Evidence:
    """The evidence of a view, whose features are at ``where``. The rows need not have the patterns of the fit."""
    k, d = view.w.mean.shape[1], len(view.w.mean)
    flags, tau = new.rows.distinct[:, where], view.precision
    Q = np.zeros((len(flags), k, k))
    if flags.all():  # the same sum for all rows
        Q += view.w.weighted_second_moment(tau)
    elif flags.any():
        for part in slices(d, k * k):
            moments = feature_moments(_part(view.w, part), tau[part])
            Q += (flags[:, part] @ moments.reshape(-1, k * k)).reshape(-1, k, k)
    x = np.where(new.observed[:, where], new.X[:, where] - intercept(view.w), 0.0)
    return Evidence(Q, x @ (view.w.mean * tau[:, None]), x**2 @ tau)


def of_views(views: tuple[View, ...], new: Gapped) -> list[Evidence]:
    """The evidence of every view, whose features lie side by side."""
    ends = np.cumsum([len(view.w.mean) for view in views]).tolist()
    return [evidence(view, new, slice(end - len(view.w.mean), end)) for view, end in zip(views, ends, strict=True)]


def _part(w: Any, part: slice) -> Any:
    """The loadings of some features."""
    if isinstance(w, GroupedLoadings):
        return w._replace(mean=w.mean[part], scale=w.scale[part], group=w.group[part], intercept=w.intercept[part])
    return w._replace(mean=w.mean[part], scale=w.scale[part])
