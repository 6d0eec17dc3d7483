"""Back from aligned dimensions to Z: inverse, erasure, steering, and the map as a layer of a network."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from covalign._core.checks import check_covariates, check_flag
from covalign._core.data_errors import columns_differ, lengths_differ, not_numeric
from covalign._core.linalg import Array, affine, dense
from covalign._core.messages import listed, message, shown
from covalign._core.user_arrays import in_pandas, numbers, plain
from covalign.aligner.solution import Solution
from covalign.aligner.solved_model import SolvedModel
from covalign.closed_form import crowded, editing
from covalign.exceptions import DependentCovariatesError, LeastSquaresWarning
from covalign.stream import refuse_not_finite


class EditedRows(SolvedModel):
    """The methods of ``LatentAligner`` that return rows of Z, or the map itself."""

    _dtype: Any

    @abstractmethod
    def _check_rows(self, Z: Any) -> Any:
        """Z as finite numbers with the columns of the fit."""

    @abstractmethod
    def _mapped(self, Z: Any, C: Array, matrix: Array, dtype: Any = None) -> Any:
        """(Z - mean_z - (C - mean_c) B_z) matrix."""

    @abstractmethod
    def _erasing_shrinkage(self) -> float:
        """The shrinkage of the regressions behind ``erase``."""

    def inverse_transform(self, Zt: Any, *, confounders: Any = None) -> Any:
        """Back to the space of Z: exact if the rest was kept and T is regular, else the best linear reconstruction.

        What confounders explain is put back.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> al = ca.LatentAligner(keep_rest=True).fit(s.Z, s.Y)
        >>> bool(abs(al.inverse_transform(al.transform(s.Z)) - s.Z).max() < 1e-9)
        True
        """
        s, decoder = self._solution, self._decoder
        rows = np.asarray(dense(numbers(in_pandas(plain(Zt, "Zt"), "Zt"), "Zt")))
        if rows.ndim != 2 or rows.shape[1] != decoder.shape[1]:
            raise columns_differ("inverse_transform", decoder.shape[1], rows.shape[-1] if rows.ndim else 0)
        refuse_not_finite(rows, 0, what="Zt")
        C = self._coding.table(Zt, confounders, len(rows))
        why = why_inexact(s)
        if why:
            text = f"inverse_transform is not exact because {why}: returning the best linear reconstruction of Z."
            warnings.warn(text, LeastSquaresWarning, stacklevel=2)
        if C.shape[1] == 0:
            return affine(rows, 0.0, decoder.T, self.moments_.mean_z)
        dtype = rows.dtype if rows.dtype == np.float32 else np.float64
        centre = np.concatenate([np.zeros(rows.shape[1]), self._adjustment.centre])
        back = np.vstack([decoder.T, self._adjustment.B_z])
        return affine(np.hstack([rows, C]), centre, back, self.moments_.mean_z, dtype=dtype)

    @property
    def _decoder(self) -> Array:
        """cov(Z, z~) cov(z~)^+ of all dimensions (K x k): the best linear reconstruction of Z - mean is z~ times it."""
        s = self._solution
        return np.hstack([editing.decoder(self.moments_, s.polar, s.on_T_0), self.moments_.cov_z @ s.rest.T])

    def loadings(self, W: Any) -> Any:
        """Loadings of the aligned dimensions, from loadings W (features x dimensions of Z) of a factor model.

        W (z - mean) = W~ z~ where z~ are the aligned dimensions. With ``keep_rest=True`` this is exact; without, W~ z~
        is the best linear reconstruction, and loadings of covariates are the same. W is an array, a DataFrame, whose
        columns are matched by name where Z had names, or a dict of them (view -> loadings).

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> al = ca.LatentAligner(keep_rest=True).fit(s.Z, s.Y)
        >>> of_x = al.loadings(s.W)
        >>> bool(abs(al.transform(s.Z) @ of_x.T - (s.Z - s.Z.mean(axis=0)) @ s.W.T).max() < 1e-9)
        True
        """
        if self._solution.singular:
            text = "loadings are not exact because the transformation is singular: returning the least-squares ones."
            warnings.warn(text, LeastSquaresWarning, stacklevel=2)
        if isinstance(W, Mapping):
            return {view: self._carried(part, f"W[{view!r}]") for view, part in W.items()}
        return self._carried(W, "W")

    def _carried(self, W: Any, what: str) -> Any:
        """One table of loadings."""
        known = getattr(self, "feature_names_in_", None)
        if isinstance(W, pd.DataFrame) and known is not None:
            absent = [name for name in known if name not in W.columns]
            if absent or W.shape[1] != len(known):
                need = f"{what} needs the columns of Z, {listed(known)}"
                remedy = "pass the loadings of these dimensions"
                raise ValueError(message(need, got=listed(W.columns), remedy=remedy, wrong=absent, known=W.columns))
            W = W[list(known)]
        values, decoder = np.asarray(dense(in_pandas(plain(W, what), what))), self._decoder
        if values.dtype.kind not in "fiub":
            raise not_numeric(what, values.dtype)
        if values.ndim != 2 or values.shape[1] != len(decoder):
            need = f"{what} needs a row for each feature and {len(decoder)} columns, the dimensions of Z"
            raise ValueError(message(need, got=f"shape {values.shape}", remedy="transpose it, or pass other loadings"))
        carried = values @ decoder
        return pd.DataFrame(carried, W.index, self._names_out()) if isinstance(W, pd.DataFrame) else carried

    def erase(
        self, Z: Any, names: str | Iterable[str] = (), *, protect_others: bool = False, confounders: Any = None
    ) -> Any:
        """Z without what it shares linearly with these covariates: Z - S_zy (B'S_zy)^+ B'(Z - mean).

        On the fitted rows the result is uncorrelated with every named covariate, whatever the shrinkage; unshrunk it is
        the smallest change of these rows that achieves this. With ``shrinkage="auto"`` B is shrunk for the smallest
        change of left-out rows, otherwise as the aligner is. Other covariates that correlate with a named one lose what
        they share with it; ``protect_others=True`` leaves their covariance with Z exactly as it was instead. The name
        of a category stands for all its dummies. With confounders this is about what they leave of Z; what they explain
        of it stays.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> al = ca.LatentAligner().fit(s.Z, s.Y)
        >>> blind = ca.Moments.from_arrays(al.erase(s.Z, "y0"), s.Y)
        >>> bool(abs(blind.cov_zy[:, 0]).max() < 1e-9)
        True
        """
        rows = self._check_rows(Z)
        C = self._coding.table(Z, confounders, rows.shape[0])
        named, rho = self._positions_of(names), self._erasing_shrinkage()
        protect_others = check_flag("protect_others", protect_others)
        E, S_zy = editing.eraser(self.moments_, self._solution.polar, rho, named, protect_others)
        erased = self._mapped(rows, C, E, dtype=np.float64) @ S_zy.T
        return _in_container_of(Z, dense(rows) - erased, rows.dtype)

    def _positions_of(self, names: str | Iterable[str]) -> list[int]:
        """Positions of covariates; the name of a category stands for all its dummies."""
        several = isinstance(names, Iterable) and not isinstance(names, bytes) and getattr(names, "ndim", 1) == 1
        if not several or (not isinstance(names, str) and not (names := list(names))):
            empty = names is None or (isinstance(names, list) and not names)
            need, got = "erase needs the names of covariates", "none" if empty else shown(names)
            raise ValueError(message(need, got=got, remedy=f"choose among {listed(self.covariate_names_, 10)}"))
        names = [names] if isinstance(names, str) else list(names)
        sources = {column.source: column.names for column in self._coding.covariates.columns}
        check_covariates(names, [*self.covariate_names_, *sources])
        wanted = {
            covariate for name in names for covariate in ([name] if name in self.covariate_names_ else sources[name])
        }
        return [i for i, name in enumerate(self.covariate_names_) if name in wanted]

    def steer(self, Z: Any, amounts: Mapping[str, Any] | None = None) -> Any:
        """Z with dimensions moved by these amounts (standard deviations; a number, or one per row) and mapped back.

        Every other dimension, and the rest of the space, stays where it was; so does what confounders explain.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> al = ca.LatentAligner().fit(s.Z, s.Y)
        >>> moved = al.transform(al.steer(s.Z, {"y0": 1.0})) - al.transform(s.Z)
        >>> abs(moved).round(6)[0].tolist()
        [1.0, 0.0, 0.0, 0.0, 0.0]
        """
        rows = self._check_rows(Z)
        if not isinstance(amounts, Mapping) or not amounts:
            need = "steer needs a dict of covariates and amounts"
            got = "none" if amounts is None or isinstance(amounts, Mapping) else shown(amounts)
            raise ValueError(message(need, got=got, remedy=f"for example {{{self.covariate_names_[0]!r}: 1.0}}"))
        check_covariates(amounts, self.covariate_names_)
        s = self._solution
        if s.polar.crowded:
            raise crowded.no_steering(*s.polar.basis.shape[::-1])
        if s.singular:
            need = "steering needs an invertible map"
            got = f"linearly dependent covariates {listed(s.polar.dependent, 12)}"
            raise DependentCovariatesError(
                message(need, got=got, remedy="use at(lam=...) with lam < 1, or drop one of them")
            )
        decoder = editing.decoder(self.moments_, s.polar, s.on_T_0)
        moved = np.array(dense(rows), dtype=np.float64)
        for name, amount in amounts.items():
            by = _amounts(name, amount, len(moved))
            moved += np.multiply.outer(np.broadcast_to(by, len(moved)), decoder[:, self.covariate_names_.index(name)])
        return _in_container_of(Z, moved, rows.dtype)

    def to_torch(self, dtype: Any = None) -> Any:
        """``torch.nn.Linear`` with the output of ``transform``; by default in the precision of the fitted data.

        With confounders its input is [Z C], where C are the numbers that ``confounder_names_`` names: a number as it
        is, a dummy as 1 for its level and 0 otherwise.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> al = ca.LatentAligner().fit(s.Z, s.Y)
        >>> layer = al.to_torch()  # doctest: +SKIP
        >>> layer(torch.from_numpy(s.Z))  # the same numbers as al.transform(s.Z)  # doctest: +SKIP
        """
        T, (centre, B_z, _) = self.transform_, self._adjustment
        bias = -T @ self.moments_.mean_z
        if len(centre):
            T, bias = np.hstack([T, -T @ B_z.T]), bias + T @ (centre @ B_z)
        return editing.layer(T, bias, self._dtype == np.float32, dtype)


def _amounts(name: str, amount: Any, n: int) -> Array:
    """How far rows are moved along a covariate: finite numbers, one or one for every row."""
    need, remedy = f"steering by {name!r} needs a number, or one for each of the {n} rows", "give every row a number"
    try:
        given = amount if np.ndim(amount) == 0 and not isinstance(amount, np.ndarray) else plain(amount, need)
        if isinstance(given, str | bytes | bool | np.bool_ | np.timedelta64 | None) or np.iscomplexobj(given):
            raise TypeError
        by = np.asarray(given, dtype=np.float64)
    except Exception:  # an object of a user's class may raise anything
        raise ValueError(message(need, got=shown(amount), remedy=remedy)) from None
    if by.ndim > 1:
        raise ValueError(message(need, got=f"shape {by.shape}", remedy=remedy))
    if by.ndim == 1 and len(by) != n:
        raise lengths_differ(n, len(by))
    if not np.isfinite(by).all():
        raise ValueError(message(need, got="NaN or infinity (inf)", remedy=remedy))
    return by


def why_inexact(s: Solution) -> str | None:
    """Why there is no exact inverse; None if there is one."""
    if s.singular:
        return "the transformation is singular"
    if len(s.mixing) + len(s.rest) < s.polar.whitening.rank:
        return "the rest of the space was not kept (keep_rest=True keeps it)"
    return None


def _in_container_of(Z: Any, values: Array, dtype: Any) -> Any:
    """The values in the container, and the precision, of Z."""
    values = values.astype(dtype, copy=False)
    return pd.DataFrame(values, index=Z.index, columns=Z.columns) if isinstance(Z, pd.DataFrame) else values
