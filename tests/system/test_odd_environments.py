"""Commands without standard streams, on a full output, in a folder that is gone: a line of ours, no traceback."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from tests.conftest import thorough

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="shells and devices of Linux")


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(0)
    names = [f"s{i}" for i in range(40)]
    Z = pd.DataFrame(rng.normal(size=(40, 3)), names, ["a", "b", "c"])
    Z.to_csv(folder / "Z.csv")
    pd.DataFrame({"dose": Z["a"] + rng.normal(size=40)}, names).to_csv(folder / "Y.csv")
    return folder


def shell(line, folder):
    """Run a line in which COVALIGN stands for the command."""
    command = f"{sys.executable} -m covalign"
    done = subprocess.run(
        ["sh", "-c", line.replace("COVALIGN", command)], cwd=folder, capture_output=True, text=True, timeout=300
    )
    assert "Traceback" not in done.stderr
    assert "defect" not in done.stderr
    return done


@pytest.mark.parametrize("closed", [">&- 2>&- <&-", *thorough(">&-", "2>&-", "<&-")])
def test_closed_streams(closed, tables):
    """The result is written, and nothing of the answer gets into it."""
    done = shell(f"COVALIGN align Z.csv Y.csv -o out.csv --force {closed}", tables)
    assert done.returncode == 0
    assert pd.read_csv(tables / "out.csv", index_col=0).shape == (40, 1)


@pytest.mark.parametrize("arguments", ["--help", *thorough("align Z.csv Y.csv -o out.csv --force --json")])
def test_a_full_output_is_said_in_our_words(arguments, tables):
    done = shell(f"COVALIGN {arguments} > /dev/full", tables)
    assert done.returncode == 1
    assert "the answer cannot be written to standard output (its disk is full)" in done.stderr


def test_a_working_folder_that_is_gone(tables, tmp_path):
    gone = tmp_path / "gone"
    line = f"mkdir {gone}; cd {gone}; rmdir {gone}; COVALIGN align {tables}/Z.csv {tables}/Y.csv -o out.csv"
    done = shell(line, tables)
    assert done.returncode == 2
    assert "The working folder does not exist any more. Change to another folder." in done.stderr


SETTINGS = ["LC_ALL=C PYTHONUTF8=0", "PYTHONIOENCODING=ascii", "HOME=/nonexistent TZ=Mars/Sea", "PYTHONOPTIMIZE=2"]


@pytest.mark.parametrize("setting", thorough(*SETTINGS))
def test_settings_of_other_machines(setting, tables):
    assert shell(f"{setting} COVALIGN align Z.csv Y.csv -o out.csv --force", tables).returncode == 0
    assert os.path.getsize(tables / "out.csv") > 0
