"""The documentation: links and images exist, the reference is complete, every public name has an example.

``make docs`` builds the pages; every warning is an error there.
"""

from __future__ import annotations

import fnmatch
import importlib
import inspect
import re
import sys
from pathlib import Path

import pytest

import covalign
from tests.core.test_architecture import public_objects

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [page for page in sorted(DOCS.rglob("*.md")) if not {"_build", "study"} & set(page.relative_to(DOCS).parts)]
REFERENCE = [page for page in PAGES if page.parent.name == "api"]
DIRECTIVE = re.compile(r"\.\. auto(module|class|function|exception):: covalign\.(\S+)\n((?:   :.*\n)*)")
FENCED = re.compile(r"^(```+|:::+)[^\n]*\n.*?^\1\s*$", re.MULTILINE | re.DOTALL)


def named(page: Path) -> str:
    return str(page.relative_to(DOCS))


# -- links ------------------------------------------------------------------------------------------------------------


def targets(page: Path) -> list[str]:
    """Files of this repository that a page links to or shows."""
    found = re.findall(r"!?\[[^\]]*\]\(([^)\s]+)\)", FENCED.sub("", page.read_text()))
    return [target for target in found if "://" not in target]


def anchors(page: Path) -> set[str]:
    """The anchors of the headings."""
    titles = re.findall(r"^#+ (.*)$", FENCED.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def leads_nowhere(page: Path, target: str) -> bool:
    """The file is missing, or it is a page without a heading of that name."""
    file, _, anchor = target.partition("#")
    where = (page.parent / file).resolve() if file else page
    return not where.exists() or bool(anchor and where.suffix == ".md" and anchor not in anchors(where))


def test_links_and_pictures_exist():
    assert [f"{named(page)} -> {link}" for page in PAGES for link in targets(page) if leads_nowhere(page, link)] == []


def test_the_walk_sees_links():
    assert "img/scale.png" in targets(DOCS / "scaling.md")
    assert "clusters" in anchors(DOCS / "scaling.md")
    assert not leads_nowhere(DOCS / "index.md", "scaling.md#clusters")
    assert leads_nowhere(DOCS / "index.md", "scaling.md#nonsense")
    assert leads_nowhere(DOCS / "index.md", "nonsense.md")


def test_every_page_is_in_a_table_of_contents():
    entries = {
        (parent.parent / f"{entry}.md").resolve()
        for parent in PAGES
        for block in re.findall(r"```\{toctree\}\n(.*?)```", parent.read_text(), re.DOTALL)
        for entry in block.split()
        if not entry.startswith(":")
    }
    assert set(PAGES) - entries == {DOCS / "index.md"}


def files_named(page: Path) -> set[str]:
    """Files of this repository that a page names in its text."""
    return set(re.findall(r"`([\w/*.-]+\.(?:py|js|md|txt|csv))`", FENCED.sub("", page.read_text())))


def test_files_that_developers_are_sent_to_exist():
    folders = ("src", "tests", "docs", "examples", "benchmarks")
    there = [f"/{path.relative_to(ROOT)}" for folder in folders for path in (ROOT / folder).rglob("*.*")]
    there += [f"/{path.name}" for path in ROOT.iterdir()]
    pages = [DOCS / "architecture.md", DOCS / "notes.md", DOCS / "benchmarks.md", ROOT / "CONTRIBUTING.md"]
    assert "stream/npy.py" in files_named(pages[0])
    named = {file for page in pages for file in files_named(page)} - {"docs/PAGE.md"}
    assert [file for file in sorted(named) if not fnmatch.filter(there, f"*/{file}")] == []


def test_pictures_are_small():
    for page in PAGES:
        for target in targets(page):
            picture = (page.parent / target).resolve()
            if picture.suffix in (".png", ".svg") and "study" not in picture.parts:
                assert picture.stat().st_size < 400_000, picture


# -- the reference ----------------------------------------------------------------------------------------------------


def public() -> dict[str, object]:
    """Public names and objects, including class methods."""
    found = dict(public_objects())
    for name, thing in public_objects():
        if inspect.isclass(thing):
            methods = {f"{name}.{key}": value for key, value in vars(thing).items() if isinstance(value, classmethod)}
            found.update({key: value for key, value in methods.items() if not key.split(".")[-1].startswith("_")})
    return found


def directives() -> dict[str, tuple[str, str]]:
    """{name: (module, class, function or exception, options)} of all pages of the reference."""
    text = "".join(page.read_text() for page in REFERENCE)
    return {name: (kind, options) for kind, name, options in DIRECTIVE.findall(text)}


def in_reference(name: str) -> bool:
    """Listed itself (a module by the place where it lives), or a member of a class that is listed with its members."""
    there, (owner, _, member) = directives(), name.rpartition(".")
    if name in there or covalign.MODULES.get(name, "").removeprefix("covalign.") in there:
        return True
    kind, options = there.get(owner, ("", ""))
    excluded = re.findall(r":exclude-members: (.*)", options)
    if kind != "class" or ":members:" not in options or member in ", ".join(excluded).split(", "):
        return False
    return member in vars(getattr(covalign, owner, object)) or ":inherited-members:" in options or "." in owner


def exists(name: str) -> bool:
    thing: object = covalign
    for part in name.split("."):
        if not hasattr(thing, part):
            return False
        thing = getattr(thing, part)
    return True


def test_every_public_name_is_in_the_reference():
    assert [name for name in public() if not in_reference(name)] == []  # add these to pages in docs/api


def test_the_reference_names_only_what_exists():
    assert [name for name in directives() if not exists(name)] == []


def test_every_public_name_has_an_example():
    things = {
        name: thing for name, thing in public().items() if not (inspect.isclass(thing) and issubclass(thing, Exception))
    }  # one example, that of the module, is enough for all exceptions
    assert [name for name, thing in things.items() if ">>> " not in (inspect.getdoc(thing) or "")] == []


def test_the_reference_is_read_as_it_is_written():
    assert in_reference("LatentAligner.at")
    assert in_reference("Moments.from_batches")
    assert not in_reference("LatentAlinger")
    assert not in_reference("baselines.PCA.decompose")
    assert not in_reference("LatentAligner.set_fit_request")
    assert "Moments.from_batches" in public()
    assert exists("LatentAligner.at")
    assert not exists("LatentAligner.att")


# -- equations and docstrings, as the pages show them -----------------------------------------------------------------


@pytest.fixture(scope="module")
def extension():
    """Import modules of docs/_ext, which is not a package."""
    sys.path.insert(0, str(DOCS / "_ext"))
    yield importlib.import_module
    sys.path.remove(str(DOCS / "_ext"))


def equations() -> list[tuple[str, bool]]:
    """All equations, and whether each has its own line."""
    found = []
    for page in PAGES:
        text = FENCED.sub("", page.read_text())
        found += [(equation, True) for equation in re.findall(r"\$\$(.+?)\$\$", text, re.DOTALL)]
        inline = re.findall(
            r"(?<!\$)\$([^$\n]+)\$(?!\$)", re.sub(r"`[^`]*`", "", re.sub(r"\$\$.+?\$\$", "", text, flags=re.S))
        )
        found += [(equation, False) for equation in inline]
    return found


def test_every_equation_can_be_set(extension):
    pytest.importorskip("latex2mathml", reason="latex2mathml is not installed")
    pytest.importorskip("sphinx", reason="sphinx is not installed")
    mathml = extension("mathml")
    assert len(equations()) > 20
    for equation, block in equations():
        assert mathml.translated(equation, block=block).startswith("<math")
    with pytest.raises(mathml.Untranslated, match="nonsense"):
        mathml.translated(r"\nonsense{x}", block=False)
    with pytest.raises(mathml.Untranslated, match="rows and columns"):
        mathml.translated(r"\begin{aligned} a &= b \\ c &= d \end{aligned}", block=True)
    with pytest.raises(mathml.Untranslated, match="2 rows became 1"):  # latex2mathml drops a last row that ends with &
        mathml.translated(r"\begin{array}{ll} a & b \\ c & \end{array}", block=True)


def test_docstrings_are_shown_as_they_are_written(extension):
    pytest.importorskip("sphinx", reason="sphinx is not installed")
    plain = extension("plain_docstrings").plain
    assert plain(["|corr(z~) - I|, ``T_`` and T_0*"]) == [r"\|corr(z~) - I\|, ``T_`` and T\_0\*", ""]
    assert plain(["**Ties.** b**2"]) == [r"**Ties.** b\*\*2", ""]
    assert plain([">>> x_"]) == [">>> x_", ""]
    assert plain(["    S = T_0"]) == ["::", "", "    S = T_0", ""]
    assert "``rank_`` : int" in plain(["Attributes", "----------", "rank_ : int", "    How many."])


@pytest.mark.parametrize(
    ("text", "loaded"),
    [
        ('<a href="https://example.org">elsewhere</a> <img src="img/a.png">', []),
        ('<script async src="https://example.org/a.js"></script>', ["https://example.org/a.js"]),
        ('<link rel="stylesheet" href="//example.org/a.css">', ["//example.org/a.css"]),
        ('@import "https://example.org/a.css"; b { src: url(//example.org/f.woff) }', None),
    ],
)
def test_what_a_page_would_load_from_elsewhere_is_seen(extension, text, loaded):
    pytest.importorskip("sphinx", reason="sphinx is not installed")
    found = extension("nothing_remote").remote(text)
    assert len(found) == 2 if loaded is None else found == loaded


def test_every_promise_names_a_test_that_exists():
    """The page of promises names tests as file::test."""
    page = (DOCS / "reliability.md").read_text()
    named_tests = re.findall(r"`([\w/]+\.py)::(test_\w+)`", page)
    assert len(named_tests) > 20
    sources = {file: (ROOT / "tests" / file).read_text() for file, _ in named_tests}
    assert [f"{file}::{test}" for file, test in named_tests if f"def {test}(" not in sources[file]] == []
    rows = [line for line in page.splitlines() if line.startswith("| ") and not line.startswith("| promise")]
    assert [row for row in rows if "::test_" not in row] == []


# -- the trace --------------------------------------------------------------------------------------------------------


def entered(work) -> list[str]:
    """The files of covalign that a call enters, in the order of the first entry."""
    work()  # once before, as importing a module enters it, too
    found: dict[str, None] = {}
    home = str(Path(covalign.__file__).parent) + "/"

    def see(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(home):
            found.setdefault(frame.f_code.co_filename.removeprefix(home).removesuffix(".py"))

    sys.setprofile(see)
    try:
        work()
    finally:
        sys.setprofile(None)
    return list(found)


@pytest.mark.parametrize(
    ("begin", "end", "fit"),
    [
        ("LatentAligner.fit(array)", "(wide data)", lambda s: covalign.LatentAligner().fit(s.Z, s.Y)),
        (
            "InformedFactorAnalysis.fit",
            "a path takes",
            lambda s: covalign.InformedFactorAnalysis(7, supervision=1.0, max_iter=20).fit(s.X, s.Y),
        ),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_fit_travels_as_the_page_of_architecture_says(begin, end, fit):
    trace = (DOCS / "architecture.md").read_text().partition("## How fit travels")[2].partition(begin)[2]
    words = re.sub(r"\([^)]*\)", "", trace.partition(end)[0]).split("->")
    files = [word.split()[0] for word in words]
    seen = entered(lambda: fit(covalign.simulate.scenario("PN", n_samples=200, random_state=1)))
    order = [[f"/{file}".endswith(f"/{name}") for file in seen].index(True) for name in files]
    assert len(order) > 15
    assert order == sorted(order), [files[i] for i in range(1, len(order)) if order[i] < order[i - 1]]
