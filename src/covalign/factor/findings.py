"""What the factors of a model are about: gene sets, other columns of the metadata, the top features of all factors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from covalign.closed_form.aligned_model import AlignedModel
from covalign.factor import enrichment as set_enrichment
from covalign.factor import frames, metadata_tests


class Findings(AlignedModel):
    """The part of ``InformedFactorAnalysis`` that names its factors; nothing here changes the model."""

    def enrichment(
        self,
        gene_sets: Any,
        view: str | None = None,
        factor: Any = None,
        *,
        method: str = "camera",
        statistic: str = "loading",
        correlation: float | None = None,
        min_size: int = 5,
        max_size: int = 500,
    ) -> pd.DataFrame:
        """Gene sets whose loadings are above ("up") or below ("down") those of the other genes of the view.

        One row for every view, factor and set: view, factor, set, size, correlation, direction, statistic, p, q; for
        each factor the smallest p first. ``gene_sets`` is a dict name -> names, or the path of a GMT file. Without
        ``view`` all views are tested, without ``factor`` all active factors.

        ``method`` is "camera" (Wu and Smyth 2012: a t-test of the mean loading) or "rank" (Wilcoxon). Both count genes
        of a set as correlated: the variance of their mean is multiplied by 1 + (size - 1) ``correlation``, the mean
        correlation of the residuals x - W z, or a number that you give. p is two-sided; q is that of Benjamini and
        Hochberg over all sets and views of a factor. ``statistic`` is "loading", or "ratio": loading / std.

        Names are matched exactly, else without regard to capitals. A set needs ``min_size`` to ``max_size`` features.
        ``attrs`` of the frame say which names are no features and which sets were left out, and why. A model that did
        not keep its rows (a stream, or rows read in chunks and saved) takes .01 as correlation; ``attrs["note"]`` says
        so.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200, n_features=60)
        >>> fa = ca.InformedFactorAnalysis(10).fit(s.X, s.Y)
        >>> first = fa.top_features("y0", n=60).query("loading > 0")["feature"][:8]
        >>> found = fa.enrichment({"heat shock": first, "others": range(30, 40)}, factor="y0")
        >>> found[["set", "direction"]].iloc[0].tolist()
        ['heat shock', 'up']
        """
        self._check_fitted()
        asked = set_enrichment.Asked(method, statistic, correlation, min_size, max_size)
        return set_enrichment.enrichment(self, gene_sets, view, factor, asked)

    def associations(
        self, metadata: Any, *, survival: Sequence[str] | None = None, method: str = "pearson"
    ) -> pd.DataFrame:
        """Every factor against every column of a table that the model did not use, the smallest p first.

        Columns: factor, informed (whether a covariate informs the factor), column, measure, value, rows, p, q.
        ``metadata`` is a table, matched by index where both have one, or its path. As in ``metrics.association``,
        numbers, flags and ordered categories have a correlation, other categories an eta squared, with the p of the
        t-test and of the analysis of variance; ``method="rank"`` gives Spearman's correlation and the test of Kruskal
        and Wallis. q is that of Benjamini and Hochberg over all rows of the frame. p takes samples as independent.

        ``survival=("months", "died")`` adds a Cox regression on each factor: the log hazard ratio of one standard
        deviation (``pip install 'covalign[survival]'``). ``attrs["left_out"]`` says which columns were not tested:
        covariates and confounders of the model, dates, names.

        >>> import covalign as ca, pandas as pd
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> fa = ca.InformedFactorAnalysis(10).fit(s.X, s.Y)
        >>> site = pd.DataFrame({"site": ["north", "south", "west", "east"] * 50})
        >>> fa.associations(site).columns.tolist()
        ['factor', 'informed', 'column', 'measure', 'value', 'rows', 'p', 'q']
        """
        self._check_fitted()
        return metadata_tests.associations(self, metadata, survival, method)

    def features_frame(self, n: int = 20, factors: Any = None, views: Any = None) -> pd.DataFrame:
        """The n features with the largest |loading| of every view and factor, in one table.

        Columns: view, factor, rank, feature, loading, std. Of some ``factors`` and ``views`` only (a name or several).

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200, n_features={"rna": 30, "protein": 20})
        >>> fa = ca.InformedFactorAnalysis(10).fit(s.X, s.Y)
        >>> fa.features_frame(n=3).shape
        (60, 6)
        """
        self._check_fitted()
        return frames.top_features(self, factors, views, n)
