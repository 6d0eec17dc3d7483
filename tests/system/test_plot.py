"""Figures show the numbers they are given."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import covalign as ca
from tests.conftest import correlated


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture
def aligner() -> ca.LatentAligner:
    Z, Y = correlated(0, 200, 8, 3)
    return ca.LatentAligner().fit(Z, pd.DataFrame(Y, columns=["age", "dose", "$tage_1"]))


def texts(ax) -> list[str]:
    return [text.get_text() for text in ax.texts]


def test_frontier_draws_the_frame_and_names_the_regimes(aligner):
    frame = ca.regimes.frontier(aligner.moments_, [1, 0, 0.5])
    ax = ca.plot.frontier(frame, title="A frontier")
    (line,) = ax.lines
    along = frame[frame["regime"] != "exclusive"].sort_values("lam")
    np.testing.assert_array_equal(line.get_xdata(), along["coupling"])
    np.testing.assert_array_equal(line.get_ydata(), along["alignment"])
    assert [text.split()[0] for text in texts(ax)] == ["exclusive", "independent", "strongest"]
    assert ax.get_xlabel()
    assert ax.get_ylabel()


@pytest.mark.parametrize("source", ["aligner", "cross_validated"])
def test_frontier_shows_held_out_and_in_sample_apart(aligner, source):
    if source == "aligner":
        frame, column = aligner.frontier([0, 0.5, 1]), "held_out_alignment"
    else:
        frame, column = ca.cross_validated_frontier(*correlated(0, 200, 8, 3), [0, 0.5, 1]), "alignment"
    fig, ax = plt.subplots()
    assert ca.plot.frontier(frame, ax) is ax
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["held out", "in sample"]
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), frame[column][:3])
    fig.canvas.draw()


def test_regimes_at_one_point_have_names_that_can_be_read():
    Z, Y = correlated(0, 200, 4, 1)
    ax = ca.plot.frontier(ca.LatentAligner().fit(Z, Y).frontier())
    ax.figure.canvas.draw()
    first, second, third = (text.get_window_extent() for text in ax.texts)
    assert not any(a.overlaps(b) for a, b in ((first, second), (first, third), (second, third)))
    assert all(box.x0 > ax.get_window_extent().x0 for box in (first, second, third))
    assert ax.get_xlim()[1] > 1  # no scale of rounding errors around zero


def test_matrices_go_into_the_axes_they_are_given(aligner):
    frame = ca.regimes.matrices(aligner.moments_, [("tunable", 0.4)])
    _, axes = plt.subplots(2, 1)
    assert ca.plot.matrices(frame, axes).ravel().tolist() == axes.tolist()
    for wrong, found in ((axes[:1], "ndarray"), (axes[0], "Axes"), ("ax", "str"), (np.array([[1, 2]]), "1 x 2")):
        with pytest.raises(ValueError, match=f"needs 2 x 1 matplotlib Axes, got .*{found}"):
            ca.plot.matrices(frame, wrong)


def test_matrices_draw_both_kinds_for_every_regime(aligner):
    frame = ca.regimes.matrices(aligner.moments_)
    axes = ca.plot.matrices(frame)
    assert axes.shape == (2, 4)
    one = frame[(frame["regime"] == "strongest") & (frame["matrix"] == "corr(z~)")]
    expected = one.pivot(index="row", columns="column", values="value").loc[list(aligner.covariate_names_)]
    np.testing.assert_array_equal(axes[1, 3].images[0].get_array(), expected[list(aligner.covariate_names_)])
    axes[0, 0].figure.canvas.draw()  # a $ in a name is not mathematics


def test_matrices_are_the_correlations_of_the_rows():
    Z, Y = correlated(1, 300, 5, 3)
    m = ca.Moments.from_arrays(Z, Y)
    frame = ca.regimes.matrices(m, [("tunable", 0.4)])
    rows = Z @ ca.regimes.tunable(m, 0.4).T
    expected = np.corrcoef(rows.T, Y.T)
    for matrix, block in (("corr(z~, y)", expected[:3, 3:]), ("corr(z~)", expected[:3, :3])):
        one = frame[frame["matrix"] == matrix].pivot(index="row", columns="column", values="value")
        np.testing.assert_allclose(one.to_numpy(), block, atol=1e-9)


def test_alignment_marks_every_covariate(aligner):
    table = aligner.summary()
    ax = ca.plot.alignment(table)
    np.testing.assert_array_equal(ax.collections[1].get_offsets()[:, 0], table["in_sample"])
    np.testing.assert_array_equal(ax.collections[-1].get_offsets()[:, 0], table["held_out"])
    assert [label.get_text() for label in ax.get_yticklabels()] == ["age", "dose", r"\$tage_1"]
    ax.figure.canvas.draw()
    without = ca.plot.alignment(table.assign(held_out=np.nan, se=np.nan))
    assert len(without.get_legend().get_texts()) == 1
    assert ca.plot.alignment(table * np.nan).get_xlim() == (0, 1)


def test_alignment_shows_the_interval_if_there_is_one(aligner):
    def drawn(table):
        ax = ca.plot.alignment(table)
        ends = [segment[:, 0] for segment in ax.collections[2].get_segments()]
        return np.array(ends), ax.get_legend().get_texts()[1].get_text()

    table = aligner.summary()
    ends, label = drawn(table)
    np.testing.assert_allclose(ends, table[["low", "high"]])
    assert label == "held out, 90 % interval"
    ends, label = drawn(table[["in_sample", "held_out", "se"]])
    np.testing.assert_allclose(ends[:, 1] - ends[:, 0], 4 * table["se"])
    assert label == "held out, ± 2 s.e."
