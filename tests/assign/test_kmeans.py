"""k-means against scikit-learn and its own invariants."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from torch import Tensor

from ronid.assign.kmeans import (
    _lloyd,
    _lloyd_together,
    class_means,
    kmeans,
    nearest_centroid,
    plus_plus,
)
from ronid.errors import RonidWarning


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def blobs(n: int, k: int, std: float, seed: int = 0) -> Tensor:
    points, _ = make_blobs(n, 16, centers=k, cluster_std=std, random_state=seed)
    return torch.tensor(points, dtype=torch.float32)


@pytest.mark.parametrize("std", [1.0, 5.0, 9.0])
def test_inertia_is_that_of_scikit_learn(std: float) -> None:
    points = blobs(1500, 12, std)
    oracle = KMeans(12, n_init=10, random_state=0).fit(points.numpy())
    assert kmeans(points, 12, generator=seeded()).inertia <= 1.02 * oracle.inertia_


def test_one_start_ends_where_scikit_learn_ends() -> None:
    points = blobs(600, 6, 6.0)
    start = points[:6]
    found = kmeans(points, 6, init=start, generator=seeded(), tolerance=0)
    oracle = KMeans(6, init=start.numpy(), n_init=1, tol=0).fit(points.numpy())
    np.testing.assert_allclose(found.centroids, oracle.cluster_centers_, atol=1e-3)
    assert (found.labels.numpy() == oracle.labels_).all()
    assert found.inertia == pytest.approx(oracle.inertia_, rel=1e-4)


@given(n=st.integers(5, 60), k=st.integers(1, 5), seed=st.integers(0, 100))
def test_result_is_a_fixed_point(n: int, k: int, seed: int) -> None:
    points = torch.randn(n, 3, generator=seeded(seed), dtype=torch.float64)
    found = kmeans(points, k, n_init=2, tolerance=0, generator=seeded(seed))
    gaps = torch.cdist(points, found.centroids)
    assert found.labels.equal(gaps.argmin(dim=1))
    torch.testing.assert_close(class_means(points, found.labels, k), found.centroids)
    assert found.inertia == pytest.approx(float(gaps.min(dim=1).values.square().sum()))
    assert len(found.labels.unique()) == k
    assert found.fixed


def test_more_restarts_are_never_worse() -> None:
    points = blobs(400, 15, 3.0)
    start = plus_plus(points, 15, 5, generator=seeded())
    single = [kmeans(points, 15, init=s, generator=seeded()).inertia for s in start]
    assert min(single) <= single[0]
    found = kmeans(points, 15, n_init=5, generator=seeded())
    assert found.inertia <= min(single) * 1.02


def test_same_seed_gives_the_same_result() -> None:
    points = blobs(300, 5, 5.0)
    first, second = (kmeans(points, 5, generator=seeded(7)) for _ in range(2))
    assert first.labels.equal(second.labels)
    assert first.centroids.equal(second.centroids)


@pytest.mark.parametrize("block_rows", [1, 17, 100, 5000])
def test_blocks_change_nothing(block_rows: int) -> None:
    points = blobs(200, 5, 2.0).double()
    whole = kmeans(points, 5, n_init=2, generator=seeded())
    blocks = kmeans(points, 5, n_init=2, generator=seeded(), block_rows=block_rows)
    assert blocks.labels.equal(whole.labels)


def test_moving_the_points_moves_the_centroids() -> None:
    points = blobs(300, 5, 1.0).double()
    here = kmeans(points, 5, generator=seeded())
    there = kmeans(points + 1000, 5, generator=seeded())
    torch.testing.assert_close(there.centroids, here.centroids + 1000)
    assert there.inertia == pytest.approx(here.inertia)


def test_golden_clusters() -> None:
    points = torch.tensor([[0.0, 0.0], [0.0, 1.0], [10.0, 0.0], [10.0, 2.0]])
    found = kmeans(points, 2, generator=seeded())
    assert sorted(found.centroids.tolist()) == [[0.0, 0.5], [10.0, 1.0]]
    assert found.inertia == pytest.approx(2.5)


def test_an_empty_cluster_restarts_far_away() -> None:
    points = torch.tensor([[0.0], [0.1], [0.2], [9.0]])
    start = torch.tensor([[0.0], [100.0]])  # nothing is nearest to the second
    found = kmeans(points, 2, init=start, generator=seeded())
    assert found.labels.tolist() == [0, 0, 0, 1]


def test_too_few_distinct_points_warn() -> None:
    with pytest.warns(RonidWarning, match="2 of 3 clusters are empty"):
        kmeans(torch.ones(5, 2), 3, generator=seeded())


def test_starts_are_points_apart_from_each_other() -> None:
    points = blobs(400, 8, 0.1).double()
    starts = plus_plus(points, 8, 3, generator=seeded())
    assert starts.shape == (3, 8, 16)
    for start in starts:
        assert torch.cdist(start, points).min(dim=1).values.max() < 1e-5
        gaps = torch.cdist(start, start) + 1e9 * torch.eye(8)
        assert gaps.min() > 2  # one in each blob


def test_iterations_are_bounded() -> None:
    points = blobs(500, 10, 9.0)
    assert kmeans(points, 10, max_iterations=2, n_init=1, generator=seeded()).iterations == 2


def test_what_was_stopped_before_the_labels_stayed_is_not_called_fixed() -> None:
    points = blobs(600, 6, 6.0)
    start = points[:6]
    assert not kmeans(points, 6, init=start, generator=seeded(), max_iterations=1).fixed
    assert not kmeans(points, 6, init=start, generator=seeded(), tolerance=1e9).fixed
    assert kmeans(points, 6, init=start, generator=seeded(), tolerance=0).fixed


def test_class_means_equal_a_loop() -> None:
    points, labels = torch.randn(20, 3, generator=seeded()), torch.arange(20) % 4 - 1
    means = class_means(points, labels, 4)
    for c in range(3):
        torch.testing.assert_close(means[c], points[labels == c].mean(dim=0))
    assert (means[3] == 0).all()


def test_nearest_centroid_keeps_given_labels() -> None:
    points = torch.tensor([[0.0], [1.0], [2.0]])
    given_labels = torch.tensor([-1, 0, 0])
    labels = nearest_centroid(points, torch.tensor([[0.0], [2.0]]), given=given_labels)
    assert labels.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 0}, "k is 0"),
        ({"k": 6}, "k is 6"),
        ({"k": 2, "n_init": 0}, "n_init"),
        ({"k": 2, "init": torch.zeros(3, 2)}, "init has shape"),
    ],
)
def test_impossible_problems_are_refused(arguments: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kmeans(torch.randn(5, 2), generator=seeded(), **arguments)  # type: ignore[arg-type]


def test_points_that_are_not_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="NaN"):
        kmeans(torch.tensor([[0.0], [float("nan")]]), 1, generator=seeded())


@pytest.mark.parametrize("block_rows", [7, 5000])
@pytest.mark.parametrize("most", [1, 4, 300])
@pytest.mark.parametrize("labelled", [False, True])
def test_restarts_together_end_as_one_by_one(block_rows: int, most: int, labelled: bool) -> None:
    points = blobs(300, 6, 7.0).double()
    starts = plus_plus(points, 6, 5, generator=seeded())
    starts[1, 2:4] = 1e3  # nothing is nearest to these two
    given_labels = torch.where(torch.arange(300) % 3 == 0, torch.arange(300) % 6, -1)
    how = (most, 1e-3, given_labels if labelled else None, block_rows)
    one_by_one = [_lloyd(points, start, *how) for start in starts]
    pairs = list(zip(_lloyd_together(points, starts, *how), one_by_one, strict=True))
    assert len(pairs) == 5
    for one, other in pairs:
        assert one.labels.equal(other.labels)
        torch.testing.assert_close(one.centroids, other.centroids)
        assert one.inertia == pytest.approx(other.inertia)
        assert (one.iterations, one.fixed) == (other.iterations, other.fixed)
    assert most < 300 or len({one.iterations for one, _ in pairs}) > 1  # each stops on its own
