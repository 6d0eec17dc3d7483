"""What a fit keeps of its data besides sums: scales, names, coding; it standardises any rows as those of the fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from covalign._core.data_errors import unknown_views
from covalign._core.linalg import Array, affine, dense
from covalign._core.messages import shown
from covalign.factor.nuisance import Nuisance
from covalign.tables.covariates import Encoding


class ViewScale(NamedTuple):
    """The names of the features of a view, and the means and standard deviations that standardise them."""

    names: list[str]
    mean: Array
    sd: Array


FAR = 6.0  # standard deviations: how far any cell of a new sample may lie from the mean


class Table(NamedTuple):
    """What a fit keeps of its data besides sums."""

    views: dict[str, ViewScale]
    single: bool
    samples: list[Any] | None
    mean_y: Array
    sd_y: Array
    nuisance: Nuisance
    reach: Array | None = None  # the largest standardised cell of each feature that counts as it is; None: any

    def farthest(self, X: Array) -> Array:
        """The largest deviation of each feature in rows without what confounders explain, standardised."""
        scales = self.views.values()
        mean, sd = (np.concatenate([getattr(view, name) for view in scales]) for name in ("mean", "sd"))
        gaps = bool(np.isnan(X.sum()))
        high, low = (np.nanmax(X, axis=0), np.nanmin(X, axis=0)) if gaps else (X.max(axis=0), X.min(axis=0))
        return np.asarray(np.maximum(high - mean, mean - low) / sd)

    def reaching(self, farthest: Array, variance: Array) -> Table:
        """With the reach of a fit: its most distant cell of each feature, and at least ``FAR`` standard deviations.

        A cell of a new sample that is further away counts as that far: a linear map would follow it anywhere.
        """
        return self._replace(reach=np.maximum(FAR * np.sqrt(variance), farthest * (1 + 1e-9)))

    def within_reach(self, parts: Mapping[str, Any], C: Array) -> bool:
        """Whether all cells of rows without gaps count as they are; False if only a closer look could tell."""
        if self.reach is None or not len(C):
            return True
        if C.shape[1]:
            return False
        for (name, view), where in zip(self.views.items(), self.bounds, strict=True):
            if name in parts:
                far = self.reach[where] * view.sd
                X = parts[name]
                high, low = (np.asarray(dense(extreme)).ravel() for extreme in (X.max(axis=0), X.min(axis=0)))
                if np.any(high > view.mean + far) or np.any(low < view.mean - far):
                    return False
        return True

    @property
    def encoding(self) -> Encoding:
        """The coding of the covariates."""
        return self.nuisance.coding.covariates

    @property
    def bounds(self) -> tuple[slice, ...]:
        """The positions of the features of each view among all features."""
        ends = np.cumsum([len(view.names) for view in self.views.values()])
        return tuple(slice(int(end) - len(v.names), int(end)) for end, v in zip(ends, self.views.values(), strict=True))

    def view(self, name: str | None) -> str:
        """The name of a view, the first by default; an error if there is no such view."""
        known = list(self.views)
        if name is not None and not (isinstance(name, str) and name in known):
            raise unknown_views([name if isinstance(name, str) else shown(name)], known)
        return known[0] if name is None else name

    def standardised(self, parts: Mapping[str, Any], C: Array | None) -> Array:
        """Rows of some views, standardised as in the fit, all views side by side, NaN where a cell is missing.

        No cell is beyond the reach.

        ``C`` is None if what confounders explain is already subtracted.
        """
        n, out = next(iter(parts.values())).shape[0], []
        for (name, view), where in zip(self.views.items(), self.bounds, strict=True):
            if name not in parts:
                out.append(np.full((n, len(view.names)), np.nan))
                continue
            explained = 0.0 if C is None else self.nuisance.of_x(C, where)
            out.append((dense(parts[name]) - explained - view.mean) / view.sd)
        X = np.hstack(out)
        return X if self.reach is None else np.clip(X, -self.reach, self.reach, out=X)

    def mapped(self, parts: Mapping[str, Any], C: Array | None, of_x: Array) -> Array:
        """``standardised(parts, C) @ of_x`` for views without gaps, from X as it is stored; absent views count as 0."""
        total = np.zeros((next(iter(parts.values())).shape[0], of_x.shape[1]))
        for (name, view), where in zip(self.views.items(), self.bounds, strict=True):
            if name in parts:
                A = of_x[where] / view.sd[:, None]
                total += affine(parts[name], view.mean, A, 0.0, dtype=np.float64)
                if C is not None and C.shape[1]:
                    total -= (C - self.nuisance.centre) @ (self.nuisance.B_x[:, where] @ A)
        return total
