"""The adapter learns new intents and holds what it had."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from ronid.data.corpus import corpus_from
from ronid.encode.rows import VectorRows
from ronid.methods import recipe
from ronid.model import IntentModel
from ronid.pipeline import discover
from ronid.progress import Silent
from ronid.update.adapt import LEAST_REHEARSED, REHEARSED, Frozen, adapt, can_adapt, rehearsed

DIM, EACH = 16, 40


def blobs(centres: np.ndarray, each: int, seed: int) -> np.ndarray:
    noise = np.random.default_rng(seed).normal(size=(len(centres) * each, DIM))
    return (np.repeat(centres, each, 0) + 0.25 * noise).astype(np.float32)


def fitted() -> tuple[IntentModel, np.ndarray, np.ndarray]:
    """A model of three intents, its utterances and their intents."""
    vectors = blobs(np.eye(DIM)[:3], EACH, 0)
    names = np.repeat(["a", "b", "c"], EACH)
    given = [name if i % 4 == 0 else None for i, name in enumerate(names)]
    corpus = corpus_from(None, given, embeddings=vectors)
    found = discover(corpus, 3, recipe("ronid", "fast"), device="cpu")
    return found.model, vectors, found.discovery.labels


def near(model: IntentModel, vectors: np.ndarray, prototypes: np.ndarray) -> np.ndarray:
    features = model.encoder.embed_all(VectorRows(torch.from_numpy(vectors))).numpy()
    return np.asarray((features @ prototypes.T).argmax(1))


def test_new_intents_are_learnt_and_old_ones_stay() -> None:
    model, old, labels = fitted()
    before = model.prototypes.copy()
    # Two new intents that lie so near to old ones that features mix them.
    centres = np.eye(DIM)[[0, 1]] + 0.6 * np.eye(DIM)[[8, 9]]
    came = np.concatenate([blobs(centres, EACH, 1), blobs(np.eye(DIM)[:3], 10, 2)])
    first = np.concatenate([np.repeat([3, 4], EACH), np.repeat([0, 1, 2], 10)])
    frozen = Frozen(torch.from_numpy(old), labels, torch.from_numpy(came))
    features = near(model, old, before)
    learnt = adapt(model, frozen, first, first < 3, Silent())
    assert model.prototypes.tobytes() == before.tobytes()
    assert learnt.new.shape == (2, before.shape[1])
    everything = np.concatenate([before, learnt.new])
    assert (near(model, came, everything) == first).mean() > 0.85
    assert (near(model, old, everything) == features).mean() > 0.9
    again = model.encoder.embed_all(VectorRows(torch.from_numpy(came))).numpy()
    np.testing.assert_array_equal(learnt.vectors, again)
    assert len(learnt.scope.vectors) == len(old)


def test_it_learns_the_same_from_the_same() -> None:
    outcomes = []
    for _ in range(2):
        model, old, labels = fitted()
        came = blobs(np.eye(DIM)[[9]], 30, 3)
        frozen = Frozen(torch.from_numpy(old), labels, torch.from_numpy(came))
        outcomes.append(adapt(model, frozen, np.full(30, 3), np.zeros(30, bool), Silent()))
    assert outcomes[0].new.tobytes() == outcomes[1].new.tobytes()
    assert outcomes[0].vectors.tobytes() == outcomes[1].vectors.tobytes()


def test_only_an_adapter_over_a_frozen_encoder_can_learn() -> None:
    model, _, _ = fitted()
    assert can_adapt(model)
    assert not can_adapt(replace(model, rule="distance"))
    assert not can_adapt(replace(model, config=recipe("kmeans")))
    model.encoder.adapter = None
    assert not can_adapt(model)


@pytest.mark.parametrize("k", [2, 3, 1_000])
def test_every_intent_is_rehearsed(k: int) -> None:
    rng = np.random.default_rng(k)
    labels = np.concatenate([np.zeros(5_000, np.int64), rng.integers(0, k, 8_000)])
    rows = rehearsed(labels, k, rng)
    counts = np.bincount(labels[rows], minlength=k)
    most = max(LEAST_REHEARSED, REHEARSED // k)
    assert (counts == np.minimum(np.bincount(labels, minlength=k), most)).all()
    assert len(np.unique(rows)) == len(rows)
