"""Reports for everyone: any width, light and dark, screen readers, paper; and for any model, however small."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest

from covalign import InformedFactorAnalysis, LatentAligner
from tests.browser import NEEDED, PHONE, Page
from tests.conftest import correlated, is_thorough, thorough

WIDTHS = (390, 768, 1400)
LONG = "the concentration of a protein that has a rather long name, as proteins do, number"


@cache
def aligner(p: int) -> LatentAligner:
    Z, Y = correlated(p, 400, p + 5, p)
    return LatentAligner().fit(Z, pd.DataFrame(Y, columns=[f"{LONG} {i}" if i % 3 == 1 else f"y{i}" for i in range(p)]))


@cache
def factor_model() -> InformedFactorAnalysis:
    """Two views with gaps, a category, a sample that is far off, more levels than colours."""
    rng = np.random.default_rng(0)
    names = [f"patient {i}" for i in range(90)]
    z = rng.standard_normal((90, 3))
    views = {
        view: pd.DataFrame(z @ rng.standard_normal((3, d)) + rng.standard_normal((90, d)), names).add_prefix(view)
        for view, d in (("rna", 24), ("protein", 10))
    }
    views["rna"].iloc[7] *= 30
    views["protein"] = views["protein"].iloc[:70]
    Y = pd.DataFrame({"age": z[:, 0], "site": [f"site {i % 12}" for i in range(90)]}, names)
    model = InformedFactorAnalysis(14, noise="student", folds=0, supervision=1, tol=1e-2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(views, Y)


SETS = {
    "FIRST": [f"rna{d}" for d in range(8)],
    "A_SET_WITH_A_" + "VERY_" * 10 + "LONG_NAME": [f"rna{d}" for d in range(9, 20)],
}
MODELS = {"1": lambda: aligner(1), "7": lambda: aligner(7), "40": lambda: aligner(40), "factors": factor_model}


@pytest.mark.parametrize("scheme", ["light", *thorough("dark")])
@pytest.mark.parametrize("name", ["7", "factors", *thorough("1", "40")])
def test_axe_finds_nothing_serious_at_any_width(browser, tmp_path, pytestconfig, name, scheme):
    if not NEEDED:
        pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
    from axe_playwright_python.sync_playwright import Axe

    model, sets = MODELS[name](), SETS if name == "factors" else None
    with Page(browser, model, tmp_path, color_scheme=scheme, gene_sets=sets) as page:
        for folded in ("matrices", "technical"):
            page.unfold(folded)
        light = WIDTHS if is_thorough(pytestconfig) else WIDTHS[:1]
        for width in light if scheme == "light" else WIDTHS[-1:]:  # colours are the same at any width
            page.page.set_viewport_size({"width": width, "height": 900})
            page.settle()
            assert page.page.evaluate("document.documentElement.scrollWidth") == width
            found = Axe().run(page.page).response["violations"]
            said = [(one["id"], one["impact"], one["nodes"][0]["html"]) for one in found]
            assert [one for one in said if one[1] in ("serious", "critical")] == []
            assert [one[0] for one in said if one[0] in ("heading-order", "region", "landmark-one-main")] == []
        page.screenshot(f"axe_{name}_{scheme}")


# -- order and search -------------------------------------------------------------------------------------------------


def test_many_covariates_are_sorted_and_searched(browser, tmp_path):
    model = aligner(40)
    with Page(browser, model, tmp_path) as page:
        shown = lambda: page.page.locator("#numbers tr:visible th").all_text_contents()  # noqa: E731
        table = model.summary()
        assert shown() == model.covariate_names_
        for button, column in (("held out", "held_out"), ("fitted", "in_sample")):
            page.press(button)
            assert shown() == table[column].sort_values(ascending=False, kind="stable").index.tolist()
            assert page.page.locator('[aria-sort="descending"]').inner_text().startswith(button)
        page.press("fitted")
        assert shown() == table["in_sample"].sort_values(kind="stable").index.tolist()
        page.page.locator("#lam").fill("0")  # the order follows the slider
        page.settle()
        assert shown() == model.at(lam=0).summary()["in_sample"].sort_values(kind="stable").index.tolist()
        page.press("no.")
        page.page.fill("#find", "NUMBER 3")
        assert shown() == [name for name in model.covariate_names_ if "number 3" in name]
        assert page.text("#found") == f"{len(shown())} of 40 covariates"
        page.page.fill("#find", "")
        assert shown() == model.covariate_names_


def test_the_strongest_correlations_of_many_dimensions_are_listed(browser, tmp_path):
    with Page(browser, aligner(40), tmp_path) as page:
        among = np.array(page.now["among"])
        values = among[np.tril_indices(40, -1)]
        need = sorted(np.abs(values), reverse=True)[:15]
        rows = [row.split("\t") for row in page.page.locator("#closest tbody tr").all_inner_texts()]
        np.testing.assert_allclose([abs(float(row[2])) for row in rows], need, atol=0.00051)


# -- scales -----------------------------------------------------------------------------------------------------------


def test_a_frontier_of_nothing_is_not_magnified(browser, tmp_path):
    rng = np.random.default_rng(0)
    Y = rng.standard_normal((2000, 2))
    model = LatentAligner().fit(Y + 0.3 * rng.standard_normal((2000, 2)), Y)
    with Page(browser, model, tmp_path) as page:
        most = model.at(lam=1).coupling_
        assert most < 0.02
        ticks = page.page.locator('#frontier .tick[text-anchor="middle"]').all_text_contents()
        assert max(float(tick) for tick in ticks) == pytest.approx(0.1)
        assert "the axis reaches 0.1, so that this is not magnified" in page.text("#frontier-said")
        ends = page.page.locator('#frontier .tick[text-anchor="end"]').all_text_contents()
        assert float(ends[-1]) - float(ends[0]) > 0.05
    with Page(browser, aligner(7), tmp_path) as page:
        assert page.text("#frontier-said") == ""


def test_a_category_of_many_levels_has_distinct_colours(browser, tmp_path):
    with Page(browser, factor_model(), tmp_path) as page:
        page.page.select_option("#scatter-colour", label="site")
        key = page.page.locator("#scatter-key span").all_inner_texts()
        assert key == [*(f"site {i}" for i in range(6)), "6 other levels"]
        fills = page.page.eval_on_selector_all("#scatter circle", "all => all.map(dot => dot.style.fill)")
        assert len({*fills}) == 7


def test_samples_that_count_less_are_listed(browser, tmp_path):
    model = factor_model()
    with Page(browser, model, tmp_path) as page:
        first = page.page.locator("#weights-table tbody tr").first.inner_text().split("\t")
        assert first[:2] == ["patient 7", "rna"]
        assert float(first[2]) == pytest.approx(model.sample_weights_.loc["patient 7", "rna"], rel=0.06)
        assert "“patient 7”" in page.text(".warnings")
        assert {*page.page.locator("#numbers td.verdict").all_inner_texts()} == {"–"}  # nothing was held out


# -- paper ------------------------------------------------------------------------------------------------------------


def test_paper_has_what_is_folded_on_the_screen(browser, tmp_path):
    with Page(browser, factor_model(), tmp_path, gene_sets=SETS) as page:
        assert not page.page.is_visible("#code")
        page.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        page.page.emulate_media(media="print")
        assert page.page.is_visible("#code")
        assert page.page.is_visible("#conclusion h2")
        assert page.page.eval_on_selector("main", "one => getComputedStyle(one).display") == "block"  # pages cut grids
        assert not page.page.is_visible("#copy")
        page.page.evaluate("window.dispatchEvent(new Event('afterprint'))")
        assert not page.page.is_visible("#code")
        page.page.emulate_media(media="screen")


def test_code_wraps_in_its_box(browser, tmp_path):
    with Page(browser, factor_model(), tmp_path, viewport=PHONE) as page:
        page.unfold("technical")
        assert page.page.eval_on_selector("#code", "one => one.scrollWidth <= one.clientWidth")


# -- small models -----------------------------------------------------------------------------------------------------


def tiny_aligners():
    """Few rows, few dimensions, constant parts, gaps."""
    rng = np.random.default_rng(0)
    for n, k, p in ((2, 1, 1), (3, 2, 1), (3, 2, 2), (3, 5, 2), (4, 2, 1), (4, 5, 2)):
        yield LatentAligner, {}, (rng.standard_normal((n, k)), rng.standard_normal((n, p)))
    Y = rng.standard_normal((4, 2))
    yield LatentAligner, {"shrinkage": 0.5}, (rng.standard_normal((4, 3)), Y)
    yield LatentAligner, {}, (np.c_[Y, Y], Y)
    yield LatentAligner, {}, (rng.standard_normal((5, 3)), np.array([[0.0], [0], [0], [0], [1]]))
    yield (
        LatentAligner,
        {},
        (rng.standard_normal((8, 3)), np.where(rng.random((8, 2)) < 0.3, np.nan, 1) * rng.standard_normal((8, 2))),
    )


def tiny_models():
    rng = np.random.default_rng(1)
    for n, d, k in ((2, 1, 1), (3, 1, 1), (3, 3, 3), (4, 3, 1)):
        for folds in (0, 2):
            yield (
                InformedFactorAnalysis,
                {"n_factors": k, "folds": folds},
                (rng.standard_normal((n, d)), rng.standard_normal((n, 1))),
            )
    X, Y = rng.standard_normal((4, 5)), rng.standard_normal((4, 2))
    for settings in (
        {"supervision": 1},
        {"posterior": "mean_field"},
        {"regime_from": "model"},
        {"noise": "student"},
        {"max_iter": 1},
    ):
        yield InformedFactorAnalysis, {"n_factors": 3, **settings}, ({"a": X, "b": X[:, :2] ** 2}, Y)
    gaps = np.where(rng.random((6, 5)) < 0.3, np.nan, rng.standard_normal((6, 5)))
    yield InformedFactorAnalysis, {"n_factors": 2}, (gaps, pd.DataFrame({"kind": list("aabbcc")}))


WRONG = """all => all.filter(one => [...one.attributes].some(({ value }) => /NaN|undefined|Infinity/.test(value)))
    .map(one => one.outerHTML)"""


@pytest.mark.parametrize("makers", [tiny_models, *thorough(tiny_aligners)], ids=["factors", "aligners"])
def test_whatever_can_be_fitted_has_a_page_without_an_error(browser, tmp_path, makers):
    drawn = 0
    for kind, settings, data in makers():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                model = kind(**settings).fit(*data)
            except ValueError:
                continue  # it cannot be fitted
            with Page(browser, model, tmp_path) as page:
                for button in (
                    "Strongest T₁",
                    "Independent",
                    *(["As fitted"] if kind is InformedFactorAnalysis else []),
                ):
                    page.press(button)
                for one in ("matrices", "technical"):
                    page.unfold(one)
                page.page.locator("#lam").fill("0.4")
                page.settle()
                text = page.text("body")
                assert [word for word in ("NaN", "undefined", "Infinity") if word in text] == []
                wrong = page.page.eval_on_selector_all("svg *", WRONG)
                assert wrong == []
        drawn += 1
    assert drawn > 8
