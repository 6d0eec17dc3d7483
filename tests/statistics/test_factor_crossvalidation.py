"""Factor crossvalidation: statements that need many repetitions, much memory or real data."""

from __future__ import annotations

import numpy as np
import pandas as pd

from covalign import InformedFactorAnalysis
from tests.core.test_factor_crossvalidation import data


def test_noise_is_called_noise_though_the_fitted_samples_flatter():
    rng = np.random.default_rng(2)
    X, Y = rng.standard_normal((150, 30)), rng.standard_normal((150, 2))
    # Factors of the paper's model know their covariates.
    for settings, least in (({}, 0.3), ({"regime_from": "model", "beta_prior": 0.0}, 0.9)):
        fa = InformedFactorAnalysis(4, **settings).fit(X, Y)
        table = fa.realign(regime="strongest").summary()
        assert table["in_sample"].max() > least
        assert (table["held_out"].abs() < 0.3).all()
        assert (table["low"] < 0).all()
        assert "captured" not in set(fa.informed_["verdict"])


def test_gaps_and_categories_take_part():
    X, Y = data(seed=3)
    X = pd.DataFrame(X, columns=[f"x{d}" for d in range(40)])
    X.iloc[:60, 20:] = np.nan
    frame = pd.DataFrame(Y[:, :2], columns=["age", "dose"])
    frame.loc[5:30, "dose"] = np.nan
    frame["stage"] = np.array(["i", "ii", "iii"])[np.digitize(Y[:, 2], [-0.5, 0.5])]
    model = InformedFactorAnalysis(8, tol=1e-5).fit(X, frame)
    table = model.realign(0.5).summary()
    assert table.index.tolist() == ["age", "dose", "stage_ii", "stage_iii"]
    assert table["rows"].tolist() == [240, 214, 240, 240]
    assert table.loc["age", "held_out"] > 0.5
    assert table.drop(columns="eta_squared").notna().all().all()
    assert table["eta_squared"].isna().tolist() == [True, True, False, False]
