"""``covalign info`` says what a saved model is."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

typer_testing = pytest.importorskip("typer.testing", reason="typer is not installed")

import covalign as ca  # noqa: E402
from covalign.cli import app  # noqa: E402
from tests.conftest import correlated  # noqa: E402
from tests.system.test_aligner_storage import data, rewritten, with_gaps  # noqa: E402


def info(*arguments: object):
    return typer_testing.CliRunner().invoke(app, ["info", *map(str, arguments)])


@pytest.fixture
def aligner(tmp_path):
    Z, Y, C = data()
    fitted = ca.LatentAligner(drop_first=True).fit(Z, with_gaps(Y), confounders=C)
    fitted.save(tmp_path / "model.covalign")
    return fitted, tmp_path / "model.covalign"


@pytest.fixture(scope="module")
def factors(tmp_path_factory):
    s = ca.simulate.scenario("PN", n_samples=150, n_features={"rna": 20, "protein": 12}, n_covariates=2, n_factors=4)
    Y = pd.DataFrame({"dose": s.Y[:, 0], "sex": np.where(s.Y[:, 1] > 0, "female", "male")})
    s.X["rna"][3, 4] = np.nan
    fitted = ca.InformedFactorAnalysis(6, tol=1e-2).fit(s.X, Y).realign(0.5)
    path = tmp_path_factory.mktemp("model") / "model.covalign"
    fitted.save(path)
    return fitted, path


def test_numbers_of_an_aligner(aligner):
    fitted, path = aligner
    found = json.loads(info(path, "--json").stdout)
    assert found["kind"] == "LatentAligner"
    assert found["covalign"] == ca.__version__
    assert found["bytes"] == path.stat().st_size
    assert found["parameters"] == fitted.get_params()
    assert (found["rows"], found["dimensions"], found["regime"], found["lam"]) == (240, 8, "tunable", 0.5)
    assert found["shrinkage"] == fitted.shrinkage_
    assert found["coupling"] == fitted.coupling_
    assert [c["kind"] for c in found["covariates"]] == ["number", "binary", "ordered", "dummies"]
    assert [c["name"] for c in found["confounders"]] == ["batch", "age"]
    told = pd.DataFrame(found["alignment"]).set_index("covariate")
    pd.testing.assert_frame_equal(told, pd.DataFrame(fitted.summary()), check_names=False)
    assert found["mean_alignment"] == fitted.mean_alignment_.to_dict()


def test_the_page_of_an_aligner(aligner):
    _, path = aligner
    told = info(path)
    assert told.exit_code == 0
    for text in (
        f"written by covalign {ca.__version__}",
        "rows         240",
        "dimensions   8, with names",
        "stage: ranks of low < mid < high",
        "subtype: dummies subtype_Her2, subtype_LumA",
        "batch: dummies batch_x, batch_y, batch_z",
        "tunable, lam = 0.5",
        "cross-validated",
        "held_out",
        "missing='pairs'",
    ):
        assert text in told.stdout


def test_without_folds_nothing_is_said_about_other_rows(tmp_path):
    Z, Y = correlated(0)
    ca.LatentAligner("exclusive", shrinkage=0.1, keep_rest=True).fit(Z, Y).save(tmp_path / "model.covalign")
    told = info(tmp_path / "model.covalign").stdout
    assert "held_out" not in told
    assert "lam =" not in told
    assert "0.1, fixed" in told
    assert "3 dimensions" in told
    assert json.loads(info(tmp_path / "model.covalign", "--json").stdout)["alignment"][0]["held_out"] is None


def test_too_few_rows_so_far(tmp_path):
    Z, Y = correlated(0)
    ca.LatentAligner().partial_fit(Z[:1], Y[:1]).save(tmp_path / "model.covalign")
    told = info(tmp_path / "model.covalign")
    assert told.exit_code == 0
    assert "cannot be solved yet: a covariance needs at least 2 rows" in told.stdout


def test_numbers_of_informed_factors(factors):
    fitted, path = factors
    found = json.loads(info(path, "--json").stdout)
    assert found["kind"] == "InformedFactorAnalysis"
    assert {name: view["features"] for name, view in found["views"].items()} == {"rna": 20, "protein": 12}
    assert found["views"]["rna"]["variance_explained"] == fitted.total_variance_explained()["rna"]
    assert (found["rows"], found["factors"], found["sweeps"]) == (150, 6, fitted.n_iter_)
    assert found["bound"] == fitted.elbo_[-1]
    assert found["active_factors"] == list(np.array(fitted.factor_names_)[fitted.active_factors_])
    assert {row["covariate"]: row["alignment"] for row in found["alignment"]} == fitted.alignment_.to_dict()
    assert [row["beta"] for row in found["alignment"]] == fitted.beta_.tolist()


def test_the_page_of_informed_factors(factors):
    told = info(factors[1]).stdout
    for text in (
        "rna: 20 features",
        "sex_male: 1 where male, 0 where female",
        "converged",
        "tunable, lam = 0.5",
        "beta",
    ):
        assert text in told


def test_rows_that_are_not_in_the_file_leave_the_alignment_open(tmp_path):
    Z, Y = correlated(0, n=300)
    Y[:40, 0] = np.nan
    np.save(tmp_path / "z.npy", Z)
    ca.InformedFactorAnalysis(4, tol=1e-3).fit(tmp_path / "z.npy", Y).save(tmp_path / "model.covalign")
    told = info(tmp_path / "model.covalign")
    assert told.exit_code == 0, told.stderr
    assert "beta" in told.stdout


def test_a_file_of_an_older_covalign_does_not_say_its_version(aligner):
    rewritten(aligner[1], covalign=None)
    assert "an unknown version of covalign" in info(aligner[1]).stdout


def test_what_is_no_model_is_refused(tmp_path):
    (tmp_path / "x.covalign").write_text("no model")
    for name in ("x.covalign", "absent.covalign"):
        told = info(tmp_path / name)
        assert told.exit_code == 2
        assert told.stdout == ""
        assert name in told.stderr
        assert "Traceback" not in told.stderr


def test_a_model_that_is_not_there(tmp_path):
    assert "There is no" in info(tmp_path / "absent.covalign").stderr
