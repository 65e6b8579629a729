"""Clusters that keep their numbers, against plain k-means and a shuffle of it."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from ronid.assign.aligned import aligned_kmeans
from ronid.assign.kmeans import class_means, kmeans, nearest_centroid


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def blobs(k: int, seed: int, rows: int = 12) -> Tensor:
    """Points around k centres far from each other."""
    generator = seeded(seed)
    centres = 100 * torch.eye(k, 4) + torch.arange(k)[:, None] * 50
    return centres.repeat(rows, 1) + torch.randn(k * rows, 4, generator=generator)


def test_the_first_clustering_is_plain_kmeans() -> None:
    points = blobs(3, 0)
    found = aligned_kmeans(points, 3, None, generator=seeded(1), n_init=4)
    plain = kmeans(points, 3, generator=seeded(1), n_init=4)
    assert found.labels.equal(plain.labels)
    assert found.centroids.equal(plain.centroids)


@given(seed=st.integers(0, 999), k=st.integers(1, 7))
def test_other_starts_and_small_moves_change_no_label(seed: int, k: int) -> None:
    points = blobs(k, seed)
    first = aligned_kmeans(points, k, None, generator=seeded(seed), n_init=5)
    shuffle = torch.randperm(k, generator=seeded(seed))
    moved = points + 0.1 * torch.randn(points.shape, generator=seeded(seed))
    again = aligned_kmeans(moved, k, first.centroids[shuffle], generator=seeded(seed + 1), n_init=5)
    assert shuffle[again.labels].equal(first.labels)


@given(seed=st.integers(0, 999), k=st.integers(1, 6))
def test_centroids_and_labels_are_reordered_together(seed: int, k: int) -> None:
    points = torch.randn(40, 3, generator=seeded(seed))
    previous = torch.randn(k, 3, generator=seeded(seed + 1))
    plain = kmeans(points, k, generator=seeded(seed), n_init=2)
    found = aligned_kmeans(points, k, previous, generator=seeded(seed), n_init=2)
    assert found.inertia == plain.inertia
    assert sorted(found.centroids.tolist()) == sorted(plain.centroids.tolist())
    assert found.centroids[found.labels].equal(plain.centroids[plain.labels])
    straight = (plain.centroids - previous).norm(dim=1).sum()
    assert (found.centroids - previous).norm(dim=1).sum() <= straight + 1e-5
    assert nearest_centroid(points, found.centroids).equal(found.labels)


def test_golden_order() -> None:
    points = torch.tensor([[0.0], [1.0], [10.0], [11.0], [20.0]])
    previous = torch.tensor([[19.0], [0.0], [9.0]])
    found = aligned_kmeans(points, 3, previous, generator=seeded())
    assert found.labels.tolist() == [1, 1, 2, 2, 0]
    assert found.centroids[:, 0].tolist() == [20.0, 0.5, 10.5]
    torch.testing.assert_close(found.centroids, class_means(points, found.labels, 3))


def test_iterations_can_be_few() -> None:
    points = torch.randn(300, 5, generator=seeded())
    found = aligned_kmeans(points, 9, None, generator=seeded(), n_init=1, max_iterations=2)
    assert found.iterations <= 2


def test_centroids_of_another_number_are_refused() -> None:
    with pytest.raises(ValueError, match=r"previous has shape \(2, 4\), not \(3, 4\)"):
        aligned_kmeans(blobs(3, 0), 3, torch.zeros(2, 4), generator=seeded())
