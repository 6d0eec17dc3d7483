"""Pure functions of moments: regimes, held-out judgement, permutation tests, erasing and steering, metrics."""
