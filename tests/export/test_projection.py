import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronid.export.projection import NEIGHBOURS, _reduce, _sample, place, project


def blobs(count: int, groups: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % groups
    centres = rng.normal(size=(groups, 32)) * 4
    return (centres[labels] + rng.normal(size=(count, 32))).astype(np.float32), labels


@pytest.mark.parametrize("count", [0, 1, 2, 3, 5, 12])
def test_few_points_get_finite_places(count: int) -> None:
    points, _ = blobs(count, 3) if count else (np.empty((0, 4), np.float32), None)
    flat = project(points)
    assert flat.shape == (count, 2)
    assert flat.dtype == np.float32
    assert np.isfinite(flat).all()


def test_identical_points_share_a_place() -> None:
    assert np.ptp(project(np.ones((20, 8))), axis=0).max() == 0


def test_intents_stay_together_on_the_map() -> None:
    points, labels = blobs(300, 5)
    flat = project(points, labels=labels)
    distances = np.linalg.norm(flat[:, None] - flat[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    assert (labels[distances.argmin(axis=1)] == labels).mean() > 0.98


def test_unfitted_points_land_in_their_intent() -> None:
    points, labels = blobs(400, 4)
    flat = project(points, labels=labels, max_fitted=120)
    centres = np.stack([np.median(flat[labels == k], axis=0) for k in range(4)])
    found = np.linalg.norm(flat[:, None] - centres[None], axis=2).argmin(axis=1)
    assert (found == labels).mean() > 0.98


def test_placing_agrees_with_a_plain_loop() -> None:
    rng = np.random.default_rng(0)
    fitted = rng.normal(size=(20, 6)).astype(np.float32)
    points = rng.normal(size=(7, 6)).astype(np.float32)
    flat = rng.normal(size=(20, 2)).astype(np.float32)
    for point, placed in zip(points, place(points, fitted, flat), strict=True):
        cosines = fitted @ point / (np.linalg.norm(fitted, axis=1) * np.linalg.norm(point))
        nearest = np.argsort(-cosines)[:NEIGHBOURS]
        weights = np.exp(cosines[nearest] * 20)
        expected = weights @ flat[nearest] / weights.sum()
        np.testing.assert_allclose(placed, expected, rtol=1e-3, atol=1e-4)


def test_a_point_between_two_anchors_is_placed_half_way() -> None:
    anchors = np.eye(2, dtype=np.float32)
    flat = np.array([[0, 0], [1, 3]], dtype=np.float32)
    placed = place(np.array([[1, 1]], dtype=np.float32), anchors, flat)
    np.testing.assert_allclose(placed, [[0.5, 1.5]], atol=1e-6)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=80), st.integers(6, 40))
def test_every_intent_is_in_the_sample(labels: list[int], size: int) -> None:
    rows = _sample(len(labels), np.array(labels), size, np.random.default_rng(0))
    assert len(rows) == len(set(rows.tolist())) == min(size, len(labels))
    assert set(np.array(labels)[rows]) == set(labels)


def test_reduction_keeps_distances_when_nothing_is_cut() -> None:
    points, _ = blobs(30, 3)
    reduced = _reduce(points)
    np.testing.assert_allclose(
        np.linalg.norm(reduced[0] - reduced[1:], axis=1),
        np.linalg.norm(points[0] - points[1:], axis=1),
        rtol=1e-4,
    )


def test_same_seed_same_map() -> None:
    points, labels = blobs(150, 3)
    first = project(points, labels=labels, seed=3, max_fitted=90)
    assert np.array_equal(first, project(points, labels=labels, seed=3, max_fitted=90))


def test_broken_embeddings_are_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        project(np.array([[1.0, np.nan]]))
    with pytest.raises(ValueError, match="matrix"):
        project(np.ones(3))


def test_a_demo_is_projected_within_ten_seconds() -> None:
    points, labels = blobs(1600, 20)
    started = time.process_time()  # other work on the machine does not count
    project(points, labels=labels)
    assert time.process_time() - started < 10
