"""Models that earlier versions saved still load and still give the same numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import covalign as ca

SAVED = Path(__file__).resolve().parents[1] / "data" / "saved"  # written by 0.1.0 before its modules were rearranged


@pytest.fixture(scope="module")
def answers():
    with np.load(SAVED / "answers.npz", allow_pickle=False) as archive:
        return dict(archive)


def frame(values: np.ndarray, stem: str) -> pd.DataFrame:
    names = [f"{stem}{i}" for i in range(values.shape[1])]
    return pd.DataFrame(values, index=[f"s{i}" for i in range(len(values))], columns=names)


def asked(answers: dict[str, np.ndarray], model: str) -> tuple[object, dict[str, object]]:
    """What the saved model was given: new rows, and their confounders where it has some."""
    batch = frame(answers["Z"], "z").assign(batch=["a", "b", "a", "b", "a"])[["batch"]]
    views = {view: frame(answers[view], view) for view in ("rna", "protein")}
    return {
        "aligner": (answers["Z"], {}),
        "aligner_gaps": (frame(answers["Z"], "z"), {"confounders": batch}),
        "aligner_unsolved": (answers["Z"].astype(np.float32), {}),
        "factors": (answers["rna"], {}),
        "factors_confounders": (views, {"confounders": batch}),
        "factors_dense": (views, {}),
        "factors_gaps": (views, {}),
        "factors_sparse": (answers["wide"], {}),
        "factors_streamed": (answers["rna"], {}),
    }[model]


@pytest.mark.parametrize("model", sorted(path.stem for path in SAVED.glob("*.covalign")))
def test_it_loads_and_answers_as_it_did(answers, model):
    rows, options = asked(answers, model)
    found = np.asarray(ca.load(SAVED / f"{model}.covalign").transform(rows, **options))
    np.testing.assert_allclose(found, answers[model], rtol=1e-6 if found.dtype == np.float32 else 1e-10, atol=1e-10)
