"""The code in the README runs as it is written."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import covalign
from tests import fits

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
QUICKSTART, FACTORS, CLINIC, CELLS, SCALE, COMPARISON = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.fixture(autouse=True)
def shorter_fits(monkeypatch):
    fits.loosen(monkeypatch, 1e-3)


def test_the_quickstart_runs_as_written(capsys):
    names: dict = {}
    exec(compile(QUICKSTART, "README.md", "exec"), names)
    printed = capsys.readouterr().out
    assert "held_out" in printed
    assert "exclusive" in printed
    assert names["named"].shape == (442, 4)
    assert names["calm"].coupling_ == pytest.approx(0.2, abs=1e-6)
    after = names["aligner"].transform(names["blind"])
    assert after.iloc[:, 1].to_numpy() != pytest.approx(names["named"].iloc[:, 1].to_numpy())


def test_the_factor_example_runs_as_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(compile(FACTORS, "README.md", "exec"), names)
    assert names["same"].elbo_[-1] == names["fa"].elbo_[-1]


def test_the_example_of_scale_runs_as_written(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(compile(SCALE, "README.md", "exec"), names)
    written = names["pd"].read_parquet(tmp_path / "named.parquet")
    assert list(written.columns) == ["dose", "age"]
    assert written.to_numpy() == pytest.approx(names["aligner"].transform(names["rows"]), abs=1e-5)
    assert names["fa"].alignment_["dose"] > 0.5


def test_the_clinic_runs_as_written():
    names: dict = {}
    exec(compile(CLINIC, "README.md", "exec"), names)
    assert names["fa"].covariate_names_ == ["age", "dose"]
    assert names["fa"].confounder_names_ == ["batch_b"]
    assert names["filled"].shape == names["std"].shape == (200, 40)
    assert not names["filled"].isna().any().any()


def test_the_cells_run_as_written():
    pytest.importorskip("anndata", reason="anndata is not installed")
    names: dict = {}
    exec(compile(CELLS, "README.md", "exec"), names)
    adata = names["adata"]
    assert names["ca"].scverse.table(adata).columns.tolist() == ["age", "dose"]
    assert adata.obsm["X_aligned"].shape == (300, 2)
    assert adata.varm["ifa"].shape == (100, 8)


def test_the_comparison_runs_as_written(capsys):
    exec(compile(COMPARISON, "README.md", "exec"), {})
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["PCA", "PLS", "Y", "iFA"]


def test_the_quickstart_is_short():
    assert len([line for line in QUICKSTART.splitlines() if line.strip()]) <= 15


def test_files_the_readme_points_to_exist():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert "://" in target or (ROOT / target).exists(), target


def test_commands_the_readme_names_are_targets():
    makefile = (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"make (demo|test|bench|check|\w+)\b", README)) - {"and"}:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_readme_lists_every_extra_for_users():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    rows = re.findall(r"^\| (`.+?) \|", README.partition("| extra |")[2].partition("\n\n")[0], re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == {*extras} - {"test", "dev", "docs"}


def test_the_demo_installs_no_tools_of_developers():
    """make demo runs one installation; its extras have every package that the demo imports."""
    steps = subprocess.run(["make", "-n", "-B", "demo"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    (extras,) = re.findall(r"--editable '\.\[(.+?)\]'", steps)
    named = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needs = [
        *named["dependencies"],
        *(one for extra in extras.split(",") for one in named["optional-dependencies"][extra]),
    ]
    installed = {re.split("[>=\\[]", need)[0].replace("scikit-learn", "sklearn") for need in needs}
    tree = ast.parse((ROOT / "examples/demo.py").read_text())
    names = [
        node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    ours = {name.split(".")[0] for name in names} - {*sys.stdlib_module_names} - {"covalign"}
    assert ours <= installed
    assert "covalign[dev]" not in needs
    assert not {"pytest", "ruff", "mypy", "sphinx"} & installed


def test_one_version_everywhere():
    assert f"version: {covalign.__version__}" in (ROOT / "CITATION.cff").read_text()
    assert f"## {covalign.__version__}" in (ROOT / "CHANGELOG.md").read_text()
