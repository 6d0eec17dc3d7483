"""A few figures as pictures: rendered, and looked at pixel by pixel where something must be seen.

No picture is kept to compare with (fonts and versions change them): what a pixel must be follows from the frame.
"""

from __future__ import annotations

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

import covalign as ca


class Picture:
    """A figure as it is rendered, and the pixel at a place given in the coordinates of its Axes' data."""

    def __init__(self, ax) -> None:
        self.ax = ax
        ax.figure.set_dpi(200)
        ax.figure.canvas.draw()
        self.pixels = np.asarray(ax.figure.canvas.buffer_rgba())[..., :3] / 255

    def at(self, x: float, y: float, dx: float = 0, dy: float = 0) -> np.ndarray:
        """The colour there, moved by points (1/72 inch) to the right and up."""
        column, row = self.ax.transData.transform((x, y)) + np.array([dx, dy]) * 200 / 72
        return self.pixels[round(len(self.pixels) - 1 - row), round(column)]

    def has_near(self, x: float, y: float, colour, reach: float = 2.0) -> bool:
        """Whether a colour is seen within some points of a place."""
        steps = np.linspace(-reach, reach, 9)
        near = np.array([self.at(x, y, dx, dy) for dx in steps for dy in steps])
        return bool(np.any(np.abs(near - to_rgb(colour)).max(axis=1) < 0.06))


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_cells_of_variance_explained_have_the_colours_of_their_numbers():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((3, 5)) * 0.4, index=["rna", "protein", "x"], columns=[f"f{k}" for k in range(5)])
    picture = Picture(ca.plot.variance_explained(frame))
    shades = mpl.colormaps["Blues"](frame.to_numpy() / frame.to_numpy().max())[..., :3]
    for view, factor in np.ndindex(3, 5):
        corner = picture.at(factor - 0.35, view - 0.35)  # beside the number that is written there
        np.testing.assert_allclose(corner, shades[view, factor], atol=0.02)


def test_dots_have_the_colours_of_their_levels_and_missing_ones_are_hollow():
    frame = pd.DataFrame({"age": [-1.0, 0.0, 1.0, 2.0], "dose": [1.0, -1.0, 0.5, 2.0]}, index=list("abcd"))
    ax = ca.plot.factors(frame, x="age", y="dose", colour=pd.Series(["u", "v", "u", None], list("abcd"), name="site"))
    picture = Picture(ax)
    palette = np.array([to_rgb(colour) for colour in ca.plot.CATEGORY_COLOURS])
    for (x, y), level in zip(frame.to_numpy()[:3], (0, 1, 0), strict=True):
        away = np.abs(picture.at(x, y) - palette).max(axis=1)  # dots let a little of the paper through
        assert away.argmin() == level
        assert away[level] < 0.2
    np.testing.assert_allclose(picture.at(2.0, 2.0), (1, 1, 1), atol=0.02)  # hollow ...
    assert picture.has_near(2.0, 2.0, "#8A8A8A", reach=4)  # ... but there


def test_the_regimes_are_seen_on_the_frontier():
    m = ca.simulate.population_moments("PN")
    frame = ca.regimes.frontier(m)
    picture = Picture(ca.plot.frontier(frame))
    for regime in ("independent", "strongest", "exclusive"):
        point = frame[frame["regime"] == regime].iloc[0]
        np.testing.assert_allclose(
            picture.at(point["coupling"], point["alignment"]), to_rgb(ca.plot.REGIME_COLOURS[regime]), atol=0.06
        )
    along = frame[frame["lam"].between(0.4, 0.6)].sort_values("lam")
    middle = along[["coupling", "alignment"]].mean()
    assert picture.has_near(middle["coupling"], middle["alignment"], "#222222")  # the line runs there


def test_nothing_is_drawn_where_the_frame_has_nothing():
    frame = pd.DataFrame([[0.2, np.nan]], index=["rna"], columns=["a", "b"])
    picture = Picture(ca.plot.variance_explained(frame))
    blue = mpl.colormaps["Blues"](1.0)[:3]
    np.testing.assert_allclose(picture.at(-0.35, -0.35), blue, atol=0.02)
    gap = picture.at(0.65, -0.35)
    assert np.ptp(gap) < 0.03  # grey or white: no colour of the scale
