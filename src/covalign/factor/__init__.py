"""Informed factor analysis: a Bayesian multi-view factor model whose first P factors are informed by P covariates.

Reads as the model: ``state`` (q-factors), ``updates`` (one function each), ``bound`` (likelihood minus named
divergences), ``rotation`` (the step over all invertible maps), ``statistics`` (data as sums), ``start``, ``fitting``
(stage 1), ``realignment`` (stage 2), ``uncertainty`` (how sure), ``data`` (tables in), ``outofcore`` (rows of any
number in: ``streaming`` reads, ``gathering`` sums, ``combining`` makes an engine of sums with gaps), ``newcomers`` (new
samples), ``frames`` and ``tables`` (what it tells of itself), ``model`` (the scikit-learn face).
"""

from covalign.factor.informed import InformedFactorAnalysis

__all__ = ["InformedFactorAnalysis"]
