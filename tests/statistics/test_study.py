"""The study: every figure, table and claim from one command, in its smallest form; verdicts that can go either way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import matplotlib.image
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from covalign.study import claim_verdicts, claims, runner
from covalign.study import reproduction as command
from covalign.study.experiments import EXPERIMENTS
from covalign.study.profiles import FULL, QUICK, TINY, Inputs
from covalign.study.results_store import Row, Store, Unit, setting

typer_testing = pytest.importorskip("typer.testing")


def covalign(*arguments: str):
    from covalign.cli import app

    return typer_testing.CliRunner().invoke(app, list(arguments))


@pytest.fixture(scope="session")
def inputs(tmp_path_factory) -> Inputs:
    """Small data in the real data's layouts."""
    rng, folder = np.random.default_rng(0), tmp_path_factory.mktemp("data")
    names, subtype = [f"A{i}" for i in range(48)], np.repeat(["Basal", "Her2", "LumA"], 16)
    (folder / "tcga").mkdir()
    for view, d in (("mrna", 9), ("mirna", 8), ("protein", 7)):
        X = rng.standard_normal((48, d)) + 2 * (subtype[:, None] == "Basal") * rng.standard_normal(d)
        pd.DataFrame(X, index=names).add_prefix(view).to_csv(folder / "tcga" / f"{view}.csv.gz")
    pd.DataFrame({"subtype": subtype}, index=names).to_csv(folder / "tcga" / "subtype.csv")
    labels = np.tile(["cat", "dog", "newt", "none"], 30)
    Z = rng.standard_normal((120, 10)) + np.eye(10)[np.unique(labels, return_inverse=True)[1]]
    np.savez(folder / "toy.npz", Z=Z, labels=labels, labelled=labels != "none")
    return Inputs(folder / "tcga", {"toy": folder / "toy.npz"})


@pytest.fixture(scope="session")
def made(inputs, tmp_path_factory):
    """One run of everything."""
    out = tmp_path_factory.mktemp("study")
    arguments = ["--tiny", "--no-peers", "--out", str(out), "--tcga", str(inputs.tcga)]
    arguments += ["--embeddings", f"toy={inputs.embeddings['toy']}"]
    return out, arguments, covalign("reproduce", *arguments)


def test_every_figure_and_table_is_made(made):
    out, _, result = made
    assert result.exit_code == 0, result.output
    assert "failed" not in result.output
    for name in command.FIGURES:
        image = matplotlib.image.imread(out / "figures" / f"{name}.png")
        assert image.shape[0] > 300
        assert image[..., :3].std() > 0.01, f"{name} is empty"
    for name in command.tables.TABLES:
        assert (out / "tables" / f"{name}.md").read_text().count("|") > 10
    assert not list(out.rglob("*.tmp*"))


def test_several_representations_at_once(tmp_path):
    """Figure 2, its matrices and its numbers, for embeddings of different widths and covariates."""
    rng, paths = np.random.default_rng(1), []
    for name, k, levels in (("clip", 12, 4), ("dinov2", 7, 3)):
        labels = np.array([f"class{i}" for i in range(levels)])[np.arange(160) % levels]
        Z = rng.standard_normal((160, k)) + 2 * np.eye(k)[np.arange(160) % levels]
        np.savez(tmp_path / f"{name}.npz", Z=Z.astype(np.float32), labels=labels, labelled=labels != "class0")
        paths += ["--embeddings", f"{name}={tmp_path / name}.npz"]
    arguments = ["fig2", "sup_emb", "embedding", "--tiny", "--reps", "3", "--jobs", "1", "--out"]
    result = covalign("reproduce", *arguments, str(tmp_path / "both"), *paths)
    assert result.exit_code == 0, result.output
    text = (tmp_path / "both" / "tables" / "embedding.md").read_text()
    assert "**clip** (3 random halves)" in text
    assert "**dinov2** (3 random halves)" in text
    for route in ("max-correlation dimensions", "Procrustes, then T_1", "ridge, then T_1"):
        assert text.count(f"| {route} | 0.") >= 2  # in both
    assert covalign("reproduce", *arguments, str(tmp_path / "one"), *paths[:2]).exit_code == 0
    for name, axis in (("fig2", 1), ("sup_emb", 0)):  # side by side; one above the other
        both, one = (matplotlib.image.imread(tmp_path / f / "figures" / f"{name}.png") for f in ("both", "one"))
        assert both.shape[axis] > 1.5 * one.shape[axis]


def test_the_numbers_of_figure_2_say_where_they_cannot_tell():
    from covalign.study.embedding_table import against, every_route

    rng, values = np.random.default_rng(0), {}
    for route, a, c in (("Procrustes", 0.4, 5.0), ("ridge, then T_0", 0.5, 1.0), ("ridge, then T_1", 0.6, 6.0)):
        values["alignment, held out", route] = a + 1e-5 * rng.standard_normal(5)
        values["coupling, held out", route] = c + 1e-5 * rng.standard_normal(5)
        values["alignment, in sample", route] = values["coupling, in sample", route] = np.ones(5)
    wide = pd.DataFrame(values)
    assert "| Procrustes | ridge, then T_0 | +0.100" in against(wide)  # T_1 would gain more, but couples more
    assert "alignment higher, coupling lower" in against(wide)
    assert "| ridge, then T_0 | 0.500 [0.500" in every_route(wide)
    wide["coupling, held out", "Procrustes"] = 0.9
    assert "alignment higher, coupling higher" in against(wide)
    wide["alignment, held out", "Procrustes"] = [0.3, 0.7, 0.5, 0.4, 0.6]
    assert "alignment not told apart" in against(wide)


def test_every_claim_has_a_verdict_and_none_needs_a_peer_that_is_absent(made):
    out, _, _ = made
    found = claims.table(Store(out / "results"), TINY).set_index("claim")
    assert list(found.index) == [f"C{i}" for i in range(1, 24)]
    assert set(found.index[found["verdict"] == claim_verdicts.UNKNOWN]) == {
        "C14",
        "C15",
        "C17",
        "C18",
        "C19",
    }  # all are about SOFA
    assert (found.loc[["C1", "C2", "C3", "C4"], "verdict"] == claim_verdicts.HOLDS).all()
    page = (out / "claims.md").read_text()
    assert all(statement in page for statement in found["statement"])


def test_what_is_there_is_not_computed_again(made):
    out, arguments, _ = made
    before = {path: path.read_bytes() for path in (out / "results").glob("*.csv")}
    started = time.perf_counter()
    assert covalign("reproduce", "fig3", *arguments).exit_code == 0
    assert time.perf_counter() - started < 60
    assert {path: path.read_bytes() for path in (out / "results").glob("*.csv")} == before


def test_the_rows_are_tidy_and_complete(made, inputs):
    out, _, _ = made
    store = Store(out / "results")
    for name, experiment in EXPERIMENTS.items():
        expected = {
            u for u in experiment.units(TINY, inputs) if u.method not in runner.absentees([u], with_peers=False)
        }
        assert store.units(name) == expected
    frame = store.frame("methods")
    assert not frame.duplicated(["method", "setting", "rep", "metric"]).any()
    assert np.isfinite(frame["value"]).all()
    assert json.loads((out / "results" / "environment.json").read_text())["covalign"]


def test_redraw_computes_nothing(tmp_path):
    result = covalign("reproduce", "fig4", "claims", "--redraw", "--out", str(tmp_path))
    assert not (tmp_path / "results").exists()
    assert "fig4" in result.stderr


def test_processes_give_the_same_numbers(tmp_path):
    both = [Store(tmp_path / name) for name in ("one", "two")]
    for store, jobs in zip(both, (1, 2), strict=True):
        outcome = runner.run(["consistency", "population"], TINY, Inputs(), store, jobs)
        assert outcome.failed == {}
    for name in ("consistency", "population"):
        a, b = (store.frame(name).sort_values(["method", "setting", "rep", "metric"]) for store in both)
        np.testing.assert_allclose(a["value"], b["value"], rtol=1e-9)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["Ctrl-C", "SIGTERM"])
def test_an_interrupted_study_goes_on(tmp_path, number, code):
    # A background shell starts its children deaf to Ctrl-C; a terminal does not.
    hearing = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    arguments = [sys.executable, "-c", hearing + "from covalign.cli import main; main()", "reproduce", "inference"]
    arguments += ["--tiny", "--reps", "40", "--jobs", "2", "--out", str(tmp_path)]
    process = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    store, deadline = Store(tmp_path / "results"), time.monotonic() + 300
    while len(store.units("inference")) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(number)
    _, stderr = process.communicate(timeout=300)
    assert process.returncode == code
    assert ("interrupted" in stderr) == (number == signal.SIGINT)
    assert "Traceback" not in stderr
    kept = store.units("inference")
    assert 3 <= len(kept) < len(EXPERIMENTS["inference"].units(TINY._replace(reps=40), Inputs()))
    outcome = runner.run(["inference"], TINY, Inputs(), store)
    missing = [unit for unit in EXPERIMENTS["inference"].units(TINY, Inputs()) if unit not in kept]
    assert outcome.done == len(missing)


def test_a_failing_unit_is_reported_and_the_others_go_on(tmp_path, monkeypatch):
    def broken(unit, profile, inputs):
        if unit.rep == 1:
            raise RuntimeError("no luck")
        yield Row("iFA", "cosine", 1.0)

    monkeypatch.setitem(EXPERIMENTS, "consistency", EXPERIMENTS["consistency"]._replace(measure=broken))
    store = Store(tmp_path)
    outcome = runner.run(["consistency"], TINY._replace(reps=3), Inputs(), store)
    assert len(outcome.failed) == len(TINY.sizes)
    assert all("no luck" in why for why in outcome.failed.values())
    assert {unit.rep for unit in store.units("consistency")} == {0, 2}


def test_the_command_speaks_clearly(tmp_path):
    listed = covalign("reproduce", "--list")
    assert all(name in listed.output for name in command.names())
    wrong = covalign("reproduce", "fig33", "--out", str(tmp_path))
    assert wrong.exit_code == 2
    assert "Did you mean 'fig3'" in wrong.stderr
    wrong = covalign("reproduce", "fig2", "--embeddings", "z.npz", "--out", str(tmp_path))
    assert wrong.exit_code == 2
    assert "NAME=PATH" in wrong.stderr
    wrong = covalign("reproduce", "fig5", "--tcga", str(tmp_path / "nowhere"), "--out", str(tmp_path))
    assert wrong.exit_code == 2
    assert wrong.stderr.count("nowhere") == 1
    skipped = covalign("reproduce", "fig5", "--out", str(tmp_path))
    assert skipped.exit_code == 0
    assert "--tcga" in skipped.stderr
    assert covalign("--version").output.strip()


def test_profiles_cover_the_settings_of_panel_d():
    for profile in (FULL, QUICK, TINY):
        for scenario in ("PN", "AR", "P", "N"):
            assert set(profile.panels(scenario)) <= set(profile.settings())
    assert FULL.reps == 20
    assert len([u for u in EXPERIMENTS["methods"].units(FULL, Inputs()) if u.method == "PCA"]) == 4 * 9 * 20


# -- verdicts that can fail -------------------------------------------------------------------------------------------


def planted(tmp_path: Path, experiment: str, rows: list[tuple[str, str, int, str, float]]) -> Store:
    store = Store(tmp_path)
    for method, at, rep, metric, value in rows:
        store.append(Unit(experiment, method, at, rep), [Row(method, metric, value)])
    return store


@pytest.mark.parametrize(("step", "expected"), [(-1e-3, claim_verdicts.HOLDS), (1e-3, claim_verdicts.FAILS)])
def test_the_theorem_would_be_seen_to_fail(tmp_path, step, expected):
    names = ["ordering, per covariate", "ordering, in total"]
    rows = [Row("T", name, step) for name in names]
    store = Store(tmp_path)
    store.append(Unit("theorems", "T", setting(covariances=10), 0), rows)
    assert claims.ordering(store, TINY).verdict == expected


@pytest.mark.parametrize(("power", "expected"), [(-1.0, claim_verdicts.HOLDS), (-0.2, claim_verdicts.IN_PART)])
def test_slow_consistency_would_be_seen(tmp_path, power, expected):
    store = Store(tmp_path)
    for n in (100, 1000, 10_000):
        rows = [Row("iFA", "beta error", float(n) ** power), Row("iFA", "cosine", 1 - 1 / n)]
        store.append(Unit("consistency", "iFA", setting(scenario="PN", n=n), 0), rows)
    assert claims.consistent(store, TINY._replace(sizes=(100, 1000, 10_000))).verdict == expected


@pytest.mark.parametrize(("sofa", "expected"), [(60.0, claim_verdicts.HOLDS), (0.001, claim_verdicts.IN_PART)])
def test_a_faster_sofa_would_be_seen(tmp_path, sofa, expected):
    at = setting(scenario="PN", alpha=1.0, b=1.0, n=TINY.n, budget=TINY.budget)
    seconds = {"iFA": 0.1, "iFA, a further lambda": 0.001, "SOFA (sf=0.1)": sofa, "MOFA": 0.5}
    store = planted(tmp_path, "runtime", [(name, at, 0, "seconds", value) for name, value in seconds.items()])
    assert claims.faster(store, TINY).verdict == expected


def test_an_empty_store_knows_nothing(tmp_path):
    assert set(claims.table(Store(tmp_path), FULL)["verdict"]) == {claim_verdicts.UNKNOWN}


# -- drawing ----------------------------------------------------------------------------------------------------------


def test_the_plane_shows_means_and_says_where_runs_are_few():
    from covalign.study.study_style import trade_off

    rows = [
        (name, rep, metric, value + 0.1 * rep)
        for name, reps, value in (
            ("PCA", 3, 0.2),
            ("iFA (lam=0)", 3, 0.5),
            ("iFA (lam=1)", 3, 0.7),
            ("SOFA (sf=0.1)", 1, 0.9),
        )
        for rep in range(reps)
        for metric in ("alignment", "coupling")
    ]
    frame = pd.DataFrame(rows, columns=["method", "rep", "metric", "value"])
    ax = trade_off(frame, plt.subplots()[1])
    points = np.vstack([collection.get_offsets() for collection in ax.collections])
    assert np.isclose(points, [0.3, 0.3]).all(axis=1).any()  # the mean of PCA's three
    labels = ax.get_legend_handles_labels()[1]
    assert "PCA" in labels
    assert any("SOFA" in label and "(1 run)" in label for label in labels)
    plt.close("all")


def test_threads_are_given_back(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    with runner.single_threaded():
        assert os.environ["OMP_NUM_THREADS"] == os.environ["MKL_NUM_THREADS"] == "1"
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "MKL_NUM_THREADS" not in os.environ
