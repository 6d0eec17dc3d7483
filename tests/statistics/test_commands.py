"""Command lines on the pages that run parts of the study are run, as they are written."""

# ruff: noqa: F811  (fixtures are imported by name)

from __future__ import annotations

import pytest

from tests.docs.test_commands import (  # noqa: F401
    EXAMPLES,
    assert_it_runs,
    each,
    furnished,
    models,
    runs_the_study,
    shorter_fits,
    smaller_study,
)

STUDY = [example for example in EXAMPLES if runs_the_study(example)]


@pytest.mark.filterwarnings("default")  # a warning is no failure of a command
@pytest.mark.usefixtures("smaller_study", "shorter_fits")
@each(STUDY)
def test_it_runs_as_written(example, furnished, models, tmp_path, monkeypatch):
    assert_it_runs(example, furnished, models, tmp_path, monkeypatch)


def test_the_study_is_among_the_examples():
    assert STUDY
