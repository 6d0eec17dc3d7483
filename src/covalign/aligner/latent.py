"""LatentAligner: the regimes as a scikit-learn transformer."""

from __future__ import annotations

import copy
import warnings
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from covalign._core.checks import check_permutations, check_shrinkage
from covalign._core.data_errors import y_required
from covalign._core.linalg import Array, affine, dense
from covalign._core.messages import message
from covalign._core.number_range import check_small
from covalign.aligner import aligner_archive as archive
from covalign.aligner import dask_tables as dasks
from covalign.aligner import intake
from covalign.aligner.edited_rows import EditedRows
from covalign.aligner.fold_sums import Fitting, Found
from covalign.aligner.solution import Solution, cannot_hold_out, correction_by, refuse_unused_reference, solved, warned
from covalign.closed_form import heldout, permutation, regimes
from covalign.closed_form.budget import Budget
from covalign.closed_form.regimes import Polar
from covalign.closed_form.shrinkage import Ridge, analytic_shrinkage, best_ridge, erasure_path, least_change
from covalign.closed_form.validation import Validation, validation
from covalign.exceptions import NotHeldOutWarning
from covalign.moments.adjustment import Adjustment
from covalign.moments.incomplete import IncompleteMoments, Rows, merged
from covalign.moments.moments import Moments
from covalign.moments.single import check_condition
from covalign.persist import archive as store
from covalign.stream import Checked, is_dask, is_elsewhere, map_rows, refuse_not_finite
from covalign.tables import confounders as nuisance
from covalign.tables import covariates
from covalign.tables import groups as grouping

MANY_ROWS = 2_000  # or groups: choosing the shrinkage on the same rows adds .0003 (weak effects: .001) to alignment

FEW_DIMENSIONS = 500  # held-out numbers of so many take a second


class LatentAligner(EditedRows, BaseEstimator):
    """Map a representation so that dimension p stands for covariate p.

    Parameters
    ----------
    regime : "independent", "tunable", "strongest" or "exclusive"
        The property that the transformed dimensions have; see ``covalign.regimes``.
    lam : float in [0, 1]
        For ``tunable``: 0 is independent, 1 is strongest.
    shrinkage : "auto" or float in [0, 1]
        Ridge weight of the directions the regimes work in; 0 is the exact in-sample solution. ``"auto"`` takes the one
        with the best held-out alignment (``shrinkage_path_``), and with it the scale of the columns (``scale_``), which
        costs no second pass over the data.
    keep_rest : bool
        Append the rest of the space (uncorrelated with the independent dimensions), which makes the map invertible.
    folds : int
        Folds of the cross-validation behind ``"auto"``. A row's fold follows from its content, not its position; folds
        have nearly equal numbers of rows, labels and rows of every level. A fixed ``shrinkage`` needs no folds,
        so nothing is held out then; 0 says so, too.
    drop_first : bool
        Leave out the first level of every category, its reference level: the first declared category, otherwise the
        first in sorted order. False gives every level a dimension; L levels have only L - 1 independent directions.
    missing : "pairs", "drop" or "raise"
        What to do with rows whose covariates are incomplete: use every pair (z, y_p) that is there, and Z of all rows;
        leave them out; refuse them. How pairs become moments is in ``covalign.moments.incomplete``.
    chunk_rows : int or None
        Rows read at a time where Z is not in memory; by default what suits the storage and the cache.
    precision : "double" or "single"
        Precision of the products of the columns of Z with each other. ``"single"`` multiplies blocks of rows in float32
        and adds the blocks in float64. It is faster for a large Z in float32; every covariance of two columns is wrong
        by at most 1.2e-4 (measured: 1e-7) of the product of their deviations. Products with covariates, incomplete
        rows and dask arrays stay in double. Columns that nearly are combinations of others are refused.

    Attributes
    ----------
    regime_, lam_ : str, float
        The regime that was solved; lam_ is 0 for independent, 1 for strongest, NaN for exclusive and exact.
    gap_ : float
        After ``at(max_coupling=..., exact=True)``: no map within the limits has a mean alignment larger by more.
    T_ : (P, K) array
        The map to the dimensions that stand for covariates.
    transform_ : (P, K) array, or (k, K) with the rest of the space below
        ``transform(Z)`` is ``(Z - moments_.mean_z) @ transform_.T``, of Z without what confounders explain of it.
    alignment_ : Series
        corr(z~_p, y_p) on the fitted rows, by covariate name.
    held_out_alignment_ : Series
        The same on left-out rows (NaN when a fixed shrinkage made folds unnecessary).
    mean_alignment_ : Series
        Means over covariates: in_sample, held_out, and the latter's se and 90 % interval (low, high).
    category_alignment_ : DataFrame
        covariate, eta_squared, canonical, held_out, dummies of every category with several dummies.
    n_rows_, n_pairs_ : int, Series
        Rows of Z, and rows with each covariate.
    confounder_names_ : list of str
        Confounders, coded as covariates are; empty where there are none.
    moments_, covariate_names_, shrinkage_, scale_, shrinkage_path_, rank_
        rank_ is the number of linearly independent covariates as seen from Z.

    Notes
    -----
    Confounders are covariates that are not of interest (batch, age). They are regressed out of Z and Y if passed to
    ``fit`` as ``confounders=``: a table with a row per sample, matched by index where both have one, or names of
    columns of Y, which then are no covariates. Text and categories become dummies, so a batch that is a number needs
    ``.astype("category")``. They may have no gaps. Everything above is then about what is left of Z and Y, and whatever
    takes rows of Z (except ``steer``, which only adds to them) needs the confounders of these rows. Left-out rows are
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
    _validation: Validation | None
    _least_change: float | None  # the shrinkage of erasing

    def __init__(
        self,
        regime: str = "tunable",
        lam: float = 0.5,
        shrinkage: float | str = "auto",
        *,
        keep_rest: bool = False,
        folds: int = 5,
        drop_first: bool = True,
        missing: str = "pairs",
        chunk_rows: int | None = None,
        precision: str = "double",
    ) -> None:
        self.regime = regime
        self.lam = lam
        self.shrinkage = shrinkage
        self.keep_rest = keep_rest
        self.folds = folds
        self.drop_first = drop_first
        self.missing = missing
        self.chunk_rows = chunk_rows
        self.precision = precision

    # -- fitting ------------------------------------------------------------------------------------------------------

    def fit(self, Z: Any, Y: Any = None, *, confounders: Any = None, groups: Any = None) -> LatentAligner:
        """Take the moments of Z (n x K) and Y (n x P), less what confounders explain, and solve the regime.

        Z is whatever ``covalign.open_rows`` takes (a path, say), read once, a chunk at a time; or, without Y, an
        iterable of batches (Z, Y), of which the first shows the types and the declared levels of the covariates.

        ``groups`` says which rows belong together, such as the cells of a donor: one label for every row, or the name
        of a column of Y, which then is no covariate. A group is fitted or left out as a whole, and intervals count
        groups.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> ca.LatentAligner(lam=0.5).fit(s.Z, s.Y).covariate_names_
        ['y0', 'y1', 'y2', 'y3', 'y4']
        >>> ca.LatentAligner().fit(s.Z, s.Y, groups=[f"donor{i % 20}" for i in range(200)]).n_groups_
        20
        """
        with self._unchanged_if_it_fails():
            self._check_parameters()
            found = self._fitting().moments(Z, Y, confounders, None, groups)
            self._remember(found)
            self._budget = self._reading = None
            self._solved = self._corrected(self._solve(), found.rows)
            self._advise(Y, confounders)
        return self

    def _advise(self, Y: Any, confounders: Any) -> None:
        """Warn where rows seem to belong together, or where there are few groups."""
        likely = grouping.likely_column(Y, confounders) if isinstance(Y, pd.DataFrame) else None
        grouping.warn(self.n_groups_, likely, stacklevel=4)

    def partial_fit(self, Z: Any, Y: Any = None, *, confounders: Any = None, groups: Any = None) -> LatentAligner:
        """Add rows to the moments (the same as ``fit`` on all rows at once); solved when something asks for it.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> al = ca.LatentAligner().partial_fit(s.Z[:150], s.Y[:150]).partial_fit(s.Z[150:], s.Y[150:])
        >>> al.n_rows_, bool((al.alignment_ - ca.LatentAligner().fit(s.Z, s.Y).alignment_).abs().max() < 1e-9)
        (200, True)
        """
        with self._unchanged_if_it_fails():
            self._check_parameters()
            self._remember(self._with_rows(Z, Y, confounders, groups))
        return self

    def _with_rows(self, Z: Any, Y: Any, confounders: Any, groups: Any) -> Found:
        """The sums so far, and those of these rows."""
        known = getattr(self, "_coding", None)
        if known is not None and (groups is None) != (self._groups is None):
            need, got = "groups are needed for all rows or for none", "groups" if groups is not None else "no groups"
            raise ValueError(message(need, got=f"{got}, unlike the rows before", remedy="pass them in every call"))
        found = self._fitting(partial=True).moments(Z, Y, confounders, known, groups)
        if known is not None:
            both = None if found.groups is None or self._groups is None else np.union1d(self._groups, found.groups)
            folds = [merged(pair) for pair in zip(self._folds, found.folds, strict=True)]
            found = found._replace(folds=folds, groups=both)
        return found

    def _fitting(self, partial: bool = False) -> Fitting:
        fixed = check_shrinkage(self.shrinkage) is not None
        buckets = len(self._folds) if partial and hasattr(self, "_folds") else None
        folds = 1 if fixed else int(self.folds)
        single = self.precision == "single"
        return Fitting(self, folds, buckets, self.missing, self.drop_first, self.chunk_rows, partial, single)

    def fit_transform(self, Z: Any, y: Any = None, *, confounders: Any = None, groups: Any = None) -> Any:
        """``fit(Z, y)``, y the covariates, and ``transform(Z)`` of the same rows.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> ca.LatentAligner().fit_transform(s.Z, s.Y).shape
        (200, 5)
        """
        if y is None:
            raise y_required()
        self.fit(Z, y, confounders=confounders, groups=groups)
        if confounders is not None:  # in the order of the rows, which y may have settled
            confounders = intake.given(Z, y, confounders, groups=groups).tables.C
        return self.transform(Z, confounders=confounders)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if check_shrinkage(self.shrinkage) is None and self.folds == 0:
            need = 'shrinkage="auto" needs at least 2 folds'
            raise ValueError(message(need, got=0, remedy="use folds=5, or a number for shrinkage"))

    def _remember(self, found: Found) -> None:
        whole = merged(found.folds)
        assert whole is not None  # empty input was refused before
        self._coding, self._folds, self._dtype, self._groups = found[:4]
        self._whole = whole
        self._solved, self._held, self._adjusted, self._least_change = None, None, None, None
        self._validation = None
        self.covariate_names_ = self._coding.covariates.names
        self.confounder_names_ = self._coding.confounders.names

    def _corrected(self, solution: Solution, rows: Any) -> Solution:
        """The solution, with its dimensions made uncorrelated by a second pass over rows in memory, if that is needed.

        Where columns of Z nearly are combinations of others, sums of squares have too few digits.
        """
        if rows is None or not solution.badly_conditioned:
            return solution
        k = rows.shape[1] - self._coding.q
        C = np.asarray(dense(rows[:, k:]), dtype=np.float64)
        scores = self._mapped(rows[:, :k], C, solution.polar.T_0.T, np.float64)
        return solution._replace(correction=correction_by(scores))

    def _refuse_small(self) -> None:
        """Refuse columns that are too small over all rows; in single folds they may be."""
        z = self._whole.rows if isinstance(self._whole, IncompleteMoments) else self._whole
        given, k = getattr(self, "feature_names_in_", None), len(z.mean_z) - self._coding.q
        names = [*(range(k) if given is None else given), *self._coding.confounders.names]
        check_small("Z", names, z.mean_z, np.diag(z.cov_z))
        for columns, seen in self._whole.pairs:
            check_small("Y", np.array(self.covariate_names_)[columns].tolist(), seen.mean_y, np.diag(seen.cov_y))

    def _solve(self) -> Solution:
        self._refuse_small()
        refuse_unused_reference(self._coding.covariates, self._whole)
        if self.precision == "single":
            check_condition(self._whole.cov_z)
        fixed, path = check_shrinkage(self.shrinkage), None
        ridge = None if fixed is None else Ridge(fixed)
        if ridge is None:
            path = self._validated().path()
            ridge = best_ridge(path)
        rho, scale = Ridge(analytic_shrinkage(self.moments_)) if ridge is None else ridge
        found = solved(self.moments_, self.regime, self.lam, rho, self.keep_rest, path, self._budget, scale)
        if ridge is None:
            warnings.warn(cannot_hold_out(rho), NotHeldOutWarning, stacklevel=3)
        return warned(found)

    # -- held out ------------------------------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_folds")

    def _shows_held_out(self) -> bool:
        return self._held is not None or self.n_features_in_ <= FEW_DIMENSIONS

    def _circumstances(self) -> dict[str, Any]:
        return {**super()._circumstances(), "shrinkage": self.shrinkage_, "scale": self.scale_}

    def _coded_covariates(self) -> covariates.Encoding:
        return self._coding.covariates

    def _polar(self) -> Polar:
        return self._solution.polar

    def _fitted_sums(self) -> Rows:
        return self.moments_

    def _map_of_sums(self) -> Array:
        """The map before its correction by rows, for which these sums have too few digits."""
        s = self._solution
        return np.asarray(s.mixing @ s.polar.T_0)

    def _pair_counts(self) -> Any:
        return self._whole.n_pairs

    def _default_lam(self) -> float:
        return self.lam

    def _moved(self, regime: str, lam: float) -> Self:
        other = copy.copy(self)
        other.regime = regime
        other.lam = lam if regime == "tunable" else self.lam
        other._budget = None
        other._solved = warned(self._solution.moved(other.regime, other.lam))
        return other

    def _moved_within(self, budget: Budget) -> Self:
        other = copy.copy(self)  # with its parameters: fit() on other rows gives their regime
        other._budget = budget
        other._solved = warned(self._solution.within(budget))
        return other

    def _held_out(self, own: bool = False) -> heldout.HeldOut | None:
        """Fits without each fold; None where a fixed shrinkage needed no folds."""
        polar = self._polar()
        if self._held is None and len(self._folds) > 1:
            overall, path = Ridge(self.shrinkage_, self.scale_), self.shrinkage_path_
            checked = self._validated()
            ridges = checked.ridges(path if self._nested() else None, overall)
            self._held, self._validation = checked.held_out(polar, ridges, overall, self._groups is not None), None
        return self._held

    def _validated(self) -> Validation:
        """The cross-validation of these rows, with what it has computed so far."""
        if self._validation is None:
            self._validation = validation(self._folds, int(self.folds), self._coding.q, self._nested())
        return self._validation

    def _nested(self) -> bool:
        """Whether every training set makes its own choice of a ridge, so that left-out rows take no part in it.

        With many labelled rows (or groups), the choice for all rows serves as well: its optimism falls with 1/n.
        """
        labels = int(self._whole.n_pairs.min())
        return min(labels, self.n_groups_ or labels) <= MANY_ROWS

    def _alignment_on(self, X: Any, y: Any, confounders: Any) -> Array:
        how = self._fitting(partial=True)._replace(buckets=1, missing="pairs")
        (sums,) = how.moments(X, y, confounders, self._coding).folds
        if sums is None:
            return np.full(len(self.covariate_names_), np.nan)
        return regimes.observed_alignment(self.T_, self._adjustment.apply(sums))

    def permutation_test(
        self,
        Z: Any,
        Y: Any,
        n_permutations: int = 999,
        random_state: Any = 0,
        *,
        confounders: Any = None,
        groups: Any = None,
    ) -> pd.DataFrame:
        """Test whether chance explains the alignment on these rows: rows of Y, with their gaps, are shuffled against Z.

        One row per covariate, then ``overall`` (their mean). ``alignment`` is what this regime, at this shrinkage,
        reaches in sample; ``by_chance`` what it reaches on average after shuffling, which is large if there are many
        dimensions; ``p_value = (1 + number of shuffles that reach it) / (1 + n_permutations)``. The null hypothesis is
        that no covariate has anything to do with Z. A covariate with gaps costs a K x K covariance per permutation.
        With confounders, what they leave of Y is shuffled, and adjusted again (Freedman and Lane 1983): an
        approximation that is good where rows are many more than confounders. With ``groups``, as in ``fit``, a
        covariate that is constant within groups is shuffled between them, and others within them.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=100)
        >>> al = ca.LatentAligner().fit(s.Z, s.Y)
        >>> float(al.permutation_test(s.Z, s.Y, 199).loc["overall", "p_value"])
        0.005
        """
        count = check_permutations(n_permutations)
        Y, groups = grouping.separated(Y, groups, confounders)
        rows, encoded, numbers = self._check_pairs(Z, Y, confounders, groups)
        s, coding = self._solution, self._coding
        data = permutation.permutable(
            rows, encoded.to_numpy(), coding.covariates.blocks, s.shrinkage, coding.q, numbers, s.scale
        )
        found = permutation.p_values(data, s.regime, s.lam, count, random_state, s.budget)
        return found.set_axis([*self.covariate_names_, "overall"])

    def _check_pairs(self, Z: Any, Y: Any, confounders: Any, groups: Any) -> tuple[Any, pd.DataFrame, Any]:
        """[Z C] and Y as numbers, coded as the rows of the fit, and the number of the group of every row."""
        self._check_fitted()
        Y, confounders = self._coding.recall(Y, confounders)
        tables = nuisance.tables(Z, covariates.match_rows(Z, Y), confounders)
        rows, encoded = self._coding.apply(*nuisance.complete(self._check_rows(Z), tables, self.missing))
        covariates.refuse_constant(encoded)
        check_small("Y", list(encoded.columns), *(part(encoded.to_numpy(), axis=0) for part in (np.nanmean, np.nanvar)))
        if groups is None:
            return rows, encoded, None
        kept = np.asarray(covariates.complete_rows(tables.Y, self.missing, partial=False))
        numbers = grouping.numbers(groups, len(tables.Y), tables.Y.index)[kept]
        return rows, encoded, np.unique(numbers, return_inverse=True)[1]

    # -- use ----------------------------------------------------------------------------------------------------------

    def transform(self, Z: Any, *, confounders: Any = None, out: Any = None, overwrite: bool = False) -> Any:
        """(Z - mean) T', less (C - mean) B T' of confounders C: a column per covariate, then the rest if kept.

        Z is whatever ``covalign.open_rows`` takes, read once. With ``out``, a path that ends in ``.npy``,
        ``.zarr`` or ``.parquet``, the result is written there as it is computed, and the path is returned. The file
        appears only when it is complete; after an interruption the same call resumes.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> al = ca.LatentAligner().fit(s.Z, s.Y)
        >>> al.transform(s.Z[:3]).shape
        (3, 5)
        """
        self._check_fitted()
        if is_dask(Z) and out is None:
            intake.validated(self, Z)
            return dasks.transform(
                Z, self._coding, confounders, self.moments_.mean_z, self.transform_, self._adjustment
            )
        T = self.transform_.T
        if out is None and not is_elsewhere(Z):
            rows = self._check_rows(Z)
            values = self._mapped(rows, self._coding.table(Z, confounders, rows.shape[0]), T)
            return self._as_table(values, Z)
        source = intake.validated(self, intake.source_of(Z, self.chunk_rows, getattr(self, "feature_names_in_", None)))
        C = self._coding.table(intake.labels_of(source, confounders), confounders, source.shape[0])
        dtype = np.dtype(np.float32 if source.dtype == np.float32 else np.float64)

        def mapped(start: int, z: Any) -> Any:
            return self._mapped(z, C[start : start + z.shape[0]], T, dtype)

        key = [T, self.moments_.mean_z, *self._adjustment, C]
        names = self.get_feature_names_out()
        found = map_rows(
            mapped, [Checked(source)], T.shape[1], dtype, out=out, names=names, key=key, overwrite=overwrite
        )
        return found if out is not None else self._as_table(found, Z)

    def _mapped(self, Z: Any, C: Array, matrix: Array, dtype: Any = None) -> Any:
        """(Z - mean_z - (C - mean_c) B_z) matrix."""
        if C.shape[1] == 0:
            return affine(Z, self.moments_.mean_z, matrix, 0.0, dtype=dtype)
        # What confounders explain may be much larger than what is left, so the difference is taken in float64.
        turned = affine(Z, self.moments_.mean_z, matrix, 0.0, dtype=np.float64)
        turned -= affine(C, self._adjustment.centre, self._adjustment.B_z @ matrix, 0.0)
        return turned.astype(dtype or Z.dtype, copy=False)

    def _erasing_shrinkage(self) -> float:
        """The shrinkage for erasing, chosen apart: the best prediction needs more of it than the smallest change."""
        fixed = check_shrinkage(self.shrinkage)
        if fixed is not None:
            return fixed
        if self._least_change is None:
            found = least_change(erasure_path(self._folds, int(self.folds), self._coding.q))
            self._least_change = self.shrinkage_ if found is None else found
        return self._least_change

    def _names_out(self) -> list[str]:
        rest = covariates.numbered("rest", len(self._solution.rest), self.covariate_names_)
        return [*self.covariate_names_, *rest]

    # -- files --------------------------------------------------------------------------------------------------------

    def save(self, path: Any) -> None:
        """Write the aligner to one file (arrays and JSON, no code); ``covalign.load`` reads it.

        The file appears only when it is complete. It holds sums over the rows of every fold, never a row.

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
        """What ``_restored`` needs to make the same aligner."""
        self._check_fitted()
        s = self._solved
        chosen = None
        if s is not None:
            chosen = archive.Chosen(
                s.regime, s.lam, s.shrinkage, len(s.rest) > 0, s.path, s.budget, s.scale, s.correction
            )
        return archive.pack(self, Found(self._coding, self._folds, self._dtype, self._groups), chosen)

    @classmethod
    def _restored(cls, meta: dict[str, Any], arrays: dict[str, Array]) -> LatentAligner:
        """The aligner that ``save`` packed."""
        model = cls(**meta["parameters"])
        found, chosen = archive.unpack(meta, arrays, model)
        model._remember(found)
        if chosen is not None:
            model._budget, model._solved = chosen.budget, solved(model.moments_, *chosen)
        model._reading = meta.get("reading")
        return model

    def _check_rows(self, Z: Any) -> Any:
        self._check_fitted()
        rows = intake.validated(self, Z, ensure_all_finite=False)
        refuse_not_finite(rows, 0, intake.labels_for_messages(Z))
        return rows

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
