"""The regimes of the factor model on real rows that were not fitted: what is promised at lambda 0, and the way to 1."""

from __future__ import annotations

import numpy as np
import pytest

from covalign.study.arena import bouts, collection, entrants
from covalign.study.profiles import Inputs
from covalign.study.scores import divisions


@pytest.mark.filterwarnings("ignore::covalign.exceptions.OwnershipWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", ["iris", "wine", "diabetes", "breast_cancer", "digits", "star98", "fair", "anes96"])
def test_lambda_0_uncouples_new_rows_and_more_lambda_aligns_more(name):
    inputs = Inputs()
    if name in collection.missing(inputs):
        pytest.skip(f"{name} is in a package that is not here")
    case = collection.case(name, inputs)
    n, p = case.Y.shape
    parts = []
    for train, test in divisions(case.Y, 3, 11, case.groups):
        old, new = case.rows(train), case.rows(test)
        place = entrants.ours(old, entrants.Rules(case.n_factors, 0, 1000, None)).placings["iFA"]
        parts.append((bouts.standardised(place(old.views), place(new.views)), test))
    alignment, coupling = bouts.frontier(bouts.joined(parts, n), case.Y)  # less what chance adds
    # A squared correlation of n independent rows has a standard deviation of sqrt(2) / n; every pair counts twice.
    assert coupling[0] < 0.1 + 2 * np.sqrt(p * (p - 1) / 2) * 2 * np.sqrt(2) / n
    se = (1 - alignment**2) / np.sqrt(n * p)
    assert np.all(alignment[1:] >= np.maximum.accumulate(alignment)[:-1] - se[1:])
    assert np.all(
        coupling[1:] >= np.maximum.accumulate(coupling)[:-1] - 4 * np.sqrt(np.maximum(coupling[1:], 0.05) / n)
    )
