"""The regimes side by side as tidy frames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from covalign._core.checks import check_lam, listed_lams
from covalign._core.data_errors import no_exclusive
from covalign._core.linalg import Array, to_correlation
from covalign._core.messages import message, shown
from covalign._core.printed_frames import printed
from covalign.closed_form.crowded import only_strongest
from covalign.closed_form.regimes.four_regimes import mixing
from covalign.closed_form.regimes.map_measures import coupling, mean_or_nan, observed_alignment
from covalign.closed_form.regimes.polar import Polar, whitened_polar
from covalign.moments.incomplete import Rows
from covalign.moments.moments import Moments

DEFAULT_LAMS = tuple(np.linspace(0, 1, 21).round(2).tolist())
FRONTIER_COLUMNS = (  # of all kinds of frontiers; a covariate of the same name becomes "... (covariate)" in all of them
    *("regime", "lam", "alignment", "alignment_se", "coupling", "alignment_in_sample", "coupling_in_sample"),
    *("held_out_alignment", "held_out_alignment_se", "held_out_coupling", "exact_alignment"),
)


def frontier(m: Moments, lams: Iterable[float] | None = None, *, shrinkage: float = 0.0) -> pd.DataFrame:
    """One row per lambda, and the exclusive regime if it exists: regime, lam, alignment, coupling, each covariate.

    lam = 0 is called independent, lam = 1 strongest, others tunable. If there is no exclusive row,
    ``frame.attrs["exclusive"]`` says why.

    >>> import covalign as ca
    >>> m = ca.simulate.population_moments("PN")
    >>> ca.regimes.frontier(m, [0.5, 1])
          regime  lam  alignment  coupling
    0    tunable  0.5   0.629183  1.235786
    1  strongest  1.0   0.670359  8.256645
    2  exclusive  NaN   0.350956  4.103940
    <BLANKLINE>
    [3 rows x 9 columns, also 'y0', 'y1', 'y2', 'y3', 'y4']
    """
    return printed(frontier_of(whitened_polar(m, shrinkage), m, lams, m.covariate_names), 4)


def frontier_of(polar: Polar, rows: Rows, lams: Iterable[float] | None, names: Sequence[str]) -> pd.DataFrame:
    """The frontier of regimes that are solved already, on the moments of any rows, with gaps or without.

    >>> import covalign as ca
    >>> m = ca.simulate.population_moments("PN")
    >>> polar = ca.regimes.whitened_polar(m)
    >>> ca.regimes.frontier_of(polar, m, [0.5], m.covariate_names).equals(ca.regimes.frontier(m, [0.5]))
    True
    """
    reduced, made = rows.transform(polar.T_0), []
    settings, why_not = frontier_settings(polar, lams)
    for regime, lam in settings:
        F = mixing(polar, regime, lam)
        made.append((regime, lam, observed_alignment(F, reduced), coupling(F, reduced)))
    frame = frontier_frame(made, names)
    frame.attrs["exclusive"] = why_not
    return frame


def frontier_settings(polar: Polar, lams: Iterable[float] | None) -> tuple[list[tuple[str, float]], str | None]:
    """(regime, lam) of every row of a frontier, and the reason if the exclusive regime does not exist (else None).

    >>> import covalign as ca
    >>> m = ca.simulate.population_moments("PN")
    >>> polar = ca.regimes.whitened_polar(m)
    >>> ca.regimes.frontier_settings(polar, [0, 0.5])
    ([('independent', 0.0), ('tunable', 0.5), ('exclusive', nan)], None)
    """
    checked = [check_lam(lam) for lam in (DEFAULT_LAMS if lams is None else listed_lams(lams))]
    named = {0.0: "independent", 1.0: "strongest"}
    if polar.crowded:
        p, k = polar.basis.shape[::-1]
        if lams is not None and 1.0 not in checked:
            raise only_strongest(p, k)
        return [("strongest", 1.0)], str(only_strongest(p, k))
    settings = [(named.get(lam, "tunable"), lam) for lam in checked]
    if polar.M_inverse is None:
        return settings, str(no_exclusive(polar.dependent))
    return [*settings, ("exclusive", float("nan"))], None


def frontier_frame(rows: Sequence[tuple[str, float, Array, float]], names: Sequence[str]) -> pd.DataFrame:
    """Tidy rows (regime, lam, alignment per covariate, coupling) as a DataFrame.

    >>> import numpy as np, covalign as ca
    >>> ca.regimes.frontier_frame([("tunable", 0.5, np.array([0.8, 0.6]), 0.1)], ["age", "dose"]).columns.tolist()
    ['regime', 'lam', 'alignment', 'coupling', 'age', 'dose']
    """
    head = pd.DataFrame(
        {
            "regime": [row[0] for row in rows],
            "lam": [row[1] for row in rows],
            "alignment": [mean_or_nan(row[2]) for row in rows],
            "coupling": [row[3] for row in rows],
        }
    )
    columns = [f"{name} (covariate)" if name in FRONTIER_COLUMNS else name for name in names]
    return pd.concat([head, pd.DataFrame(np.array([row[2] for row in rows]), columns=columns)], axis=1)


def matrices(
    m: Moments, settings: Iterable[tuple[str, float]] | None = None, *, shrinkage: float = 0.0
) -> pd.DataFrame:
    """corr(z~, y) and corr(z~) of several regimes as a tidy frame: regime, lam, matrix, row, column, value.

    >>> import covalign as ca
    >>> m = ca.simulate.population_moments("PN")
    >>> frame = ca.regimes.matrices(m, [("exclusive", 0)])
    >>> frame[(frame["matrix"] == "corr(z~, y)") & (frame["row"] == "y0")]["value"].round(2).abs().tolist()
    [0.47, 0.0, 0.0, 0.0, 0.0]
    """
    polar = whitened_polar(m, shrinkage)
    reduced = m.transform(polar.T_0)
    if settings is None:
        settings = [("exclusive", np.nan)] if polar.M_inverse is not None else []
        ends = [] if polar.crowded else [("independent", 0.0), ("tunable", 0.5)]
        settings = [*settings, *ends, ("strongest", 1.0)]
    frames, settings = [], _checked_settings(settings)
    for regime, lam in settings:
        of = reduced.transform(mixing(polar, regime, lam))
        sd_z, sd_y = np.sqrt(np.diag(of.cov_z)), np.sqrt(np.diag(of.cov_y))
        for matrix, C in (("corr(z~, y)", of.cov_zy / sd_z[:, None] / sd_y), ("corr(z~)", to_correlation(of.cov_z))):
            names = np.array(m.covariate_names, dtype=object)
            tidy = {"row": np.tile(names, len(names)), "column": np.repeat(names, len(names)), "value": C.T.ravel()}
            frames.append(pd.DataFrame({"regime": regime, "lam": lam, "matrix": matrix, **tidy}))
    return pd.concat(frames, ignore_index=True)


def _checked_settings(settings: Any) -> list[tuple[str, float]]:
    several = isinstance(settings, Iterable) and not isinstance(settings, str | bytes | Mapping)
    pairs = list(settings) if several and getattr(settings, "ndim", 1) > 0 else []
    if not pairs or not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in pairs):
        problem, remedy = "settings needs pairs of a regime and lambda", 'for example [("tunable", 0.5)]'
        raise ValueError(message(problem, got=shown(settings), remedy=remedy))
    return [tuple(pair) for pair in pairs]
