"""InformedFactorAnalysis: recovery, regimes, new samples, files, and whatever data people bring."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

import covalign as ca
from covalign import InformedFactorAnalysis
from covalign.closed_form import regimes
from covalign.exceptions import DependentCovariatesError, FileFormatError, OwnershipWarning
from tests.conftest import thorough


def scenario(name="PN", n=200, **settings):
    return ca.simulate.scenario(
        name, n_samples=n, **{"n_features": 30, "n_factors": 6, "n_covariates": 3, "random_state": 0, **settings}
    )


def recovery(fa, s) -> list[float]:
    return [np.corrcoef(fa.factors_[:, p], s.Z[:, p])[0, 1] for p in range(len(s.beta))]


@pytest.fixture(scope="module")
def fitted():
    s = scenario(n_features={"rna": 20, "protein": 10})
    X = {view: pd.DataFrame(values).add_prefix(view) for view, values in s.X.items()}
    Y = pd.DataFrame(s.Y, columns=["age", "dose", "grade"])
    return s, X, Y, InformedFactorAnalysis(6).fit(X, Y)


# -- recovery ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("b", "expected"), [(1.0, 0.60), (2 / 3, 0.40)])
def test_alignment_before_realigning_is_the_mean_beta(b, expected):
    aligned = []
    for seed in range(5):
        s = ca.simulate.scenario("PN", n_samples=500, b=b, random_state=seed)
        aligned.append(ca.metrics.alignment(InformedFactorAnalysis(10).fit(s.X, s.Y).factors_, s.Y))
    assert np.mean(aligned) == pytest.approx(expected, abs=0.03)


def test_paper_settings_stop_early():
    s = ca.simulate.scenario("PN", n_samples=300, random_state=0)
    paper = InformedFactorAnalysis.paper(10)
    assert (paper.posterior, paper.accelerate, paper.pretrain_iter, paper.tol) == ("coordinates", False, 250, 5e-7)
    paper.fit(s.X, s.Y)
    converged = InformedFactorAnalysis(10, posterior="mean_field", supervision=1.0, beta_prior=0.0).fit(s.X, s.Y)
    assert converged.elbo_[-1] > paper.elbo_[-1] + 5
    assert np.mean(recovery(paper, s)) > 0.9
    assert np.diff(paper.elbo_).min() >= -1e-9 * abs(paper.elbo_[-1])


@pytest.mark.parametrize("accelerate", [True, False])
def test_warm_up_does_not_look_at_the_covariates(accelerate):
    from covalign.factor.inference import sweeps as fitting
    from covalign.factor.inference.start import start

    s = scenario(random_state=1)
    problem = InformedFactorAnalysis(6).fit(s.X, s.Y)._problem
    begun = start(problem)._replace(beta=np.zeros(3))
    warm = fitting.fit(problem, begun, accelerate, 30, 1e-8, supervised=False)
    np.testing.assert_array_equal(warm.state.beta, 0)
    assert np.all(np.diff(warm.elbo) >= -1e-9 * abs(warm.elbo[-1]))
    after = InformedFactorAnalysis(6, pretrain_iter=30).fit(s.X, s.Y)
    assert after.elbo_[-1] == pytest.approx(InformedFactorAnalysis(6).fit(s.X, s.Y).elbo_[-1], abs=0.1)


def test_views_can_keep_their_own_scale(fitted):
    _, X, Y, fa = fitted
    larger = {"rna": X["rna"] * 100, "protein": X["protein"]}
    as_before = InformedFactorAnalysis(6).fit(larger, Y)
    np.testing.assert_allclose(as_before.factors_, fa.factors_, atol=1e-6)
    raw = InformedFactorAnalysis(6, scale={"rna": False}).fit(larger, Y)
    ratio = np.abs(raw.loadings_["rna"]).mean() / np.abs(raw.loadings_["protein"]).mean()
    assert ratio > 50  # in the units of the view
    np.testing.assert_allclose(raw.reconstruct()["rna"].mean(axis=0), larger["rna"].mean(), rtol=1e-6)


def test_mirror_images_are_told_apart():
    """Scenario N: no covariate sees one direction of the informed factors; X does."""
    s = ca.simulate.scenario("N", n_samples=5000, random_state=0)  # the plain start leads to the mirror image here
    assert min(recovery(InformedFactorAnalysis(10).fit(s.X, s.Y), s)) > 0.6


def test_restarts_keep_the_best_bound():
    s = scenario()
    one, four = (InformedFactorAnalysis(6, n_init=n, random_state=0).fit(s.X, s.Y) for n in (1, 4))
    assert four.elbo_[-1] >= one.elbo_[-1] - 1e-6
    again = InformedFactorAnalysis(6, n_init=4, random_state=0).fit(s.X, s.Y)
    np.testing.assert_array_equal(four.factors_, again.factors_)


def test_superfluous_factors_are_turned_off():
    s = scenario(n=500)
    fa = InformedFactorAnalysis(15).fit(s.X, s.Y)
    assert fa.active_factors_.sum() == 6
    assert fa.active_factors_[:3].all()
    np.testing.assert_allclose(recovery(fa, s), recovery(InformedFactorAnalysis(6).fit(s.X, s.Y), s), atol=0.03)


def test_engines_agree():
    s = scenario(random_state=1)
    gram, dense = (InformedFactorAnalysis(6, engine=engine).fit(s.X, s.Y) for engine in ("gram", "dense"))
    assert gram.elbo_[-1] == pytest.approx(dense.elbo_[-1], rel=1e-9)
    np.testing.assert_allclose(gram.factors_, dense.factors_, atol=1e-6)


def test_views_and_names(fitted):
    s, X, _, fa = fitted
    joined = InformedFactorAnalysis(6).fit(np.hstack(list(s.X.values())), s.Y)
    assert list(fa.loadings_) == ["rna", "protein"]
    assert fa.loadings_["protein"].shape == (10, 6)
    assert fa.factor_names_ == ["age", "dose", "grade", "free0", "free1", "free2"]
    assert joined.ard_precision_["X"].shape == (6,)
    top = fa.top_features("dose", "rna", n=4)
    assert top["feature"].str.startswith("rna").all()
    assert top["loading"].abs().is_monotonic_decreasing
    pd.testing.assert_frame_equal(top, fa.top_features(1, "rna", n=4))
    assert set(fa.noise_precision_) == set(X)
    np.testing.assert_allclose(fa.intercept_, 0)


@pytest.mark.parametrize("state", [np.random.RandomState(0), np.random.default_rng(0), np.random.SeedSequence(0), None])
def test_any_source_of_random_numbers(state):
    s = ca.simulate.scenario("PN", n_samples=60, n_covariates=2)
    fa = InformedFactorAnalysis(3, random_state=state, n_init=2, supervision=1.0).fit(s.X, s.Y)
    assert np.isfinite(fa.elbo_[-1])


@pytest.mark.parametrize("state", ["zero", -1, 0.5])
def test_what_is_no_source_of_random_numbers(state):
    s = ca.simulate.scenario("PN", n_samples=60, n_covariates=2)
    with pytest.raises(ValueError, match="random_state needs"):
        InformedFactorAnalysis(3, random_state=state).fit(s.X, s.Y)
    with pytest.raises(ValueError, match="random_state needs"):
        ca.simulate.scenario("PN", random_state=state)


@pytest.mark.parametrize("factor", ["doze", 6, -7])
def test_a_factor_that_is_not_there(fitted, factor):
    with pytest.raises(ValueError, match="dose"):
        fitted[-1].top_features(factor)


def test_informed_factors_point_at_their_covariates(fitted):
    _, _, Y, fa = fitted
    assert min(ca.metrics.alignment(fa.factors_, Y, per_covariate=True)) > 0


def test_categories_become_named_factors():
    rng = np.random.default_rng(0)
    Y = pd.DataFrame({"subtype": rng.choice(["A", "B", "C"], 200), "smoker": rng.random(200) < 0.5})
    dummies = ca.covariates.encode(Y, drop_first=False)
    X = dummies.to_numpy() @ rng.standard_normal((4, 25)) + rng.standard_normal((200, 25))
    fa = InformedFactorAnalysis(6, drop_first=False).fit(X, Y)
    assert fa.covariate_names_ == ["subtype_A", "subtype_B", "subtype_C", "smoker"]
    with pytest.raises(DependentCovariatesError, match="subtype_A"):
        fa.realign(regime="exclusive")
    assert np.isfinite(fa.realign(1.0).factors_).all()  # T_1 is singular here
    fa = InformedFactorAnalysis(6).fit(X, Y)
    assert fa.covariate_names_ == ["subtype_B", "subtype_C", "smoker"]
    assert np.isfinite(fa.realign(regime="exclusive").factors_).all()


# -- realigning -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("posterior", ["full", "mean_field"])
def test_in_the_papers_way_informed_factors_are_held_at_those_of_the_regime(posterior):
    s = scenario(n=400)
    fa = InformedFactorAnalysis(6, posterior, regime_from="model").fit(s.X, s.Y)
    before = fa.factors_.copy()
    path = fa.path([0, 0.5, 1])
    aligned = [ca.metrics.alignment(model.factors_, s.Y) for model in path.values()]
    coupled = [ca.metrics.coupling(model.factors_[:, :3]) for model in path.values()]
    assert aligned == sorted(aligned)
    assert coupled == sorted(coupled)
    S_y = np.corrcoef(s.Y.T)
    S_z = np.outer(fa.beta_, fa.beta_) * S_y + np.diag(1 - fa.beta_**2)
    T = regimes.tunable(ca.Moments.from_covariances(S_z, fa.beta_[:, None] * S_y, S_y), 0.5)
    np.testing.assert_allclose(path[0.5].T_, T, atol=1e-8)
    np.testing.assert_allclose(path[0.5].factors_[:, :3], fa.factors_[:, :3] @ T.T, atol=1e-10)
    np.testing.assert_array_equal(fa.factors_, before)
    for model in path.values():
        assert np.all(np.diff(model.elbo_) >= -1e-9 * abs(model.elbo_[-1]))
        assert model.total_variance_explained()["X"] == pytest.approx(fa.total_variance_explained()["X"], abs=0.02)
    np.testing.assert_allclose(path[0.5].realign(1.0).factors_, path[1].factors_, atol=1e-10)  # stage 1 is shared


def test_exclusive_realignment():
    s = scenario(n=2000)
    fa = InformedFactorAnalysis(6).fit(s.X, s.Y).realign(regime="exclusive")
    cross = np.corrcoef(fa.factors_[:, :3].T, s.Y.T)[:3, 3:]
    assert np.abs(cross - np.diag(np.diag(cross))).max() < 0.05
    assert fa.regime_ == "exclusive"


@pytest.mark.parametrize("settings", [{}, {"lam": 0.5, "regime": "exclusive"}, {"lam": 2}, {"regime": "best"}])
def test_realign_wants_one_thing(fitted, settings):
    with pytest.raises(ValueError, match="needs"):
        fitted[3].realign(**settings)


# -- new samples ------------------------------------------------------------------------------------------------------


def test_transform_of_the_fitted_samples_gives_their_factors(fitted):
    _, X, Y, fa = fitted
    np.testing.assert_allclose(fa.transform(X, Y), fa.factors_, atol=1e-9)
    shuffled = {view: table.sample(frac=1, random_state=0, axis=1) for view, table in X.items()}
    np.testing.assert_allclose(fa.transform(shuffled, Y), fa.factors_, atol=1e-9)  # columns are found by name


def test_transform_is_the_posterior_mean_by_brute_force(fitted):
    s, X, _, fa = fitted
    W, tau = fa.loadings_["rna"], fa.noise_precision_["rna"]
    x = (X["rna"] - X["rna"].mean()).to_numpy() / X["rna"].std(ddof=0).to_numpy()
    covs = fa._state.views[0].w
    Q = sum(t * (np.outer(w, w) + covs.V @ np.diag(c) @ covs.V.T) for t, w, c in zip(tau, W, covs.scale, strict=True))
    prior = np.eye(6)
    S_y = np.corrcoef(s.Y.T)
    prior[:3, :3] = np.outer(fa.beta_, fa.beta_) * S_y + np.diag(1 - fa.beta_**2)
    expected = np.linalg.solve(np.linalg.inv(prior) + Q, (x * tau @ W).T).T
    means, std = map(np.asarray, fa.transform({"rna": X["rna"]}, return_std=True))
    np.testing.assert_allclose(means, expected, atol=1e-8)
    own = np.sqrt(np.diag(np.linalg.inv(np.linalg.inv(prior) + Q)))
    np.testing.assert_allclose(std[:, 3:], np.tile(own[3:], (200, 1)), rtol=1e-8)
    assert (std[:, :3] > own[:3]).all()  # their rotation is uncertain as well: test_factor_uncertainty


def test_new_samples_land_near_their_true_factors():
    s, new = scenario(n=1300), slice(1000, 1300)
    fa = InformedFactorAnalysis(6).fit(s.X[:1000], s.Y[:1000])
    for y in (None, s.Y[new]):
        Z = fa.transform(s.X[new], y)
        assert min(np.corrcoef(Z[:, p], s.Z[new, p])[0, 1] for p in range(3)) > 0.9


def test_transform_errors(fitted):
    _, X, _, fa = fitted
    with pytest.raises(ValueError, match="got 'atac'"):
        fa.transform({"atac": X["rna"]})
    with pytest.raises(ValueError, match="without 'rna0'"):
        fa.transform({"rna": X["rna"].drop(columns="rna0")})
    with pytest.raises(ValueError, match="needs 20 columns"):
        fa.transform({"rna": X["rna"].to_numpy()[:, :5]})
    with pytest.raises(ValueError, match=r"infinity \(inf\) in column rna0"):
        fa.transform({"rna": X["rna"] * np.inf})
    with pytest.raises(NotFittedError):
        InformedFactorAnalysis().transform(X)


# -- what is explained ------------------------------------------------------------------------------------------------


def test_variance_explained_is_that_of_the_metrics(fitted):
    _, X, _, fa = fitted
    marginal = fa.variance_explained()
    assert marginal.shape == (2, 6)
    for view, table in X.items():
        np.testing.assert_allclose(marginal.loc[view], ca.metrics.variance_explained(table, fa.factors_), rtol=1e-6)
        total = ca.metrics.total_variance_explained(table, fa.factors_)
        assert fa.total_variance_explained()[view] == pytest.approx(total, rel=1e-6)
    standardised = (X["rna"] - X["rna"].mean()) / X["rna"].std(ddof=0)
    shares = ca.metrics.variance_explained(standardised, fa.factors_, kind="loadings", W=fa.loadings_["rna"])
    np.testing.assert_allclose(fa.variance_explained("loadings").loc["rna"], shares, rtol=1e-6)


def test_reconstruction_is_in_the_units_of_X(fitted):
    s, X, _, fa = fitted
    for view, table in fa.reconstruct().items():
        residual = X[view].to_numpy() - table
        assert residual.var() / X[view].to_numpy().var() < 0.2
    single = InformedFactorAnalysis(6).fit(s.X["rna"] * 10 + 50, s.Y).reconstruct()
    assert single.mean() == pytest.approx(50, abs=2)


def test_posterior_standard_deviations_shrink_with_data():
    settings = {"n_factors": 6, "supervision": 1.0}
    small, large = (InformedFactorAnalysis(**settings).fit(s.X, s.Y) for s in (scenario(n=100), scenario(n=2000)))
    assert large.loadings_std_["X"].mean() < small.loadings_std_["X"].mean() / 2
    assert small.factor_std_.shape == (100, 6)
    assert (large.factor_std_[:, :3].mean(axis=0) < small.factor_std_[:, :3].mean(axis=0) / 1.3).all()
    assert (large.beta_std_ < small.beta_std_ / 2).all()


# -- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["gram", "dense"])
def test_a_loaded_model_does_everything_to_the_same_numbers(tmp_path, engine):
    s = scenario()
    Y = pd.DataFrame(
        {"age": s.Y[:, 0], "group": np.where(s.Y[:, 1] > 0, "a", "b")}, index=[f"s{i}" for i in range(200)]
    )
    X = pd.DataFrame(s.X, index=Y.index).add_prefix("gene")
    fa = InformedFactorAnalysis(6, engine=engine).fit(X, Y)
    for model in (fa, fa.realign(0.5), fa.realign(regime="exclusive")):
        model.save(tmp_path / "model.covalign")
        loaded = ca.load(tmp_path / "model.covalign")
        np.testing.assert_array_equal(loaded.factors_, model.factors_)
        np.testing.assert_array_equal(loaded.factor_std_, model.factor_std_)
        np.testing.assert_array_equal(loaded.beta_std_, model.beta_std_)
        np.testing.assert_array_equal(loaded.transform(X, Y, return_std=True), model.transform(X, Y, return_std=True))
        np.testing.assert_array_equal(loaded.realign(0.9).factors_, model.realign(0.9).factors_)
        assert loaded.get_params() == model.get_params()
        np.testing.assert_array_equal(loaded.elbo_, model.elbo_)
        assert (loaded.regime_, loaded.covariate_names_) == (model.regime_, ["age", "group_b"])
    assert [path.name for path in tmp_path.iterdir()] == ["model.covalign"]  # no temporary file is left


def test_fitting_goes_on_where_it_stopped(tmp_path):
    s = ca.simulate.scenario("PN", n_samples=300, random_state=0)
    with pytest.warns(ConvergenceWarning, match="still rising after 5 sweeps"):
        half = InformedFactorAnalysis(10, accelerate=False, max_iter=5).fit(s.X, s.Y)
    with pytest.warns(ConvergenceWarning):
        whole = InformedFactorAnalysis(10, accelerate=False, max_iter=12).fit(s.X, s.Y)
    half.save(tmp_path / "half.covalign")
    with pytest.warns(ConvergenceWarning):
        went_on = ca.load(tmp_path / "half.covalign").set_params(max_iter=7).fit(s.X, s.Y, warm_start=True)
    np.testing.assert_allclose(went_on.elbo_, whole.elbo_[5:], rtol=1e-12)
    with pytest.raises(ValueError, match="warm_start needs"):
        went_on.fit(s.X[:, :50], s.Y, warm_start=True)


def test_bad_files_are_refused(tmp_path, fitted):
    path = tmp_path / "model.covalign"
    fitted[3].save(path)
    whole = path.read_bytes()
    for damaged in (whole[: len(whole) // 2], b"", b"not a model", whole[:-100]):
        path.write_bytes(damaged)
        with pytest.raises(FileFormatError, match="is not a model file written by covalign, or it is damaged"):
            ca.load(path)
    np.save(path.with_suffix(".npy"), np.eye(2))
    with pytest.raises(FileFormatError, match="is not a model file"):
        ca.load(path.with_suffix(".npy"))
    for head, words in (
        ({"format": "covalign", "version": 99}, "format 99"),
        ({"format": "other"}, "is not a model file"),
    ):
        with path.open("wb") as file:
            np.savez(file, **{"meta.json": np.frombuffer(json.dumps(head).encode(), dtype=np.uint8)})
        with pytest.raises(FileFormatError, match=words):
            ca.load(path)
    with path.open("wb") as file:
        np.savez(file, **{"meta.json": np.array([{"code": 1}], dtype=object)})
    with pytest.raises(FileFormatError):
        ca.load(path)  # an object array would need pickle
    with pytest.raises(FileNotFoundError):
        ca.load(tmp_path / "absent.covalign")


def test_a_failed_save_leaves_the_old_file(tmp_path, fitted, monkeypatch):
    path = tmp_path / "model.covalign"
    fitted[3].save(path)
    before = path.read_bytes()
    monkeypatch.setattr(np, "savez", lambda *a, **k: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        fitted[3].save(path)
    assert path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


# -- robustness -------------------------------------------------------------------------------------------------------

RNG = np.random.default_rng(0)
BASE = scenario()
ODD = {
    "constant and duplicated features": (np.c_[BASE.X, np.full(200, 2.5), BASE.X[:, :2]], BASE.Y),
    "one feature": (BASE.X[:, :1], BASE.Y),
    "a view of noise": ({"a": BASE.X, "b": RNG.standard_normal((200, 40))}, BASE.Y),
    "five samples": (BASE.X[:5], BASE.Y[:5, :2]),
    "as many samples as the prior of beta counts": (BASE.X[:8], BASE.Y[:8, :2]),
    "heavy tails": (RNG.standard_cauchy((200, 30)), BASE.Y),
    "far from the origin": (BASE.X + 1e6, BASE.Y + 1e6),
    "a covariate that is a feature": (BASE.X, BASE.X[:, :2]),
    "unrelated covariates": (BASE.X, RNG.standard_normal((200, 2))),
    "more features than samples": (RNG.standard_normal((20, 200)), RNG.standard_normal((20, 2))),
    "tiny numbers": (BASE.X * 1e-9, BASE.Y),
}


@pytest.mark.parametrize("posterior", ["full", *thorough("mean_field")])
@pytest.mark.parametrize("case", ODD)
def test_odd_data_give_finite_answers_without_warnings(case, posterior):
    X, Y = ODD[case]
    fa = InformedFactorAnalysis(5, posterior=posterior, max_iter=40)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", OwnershipWarning)  # tests/core/test_ownership.py
        fa.fit(X, Y)
        if case == "one feature":  # tells one dimension apart, and there are three covariates
            with pytest.raises(ValueError, match="3 covariates need 3 linearly independent latent dimensions"):
                fa.realign(0.5)
            assert np.isfinite(fa.alignment_).all()
            moved = clone(fa).set_params(regime_from="model").fit(X, Y).realign(0.5)
        else:
            moved = fa.realign(0.5)
    assert fa.ownership_.empty == (case not in ("a view of noise", "heavy tails"))
    assert np.all(np.diff(fa.elbo_) >= -1e-9 * abs(fa.elbo_[-1]))
    for model in (fa, moved):
        assert np.isfinite(model.factors_).all()
        assert ((model.factor_std_ > 0) & (model.factor_std_ < np.inf)).all()
        assert all(np.isfinite(w).all() for w in model.loadings_.values())
    assert np.all((fa.beta_ >= 0) & (fa.beta_ < 1))
    assert ((fa.beta_std_ > 0) & (fa.beta_std_ < np.inf)).all()


def test_far_from_the_origin_is_the_same_model():
    s = scenario(random_state=1)
    here, far = (InformedFactorAnalysis(6).fit(s.X + at, s.Y + at) for at in (0, 1e6))
    np.testing.assert_allclose(far.factors_, here.factors_, atol=1e-4)


def test_a_covariate_that_is_a_factor_has_beta_near_one():
    s = scenario(noise=0.01, n=500)
    fa = InformedFactorAnalysis(6).fit(s.X, s.Z[:, :2])
    assert fa.beta_.min() > 0.95


@pytest.mark.parametrize(("p", "k"), [(1, 1), (3, 3), (1, 6)])
def test_few_factors(p, k):
    fa = InformedFactorAnalysis(k, supervision=1.0).fit(BASE.X, BASE.Y[:, :p])
    assert fa.factors_.shape == (200, k)
    for model in (fa, fa.realign(0.5)):
        assert model.factors_.shape == model.factor_std_.shape == (200, k)
        assert (np.abs(model.factors_[:, :p]).std(axis=0) > model.factor_std_[:, :p].mean(axis=0)).all()


def test_interrupting_keeps_what_was_reached(monkeypatch):
    from covalign.factor.inference import sweeps as fitting

    sweeps, real = [], fitting.sweep

    def interrupted(*args):
        if len(sweeps) == 6:
            raise KeyboardInterrupt
        sweeps.append(1)
        return real(*args)

    monkeypatch.setattr(fitting, "sweep", interrupted)
    with pytest.warns(ConvergenceWarning):
        fa = InformedFactorAnalysis(6, accelerate=False).fit(BASE.X, BASE.Y)
    assert fa.n_iter_ == 6
    assert fa.transform(BASE.X).shape == (200, 6)


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_only_on_a_terminal(monkeypatch, capsys, terminal):
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    monkeypatch.setattr("covalign._core.progress.PATIENCE", 0.0)
    InformedFactorAnalysis(6).fit(BASE.X, BASE.Y)
    shown = capsys.readouterr()
    assert ("bound" in shown.err) == terminal
    assert shown.out == ""


@pytest.mark.parametrize(
    ("settings", "X", "y", "words"),
    [
        ({"n_factors": 2}, BASE.X, BASE.Y, "3 covariates need at least 3 factors, got n_factors = 2"),
        ({"posterior": "exact"}, BASE.X, BASE.Y, "posterior needs"),
        ({"engine": "gpu"}, BASE.X, BASE.Y, "engine needs"),
        ({"max_iter": 0}, BASE.X, BASE.Y, "max_iter needs"),
        ({"supervision": 0.5}, BASE.X, BASE.Y, 'supervision needs a number from 1, or "auto", got 0.5'),
        ({"supervision": "much"}, BASE.X, BASE.Y, "supervision needs"),
        ({"beta_prior": -1.0}, BASE.X, BASE.Y, "beta_prior needs a number of at least 0, got -1.0"),
        ({"regime_from": "factors"}, BASE.X, BASE.Y, "regime_from needs one of features, model"),
        ({}, BASE.X[:, :0], BASE.Y, "X has 0 feature"),
        ({}, {}, BASE.Y, "at least one view"),
        ({}, BASE.X[:100], BASE.Y, "got 100 and 200"),
        ({}, BASE.X[:, 0], BASE.Y, "needs two dimensions"),
        ({}, BASE.X * np.nan, BASE.Y, "view 'X' needs an observed cell in every feature, got none in '0'"),
        ({}, BASE.X, None, "y is None"),
        ({}, BASE.X, np.ones(200), "constant in column 'y0'"),
        ({}, BASE.X[:1], BASE.Y[:1], "at least 2 rows"),
    ],
)
def test_bad_input_is_named(settings, X, y, words):
    with pytest.raises(ValueError, match=words):
        InformedFactorAnalysis(**{"n_factors": 6, **settings}).fit(X, y)


def test_rows_are_matched_by_name(fitted):
    _, X, Y, fa = fitted
    shuffled = {"rna": X["rna"], "protein": X["protein"].sample(frac=1, random_state=0)}
    again = InformedFactorAnalysis(6).fit(shuffled, Y.sample(frac=1, random_state=1))
    np.testing.assert_allclose(again.factors_, fa.factors_, atol=1e-8)


EXPECTED = {  # where the model differs from what scikit-learn expects of every transformer
    "check_n_features_in_after_fitting": "the features of a view are checked by its name, in other words",
    "check_complex_data": "complex covariates are refused in other words",
    "check_dtype_object": "a table of objects is refused where a cell is no number",
    "check_transformer_data_not_an_array": "fit_transform places samples with their covariates, transform(X) without",
    "check_transformer_general": "fit_transform places samples with their covariates, transform(X) without",
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [InformedFactorAnalysis(2, max_iter=30, supervision=1.0)], expected_failed_checks=lambda model: EXPECTED
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_scikit_learn_manners():
    fa = InformedFactorAnalysis(7, tol=1e-6)
    assert clone(fa).get_params() == fa.get_params()
    with pytest.raises(NotFittedError):
        fa.realign(0.5)


# -- TCGA -------------------------------------------------------------------------------------------------------------


# -- how many factors -------------------------------------------------------------------------------------------------


def test_auto_with_noise_alone_keeps_no_free_factor():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((300, 40)), rng.standard_normal((300, 2))
    assert InformedFactorAnalysis("auto").fit(X, Y).n_factors_ == 2


def test_without_the_factors_dropped_loadings_adapt():
    from covalign.factor.inference import n_factors as selection
    from covalign.factor.inference import sweeps as fitting

    s = ca.simulate.scenario("PN", n_samples=200, n_features=30, n_factors=6, random_state=1)
    fa = InformedFactorAnalysis(9).fit(s.X, s.Y)
    on = np.flatnonzero(fa.active_factors_ | (np.arange(9) < 5))
    assert 6 <= len(on) <= 7
    problem, fit = selection.kept(fa._problem, fa._state, on)
    value = fitting.bound(problem, fit.state)
    assert value > fa.elbo_[-1] + 10  # useless factors cost more than nothing
    assert fitting.bound(problem, fitting.sweep(problem, fit.state, True)) > value - 1e-9


def test_an_unknown_number_of_factors_is_refused():
    s = ca.simulate.scenario("PN", n_samples=50, n_features=20)
    for wrong in ("many", 0, 2.5):
        with pytest.raises(ValueError, match="n_factors needs"):
            InformedFactorAnalysis(wrong).fit(s.X, s.Y)
