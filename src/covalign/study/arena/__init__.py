"""The arena: every method on real data, judged on samples that were left out of the fit."""
