"""``covalign simulate`` writes what ``simulate.scenario`` draws, all of it or nothing."""

from __future__ import annotations

import json
import shlex

import numpy as np
import pandas as pd
import pytest

typer_testing = pytest.importorskip("typer.testing", reason="typer is not installed")

import covalign as ca  # noqa: E402
from covalign.cli import app  # noqa: E402
from tests import fits  # noqa: E402


@pytest.fixture
def simulate(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda text: typer_testing.CliRunner().invoke(app, ["simulate", *text.split()])


def table(path) -> pd.DataFrame:
    return pd.read_csv(path, index_col=0, float_precision="round_trip")


def test_views_come_back_to_the_last_digit(simulate, tmp_path):
    done = simulate(
        "AR --n-samples 30 --view rna=6 --view protein=4 --n-factors 7 --n-covariates 3 --random-state 5 --b .8 -o made"
    )
    assert done.exit_code == 0, done.output
    settings = json.loads((tmp_path / "made" / "settings.json").read_text())
    s = ca.simulate.scenario(**settings["scenario"])
    direct = ca.simulate.scenario("AR", 30, {"rna": 6, "protein": 4}, 7, b=0.8, random_state=5, n_covariates=3)
    np.testing.assert_array_equal(s.Z, direct.Z)
    for name, values in {"Y": s.Y, "Z": s.Z, **s.X}.items():
        found = table(tmp_path / "made" / f"{name}.csv")
        np.testing.assert_array_equal(found.to_numpy(), values)
        assert list(found.index[:2]) == ["sample0", "sample1"]
    assert list(table(tmp_path / "made" / "Z.csv").columns) == ["y0", "y1", "y2", "free0", "free1", "free2", "free3"]
    with np.load(tmp_path / "made" / "truth.npz") as truth:
        np.testing.assert_array_equal(truth["W_rna"], s.W["rna"])
        np.testing.assert_array_equal(truth["noise_variance_protein"], s.noise_variance["protein"])
        np.testing.assert_array_equal(truth["beta"], s.beta)
    assert {file.name for file in (tmp_path / "made").iterdir()} == set(settings["files"])
    assert [file.name for file in tmp_path.iterdir()] == ["made"]


def test_one_table_is_x(simulate, tmp_path):
    told = json.loads(simulate("P --n-features 8 --n-samples 20 -o made --json").stdout)
    assert told["views"] == {"X": 8}
    s = ca.simulate.scenario("P", 20, 8)
    np.testing.assert_array_equal(table(tmp_path / "made" / "X.csv"), s.X)
    with np.load(tmp_path / "made" / "truth.npz") as truth:
        np.testing.assert_array_equal(truth["W"], s.W)


def test_the_next_command_is_one(simulate, tmp_path, monkeypatch):
    fits.loosen(monkeypatch)
    words = shlex.split(json.loads(simulate("PN --n-samples 60 --n-features 12 -o made --json").stdout)["next"])
    assert words[:2] == ["covalign", "fit"]
    if "fit" not in {command.name or command.callback.__name__ for command in app.registered_commands}:
        pytest.skip("there is no covalign fit yet")
    done = typer_testing.CliRunner().invoke(app, words[1:])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "made" / "model.covalign").exists()


def test_a_folder_with_files_is_kept_unless_forced(simulate, tmp_path):
    (tmp_path / "made").mkdir()
    assert simulate("PN --n-samples 20 --n-features 3 -o made").exit_code == 0  # it was empty
    (tmp_path / "made" / "mine.txt").write_text("mine")
    before = (tmp_path / "made" / "Y.csv").read_text()
    refused = simulate("PN --n-samples 10 --n-features 3 -o made")
    assert refused.exit_code == 3
    assert "--force" in refused.stderr
    assert (tmp_path / "made" / "Y.csv").read_text() == before
    assert simulate("PN --n-samples 10 --n-features 3 -o made --force").exit_code == 0
    assert len(table(tmp_path / "made" / "Y.csv")) == 10
    assert (tmp_path / "made" / "mine.txt").read_text() == "mine"


def test_here_is_a_folder_too(simulate, tmp_path):
    assert simulate("PN --n-samples 10 --n-features 3 -o .").exit_code == 0
    assert (tmp_path / "Y.csv").exists()
    assert not [file for file in tmp_path.parent.iterdir() if file.name.startswith(f".{tmp_path.name}")]


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()], ids=["failed", "interrupted"])
def test_half_a_folder_is_never_seen(simulate, tmp_path, monkeypatch, error):
    def fails(*_, **__):
        raise error

    monkeypatch.setattr(np, "savez", fails)
    done = simulate("PN --n-samples 10 --n-features 3 -o made")
    assert done.exit_code == (130 if isinstance(error, KeyboardInterrupt) else 2)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("XX -o made", "scenario needs one of PN"),
        ("PN -o made --n-factors 3", "5 covariates need"),
        ("PN -o made --n-samples 0", "--n-samples needs"),
        ("PN -o made --alpha 2", "alpha"),
        ("PN -o made --random-state -1", "'--random-state'"),
        ("PN -o made --n-features 0", "'--n-features'"),
        ("PN -o made --n-features 3 --view a=3", "--n-features and --view exclude each other"),
        ("PN -o made --view rna", "NAME=FEATURES, got 'rna'"),
        ("PN -o made --view ../rna=3", "NAME=FEATURES"),
        ("PN -o made --view rna=0", "NAME=FEATURES"),
        ("PN -o made --view y=3", "The file y.csv is needed"),
        ("PN -o made --view a=3 --view A=3", "The file A.csv is needed"),
        ("PN -o absent/made", "The folder of 'absent/made' does not exist"),
        ("PN -o file --force", "'file' is a file"),
    ],
)
def test_what_is_not_as_needed_is_said(simulate, tmp_path, text, message):
    (tmp_path / "file").write_text("")
    done = simulate(text)
    assert done.exit_code == 2
    assert message in done.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["file"]
