"""The four regimes in closed form: moments in, T (P x K) out, TZ has unit variances and dimension p stands for y_p.

With A = W S_zy = U D V' (W any whitening of Z, Y standardised; thin SVD), T_0 = V U' W and M = V D V', and every regime
is unit_rows(f(M)) T_0:

    independent   f(M) = I                      TZ uncorrelated
    tunable       f(M) = (1 - lam) I + lam M    between the two
    strongest     f(M) = M                      least-squares regression, scaled: the largest possible corr(z~_p, y_p)
    exclusive     f(M) = M^-1                   z~_p uncorrelated with every y_q, q != p

Per covariate, alignment never falls in the order exclusive, independent, tunable (rising in lam), strongest.

**Ties.** Where S_zy has rank r < P (all dummies of a category), P - r dimensions of T_0 are uncorrelated with every
covariate, and the problem does not determine them. Of all solutions we take the one whose dimensions are closest to the
first P columns of Z (orthogonal Procrustes), a continuous choice that does not depend on row order or chunking.
A covariate that is uncorrelated with Z keeps its T_0 dimension under ``strongest``.

**More covariates than dimensions.** Only ``strongest`` exists (``crowded``).

>>> import covalign as ca
>>> m = ca.simulate.population_moments("PN")
>>> ca.regimes.frontier(m, [0, 0.5, 1])["coupling"].round(2).tolist()
[0.0, 1.24, 8.26, 4.1]
"""

from covalign.closed_form.regimes.four_regimes import (
    ENDS,
    exclusive,
    independent,
    lam_within,
    mixed,
    mixing,
    strongest,
    tunable,
    turned,
)
from covalign.closed_form.regimes.frontier_table import (
    DEFAULT_LAMS,
    FRONTIER_COLUMNS,
    frontier,
    frontier_frame,
    frontier_of,
    frontier_settings,
    matrices,
)
from covalign.closed_form.regimes.map_measures import (
    alignment,
    canonical_alignment,
    coupling,
    eta_squared,
    mean_or_nan,
    observed_alignment,
    squared_distance_from_identity,
)
from covalign.closed_form.regimes.polar import (
    MANY_COVARIATES,
    POWERS,
    REGULAR,
    SCALED,
    Polar,
    Whitened,
    penalty,
    penalty_of,
    polar_if_spanned,
    polar_of,
    rest_of_space,
    ridge,
    standardised_cross_covariance,
    whitened_polar,
)

__all__ = [
    "DEFAULT_LAMS",
    "ENDS",
    "FRONTIER_COLUMNS",
    "MANY_COVARIATES",
    "POWERS",
    "REGULAR",
    "SCALED",
    "Polar",
    "Whitened",
    "alignment",
    "canonical_alignment",
    "coupling",
    "eta_squared",
    "exclusive",
    "frontier",
    "frontier_frame",
    "frontier_of",
    "frontier_settings",
    "independent",
    "lam_within",
    "matrices",
    "mean_or_nan",
    "mixed",
    "mixing",
    "observed_alignment",
    "penalty",
    "penalty_of",
    "polar_if_spanned",
    "polar_of",
    "rest_of_space",
    "ridge",
    "squared_distance_from_identity",
    "standardised_cross_covariance",
    "strongest",
    "tunable",
    "turned",
    "whitened_polar",
]
