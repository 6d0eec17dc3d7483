"""On a real pretrained embedding: what the default promises, it keeps on rows it has not seen."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import covalign as ca
from covalign.closed_form import regimes


@pytest.fixture(scope="module")
def images():
    from tests.conftest import SHARED

    folder = SHARED / "tinyimagenet_efflite0"
    if not folder.is_dir():
        pytest.skip(f"the real data set is not at {folder}")
    Z = np.load(folder / "embeddings.npy")
    labels = pd.read_csv(folder / "labels.csv")
    classes = labels.loc[labels["labelled"] == 1, "name"].unique()
    Y = pd.DataFrame({c: ((labels["name"] == c) & (labels["labelled"] == 1)).astype(float) for c in classes})
    return Z, Y


def procrustes_then(m: ca.Moments, regime: str) -> np.ndarray:
    """The paper's route: rotate the embedding to P dimensions by orthogonal Procrustes, then apply the regime."""
    U, _, Vt = np.linalg.svd(m.cov_zy / np.sqrt(np.diag(m.cov_y)), full_matrices=False)
    rotation = Vt.T @ U.T
    return regimes.turned(regimes.whitened_polar(m.transform(rotation)), regime) @ rotation


@pytest.mark.parametrize("seed", range(2))
def test_held_out_alignment_of_the_default(images, seed):
    Z, Y = images
    half = np.random.default_rng(seed).permutation(len(Z))
    fitted, unseen = half[:1000], half[1000:]
    al = ca.LatentAligner("strongest").fit(Z[fitted], Y.iloc[fitted])
    m = ca.Moments.from_arrays(Z[unseen], Y.iloc[unseen])
    truth = regimes.alignment(al.transform_, m).mean()
    assert truth >= 0.54
    assert truth > regimes.alignment(procrustes_then(al.moments_, "strongest"), m).mean() + 0.04
    # What the aligner itself says of unseen rows is what unseen rows show; what it says of its own is far off.
    assert al.held_out_alignment_.mean() == pytest.approx(truth, abs=0.03)
    assert al.alignment_.mean() > truth + 0.15
    independent = al.at(regime="independent")
    assert regimes.alignment(independent.transform_, m).mean() >= 0.53
    assert regimes.coupling(independent.transform_, m) < 1.0


def test_exact_solution_is_an_illusion_here(images):
    Z, Y = images
    half = np.random.default_rng(0).permutation(len(Z))
    exact = ca.LatentAligner("strongest", shrinkage=0.0).fit(Z[half[:1000]], Y.iloc[half[:1000]])
    m = ca.Moments.from_arrays(Z[half[1000:]], Y.iloc[half[1000:]])
    assert exact.alignment_.mean() > 0.99
    assert regimes.alignment(exact.transform_, m).mean() < 0.35


def test_degenerate_columns_do_not_cost_quality(images):
    Z, Y = images
    half = np.random.default_rng(0).permutation(len(Z))
    fitted, unseen = half[:1000], half[1000:]
    spoiled = np.hstack([Z, Z[:, :100], np.zeros((len(Z), 5), Z.dtype), np.full((len(Z), 5), 0.1, Z.dtype)])
    scores = []
    for X in (Z, spoiled):
        al = ca.LatentAligner("strongest").fit(X[fitted], Y.iloc[fitted])
        assert np.isfinite(al.transform_).all()
        scores.append(regimes.alignment(al.transform_, ca.Moments.from_arrays(X[unseen], Y.iloc[unseen])).mean())
    assert scores[1] == pytest.approx(scores[0], abs=0.01)
