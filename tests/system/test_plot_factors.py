"""Figures of a factor model show the numbers of their frames, whatever these hold.

What was drawn is read back from the Axes (images, positions, texts) and compared with the frame, exactly. There are no
pictures to compare with: pixels change with fonts and matplotlib's versions, so their tolerance would have to be wider
than the errors worth finding, and a picture that differs does not say which number is wrong.
"""

from __future__ import annotations

import io
from functools import cache

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import covalign as ca
from covalign._core.messages import kind_of
from covalign.show.plot import style

ODD = [
    "$x$",
    "a_b",
    "100 %",
    "żółć",
    "_hidden",
    "a\nb",
    r"\alpha",
    "a name that is much too long for any axis",
    "",
    "{}^",
]


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def draw(ax) -> bytes:
    """The figure, rendered: this is where names, layouts and warnings come out."""
    file = io.BytesIO()
    np.ravel(ax)[0].figure.savefig(file, dpi=40)
    return file.getvalue()


def labels(axis) -> list[str]:
    return [label.get_text() for label in axis.get_ticklabels()]


def shares(views: int, factors: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    names = [ODD[i] if i < len(ODD) else f"view{i}" for i in range(views)]
    return pd.DataFrame(rng.random((views, factors)), index=names, columns=[f"f{k}" for k in range(factors)])


def table(views: int, features: int, factors: int) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    grid = [
        (f"v{v}", ODD[d % 10] + str(d), f"f{k}") for v in range(views) for d in range(features) for k in range(factors)
    ]
    frame = pd.DataFrame(grid, columns=["view", "feature", "factor"])
    return frame.assign(loading=rng.standard_normal(len(frame)), std=rng.random(len(frame)))


def samples(n: int = 40) -> pd.DataFrame:
    rng = np.random.default_rng(2)
    return pd.DataFrame(
        rng.standard_normal((n, 3)), index=[f"s{i}" for i in range(n)], columns=["age", "$x_1$", "free0"]
    )


# -- variance explained -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("views", "factors"), [(1, 1), (3, 10), (1, 60), (12, 60)])
def test_variance_explained_shows_shares_and_totals(views, factors):
    frame = shares(views, factors)
    totals = frame.max(axis=1).sample(frac=1, random_state=0)  # in another order
    ax = ca.plot.variance_explained(frame, totals=totals, title="A title")
    np.testing.assert_array_equal(ax.images[0].get_array(), frame)
    side, bar = ax.child_axes
    np.testing.assert_array_equal([patch.get_width() for patch in side.patches], totals[frame.index])
    np.testing.assert_array_equal([p.get_y() + p.get_height() / 2 for p in side.patches], ax.get_yticks())
    assert side.get_ylim() == ax.get_ylim()
    assert labels(ax.xaxis) == list(frame.columns)
    assert labels(ax.yaxis) == [style.short(name) for name in frame.index]
    if factors <= 12:
        assert ax.texts[0].get_text() == f"{100 * frame.iloc[0, 0]:.0f}"
    assert bar.get_ylabel() == "variance explained"
    draw(ax)


def test_shares_of_nothing_and_gaps_among_them():
    frame = pd.DataFrame([[0.0, np.nan], [0.0, 0.0]], index=["a", "b"], columns=["x", "y"])
    ax = ca.plot.variance_explained(frame, totals=pd.Series({"a": np.nan, "b": 0.0}))
    np.testing.assert_array_equal(np.ma.getmaskarray(ax.images[0].get_array()), frame.isna())
    draw(ax)
    draw(ca.plot.variance_explained(frame * np.nan))


def test_a_single_small_share_and_its_total_have_room():
    frame = pd.DataFrame([[0.008]], index=["rna"], columns=["age"])
    ax = ca.plot.variance_explained(frame, totals=pd.Series({"rna": 0.008}), title="Variance explained")
    draw(ax)
    side, (total,) = ax.child_axes[0], ax.child_axes[0].texts
    assert total.get_text() == "0.8 %"
    assert total.get_window_extent().x0 < side.get_window_extent().x1
    assert ax.get_window_extent().width > 0.5 * ax.figure.dpi
    assert not ax._left_title.get_window_extent().overlaps(side._left_title.get_window_extent())


# -- loadings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("views", "features", "factors"), [(1, 1, 1), (3, 4, 5), (2, 40, 60)])
def test_loadings_show_the_frame_view_by_view(views, features, factors):
    frame = table(views, features, factors)
    ax = ca.plot.loadings(frame)
    assert len(ax.images) == views
    names, ticks = labels(ax.yaxis), ax.get_yticks()
    for image, (view, one) in zip(ax.images, frame.groupby("view", sort=False), strict=True):
        values = one["loading"].to_numpy().reshape(features, factors)
        np.testing.assert_array_equal(image.get_array(), values)
        assert image.norm.vmax == -image.norm.vmin == frame["loading"].abs().max()
        first = names.index(view) + 1
        assert names[first : first + features] == style.shorts(dict.fromkeys(one["feature"]))
        left, right, bottom, top = image.get_extent()
        assert (left, right) == (-0.5, factors - 0.5)
        np.testing.assert_allclose(ticks[first : first + features], top + 0.5 + np.arange(features))
        assert bottom - top == pytest.approx(features)
    draw(ax)


def test_features_that_share_a_name_stay_apart():
    frame = table(1, 4, 3).assign(feature=np.repeat(["g", "h", "g", "g"], 3))
    ax = ca.plot.loadings(frame)
    np.testing.assert_array_equal(ax.images[0].get_array(), frame["loading"].to_numpy().reshape(4, 3))
    assert labels(ax.yaxis)[1:] == ["g", "h", "g", "g"]


@pytest.mark.parametrize("figure", [ca.plot.loadings, ca.plot.top_features])
def test_names_of_many_features_do_not_overlap(figure):
    ax = figure(table(2, 60, 1))
    ax.figure.canvas.draw()
    boxes = [label.get_window_extent() for label in ax.get_yticklabels()]
    heights = sorted((box.y0 + box.height / 2, box.height) for box in boxes)
    gaps_between = np.diff([at for at, _ in heights])
    assert gaps_between.min() > 0.92 * max(height for _, height in heights)  # letters are lower than their boxes


def test_top_features_show_loadings_with_two_deviations():
    frame = table(2, 5, 1)
    ax = ca.plot.top_features(frame)
    names, at = labels(ax.yaxis), dict(zip(range(12), ax.get_yticks(), strict=True))
    assert [names.index("v0"), names.index("v1")] == [0, 6]
    dots = [c for c in ax.collections if hasattr(c, "get_sizes") and len(c.get_sizes())]
    drawn = np.vstack([c.get_offsets() for c in dots])
    np.testing.assert_array_equal(drawn[:, 0], frame["loading"])
    np.testing.assert_allclose(drawn[:, 1], [at[i] for i in (1, 2, 3, 4, 5, 7, 8, 9, 10, 11)])
    lines = [c for c in ax.collections if hasattr(c, "get_segments")]
    reach = np.vstack([np.array(c.get_segments())[:, :, 0] for c in lines[1::2]])
    np.testing.assert_allclose(
        reach, np.stack([frame["loading"] - 2 * frame["std"], frame["loading"] + 2 * frame["std"]], 1)
    )
    assert "f0" in ax.get_xlabel()
    draw(ax)


def test_top_features_of_a_model_and_of_one_view():
    s = ca.simulate.scenario("PN", n_samples=60, n_features={"a": 12, "b": 9}, n_covariates=2)
    fa = ca.InformedFactorAnalysis(3, tol=1e-2, supervision=1.0).fit(s.X, s.Y)
    ax = ca.plot.top_features(fa.top_features("y0", "b", 4))
    assert labels(ax.yaxis) == fa.top_features("y0", "b", 4)["feature"].tolist()
    draw(ax)
    draw(ca.plot.top_features(fa.loadings_frame("y0", n=30)))


# -- samples ----------------------------------------------------------------------------------------------------------


def points(collection) -> np.ndarray:
    return np.asarray(collection.get_offsets())


def test_factors_coloured_by_a_number():
    frame = samples()
    colour = pd.Series(np.arange(40.0), index=frame.index, name="do$e")
    colour.iloc[[3, 5]] = np.nan, np.inf
    ax = ca.plot.factors(frame, x="age", y="free0", colour=colour.sample(frac=1, random_state=1))
    hollow, filled = ax.collections
    gone = ~np.isfinite(colour)
    np.testing.assert_array_equal(points(hollow), frame.loc[gone, ["age", "free0"]])
    np.testing.assert_array_equal(points(filled), frame.loc[~gone, ["age", "free0"]])
    np.testing.assert_array_equal(filled.get_array(), colour[~gone])
    assert len(hollow.get_facecolor()) == 0
    assert (filled.norm.vmin, filled.norm.vmax) == (0, 39)
    (bar,) = ax.child_axes
    assert bar.get_ylabel() == r"do\$e"
    assert bar.texts[0].get_text() == "missing (2)"
    draw(ax)


def test_a_column_in_a_frame_is_taken_by_name():
    frame = samples()
    ax = ca.plot.factors(frame, x="age", y="free0", colour=frame[["free0"]][::-1])
    np.testing.assert_array_equal(ax.collections[0].get_array(), frame["free0"])
    assert ax.child_axes[0].get_ylabel() == "free0"


@pytest.mark.parametrize("kind", ["text", "category", "ordered", "flag", "nullable"])
def test_factors_coloured_by_a_category(kind):
    frame = samples()
    text = pd.Series(["_b", "$a$", "c"] * 13 + [None], index=frame.index, name="site")
    category, order = (
        pd.Categorical(text, ["c", "_b", "$a$", "unused"]),
        pd.Categorical(text, ["c", "_b", "$a$"], ordered=True),
    )
    of = {
        "text": text,
        "category": pd.Series(category, index=frame.index),
        "ordered": pd.Series(order, index=frame.index),
        "flag": text == "c",
        "nullable": (text == "c").astype("boolean").mask(text.isna()),
    }[kind]
    ax = ca.plot.factors(frame, x="age", y="$x_1$", colour=of)
    levels = {"text": ["$a$", "_b", "c"], "flag": [False, True], "nullable": [False, True]}.get(
        kind, ["c", "_b", "$a$"]
    )
    expected = [rf"{level!s} ({int((of == level).sum())})".replace("$", r"\$") for level in levels]
    missing = ["missing (1)"] if of.isna().any() else []
    assert [t.get_text() for t in ax.get_legend().get_texts()] == expected + missing
    filled = ax.collections[-1]
    np.testing.assert_array_equal(points(filled), frame.loc[of.notna(), ["age", "$x_1$"]])
    handles = ax.get_legend().get_lines()[: len(levels)]
    tints = {level: plt.matplotlib.colors.to_rgb(h.get_color()) for level, h in zip(levels, handles, strict=True)}
    assert len(set(tints.values())) == len(levels)
    np.testing.assert_allclose(filled.get_facecolor()[:, :3], [tints[level] for level in of.dropna()])
    draw(ax)


def test_more_levels_than_colours_have_other_markers():
    frame = samples(60)
    ax = ca.plot.factors(frame, x="age", y="free0", colour=[f"level {i % 20:02d}" for i in range(60)])
    looks = {(line.get_color(), line.get_marker()) for line in ax.get_legend().get_lines()}
    assert len(looks) == 20
    assert sum(len(points(c)) for c in ax.collections) == 60
    draw(ax)


LEVELS = [f"a level of a very long name {i % 20:02d}" for i in range(60)]


def test_long_names_of_levels_leave_room_for_the_points():
    ax = ca.plot.factors(samples(60), x="age", y="free0", colour=LEVELS)
    ax.figure.canvas.draw()
    assert ax.get_window_extent().width > 2.5 * ax.figure.dpi
    assert ax.get_legend().get_window_extent().x1 < ax.figure.bbox.x1 + 1


def test_long_names_of_categories_leave_room_for_that_of_the_factor():
    frame = samples(60).rename(columns={"age": "a factor of a very long name indeed"})
    ax = ca.plot.factor_by_category(frame, factor=frame.columns[0], category=LEVELS)
    ax.figure.canvas.draw()
    assert ax.get_window_extent().height > 2 * ax.figure.dpi
    assert ax.yaxis.label.get_window_extent().y1 < ax.figure.bbox.y1


@pytest.mark.parametrize("colour", [np.full(40, 2.0), np.full(40, np.nan), [None] * 40, ["a"] * 40, None])
def test_factors_of_constant_and_missing_colours(colour):
    ax = ca.plot.factors(samples(), x="age", y="age", colour=colour)
    assert sum(len(points(c)) for c in ax.collections) == 40
    draw(ax)


def test_many_samples_become_a_picture():
    frame = pd.DataFrame(np.random.default_rng(0).standard_normal((100_000, 2)), columns=["a", "b"])
    group = np.array(["x", "y"])[np.arange(100_000) % 2]
    for ax in (
        ca.plot.factors(frame, x="a", y="b", colour=frame["a"]),
        ca.plot.factor_by_category(frame, factor="a", category=group),
    ):
        assert all(c.get_rasterized() for c in ax.collections if len(np.atleast_2d(c.get_offsets())) > 1)
        file = io.BytesIO()
        ax.figure.savefig(file, format="pdf", dpi=60)
        assert len(file.getvalue()) < 300_000
    assert not ca.plot.factors(frame[:200], x="a", y="b").collections[0].get_rasterized()


def test_factor_by_category_draws_every_sample_once():
    frame = samples()
    group = pd.Series(["b"] * 20 + ["a"] * 12 + ["one"] + [None] * 7, index=frame.index, name="site")
    ax = ca.plot.factor_by_category(frame, factor="age", category=group)
    assert labels(ax.xaxis) == ["a\n12", "b\n20", "one\n1", "missing\n7"]
    strips = [c for c in ax.collections if len(getattr(c, "get_sizes", lambda: [])()) and len(points(c))]
    for at, (strip, level) in enumerate(zip(strips, ["a", "b", "one", None], strict=True)):
        here = frame["age"][group.isna() if level is None else group == level]
        np.testing.assert_array_equal(points(strip)[:, 1], here)
        assert (np.abs(points(strip)[:, 0] - at) < 0.3).all()
    assert len(ax.collections) == 4 + 2 * 3  # dots; an outline and a median where there are enough
    draw(ax)


@pytest.mark.parametrize("values", [np.zeros(40), np.full(40, np.nan), np.r_[np.nan, np.arange(39.0)]])
def test_factor_by_category_of_odd_values(values):
    frame = samples().assign(age=values)
    group = pd.Series(pd.Categorical([ODD[i % 10] for i in range(40)]), index=frame.index, name="$")
    draw(ca.plot.factor_by_category(frame, factor="age", category=group))
    draw(ca.plot.factor_by_category(frame, factor="age", category=[None] * 40))


# -- association ------------------------------------------------------------------------------------------------------


def test_association_shows_both_measures_apart():
    Z = samples()
    Y = pd.DataFrame({"dose": Z["age"] + 1, "gone": np.nan, "site": ["x", "y", "z", None] * 10}, index=Z.index)
    frame = ca.metrics.association(Z, Y)
    ax = ca.plot.association(frame)
    numbers, categories = ax.images
    wide = frame.pivot(index="covariate", columns="factor", values="value")[list(Z.columns)]
    np.testing.assert_array_equal(numbers.get_array().filled(np.nan), wide.loc[["dose", "gone"]])
    np.testing.assert_array_equal(categories.get_array(), wide.loc[["site"]])
    assert (numbers.norm.vmin, numbers.norm.vmax, categories.norm.vmin) == (-1, 1, 0)
    assert numbers.get_cmap().name != categories.get_cmap().name
    assert [bar.get_ylabel().split(",")[0] for bar in ax.child_axes] == ["correlation", "η²"]
    assert labels(ax.yaxis) == ["numbers: correlation", "dose", "gone", "categories: η²", "site"]
    draw(ax)


@pytest.mark.parametrize("columns", [["dose"], ["site"]])
def test_association_of_one_kind(columns):
    Y = pd.DataFrame({"dose": range(40), "site": ["x", "y", "z", None] * 10}, index=samples().index)[columns]
    ax = ca.plot.association(ca.metrics.association(samples()[["age"]], Y))
    assert len(ax.images) == len(ax.child_axes) == 1
    draw(ax)


# -- fits -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("converged", [True, False])
@pytest.mark.parametrize("sweeps", [1, 2, 2000])
def test_bound_shows_what_was_left_to_rise(sweeps, converged):
    elbo = -(np.arange(sweeps)[::-1].astype(float) ** 2)
    frame = pd.DataFrame({"sweep": np.arange(1, sweeps + 1), "elbo": elbo, "below_end": elbo[-1] - elbo})
    frame["converged"] = (frame["sweep"] == sweeps) & converged
    ax = ca.plot.bound(frame)
    (line,) = ax.lines
    np.testing.assert_array_equal(line.get_xdata(), frame["sweep"][:-1])
    np.testing.assert_array_equal(line.get_ydata(), frame["below_end"][:-1])
    assert ax.texts[0].get_text().startswith("converged" if converged else "not converged")
    assert sweeps == 1 or ax.get_yscale() == "log"
    draw(ax)


def gaps(patterns: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    rows = [
        (p, 10 * (patterns - p), kind, name, round(rng.random(), 1))
        for p in range(patterns)
        for kind, name in (("view", "rna"), ("view", "$p$"), ("covariate", "rna"))
    ]
    return pd.DataFrame(rows, columns=["pattern", "samples", "kind", "name", "observed"])


@pytest.mark.parametrize("patterns", [1, 4, 500])
def test_missing_shows_patterns_as_wide_as_their_samples(patterns):
    frame = gaps(patterns)
    ax = ca.plot.missing(frame)
    widths = frame.drop_duplicates("pattern")["samples"]
    assert labels(ax.yaxis) == ["views", "rna", r"\$p\$", "covariates", "rna"]
    assert len(ax.collections) == 3
    for band, (_, one) in zip(ax.collections, frame.groupby(["kind", "name"], sort=False), strict=True):
        np.testing.assert_array_equal(np.ravel(band.get_array()), one["observed"])
        np.testing.assert_array_equal(np.diff(band.get_coordinates()[0, :, 0]), widths)
        assert f"{widths[(one['observed'] > 0).to_numpy()].sum():,}" in [t.get_text() for t in ax.texts]
    assert ax.get_xlim() == (0, widths.sum())
    assert not any("." in t.get_text() for t in ax.texts)  # samples are whole
    draw(ax)


# -- all --------------------------------------------------------------------------------------------------------------


def gene_sets():
    """Two sets on two factors, as ``InformedFactorAnalysis.enrichment`` gives them."""
    rows = [("rna", factor, name, 20) for factor in ("age", "free0") for name in ("cycle", "death")]
    frame = pd.DataFrame(rows, columns=["view", "factor", "set", "size"])
    return frame.assign(correlation=0.1, direction=["up", "down"] * 2, statistic=[3.0, -2.0, 0.5, -0.1], p=0.01, q=0.02)


FRAMES = {
    "variance_explained": lambda: (shares(2, 3), {}),
    "loadings": lambda: (table(2, 3, 2), {}),
    "top_features": lambda: (table(2, 3, 1), {}),
    "factors": lambda: (samples(), {"x": "age", "y": "free0"}),
    "factor_by_category": lambda: (samples(), {"factor": "age", "category": ["a", "b"] * 20}),
    "association": lambda: (ca.metrics.association(samples(), samples()), {}),
    "bound": lambda: (
        ca.InformedFactorAnalysis(2).fit(samples()[["age", "free0"]], samples()["age"]).bound_frame(),
        {},
    ),
    "missing": lambda: (gaps(3), {}),
    "enrichment": lambda: (gene_sets(), {}),
    "alignment": lambda: (pd.DataFrame({"in_sample": [0.9], "held_out": [0.8], "se": [0.1]}, index=["age"]), {}),
    "frontier": lambda: (ca.LatentAligner().fit(samples(), samples()[["age", "free0"]]).frontier(), {}),
}


@cache
def made(name: str) -> tuple[pd.DataFrame, dict]:
    return FRAMES[name]()


def framed(name: str) -> tuple[pd.DataFrame, dict]:
    """A copy of the frame of this figure, and what else the figure needs."""
    frame, more = made(name)
    return frame.copy(), more


def test_every_figure_is_tried_here():
    figures = {name for name in ca.plot.__all__ if callable(getattr(ca.plot, name))}
    assert figures - {"matrices"} == set(FRAMES)


@pytest.mark.parametrize("name", FRAMES)
def test_a_figure_goes_where_it_is_told_and_leaves_its_frame_alone(name):
    frame, more = framed(name)
    before = frame.copy(deep=True)
    figure, (left, right) = plt.subplots(1, 2, layout="constrained", figsize=(12, 5))
    assert getattr(ca.plot, name)(frame, right, title="It$ title", **more) is right
    assert not left.has_data()
    assert right.get_title(loc="left") == "It$ title"
    assert plt.get_fignums() == [figure.number]
    pd.testing.assert_frame_equal(frame, before)
    draw(right)


@pytest.mark.parametrize("name", FRAMES)
@pytest.mark.parametrize("wrong", ["ax", 3, np.array([1]), plt])
def test_what_is_not_axes_is_refused(name, wrong):
    frame, more = framed(name)
    with pytest.raises(ValueError, match=f"ax needs matplotlib Axes, got {kind_of(wrong)}"):
        getattr(ca.plot, name)(frame, wrong, **more)


@pytest.mark.parametrize("name", FRAMES)
def test_side_axes_stay_inside_the_figure(name):
    frame, more = framed(name)
    ax = getattr(ca.plot, name)(frame, **more)
    ax.figure.canvas.draw()
    width, height = ax.figure.bbox.size
    box = ax.get_tightbbox()
    assert box.x0 > -1
    assert box.y0 > -1
    assert box.x1 < width + 1
    assert box.y1 < height + 1


@pytest.mark.parametrize("name", [*FRAMES, "matrices"])
@pytest.mark.parametrize("wrong", [ca.InformedFactorAnalysis(), pd.DataFrame(), pd.DataFrame({"x": [1.0]}), None])
def test_a_figure_says_which_frame_it_needs(name, wrong):
    more = framed(name)[1] if name in FRAMES else {}
    if name == "variance_explained" and isinstance(wrong, pd.DataFrame) and len(wrong):
        pytest.skip("any matrix will do")
    with pytest.raises(ValueError, match=f"plot.{name} needs"):
        getattr(ca.plot, name)(wrong, **more)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ca.plot.factors(samples(), x="age", y="b"), "y to be a column of its frame .*got 'b'"),
        (lambda: ca.plot.factor_by_category(samples(), factor="b", category=["a"] * 40), "factor to be a column"),
        (lambda: ca.plot.factors(samples(), x="age", y="age", colour=[1]), "40 samples, got 1 values"),
        (lambda: ca.plot.factors(samples(), x="age", y="age", colour="red"), "40 samples, got 1 values"),
        (lambda: ca.plot.factors(samples(), x="age", y="age", colour=7), "40 samples, got 1 values"),
        (lambda: ca.plot.factors(samples(), x="age", y="age", colour=samples()), "got 40 x 3 values"),
        (lambda: ca.plot.factors(samples(), x="age", y="age", colour=pd.Series([1.0])), "names its samples"),
        (
            lambda: ca.plot.factors(samples(), x="age", y="age", colour=pd.Series([1.0, 2], index=["s1", "s1"])),
            "every sample once",
        ),
        (lambda: ca.plot.factor_by_category(samples(), factor="age", category=range(40)), "astype"),
        (lambda: ca.plot.top_features(table(1, 2, 2)), "one factor, got those of 'f0', 'f1'"),
        (lambda: ca.plot.variance_explained(shares(2, 2), totals=pd.Series({"$x$": 0.1})), "got none for 'a_b'"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_names_that_are_not_mathematics_are_drawn_as_they_are():
    for name in ODD:
        text = plt.figure().text(0, 0, style.short(name))
        text.figure.canvas.draw()
    assert style.short("x" * 30) == "x" * 21 + "…"
    assert style.short("two\nlines") == "two lines"


def test_names_with_the_same_beginning_keep_their_ends():
    names = ["short", "x" * 30, "HALLMARK_INTERFERON_ALPHA_RESPONSE", "HALLMARK_INTERFERON_GAMMA_RESPONSE"]
    alike = ["HALLMARK_INTERFERON_RESPONSE_1", "HALLMARK_INTERFERON_RESPONSE_2"]
    cut = style.shorts([*names, *alike])
    assert cut[:2] == ["short", style.short("x" * 30)]
    assert cut[-2:] == ["HALLMARK_IN…RESPONSE_1", "HALLMARK_IN…RESPONSE_2"]
    assert max(map(len, cut)) == 22
    assert style.shorts(["x" * 30] * 2) == [style.short("x" * 30)] * 2  # the same name twice
