"""More covariates than dimensions: the strongest regime and its held-out numbers; everything else is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import covalign as ca
from covalign import report
from covalign.closed_form import regimes, validation
from covalign.closed_form.crowded import least_coupling
from covalign.closed_form.shrinkage import Ridge
from covalign.closed_form.splits import splits
from covalign.moments.incomplete import merged
from covalign.show.report.facts import has_slider, measured
from tests.core.test_wide_rows import penalty
from tests.core.test_wide_rows import regressions as ridge_of_training_set

N, K, P = 400, 6, 10


def rows(n=N, k=K, p=P, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, k)) @ rng.normal(size=(k, k)) + 3
    return Z, 0.4 * Z @ rng.normal(size=(k, p)) + rng.normal(size=(n, p))


Z, Y = rows()


def regressions(Z, Y, rho):
    """Ridge regressions of standardised covariates, from their definition."""
    z, y = Z - Z.mean(axis=0), (Y - Y.mean(axis=0)) / Y.std(axis=0)
    S = z.T @ z / len(z)
    return np.linalg.solve((1 - rho) * S + rho * np.trace(S) / len(S) * np.eye(len(S)), z.T @ y / len(z))


@pytest.fixture(scope="module")
def fitted():
    return ca.LatentAligner("strongest").fit(Z, Y)


@pytest.mark.parametrize("rho", [0.0, 0.2, 0.9])
def test_dimensions_are_the_regressions_with_variance_1(rho):
    al = ca.LatentAligner("strongest", shrinkage=rho).fit(Z, Y)
    predicted = (Z - Z.mean(axis=0)) @ regressions(Z, Y, rho)
    np.testing.assert_allclose(al.transform(Z), predicted / predicted.std(axis=0), atol=1e-10)
    np.testing.assert_allclose(al.T_, regimes.strongest(al.moments_, shrinkage=rho), atol=1e-12)
    correlation = [np.corrcoef(predicted[:, p], Y[:, p])[0, 1] for p in range(P)]
    np.testing.assert_allclose(al.alignment_, correlation, atol=1e-12)
    C = np.corrcoef(predicted.T)
    assert al.coupling_ == pytest.approx(np.sum(C**2) - P, rel=1e-10)
    assert al.coupling_ >= least_coupling(P, K)
    assert (al.rank_, al.lam_) == (K, 1.0)


def test_without_shrinkage_no_map_is_more_aligned():
    al, rng = ca.LatentAligner("strongest", shrinkage=0.0).fit(Z, Y), np.random.default_rng(1)
    for size in (1e-3, 1e-1, 10.0):
        T = al.T_ + size * rng.normal(size=al.T_.shape) * np.abs(al.T_).max()
        assert np.all(regimes.alignment(T, al.moments_) < al.alignment_)


def test_the_least_coupling_is_reached_by_directions_120_degrees_apart():
    angle = 2 * np.pi * np.arange(3) / 3
    T = np.column_stack([np.cos(angle), np.sin(angle)])
    m = ca.Moments.from_covariances(np.eye(2), 0.5 * T.T, 0.25 * T @ T.T + 0.75 * np.eye(3))
    assert regimes.coupling(regimes.strongest(m), m) == pytest.approx(least_coupling(3, 2))


def test_held_out_numbers_are_those_of_fits_without_each_group():
    groups = np.arange(N) % 5
    frame = ca.cross_validated_frontier(Z, Y, shrinkage=0.1, groups=groups, folds=5)
    z, y = np.empty((N, P)), Y - Y.mean(axis=0)
    for g in range(5):
        train, test = groups != g, groups == g
        B = regressions(Z[train], Y[train], 0.1)
        own = (Z[train] - Z[train].mean(axis=0)) @ B
        z[test] = (Z[test] - Z[train].mean(axis=0)) @ B / own.std(axis=0)
    expected = [np.corrcoef(z[:, p], y[:, p])[0, 1] for p in range(P)]
    np.testing.assert_allclose(frame[[f"y{p}" for p in range(P)]].iloc[0].astype(float), expected, atol=1e-10)
    assert frame["regime"].tolist() == ["strongest"]


def test_held_out_numbers_are_lower_than_those_of_fitted_rows():
    many, labels = rows(4060, 15, 25)
    al = ca.LatentAligner("strongest").fit(many[:60], labels[:60])
    summary = al.summary()
    new = al.transform(many[60:])
    true = np.mean([np.corrcoef(new[:, p], labels[60:, p])[0, 1] for p in range(25)])
    assert summary["held_out"].mean() < summary["in_sample"].mean()
    assert al.shrinkage_ > 0
    assert abs(summary["held_out"].mean() - true) < 0.1


def of_file(tmp_path):
    np.save(tmp_path / "Z.npy", Z)
    return tmp_path / "Z.npy"


@pytest.mark.parametrize("how", ["file", "dask", "batches", "partial", "sparse", "saved"])
def test_every_way_to_pass_rows_gives_the_same(how, fitted, tmp_path):
    al = ca.LatentAligner("strongest")
    if how == "file":
        al.fit(of_file(tmp_path), Y)
    if how == "dask":
        dask = pytest.importorskip("dask.array")
        al.fit(dask.from_array(Z, chunks=(97, K)), Y)
    if how == "batches":
        al.fit([(Z[i : i + 90], Y[i : i + 90]) for i in range(0, N, 90)])
    if how == "partial":
        al.partial_fit(Z[:150], Y[:150]).partial_fit(Z[150:], Y[150:])
    if how == "sparse":
        al.fit(pytest.importorskip("scipy.sparse").csr_array(Z), Y)
    if how == "saved":
        fitted.save(tmp_path / "model.covalign")
        al = ca.load(tmp_path / "model.covalign")
    np.testing.assert_allclose(al.T_, fitted.T_, atol=1e-9)
    pd.testing.assert_frame_equal(al.summary(), fitted.summary(), rtol=1e-7, check_exact=False)


def test_confounders_are_taken_out_first():
    C = np.random.default_rng(2).normal(size=(N, 1))
    al = ca.LatentAligner("strongest", shrinkage=0.1).fit(Z + 2 * C, Y - C, confounders=C)
    design = np.column_stack([np.ones(N), C])
    left = [of - design @ np.linalg.lstsq(design, of, rcond=None)[0] for of in (Z + 2 * C, Y - C)]
    predicted = left[0] @ regressions(*left, 0.1)
    np.testing.assert_allclose(al.transform(Z + 2 * C, confounders=C), predicted / predicted.std(axis=0), atol=1e-8)


def test_a_frontier_has_one_row(fitted):
    frame = fitted.frontier()
    assert frame["regime"].tolist() == ["strongest"]
    assert np.isnan(frame["exact_alignment"]).all()
    assert frame["held_out_alignment"].iloc[0] == pytest.approx(fitted.summary()["held_out"].mean())
    assert "at least 10 latent dimensions" in frame.attrs["exclusive"]
    assert len(fitted._html_repr()) > 0


def test_covariates_with_gaps_use_their_rows():
    gaps = Y.copy()
    gaps[:100, 0] = np.nan
    al = ca.LatentAligner("strongest").fit(Z, gaps)
    assert al.n_pairs_["y0"] == N - 100
    assert al.summary()["held_out"].between(0.3, 1).all()


def test_classes_with_a_rare_level():
    """A level with one row is unknown to the training set without it."""
    rng = np.random.default_rng(3)
    label = rng.integers(0, 9, N)
    label[0] = 9
    rows = rng.normal(size=(N, 5)) + rng.normal(size=(10, 5))[label]
    al = ca.LatentAligner("strongest", drop_first=False).fit(rows, pd.DataFrame({"class": [f"c{i}" for i in label]}))
    summary = al.summary()
    assert np.isnan(summary.loc["class_c9", "held_out"])
    assert summary["held_out"].drop("class_c9").notna().all()
    assert np.isfinite(al.T_).all()


def test_fewer_rows_than_columns():
    """In the space of the rows, and from the moments of every training set."""
    wide, labels = rows(80, 220, 240, seed=4)
    al = ca.LatentAligner("strongest").fit(wide, labels)
    checked = al._validated()
    assert isinstance(checked, validation.WideValidation)
    predicted = al.transform(wide)
    np.testing.assert_allclose(predicted.std(axis=0), 1, atol=1e-8)
    held, rho, D = (
        checked.held_out(al._polar(), [Ridge(0.1)] * 5, Ridge(0.1), False),
        0.1,
        regimes.penalty(merged(al._folds)),
    )
    z, y, zy = [], [], []  # of left-out rows, from the map of every training set
    for of, split in zip(held.folds, splits(al._folds, 5), strict=True):
        T = regimes.mixing(of.polar, "strongest") @ of.polar.T_0
        B = ridge_of_training_set(split.train, D, penalty(al._folds, 5, rho))
        on_rows = B.T @ split.train.root
        np.testing.assert_allclose(T @ split.train.root, on_rows / np.linalg.norm(on_rows, axis=1)[:, None], atol=1e-8)
        for part in split.parts:
            own = part.shifted(-split.train.mean_z).transform(T)
            z.append((own.n, own.mean_z, np.diag(own.cov_z) + own.mean_z**2))
            y.append((own.n, own.mean_y, np.diag(own.cov_y) + own.mean_y**2))
            zy.append(own.n * (np.diag(own.cov_zy) + own.mean_z * own.mean_y))
    (mean_z, zz), (mean_y, yy) = ([sum(one[0] * one[at] for one in of) / len(wide) for at in (1, 2)] for of in (z, y))
    expected = (sum(zy) / len(wide) - mean_z * mean_y) / np.sqrt((zz - mean_z**2) * (yy - mean_y**2))
    np.testing.assert_allclose(held.measure("strongest", 1.0).alignment.value, expected, atol=1e-8)


def test_rows_come_back_exactly(fitted):
    """P >= K dimensions of rank K determine Z."""
    np.testing.assert_allclose(fitted.inverse_transform(fitted.transform(Z)), Z, atol=1e-9)


def test_an_erased_covariate_is_uncorrelated(fitted):
    m = ca.Moments.from_arrays(fitted.erase(Z, "y3"), Y)
    assert np.abs(m.cov_zy[:, 3]).max() < 1e-9


def test_a_permutation_test_repeats_the_procedure(fitted):
    found = fitted.permutation_test(Z, Y, 19)
    np.testing.assert_allclose(found["alignment"].iloc[:-1], fitted.alignment_, atol=1e-9)
    order = np.random.default_rng(5).permutation(N)
    luck = ca.LatentAligner("strongest", shrinkage=fitted.shrinkage_).fit(Z, Y[order]).alignment_.mean()
    assert abs(found.loc["overall", "by_chance"] - luck) < 0.06
    assert found.loc["overall", "p_value"] == 0.05


def test_a_report_has_the_numbers_of_the_summary(fitted, tmp_path):
    facts, summary = report.summary(fitted), fitted.summary()
    found = measured(facts, "strongest", 1.0)
    np.testing.assert_allclose(found["alignment"], summary["in_sample"], atol=1e-9)
    for name in ("low", "high"):
        np.testing.assert_allclose(found["held_out"][name], summary[name], atol=1e-8)
    np.testing.assert_allclose(found["held_out"]["coupling"], fitted._measured().coupling, rtol=1e-8)
    assert not has_slider(facts)
    page = report.write(fitted, tmp_path / "report.html").read_text()
    assert "only the strongest regime" in page
    assert f"<td>{summary['held_out']['y0']:.3f}</td>" in page
    assert "10 covariates in 6 dimensions have no λ" in page


@pytest.mark.parametrize("regime", ["independent", "tunable", "exclusive"])
def test_other_regimes_are_refused_before_rows_are_read(regime):
    with pytest.raises(ValueError, match=r'10 covariates need at least 10 latent dimensions, got 6.*"strongest"'):
        ca.LatentAligner(regime).fit(Z * np.nan, Y)
    assert ca.LatentAligner("tunable", 1.0).fit(Z, Y).lam_ == 1.0


def test_a_fitted_model_refuses_what_does_not_exist(fitted):
    asked = [
        lambda: fitted.at(0.5),
        lambda: fitted.at(regime="independent"),
        lambda: fitted.at(max_coupling=1.0),
        lambda: fitted.at(max_coupling=1.0, exact=True),
        lambda: fitted.frontier([0.0, 0.5]),
        lambda: fitted.erase(Z, "y0", protect_others=True),
        lambda: fitted.steer(Z, {"y0": 1.0}),
        lambda: regimes.exclusive(merged(fitted._folds)),
    ]
    for ask in asked:
        with pytest.raises(ValueError, match="at least 10 latent dimensions, got 6"):
            ask()
