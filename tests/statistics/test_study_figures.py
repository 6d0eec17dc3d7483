"""Figures of the study as a reader sees them: names do not overlap, colours differ, every line has a name."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from covalign.study import model_diagram, reproduction, study_style
from covalign.study.label_places import spaced
from covalign.study.paper_figures import fig1, sweep_figure
from covalign.study.profiles import TINY, Inputs
from covalign.study.results_store import Row, Store, Unit, setting
from covalign.study.scores import LABELS

METHODS = ("iFA (no T)", "iFA (lam=0)", "iFA (lam=0.5)", "iFA (lam=1)", "PCA", "PLS", "Y as factors", "SOFA (sf=0.1)")
MANY = [
    *study_style.STYLES,
    *(f"iFA (lam={lam:g})" for lam in (0, 0.25, 0.5, 0.75, 1)),
    *(f"SOFA (sf={sf:g})" for sf in (0.01, 0.02, 0.03, 0.04, 0.05, 0.1)),
]


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Two settings; SOFA has one repetition, the others two."""
    made, rng = Store(tmp_path), np.random.default_rng(0)
    for alpha in (0.5, 1.0):
        at = setting(scenario="PN", alpha=alpha, b=1.0, n=TINY.n, budget=TINY.budget)
        for rep in range(2):
            names = [name for name in METHODS if not (rep and name.startswith("SOFA"))]
            rows = [
                Row(name, metric, value) for name in names for metric, value in zip(LABELS, rng.random(8), strict=True)
            ]
            made.append(Unit("methods", "all", at, rep), rows)
    return made


def boxes(texts: list) -> list:
    """The boxes of texts on a canvas that was drawn."""
    return [text.get_window_extent() for text in texts if text.get_text()]


def test_titles_of_matrices_do_not_overlap(tmp_path):
    figure = fig1(Store(tmp_path), TINY, Inputs())
    figure.canvas.draw()
    found = boxes([ax.title for ax in figure.axes])
    assert len(found) >= 7
    assert not any(a.overlaps(b) for a, b in combinations(found, 2))


def test_no_two_methods_share_a_colour():
    """Lightness, green against red and blue against yellow: two methods differ in one of them at least."""
    looks = study_style.looks(MANY)
    assert len(looks) == len(MANY)
    colours = {name: np.array(mpl.colors.to_rgb(colour)) for name, (colour, _) in looks.items()}
    families = [kind + " (" for kind in study_style.FAMILIES]
    for a, b in combinations(MANY, 2):
        same_family = any(a.startswith(kind) and b.startswith(kind) for kind in families)
        assert np.linalg.norm(colours[a] - colours[b]) > (0.02 if same_family else 0.12), (a, b)


def test_sweeps_name_every_line_apart_from_the_others(store):
    figure = sweep_figure("PN", store, TINY, Inputs())
    ours, others = np.array(figure.axes).reshape(len(LABELS), 4)[0, :2]
    assert {text.get_text() for text in ours.texts} == {"no $T$", *(rf"$\lambda$ = {lam}" for lam in ("0", "0.5", "1"))}
    assert {text.get_text() for text in others.texts} == {"PCA", "PLS", "Y as factors", "SOFA 0.1 (1)"}
    figure.canvas.draw()
    assert not any(a.overlaps(b) for ax in figure.axes for a, b in combinations(boxes(ax.texts), 2))
    assert "fewer repetitions" in figure.get_suptitle()


def test_a_broken_axis_says_so():
    ax = plt.subplots()[1]
    ax.plot([0, 20], [0, 1])
    study_style.coupling_axis(ax)
    assert {text.get_text() for text in ax.texts} == {"linear scale", "logarithmic"}
    whole = plt.subplots()[1]
    whole.plot([0, 0.5], [0, 1])
    study_style.coupling_axis(whole)
    assert not whole.texts


def test_the_graphical_model_has_its_plates_around_its_nodes(tmp_path):
    inside = {
        plate.label.split()[0]: {
            name
            for name, node in model_diagram.NODES.items()
            if plate.left < node.x < plate.right and plate.bottom < node.y < plate.top
        }
        for plate in model_diagram.PLATES
    }
    assert inside["samples"] == {"y", "informed", "moved", "free", "x"}
    assert inside["views"] == {"x", "w", "tau", "alpha"}
    assert inside["features"] == {"x", "w", "tau"}
    assert inside["factors"] == {"w", "alpha"}
    assert inside["covariates"] == {"y", "beta", "informed", "moved"}
    observed = {name for name, node in model_diagram.NODES.items() if node.kind == model_diagram.OBSERVED}
    assert observed == {"y", "x"}
    made = reproduction.save(lambda: model_diagram.model_diagram(Store(tmp_path), TINY, Inputs()), tmp_path / "m.png")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.png", "m.svg"]
    again = reproduction.save(lambda: model_diagram.model_diagram(Store(tmp_path), TINY, Inputs()), tmp_path / "n.png")
    assert made.with_suffix(".svg").read_bytes() == again.with_suffix(".svg").read_bytes()


@given(st.lists(st.floats(0, 1), min_size=1, max_size=25))
def test_names_keep_their_order_and_their_distance(wanted):
    values = np.array(wanted)
    found, gap = spaced(values, 0.05, 0.0, 1.0), min(0.05, 1 / max(len(wanted) - 1, 1))
    order = np.argsort(values, kind="stable")
    assert (np.diff(found[order]) >= gap - 1e-9).all()
    assert found.min() >= -1e-9
    assert found.max() <= 1 + 1e-9


def test_a_name_with_room_stays_at_its_line():
    assert spaced(np.array([0.9, 0.1, 0.12]), 0.1, 0.0, 1.0) == pytest.approx([0.9, 0.06, 0.16])


def test_drawing_leaves_the_settings_of_matplotlib_alone(tmp_path):
    before = dict(mpl.rcParams)
    reproduction.save(lambda: plt.figure(), tmp_path / "empty.png")
    assert dict(mpl.rcParams) == before
    assert pd.Series(study_style.STYLE).index.isin(list(mpl.rcParams)).all()


def test_all_scripts_that_draw_use_the_one_style_sheet():
    root = Path(__file__).resolve().parents[2]
    drawing = [
        path
        for folder in ("examples", "benchmarks")
        for path in (root / folder).glob("*.py")
        if "savefig" in path.read_text()
    ]
    assert len(drawing) >= 5
    assert all("STYLE)" in path.read_text() for path in drawing)
