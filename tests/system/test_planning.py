"""The arithmetic of ``covalign plan``: what doubles when a size doubles, and what more workers do not help with."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from covalign.study import costs as planning
from covalign.study.costs import Job, Rates, aligner, factor_analysis, sizes, total

RATES = Rates(gram=2e10, centre=3e8, merge=2e8, solve=5e9, read=1e9, network=1e9)
JOB = Job(n_samples=10**9, n_features=768, n_covariates=20, workers=64)


def value(terms, name):
    (found,) = [term.value for term in terms if term.name == name]
    return found


def test_by_hand():
    job = Job(n_samples=1000, n_features=10, n_covariates=2, workers=1, cores=1, itemsize=8, folds=3)
    terms = aligner(job, Rates(gram=12.0, centre=6.0, merge=9.0, solve=50.0, read=40.0))
    assert value(terms, "read") == 2000
    assert value(terms, "centre") == 2000
    assert value(terms, "gram") == 13_000
    assert value(terms, "merge") == 48
    assert value(terms, "travel") == 0
    assert value(terms, "solve") == 80
    assert total(terms) == 17_128


def test_every_number_is_read_once():
    assert value(sizes(JOB), "bytes read") == 10**9 * 768 * 4
    assert value(sizes(JOB._replace(itemsize=8)), "bytes read") == 10**9 * 768 * 8
    assert value(sizes(JOB), "passes") == 1


def test_twice_the_rows_take_twice_the_time():
    once, twice = (aligner(job, RATES) for job in (JOB, JOB._replace(n_samples=2 * JOB.n_samples)))
    for name in ("read", "centre", "gram"):
        assert value(twice, name) == 2 * value(once, name)
    assert value(twice, "solve") == value(once, "solve")
    assert value(sizes(JOB), "memory of a worker") == value(sizes(JOB._replace(n_samples=10**10)), "memory of a worker")


def test_workers_share_the_work_but_not_the_merging():
    few, many = (aligner(JOB._replace(workers=w), RATES) for w in (8, 64))
    for name in ("read", "centre", "gram"):
        assert math.isclose(value(few, name), 8 * value(many, name))
    assert value(many, "travel") == value(few, "travel") > 0
    assert value(many, "solve") == value(few, "solve")
    alone = JOB._replace(workers=1)
    assert value(aligner(alone, RATES), "travel") == value(sizes(alone), "bytes between workers") == 0
    assert value(sizes(JOB), "bytes between workers") > 0


def test_tasks_are_those_of_the_cluster():
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    from covalign.stream import dask_reduction

    for n in (10_000, 2_000_000, 300_000_000):
        rows = da.zeros((n, 100), chunks=(20_000, 100), dtype=np.float32)
        planned = planning.tasks(Job(n, 100, 1, workers=2))
        assert abs(len(dask_reduction._cut(rows)) - planned) <= 0.2 * planned


def test_sweeps_are_free_of_rows():
    small, large = (factor_analysis(JOB._replace(n_samples=n, n_factors=20), RATES) for n in (10**6, 10**9))
    assert value(small, "sweeps") == value(large, "sweeps") > 0
    assert value(small, "merge") == value(large, "merge") / math.ceil(planning.tasks(JOB) / 64)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_samples": -1}, "n_samples needs a whole number"),
        ({"n_samples": 1.5}, "n_samples needs a whole number"),
        ({"n_samples": float("nan")}, "n_samples needs a whole number"),
        ({"n_features": 0}, "n_features needs a whole number"),
        ({"workers": 0}, "workers needs a whole number"),
        ({"n_covariates": 21, "n_factors": 30}, "21 covariates need"),
        ({"dtype": "int8"}, "dtype needs float32 or float64"),
        ({"n_factors": 0}, "n_factors needs a whole number"),
    ],
)
def test_nonsense_is_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        planning.checked(**({"n_samples": 1e6, "n_features": 20, "n_covariates": 3} | wrong))


def test_an_aligner_may_have_more_covariates_than_features():
    job = planning.checked(n_samples=1e5, n_features=768, n_covariates=999)
    assert job.q == 1767
    assert planning.parts(job, planning.Rates(5e10, 1e8, 1e9, 1e9, 1e9)).keys() == {"sizes", "LatentAligner"}


def test_units_suit_the_size():
    assert planning.readable(3.072e12, "B") == "3.07 TB"
    assert planning.readable(0, "B") == "0 B"
    assert planning.readable(90, "s") == "90 s"
    assert planning.readable(7200, "s") == "2 h"


def test_this_machine_can_be_measured():
    rates = planning.measured(Job(1000, 64, 3), network=5e8)
    assert all(0 < rate < math.inf for rate in rates)
    assert rates.network == 5e8
    assert planning.measured(Job(1000, 8, 3), read=math.inf).read == math.inf


# -- the command ------------------------------------------------------------------------------------------------------


@pytest.fixture
def plan(monkeypatch):
    testing = pytest.importorskip("typer.testing", reason="typer is not installed")
    from covalign.cli import app

    monkeypatch.setattr(planning, "measured", lambda job, read, network: RATES._replace(read=read or 1e9))
    return lambda text: testing.CliRunner().invoke(app, ["plan", *text.split()])


def test_the_page_shows_its_arithmetic(plan):
    result = plan("--n-samples 1e9 --n-features 768 --n-covariates 20 --workers 64 --n-factors 10")
    assert result.exit_code == 0, result.output
    for text in ("n = 1,000,000,000", "3.07 TB", "n q (q + 1) / (W c s)", "expected time", "InformedFactorAnalysis"):
        assert text in result.output
    assert planning.readable(total(aligner(JOB, RATES)), "s") in result.output


def test_json_is_machine_readable(plan):
    result = plan("--n-samples 1e6 --n-features 64 --n-covariates 2 --json --read-gbs inf")
    found = json.loads(result.output)
    assert found["job"]["n_samples"] == 10**6
    assert found["rates"]["read"] is None
    job = Job(10**6, 64, 2)
    assert math.isclose(found["seconds"]["LatentAligner"], total(aligner(job, RATES._replace(read=math.inf))))


def test_the_command_refuses_nonsense(plan):
    wrong = {
        "--n-samples 1e9 --n-features 8 --n-covariates 9 --n-factors 9": "9 covariates",
        "--n-samples 1 --n-features 8 --n-covariates 1 --read-gbs 0": "gigabytes",
    }
    for text, message in wrong.items():
        result = plan(text)
        assert result.exit_code == 2
        assert message in result.stderr
