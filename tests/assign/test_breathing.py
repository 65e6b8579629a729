"""Breathing k-means: what it may never lose, and the local optima it leaves."""

import itertools
import warnings

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import make_blobs
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from ronid.assign.breathing import _halve, _Lloyd, breathe, breathing_kmeans
from ronid.assign.kmeans import best_of, kmeans
from ronid.assign.semisup_kmeans import semisup_kmeans
from ronid.errors import RonidWarning

CENTRES = torch.tensor([[0.0, 0], [10, 0], [20, 0], [0, 30], [10, 30], [20, 30]])
UNLABELLED = torch.full((180,), -1)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def blobs(per_blob: int = 30) -> tuple[Tensor, Tensor]:
    """Return points of six blobs far apart, and their classes."""
    truth = torch.arange(6).repeat(per_blob)
    return CENTRES[truth] + 0.5 * torch.randn(len(truth), 2, generator=seeded(1)), truth


def trapped() -> Tensor:
    """Return centroids two of which share blob 0 while one stands between blobs 4 and 5."""
    return torch.cat([CENTRES[:4], torch.tensor([[0.0, 1.0], [15.0, 30.0]])])


def overlapping(known: int = 3, k: int = 8, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Return points of k blobs that touch, and targets for a few of the first `known`."""
    points, classes = make_blobs(240, 5, centers=k, cluster_std=3.0, random_state=seed)
    truth = torch.tensor(classes)
    targets = torch.where((truth < known) & (torch.arange(240) % 4 == 0), truth, -1)
    return torch.tensor(points, dtype=torch.float32), targets


def naive_inertia(points: Tensor, centroids: Tensor, labels: Tensor) -> float:
    return sum(
        float((x - centroids[c]).square().sum())
        for x, c in zip(points.double(), labels.tolist(), strict=True)
    )


def test_it_leaves_a_local_optimum_that_lloyd_keeps() -> None:
    points, truth = blobs()
    stuck = best_of(points, trapped()[None], 200, 0.0)
    assert len(stuck.labels[truth == 0].unique()) == 2  # what makes it a trap
    found = breathe(points, UNLABELLED, trapped(), generator=seeded())
    assert found.inertia < stuck.inertia / 10
    pairs = {*zip(truth.tolist(), found.labels.tolist(), strict=True)}
    assert len(pairs) == 6  # one cluster per blob, one blob per cluster


@pytest.mark.parametrize("seed", range(5))
def test_it_leaves_the_trap_whatever_is_drawn(seed: int) -> None:
    points, _ = blobs()
    best = best_of(points, CENTRES[None], 200, 0.0).inertia
    found = breathe(points, UNLABELLED, trapped(), generator=seeded(seed))
    assert found.inertia == pytest.approx(best, rel=1e-4)


def test_no_breaths_are_lloyd_alone() -> None:
    points, _ = blobs()
    plain = best_of(points, trapped()[None], 200, 0.0, given=UNLABELLED)
    found = breathe(points, UNLABELLED, trapped(), generator=seeded(), breaths=0, tolerance=0.0)
    assert found.labels.equal(plain.labels)
    assert found.inertia == pytest.approx(plain.inertia)


@given(seed=st.integers(0, 1000), known=st.integers(0, 6), k=st.integers(6, 12))
def test_inertia_is_never_above_the_kmeans_it_begins_with(seed: int, known: int, k: int) -> None:
    points, targets = overlapping(known, 8, seed)
    begun = semisup_kmeans(points, targets, k, generator=seeded(seed), n_init=2)
    found = breathing_kmeans(points, targets, k, generator=seeded(seed), n_init=2, breaths=15)
    assert found.inertia <= begun.inertia * (1 + 1e-5)
    naive = naive_inertia(points, found.centroids.double(), found.labels)
    assert found.inertia == pytest.approx(naive, rel=1e-4)


@given(seed=st.integers(0, 1000), k=st.integers(3, 10))
def test_labelled_points_keep_even_wrong_labels(seed: int, k: int) -> None:
    points = torch.randn(80, 4, generator=seeded(seed))
    targets = torch.full((80,), -1)
    targets[:9] = torch.arange(9) % 3  # unrelated to where the points lie
    found = breathing_kmeans(points, targets, k, generator=seeded(seed), n_init=1, breaths=10)
    assert found.labels[:9].equal(targets[:9])
    assert found.centroids.shape == (k, 4)
    assert sorted(found.labels.unique().tolist()) == list(range(k))


@given(seed=st.integers(0, 1000))
def test_free_points_are_with_the_nearest_centroid(seed: int) -> None:
    points, targets = overlapping(seed=seed)
    found = breathing_kmeans(points, targets, 9, generator=seeded(seed), n_init=1, breaths=10)
    gaps = torch.cdist(points.double(), found.centroids.double())
    own = gaps.gather(1, found.labels[:, None])[:, 0]
    free = targets < 0
    assert (own[free] <= gaps[free].amin(dim=1) * (1 + 1e-4)).all()


@pytest.mark.parametrize("seed", range(3))
def test_known_centroids_stay_at_their_numbers(seed: int) -> None:
    points, truth = blobs()
    order = torch.tensor([5, 3, 0])  # known classes 0, 1, 2 are these blobs
    targets = UNLABELLED.clone()
    for known, blob in enumerate(order.tolist()):
        targets[(truth == blob).nonzero()[:3, 0]] = known
    found = breathing_kmeans(points, targets, 6, generator=seeded(seed), n_init=1)
    nearest = torch.cdist(CENTRES, found.centroids).argmin(dim=1)
    assert nearest[order].tolist() == [0, 1, 2]
    assert sorted(nearest.tolist()) == list(range(6))


def test_known_centroid_without_a_free_point_near_it_is_not_taken_away() -> None:
    points, truth = blobs()
    targets = torch.where(truth == 0, 0, -1)  # all of blob 0 is labelled: nobody would miss it
    start = torch.cat([CENTRES[:1], trapped()[1:]])
    found = breathe(points, targets, start, generator=seeded())
    torch.testing.assert_close(found.centroids[0], points[truth == 0].mean(dim=0))
    assert found.labels[truth == 0].eq(0).all()
    assert len({*zip(truth.tolist(), found.labels.tolist(), strict=True)}) == 6


def test_clusters_that_are_not_exchanged_keep_their_numbers() -> None:
    points, _ = blobs()
    found = breathe(points, UNLABELLED, trapped(), generator=seeded())
    assert torch.cdist(CENTRES[1:4], found.centroids).argmin(dim=1).tolist() == [1, 2, 3]


def test_same_seed_same_clusters() -> None:
    points, targets = overlapping()
    one, two = (breathing_kmeans(points, targets, 10, generator=seeded(7)) for _ in range(2))
    assert torch.equal(one.labels, two.labels)
    assert torch.equal(one.centroids, two.centroids)


def test_only_known_classes_are_semisupervised_kmeans() -> None:
    points, targets = overlapping(known=4)
    plain = semisup_kmeans(points, targets, 4, generator=seeded())
    found = breathing_kmeans(points, targets, 4, generator=seeded())
    assert found.labels.equal(plain.labels)
    torch.testing.assert_close(found.centroids, plain.centroids, atol=1e-3, rtol=1e-3)


def test_without_a_new_class_nothing_is_drawn() -> None:
    points, targets = overlapping(known=4)
    start, generator = points[:4], seeded()
    found = breathe(points, targets, start, generator=generator)
    assert found.labels.equal(best_of(points, start[None], 200, 1e-4, given=targets).labels)
    assert generator.get_state().equal(seeded().get_state())


def test_without_labels_it_is_at_least_as_good_as_kmeans() -> None:
    points, _ = blobs()
    plain = kmeans(points, 6, generator=seeded(), n_init=1)
    found = breathing_kmeans(points, UNLABELLED, 6, generator=seeded(), n_init=1)
    assert found.inertia <= plain.inertia * (1 + 1e-5)
    assert found.inertia == pytest.approx(best_of(points, CENTRES[None], 200, 0.0).inertia)


def test_one_cluster_is_the_mean() -> None:
    points, _ = blobs()
    found = breathing_kmeans(points, UNLABELLED, 1, generator=seeded())
    torch.testing.assert_close(found.centroids[0], points.mean(dim=0), atol=1e-4, rtol=1e-4)
    assert found.labels.eq(0).all()


@pytest.mark.parametrize("block_rows", [7, 60, 1000])
def test_blocks_of_rows_change_nothing(block_rows: int) -> None:
    points, targets = overlapping(seed=3)
    start = points[torch.randperm(240, generator=seeded(2))[:8]]
    whole = breathe(points, targets, start, generator=seeded(5))
    parts = breathe(points, targets, start, generator=seeded(5), block_rows=block_rows)
    assert parts.labels.equal(whole.labels)
    torch.testing.assert_close(parts.centroids, whole.centroids)


def test_blocks_of_rows_hold_from_the_first_kmeans_on(monkeypatch: pytest.MonkeyPatch) -> None:
    import ronid.assign.breathing as module

    asked: list[int | None] = []
    for name in ("kmeans", "semisup_kmeans"):
        inner = getattr(module, name)
        monkeypatch.setattr(
            module,
            name,
            lambda *a, inner=inner, **k: asked.append(k.get("block_rows")) or inner(*a, **k),
        )
    points, targets = overlapping()
    for given_targets in (targets, torch.full_like(targets, -1)):
        breathing_kmeans(points, given_targets, 8, generator=seeded(), breaths=1, block_rows=50)
    assert asked == [50, 50]


class Largest(TorchDispatchMode):
    """Notes the elements of the largest tensor that any operation returns."""

    elements = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        out = func(*args, **(kwargs or {}))
        if isinstance(out, Tensor):
            self.elements = max(self.elements, out.numel())
        return out


def test_splitting_clusters_holds_no_copy_of_the_points() -> None:
    points = torch.randn(1000, 16, generator=seeded())
    lloyd = _Lloyd(points, torch.full((1000,), -1), 200, 1e-4, block_rows=50)
    found = lloyd.settled(points[:5])
    with Largest() as largest:
        _halve(lloyd, found, seeded())
    assert 0 < largest.elements <= 2 * 1000  # two distances per point


def test_golden_clusters() -> None:
    points = torch.tensor([[0.0], [1.0], [10.0], [12.0], [30.0], [31.0]])
    start = torch.tensor([[0.0], [1.0], [20.0]])  # Lloyd stays here: 0 | 1 | the rest
    found = breathe(points, torch.full((6,), -1), start, generator=seeded())
    assert sorted(found.centroids.flatten().tolist()) == [0.5, 11.0, 30.5]
    assert found.inertia == pytest.approx(0.5 + 2.0 + 0.5)


def test_golden_clusters_with_a_label() -> None:
    points = torch.tensor([[0.0], [1.0], [10.0], [12.0], [30.0], [31.0]])
    targets = torch.tensor([-1, -1, 0, -1, -1, 0])  # 10 and 31 are one known intent
    found = breathing_kmeans(points, targets, 3, generator=seeded())
    assert found.labels[[2, 5]].tolist() == [0, 0]
    best = min(
        sum(
            sum((points[i, 0] - sum(points[j, 0] for j in g) / len(g)) ** 2 for i in g)
            for g in groups
        )
        for groups in partitions()
    )
    assert found.inertia == pytest.approx(float(best))


def partitions() -> list[list[list[int]]]:
    """Return all ways to put rows 0, 1, 3, 4 with rows 2 and 5 or into two further groups."""
    found = []
    for choice in itertools.product(range(3), repeat=4):
        groups: list[list[int]] = [[2, 5], [], []]
        for row, group in zip((0, 1, 3, 4), choice, strict=True):
            groups[group].append(row)
        if all(groups):
            found.append(groups)
    return found


def test_as_many_clusters_as_points_raise_no_alarm() -> None:
    points = torch.randn(12, 3, generator=seeded())
    with warnings.catch_warnings():
        warnings.simplefilter("error", RonidWarning)
        found = breathing_kmeans(points, torch.full((12,), -1), 12, generator=seeded())
    assert sorted(found.labels.tolist()) == list(range(12))
    assert found.inertia == pytest.approx(0, abs=1e-6)


def test_too_few_distinct_points_are_told() -> None:
    points = torch.tensor([[0.0], [1.0]]).repeat(10, 1)
    with pytest.warns(RonidWarning, match="too few distinct points"):
        found = breathing_kmeans(points, torch.full((20,), -1), 5, generator=seeded())
    assert found.inertia == 0


@pytest.mark.parametrize(
    ("targets", "k", "message"),
    [([0, 2, -1, -1], 4, r"\[1\] have no labelled"), ([-1] * 4, 9, "k is 9")],
)
def test_impossible_problems_are_refused(targets: list[int], k: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        breathing_kmeans(torch.randn(4, 2), torch.tensor(targets), k, generator=seeded())
