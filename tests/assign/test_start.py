"""Where prototypes start, by each kind of k-means."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from ronid.assign.breathing import breathing_kmeans
from ronid.assign.semisup_kmeans import semisup_kmeans
from ronid.assign.start import (
    known_kmeans,
    ordered_kmeans,
    start_prototypes,
)
from ronid.config import StartConfig
from ronid.types import Split

KINDS = ("kmeans", "semisup_kmeans", "density")
DENSITY = StartConfig("density", restarts=1)
CENTRES = torch.eye(16)[:12]


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def problem(known: int, per_blob: int = 12) -> tuple[Tensor, Split]:
    """Return unit vectors of 12 blobs, three rows labelled in each of the last `known`."""
    classes = np.arange(12).repeat(per_blob)
    noise = 0.08 * torch.randn(len(classes), 16, generator=seeded(1))
    points = normalize(CENTRES[torch.from_numpy(classes)] + noise, dim=1)
    shown = np.arange(len(classes)) % per_blob < 3
    targets = np.where(shown & (classes >= 12 - known), 11 - classes, -1)
    names = tuple(f"intent_{i}" for i in range(known))
    return points, Split([""] * len(classes), targets, names, 12)


def first_of(prototypes: str, restarts: int = 10) -> StartConfig:
    return StartConfig(prototypes, restarts)  # type: ignore[arg-type]


def started(
    points: Tensor, split: Split, config: StartConfig, generator: torch.Generator
) -> Tensor:
    return start_prototypes(points, split, config, generator)[0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("known", [0, 1, 5, 12])
def test_known_intents_come_first_and_every_blob_has_one(kind: str, known: int) -> None:
    points, split = problem(known, per_blob=30)
    check(started(points, split, first_of(kind), seeded()), known)


@pytest.mark.parametrize("known", [5, 12])
def test_one_label_names_a_blob_and_does_not_hold_its_prototype(known: int) -> None:
    points, split = problem(known)
    first = np.arange(len(split)) % 12 == 0
    sparse = replace(split, targets=np.where(first, split.targets, -1))
    rim = normalize(0.7 * CENTRES[0] + CENTRES[11], dim=0)
    moved = points.clone()
    moved[int(np.flatnonzero(sparse.targets == 0)[0])] = rim  # far from the others of its intent
    check(started(moved, sparse, DENSITY, seeded()), known)


@pytest.mark.parametrize("known", [0, 5, 12])
@pytest.mark.parametrize("seed", range(3))
def test_density_needs_one_restart_only(known: int, seed: int) -> None:
    points, split = problem(known, per_blob=30)
    check(started(points, split, DENSITY, seeded(seed)), known)


def check(found: Tensor, known: int) -> None:
    """Unit vectors, one at each blob, those of known intents in their order."""
    torch.testing.assert_close(found.norm(dim=1), torch.ones(12))
    nearest = (found @ CENTRES.T).argmax(dim=1).tolist()
    assert nearest[:known] == [11 - i for i in range(known)]
    assert sorted(nearest) == list(range(12))


def test_without_labels_density_is_k_means_over_all_rows() -> None:
    points, split = problem(0)
    unlabeled = torch.from_numpy(split.targets)
    plain = breathing_kmeans(points, unlabeled, 12, generator=seeded(2), n_init=1, breaths=7)
    config = StartConfig("density", restarts=1, breaths=7)
    found = started(points, split, config, seeded(2))
    torch.testing.assert_close(found, normalize(plain.centroids, dim=1))


def test_breaths_are_counted_as_the_settings_say(monkeypatch: pytest.MonkeyPatch) -> None:
    import ronid.assign.start as module

    asked: list[tuple[int, int]] = []

    def noted(*arguments: object, **settings: object) -> object:
        asked.append((settings["n_init"], settings["breaths"]))  # type: ignore[arg-type]
        return breathing_kmeans(*arguments, **settings)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "breathing_kmeans", noted)
    points, split = problem(2)
    started(points, split, StartConfig("density", restarts=2, breaths=3), seeded())
    assert asked == [(2, 3)]


@pytest.mark.parametrize("kind", KINDS)
def test_same_generator_same_start(kind: str) -> None:
    points, split = problem(5)
    config = first_of(kind, 2)
    one, two = (started(points, split, config, seeded(4)) for _ in range(2))
    assert torch.equal(one, two)


@pytest.mark.parametrize("kind", KINDS)
def test_more_new_intents_than_unlabelled_rows(kind: str) -> None:
    points, _ = problem(0, per_blob=2)
    targets = np.array([i // 2 for i in range(24)])
    targets[-1] = -1  # one row is free, two intents are new
    split = Split([""] * 24, targets, tuple(f"intent_{i}" for i in range(12)), 14)
    found = started(points, split, first_of(kind, 2), seeded())
    assert found.shape == (14, 16)
    assert torch.isfinite(found).all()


def test_copies_of_labeled_rows_leave_too_few_for_the_new_intents() -> None:
    points, _ = problem(0, per_blob=1)
    rows = [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 4]  # four labeled rows, copies of them, another one
    targets = np.where(np.arange(12) < 4, np.arange(12) // 2, -1)
    split = Split([""] * 12, targets, ("a", "b"), 5)
    found = started(points[rows], split, DENSITY, seeded())
    assert found.shape == (5, 16)
    assert torch.isfinite(found).all()


@pytest.mark.parametrize("kind", KINDS)
def test_all_rows_labelled_and_no_new_intent(kind: str) -> None:
    points, _ = problem(0, per_blob=2)
    targets = np.array([i // 2 for i in range(24)])
    split = Split([""] * 24, targets, tuple(f"intent_{i}" for i in range(12)), 12)
    found = started(points, split, first_of(kind), seeded())
    assert (found @ CENTRES.T).argmax(dim=1).tolist() == list(range(12))


class TestOdds:
    def test_rows_of_known_intents_are_known_and_the_others_new(self) -> None:
        points, split = problem(5, per_blob=30)
        _, odds = start_prototypes(points, split, DENSITY, seeded())
        known = np.arange(12).repeat(30) >= 7
        np.testing.assert_array_equal(odds.numpy() < 0, known)

    @pytest.mark.parametrize("kind", ["kmeans", "semisup_kmeans"])
    def test_other_starts_say_nothing(self, kind: str) -> None:
        points, split = problem(5)
        _, odds = start_prototypes(points, split, first_of(kind, 2), seeded())
        assert not odds.any()

    def test_without_labels_density_says_nothing(self) -> None:
        points, split = problem(0)
        _, odds = start_prototypes(points, split, DENSITY, seeded())
        assert not odds.any()


class TestKnownKMeans:
    def test_is_semi_supervised_where_intents_are_known(self) -> None:
        points, split = problem(5)
        targets = torch.from_numpy(split.targets)
        found = known_kmeans(points, split, generator=seeded(), n_init=3)
        expected = semisup_kmeans(points, targets, 12, generator=seeded(), n_init=3)
        assert torch.equal(found.centroids, expected.centroids)
        given = split.labelled
        assert np.array_equal(found.labels.numpy()[given], split.targets[given])

    def test_is_plain_where_none_is(self) -> None:
        points, split = problem(0)
        found = known_kmeans(points, split, generator=seeded(), n_init=3)
        expected = ordered_kmeans(points, split, generator=seeded(), n_init=3)
        assert torch.equal(found.centroids, expected.centroids)
