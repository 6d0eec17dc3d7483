"""The report in a real browser: it moves, its numbers are Python's, and it asks nothing of the network."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import covalign as ca
from covalign import InformedFactorAnalysis, LatentAligner
from covalign.exceptions import NotHeldOutWarning
from covalign.show import report
from tests.browser import PHONE, WIDE, Page
from tests.conftest import correlated, thorough
from tests.system.test_report_page import NASTY


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


def test_the_exact_trade_off_is_a_line_above_that_of_lambda(browser, tmp_path):
    model = LatentAligner().fit(*correlated(6, 200, 8, 5))
    with Page(browser, model, tmp_path) as page:
        known = page.page.evaluate("window.covalign.facts")
        assert page.text("#exact-said") == known["about_exact"]
        paths = {
            kind: page.page.locator(f"#frontier path.line.{kind}").get_attribute("d") for kind in ("exact", "fitted")
        }
        exact, fitted = (
            np.array([[float(value) for value in at.split()] for at in path[1:].split("L")]) for path in paths.values()
        )
        np.testing.assert_array_equal(exact[:, 0], fitted[:, 0])
        assert np.all(exact[:, 1] <= fitted[:, 1])  # y points down
        # Distances are those of the facts, as far as the axis has pixels.
        ticks = page.page.evaluate(
            "[...document.querySelectorAll('#frontier text.tick')]"
            ".filter((t) => t.getAttribute('text-anchor') === 'end')"
            ".map((t) => [Number(t.getAttribute('y')), Number(t.textContent)])"
        )
        (y_1, value_1), (y_2, value_2) = ticks[0], ticks[-1]
        per_pixel = abs((value_2 - value_1) / (y_2 - y_1))
        need = np.interp(np.linspace(0, 1, len(fitted)), known["exact"]["lam"], known["exact"]["above"])
        np.testing.assert_allclose((fitted - exact)[:, 1] * per_pixel, need, atol=0.2 * per_pixel)
        page.screenshot("exact")
    with Page(browser, aligner(1), tmp_path) as page:
        assert page.page.locator("#frontier path.line.exact").count() == 0


def test_matrices_are_drawn_as_they_are(browser, tmp_path):
    model = aligner(3)
    with Page(browser, model, tmp_path) as page:
        page.drag(0.9)
        for name, matrix in (("with-y", page.now["withY"]), ("among", page.now["among"])):
            written = page.page.locator(f"#{name} td.cell").all_text_contents()
            values = [float(text) for text in written]
            np.testing.assert_allclose(values, np.ravel(matrix), atol=0.00501)
            strength = "all => all.map(cell => +cell.style.getPropertyValue('--strength'))"
            strengths = page.page.eval_on_selector_all(f"#{name} td.cell", strength)
            np.testing.assert_allclose(strengths, np.abs(np.ravel(matrix)), atol=0.001)


SQUARES = """all => all.flatMap(path => path.getAttribute("d").split("z").slice(0, -1).map(square => [
    ...square.slice(1).split("h")[0].split(" ").map(Number),
    (path.classList.contains("negative") ? -1 : 1) * path.getAttribute("fill-opacity")]))"""


def test_matrices_of_many_are_drawn_as_they_are_by_few_elements(browser, tmp_path):
    with Page(browser, aligner(60), tmp_path) as page:
        assert not page.page.is_visible("#with-y svg")  # folded away; the largest correlations are in a table
        page.unfold("matrices")
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
            assert f"max_coupling={budget}" in page.code
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
        assert "3 levels have only 2 independent directions" in page.text("#categories")


def test_everything_works_by_keyboard(browser, tmp_path):
    model = aligner(3)
    with Page(browser, model, tmp_path) as page:
        visited = []
        for _ in range(14):
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
            *("covariate", "fitted", "held out", "verdict"),
            *("with-y", "among"),
            "Technical details",
        ]
        page.page.keyboard.press("Enter")
        page.page.keyboard.press("Tab")
        page.page.keyboard.press("Tab")
        assert page.page.evaluate("document.activeElement.id") == "copy"
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
            exec(page.code, names)
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
    exec(page.text_content("#code"), names)
    assert "named" in names
    assert "raise Exit" in page.text_content("#code")


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
@pytest.mark.parametrize("p", [3, *thorough(1, 20, 60)])
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
    assert page.path.stat().st_size < {1: 90_000, 3: 105_000, 20: 420_000, 60: 2_500_000}[p]


def test_names_are_text_in_the_browser(browser, tmp_path):
    Z, Y = correlated(0, 200, 6, 4)
    model = LatentAligner().fit(Z, pd.DataFrame(Y, columns=NASTY))
    with Page(browser, model, tmp_path, title=NASTY[0]) as page:
        assert page.page.locator("#numbers th").all_inner_texts() == NASTY
        assert page.page.title() == NASTY[0]
        assert page.page.locator("body img").count() == 0
        assert page.page.locator("script").count() == 2
        page.press("Strongest T₁")
        page.page.hover("#with-y td.cell >> nth=1")
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


@pytest.mark.parametrize("p", [6, *thorough(30)])
def test_names_of_any_letters_are_written_in_full(browser, tmp_path, p):
    Z, Y = correlated(p, 400, p + 5, p)
    letters = ["W", "\u6f22", "\U0001f600", "i", "M\u0301", "@"]
    names = [letters[i % 6] * 40 + str(i) for i in range(p)]
    with Page(browser, LatentAligner().fit(Z, pd.DataFrame(Y, columns=names)), tmp_path) as page:
        assert page.page.locator("#numbers th").all_text_contents() == names
        if p == 6:
            assert page.page.locator("#with-y thead th").all_text_contents() == names
            assert page.page.locator("#with-y tbody th").all_text_contents() == [f"z {name}" for name in names]
        out = "all => all.filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.textContent)"
        assert page.page.eval_on_selector_all("#numbers th, .matrix th, #closest th, #conclusion p", out) == []


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


@pytest.mark.parametrize("scripts", [False, *thorough(True)], ids=["plain", "scripts"])
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


def clinic_tables():
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
    return views, Y


@pytest.fixture(scope="module")
def clinic():
    model = InformedFactorAnalysis(n_factors=8, tol=1e-6, folds=3, drop_first=False)
    views, Y = clinic_tables()
    return model.fit(views, Y, confounders=["batch"])


@pytest.mark.parametrize("viewport", [PHONE, *thorough(WIDE)], ids=["narrow", "wide"])
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
        assert "realign" not in page.code
        page.press("Independent")
        assert np.abs(np.array(page.now["among"]) - np.eye(5)).max() < 1e-6
        assert "should be 0" not in page.text("#reading")
        assert page.page.evaluate("document.documentElement.scrollWidth") == viewport["width"]
        page.screenshot(f"model_{viewport['width']}")


def test_what_a_factor_model_shows(browser, tmp_path, clinic):
    model = clinic.realign(0.5)
    sets = {"few": [f"rna{d}" for d in range(6)], "many": [f"RNA{d}" for d in range(8, 29)]}
    with Page(browser, model, tmp_path, gene_sets=sets) as page:
        best = model.top_features("dose", "rna", 1).iloc[0]
        page.page.select_option("#top-factor", "1")
        assert page.text("#top h3 >> nth=0") == "rna (30 features)"
        verdicts = page.page.locator("#numbers td.verdict").all_inner_texts()
        assert verdicts == model.informed_["verdict"].tolist()
        assert f"Supervision {model.supervision_:g}:" in page.text("#covariates-said")
        assert page.page.locator("#top tbody th").first.text_content() == best["feature"]
        tested = model.enrichment(sets, factor="dose")
        shown = page.page.locator("#sets tbody tr").all_inner_texts()
        assert [row.split("\t")[0] for row in shown] == tested["set"].tolist()
        assert [float(row.split("\t")[5]) for row in shown] == pytest.approx(tested["p"].tolist(), rel=0.06)
        shares = page.page.locator("#shares tbody tr").all_inner_texts()
        assert [row.split("\t")[0].partition(" (")[0] for row in shares] == model.factor_names_
        assert page.page.locator('#bound .tick[text-anchor="end"]').count() == 0  # drawn when it is unfolded
        page.unfold("technical")
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


def test_samples_are_not_coloured_by_their_own_axes(browser, tmp_path, clinic):
    with Page(browser, clinic, tmp_path) as page:
        chosen = lambda: page.page.eval_on_selector("#scatter-colour", "one => one.selectedOptions[0].text")  # noqa: E731
        axes = {"0": "age", "1": "dose", "2": "stage_0"}
        for x, y, need in (("0", "1", "stage"), ("2", "1", "age"), ("0", "2", "dose"), ("5", "6", "age")):
            page.page.select_option("#scatter-x", x)
            page.page.select_option("#scatter-y", y)
            assert chosen() == need, (axes.get(x), axes.get(y))
        page.page.select_option("#scatter-colour", "0")  # by hand
        page.page.select_option("#scatter-x", "0")
        assert chosen() == "age"


def test_samples_stand_where_their_factors_are(browser, tmp_path, clinic):
    with Page(browser, clinic.realign(0.3), tmp_path) as page:
        page.page.evaluate("window.dot = document.querySelector('#scatter circle')")
        page.page.locator("#lam").fill("0.7")
        page.settle()
        dots = page.page.eval_on_selector_all(
            "#scatter circle", "all => all.map(c => [+c.getAttribute('cx'), -c.getAttribute('cy')])"
        )
        views, Y = clinic_tables()
        factors = np.asarray(clinic.realign(0.7).transform(views, confounders=Y[["batch"]]))
        for axis in (0, 1):
            assert np.corrcoef(np.array(dots)[:, axis], factors[:, axis])[0, 1] > 0.9999
        assert page.page.evaluate("window.dot.isConnected")  # moved, not drawn again


def test_the_exact_regime_has_a_button_and_its_words(browser, tmp_path):
    model = aligner(4).at(max_coupling=0.1, exact=True, uncoupled=[("y0", "y2")])
    with Page(browser, model, tmp_path) as page:
        assert page.page.get_attribute("#exact", "aria-pressed") == "true"
        assert "No other linear map has a higher mean alignment" in page.text("#reading")
        assert "a coupling of at most 0.1, no correlation between y0 and y2" in page.text("#reading")
        assert "aligner.at(max_coupling=0.1, uncoupled=[('y0', 'y2')], exact=True)" in page.code
        assert page.text("#coupling-now") == f"{model.coupling_:.3f}"
        page.page.click("#strongest")
        page.page.click("#exact")
        page.settle()
        assert page.text("#coupling-now") == f"{model.coupling_:.3f}"
        page.screenshot("exact_regime")
    with Page(browser, model.at(lam=0.5), tmp_path) as page:
        assert not page.page.is_visible("#exact")
