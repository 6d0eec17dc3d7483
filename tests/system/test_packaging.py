"""What is shipped: a wheel and an sdist with all that is needed, which work where nothing of this folder is."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import covalign

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

pytest.importorskip("hatchling", reason="hatchling is not installed")


def run(*words, **options):
    return subprocess.run([sys.executable, *map(str, words)], check=True, capture_output=True, text=True, **options)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder with wheel and sdist."""
    folder = tmp_path_factory.mktemp("dist")
    run("-m", "hatchling", "build", "-d", folder, cwd=ROOT)
    return folder


def test_the_wheel_has_what_the_library_reads(built):
    (wheel,) = built.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    here = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src/covalign").rglob("*") if path.is_file()}
    here = {name for name in here if "__pycache__" not in name}
    assert {name for name in names if name.startswith("covalign/")} == here
    assert "covalign/py.typed" in names
    assert sum(name.startswith("covalign/show/report/page/") for name in names) >= 6
    assert wheel.name.startswith(f"covalign-{covalign.__version__}-py3-none-any")
    assert wheel.stat().st_size < 1_000_000


def test_the_sdist_can_be_worked_with(built):
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for name in (
        "Makefile",
        "CHANGELOG.md",
        "CITATION.cff",
        "LICENSE",
        "README.md",
        "tests/conftest.py",
        "docs/notes.md",
    ):
        assert name in names
    assert not any(".venv" in name or "demo_output" in name for name in names)


@pytest.mark.thorough  # pip installs it, and two interpreters import it
def test_a_wheel_works_on_its_own(built, tmp_path):
    (wheel,) = built.glob("*.whl")
    options = ("--no-deps", "--no-index", "--no-compile", "--quiet")
    run("-m", "pip", "--disable-pip-version-check", "install", *options, "--target", tmp_path / "there", wheel)
    code = (
        "import covalign as ca, pathlib; s = ca.simulate.scenario('PN', n_samples=100)\n"
        "file = ca.report.write(ca.LatentAligner().fit(s.Z, s.Y), 'r.html')\n"
        "print(pathlib.Path(ca.__file__).parent, file.stat().st_size > 40_000)"
    )
    surroundings = {"PYTHONPATH": str(tmp_path / "there"), "PATH": "", "OPENBLAS_NUM_THREADS": "1"}
    said = run("-c", code, cwd=tmp_path, env=surroundings).stdout.split()
    assert said == [str(tmp_path / "there" / "covalign"), "True"]
    assert run("-m", "covalign", "--version", cwd=tmp_path, env=surroundings).stdout.strip() == covalign.__version__


def test_without_its_package_an_extra_is_named():
    code = """
import sys
sys.modules |= {"matplotlib": None, "anndata": None}
import covalign as ca
for call in (lambda: ca.plot, lambda: ca.scverse.align(object(), covariates=["age"])):
    try:
        call()
    except ImportError as error:
        print(error)
"""
    plot, scverse = run("-c", code).stdout.splitlines()
    assert "pip install 'covalign[plot]'" in plot
    assert "pip install 'covalign[scverse]'" in scverse


def test_all_extras_are_in_all():
    extras = PROJECT["optional-dependencies"]
    (everything,) = extras["all"]
    named = set(everything.removeprefix("covalign[").rstrip("]").split(","))
    assert named == set(extras) - {"all", "test", "dev", "docs"}


def test_the_version_has_one_source():
    assert PROJECT["dynamic"] == ["version"]
    assert sum(f'"{covalign.__version__}"' in path.read_text() for path in (ROOT / "src/covalign").rglob("*.py")) == 1


def test_the_oldest_versions_are_those_that_are_declared():
    """.ci/lowest.txt pins what pyproject.toml allows at least."""
    pins = dict(line.split("==") for line in (ROOT / ".ci/lowest.txt").read_text().splitlines() if "==" in line)
    extras = PROJECT["optional-dependencies"]
    declared = [*PROJECT["dependencies"], *extras["plot"], *extras["cli"], *extras["parquet"], *extras["zarr"]]
    for requirement in declared:
        name, _, least = requirement.partition(">=")
        assert pins[name] == least or pins[name].startswith(f"{least}."), name
