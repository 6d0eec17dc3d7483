"""LatentAligner: the regimes as a scikit-learn transformer."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Mapping
from functools import wraps
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted, validate_data

from covalign._core import validation as errors
from covalign._core.linalg import Array, affine, dense
from covalign.aligner import aligner_archive as storing
from covalign.aligner import dask_tables as dasks
from covalign.aligner import intake
from covalign.aligner.fold_sums import Fitting, Found
from covalign.closed_form import editing, heldout, permutation, regimes
from covalign.closed_form.regimes import Polar
from covalign.moments import confounders as nuisance
from covalign.moments.confounders import Adjustment
from covalign.moments.incomplete import merged
from covalign.moments.moments import Moments
from covalign.persist import archive as store
from covalign.stream import Checked, is_dask, is_elsewhere, is_source, map_rows, refuse_not_finite
from covalign.tables import covariates


class Solution(NamedTuple):
    """A regime solved: everything the estimator shows follows from this and the moments."""

    regime: str
    lam: float
    shrinkage: float
    path: pd.DataFrame | None
    polar: Polar
    mixing: Array  # P x P
    rest: Array  # (k - P) x K, or 0 x K if not asked for

    @property
    def singular(self) -> bool:
        """T merges dimensions."""
        return bool(np.linalg.matrix_rank(self.mixing) < len(self.mixing))


class LatentAligner(TransformerMixin, BaseEstimator):
    """Turn a representation so that dimension p stands for covariate p.

    Parameters
    ----------
    regime : "independent", "tunable", "strongest" or "exclusive"
        What is asked of the transformed dimensions; see ``covalign.regimes``.
    lam : float in [0, 1]
        For ``tunable``: 0 is independent, 1 is strongest.
    shrinkage : "auto" or float in [0, 1]
        Ridge weight of the directions the regimes work in; 0 is the exact in-sample solution. ``"auto"`` takes the one
        with the best held-out alignment (``shrinkage_path_``), which costs no second pass over the data.
    keep_rest : bool
        Append the rest of the space (uncorrelated with the independent dimensions), which makes the map invertible.
    folds : int
        Folds of the cross-validation behind ``"auto"``. A row's fold follows from its content, not its position.
        Folds that would have fewer than ten rows are put together, down to five.
    drop_first : bool
        Leave out the first dummy of every category.
    missing : "pairs", "drop" or "raise"
        What to do with rows whose covariates are incomplete: use every pair (z, y_p) that is there, and Z of all rows;
        leave them out; refuse them. How pairs become moments is in ``covalign.moments.incomplete``.
    chunk_rows : int or None
        Rows read at a time where Z is not in memory; by default what suits the storage and the cache.

    Attributes
    ----------
    transform_ : (P, K) array, or (k, K) with the rest of the space below
        ``transform(Z)`` is ``(Z - moments_.mean_z) @ transform_.T``, of Z without what confounders explain of it.
    alignment_ : Series
        corr(z~_p, y_p) on the fitted rows, by covariate name.
    held_out_alignment_ : Series
        The same on left-out rows (NaN when a fixed shrinkage made folds unnecessary).
    mean_alignment_ : Series
        Means over covariates: in_sample, held_out, and the latter's se and 90 % interval (low, high).
    category_alignment_ : DataFrame
        covariate, eta_squared, dummies of every category with several dummies.
    n_rows_, n_pairs_ : int, Series
        Rows of Z, and rows with each covariate.
    confounder_names_ : list of str
        Confounders, coded as covariates are; empty where there are none.
    moments_, covariate_names_, shrinkage_, shrinkage_path_, rank_
        rank_ is the number of linearly independent covariates as seen from Z.

    Confounders
    -----------
    Covariates that are not of interest (batch, age) are regressed out of Z and Y if passed to ``fit`` as
    ``confounders=``: a table with a row per sample, matched by index where both have one, or names of columns of Y,
    which then are no covariates. Text and categories become dummies, so a batch that is a number needs
    ``.astype("category")``. They may have no gaps. Everything above is then about what is left of Z and Y, and whatever
    takes rows of Z (but ``steer``, which only adds to them) needs the confounders of these rows. Left-out rows are
    adjusted by what the rows fitted without them say.

    Examples
    --------
    >>> import covalign as ca
    >>> s = ca.simulate.scenario("PN", n_samples=500)
    >>> al = ca.LatentAligner(lam=0.5).fit(s.Z, s.Y)
    >>> al.transform(s.Z).shape
    (500, 5)
    >>> bool(al.at(lam=0.9).alignment_.mean() > al.alignment_.mean())
    True

    Covariates may have gaps: the aligner fits from the pairs it has, and says how many.

    >>> Y = s.Y.copy()
    >>> Y[:200, 0] = float("nan")
    >>> ca.LatentAligner().fit(s.Z, Y).n_pairs_.tolist()
    [300, 500, 500, 500, 500]

    A batch that shifts everything is taken out first.

    >>> batch = ["a", "b"] * 250
    >>> shift = [[0.0], [5.0]] * 250
    >>> al = ca.LatentAligner().fit(s.Z + shift, s.Y + shift, confounders=batch)
    >>> al.transform(s.Z[:1] + 5, confounders=["b"]).shape
    (1, 5)
    """

    _solved: Solution | None
    _adjusted: tuple[Moments, Adjustment] | None
    _held: heldout.HeldOut | None
    _least_change: float | None  # the shrinkage of erasing

    def __init__(
        self,
        regime: str = "tunable",
        lam: float = 0.5,
        shrinkage: float | str = "auto",
        *,
        keep_rest: bool = False,
        folds: int = 5,
        drop_first: bool = False,
        missing: str = "pairs",
        chunk_rows: int | None = None,
    ) -> None:
        self.regime = regime
        self.lam = lam
        self.shrinkage = shrinkage
        self.keep_rest = keep_rest
        self.folds = folds
        self.drop_first = drop_first
        self.missing = missing
        self.chunk_rows = chunk_rows

    # -- fitting ------------------------------------------------------------------------------------------------------

    def fit(self, Z: Any, Y: Any = None, *, confounders: Any = None) -> LatentAligner:
        """Take the moments of Z (n x K) and Y (n x P), less what confounders explain, and solve the regime.

        Z is whatever ``covalign.open_rows`` takes (a path, say), read once, a chunk at a time; or, without Y, an
        iterable of batches (Z, Y), of which the first shows the types and the declared levels of the covariates.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> ca.LatentAligner(lam=0.5).fit(s.Z, s.Y).covariate_names_
        ['y0', 'y1', 'y2', 'y3', 'y4']
        """
        self._check_parameters()
        self._remember(self._fitting().moments(Z, Y, confounders, None))
        self._solved = self._solve()
        return self

    def partial_fit(self, Z: Any, Y: Any = None, *, confounders: Any = None) -> LatentAligner:
        """Add rows to the moments (the same as ``fit`` on all rows at once); solved when something asks for it.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> al = ca.LatentAligner().partial_fit(s.Z[:150], s.Y[:150]).partial_fit(s.Z[150:], s.Y[150:])
        >>> al.n_rows_, bool((al.alignment_ - ca.LatentAligner().fit(s.Z, s.Y).alignment_).abs().max() < 1e-9)
        (200, True)
        """
        self._check_parameters()
        known = getattr(self, "_coding", None)
        found = self._fitting(partial=True).moments(Z, Y, confounders, known)
        if known is not None:
            found = found._replace(folds=[merged(pair) for pair in zip(self._folds, found.folds, strict=True)])
        self._remember(found)
        return self

    def _fitting(self, partial: bool = False) -> Fitting:
        fixed = errors.check_shrinkage(self.shrinkage) is not None
        folds = len(self._folds) if partial and hasattr(self, "_folds") else 1 if fixed else self.folds
        return Fitting(self._validated, folds, self.missing, self.drop_first, self.chunk_rows, partial)

    def fit_transform(self, Z: Any, y: Any = None, *, confounders: Any = None) -> Any:
        """``fit(Z, y)``, y the covariates, and ``transform(Z)`` of the same rows.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> ca.LatentAligner().fit_transform(s.Z, s.Y).shape
        (200, 5)
        """
        if y is None:
            raise errors.y_required()
        self.fit(Z, y, confounders=confounders)
        if confounders is not None:  # in the order of the rows, which y may have settled
            confounders = intake.given(Z, y, confounders).tables.C
        return self.transform(Z, confounders=confounders)

    def _check_parameters(self) -> None:
        errors.check_regime(self.regime)
        errors.check_lam(self.lam)
        errors.check_shrinkage(self.shrinkage)
        errors.check_folds(self.folds)
        errors.check_missing(self.missing)
        if self.chunk_rows is not None:
            errors.check_chunk_rows(self.chunk_rows)

    def _remember(self, found: Found) -> None:
        whole = merged(found.folds)
        assert whole is not None  # empty input was refused before
        self._coding, self._folds, self._dtype = found
        self._whole = whole
        self._solved, self._held, self._adjusted, self._least_change = None, None, None, None
        self.covariate_names_ = self._coding.covariates.names
        self.confounder_names_ = self._coding.confounders.names

    def _solve(self) -> Solution:
        rho, path = errors.check_shrinkage(self.shrinkage), None
        if rho is None:
            path = heldout.shrinkage_path(self._folds, self._coding.q)
            rho = heldout.best_shrinkage(path)
        return _flagged(self._solution_at(self.regime, self.lam, rho, self.keep_rest, path))

    def _solution_at(self, regime: str, lam: float, rho: float, keep_rest: bool, path: pd.DataFrame | None) -> Solution:
        polar = regimes.whitened_polar(self.moments_, rho)
        rest = regimes.rest_of_space(self.moments_, polar) if keep_rest else np.empty((0, polar.T_0.shape[1]))
        return Solution(regime, lam, rho, path, polar, regimes.mixing(polar, regime, lam), rest)

    # -- what was found -----------------------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_folds")

    @property
    def _solution(self) -> Solution:
        self._check_fitted()
        if self._solved is None:
            self._solved = self._solve()
        return self._solved

    def _check_fitted(self) -> None:
        if not hasattr(self, "_folds"):
            raise NotFittedError(errors.unfitted(type(self).__name__))

    @property
    def moments_(self) -> Moments:
        """Moments of the fitted rows, completed where covariates have gaps, without what confounders explain.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> al = ca.LatentAligner().fit(s.Z, s.Y)
        >>> al.moments_
        Moments(n=200, 10 latent dimensions, 5 covariates: 'y0', 'y1', 'y2', 'y3', 'y4')
        """
        return self._adjusted_moments()[0]

    @property
    def _adjustment(self) -> Adjustment:
        return self._adjusted_moments()[1]

    def _adjusted_moments(self) -> tuple[Moments, Adjustment]:
        self._check_fitted()
        if self._adjusted is None:
            self._adjusted = nuisance.adjusted(self._whole, self._coding.q)
        return self._adjusted

    @property
    def n_rows_(self) -> int:
        """Rows of Z that were fitted.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> al = ca.LatentAligner().fit(s.Z, s.Y)
        >>> al.n_rows_
        200
        """
        self._check_fitted()
        return int(self._whole.n or 0)

    @property
    def n_pairs_(self) -> pd.Series:
        """Rows with each covariate.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> s.Y[:50, 2] = float("nan")
        >>> ca.LatentAligner().fit(s.Z, s.Y).n_pairs_["y2"].item()
        150
        """
        self._check_fitted()
        return pd.Series(self._whole.n_pairs, index=self.covariate_names_, name="rows")

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """The parameters, and once fitted the number of rows, and of rows with each covariate that has gaps."""
        parameters: str = super().__repr__(N_CHAR_MAX)
        if not hasattr(self, "_whole"):
            return parameters
        fewer = self.n_pairs_[self.n_pairs_ < self.n_rows_]
        gaps = "".join(f", {name} in {count}" for name, count in fewer.items())
        return f"{parameters} fitted on {self.n_rows_} rows{gaps}"

    @property
    def transform_(self) -> Array:
        """The whole map: T, and the rest of the space below it if kept.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> al = ca.LatentAligner().fit(s.Z, s.Y)
        >>> al.transform_.shape
        (5, 10)
        """
        s = self._solution
        return np.vstack([s.mixing @ s.polar.T_0, s.rest])

    @property
    def shrinkage_(self) -> float:
        """The ridge weight in use.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> ca.LatentAligner(shrinkage=0.1).fit(s.Z, s.Y).shrinkage_
        0.1
        """
        return self._solution.shrinkage

    @property
    def shrinkage_path_(self) -> pd.DataFrame | None:
        """Held-out alignment along the shrinkage (None if it was fixed).

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> al = ca.LatentAligner().fit(s.Z, s.Y)
        >>> al.shrinkage_path_.columns.tolist()
        ['shrinkage', 'alignment', 'se']
        """
        return self._solution.path

    @property
    def rank_(self) -> int:
        """How many covariates are linearly independent as seen from Z.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> al = ca.LatentAligner().fit(s.Z, s.Y)
        >>> al.rank_
        5
        """
        polar = self._solution.polar
        return int(len(polar.M) - polar.null.shape[1])

    @property
    def alignment_(self) -> pd.Series:
        """corr(z~_p, y_p) on the fitted rows.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> al = ca.LatentAligner().fit(s.Z, s.Y)
        >>> al.alignment_.round(1).tolist()
        [0.8, 0.8, 0.6, 0.5, 0.4]
        """
        s = self._solution
        values = regimes.alignment(s.mixing @ s.polar.T_0, self.moments_)
        return pd.Series(values, index=self.covariate_names_, name="in_sample")

    @property
    def coupling_(self) -> float:
        """|corr(z~) - I|_F^2 on the fitted rows.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> al = ca.LatentAligner().fit(s.Z, s.Y)
        >>> al.at(regime="independent").coupling_ < 1e-9 < al.coupling_
        True
        """
        s = self._solution
        return regimes.coupling(s.mixing @ s.polar.T_0, self.moments_)

    @property
    def held_out_alignment_(self) -> pd.Series:
        """corr(z~_p, y_p) on left-out rows, averaged over folds.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> al = ca.LatentAligner().fit(s.Z, s.Y)
        >>> bool(al.held_out_alignment_.mean() < al.alignment_.mean())
        True
        """
        return self.summary()["held_out"]

    @property
    def mean_alignment_(self) -> pd.Series:
        """Means over covariates: in_sample, held_out, se, low, high.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> al = ca.LatentAligner().fit(s.Z, s.Y)
        >>> al.mean_alignment_.index.tolist()
        ['in_sample', 'held_out', 'se', 'low', 'high']
        """
        means = np.array([regimes.mean_or_nan(fold) for fold in self._per_fold()]).reshape(-1, 1)
        held = {name: float(column[0]) for name, column in heldout.summarised(means).items()}
        return pd.Series({"in_sample": self.alignment_.mean(), **held})

    @property
    def category_alignment_(self) -> pd.DataFrame:
        """One row per category with several dummies: covariate, eta_squared, dummies.

        The eta squared of a dimension is the share of its variance that lies between the levels of the category (R^2 on
        all its dummies, 0 to 1); the category's is the mean over the dimensions of its dummies.

        >>> import covalign as ca, pandas as pd
        >>> s = ca.simulate.scenario("PN", n_samples=300)
        >>> Y = pd.DataFrame({"dose": s.Y[:, 0], "stage": pd.qcut(s.Y[:, 1], 3, labels=["low", "mid", "high"])})
        >>> Y["stage"] = Y["stage"].astype(str)
        >>> ca.LatentAligner().fit(s.Z, Y).category_alignment_["dummies"].tolist()
        [('stage_high', 'stage_low', 'stage_mid')]
        """
        return pd.DataFrame(self._categories(), columns=["covariate", "eta_squared", "dummies"])

    def _categories(self) -> list[tuple[str, float, tuple[str, ...]]]:
        s = self._solution
        T = s.mixing @ s.polar.T_0
        return [
            (c.source, regimes.mean_or_nan(regimes.eta_squared(T[list(block)], self.moments_, block)), c.names)
            for c, block in zip(self._coding.covariates.columns, self._coding.covariates.blocks, strict=True)
            if c.kind == "dummies" and len(block) > 1
        ]

    def summary(self) -> pd.DataFrame:
        """One row per covariate: in_sample and held_out alignment, and the rows behind it.

        ``se`` is the standard error of ``held_out`` over folds; ``low`` and ``high`` are a 90 % interval for the
        alignment on new rows (``heldout.interval``); all NaN where a fixed shrinkage made folds unnecessary. ``rows``
        have the covariate. Where there are categories, ``eta_squared`` is their joint share (``category_alignment_``).

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> al = ca.LatentAligner().fit(s.Z, s.Y)
        >>> al.summary().columns.tolist()
        ['in_sample', 'held_out', 'se', 'low', 'high', 'rows']
        """
        frame = self.alignment_.to_frame().assign(**heldout.summarised(self._per_fold()), rows=self.n_pairs_)
        shares = {name: share for _, share, dummies in self._categories() for name in dummies}
        return frame.assign(eta_squared=pd.Series(shares).reindex(frame.index)) if shares else frame

    def _per_fold(self) -> Array:
        """Held-out alignment, folds x P; no folds where a fixed shrinkage needed none."""
        held = self._held_out()
        if held is None:
            return np.empty((0, len(self.covariate_names_)))
        return held.measure(self._solution.regime, self._solution.lam)[0]

    def permutation_test(
        self, Z: Any, Y: Any, n_permutations: int = 999, random_state: Any = 0, *, confounders: Any = None
    ) -> pd.DataFrame:
        """Tell the alignment on these rows from luck: rows of Y, gaps and all, are shuffled against those of Z.

        One row per covariate, then ``overall`` (their mean). ``alignment`` is what this regime, at this shrinkage,
        reaches in sample; ``by_chance`` what it reaches on average after shuffling, which is much where dimensions are
        many; ``p_value = (1 + number of shuffles that reach it) / (1 + n_permutations)``. The null hypothesis is that
        no covariate has anything to do with Z. A covariate with gaps costs a K x K covariance per permutation. With
        confounders, what they leave of Y is shuffled, and adjusted again (Freedman and Lane 1983): an approximation
        that is good where rows are many more than confounders.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=100)
        >>> al = ca.LatentAligner().fit(s.Z, s.Y)
        >>> float(al.permutation_test(s.Z, s.Y, 199).loc["overall", "p_value"])
        0.005
        """
        count = errors.check_permutations(n_permutations)
        rows, encoded = self._check_pairs(Z, Y, confounders)
        s, coding = self._solution, self._coding
        data = permutation.permutable(rows, encoded.to_numpy(), coding.covariates.blocks, s.shrinkage, coding.q)
        found = permutation.p_values(data, s.regime, s.lam, count, random_state)
        return found.set_axis([*self.covariate_names_, "overall"])

    def _check_pairs(self, Z: Any, Y: Any, confounders: Any) -> tuple[Any, pd.DataFrame]:
        """[Z C] and Y as they would be fitted, coded as those of the fit were."""
        self._check_solved()
        Y, confounders = self._coding.recall(Y, confounders)
        tables = nuisance.tables(Z, covariates.match_rows(Z, Y), confounders)
        rows, encoded = self._coding.apply(*nuisance.complete(self._check_rows(Z), tables, self.missing))
        covariates.refuse_constant(encoded)
        return rows, encoded

    def _held_out(self) -> heldout.HeldOut | None:
        """Fits without each fold, at the shrinkage in use; None where a fixed shrinkage needed no folds."""
        rho = self.shrinkage_
        if self._held is None and len(self._folds) > 1:
            made = heldout.splits(self._folds, q=self._coding.q)
            self._held = heldout.held_out(made, [rho] * len(made)) if made else None
        return self._held

    def frontier(self, lams: Iterable[float] | None = None) -> pd.DataFrame:
        """Alignment and coupling along lambda and at the exclusive point, in sample, and held out where folds exist.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> al = ca.LatentAligner().fit(s.Z, s.Y)
        >>> al.frontier([0, 0.5, 1])["regime"].tolist()
        ['independent', 'tunable', 'strongest', 'exclusive']
        """
        frame = regimes.frontier(self.moments_.with_names(self.covariate_names_), lams, shrinkage=self.shrinkage_)
        held = self._held_out()
        if held is not None:
            left_out = heldout.held_out_frontier(held, lams, self.covariate_names_).set_index(["regime", "lam"])
            left_out = left_out.reindex(pd.MultiIndex.from_frame(frame[["regime", "lam"]]))
            for at, column in enumerate(["alignment", "alignment_se", "coupling"], start=4):
                frame.insert(at, f"held_out_{column}", left_out[column].to_numpy())
        return frame

    def at(
        self, *, lam: float | None = None, regime: str | None = None, max_coupling: float | None = None
    ) -> LatentAligner:
        """The same moments in another regime: a new fitted aligner, without data and without refitting.

        ``at(max_coupling=c)`` takes the largest lambda whose in-sample coupling stays within c.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> al = ca.LatentAligner().fit(s.Z, s.Y)
        >>> round(al.at(max_coupling=0.2).coupling_, 6)
        0.2
        >>> al.at(regime="exclusive").regime
        'exclusive'
        """
        solution = self._solution
        if max_coupling is not None:
            if lam is not None or regime is not None:
                raise errors.which_regime()
            lam = regimes.lam_within(solution.polar.M, errors.check_max_coupling(max_coupling))
        if (lam is None and regime is None) or (lam is not None and regime not in (None, "tunable")):
            raise errors.which_regime()
        other = copy.copy(self)
        other.regime = errors.check_regime("tunable" if regime is None else regime)
        other.lam = self.lam if lam is None else errors.check_lam(lam)
        mixing = regimes.mixing(solution.polar, other.regime, other.lam)
        other._solved = _flagged(solution._replace(regime=other.regime, lam=other.lam, mixing=mixing))
        return other

    # -- use ----------------------------------------------------------------------------------------------------------

    def transform(self, Z: Any, *, confounders: Any = None, out: Any = None, overwrite: bool = False) -> Any:
        """(Z - mean) T', less (C - mean) B T' of confounders C: a column per covariate, then the rest if kept.

        Z is whatever ``covalign.open_rows`` takes, read once. With ``out``, a path that ends in ``.npy``,
        ``.zarr`` or ``.parquet``, the result is written there as it is computed, and the path returned: the file
        appears when it is complete, and the same call after an interruption goes on where that one stopped.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> al = ca.LatentAligner().fit(s.Z, s.Y)
        >>> al.transform(s.Z[:3]).shape
        (3, 5)
        """
        self._check_solved()
        if is_dask(Z) and out is None:
            self._validated(Z)
            return dasks.transform(
                Z, self._coding, confounders, self.moments_.mean_z, self.transform_, self._adjustment
            )
        T = self.transform_.T
        if out is None and not is_elsewhere(Z):
            rows = self._check_rows(Z)
            return self._turned(rows, self._coding.table(Z, confounders, rows.shape[0]), T)
        source = self._validated(intake.source_of(Z, self.chunk_rows, getattr(self, "feature_names_in_", None)))
        C = self._coding.table(intake.labels_of(source, confounders), confounders, source.shape[0])
        dtype = np.dtype(np.float32 if source.dtype == np.float32 else np.float64)

        def turned(start: int, z: Any) -> Any:
            return self._turned(z, C[start : start + z.shape[0]], T, dtype)

        key = [T, self.moments_.mean_z, *self._adjustment, C]
        names = self.get_feature_names_out()
        return map_rows(
            turned, [Checked(source)], T.shape[1], dtype, out=out, names=names, key=key, overwrite=overwrite
        )

    def _turned(self, Z: Any, C: Array, matrix: Array, dtype: Any = None) -> Any:
        """(Z - mean_z - (C - mean_c) B_z) matrix."""
        if C.shape[1] == 0:
            return affine(Z, self.moments_.mean_z, matrix, 0.0, dtype=dtype)
        # What confounders explain may be much larger than what is left, so the difference is taken in float64.
        turned = affine(Z, self.moments_.mean_z, matrix, 0.0, dtype=np.float64)
        turned -= affine(C, self._adjustment.centre, self._adjustment.B_z @ matrix, 0.0)
        return turned.astype(dtype or Z.dtype, copy=False)

    def inverse_transform(self, Zt: Any, *, confounders: Any = None) -> Any:
        """Back to the space of Z: exact if the rest was kept and T is regular, else the best linear reconstruction.

        What confounders explain is put back.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> al = ca.LatentAligner(keep_rest=True).fit(s.Z, s.Y)
        >>> bool(abs(al.inverse_transform(al.transform(s.Z)) - s.Z).max() < 1e-9)
        True
        """
        s = self._check_solved()
        decoder = np.hstack([editing.decoder(self.moments_, s.polar, s.mixing), self.moments_.cov_z @ s.rest.T])
        rows = np.asarray(Zt)
        if rows.ndim != 2 or rows.shape[1] != decoder.shape[1]:
            raise errors.columns_differ("inverse_transform", decoder.shape[1], rows.shape[-1] if rows.ndim else 0)
        C = self._coding.table(Zt, confounders, len(rows))
        inexact = self._why_inexact(s)
        if inexact:
            warnings.warn(errors.least_squares_inverse(inexact), errors.LeastSquaresWarning, stacklevel=2)
        if C.shape[1] == 0:
            return affine(rows, 0.0, decoder.T, self.moments_.mean_z)
        dtype = rows.dtype if rows.dtype == np.float32 else np.float64
        centre = np.concatenate([np.zeros(rows.shape[1]), self._adjustment.centre])
        back = np.vstack([decoder.T, self._adjustment.B_z])
        return affine(np.hstack([rows, C]), centre, back, self.moments_.mean_z, dtype=dtype)

    @staticmethod
    def _why_inexact(s: Solution) -> str | None:
        if s.singular:
            return "the transformation is singular"
        if len(s.mixing) + len(s.rest) < len(s.polar.whitener):
            return "the rest of the space was not kept (keep_rest=True keeps it)"
        return None

    def erase(
        self, Z: Any, names: str | Iterable[str], *, protect_others: bool = False, confounders: Any = None
    ) -> Any:
        """Z without a linear trace of these covariates: Z - S_zy (B'S_zy)^+ B'(Z - mean).

        On the fitted rows the result is uncorrelated with every named covariate, whatever the shrinkage; unshrunk it is
        the smallest change of these rows that achieves this. With ``shrinkage="auto"`` B is shrunk for the smallest
        change of left-out rows, otherwise as the aligner is. Others that correlate with a named one lose what they
        share with it; ``protect_others=True`` leaves their covariance with Z exactly as it was instead. A category's
        own name stands for all its dummies. With confounders this is about what they leave of Z; what they explain of
        it stays.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> al = ca.LatentAligner().fit(s.Z, s.Y)
        >>> blind = ca.Moments.from_arrays(al.erase(s.Z, "y0"), s.Y)
        >>> bool(abs(blind.cov_zy[:, 0]).max() < 1e-9)
        True
        """
        rows = self._check_rows(Z)
        C = self._coding.table(Z, confounders, rows.shape[0])
        named, rho = self._columns_of(names), self._erasing_shrinkage()
        E, S_zy = editing.eraser(self.moments_, self._solution.polar, rho, named, protect_others)
        erased = self._turned(rows, C, E, dtype=np.float64) @ S_zy.T
        return _like(Z, dense(rows) - erased, rows.dtype)

    def _erasing_shrinkage(self) -> float:
        """A good predictor is shrunk more than the smallest change is, so erasing has a choice of its own."""
        fixed = errors.check_shrinkage(self.shrinkage)
        if fixed is not None:
            return fixed
        if self._least_change is None:
            self._least_change = heldout.least_change(heldout.erasure_path(self._folds, self._coding.q))
        return self._least_change

    def steer(self, Z: Any, amounts: Mapping[str, Any]) -> Any:
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
        unknown = [name for name in amounts if name not in self.covariate_names_]
        if unknown:
            raise errors.unknown_covariates(unknown, self.covariate_names_)
        s = self._solution
        if s.singular:
            raise errors.no_steering(s.polar.dependent)
        decoder = editing.decoder(self.moments_, s.polar, s.mixing)
        moved = np.array(dense(rows), dtype=np.float64)
        for name, amount in amounts.items():
            by = np.asarray(amount, dtype=np.float64)
            if by.ndim > 1 or (by.ndim == 1 and len(by) != len(moved)):
                raise errors.lengths_differ(len(moved), by.shape[0])
            moved += np.multiply.outer(np.broadcast_to(by, len(moved)), decoder[:, self.covariate_names_.index(name)])
        return _like(Z, moved, rows.dtype)

    def to_torch(self, dtype: Any = None) -> Any:
        """``torch.nn.Linear`` with the output of ``transform``; by default in the precision of the fitted data.

        With confounders its input is [Z C], where C are the numbers that ``confounder_names_`` names: a number as it
        is, a dummy 1 where its level is and 0 elsewhere.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> al = ca.LatentAligner().fit(s.Z, s.Y)
        >>> layer = al.to_torch()  # doctest: +SKIP
        >>> layer(torch.from_numpy(s.Z))  # the same numbers as al.transform(s.Z)  # doctest: +SKIP
        """
        self._check_solved()
        T, (centre, B_z, _) = self.transform_, self._adjustment
        bias = -T @ self.moments_.mean_z
        if len(centre):
            T, bias = np.hstack([T, -T @ B_z.T]), bias + T @ (centre @ B_z)
        return editing.layer(T, bias, self._dtype == np.float32, dtype)

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Covariate names, then rest0, rest1, ... if the rest was kept.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> al = ca.LatentAligner(keep_rest=True).fit(s.Z, s.Y)
        >>> al.get_feature_names_out()[3:7].tolist()
        ['y3', 'y4', 'rest0', 'rest1']
        """
        s = self._check_solved()
        if input_features is not None:
            if hasattr(self, "feature_names_in_") and not np.array_equal(input_features, self.feature_names_in_):
                raise errors.feature_names_not_equal()
            if len(input_features) != self.n_features_in_:
                raise errors.feature_names_differ(len(input_features), self.n_features_in_)
        rest = covariates.numbered("rest", len(s.rest), self.covariate_names_)
        return np.array([*self.covariate_names_, *rest], dtype=object)

    def _columns_of(self, names: str | Iterable[str]) -> list[int]:
        """Positions of covariates, where a category's own name stands for all its dummies."""
        names = [names] if isinstance(names, str) else list(names)
        sources = {column.source: column.names for column in self._coding.covariates.columns}
        unknown = [name for name in names if name not in sources and name not in self.covariate_names_]
        if unknown:
            raise errors.unknown_covariates(unknown, [*self.covariate_names_, *sources])
        wanted = {
            covariate for name in names for covariate in ([name] if name in self.covariate_names_ else sources[name])
        }
        return [i for i, name in enumerate(self.covariate_names_) if name in wanted]

    # -- files --------------------------------------------------------------------------------------------------------

    def save(self, path: Any) -> None:
        """Write the aligner to one file (arrays and JSON, no code), whole or not at all; ``covalign.load`` reads it.

        The file holds sums over the rows of every fold, never a row.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> al = ca.LatentAligner().fit(s.Z, s.Y)
        >>> import pathlib, tempfile
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "model.covalign"
        >>> al.save(file)
        >>> ca.load(file).n_rows_
        200
        """
        store.write(path, *self._packed())

    def _packed(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """What ``_restored`` makes the same aligner of."""
        self._check_fitted()
        s = self._solved
        chosen = None if s is None else storing.Chosen(s.regime, s.lam, s.shrinkage, len(s.rest) > 0, s.path)
        return storing.pack(self, Found(self._coding, self._folds, self._dtype), chosen)

    @classmethod
    def _restored(cls, meta: dict[str, Any], arrays: dict[str, Array]) -> LatentAligner:
        """The aligner that ``save`` packed."""
        model = cls(**meta["parameters"])
        found, chosen = storing.unpack(meta, arrays, model)
        model._remember(found)
        if chosen is not None:
            model._solved = model._solution_at(*chosen)
        return model

    def _check_solved(self) -> Solution:
        check_is_fitted(self)
        return self._solution

    def _check_rows(self, Z: Any) -> Any:
        self._check_solved()
        rows = self._validated(Z, ensure_all_finite=False)
        refuse_not_finite(rows, 0, intake.whereabouts(Z))
        return rows

    def _validated(self, Z: Any, reset: bool = False, **checks: Any) -> Any:
        """Z as scikit-learn wants it: float32 or float64, dense or CSR, with the columns of the first fit.

        A Source, or what dask holds, as it is, if it has those columns.
        """
        if is_source(Z) or is_dask(Z):
            names = getattr(Z, "columns", None) if is_dask(Z) else Z.names
            head = np.empty((0, Z.shape[1])) if names is None else pd.DataFrame(columns=list(names))
            validate_data(self, head, reset=reset, skip_check_array=True)
            if not is_dask(Z) and Z.shape[0] < checks.get("ensure_min_samples", 1):
                raise errors.too_few_rows(Z.shape[0])
            return Z
        checks["reset"] = reset
        try:
            return validate_data(self, Z, accept_sparse="csr", dtype=[np.float64, np.float32], **checks)
        except ValueError as error:
            if "could not convert string" not in str(error):
                raise
            raise errors.not_numeric("Z", "str") from None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _paths_as_they_are(method: Any) -> Any:
    """``transform`` without ``set_output`` where it returns a path, of which no table can be made."""

    @wraps(method)
    def transform(self: LatentAligner, Z: Any, *, out: Any = None, **options: Any) -> Any:
        return (method if out is None else method.__wrapped__)(self, Z, out=out, **options)

    return transform


LatentAligner.transform = _paths_as_they_are(LatentAligner.transform)  # type: ignore[method-assign]


def _flagged(solution: Solution) -> Solution:
    """The solution, with a warning where its map cannot be undone."""
    if solution.singular:
        message = errors.singular_transform(solution.polar.dependent)
        warnings.warn(message, errors.SingularTransformWarning, stacklevel=4)
    return solution


def _like(Z: Any, values: Array, dtype: Any) -> Any:
    """The values in the container, and the precision, that Z came in."""
    values = values.astype(dtype, copy=False)
    return pd.DataFrame(values, index=Z.index, columns=Z.columns) if isinstance(Z, pd.DataFrame) else values
