"""Prototypes alone, where a method has no training to go on with."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronid.learn.train import settle_only
from ronid.types import Rule, Split


@pytest.mark.parametrize("rule", ["cosine", "distance"])
@given(seed=st.integers(0, 10_000))
def test_labels_are_kept_bans_hold_and_nothing_moves_any_more(rule: Rule, seed: int) -> None:
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(4, 6)) * 3
    truth = np.arange(40) % 4
    points = (centres[truth] + rng.normal(size=(40, 6))).astype(np.float32)
    if rule == "cosine":
        points /= np.linalg.norm(points, axis=1, keepdims=True)
    targets = np.where(rng.random(40) < 0.2, truth, -1)
    targets[np.flatnonzero(truth == 3)] = 3  # the closed one keeps its own
    banned = np.stack([np.arange(10), rng.integers(0, 3, 10)], 1)
    split = Split(["x"] * 40, targets, (), 4, forbidden=banned, closed=(3,))
    places = np.where(rng.random(40) < 0.8, truth, -1)
    start = np.zeros((4, 6), np.float32)
    prototypes, labels = settle_only(split, points, places, start, rule)
    free = targets < 0
    assert (labels[~free] == targets[~free]).all()
    assert 3 not in labels[free]
    for row, intent in banned:
        assert not free[row] or labels[row] != intent
    again, same = settle_only(split, points, labels, prototypes, rule)
    assert np.array_equal(same, labels)
    assert np.allclose(again, prototypes, atol=1e-5)


def test_an_intent_without_rows_keeps_its_prototype() -> None:
    points = np.eye(3, dtype=np.float32)
    split = Split(["x"] * 3, np.array([0, 0, 0]), ("a",), 2)
    start = np.array([[1, 0, 0], [0, 0, -1]], np.float32)
    prototypes, _ = settle_only(split, points, np.zeros(3, np.int64), start, "cosine")
    assert prototypes[1].tolist() == [0, 0, -1]
