"""Accuracy of pseudo-labels in the history: of unlabelled rows, and only where truth is given."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from ronid.train.diagnose import label_accuracy
from ronid.types import Split

SPLIT = Split(
    texts=[str(i) for i in range(8)],
    targets=np.array([0, 1, -1, -1, -1, -1, -1, -1]),
    known=("a", "b"),
    n_intents=3,
    truth=np.array([0, 1, 0, 0, 1, 2, 2, 2]),
)


def test_only_unlabelled_rows_count_under_the_best_matching() -> None:
    labels = np.array([2, 2, 1, 1, 0, 2, 2, 0])  # clusters have other numbers; one row is wrong
    found = label_accuracy(labels, SPLIT)
    assert found["accuracy"] == pytest.approx(100 * 5 / 6)
    assert found["known_accuracy"] == 100
    assert found["novel_accuracy"] == pytest.approx(100 * 2 / 3)
    assert label_accuracy(torch.from_numpy(labels), SPLIT) == found


def test_without_truth_nothing_is_said() -> None:
    assert label_accuracy(np.zeros(8, np.int64), replace(SPLIT, truth=None)) == {}
