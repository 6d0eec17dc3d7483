"""The frontier on rows that were not fitted, every choice nested inside the training sets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd

from covalign._core.checks import check_folds, check_shrinkage, listed_lams
from covalign._core.data_errors import too_few_rows
from covalign._core.printed_frames import printed
from covalign.aligner.latent import LatentAligner
from covalign.aligner.solution import refuse_unused_reference
from covalign.closed_form import regimes
from covalign.closed_form.heldout import held_out_frontier
from covalign.closed_form.shrinkage import Ridge, analytic_shrinkage, best_ridge
from covalign.closed_form.validation import validation
from covalign.moments.adjustment import adjusted
from covalign.moments.incomplete import merged


def cross_validated_frontier(
    Z: Any,
    Y: Any,
    lams: Iterable[float] | None = None,
    folds: int = 5,
    *,
    shrinkage: float | str = "auto",
    drop_first: bool = True,
    missing: str = "pairs",
    confounders: Any = None,
    groups: Any = None,
    chunk_rows: int | None = None,
) -> pd.DataFrame:
    """The frontier on rows that were not fitted, for about one pass over the data.

    ``alignment``, ``coupling`` and the covariates' columns are held out; ``alignment_in_sample`` and
    ``coupling_in_sample`` are what the fitted rows themselves show. With ``shrinkage="auto"`` each training set chooses
    its own by cross-validation inside it, so the left-out rows take no part in any choice. Z may be a path, or anything
    else ``covalign.open_rows`` takes. ``missing``, ``confounders``, ``groups`` and ``chunk_rows`` are those of
    ``LatentAligner``; the training set also decides what confounders explain of left-out rows. ``frame.attrs`` has the
    numbers of rows (``n``) and of rows with each covariate (``n_pairs``), and the ``categories`` as in ``summary``.

    >>> import covalign as ca
    >>> s = ca.simulate.scenario("PN", n_samples=300)
    >>> frame = ca.cross_validated_frontier(s.Z, s.Y, [0, 0.5, 1])
    >>> frame["regime"].tolist()
    ['independent', 'tunable', 'strongest', 'exclusive']
    """
    folds, fixed = check_folds(folds), check_shrinkage(shrinkage)
    lams = None if lams is None else listed_lams(lams)
    # Its regime does not matter here; the strongest one exists for any number of covariates.
    model = LatentAligner("strongest", folds=folds, drop_first=drop_first, missing=missing, chunk_rows=chunk_rows)
    model._check_parameters()
    coding, buckets, *_ = model._fitting().moments(Z, Y, confounders, None, groups)
    whole = merged(buckets)
    assert whole is not None  # empty input was refused before
    refuse_unused_reference(coding.covariates, whole)
    fitted, _ = adjusted(whole, coding.q)
    checked = validation(buckets, folds, coding.q, nested=fixed is None)
    if not checked.possible:
        raise too_few_rows(whole.n or 0, 2 * folds)
    path = checked.path() if fixed is None else None
    best = Ridge(fixed or 0.0) if path is None else best_ridge(path)
    overall = best or Ridge(analytic_shrinkage(fitted))
    chosen = checked.ridges(path, overall)
    polar = regimes.whitened_polar(fitted, *overall)
    left_out = checked.held_out(polar, chosen, overall, groups is not None)
    if left_out is None:
        raise too_few_rows(whole.n or 0, 2 * folds)
    held = held_out_frontier(left_out, lams, whole.covariate_names)
    seen = regimes.frontier_of(polar, fitted, lams, whole.covariate_names)
    key = held["lam"].fillna(-1)
    in_sample = seen.set_index(seen["lam"].fillna(-1)).loc[key, ["alignment", "coupling"]].to_numpy()
    held.insert(5, "alignment_in_sample", in_sample[:, 0])
    held.insert(6, "coupling_in_sample", in_sample[:, 1])
    held.attrs.update(shrinkage=overall.shrinkage, scale=overall.scale, n=whole.n)
    held.attrs["fold_shrinkages"] = [ridge.shrinkage for ridge in chosen]
    held.attrs["categories"] = coding.covariates.categories()
    held.attrs["n_pairs"] = dict(zip(whole.covariate_names, whole.n_pairs.tolist(), strict=True))
    return printed(held, held.shape[1] - len(whole.covariate_names))
