"""All methods on one's own data: numbers that others can be called for, held-out ones that a plain loop gives, and a
command that says what it did, goes on where it was interrupted and hides no failure.
"""

from __future__ import annotations

import json
import signal
from dataclasses import dataclass, field

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cross_decomposition import PLSRegression

import covalign as ca
from covalign.closed_form import metrics
from covalign.factor.inference import sweeps
from covalign.study import baselines, contenders
from covalign.study import label_places as labels
from covalign.study.baselines.method import Fitted, standardised
from covalign.study.comparison import compare, numbers
from covalign.study.comparison_figure import comparison
from covalign.study.complete_cases import complete
from covalign.study.scores import divisions
from tests import fits

FAST = ["iFA (lam=0.5)", "PCA, then T_1", "PCA", "PLS", "SPCA", "Y as factors"]


@pytest.fixture(scope="module")
def data():
    sizes = {"n_samples": 70, "n_features": {"rna": 9, "protein": 6}, "n_factors": 5, "n_covariates": 2}
    return ca.simulate.scenario("PN", **sizes, random_state=3)


@pytest.fixture(scope="module")
def table(data):
    return compare(data.X, data.Y, n_factors=5, methods=FAST, folds=3, random_state=1).set_index("method")


@dataclass
class Stub:
    """A method of the tests' own: factors are the first features; it counts its fits, and fails if told to."""

    name: str = "stub"
    fails: type[BaseException] | None = None
    on_rows: int | None = None  # fails only with so many rows
    fits: list[int] = field(default_factory=list)
    paired = True

    def absent(self):
        return None

    def fit(self, views, Y, n_factors, seed, budget):
        if self.fails is not None and self.on_rows in (None, len(Y)):
            raise self.fails("it broke")
        self.fits.append(len(Y))
        X = np.hstack(list(views.values()))
        return Fitted(X[:, :n_factors], place=lambda new: np.hstack(list(new.values()))[:, :n_factors])


# -- numbers ----------------------------------------------------------------------------------------------------------


def as_compared(data):
    """The numbers that ``compare`` gives to methods, to the last bit: folds of the aligner follow from content."""
    ready = complete(data.X, data.Y)
    return numbers(ready.views, ready.Y)


@pytest.mark.parametrize(
    "method",
    [baselines.IFA(0.5), baselines.Aligned(1.0), baselines.PLS(), baselines.YAsFactors()],
    ids=lambda m: m.name,
)
def test_the_numbers_are_those_of_direct_calls(data, table, method):
    same = as_compared(data)
    result, row = baselines.run(method, same.views, same.Y, 5, seed=1), table.loc[method.name]
    assert row["alignment"] == pytest.approx(metrics.alignment(result.informed, data.Y))
    assert row["coupling"] == pytest.approx(metrics.coupling(result.informed), abs=1e-12)
    assert tuple(row[["disentanglement", "completeness", "informativeness"]]) == pytest.approx(
        metrics.dci(result.informed, data.Y)
    )
    assert row["sap"] == pytest.approx(metrics.sap(result.informed, data.Y))
    assert row["nsap"] == pytest.approx(metrics.nsap(result.informed, data.Y))
    views = data.X.values()
    each = [metrics.variance_explained(X, result.informed).mean() for X in views]
    assert row["variance"] == pytest.approx(np.mean(each))
    total = [metrics.total_variance_explained(X, result.factors) for X in views]
    assert row["total_variance"] == pytest.approx(np.mean(total))
    assert row["seconds"] > 0


def by_hand(data, fit):
    """corr(z_p, y_p) over all left-out rows together, mean over covariates, by a plain loop.

    Each fit has units of its own, so z counts in standard deviations of the factors of its fitted rows.
    """
    views, z, y = as_compared(data).views.values(), [], []
    for train, test in divisions(data.Y, 3, seed=1):
        scales = [(view[train].mean(axis=0), view[train].std(axis=0)) for view in views]
        old, new = (
            np.hstack([(view[rows] - mean) / sd for view, (mean, sd) in zip(views, scales, strict=True)])
            for rows in (train, test)
        )
        own, place = fit(old, standardised(data.Y[train]))
        z.append((place(new) - own.mean(axis=0)) / own.std(axis=0))
        y.append(data.Y[test])
    Z, Y = np.vstack(z), np.vstack(y)
    return np.mean([np.corrcoef(Z[:, p], Y[:, p])[0, 1] for p in range(2)])


def test_held_out_PLS_is_that_of_a_loop_over_folds(data, table):
    def fit(X, Y):
        pls = PLSRegression(5, scale=False).fit(X, Y)
        match = metrics.match(pls.transform(X), Y)
        return match.apply(pls.transform(X)), lambda new: match.apply(pls.transform(new))

    assert table.loc["PLS", "held_out_alignment"] == pytest.approx(by_hand(data, fit))


def test_held_out_iFA_is_that_of_its_transform(data, table):
    def as_views(X):
        return {"rna": X[:, :9], "protein": X[:, 9:]}

    def fit(X, Y):
        fa = ca.InformedFactorAnalysis(5, max_iter=2000, random_state=1).fit(as_views(X), Y).realign(0.5)
        return fa.factors_[:, :2], lambda new: fa.transform(as_views(new))[:, :2]

    assert table.loc["iFA (lam=0.5)", "held_out_alignment"] == pytest.approx(by_hand(data, fit))


def test_held_out_alignment_of_aligned_components_is_that_of_the_aligner(data, table):
    def fit(X, Y):
        V = baselines.linear.principal_components(X, 5).loadings  # the same to the last bit: folds follow from content
        aligner = ca.LatentAligner(lam=1).fit(X @ V, Y)
        return aligner.transform(X @ V), lambda new: aligner.transform(new @ V)

    assert table.loc["PCA, then T_1", "held_out_alignment"] == pytest.approx(by_hand(data, fit))


def test_with_noise_in_many_features_alignment_is_an_illusion_that_is_seen_through():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((60, 300)), rng.standard_normal((60, 2))
    row = compare(X, Y, 5, ["PLS"]).iloc[0]
    assert row["alignment"] > 0.7
    assert abs(row["held_out_alignment"]) < 0.3


def test_methods_without_a_held_out_number_say_why(table):
    row = table.loc["Y as factors"]
    assert np.isnan(row["held_out_alignment"])
    assert row["alignment"] == pytest.approx(1)
    assert "covariates themselves" in row["note"]
    assert (table["note"].drop("Y as factors") == "").all()


def test_the_best_held_out_comes_first_and_what_has_none_last(table):
    held = table["held_out_alignment"].to_numpy()
    assert table.index[-1] == "Y as factors"
    assert (np.diff(held[:-1]) <= 0).all()
    assert (table["folds"] == [3] * (len(table) - 1) + [0]).all()


def test_no_folds_no_held_out_number(data):
    row = compare(data.X, data.Y, 5, ["PCA"], folds=0).iloc[0]
    assert np.isnan(row["held_out_alignment"])
    assert "folds=0" in row["note"]


def test_folds_keep_the_shares_of_classes():
    Y = np.eye(3)[np.repeat([0, 1, 2], [60, 30, 10])]
    for train, test in divisions(Y, 5, seed=0):
        assert Y[test].sum(axis=0).tolist() == [12, 6, 2]
        assert sorted([*train, *test]) == list(range(100))


# -- methods ----------------------------------------------------------------------------------------------------------


def test_everything_is_compared_unless_named(data):
    names = [method.name for method in contenders.everything()]
    assert {method.name for method in baselines.catalogue()} <= set(names)
    assert {"iFA (ex)", "iFA (lam=0.5)", "PCA, then T_0"} <= set(names)
    assert "ridge, then T_0" not in names
    assert "ridge, then T_0" in [method.name for method in contenders.everything(representation=True)]


def test_typos_are_answered_with_the_nearest_names():
    with pytest.raises(ValueError, match=r"no method 'PLSS'.*Did you mean 'PLS'"):
        contenders.chosen(["PLSS"])
    with pytest.raises(ValueError, match="'iFA \\(lam=2\\)'"):
        contenders.chosen(["iFA (lam=2)"])
    assert [method.name for method in contenders.chosen(["sofa (sf=0.02)", "PCA"])] == ["SOFA (sf=0.02)", "PCA"]


def test_a_time_limit_reaches_those_that_can_be_stopped():
    assert contenders.patient(baselines.MOFA(), 5).timeout == 5
    assert contenders.patient(baselines.PCA(), 5) == baselines.PCA()


def test_slow_methods_are_left_out_or_not_divided_unless_asked(data):
    slow = Stub("MuVI")
    assert compare(data.X, data.Y, 5, [slow, "PCA"], skip_slow=True)["method"].tolist() == ["PCA"]
    row = compare(data.X, data.Y, 5, [slow]).iloc[0]
    assert slow.fits == [70]
    assert "slow_folds=5" in row["note"]
    row = compare(data.X, data.Y, 5, [slow], slow_folds=2).iloc[0]
    assert slow.fits == [70, 70, 35, 35]
    assert row["note"] == ""
    assert row["folds"] == 2


def test_the_exclusive_regime_is_absent_where_it_does_not_exist(data):
    Y = pd.DataFrame({"subtype": np.tile(["a", "b", "c", "a", "b"], 14)})
    table = compare(data.X, Y, 5, ["iFA (ex)", "PCA"], folds=0, drop_first=False).set_index("method")
    assert table["status"].to_dict() == {"PCA": "done", "iFA (ex)": "absent"}
    assert "linearly dependent" in table.loc["iFA (ex)", "note"]
    table = compare(data.X, Y, 5, ["iFA (ex)"], folds=0).set_index("method")
    assert table["status"].to_dict() == {"iFA (ex)": "done"}  # with a reference level it exists


def test_one_failure_is_not_the_others(data):
    table = compare(data.X, data.Y, 5, [Stub("bad", RuntimeError), "PCA"]).set_index("method")
    assert table["status"].to_dict() == {"PCA": "done", "bad": "failed"}
    assert table.loc["bad", "note"] == "RuntimeError: it broke"


def test_what_fails_on_the_folds_alone_keeps_its_other_numbers(data):
    row = compare(data.X, data.Y, 5, [Stub("bad", RuntimeError, on_rows=56)]).iloc[0]
    assert row["status"] == "failed"
    assert np.isfinite(row["alignment"])
    assert np.isnan(row["held_out_alignment"])


def test_what_no_method_could_do_is_refused_at_once(data):
    stub = Stub()
    for words, change in {
        "at least 2 factors": {"n_factors": 1},
        "folds needs": {"folds": 71},
        "at least 10 rows": {"X": np.zeros((5, 3)), "Y": data.Y[:5]},
    }.items():
        with pytest.raises(ValueError, match=words):
            compare(**{"X": data.X, "Y": data.Y, "n_factors": 5, "methods": [stub], **change})
    rare = np.column_stack([data.Y, np.arange(70) == 3])
    with pytest.raises(ValueError, match=r"In one of 5 training sets a covariate is constant: 'y2'\."):
        compare(data.X, rare, 5, [stub])
    assert not stub.fits


# -- going on ---------------------------------------------------------------------------------------------------------


def test_what_is_kept_is_not_computed_again(data, tmp_path):
    stub, other = Stub(), Stub("other")
    first = compare(data.X, data.Y, 5, [stub], keep=tmp_path)
    assert len(stub.fits) == 6
    pd.testing.assert_frame_equal(compare(data.X, data.Y, 5, [stub], keep=tmp_path), first)
    assert len(stub.fits) == 6
    compare(data.X, data.Y, 5, [stub, other], keep=tmp_path)
    assert (len(stub.fits), len(other.fits)) == (6, 6)
    compare(data.X, data.Y, 5, [stub], folds=3, keep=tmp_path)
    assert len(stub.fits) == 9  # the folds are others, the fit to all rows is the same
    for change in ({"random_state": 1}, {"n_factors": 4}, {"budget": 7}, {"Y": data.Y + 1e-9}):
        before = len(stub.fits)
        compare(**{"X": data.X, "Y": data.Y, "n_factors": 5, "methods": [stub], "keep": tmp_path, **change})
        assert len(stub.fits) == before + 6


def test_an_interruption_costs_the_method_at_work_only(data, tmp_path):
    stub = Stub()
    with pytest.raises(KeyboardInterrupt):
        compare(data.X, data.Y, 5, [stub, Stub("slow", KeyboardInterrupt)], keep=tmp_path)
    table = compare(data.X, data.Y, 5, [stub, Stub("slow")], keep=tmp_path)
    assert len(stub.fits) == 6
    assert (table["status"] == "done").all()


# -- gaps -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def tables(data):
    samples = [f"p{i}" for i in range(70)]
    rna = pd.DataFrame(data.X["rna"].copy(), index=samples)
    protein = pd.DataFrame(data.X["protein"], index=samples).iloc[:2:-1]  # lacks three, and is in another order
    clinic = pd.DataFrame(data.Y, index=samples, columns=["age", "dose"]).assign(smokes=np.arange(70) % 2 == 0)
    rna.iloc[10, 2] = rna.iloc[10, 3] = np.nan
    clinic["smokes"] = clinic["smokes"].astype(object).where(np.arange(70) != 20)
    return {"rna": rna, "protein": protein}, clinic


def test_gaps_are_refused_with_counts_and_remedy(tables):
    with pytest.raises(ValueError, match=r"3 sample\(s\) without protein.*missing='drop'") as caught:
        complete(*tables)
    assert "2 empty cell(s) in rna" in str(caught.value)
    assert "1 sample" not in str(caught.value)
    assert "1 empty cell(s) in covariates" in str(caught.value)
    assert "leave out 5 of 70" in str(caught.value)


def test_dropping_leaves_complete_samples_in_one_order(tables, data):
    views, Y, said = complete(*tables, "drop")
    kept = np.setdiff1d(np.arange(70), [0, 1, 2, 10, 20])
    np.testing.assert_array_equal(views["rna"], data.X["rna"][kept])
    np.testing.assert_array_equal(views["protein"], data.X["protein"][kept])
    assert Y["smokes"].dtype == bool
    assert "5 of 70 samples were left out" in said


def test_means_fill_features_and_never_covariates(tables, data):
    views, Y, said = complete(*tables, "mean")
    assert len(Y) == 69
    assert "p20" not in Y.index
    rest = np.setdiff1d(np.arange(70), [10, 20])
    assert views["rna"].loc["p10", 2] == pytest.approx(data.X["rna"][rest, 2].mean())
    measured = data.X["protein"][np.setdiff1d(np.arange(70), [0, 1, 2, 20])]
    np.testing.assert_allclose(views["protein"].loc["p0"], measured.mean(axis=0))
    assert "the means of features were filled in" in said


def test_tables_without_names_are_joined_by_position(data):
    views, Y, said = complete(data.X, pd.DataFrame(data.Y, index=[f"p{i}" for i in range(70)]))
    assert list(views["rna"].index) == list(Y.index)
    assert said is None
    with pytest.raises(ValueError, match="same number of rows"):
        complete(data.X, data.Y[:60])


def test_nothing_left_is_an_error_with_a_remedy(tables):
    views, clinic = tables
    with pytest.raises(ValueError, match="needs complete samples, got none"):
        complete({**views, "empty": views["rna"] * np.nan}, clinic, "drop")
    with pytest.raises(ValueError, match="drop, mean"):
        complete(views, clinic, "guess")


# -- the command ------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tables, tmp_path, monkeypatch):
    """The tables as files; fits stop early, because the commands' numbers are those of ``compare``."""
    views, clinic = tables
    fits.loosen(monkeypatch)
    for name, view in views.items():
        view.to_csv(tmp_path / f"{name}.csv")
    clinic.rename_axis("sample").to_csv(tmp_path / "clinic.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


VIEWS = ["--view", "rna=rna.csv", "--view", "protein=protein.csv", "--covariates", "clinic.csv", "--n-factors", "5"]
QUICK = ["--missing", "drop", "--folds", "2", "-m", "PCA", "-m", "iFA (no T)", "-m", "Y as factors"]


def covalign(*arguments: str):
    typer_testing = pytest.importorskip("typer.testing")
    from covalign.cli import app

    return typer_testing.CliRunner().invoke(app, ["compare", *arguments])


def test_one_command_one_table_one_figure(folder):
    result = covalign(*VIEWS, *QUICK, "-o", "comparison.csv", "--figure", "comparison.png")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert "5 of 70 samples were left out" in lines[0]
    assert lines[1].split()[:3] == ["method", "held", "out"]
    assert "Y as factors: not held out" in lines[-1]
    written = pd.read_csv("comparison.csv")
    assert [line.split("  ")[0] for line in lines[2:-1]] == written["method"].tolist()
    assert plt.imread("comparison.png").shape[2] == 4
    again = covalign(*VIEWS, *QUICK, "-o", "comparison.csv")
    assert again.exit_code == 3
    assert "--force" in again.stderr


def test_the_same_command_by_force_computes_nothing(folder, monkeypatch):
    command = [*VIEWS, *QUICK, "-o", "comparison.csv"]
    before = covalign(*command)
    monkeypatch.setattr(baselines.method, "run", None)
    after = covalign(*command, "--force")
    assert after.exit_code == 0, after.output
    assert after.stdout == before.stdout


def test_json_has_everything(folder, data):
    answer = json.loads(covalign(*VIEWS, *QUICK, "--json").stdout)
    assert answer["samples"] == 65
    assert [row["method"] for row in answer["methods"]][-1] == "Y as factors"
    assert answer["methods"][-1]["held_out_alignment"] is None
    assert answer["failed"] == {}
    assert "left out" in answer["gaps"]


def test_a_failure_is_told_and_the_exit_code_says_so(folder, monkeypatch):
    monkeypatch.setattr(contenders, "everything", lambda representation=False: [baselines.PCA(), Stub("bad", OSError)])
    result = covalign(*VIEWS, "--missing", "drop")
    assert result.exit_code == 1
    assert "failed: bad: OSError: it broke" in result.stderr
    assert "PCA" in result.stdout
    answer = covalign(*VIEWS, "--missing", "drop", "--json")
    assert answer.exit_code == 1
    assert json.loads(answer.stdout)["failed"] == {"bad": "OSError: it broke"}


def test_an_interruption_says_what_is_kept(folder, monkeypatch):
    stopped = [baselines.PCA(), Stub("slow", KeyboardInterrupt)]
    monkeypatch.setattr(contenders, "everything", lambda representation=False: stopped)
    result = covalign(*VIEWS, "--missing", "drop", "-o", "c.csv")
    assert result.exit_code == 130
    assert "the same command resumes" in result.stderr
    assert not (folder / "c.csv").exists()
    stopped[1] = Stub("slow")
    monkeypatch.setattr(baselines.PCA, "decompose", None)
    assert covalign(*VIEWS, "--missing", "drop", "-o", "c.csv").exit_code == 0


def test_control_c_keeps_no_half_of_a_fit(folder, monkeypatch):
    """``test_cli_fit`` sends the signal to a process; here it comes in the middle of a fit of this one."""
    real = sweeps.fit

    def interrupted(*given, **named):
        real(*given, **named)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(sweeps, "fit", interrupted)
    result = covalign(*VIEWS, "--missing", "drop", "--folds", "0", "-m", "iFA (no T)", "-o", "c.csv")
    assert (result.exit_code, result.stdout) == (130, ""), result.stderr
    assert "the same command resumes" in result.stderr
    assert not (folder / "c.csv").exists()


def test_a_figure_that_was_not_drawn_is_not_named(folder, monkeypatch):
    monkeypatch.setattr(contenders, "everything", lambda representation=False: [Stub("bad", OSError)])
    (folder / "old.png").write_text("of another day")
    result = covalign(*VIEWS, "--missing", "drop", "--figure", "old.png", "--force", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["files"] == []


def test_the_table_has_the_format_of_its_name(folder):
    assert covalign(*VIEWS, *QUICK, "--folds", "0", "-o", "c.parquet").exit_code == 0
    assert pd.read_parquet("c.parquet")["method"].tolist()


def test_absent_methods_are_named_with_their_reason(folder, monkeypatch):
    monkeypatch.setenv("COVALIGN_PEERS", str(folder / "nowhere"))
    result = covalign(*VIEWS, "--missing", "drop", "-m", "MOFA", "-m", "PCA")
    assert result.exit_code == 0
    assert "absent: MOFA: " in result.stderr
    listed = covalign("--list")
    said = dict(line.split("  ", 1) for line in listed.stdout.splitlines())
    assert said["MuVI"].strip().startswith("absent: ")
    assert said["PCA"].strip() == "present"
    assert {row["method"]: row["present"] for row in json.loads(covalign("--list", "--json").stdout)}["PLS"]


def test_a_representation_is_turned_as_it_is(tmp_path, data):
    np.save(tmp_path / "Z.npy", data.Z)
    pd.DataFrame(data.Y, columns=["age", "dose"]).to_csv(tmp_path / "y.csv", index=False)
    files = [str(tmp_path / "Z.npy"), str(tmp_path / "y.csv")]
    answer = json.loads(covalign(*files, "-k", "4", "-m", "ridge", "-m", "PCA", "--json").stdout)
    names = {row["method"]: row for row in answer["methods"]}
    assert set(names) == {"PCA", "ridge, then T_0", "ridge, then T_0.5", "ridge, then T_1"}
    best = ca.LatentAligner(lam=1).fit(standardised(data.Z), standardised(data.Y)).alignment_.mean()
    # Not to the last digit: which fold a row is in follows from its last bits, and the shrinkage from the folds.
    assert names["ridge, then T_1"]["alignment"] == pytest.approx(best, abs=0.03)
    only = json.loads(covalign(*files, "-k", "4", "-m", "PCA", "-c", "dose", "--json").stdout)
    assert only["methods"][0]["coupling"] == pytest.approx(0)


@pytest.mark.parametrize(
    ("words", "arguments"),
    {
        "Did you mean 'PLS'": [*VIEWS, "-m", "PLSS"],
        "--missing drop": VIEWS,
        "covariates are needed": ["rna.csv"],
        "NAME=PATH": ["--view", "rna.csv", "--covariates", "clinic.csv"],
        "more than once": ["--view", "a=rna.csv", "--view", "a=rna.csv", "--covariates", "clinic.csv"],
        "'weight'": [*VIEWS, "-c", "weight"],
        "There is no 'no.csv'": ["--view", "rna=no.csv", "--covariates", "clinic.csv"],
        "one of .png, .svg, .pdf": [*VIEWS, "--figure", "f.docx"],
        "cannot be read": ["broken.npy", "clinic.csv"],
        "The folder of 'nowhere/c.csv' does not exist": [*VIEWS, "-o", "nowhere/c.csv"],
        "one of .csv, .tsv, .parquet": [*VIEWS, "-o", "c.xlsx"],
        "'clinic.csv' is also an input": [*VIEWS, "-o", "clinic.csv", "--force"],
    }.items(),
)
def test_misuse_is_one_line_and_exit_code_2(folder, words, arguments):
    (folder / "broken.npy").write_text("no array")
    result = covalign(*arguments)
    assert result.exit_code == 2, result.output
    assert words in result.stderr
    said = [line for line in result.stderr.strip().splitlines() if "samples are not in" not in line]
    assert len(said) == 1
    assert said[0].startswith("covalign: ")


# -- the figure -------------------------------------------------------------------------------------------------------


def overlap(a, b):
    return min(a.x1, b.x1) > max(a.x0, b.x0) and min(a.y1, b.y1) > max(a.y0, b.y0)


def test_no_name_covers_another_even_in_a_crowd():
    rng, methods = np.random.default_rng(0), contenders.everything(representation=True)
    n = len(methods)
    frame = pd.DataFrame({"method": [method.name for method in methods]})
    frame["family"], frame["status"] = [contenders.family(method) for method in methods], "done"
    frame["alignment"], frame["coupling"] = rng.uniform(0.5, 0.7, n), rng.uniform(0, 0.3, n)
    frame["held_out_alignment"], frame["held_out_coupling"] = frame["alignment"] - 0.1, frame["coupling"] + 0.05
    frame.loc[0, ["held_out_alignment", "held_out_coupling"]] = np.nan
    frame["seconds"] = 10 ** rng.uniform(-3, 2, n)
    left, right = comparison(frame)
    left.figure.canvas.draw()
    assert n >= 15
    boxes = [text.get_window_extent() for text in left.texts]
    assert len(boxes) == n
    assert not any(overlap(a, b) for i, a in enumerate(boxes) for b in boxes[:i])
    inside = left.get_window_extent()
    assert all(inside.x0 <= box.x0 and box.x1 <= inside.x1 + 1 for box in boxes)
    assert len(right.get_yticklabels()) == n
    plt.close(left.figure)


@given(st.integers(0, 10_000), st.integers(2, 15))
def test_labels_keep_apart_wherever_their_points_are(seed, m):
    rng = np.random.default_rng(seed)
    anchors, sizes = rng.uniform(300, 400, (m, 2)), np.column_stack([rng.uniform(30, 90, m), np.full(m, 12.0)])
    low = labels.corners(anchors, sizes, anchors, anchors, (0, 0, 800, 500), 5)
    high = low + sizes
    apart = (low[:, None] >= high) | (high[:, None] <= low)
    assert (apart.any(axis=2) | np.eye(m, dtype=bool)).all()
    assert (low >= 0).all()
    assert (high <= [800, 500]).all()
