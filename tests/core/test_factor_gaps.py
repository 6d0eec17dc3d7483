"""Informed factor analysis with gaps: the same model, summed over what was observed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import optimize
from scipy.stats import multivariate_normal

import covalign as ca
from covalign import InformedFactorAnalysis
from covalign.factor import preparation as data
from covalign.factor.inference import gaps, rotation, updates
from covalign.factor.inference import sweeps as fitting
from covalign.factor.inference.bound import bound, of_views
from covalign.factor.inference.engines import Dense
from covalign.factor.inference.kernel import update_views
from covalign.factor.inference.patterns import Gapped, compressed
from covalign.factor.inference.start import alternatives, start
from covalign.factor.inference.state import Problem
from covalign.factor.placement import feature_moments
from tests.conftest import thorough

N, P, K = 80, 3, 5
BOUNDS = (slice(0, 12), slice(12, 20))
full_or_not = pytest.mark.parametrize("full", [True, False], ids=["full", "mean_field"])


def arrays(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    s = ca.simulate.scenario("PN", n_samples=N, n_features=20, n_factors=K, n_covariates=P, random_state=seed)
    X, Y = ((A - A.mean(axis=0)) / A.std(axis=0) for A in (s.X, s.Y))
    return X, Y, s.Z


def gapped_problem(
    full: bool, cells: float, labels: float, seed: int = 0, blocks: bool = False, of_y: float = 0.0
) -> Problem:
    X, Y, _ = arrays(seed)
    rng = np.random.default_rng(seed)
    observed, has_y = rng.random(X.shape) >= cells, rng.random(Y.shape) >= labels
    if blocks:
        observed = np.ones(X.shape, dtype=bool)
        observed[N // 3 :, BOUNDS[1]] = False
    if labels:
        has_y[:6] = False  # unlabelled altogether
    engine = Gapped.of(np.where(observed, X, 0.0), observed, np.where(has_y, Y, 0.0), has_y, Y.T @ Y / N)
    return Problem(engine, N, P, K, BOUNDS, full, 4.0 if of_y else 0.0).supervised(of_y)


# -- the kernel -------------------------------------------------------------------------------------------------------


@full_or_not
@pytest.mark.parametrize("accelerate", [True, False])
@pytest.mark.parametrize("of_y", [0.0, 2.5, 19.0])
def test_without_gaps_it_is_the_complete_engine(full, accelerate, of_y):
    X, Y, _ = arrays()
    complete = Problem(Dense(X, Y), N, P, K, BOUNDS, full, beta_prior=4.0 if of_y else 0.0)
    everything = Gapped.of(X, np.ones(X.shape, dtype=bool), Y, np.ones(Y.shape, dtype=bool), Y.T @ Y / N)
    with_gaps = complete._replace(data=everything).supervised(of_y)
    complete = complete.supervised(of_y)
    X = complete.data.X
    a, b = start(complete), start(with_gaps)
    for _ in range(5):
        a, b = fitting.sweep(complete, a, accelerate), fitting.sweep(with_gaps, b, accelerate)
        assert bound(with_gaps, b) == pytest.approx(bound(complete, a), rel=1e-10)
    np.testing.assert_allclose(b.z.mean, X @ a.z.of_x + Y @ a.z.of_y, atol=1e-8)
    np.testing.assert_allclose(b.views[0].w.mean, a.views[0].w.mean, atol=1e-8)
    np.testing.assert_allclose(b.views[1].w.intercept, 0.0, atol=1e-8)


def assert_the_bound_never_falls(full: bool, accelerate: bool, seed: int, sweeps: int = 40, of_y: float = 0.0) -> None:
    for cells, labels, blocks in ((0.3, 0.0, False), (0.0, 0.4, False), (0.4, 0.4, False), (0.0, 0.2, True)):
        problem = gapped_problem(full, cells, labels, seed, blocks, of_y)
        elbo = fitting.fit(problem, start(problem), accelerate, sweeps, -1.0).elbo
        assert np.diff(elbo).min() > -1e-9 * abs(elbo[-1]), (cells, labels, blocks)


@full_or_not
@pytest.mark.parametrize("accelerate", [True, False])
@pytest.mark.parametrize("of_y", [2.5, *thorough(0.0, 19.0)])
def test_the_bound_never_falls(full, accelerate, of_y):
    assert_the_bound_never_falls(full, accelerate, 0, 15, of_y)


def swept(problem: Problem, sweeps: int = 3):
    state = start(problem)
    for _ in range(sweeps):
        state = fitting.sweep(problem, state, False)
    return state


@full_or_not
def test_factors_are_those_of_a_loop_over_samples(full):
    problem = gapped_problem(full, 0.3, 0.3)
    engine, state = problem.data, swept(problem)
    views, beta = state.views, state.beta
    w = np.vstack([view.w.mean for view in views])
    tau = np.concatenate([view.noise.mean for view in views])
    mu = np.concatenate([view.w.intercept for view in views])
    moments = np.vstack([feature_moments(view.w, np.ones(len(view.w.mean))) for view in views])
    z, S_y = gaps.update_factors(problem, views, beta), engine.S_y
    for n in range(0, N, 7):
        o, has = engine.observed[n], engine.has_y[n]
        inner = S_y[:, has] @ np.linalg.pinv(S_y[np.ix_(has, has)])
        mean_y, cov_y = inner @ engine.Y[n, has], S_y - inner @ S_y[has]
        V = np.eye(K)
        V[:P, :P] = np.diag(beta) @ cov_y @ np.diag(beta) + np.diag(1 - beta**2)
        m_0 = np.append(beta * mean_y, np.zeros(K - P))
        precision = np.linalg.inv(V) + np.einsum("d,dkl->kl", tau[o], moments[o])
        r = (tau[o] * (engine.X[n, o] - mu[o])) @ w[o] + np.linalg.inv(V) @ m_0
        np.testing.assert_allclose(z.mean[n], np.linalg.solve(precision, r), atol=1e-8)
        if full:
            np.testing.assert_allclose(z.cov[z.group[n]], np.linalg.inv(precision), atol=1e-9)


def test_loadings_are_those_of_a_loop_over_features():
    problem = gapped_problem(True, 0.3, 0.0)
    engine, state = problem.data, swept(problem)
    z = state.z
    second = z.mean[:, :, None] * z.mean[:, None, :] + z.cov[z.group]
    new = update_views(problem, z, state.views)
    for view, old, where in zip(new, state.views, BOUNDS, strict=True):
        for d in range(0, where.stop - where.start, 3):
            o = engine.observed[:, where][:, d]
            precision = np.diag(old.ard.mean) + old.noise.mean[d] * second[o].sum(axis=0)
            x = engine.X[:, where][o, d] - old.w.intercept[d]
            np.testing.assert_allclose(
                view.w.mean[d], np.linalg.solve(precision, old.noise.mean[d] * x @ z.mean[o]), atol=1e-8
            )
            V = view.w.V[view.w.group[d]]
            np.testing.assert_allclose((V * view.w.scale[d]) @ V.T, np.linalg.inv(precision), atol=1e-9)
            residual = engine.X[:, where][o, d] - z.mean[o] @ view.w.mean[d]
            assert view.w.intercept[d] == pytest.approx(residual.mean(), abs=1e-10)
            assert view.noise.shape[d] == pytest.approx(1e-3 + o.sum() / 2)


@full_or_not
@pytest.mark.parametrize("labels", [0.0, 0.4])
def test_what_the_rotation_climbs_is_the_bound(full, labels):
    problem = gapped_problem(full, 0.3, labels)
    state = swept(problem)
    landscape, gamma = rotation.Landscape.of(problem, state), np.arctanh(state.beta)
    rng = np.random.default_rng(3)

    def both(R, g):
        moved = updates.transformed(state._replace(beta=np.tanh(g)), R, full)
        moved = moved._replace(views=tuple(v._replace(ard=updates.update_ard(v.w)) for v in moved.views))
        # The bound with q(y | z) held, as the step holds it: E[y'y] and E[Z'Y] enter beta's terms as they are.
        z, b, D = moved.z, moved.beta, updates.prior_precision(moved.beta, K)
        S = np.diag(z.second_moment(N))
        prior = -D @ S / 2 + D[:P] @ (b * np.diag(z.zy[:P]) - b**2 * N / 2 - z.excess / 2) + N / 2 * np.log(D).sum()
        entropy = engine.sizes @ np.linalg.slogdet(z.cov)[1] / 2
        return of_views(problem, moved) + prior + entropy, landscape.value(R, g)

    engine = problem.data
    at_start = both(np.eye(K), gamma)
    for _ in range(3):
        there = both(np.eye(K) + 0.1 * rng.standard_normal((K, K)), gamma + 0.1 * rng.standard_normal(P))
        assert there[1] - at_start[1] == pytest.approx(there[0] - at_start[0], rel=1e-8)


@full_or_not
@pytest.mark.parametrize("held", [P, *thorough(0)])
def test_no_shift_of_the_factors_is_better(full, held):
    problem = gapped_problem(full, 0.3, 0.3, blocks=True)
    state = swept(problem)

    def at(c):
        c = np.append(np.zeros(held), c)
        views = tuple(v._replace(w=v.w._replace(intercept=v.w.intercept - v.w.mean @ c)) for v in state.views)
        z = gaps.with_sums(problem, state.z.mean + c, state.z.cov, state.beta)
        return bound(problem, state._replace(z=z, views=views))

    found = optimize.minimize(lambda c: -at(c), np.zeros(K - held), tol=1e-10)
    moved = gaps.shifted(problem, state, held)
    c = (moved.z.mean - state.z.mean)[0]
    assert bound(problem, moved) == pytest.approx(-found.fun, abs=1e-6)
    assert bound(problem, moved) > bound(problem, state) + 0.01
    np.testing.assert_allclose(c[held:], found.x, atol=1e-4)
    again = gaps.with_sums(problem, moved.z.mean, moved.z.cov, state.beta)  # the sums were moved, not summed anew
    for name, value in again._asdict().items():
        np.testing.assert_allclose(getattr(moved.z, name), value, atol=1e-9, err_msg=name)


@full_or_not
def test_compressed_rows_give_the_same_sweeps(full):
    problem = gapped_problem(full, 0.0, 0.0, blocks=True)
    whole: Gapped = problem.data
    has_y = whole.has_y.copy()
    has_y[::2, 1] = False
    whole = Gapped.of(whole.X, whole.observed, np.where(has_y, whole.Y, 0.0), has_y, whole.S_y)
    small = compressed(whole)
    assert len(small.X) < 0.9 * N
    assert small.n == N
    np.testing.assert_array_equal(small.sizes, whole.sizes)
    a, b = start(problem._replace(data=whole)), start(problem._replace(data=small))
    for _ in range(5):
        a = fitting.sweep(problem._replace(data=whole), a, True)
        b = fitting.sweep(problem._replace(data=small), b, True)
        assert bound(problem._replace(data=small), b) == pytest.approx(
            bound(problem._replace(data=whole), a), rel=1e-10
        )
    np.testing.assert_allclose(b.views[1].w.mean, a.views[1].w.mean, atol=1e-7)
    np.testing.assert_allclose(b.views[1].w.intercept, a.views[1].w.intercept, atol=1e-7)


@pytest.mark.parametrize("posterior", ["full", "mean_field"])
def test_engines_agree_where_a_view_is_missing(posterior):
    s = ca.simulate.scenario("AR", n_samples=300, n_features=30, n_factors=6, n_covariates=P, random_state=2)
    X = {"a": s.X[:, :18], "b": np.where(np.arange(300)[:, None] < 120, np.nan, s.X[:, 18:])}
    Y = np.where(np.arange(300)[:, None] % 3 == 0, np.nan, s.Y)
    # The bound is flat near its end: rounding decides where in the last thousandth a fit stops.
    gram, dense = (InformedFactorAnalysis(6, posterior, engine=engine).fit(X, Y) for engine in ("gram", "dense"))
    assert len(gram._problem.data.X) < 130  # two by two combinations
    for a, b in ((gram, dense), (gram.realign(0.7), dense.realign(0.7)), (gram.realign(1.0), dense.realign(1.0))):
        np.testing.assert_allclose(a.factors_, b.factors_, atol=1e-3)
        np.testing.assert_allclose(a.factor_std_, b.factor_std_, atol=1e-3)
        np.testing.assert_allclose(a.variance_explained(), b.variance_explained(), atol=1e-3)
        np.testing.assert_allclose(a.total_variance_explained(), b.total_variance_explained(), atol=1e-3)
        for one, other in zip(a.impute("b", return_std=True), b.impute("b", return_std=True), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-3)
        np.testing.assert_allclose(a.transform(X, Y), b.transform(X, Y), atol=1e-3)
    np.testing.assert_allclose(gram.transform(X, Y), gram.factors_, atol=1e-8)


def test_the_gaussian_of_gappy_covariates_is_the_most_likely_one():
    rng = np.random.default_rng(0)
    Y = rng.multivariate_normal([1, -2, 0], [[1, 0.6, 0.2], [0.6, 2, -0.3], [0.2, -0.3, 1]], size=60)
    Y[rng.random(Y.shape) < 0.3] = np.nan
    mean, S = data.gaussian_fit(Y)
    patterns = [o for o in np.unique(~np.isnan(Y), axis=0) if o.any()]
    seen = [Y[(~np.isnan(Y) == o).all(axis=1)][:, o] for o in patterns]

    def loss(x):
        L = np.zeros((3, 3))
        L[np.tril_indices(3)] = x[3:]
        return -sum(
            multivariate_normal.logpdf(rows, x[:3][o], (L @ L.T)[np.ix_(o, o)]).sum()
            for o, rows in zip(patterns, seen, strict=True)
        )

    ours = np.append(mean, np.linalg.cholesky(S)[np.tril_indices(3)])
    assert loss(ours) <= optimize.minimize(loss, ours + 0.05, method="BFGS").fun + 1e-3


# -- the model --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def named():
    s = ca.simulate.scenario("PN", n_samples=150, n_features={"rna": 16, "protein": 10}, n_factors=5, n_covariates=3)
    index = [f"s{i}" for i in range(150)]
    X = {view: pd.DataFrame(values, index=index).add_prefix(view) for view, values in s.X.items()}
    return s, X, pd.DataFrame(s.Y, index=index, columns=["age", "dose", "grade"])


def holes(X: dict, share: float, seed: int = 0) -> dict:
    rng = np.random.default_rng(seed)
    return {view: frame.mask(rng.random(frame.shape) < share) for view, frame in X.items()}


@pytest.fixture(scope="module")
def complete(named):
    """The fit to all cells."""
    return InformedFactorAnalysis(5).fit(*named[1:])


@pytest.fixture(scope="module")
def gappy(named):
    """Views of which a fifth of the cells is missing, and their fit."""
    _, X, Y = named
    views = holes(X, 0.2)
    return views, InformedFactorAnalysis(5).fit(views, Y)


def test_gaps_cost_little(complete, gappy):
    _, fa = gappy
    for p in range(3):
        assert np.corrcoef(fa.factors_[:, p], complete.factors_[:, p])[0, 1] > 0.95
    assert fa.total_variance_explained()["rna"] == pytest.approx(complete.total_variance_explained()["rna"], abs=0.05)
    np.testing.assert_allclose(fa.variance_explained(), complete.variance_explained(), atol=0.05)


def test_tables_are_joined_by_name_whatever_their_order(named):
    _, X, Y = named
    some = {"rna": X["rna"].iloc[20:], "protein": X["protein"].iloc[:110]}
    fa = InformedFactorAnalysis(5).fit(some, Y.iloc[10:140])
    shuffled = {view: frame.sample(frac=1, random_state=1) for view, frame in some.items()}
    again = InformedFactorAnalysis(5).fit(
        shuffled, Y.sample(frac=1, random_state=2).drop(index=[*Y.index[:10], *Y.index[140:]])
    )
    assert fa.factors_.shape == (150, 5)  # the union of the views
    here, there = (pd.DataFrame(m.factors_, index=m._table.samples) for m in (fa, again))
    np.testing.assert_allclose(there.loc[here.index], here, atol=1e-5)


def test_samples_that_only_the_metadata_have_are_left_out(named, complete):
    _, X, Y = named
    extra = pd.concat([Y, Y.set_axis([f"other{i}" for i in range(150)])])
    np.testing.assert_allclose(InformedFactorAnalysis(5).fit(X, extra).factors_, complete.factors_, atol=1e-9)


def test_unlabelled_samples_are_placed_as_transform_would(named):
    _, X, Y = named
    fa = InformedFactorAnalysis(5).fit(X, Y.iloc[:100])
    assert fa.factors_.shape == (150, 5)
    unlabelled = {view: frame.iloc[100:] for view, frame in X.items()}
    np.testing.assert_allclose(fa.transform(unlabelled), fa.factors_[100:], atol=1e-8)
    labelled = {view: frame.iloc[:100] for view, frame in X.items()}
    np.testing.assert_allclose(fa.transform(labelled, Y.iloc[:100]), fa.factors_[:100], atol=1e-8)


def test_transform_of_the_fitted_samples_with_their_gaps_gives_their_factors(named):
    _, X, Y = named
    gappy, Y = holes(X, 0.3), Y.mask(np.random.default_rng(1).random(Y.shape) < 0.2)
    fa = InformedFactorAnalysis(5).fit(gappy, Y)
    means, std = fa.transform(gappy, Y, return_std=True)
    np.testing.assert_allclose(means, fa.factors_, atol=1e-8)
    assert std.shape == (150, 5)
    blind = fa.transform(gappy, return_std=True)[1]
    gained = blind.iloc[:, :3].mean() / std.iloc[:, :3].mean()
    assert (gained[["age", "dose"]] > 1).all()  # y tells something
    assert gained["grade"] > 0.99  # its beta is .23 with a deviation of .17, which counts against what y tells


def test_imputed_cells_are_near_what_was_deleted_and_say_how_near(named, gappy):
    views, fa = gappy
    z = []
    for view, frame in named[1].items():
        filled, std = fa.impute(view, return_std=True)
        missing = views[view].isna()
        pd.testing.assert_frame_equal(filled.where(~missing), views[view])
        assert (std.to_numpy() > 0).tolist() == missing.to_numpy().tolist()
        z.append(((filled - frame) / std.where(missing)).to_numpy()[missing.to_numpy()])
    assert 0.85 < np.mean(np.abs(np.concatenate(z)) < 1.645) < 0.95


def test_a_gappy_model_is_saved_realigned_and_goes_on(named, gappy, tmp_path):
    Y, (views, fa) = named[2], gappy
    fa.save(tmp_path / "m.covalign")
    same = ca.load(tmp_path / "m.covalign")
    np.testing.assert_array_equal(same.factors_, fa.factors_)
    np.testing.assert_allclose(same.realign(0.7).factors_, fa.realign(0.7).factors_, atol=1e-9)
    pd.testing.assert_frame_equal(same.impute("rna"), fa.impute("rna"))
    assert same.fit(views, Y, warm_start=True).n_iter_ <= 3
    aligned = [ca.metrics.alignment(fa.realign(lam).factors_[:, :3], Y) for lam in (0.0, 0.5, 1.0)]
    assert aligned == sorted(aligned)


def test_in_the_papers_way_a_gappy_model_is_realigned_by_sweeps(named, gappy, tmp_path):
    Y, views = named[2], gappy[0]
    fa = InformedFactorAnalysis(5, regime_from="model").fit(views, Y)
    moved = fa.realign(0.7)
    assert len(moved.elbo_) > 1
    assert np.diff(moved.elbo_).min() >= -1e-6
    np.testing.assert_allclose(moved.factors_[:, :3], fa.factors_[:, :3] @ moved.T_.T, atol=1e-9)
    aligned = [ca.metrics.alignment(fa.realign(lam).factors_[:, :3], Y) for lam in (0.0, 0.5, 1.0)]
    assert aligned == sorted(aligned)
    moved.save(tmp_path / "m.covalign")
    np.testing.assert_array_equal(ca.load(tmp_path / "m.covalign").transform(views), moved.transform(views))


def test_a_sample_without_any_cell_has_the_prior_of_its_covariates(named):
    _, X, Y = named
    gone = {view: frame.assign(**{c: frame[c].where(frame.index != "s7") for c in frame}) for view, frame in X.items()}
    fa = InformedFactorAnalysis(5).fit(gone, Y)
    y = (Y.iloc[7] - Y.mean()) / Y.std(ddof=0)
    np.testing.assert_allclose(fa.factors_[7], np.append(fa.beta_ * y, [0, 0]), atol=1e-8)


def test_mixed_covariates_with_gaps(named):
    s, X, _ = named
    rng = np.random.default_rng(0)
    Y = pd.DataFrame(
        {
            "age": 50 + 10 * s.Y[:, 0],
            "stage": pd.Categorical(np.digitize(s.Y[:, 1], [-0.5, 0.5]), ordered=True),
            "sex": np.where(s.Y[:, 2] > 0, "f", "m"),
        },
        index=X["rna"].index,
    )
    Y = Y.mask(rng.random(Y.shape) < 0.2)
    fa = InformedFactorAnalysis(6).fit(X, Y)
    assert fa.covariate_names_ == ["age", "stage", "sex_m"]
    assert np.isfinite(fa.factors_).all()


def test_bad_tables_are_named(named):
    _, X, Y = named
    fa = InformedFactorAnalysis(5)
    with pytest.raises(ValueError, match="at least 2 observed rows, got 0 in column 'dose'"):
        fa.fit(X, Y.assign(dose=np.nan))
    with pytest.raises(ValueError, match="view 'rna' needs an observed cell in every feature, got none in 'rna3'"):
        fa.fit({**X, "rna": X["rna"].assign(rna3=np.nan)}, Y)
    with pytest.raises(ValueError, match="row names in common"):
        fa.fit(X, Y.set_axis(range(150)))
    with pytest.raises(ValueError, match="'s0'"):
        fa.fit({**X, "rna": pd.concat([X["rna"], X["rna"].iloc[:1]])}, Y)
    with pytest.raises(ValueError, match="infinity"):
        fa.fit({**X, "rna": X["rna"].replace(X["rna"].iloc[0, 0], np.inf)}, Y)


# -- breast cancer ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tumours(shared_data):
    from covalign.bridges import datasets

    return datasets.breast_tcga(shared_data("breast_tcga"))


@pytest.fixture(scope="module")
def whole_fit(tumours):
    return InformedFactorAnalysis(20, drop_first=False).fit(tumours.views, tumours.covariates)


def agreement(whole, part) -> float:
    """Mean correlation of the informed factors, realigned at lam = .75."""
    a, b = (fa.realign(0.75).factors_[:, :3] for fa in (whole, part))
    return float(np.mean([np.corrcoef(a[:, p], b[:, p])[0, 1] for p in range(3)]))


def test_alternatives_give_up_one_dummy_each():
    rng = np.random.default_rng(0)
    levels = rng.choice(["a", "b", "c"], 300)
    Y = pd.get_dummies(pd.Series(levels)).to_numpy(dtype=float)
    X = Y @ rng.standard_normal((3, 20)) + rng.standard_normal((300, 2)) @ rng.standard_normal((2, 20))
    problem = InformedFactorAnalysis(5).fit(X + 0.3 * rng.standard_normal(X.shape), Y)._problem
    made = alternatives(problem)
    assert len(made) == 3
    corr = [np.abs(np.diag(state.z.zy[:3])) / problem.n for state in made]
    assert sorted(int(c.argmin()) for c in corr) == [0, 1, 2]
    for c in corr:
        assert c.min() < 0.2  # given up
        assert np.sort(c)[1] > 0.6  # the other two are served
    s = ca.simulate.scenario("PN", n_samples=1000)
    assert alternatives(InformedFactorAnalysis(10).fit(s.X, s.Y)._problem) == []  # nothing needs to be given up


# -- covariates as people keep them -----------------------------------------------------------------------------------


def clinic(n: int = 200):
    """Two views and a table of age, sex, stage (ordered) and subtype, all with gaps, all seen in X."""
    rng = np.random.default_rng(4)
    rows = [f"patient{i}" for i in range(n)]
    stage = pd.Categorical(rng.choice(["I", "II", "III"], n), categories=["I", "II", "III"], ordered=True)
    Y = pd.DataFrame(
        {
            "age": rng.normal(60, 10, n),
            "sex": rng.choice(["f", "m"], n),
            "stage": stage,
            "subtype": rng.choice(["Basal", "Her2", "LumA"], n),
        },
        index=rows,
    )
    Z = np.column_stack([(Y["age"] - 60) / 10, Y["sex"] == "m", stage.codes, pd.get_dummies(Y["subtype"])]).astype(
        float
    )
    Z = (Z - Z.mean(axis=0)) / Z.std(axis=0) + 0.5 * rng.standard_normal(Z.shape)
    X = Z @ rng.standard_normal((6, 50)) + rng.standard_normal((n, 50))
    X = pd.DataFrame(X, index=rows).add_prefix("gene")
    for name in Y.columns:
        Y.loc[rng.choice(rows, n // 10, replace=False), name] = np.nan
    return {"rna": X.iloc[:, :30], "protein": X.iloc[:150, 30:].sample(frac=1, random_state=1)}, Y


def test_mixed_covariates_keep_their_names_and_categories_their_joint_share():
    X, Y = clinic()
    fa = InformedFactorAnalysis(8, drop_first=False).fit(X, Y)
    names = ["age", "sex_m", "stage", "subtype_Basal", "subtype_Her2", "subtype_LumA"]
    assert fa.factor_names_ == [*names, "free0", "free1"]
    for model in (fa, fa.realign(0.8)):
        F = pd.DataFrame(model.transform(X), index=X["rna"].index, columns=model.factor_names_)
        expected = {
            "age": F["age"].corr(Y["age"]),
            "sex_m": F["sex_m"].corr(Y["sex"].map({"f": 0.0, "m": 1.0})),
            "stage": F["stage"].corr(pd.Series(Y["stage"].cat.codes.where(Y["stage"].notna()), Y.index)),
        }
        known = Y["subtype"].dropna()
        share = []
        for level in ("Basal", "Her2", "LumA"):
            f = F.loc[known.index, f"subtype_{level}"]
            expected[f"subtype_{level}"] = f.corr((known == level).astype(float))
            means = f.groupby(known).transform("mean")
            share.append(((means - f.mean()) ** 2).sum() / ((f - f.mean()) ** 2).sum())
        pd.testing.assert_series_equal(model.alignment_, pd.Series(expected, name="alignment"), rtol=1e-9)
        ((covariate, eta, _, _, dummies),) = model.category_alignment_.itertuples(index=False)
        assert (covariate, dummies) == ("subtype", tuple(names[3:]))
        assert eta == pytest.approx(np.mean(share), rel=1e-9)
    assert fa.realign(1.0).alignment_.min() > 0.6
