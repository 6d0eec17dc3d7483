"""The rooms and their doors: imports point downward, the core stays light, every public name is documented."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import covalign

SOURCE = Path(covalign.__file__).parent

# Lowest first. A module may import only from rooms below its own (or from its own package).
ROOMS = [
    {"exceptions"},
    {"_core"},
    {"stream"},
    {"tables"},
    {"moments"},
    {"closed_form"},
    {"persist"},
    {"aligner", "factor"},
    {"bridges", "show"},
    {"study"},
    {"cli"},
    {"__main__"},
]
HEAVY = (
    "torch",
    "matplotlib",
    "plotly",
    "dask",
    "anndata",
    "mudata",
    "transformers",
    "mofapy2",
    "rich",
    "typer",
    "rdata",
    "xarray",
    "zarr",
    "h5py",  # pyarrow is not here: pandas itself imports it where it is installed
)
PEERS = ("torch", "pyro", "mofapy2", "anndata", "mudata", "sofa", "mofaflex", "muvi")


def room_of(module: str) -> int:
    (room,) = [i for i, names in enumerate(ROOMS) if module in names]
    return room


def imported_modules(path: Path) -> set[str]:
    """Names of covalign's own top-level modules that a file imports, anywhere in it."""
    found = set()
    tree = ast.parse(path.read_text())
    for block in ast.walk(tree):  # what only type checkers read is no import
        if isinstance(block, ast.If) and isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING":
            block.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("covalign.")}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module == "covalign":
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").startswith("covalign."):
            found.add(node.module.split(".")[1])
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide their direction"
    return found


FILES = [path for path in sorted(SOURCE.rglob("*.py")) if path != SOURCE / "__init__.py"]


def test_the_package_fits_on_one_screen():
    entries = sorted(entry.name for entry in SOURCE.iterdir() if entry.name != "__pycache__")
    assert len(entries) <= 16, entries


def test_no_two_modules_share_a_name():
    stems = Counter(path.stem for path in FILES if path.stem != "__init__")
    assert not [stem for stem, count in stems.items() if count > 1]


def test_imports_point_downward():
    wrong = []
    for path in FILES:
        own = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        others = imported_modules(path) - {own}
        wrong += [f"{path.relative_to(SOURCE)} imports {other}" for other in others if room_of(other) >= room_of(own)]
    assert not wrong


def test_the_walk_sees_imports():
    assert imported_modules(SOURCE / "aligner" / "latent.py") >= {"closed_form", "moments", "tables", "_core"}


def test_nothing_heavy_is_imported_before_it_is_needed():
    """Neither by the core nor by the methods to compare with, even if a peer is asked for."""
    code = f"""
import sys, covalign
print([m for m in {HEAVY!r} if m in sys.modules])
import covalign.study.baselines.ivae, covalign.study.baselines.linear
from covalign.study.baselines.peers import MOFA
MOFA().absent()
print([m for m in {PEERS!r} if m in sys.modules])
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines() == ["[]", "[]"]


def test_tests_can_be_collected_without_torch():
    """``make test`` does not install it; a module that imports it at its head would be an error, not a skip."""
    optional = {"torch", "transformers", "sentence_transformers"}
    for path in Path(__file__).parents[1].rglob("*.py"):
        text = path.read_text()
        if not re.search(rf"^(import|from)\b.*\b({'|'.join(optional)})\b", text, re.MULTILINE):
            continue
        head = [node for node in ast.parse(text).body if isinstance(node, ast.Import | ast.ImportFrom)]
        names = {alias.name for node in head for alias in node.names} | {getattr(node, "module", None) for node in head}
        assert not optional & names, path.name


def public_objects() -> list[tuple[str, object]]:
    """Everything reachable from covalign.__all__: modules' functions and classes, classes' methods."""
    found = []
    for name in covalign.__all__:
        thing = getattr(covalign, name)
        found.append((name, thing))
        bases = [base for base in getattr(thing, "__mro__", []) if base.__module__.startswith("covalign")]
        home = "covalign" if bases else getattr(thing, "__name__", "")
        for member, value in (item for place in bases or [thing] for item in vars(place).items()):
            is_own = getattr(value, "__module__", "").startswith(home) or isinstance(value, property)
            if not member.startswith("_") and is_own and (callable(value) or isinstance(value, property)):
                found.append((f"{name}.{member}", value))
    return found


def test_every_public_name_is_documented():
    assert not [name for name, thing in public_objects() if not (inspect.getdoc(thing) or "").strip()]


def test_unknown_attribute():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = covalign.nonsense
