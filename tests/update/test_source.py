"""How utterances are compared in an update."""

import numpy as np
import pytest
import torch

from ronid.update.novelty import own_share
from ronid.update.source import comparable

WIDTH = 40


def made(rng: np.random.Generator, intents: int, each: int) -> torch.Tensor:
    """Sentences and words of intents that differ in some directions and vary in others."""
    rows = np.repeat(np.arange(intents), each)
    sentence = 0.05 * rng.normal(size=(len(rows), WIDTH))
    sentence[np.arange(len(rows)), rows] += 1
    sentence[:, -4:] += 2 * rng.normal(size=(len(rows), 4))  # how people ask
    words = 5 + rng.normal(size=(len(rows), WIDTH))  # all words have much in common
    return torch.from_numpy(np.concatenate([sentence, words], axis=1)).float()


def test_vectors_have_length_one_and_stay_in_order() -> None:
    vectors = made(np.random.default_rng(0), 4, 20)
    found = comparable(vectors, np.repeat([0, 1], 20), WIDTH)
    assert found.shape == (80, 2 * WIDTH)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    again = comparable(
        torch.cat([vectors[:40], vectors[40:].flip(0)]), np.repeat([0, 1], 20), WIDTH
    )
    np.testing.assert_allclose(again[40:][::-1], found[40:], atol=1e-4)


def test_what_varies_within_old_intents_hides_new_ones_no_longer() -> None:
    rng = np.random.default_rng(1)
    vectors, truth = made(rng, 6, 40), np.repeat(np.arange(6), 40)
    sentence = vectors[:, :WIDTH]

    def apart(points: np.ndarray) -> float:
        return own_share(points[truth == 4], points[truth == 5])

    discounted = comparable(sentence, truth[truth < 4], WIDTH)
    assert apart(discounted) > 0.9
    assert apart(sentence.numpy()) < 0.8


def test_without_words_the_sentence_is_compared_alone() -> None:
    vectors = made(np.random.default_rng(2), 3, 10)[:, :WIDTH]
    assert comparable(vectors, np.repeat([0, 1], 10), WIDTH).shape == (30, WIDTH)


@pytest.mark.parametrize("scale", [0.1, 10.0])
def test_lengths_do_not_keep_groups_apart(scale: float) -> None:
    rng = np.random.default_rng(3)
    one, other = rng.normal(size=(2, 50, 6)) + 2
    assert own_share(one, scale * other) == pytest.approx(own_share(one, other))
    assert own_share(scale * one, other) < 0.7
