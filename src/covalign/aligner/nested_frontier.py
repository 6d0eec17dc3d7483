"""The frontier on rows that were not fitted, every choice nested inside the training sets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from covalign._core.checks import check_folds, too_few_rows
from covalign.aligner import dask_tables as dasks
from covalign.aligner import intake
from covalign.aligner.solution import check_shrinkage
from covalign.closed_form import regimes
from covalign.closed_form.heldout import (
    FEW_FOLDS,
    best_shrinkage,
    held_out,
    held_out_frontier,
    nested_shrinkages,
    sensible,
    shrinkage_path,
    splits,
)
from covalign.moments.adjustment import adjusted
from covalign.moments.incomplete import fold_moments, merged
from covalign.stream import is_dask, is_elsewhere
from covalign.tables import confounders as nuisance
from covalign.tables import covariates


def cross_validated_frontier(
    Z: Any,
    Y: Any,
    lams: Iterable[float] | None = None,
    folds: int = 5,
    *,
    shrinkage: float | str = "auto",
    drop_first: bool = False,
    missing: str = "pairs",
    confounders: Any = None,
    chunk_rows: int | None = None,
) -> pd.DataFrame:
    """The frontier on rows that were not fitted, for about one pass over the data.

    ``alignment``, ``coupling`` and the covariates' columns are held out; ``alignment_in_sample`` and
    ``coupling_in_sample`` are what the fitted rows themselves show. With ``shrinkage="auto"`` each training set chooses
    its own by cross-validation inside it, so the left-out rows take no part in any choice. Z may be a path, or anything
    else ``covalign.open_rows`` takes. ``missing``, ``confounders`` and ``chunk_rows`` are those of ``LatentAligner``;
    the training set also decides what confounders explain of left-out rows. Folds that would have fewer than ten rows
    are put together, down to five. ``frame.attrs`` has the numbers of rows (``n``) and of rows with each covariate
    (``n_pairs``).

    >>> import covalign as ca
    >>> s = ca.simulate.scenario("PN", n_samples=300)
    >>> frame = ca.cross_validated_frontier(s.Z, s.Y, [0, 0.5, 1])
    >>> frame["regime"].tolist()
    ['independent', 'tunable', 'strongest', 'exclusive']
    """
    folds, fixed = check_folds(folds), check_shrinkage(shrinkage)
    # A training set chooses its shrinkage by leaving out its own buckets, so it needs several.
    several = folds if folds >= 4 or fixed is not None else 3 * folds
    if is_dask(Z):
        lazy = dasks.given(Z, Y, confounders, None, missing, drop_first=drop_first, partial=False)
        coding, buckets = lazy.coding, dasks.fold_moments(lazy, several)
    else:
        Z = Z.tocsr() if sparse.issparse(Z) else Z if is_elsewhere(Z) or hasattr(Z, "shape") else np.asarray(Z)
        given = intake.given(Z, Y, confounders, chunk_rows=chunk_rows)
        Z, tables = nuisance.complete(given.rows, given.tables, missing)
        coding = nuisance.Coding.learn(tables, drop_first=drop_first)
        rows, encoded = coding.apply(Z, tables)
        covariates.refuse_constant(encoded)
        buckets = list(fold_moments(rows, encoded, several, coding.covariates.blocks, coding.q))
    if folds > FEW_FOLDS:
        buckets = list(sensible(buckets))
        folds = len(buckets)
    whole = merged(buckets)
    assert whole is not None  # empty input was refused before
    fitted, _ = adjusted(whole, coding.q)
    made = splits(buckets, folds, coding.q)
    if not made:
        raise too_few_rows(whole.n or 0, 2 * folds)
    if fixed is None:
        chosen = nested_shrinkages(buckets, folds, coding.q)
        overall = best_shrinkage(shrinkage_path(buckets, coding.q))
    else:
        chosen, overall = [fixed] * folds, fixed
    held = held_out_frontier(held_out(made, [chosen[split.fold] for split in made]), lams, whole.covariate_names)
    seen = regimes.frontier(fitted, lams, shrinkage=overall)
    key = held["lam"].fillna(-1)
    in_sample = seen.set_index(seen["lam"].fillna(-1)).loc[key, ["alignment", "coupling"]].to_numpy()
    held.insert(5, "alignment_in_sample", in_sample[:, 0])
    held.insert(6, "coupling_in_sample", in_sample[:, 1])
    held.attrs.update(shrinkage=overall, fold_shrinkages=chosen, n=whole.n)
    held.attrs["n_pairs"] = dict(zip(whole.covariate_names, whole.n_pairs.tolist(), strict=True))
    return held
