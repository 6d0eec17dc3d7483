"""What a notebook shows: a card of a fitted model, and the live report in a frame."""

from __future__ import annotations

import gc
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
import sklearn

import covalign as ca

NAMES = ["age", "<script>alert(1)</script>", "noise"]


@pytest.fixture(scope="module")
def data():
    s = ca.simulate.scenario("PN", n_samples=300, n_features=20, n_factors=6, n_covariates=3)
    Y = pd.DataFrame(s.Y, columns=NAMES)
    Y["noise"] = np.random.default_rng(0).standard_normal(300)
    return s.X, Y


@pytest.fixture(scope="module", params=["aligner", "factors"])
def model(request, data):
    if request.param == "aligner":
        return ca.LatentAligner(folds=3).fit(*data)
    fitted = ca.InformedFactorAnalysis(6, tol=1e-4, folds=3).fit(*data)
    fitted.summary()  # after which held-out numbers are there
    return fitted


class Cells(HTMLParser):
    """Rows of a table as text, and tags that are open."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_startendtag(self, tag, attrs):
        self.tags.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def test_a_card_has_the_numbers_of_the_summary(model):
    text = model._repr_html_()
    read = Cells(text)
    assert read.open == []
    assert "script" not in read.tags
    assert {"svg", "polyline", "circle", "table"} < read.tags
    head, *rows = read.rows
    assert head == ["covariate", "in sample", "held out", "90 %", "verdict"]
    summary = model.summary()
    assert [row[0] for row in rows] == NAMES
    assert [row[1] for row in rows] == [f"{value:.2f}" for value in summary["in_sample"]]
    assert [row[2] for row in rows] == [f"{value:.2f}" for value in summary["held_out"]]
    assert [row[3] for row in rows] == [f"{a:.2f} to {b:.2f}" for a, b in summary[["low", "high"]].to_numpy()]
    assert [row[4] for row in rows] == model._verdicts(summary)
    assert rows[0][4] == "captured"
    assert rows[2][4] != "captured"
    assert len(text) < 4000
    assert "http" not in text


def test_a_card_says_what_was_fitted_and_moves_with_the_regime(model):
    assert "fitted on 300 rows; 20 features; coupling" in model._repr_html_()
    dots = {lam: re.search(r'<circle cx="([\d.]+)"', model.at(lam)._repr_html_())[1] for lam in (0.0, 1.0)}
    assert float(dots[0.0]) < float(dots[1.0])
    assert "in the exclusive regime" in model.at(regime="exclusive")._repr_html_()


def test_a_notebook_gets_the_card_and_scikit_learns_box_without_a_fit(model):
    shown = model._repr_mimebundle_()
    assert shown == {"text/plain": repr(model), "text/html": model._repr_html_()}
    with sklearn.config_context(display="text"):
        assert model._repr_mimebundle_() == {"text/plain": repr(model)}
        assert not hasattr(model, "_repr_html_")
    unfitted = sklearn.base.clone(model)
    assert "covalign-card" not in unfitted._repr_html_()
    assert "sk-estimator" in unfitted._repr_html_()


def test_a_card_of_factors_fits_nothing(data, monkeypatch):
    """Held-out numbers of factors are further fits, so they are shown only if they are there."""
    model = ca.InformedFactorAnalysis(6, tol=1e-3).fit(*data)
    monkeypatch.setattr(ca.InformedFactorAnalysis, "_judged", None)
    text = model._repr_html_()
    assert "summary() computes them" in text
    assert [row[2:] for row in Cells(text).rows[1:]] == [["–", "–", ""]] * 3


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_cautions():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 40)), rng.standard_normal((60, 1))
    assert "overfitted" in ca.LatentAligner(lam=1.0, folds=3).fit(X, y)._repr_html_()
    assert "Nothing was held out" in ca.InformedFactorAnalysis(3, folds=0).fit(X, y)._repr_html_()
    assert (
        "did not converge in 2 iterations" in ca.InformedFactorAnalysis(3, folds=0, max_iter=2).fit(X, y)._repr_html_()
    )


def test_many_covariates_are_cut():
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((300, 80))
    text = ca.LatentAligner(folds=2).fit(Z, Z[:, :70] + rng.standard_normal((300, 70)))._repr_html_()
    assert len(Cells(text).rows) == 26
    assert "45 more covariates in summary()" in text


def test_the_report_is_shown_in_a_frame(model):
    shown = ca.report.show(model, title='Mice "A" & <B>', height=500)

    class Frame(HTMLParser):
        def handle_starttag(self, tag, attrs):
            self.tag, self.attributes = tag, dict(attrs)

    frame = Frame()
    frame.feed(shown._repr_html_())
    assert frame.tag == "iframe"
    assert frame.attributes["srcdoc"] == ca.report.page(ca.report.summary(model), 'Mice "A" & <B>')
    assert frame.attributes["title"] == 'Mice "A" & <B>'
    assert "allow-same-origin" not in frame.attributes["sandbox"]
    assert "height:500px" in frame.attributes["style"]
    for wrong in (0, True, "800"):
        with pytest.raises(ValueError, match=r"height needs a whole number of at least 1, got .* pixels"):
            ca.report.show(model, height=wrong)


def test_a_summary_shows_the_card_and_stays_a_table(model):
    summary = model.summary()
    shown = summary._repr_html_()
    assert shown.startswith(model._repr_html_())
    assert "<th>se</th>" in shown
    assert repr(summary) == repr(pd.DataFrame(summary))
    assert "&lt;script&gt;alert(1)" in shown
    assert "<script" not in shown
    assert type(summary.round(2)) is pd.DataFrame
    assert type(summary[["held_out"]]) is pd.DataFrame
    assert summary.copy().attrs.keys() == summary.attrs.keys()
    moved = model.at(0.9)
    later = moved.summary()
    assert later._repr_html_().startswith(moved._repr_html_())
    del moved
    gc.collect()
    assert "covalign-card" not in later._repr_html_()  # a summary keeps no model in memory
