"""The start and the end of a command: what it imports, and how it ends on odd devices and when it is interrupted."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.conftest import correlated, thorough

testing = pytest.importorskip("typer.testing", reason="the command line needs typer")

from covalign import cli  # noqa: E402  (only where typer is installed)
from covalign._core import interrupts  # noqa: E402

HEAVY = ["numpy", "pandas", "scipy", "sklearn", "matplotlib", "dask", "torch"]
COMMANDS = [
    "check",
    "align",
    "fit",
    "transform",
    "frontier",
    "compare",
    "simulate",
    "info",
    "report",
    "reproduce",
    "arena",
    "plan",
    "embed",
]
# In one process: runs every command line, and prints which of some modules it has imported in the end.
RUN = """
import json, sys
lines, modules = json.loads(sys.argv[1])
from covalign.__main__ import main
for line in lines:
    sys.argv = ["covalign", *line]
    try:
        main()
    except SystemExit as end:
        print(end.code or 0, file=sys.stderr)
print("modules:", [name for name in modules if name in sys.modules])
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with a representation and covariates, and the commands run in it."""
    monkeypatch.chdir(tmp_path)
    Z, Y = correlated(0, 60, 5, 2)
    np.save("Z.npy", Z)
    pd.DataFrame(Y, columns=["Größe", "dose"]).to_csv("covariates.csv", index=False)
    Path("there.npy").touch()
    return tmp_path


def imported(lines, modules):
    """The modules that command lines import, and what they print to standard error."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, json.dumps([lines, modules])], capture_output=True, text=True, check=True
    )
    return done.stdout.rpartition("modules: ")[2].strip(), done.stderr


def run(*words, code):
    result = testing.CliRunner().invoke(cli.app, [str(word) for word in words], env={"COLUMNS": "200"})
    assert result.exit_code == code, (result.stdout, result.stderr, result.exception)
    return result


# -- what is imported -------------------------------------------------------------------------------------------------


HELP = [["--help"], ["--version"], *([name, "--help"] for name in COMMANDS)]
WRONG = [
    ["align", "--nonsense"],
    ["align", "Z.npy", "no.csv", "-o", "out.npy"],
    ["align", "no.npy", "covariates.csv", "-o", "out.npy"],
    ["align", "Z.npy", "covariates.csv", "-o", "there.npy"],
    ["align", "Z.npy", "covariates.csv", "--lam", "2", "-o", "out.npy"],
    ["align", "Z.npy", "covariates.csv", "--shrinkage", "2", "-o", "out.npy"],
    ["align", "Z.npy", "covariates.csv", "--folds", "1", "-o", "out.npy"],
    ["fit", "Z.npy", "--covariates", "no.csv", "-o", "model"],
    ["fit", "Z.npy", "--covariates", "covariates.csv", "-o", "there.npy"],
    ["fit", "--view", "a=no.csv", "-o", "model"],
    ["frontier", "Z.npy", "no.csv"],
    ["transform", "no.covalign", "Z.npy", "-o", "out.npy"],
    ["compare", "no.npy", "covariates.csv"],
    ["info", "no.covalign"],
    ["report", "no.covalign", "-o", "report.html"],
    ["simulate", "PN", "-o", "there.npy"],
]


@pytest.mark.parametrize(("lines", "codes", "slow"), [(HELP, {"0"}, HEAVY), (WRONG, {"2", "3"}, HEAVY[1:])])
def test_help_and_errors_before_data_import_nothing_slow(lines, codes, slow):
    modules, said = imported(lines, slow)
    assert modules == "[]"
    assert sum(line in codes for line in said.splitlines()) == len(lines)


def test_a_command_imports_only_what_it_uses():
    others = [*HEAVY[4:], "plotly", "rich", "pyarrow.parquet", "covalign.show", "covalign.factor", "covalign.study"]
    modules, said = imported([["align", "Z.npy", "covariates.csv", "-o", "out.npy", "--json"]], others)
    assert modules == "[]"
    assert said.splitlines()[-1] == "0"


# -- devices ----------------------------------------------------------------------------------------------------------


def covalign(*words, **options):
    """The command in a process of its own."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    done = subprocess.run([sys.executable, "-m", "covalign", *words], check=False, **pipes)
    return done.returncode, done.stdout, (done.stderr or b"").decode()


@pytest.mark.parametrize("encoding", ["ascii", *thorough("latin-1")])
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["align", "--help"], 0),
        (["align", "Ω\udcff.npy", "covariates.csv", "-o", "o.npy"], 2),
        (["simulate", "PN", "--n-samples", "5", "-o", "Ω\udcff"], 0),
    ],
)
def test_any_encoding_of_the_terminal(words, code, encoding):
    ended, _, err = covalign(*words, env={**os.environ, "PYTHONIOENCODING": encoding})
    assert (ended, err.count("Traceback"), err.count("codec")) == (code, 0, 0), err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("words", [["--help"], ["simulate", "PN", "-o", "new", "--json"], *thorough(["--version"])])
def test_an_answer_that_cannot_be_written_is_one_line(words):
    with open("/dev/full", "w") as full:
        code, _, err = covalign(*words, stdout=full)
    assert (code, len(err.splitlines())) == (1, 1), err
    assert err.startswith("covalign: the answer cannot be written to standard output (")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_the_work_goes_on_if_no_one_can_read_its_notes():
    with open("/dev/full", "w") as full:
        code, out, _ = covalign("simulate", "PN", "-o", "new", stderr=full)
    assert code == 0
    assert b"new" in out
    assert Path("new/Y.csv").exists()


# -- sizes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["simulate", "PN", "--n-samples", "1000000000000000", "-o", "new"], "GB of memory"),
        (["simulate", "PN", "--n-features", "1000000000000", "-o", "new"], "GB of memory"),
        (["simulate", "PN", "--n-covariates", "10000000", "--n-factors", "10000000", "-o", "new"], "GB of memory"),
        (["align", "Z.npy", "covariates.csv", "-o", "new.npy", "--folds", "1000000000"], "to 10000"),
        (["align", "Z.npy", "covariates.csv", "-o", "new.npy", "--folds", "5000"], "number of rows, 60"),
        (["frontier", "Z.npy", "covariates.csv", "--folds", "1000000000"], "to 10000"),
        (["frontier", "Z.npy", "covariates.csv", "--folds", "5000"], "number of rows, 60"),
        (["fit", "Z.npy", "--covariates", "covariates.csv", "-o", "new", "--folds", "1000000000"], "to 10000"),
        (["compare", "Z.npy", "covariates.csv", "-m", "PCA", "--folds", "1000000000"], "60 samples"),
        (
            ["plan", "--n-samples", "1e15", "--n-features", "9", "--n-covariates", "3", "--folds", "1e9"],
            "at most 10000",
        ),
    ],
)
def test_what_cannot_fit_is_refused_before_anything_is_allocated(words, says, folder):
    result = run(*words, "--json", code=2)
    assert says in json.loads(result.stdout)["error"]
    assert not list(folder.glob("new*"))


FIT, NOTE = "covalign.aligner.latent.LatentAligner.fit", "covalign.cli.command_align.note"  # inside and after the work


@pytest.mark.parametrize(
    ("where", "error", "code", "says"),
    [
        (FIT, MemoryError(), 1, "not enough memory"),
        (FIT, RuntimeError("odd"), 1, "unexpected RuntimeError: odd"),
        (FIT, KeyboardInterrupt(), 130, "interrupted"),
        (FIT, interrupts.Interrupted(), 130, "interrupted"),
        (NOTE, RuntimeError("odd"), 1, "unexpected RuntimeError: odd"),
        (NOTE, interrupts.Interrupted(), 130, "interrupted"),
    ],
)
def test_no_error_is_a_traceback(where, error, code, says, monkeypatch):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(where, fail)
    result = run("align", "Z.npy", "covariates.csv", "-o", "out.npy", *(["--json"] if where == FIT else []), code=code)
    assert says in result.stderr
    assert "Traceback" not in result.stderr
    if where == FIT:
        assert json.loads(result.stdout)["exit_code"] == code


# -- interrupts -------------------------------------------------------------------------------------------------------

HIT = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
class Hit:  # Control-C when a module is looked for
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            sys.meta_path.remove(self)
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Hit())
from covalign.__main__ import main
main()
"""


@pytest.mark.parametrize("name", ["numpy", *thorough("typer.core", "covalign.cli.command_info")])
def test_interrupted_while_importing_is_130(name, folder):
    words = ["align", "Z.npy", "covariates.csv", "-o", "out.npy", "--json"]
    done = subprocess.run(
        [sys.executable, "-c", HIT.format(name=name), *words], capture_output=True, text=True, check=False
    )
    assert (done.returncode, len(done.stderr.splitlines())) == (130, 1), done.stderr
    assert done.stderr.startswith("covalign: interrupted")
    assert json.loads(done.stdout)["exit_code"] == 130
    assert not (folder / "out.npy").exists()


def test_an_import_that_does_not_end_is_interrupted(monkeypatch, folder):
    monkeypatch.setattr(interrupts, "PATIENCE", 0.1)
    monkeypatch.syspath_prepend(folder)
    (folder / "endless_module.py").write_text("import time\nwhile True:\n    time.sleep(0.01)\n")

    later = threading.Timer(0.05, signal.raise_signal, [signal.SIGINT])
    with interrupts.interruptible(), pytest.raises(interrupts.Interrupted):
        later.start() or importlib.import_module("endless_module")
