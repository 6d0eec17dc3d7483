"""The report in a real browser: it moves, its numbers are Python's, and it asks nothing of the network.

Screenshots go to the folder in COVALIGN_SCREENSHOTS, if that is set. With COVALIGN_NEEDS_BROWSER a missing browser is a
failure, not a reason to skip.
"""

from __future__ import annotations

import itertools
import os
import shutil
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import covalign as ca
from covalign import InformedFactorAnalysis, LatentAligner
from covalign.exceptions import NotHeldOutWarning
from covalign.show import report
from tests.conftest import correlated
from tests.system.test_report_page import NASTY

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
NEEDED = bool(os.environ.get("COVALIGN_NEEDS_BROWSER"))
WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 800}


@pytest.fixture(scope="module")
def browser():
    """Chromium. For this module only: while it is open, no other event loop can run in this thread."""
    if not NEEDED:
        pytest.importorskip("playwright", reason="playwright is not installed")
        if CHROMIUM is None:
            pytest.skip("chromium is not installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield Tabs(opened)
        opened.close()


class Tabs:
    """One tab for each choice of options. A report is loaded into an open tab: a new one costs more than the report."""

    def __init__(self, chromium) -> None:
        self.chromium = chromium
        self.open: dict = {}
        self.count = itertools.count()  # of reports: a file that is loaded again might keep what was typed

    def tab(self, viewport=WIDE, **options):
        """It looks as a new tab does."""
        key = tuple(sorted(options.items()))
        if key not in self.open:
            self.open[key] = self.chromium.new_context(**options).new_page()
        self.open[key].set_viewport_size(viewport)
        self.open[key].emulate_media(media="screen")
        self.open[key].mouse.move(0, 0)
        return self.open[key]


class Page:
    """A report that is open, and what the browser complained of or asked for meanwhile."""

    def __init__(self, browser, model, folder: Path, *, viewport=WIDE, title="r", **options) -> None:
        self.path = report.write(model, folder / f"report{next(browser.count)}.html", title=title)
        self.page = browser.tab(viewport, **options)
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.heard = {
            "console": lambda message: self.complaints.append(message.text),
            "pageerror": lambda error: self.complaints.append(str(error)),
            "dialog": lambda dialog: (self.complaints.append(dialog.message), dialog.dismiss()),
            "request": lambda request: self.requests.append(request.url),
        }
        for event, listener in self.heard.items():
            self.page.on(event, listener)
        self.page.goto(self.path.as_uri())

    def __enter__(self) -> Page:
        return self

    def __exit__(self, kind, *_: object) -> None:
        for event, listener in self.heard.items():
            self.page.remove_listener(event, listener)
        if kind is None:
            assert self.complaints == []
            assert self.requests == [self.path.as_uri()]

    def settle(self) -> None:
        """Wait until what was asked for is drawn."""
        self.page.evaluate("() => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))")

    def press(self, name: str) -> None:
        self.page.get_by_role("button", name=name, exact=False).click()
        self.settle()

    @property
    def state(self) -> dict:
        return self.page.evaluate("window.covalign.state")

    @property
    def now(self) -> dict:
        return self.page.evaluate("window.covalign.now")

    def text(self, selector: str) -> str:
        return self.page.inner_text(selector)

    def drag(self, share: float) -> float:
        """Take the slider's thumb with the mouse and let it go at a share of its way; the lambda it is at."""
        box = self.page.locator("#lam").bounding_box()
        here = float(self.page.input_value("#lam"))
        height, thumb = box["y"] + box["height"] / 2, 8
        place = lambda lam: box["x"] + thumb + lam * (box["width"] - 2 * thumb)  # noqa: E731
        self.page.mouse.move(place(here), height)
        self.page.mouse.down()
        self.page.mouse.move(place((here + share) / 2), height, steps=3)
        self.page.mouse.move(place(share), height, steps=3)
        self.page.mouse.up()
        self.settle()
        return self.state["lam"]

    def screenshot(self, name: str) -> None:
        """The whole page, if someone wants to look at it."""
        if "COVALIGN_SCREENSHOTS" in os.environ:
            self.page.screenshot(full_page=True, path=Path(os.environ["COVALIGN_SCREENSHOTS"]) / f"{name}.png")


def aligner(p: int = 3, **settings) -> LatentAligner:
    Z, Y = correlated(p, 400, p + 5, p)
    long = "the concentration of a protein that has a rather long name, as proteins do, number"
    names = [f"{long} {i}" if i % 3 == 1 else f"y{i}" for i in range(p)]
    return LatentAligner(**settings).fit(Z, pd.DataFrame(Y, columns=names))


def same_as_python(page: Page, model: LatentAligner) -> None:
    now, table = page.now, model.summary()
    row = model.frontier([model.lam] if model.regime == "tunable" else []).set_index("regime")
    np.testing.assert_allclose(now["alignment"], model.alignment_, atol=1e-6)
    np.testing.assert_allclose(now["coupling"], model.coupling_, atol=1e-6)
    for name, column in (("alignment", "held_out"), ("low", "low"), ("high", "high")):
        np.testing.assert_allclose(now["heldOut"][name], table[column], atol=1e-6)
    if model.regime in row.index:
        np.testing.assert_allclose(now["heldOut"]["coupling"], row.loc[model.regime, "held_out_coupling"], atol=1e-6)
    means = model.mean_alignment_
    for name, key in (("held_out", "mean"), ("low", "meanLow"), ("high", "meanHigh")):
        np.testing.assert_allclose(now["heldOut"][key], means[name], atol=1e-6)
    shown = [
        [page.text(f"#numbers tr:nth-child({p + 1}) td.{kind}") for kind in ("fitted", "held", "limits")]
        for p in range(len(table))
    ]
    need = [[f"{a:.3f}", f"{h:.3f}", f"{lo:.3f} to {hi:.3f}"] for a, h, _, lo, hi in table.iloc[:, :5].to_numpy()]
    assert shown == [[cell.replace("-0.00 ", "0.00 ") for cell in row] for row in need]
    assert page.text("#coupling-now") == f"{model.coupling_:.3f}"
    assert page.text("#alignment-now") == f"{model.alignment_.mean():.3f}"


def test_the_slider_is_dragged_and_every_number_is_that_of_python(browser, tmp_path):
    model = aligner(4)
    with Page(browser, model, tmp_path) as page:
        assert page.state["lam"] == 0.5
        same_as_python(page, model)
        for share in (0.83, 0.31, 0.07):
            lam = page.drag(share)
            assert lam == pytest.approx(share, abs=0.015)
            assert page.text("#lam-shown") == f"λ = {lam:.2f}"
            same_as_python(page, model.at(lam=lam))
        matrix = np.array(page.now["withY"])
        moved = model.at(lam=lam)
        np.testing.assert_allclose(np.diag(matrix), moved.alignment_, atol=1e-6)


def test_matrices_are_drawn_as_they_are(browser, tmp_path):
    model = aligner(3)
    with Page(browser, model, tmp_path) as page:
        page.drag(0.9)
        for name, matrix in (("with-y", page.now["withY"]), ("among", page.now["among"])):
            written = page.page.locator(f"#{name} text.value").all_text_contents()
            values = [float(text) for text in written]
            np.testing.assert_allclose(values, np.ravel(matrix), atol=0.00501)
            strengths = page.page.eval_on_selector_all(f"#{name} rect", "all => all.map(r => +r.style.fillOpacity)")
            np.testing.assert_allclose(strengths, np.abs(np.ravel(matrix)), atol=0.001)


SQUARES = """all => all.flatMap(path => path.getAttribute("d").split("z").slice(0, -1).map(square => [
    ...square.slice(1).split("h")[0].split(" ").map(Number),
    (path.classList.contains("negative") ? -1 : 1) * path.getAttribute("fill-opacity")]))"""


def test_matrices_of_many_are_drawn_as_they_are_by_few_elements(browser, tmp_path):
    with Page(browser, aligner(60), tmp_path) as page:
        for lam in ("0.9", "0.2"):
            page.page.locator("#lam").fill(lam)
            page.settle()
            for name, matrix in (("with-y", page.now["withY"]), ("among", page.now["among"])):
                assert page.page.locator(f"#{name} *").count() < 400
                assert page.page.eval_on_selector(f"#{name} .cell", "cell => getComputedStyle(cell).stroke") == "none"
                squares = np.array(page.page.eval_on_selector_all(f"#{name} .positive, #{name} .negative", SQUARES))
                x, y, shade = squares[np.lexsort((squares[:, 0], squares[:, 1]))].T
                np.testing.assert_allclose(shade, np.ravel(matrix), atol=1 / 127)
                assert len(np.unique(x)) == len(np.unique(y)) == 60
        page.page.locator("#with-y").scroll_into_view_if_needed()
        box = page.page.locator("#with-y .over").bounding_box()
        page.page.mouse.move(box["x"] + box["width"] * 3.5 / 60, box["y"] + box["height"] * 2.5 / 60)
        assert page.text("#tip") == f"z y2, y3: {page.now['withY'][2][3]:.3f}"


def test_buttons_go_to_the_regimes(browser, tmp_path):
    model = aligner(3)
    with Page(browser, model, tmp_path) as page:
        for name, regime in (("Strongest T₁", "strongest"), ("Exclusive", "exclusive"), ("Independent", "independent")):
            page.press(name)
            assert page.state["regime"] == regime
            assert page.page.get_attribute(f"#{regime}", "aria-pressed") == "true"
            same_as_python(page, model.at(regime=regime))
        exclusive = np.array(page.page.evaluate("arithmetic.measured(window.covalign.facts, 'exclusive', 0).withY"))
        assert np.abs(exclusive - np.diag(np.diag(exclusive))).max() < 1e-8


def test_the_strongest_within_a_budget(browser, tmp_path):
    model = aligner(4)
    most = model.at(regime="strongest").coupling_
    with Page(browser, model, tmp_path) as page:
        for budget in (0.02, most / 3, most * 0.9):
            page.page.fill("#budget", str(budget))
            page.press("Strongest within limit")
            need = model.at(max_coupling=budget)
            assert page.state["lam"] == pytest.approx(need.lam, abs=1e-6)
            assert page.now["coupling"] <= budget + 1e-9
            assert f"max_coupling={budget}" in page.text("#code")
        page.page.fill("#budget", str(2 * most))
        page.press("Strongest within limit")
        assert page.state["regime"] == "strongest"
        assert page.text("#budget-said") == "Even the strongest regime stays within this limit."
        page.page.fill("#budget", "")
        page.press("Strongest within limit")  # nothing to look for: nothing happens
        assert page.state["regime"] == "strongest"


def test_where_there_is_no_exclusive_point_the_page_says_why(browser, tmp_path):
    Z, Y = correlated(5, 300, 6, 2)
    levels = pd.DataFrame({"site": np.select([Y[:, 0] > 1, Y[:, 0] > 0], ["north", "east"], "south")})
    with Page(browser, LatentAligner(drop_first=False).fit(Z, levels), tmp_path) as page:
        assert page.page.is_disabled("#exclusive")
        assert "'site_north'" in page.text("#why-not")
        assert "drop_first=True" in page.text("#why-not")
        assert "3 levels have only 2 independent directions" in page.text("#reading")


def test_everything_works_by_keyboard(browser, tmp_path):
    model = aligner(3)
    with Page(browser, model, tmp_path) as page:
        visited = []
        for _ in range(8):
            page.page.keyboard.press("Tab")
            visited.append(page.page.evaluate("document.activeElement.id || document.activeElement.textContent"))
        assert visited == [
            "independent",
            "lam",
            "strongest",
            "exclusive",
            "budget",
            "Strongest within limit",
            "rows",
            "code",
        ]
        page.page.focus("#lam")
        page.page.keyboard.press("ArrowRight")
        page.settle()
        assert page.state["lam"] == pytest.approx(0.51)
        page.page.keyboard.press("End")
        page.settle()
        assert page.state["regime"] == "strongest"
        page.page.focus("#exclusive")
        page.page.keyboard.press("Enter")
        page.settle()
        assert page.state["regime"] == "exclusive"
        page.page.focus("#budget")
        page.page.keyboard.press("Enter")
        page.settle()
        assert page.state["regime"] == "tunable"


def test_the_code_reproduces_the_setting(browser, tmp_path):
    Z, Y = correlated(8, 300, 7, 3)
    model = LatentAligner(shrinkage=0.05, missing="drop").fit(Z, Y)
    with Page(browser, model, tmp_path) as page:
        for act in (
            lambda: page.drag(0.77),
            lambda: page.press("Exclusive"),
            lambda: page.press("Strongest within limit"),
        ):
            act()
            names = {"Z": Z, "Y": Y}
            exec(page.text("#code"), names)
            np.testing.assert_allclose(names["aligner"].alignment_, page.now["alignment"], atol=1e-6)
            assert names["named"].shape == (300, 3)


def test_a_command_of_several_lines_is_a_comment_throughout(browser, tmp_path):
    Z, Y = correlated(8, 300, 7, 3)
    file = report.write(
        LatentAligner().fit(Z, Y), tmp_path / "r.html", command="covalign align 'a\nraise Exit\r' z.npy"
    )
    page = browser.tab()
    page.goto(file.as_uri())
    names = {"Z": Z, "Y": Y}
    exec(page.inner_text("#code"), names)
    assert "named" in names
    assert "raise Exit" in page.inner_text("#code")


def test_the_reading_follows_the_numbers(browser, tmp_path):
    rng = np.random.default_rng(0)
    age = rng.standard_normal(500)
    Y = pd.DataFrame({"age": age, "dose": age + 0.5 * rng.standard_normal(500), "noise": rng.standard_normal(500)})
    Z = np.column_stack([Y[["age", "dose"]] + 0.4 * rng.standard_normal((500, 2)), rng.standard_normal((500, 4))])
    model = LatentAligner().fit(Z, Y)
    with Page(browser, model, tmp_path) as page:
        page.press("Strongest T₁")
        said = page.text("#reading")
        among = np.array(page.now["among"])
        assert f"age with dose ({among[0, 1]:.2f}; between the covariates {Y.corr().loc['age', 'dose']:.2f})" in said
        assert "On new rows, alignment cannot be distinguished from zero: noise." in said
        page.press("Independent")
        said = page.text("#reading")
        assert "uncorrelated with each other" in said
        assert "No two dimensions correlate by more than 0.1." in said
        assert "age loses most: " in said or "dose loses most: " in said
        assert "fitted and held-out numbers agree" in said


def test_the_reading_claims_no_more_than_is_so(browser, tmp_path):
    Z, Y = correlated(11, 300, 6, 2)
    rare = np.zeros(300)
    rare[7] = 1  # no fold has rows of both kinds to fit and to judge
    with Page(browser, LatentAligner(shrinkage="auto").fit(Z, np.c_[Y, rare]), tmp_path) as page:
        said = page.text("#reading")
        assert "Without held-out numbers: y2." in said
        out, now = page.now["heldOut"], page.now
        gap = np.mean(np.array(now["alignment"][:2]) - out["alignment"][:2])
        assert ("agree" in said) == (abs(gap) <= 0.05)
    rng = np.random.default_rng(2)
    noise = LatentAligner().fit(rng.standard_normal((80, 20)), rng.standard_normal((80, 4)))
    with Page(browser, noise, tmp_path) as page:
        page.press("Strongest T₁")
        low, high = (np.array(page.now["heldOut"][name]) for name in ("low", "high"))
        turned = [f"y{p}" for p in np.flatnonzero(high < 0)]
        lost = [f"y{p}" for p in np.flatnonzero((low <= 0) & (high >= 0))]
        assert turned
        assert lost
        said = page.text("#reading")
        assert (
            f"On new rows, alignment cannot be distinguished from zero: {', '.join(lost[:-1])} and {lost[-1]}." in said
        )
        assert f"the correlation is negative: {' and '.join(turned)}." in said
        assert f"at a shrinkage of {noise.shrinkage_:.2g}" in said


def test_a_lambda_is_shown_with_the_digits_it_needs(browser, tmp_path):
    for lam, shown, regime in (
        (0.999, "0.999", "tunable"),
        (1e-4, "0.0001", "tunable"),
        (0.999996, "0.999996", "tunable"),
        (1.0, "1.00", "strongest"),
        (0.0, "0.00", "independent"),
    ):
        with Page(browser, aligner(2, lam=lam), tmp_path) as page:
            assert (page.text("#lam-shown"), page.state["regime"]) == (f"λ = {shown}", regime)
        assert f"<h2>λ = {shown}: coupling" in page.path.read_text()


def test_an_overfitted_model_is_called_so(browser, tmp_path):
    rng = np.random.default_rng(3)
    Z, Y = rng.standard_normal((60, 40)), rng.standard_normal((60, 2))
    with Page(browser, LatentAligner().fit(Z, Y), tmp_path) as page:
        assert "trust the held-out numbers" in page.text("#reading")
    named = pd.DataFrame(Y, columns=["time of day", "dose"])
    with Page(browser, LatentAligner().fit(Z, named), tmp_path) as page:
        assert "from zero: “time of day” and dose." in page.text("#reading")
    with Page(browser, LatentAligner(shrinkage=0.1).fit(Z, Y), tmp_path) as page:
        assert page.text("#held-now") == "–"
        assert "There are no held-out numbers" in page.text("#reading")


@pytest.mark.parametrize("viewport", [WIDE, PHONE], ids=["wide", "narrow"])
@pytest.mark.parametrize("p", [1, 3, 20, 60])
def test_any_number_of_covariates_at_any_width(browser, tmp_path, p, viewport):
    with Page(browser, aligner(p), tmp_path, viewport=viewport, title=f"{p} covariates") as page:
        page.page.locator("#lam").fill("0.8")
        page.settle()
        assert page.page.locator("#numbers tr").count() == p
        assert page.page.evaluate("document.documentElement.scrollWidth") == viewport["width"]
        out = "all => all.filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('.scroll')).length"
        assert page.page.eval_on_selector_all("section *, .controls *", out) == 0
        assert len(page.page.screenshot()) > 20_000
        page.screenshot(f"p{p}_{viewport['width']}")
    assert page.path.stat().st_size < {1: 80_000, 3: 90_000, 20: 400_000, 60: 2_500_000}[p]


def test_names_are_text_in_the_browser(browser, tmp_path):
    Z, Y = correlated(0, 200, 6, 4)
    model = LatentAligner().fit(Z, pd.DataFrame(Y, columns=NASTY))
    with Page(browser, model, tmp_path, title=NASTY[0]) as page:
        assert page.page.locator("#numbers th").all_inner_texts() == NASTY
        assert page.page.title() == NASTY[0]
        assert page.page.locator("body img").count() == 0
        assert page.page.locator("script").count() == 5
        page.press("Strongest T₁")
        page.page.hover("#with-y rect:nth-of-type(2)")
        assert NASTY[0] in page.text("#tip")


def test_names_that_read_from_right_to_left_leave_the_numbers_as_they_are(browser, tmp_path):
    Z, Y = correlated(0, 300, 6, 3)
    names = ["\u05d2\u05d9\u05dc", "\u202edose", "age"]
    with Page(browser, LatentAligner().fit(Z, pd.DataFrame(Y, columns=names)), tmp_path) as page:
        page.press("Strongest T₁")
        said = page.text("#reading")
        assert said.count("\u2068") == said.count("\u2069") > 0
        for name in names[:2]:
            assert said.count(name) == said.count(f"\u2068{name}\u2069") > 0
        assert page.page.locator("#numbers th").all_inner_texts() == names


@pytest.mark.parametrize("p", [6, 30])
def test_names_of_any_letters_stay_within_the_figure(browser, tmp_path, p):
    Z, Y = correlated(p, 400, p + 5, p)
    letters = ["W", "\u6f22", "\U0001f600", "i", "M\u0301", "@"]
    names = [letters[i % 6] * 20 + str(i) for i in range(p)]
    with Page(browser, LatentAligner().fit(Z, pd.DataFrame(Y, columns=names)), tmp_path) as page:
        out = """all => all.filter(text => {
            const [a, b] = [text.getBoundingClientRect(), text.closest("svg").getBoundingClientRect()];
            return a.left < b.left - 1 || a.right > b.right + 1 || a.top < b.top - 1;
        }).map(text => text.textContent)"""
        assert page.page.eval_on_selector_all(".heat .name", out) == []
        assert page.page.locator("#among .name").count() == 2 * p


def test_dark_light_and_paper(browser, tmp_path):
    colours = {}
    for scheme in ("light", "dark"):
        with Page(browser, aligner(3), tmp_path, color_scheme=scheme) as page:
            ground, ink = page.page.evaluate(
                "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
            )
            colours[scheme] = [sum(map(int, text[4:-1].split(","))) for text in (ground, ink)]
            page.screenshot(f"p3_{scheme}")
    assert colours["light"][0] - colours["light"][1] > 400
    assert colours["dark"][1] - colours["dark"][0] > 400
    with Page(browser, aligner(30), tmp_path, color_scheme="dark") as page:
        positive = "getComputedStyle(document.documentElement).getPropertyValue('--positive')"
        on_screen = page.page.evaluate(positive)
        page.page.emulate_media(media="print")
        assert page.page.evaluate(positive) != on_screen  # paper is white, whatever the screen
        assert not page.page.is_visible("#strongest")
        assert page.page.is_visible("#numbers tr:last-child")
        assert page.page.evaluate("getComputedStyle(document.getElementById('rows')).maxHeight") == "none"
        assert len(page.page.pdf()) > 10_000


@pytest.mark.parametrize("viewport", [WIDE, PHONE], ids=["wide", "narrow"])
def test_without_scripts_there_is_a_figure(browser, tmp_path, viewport):
    model = aligner(3)
    with Page(browser, model, tmp_path, viewport=viewport, java_script_enabled=False) as page:
        assert page.page.is_visible(".static svg")
        assert not page.page.is_visible("#lam")
        rows = page.page.locator(".static tbody tr").all_inner_texts()
        assert [row.split("\t")[1] for row in rows] == [f"{value:.3f}" for value in model.alignment_]
        assert page.page.locator("html").bounding_box()["width"] <= viewport["width"]
        page.screenshot(f"static_{viewport['width']}")


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "plain"])
def test_groups_are_spoken_of_with_and_without_scripts(browser, tmp_path, scripts):
    Z, Y = correlated(0, 120, 6, 2)
    place = "#reading" if scripts else ".static"
    for n_groups, said in ((12, "there are 12 groups."), (4, "there are only 4 groups, so little is known")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotHeldOutWarning)
            model = LatentAligner().fit(Z, Y, groups=np.arange(120) % n_groups)
        with Page(browser, model, tmp_path, java_script_enabled=scripts) as page:
            assert f"Rows were left out by group; {said}" in page.page.locator(place).inner_text()
            page.screenshot(f"groups_{n_groups}_{'scripts' if scripts else 'plain'}")
    with Page(browser, LatentAligner().fit(Z, Y), tmp_path, java_script_enabled=scripts) as page:
        assert "by group" not in page.page.locator(place).inner_text()


# -- factor models ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def clinic():
    """Two views, one of them missing for some; gaps, a category and a confounder."""
    s = ca.simulate.scenario("PN", n_samples=200, n_features={"rna": 30, "<b>protein</b>": 20}, random_state=2)
    patients = [f"patient {i}" for i in range(200)]
    views = {
        name: pd.DataFrame(X, index=patients, columns=[f"{name}{d}" for d in range(X.shape[1])])
        for name, X in s.X.items()
    }
    views["<b>protein</b>"] = views["<b>protein</b>"].iloc[:140]
    Y = pd.DataFrame(s.Y[:, :2], index=patients, columns=["age", "dose"])
    Y["stage"] = pd.Categorical(np.digitize(s.Y[:, 2], [-0.5, 0.5]).astype(str))
    Y.iloc[3:9, 1] = np.nan
    Y["batch"] = ["a", "b"] * 100
    model = InformedFactorAnalysis(n_factors=8, tol=1e-6, folds=3, drop_first=False)
    return model.fit(views, Y, confounders=["batch"])


@pytest.mark.parametrize("viewport", [WIDE, PHONE], ids=["wide", "narrow"])
def test_a_factor_model_moves_as_its_realignments_do(browser, tmp_path, clinic, viewport):
    with Page(browser, clinic.realign(0.5), tmp_path, viewport=viewport) as page:
        for lam in (0.5, 0.2, 0.9):
            page.page.locator("#lam").fill(str(lam))
            page.settle()
            model = clinic.realign(lam)
            np.testing.assert_allclose(page.now["alignment"], model.alignment_, atol=1e-6)
            np.testing.assert_allclose(page.now["coupling"], model.coupling_, atol=1e-6)
            np.testing.assert_allclose(page.now["heldOut"]["alignment"], model.summary()["held_out"], atol=1e-6)
            shares = page.page.evaluate("window.covalign.shares")
            np.testing.assert_allclose(shares, model.variance_explained(), atol=1e-6)
        page.press("As fitted")
        np.testing.assert_allclose(page.now["alignment"], clinic.alignment_, atol=1e-6)
        np.testing.assert_allclose(page.now["heldOut"]["alignment"], clinic.summary()["held_out"], atol=1e-6)
        np.testing.assert_allclose(page.page.evaluate("window.covalign.shares"), clinic.variance_explained(), atol=1e-6)
        assert "realign" not in page.text("#code")
        page.press("Independent")
        assert np.abs(np.array(page.now["among"]) - np.eye(5)).max() < 1e-6
        assert "should be 0" not in page.text("#reading")
        assert page.page.evaluate("document.documentElement.scrollWidth") == viewport["width"]
        page.screenshot(f"model_{viewport['width']}")


def test_what_a_factor_model_shows(browser, tmp_path, clinic):
    model = clinic.realign(0.5)
    with Page(browser, model, tmp_path) as page:
        best = model.top_features("dose", "rna", 1).iloc[0]
        page.page.select_option("#top-factor", "1")
        assert page.text("#top h3 >> nth=0") == "rna (30 features)"
        verdicts = page.page.locator("#informed tbody td:last-child").all_inner_texts()
        assert verdicts == model.informed_["verdict"].tolist()
        assert f"Supervision {model.supervision_:g}:" in page.text("#informed-said")
        lost = [name for name, of in model.informed_["verdict"].items() if of == "not captured"]
        marked = [text for text in page.page.locator("#numbers th").all_inner_texts() if "(not captured)" in text]
        assert marked == [f"{name} (not captured)" for name in lost]
        assert page.page.locator("#top svg text").first.text_content() == best["feature"]
        assert f"Converged after {model.n_iter_} sweep" in page.text("#bound-said")
        assert page.page.locator('#bound .tick[text-anchor="end"]').count() > 1
        sweeps = page.page.locator('#bound .tick[text-anchor="middle"]').all_text_contents()
        assert all(tick.isdigit() for tick in sweeps)
        assert "imension" not in page.text("main")  # a model has factors
        assert "60 samples without this view" in page.text("#missing")
        assert "dose in 6" in page.text("#missing")
        assert "batch_b" in page.text("#missing")
        assert page.page.locator("#scatter circle").count() == 200
        assert page.page.locator("#scatter circle.unknown").count() == 0
        page.page.select_option("#scatter-colour", "1")
        assert page.page.locator("#scatter circle.unknown").count() == 6
        page.page.select_option("#scatter-colour", "2")
        assert page.page.locator("#scatter-key span").all_inner_texts() == ["0", "1", "2"]
        page.page.select_option("#scatter-x", "2")
        assert page.page.get_attribute("#scatter", "aria-label").startswith("Samples: stage_0 against")


def test_samples_stand_where_their_factors_are(browser, tmp_path, clinic):
    with Page(browser, clinic.realign(0.3), tmp_path) as page:
        page.page.evaluate("window.dot = document.querySelector('#scatter circle')")
        page.page.locator("#lam").fill("0.7")
        page.settle()
        dots = page.page.eval_on_selector_all(
            "#scatter circle", "all => all.map(c => [+c.getAttribute('cx'), -c.getAttribute('cy')])"
        )
        factors = clinic.realign(0.7).factors_
        for axis in (0, 1):
            assert np.corrcoef(np.array(dots)[:, axis], factors[:, axis])[0, 1] > 0.9999
        assert page.page.evaluate("window.dot.isConnected")  # moved, not drawn again
