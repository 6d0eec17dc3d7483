"""The page as a file: whole, small, and safe with any name."""

from __future__ import annotations

import json
import os
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from covalign import LatentAligner
from covalign.exceptions import NotHeldOutWarning
from covalign.show import report
from covalign.show.report import facts
from covalign.show.report.plain_copy import static, ticks
from tests.conftest import correlated

NASTY = ["<script>alert(1)</script>", '" onload="alert(2)', "</script><img src=x onerror=alert(3)>", "a & b's @facts@"]


class Elements(HTMLParser):
    """Every element and attribute of a page, and the text of its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data):
        if self.tags and self.tags[-1][0] == "script":
            self.scripts[-1] += data
        else:
            self.text += data


def nasty():
    Z, Y = correlated(0, 200, 6, 4)
    return LatentAligner().fit(Z, pd.DataFrame(Y, columns=NASTY))


def test_names_are_text_and_nothing_else(tmp_path):
    aligner = nasty()
    plain = LatentAligner().fit(*correlated(0, 200, 6, 4))
    page = Elements(report.write(aligner, tmp_path / "r.html", title=NASTY[0]).read_text())
    need = Elements(report.page(facts.of_aligner(plain), "covalign report"))
    assert [tag for tag, _ in page.tags] == [tag for tag, _ in need.tags]
    assert [sorted(attributes) for _, attributes in page.tags] == [sorted(attributes) for _, attributes in need.tags]
    assert json.loads(page.scripts[0])["covariates"] == NASTY
    assert page.scripts[1:] == need.scripts[1:]
    for name in NASTY:
        assert name in page.text


def test_the_page_needs_nothing_else():
    text = report.page(facts.of_aligner(nasty()), "r")
    assert not re.search(
        r"(src|href)\s*=", text.partition("<body>")[0] + text.partition("</main>")[2].partition("<script")[0]
    )
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in text
    assert "innerHTML" not in text


def test_nothing_is_overwritten_unasked_and_nothing_is_left_half_written(tmp_path, monkeypatch):
    aligner, path = nasty(), tmp_path / "r.html"
    report.write(aligner, path)
    before = path.read_text()
    assert os.stat(path).st_mode & 0o044  # others may read it, as the umask says
    with pytest.raises(ValueError, match="exists"):
        report.write(aligner, path)
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError("no space left on device")))
    with pytest.raises(OSError, match="no space"):
        report.write(aligner, path, overwrite=True, title="other")
    assert path.read_text() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(("p", "most"), [(1, 85_000), (20, 410_000), (60, 1_500_000)])
def test_pages_are_small(p, most):
    Z, Y = correlated(1, 300, p + 5, p)
    text = report.page(facts.of_aligner(LatentAligner().fit(Z, Y)), "r")
    assert len(text) < most
    assert text.count('<tr><th scope="row">') == p


def test_pages_of_covariates_with_gaps_are_small():
    Z, Y = correlated(1, 300, 25, 20)
    Y[np.random.default_rng(0).random(Y.shape) < 0.1] = np.nan
    assert len(report.page(facts.of_aligner(LatentAligner().fit(Z, Y)), "r")) < 600_000


def test_a_page_carries_no_comments_and_no_indents():
    page = Elements(report.page(facts.of_aligner(nasty()), "r"))
    lines = [line for script in page.scripts[1:] for line in script.splitlines()]
    assert len(lines) > 300
    assert [line for line in lines if line.startswith(("//", " ")) or "  //" in line] == []


def test_the_static_figure_has_axes_to_read_it_by():
    model = LatentAligner(lam=0.7).fit(*correlated(3, 300, 6, 4))
    text = static(facts.of_aligner(model))
    tick = r'<text class="tick" x="([\d.]+)" y="([\d.]+)" text-anchor="(\w+)">([-\d.]+)<'
    found = [(float(x), float(y), side, float(value)) for x, y, side, value in re.findall(tick, text)]
    across = [(x, value) for x, _, side, value in found if side == "middle"]
    up = [(y - 4, value) for _, y, side, value in found if side == "end"]
    assert min(len(across), len(up)) > 1
    cx, cy = map(float, re.search(r'class="now fitted" cx="([\d.]+)" cy="([\d.]+)"', text).groups())
    for at, marks, need in ((cx, across, model.coupling_), (cy, up, model.alignment_.mean())):
        slope, start = np.polyfit(*zip(*marks, strict=True), 1)
        assert start + slope * at == pytest.approx(need, abs=abs(slope) * 0.2)


def test_the_static_figure_has_the_exact_trade_off_and_says_how_far_away_it_is():
    known = facts.of_aligner(LatentAligner().fit(*correlated(6, 200, 8, 5)))
    text = static(known)
    assert known["about_exact"] in text
    lines = {
        kind: np.array([[float(value) for value in at.split()] for at in path.split(" L")])
        for kind, path in re.findall(r'<path class="line (\w+)" d="M([^"]+)"/>', text)
    }
    assert len(lines["exact"]) == len(lines["fitted"])
    np.testing.assert_array_equal(lines["exact"][:, 0], lines["fitted"][:, 0])
    assert np.all(lines["exact"][:, 1] <= lines["fitted"][:, 1])  # y points down
    assert np.max(lines["fitted"][:, 1] - lines["exact"][:, 1]) > 1
    assert 'class="line exact"' not in static({**known, "exact": None})


def test_the_static_figure_has_no_place_for_what_is_unknown():
    """One carrier: no fold can judge, so there is no held-out curve."""
    Z, _ = correlated(0, 5, 3, 1)
    with pytest.warns(NotHeldOutWarning):
        model = LatentAligner().fit(Z, np.eye(5)[:, 4:])
    text = static(facts.of_aligner(model))
    assert "nan" not in text
    assert 'class="line fitted"' in text
    assert 'class="line held"' not in text


def test_the_static_figure_magnifies_nothing():
    rng = np.random.default_rng(0)
    Y = rng.standard_normal((2000, 2))
    model = LatentAligner().fit(Y + 0.3 * rng.standard_normal((2000, 2)), Y)
    assert model.at(lam=1).coupling_ < 0.02
    ticks = re.findall(r'<text class="tick"[^>]*text-anchor="middle">([-\d.]+)<', static(facts.of_aligner(model)))
    assert max(map(float, ticks)) == pytest.approx(0.1)


def test_without_scripts_what_no_fold_can_judge_has_no_number():
    Z, Y = correlated(11, 300, 6, 2)
    rare = np.zeros(300)
    rare[7] = 1  # no fold has rows of both kinds to fit and to judge
    model = LatentAligner().fit(Z, np.c_[Y, rare])
    text, table = static(facts.of_aligner(model)), model.summary()
    assert "nan" not in text
    assert f"<td>{table.loc['y2', 'in_sample']:.3f}</td><td>–</td><td>–</td>" in text
    assert f"<td>{table.loc['y0', 'low']:.3f} to {table.loc['y0', 'high']:.3f}</td>" in text


@pytest.mark.parametrize(("low", "high"), [(0, 1e-3), (-0.2, 1.0), (0.51, 0.52), (0, 173.0), (-3e-5, 2e-5)])
def test_ticks_are_round_and_told_apart(low, high):
    marks = ticks(low, high)
    assert 2 <= len(marks) <= 6
    assert [float(text) for _, text in marks] == pytest.approx([at for at, _ in marks], abs=1e-12)
    assert all(low <= at <= high for at, _ in marks)
