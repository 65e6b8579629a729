"""Semi-supervised k-means: labels are kept, known classes come first."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import make_blobs
from torch import Tensor

from ronid.assign.kmeans import best_of, class_means, kmeans
from ronid.assign.semisup_kmeans import semisup_kmeans


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def problem(known: int = 3, k: int = 6, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Points of k blobs, their classes, and targets for a tenth of the known ones."""
    points, classes = make_blobs(300, 8, centers=k, cluster_std=1.0, random_state=seed)
    truth = torch.tensor(classes)
    targets = torch.where((truth < known) & (torch.arange(300) % 5 == 0), truth, -1)
    return torch.tensor(points, dtype=torch.float32), truth, targets


def test_known_classes_keep_their_numbers_and_novel_ones_are_found() -> None:
    points, truth, targets = problem()
    found = semisup_kmeans(points, targets, 6, generator=seeded())
    assert (found.labels[truth < 3] == truth[truth < 3]).all()
    for c in range(3, 6):
        assert len(found.labels[truth == c].unique()) == 1


def test_result_equals_a_naive_loop_from_the_same_start() -> None:
    points, _, targets = problem(known=3, k=3)
    found = semisup_kmeans(points, targets, 3, tolerance=0, generator=seeded())
    centroids = torch.stack([points[targets == c].mean(dim=0) for c in range(3)])
    for _ in range(50):
        labels = torch.cdist(points, centroids).argmin(dim=1)
        labels[targets >= 0] = targets[targets >= 0]
        centroids = torch.stack([points[labels == c].mean(dim=0) for c in range(3)])
    assert found.labels.equal(labels)
    torch.testing.assert_close(found.centroids, centroids, atol=1e-4, rtol=1e-4)


@given(seed=st.integers(0, 100), k=st.integers(3, 8))
def test_labelled_points_keep_even_wrong_labels(seed: int, k: int) -> None:
    points = torch.randn(60, 4, generator=seeded(seed))
    targets = torch.full((60,), -1)
    targets[:9] = torch.arange(9) % 3  # unrelated to where the points lie
    found = semisup_kmeans(points, targets, k, n_init=2, generator=seeded(seed))
    assert found.labels[:9].equal(targets[:9])
    assert sorted(found.labels.unique().tolist()) == list(range(k))
    torch.testing.assert_close(
        class_means(points, found.labels, k), found.centroids, atol=0.2, rtol=0.2
    )


def test_without_labels_it_is_kmeans() -> None:
    points, _, _ = problem()
    found = semisup_kmeans(points, torch.full((300,), -1), 6, generator=seeded())
    plain = kmeans(points, 6, generator=seeded(), max_iterations=200)
    assert found.labels.equal(plain.labels)


def test_golden_clusters() -> None:
    points = torch.tensor([[0.0], [1.0], [4.0], [10.0], [12.0]])
    found = semisup_kmeans(points, torch.tensor([0, -1, 0, -1, -1]), 2, generator=seeded())
    assert found.labels.tolist() == [0, 0, 0, 1, 1]
    torch.testing.assert_close(found.centroids, torch.tensor([[5 / 3], [11.0]]))


def test_an_empty_novel_cluster_restarts_at_an_unlabelled_point() -> None:
    points = torch.tensor([[0.0], [50.0], [0.0], [0.0], [5.0]])
    targets = torch.tensor([0, 0, -1, -1, -1])  # the farthest point is labelled
    start = torch.tensor([[[0.0], [1000.0]]])  # nothing is nearest to the second
    found = best_of(points, start, 100, 0.0, given=targets)
    assert found.labels.tolist() == [0, 0, 1, 1, 1]


@pytest.mark.parametrize(
    ("targets", "k", "message"),
    [
        ([0, 2, -1, -1], 4, r"\[1\] have no labelled"),
        ([0, 1, -1, -1], 1, "known classes, 2"),
        ([0, 0, 0, -1], 3, "unlabelled points, 1"),
        ([0, 0, 0, -1], 9, "k is 9"),
    ],
)
def test_impossible_problems_are_refused(targets: list[int], k: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        semisup_kmeans(torch.randn(4, 2), torch.tensor(targets), k, generator=seeded())
