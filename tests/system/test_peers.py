"""The published packages: the exchange of files with a stand-in interpreter, and the peers themselves where present."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import covalign as ca
from covalign.exceptions import PeerError
from covalign.study.baselines.method import run
from covalign.study.baselines.peers import MOFA, MOFAFLEX, SOFA, MuVI, SparsePLS, interpreter

PATIENCE = 120  # seconds: machines are busy
ALL = [MOFA(), SOFA(), MOFAFLEX(), MuVI(), SparsePLS()]

# A worker that answers with the first columns of the first view as factors, or does what a test asks it to do.
STAND_IN = """
import json, os, sys, time
import numpy as np
with open({log!r}, "a") as log:
    print(json.dumps([os.getpid(), sys.argv[1:], os.environ.get("OMP_NUM_THREADS"), os.getcwd()]), file=log)
if sys.argv[3] == "--have":
    print(json.dumps({have!r}))
    sys.exit()
with np.load(sys.argv[4]) as task:
    said = json.loads(str(task["json"]))
    views, Y = [task[f"view_{{m}}"] for m in range(said["n_views"])], task["Y"]
factors, curve = views[0][:, : said["n_factors"]], np.array([np.nan, 1.0, 2.0])
loadings = [np.ones((view.shape[1], said["n_factors"])) for view in views]
{twist}
out = {{f"loadings_{{m}}": W for m, W in enumerate(loadings)}}
about = json.dumps({{"seconds": 1.5, "versions": {{"said": json.dumps(said)}}}})
np.savez(sys.argv[5], json=np.array(about), factors=factors, curve=curve, **out)
"""
HAVE = {"mofa": {"mofapy2": "0.7.4"}, "sofa": {"biosofa": "0.7.5"}, "mofaflex": {"mofaflex": None}}


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """Make an interpreter of ours that speaks the protocol; returns the calls it has had."""
    log = tmp_path / "log"

    def make(twist: str = ""):
        script, python = tmp_path / "worker.py", tmp_path / "python"
        script.write_text(STAND_IN.format(log=str(log), have=HAVE, twist=twist))
        python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}" "$@"\n')
        python.chmod(python.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("COVALIGN_PEERS", str(python))
        return lambda: [json.loads(line) for line in log.read_text().splitlines()]

    return make


@pytest.fixture
def nobody(tmp_path, monkeypatch):
    """A place with no environment for peers."""
    monkeypatch.delenv("COVALIGN_PEERS", raising=False)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "elsewhere" / ".venv"))
    monkeypatch.chdir(tmp_path)


def data(n=40, d=12, p=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=(n, p))


# -- without any peer -------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("nobody")
@pytest.mark.parametrize("peer", ALL, ids=lambda peer: peer.name)
def test_a_missing_peer_says_so_and_how_to_get_it(peer):
    assert peer.package in peer.absent()
    assert "make peers" in peer.absent()
    with pytest.raises(ValueError, match=r"cannot run here: .*make peers"):
        run(peer, *data(), n_factors=4)
    with pytest.raises(ValueError, match=r"cannot run here"):
        peer.fit({"X": data()[0]}, data()[1], 4, 0, 10)


@pytest.mark.usefixtures("nobody")
def test_the_environment_is_found_here_or_beside_ours(tmp_path):
    assert interpreter() is None
    for home in (tmp_path / "elsewhere", tmp_path):
        python = home / ".venv-peers" / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.touch()
        assert interpreter() == str(python)


def test_an_interpreter_that_does_not_answer_is_no_peer(tmp_path, monkeypatch):
    monkeypatch.setenv("COVALIGN_PEERS", str(tmp_path / "none"))
    assert "does not answer" in MOFA().absent()
    assert "make peers" in MOFA().absent()


def test_names_and_pairing():
    assert [peer.name for peer in ALL] == ["MOFA", "SOFA (sf=0.1)", "MOFA-FLEX", "MuVI", "sparse PLS"]
    assert [peer.paired for peer in ALL] == [False, True, True, False, False]
    assert SOFA(0.01).name == "SOFA (sf=0.01)"


# -- with a stand-in --------------------------------------------------------------------------------------------------


def test_the_interpreter_is_asked_once(stand_in):
    calls = stand_in()
    assert MOFA().absent() is None
    assert SOFA().absent() is None
    assert "mofaflex is not installed" in MOFAFLEX().absent()
    assert "muvi is not installed" in MuVI().absent()
    assert [call[1][-1] for call in calls()] == ["--have"]


def test_data_and_settings_arrive_and_the_answer_comes_back(stand_in, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    calls = stand_in("loadings[1] = loadings[1] * Y.shape[1]")
    (X, Y), (other, _) = data(), data(d=5, seed=1)
    result = run(SOFA(scaling_factor=0.5), {"a/b": X, "c": other}, Y, n_factors=4, seed=7, budget=11)
    said = json.loads(result.versions["said"])
    assert (said["n_factors"], said["seed"], said["budget"], said["n_views"]) == (4, 7, 11, 2)
    assert said["settings"] == {"scaling_factor": 0.5, "learning_rate": 0.01}
    np.testing.assert_allclose(result.factors, ((X - X.mean(0)) / X.std(0))[:, :4])
    assert {view: W.shape for view, W in result.loadings.items()} == {"a/b": (12, 4), "c": (5, 4)}
    assert (result.loadings["c"] == 2).all()
    assert result.seconds == 1.5
    assert result.curve.tolist() == [1.0, 2.0]
    _, (isolated, worker, key, *_), threads, folder = calls()[-1]
    assert (isolated, Path(worker).name, key, threads) == ("-I", "peer_worker.py", "sofa", "3")
    assert not Path(folder).exists(), "the exchange leaves nothing behind"


def test_features_that_do_not_vary_are_kept_from_the_peer_and_load_on_nothing(stand_in):
    stand_in()
    X, Y = data()
    X[:, 3] = 5.0
    W = run(MOFA(), X, Y, n_factors=4).loadings["X"]
    assert W.shape == (12, 4)
    assert not W[3].any()
    assert W[np.arange(12) != 3].all()


def test_a_failure_is_told_in_the_peers_own_words(stand_in):
    stand_in("raise RuntimeError('the bound fell')")
    with pytest.raises(PeerError, match=r"(?s)MOFA .*RuntimeError: the bound fell"):
        run(MOFA(), *data(), n_factors=4)


@pytest.mark.parametrize(
    ("twist", "message"),
    [
        ("factors = factors[:, :3]", r"factors need shape \(40, 4\), got \(40, 3\)"),
        ("loadings[0] = loadings[0].T", r"loadings of 'X' need shape \(12, 4\), got \(4, 12\)"),
        ("factors = factors * np.nan", "not all finite"),
        ("sys.exit()", "it wrote no answer"),
    ],
)
def test_answers_that_cannot_be_used_are_refused(stand_in, twist, message):
    stand_in(twist)
    with pytest.raises(PeerError, match=message):
        run(MOFA(), *data(), n_factors=4)


def test_a_timeout_ends_the_peer(stand_in):
    calls = stand_in("time.sleep(60)")
    with pytest.raises(PeerError, match="stopped after 2 seconds"):
        run(MOFA(timeout=2), *data(), n_factors=4)
    assert not alive(calls()[-1][0])


def test_an_interrupt_ends_the_peer(stand_in):
    calls = stand_in("time.sleep(60)")
    # Under a shell that runs us in the background SIGINT is ignored, and children inherit that.
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    code += "import numpy as np; from covalign.study.baselines.peers import MOFA; "
    code += "X = np.random.default_rng(0).normal(size=(9, 4)); MOFA().fit({'X': X}, X[:, :1], 2, 0, 1)"
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True) as session:
        try:
            pid = started(calls)
            session.send_signal(signal.SIGINT)
            assert "KeyboardInterrupt" in session.communicate(timeout=PATIENCE)[1]
        finally:
            session.kill()
    assert not alive(pid)


def started(calls) -> int:
    """The process of the last call, once there is one."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with contextlib.suppress(FileNotFoundError, IndexError, json.JSONDecodeError):
            return calls()[-1][0]
        time.sleep(0.1)
    raise AssertionError("the peer was never called")


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


# -- the peers themselves ---------------------------------------------------------------------------------------------


def needs(peer):
    return pytest.mark.skipif(peer.absent() is not None, reason=f"{peer.name}: {peer.absent()}")


def planted(n=120, d=15, k=3, seed=0):
    """Two views of k factors, little noise, and two covariates that are noisy mixtures of the factors."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, k))
    views = {m: Z @ rng.normal(size=(k, d)) + 0.1 * rng.normal(size=(n, d)) for m in ("one", "two")}
    Y = Z @ rng.normal(size=(k, 2)) + rng.normal(size=(n, 2))
    return views, Y


def explained(views, result):
    """R^2 of the standardised views by factors times loadings."""
    X = np.hstack([(view - view.mean(0)) / view.std(0) for view in views.values()])
    W = np.vstack([result.loadings[view] for view in views])
    return 1 - np.sum((X - result.factors @ W.T) ** 2) / np.sum(X**2)


def own_correlations(result, Y):
    """corr(factor p, y_p)."""
    return np.array([np.corrcoef(result.informed[:, p], y)[0, 1] for p, y in enumerate(Y.T)])


@needs(MOFA())
def test_mofa_recovers_planted_structure():
    views, Y = planted()
    result = run(MOFA(), views, Y, n_factors=5, budget=200)
    assert result.factors.shape == (120, 5)
    assert explained(views, result) > 0.95
    assert "mofapy2" in result.versions
    assert np.all(np.diff(result.curve[1:]) > -1e-3 * np.abs(result.curve[1:-1])), "the bound rises"
    again = run(MOFA(), views, Y, n_factors=5, budget=200)
    np.testing.assert_array_equal(again.factors, result.factors)


@needs(SOFA())
def test_sofa_goes_to_the_covariates_as_its_scaling_factor_grows():
    views, Y = planted()
    peers = [SOFA(scaling_factor=sf, learning_rate=0.05) for sf in (0.01, 10.0)]
    small, large = (run(peer, views, Y, n_factors=4, budget=200) for peer in peers)
    assert own_correlations(large, Y).min() > 0.98
    assert (own_correlations(large, Y) > own_correlations(small, Y)).all()
    assert large.curve[-1] > large.curve[0]


@needs(SOFA())
def test_sofa_takes_two_values_as_bernoulli():
    views, Y = planted()
    Y[:, 1] = Y[:, 1] > 0
    result = run(SOFA(scaling_factor=1.0, learning_rate=0.05), views, Y, n_factors=4, budget=200)
    assert own_correlations(result, Y).min() > 0.8


@needs(MOFAFLEX())
def test_mofaflex_pairs_guided_factors_with_covariates():
    views, Y = planted()
    Y[:, 1] = Y[:, 1] > 0
    result = run(MOFAFLEX(guiding_scale=10.0), views, Y, n_factors=4, budget=200)
    assert own_correlations(result, Y).min() > 0.75
    assert explained(views, result) > 0.9
    assert result.curve[-1] > result.curve[0]


@needs(MOFAFLEX())
def test_mofaflex_needs_a_free_factor():
    with pytest.raises(PeerError, match="needs a free factor besides the 2 guided ones"):
        run(MOFAFLEX(), *planted(), n_factors=2, budget=5)


@needs(MuVI())
def test_muvi_recovers_planted_structure_and_takes_out_what_it_is_given():
    views, Y = planted()
    plain, without = (run(MuVI(regress_out=given), views, Y, n_factors=4, budget=300) for given in (False, True))
    assert explained(views, plain) > 0.8
    assert own_correlations(without, Y).max() < own_correlations(plain, Y).min()


@needs(MOFA())
def test_the_paper_setting_runs_through_the_common_face():
    s = ca.simulate.scenario("PN", n_samples=200, random_state=0)
    result = run(MOFA(), s.X, s.Y, n_factors=10, budget=50)
    assert result.informed.shape == (200, 5)
    assert 0 < result.seconds < 60
