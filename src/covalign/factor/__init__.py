"""Informed factor analysis: a Bayesian multi-view factor model whose first P factors are informed by P covariates.

Reads as the model. ``inference``: ``state`` (q-factors), ``updates`` (one function each), ``bound`` (likelihood minus
named divergences), ``rotation`` (the step over all invertible maps), ``engines`` and ``patterns`` (data as sums), two
kernels (``complete``, ``gaps``), ``start``, ``sweeps`` (stage 1), ``realignment`` (stage 2), ``uncertainty``.
Around it: ``preparation`` (tables in memory), ``chunked_fit`` (rows of any number: ``views`` reads, ``view_sums`` sums,
``combinations`` makes an engine of sums with gaps), ``table`` and ``fitted_rows`` (what a fit keeps), ``new_samples``,
``results`` and ``sample_results`` (what a model says), ``informed`` (the scikit-learn face).
"""

from covalign.factor.informed import InformedFactorAnalysis

__all__ = ["InformedFactorAnalysis"]
