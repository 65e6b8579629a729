"""The distance of two groups against what is known of it."""

import numpy as np
import pytest
import torch

from ronid.assign.neighbours import nearest_neighbours
from ronid.judge.gaps import halve, measure_gap
from ronid.types import IntArray


def neighbours_of(points: np.ndarray) -> IntArray:
    return nearest_neighbours(torch.from_numpy(points), 10).numpy()


def test_one_group_dealt_at_random_has_no_gap() -> None:
    points = np.random.default_rng(0).normal(size=(400, 50)).astype(np.float32)
    gap = measure_gap(points, neighbours_of(points), np.arange(200), np.arange(200, 400))
    assert abs(gap.apart) < 0.5  # a line drawn through all of them would part them by more than 1
    assert gap.mixing == pytest.approx(1, abs=0.15)
    assert gap.cost < 0.01


def test_two_groups_are_apart_by_their_distance_in_deviations() -> None:
    points = np.random.default_rng(0).normal(size=(4000, 3)).astype(np.float32)
    points[2000:, 0] += 6
    gap = measure_gap(points, neighbours_of(points), np.arange(2000), np.arange(2000, 4000))
    assert gap.apart == pytest.approx(6, rel=0.05)
    # n/4 times the squared distance over n times the three variances
    assert gap.cost == pytest.approx(36 / 12, rel=0.05)


def test_far_groups_do_not_mix_and_have_no_common_direction() -> None:
    points = np.zeros((60, 4), np.float32)
    points[:30, 0], points[30:, 1] = 1, 1
    points += np.random.default_rng(0).normal(size=points.shape).astype(np.float32) * 0.01
    gap = measure_gap(points, neighbours_of(points), np.arange(30), np.arange(30, 60))
    assert gap.mixing == 0
    assert gap.similarity == pytest.approx(0, abs=0.01)


def test_halves_are_the_two_groups_within_the_larger_first() -> None:
    points = np.random.default_rng(0).normal(size=(50, 5)).astype(np.float32) * 0.1
    points[35:, 2] += 3
    rows = np.arange(50)[::-1].copy()
    larger, smaller = halve(points, rows, torch.Generator().manual_seed(0))
    assert set(larger) == set(range(35))
    assert set(smaller) == set(range(35, 50))
