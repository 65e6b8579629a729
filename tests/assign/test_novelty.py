"""Label density: against loops over rows, and on blobs whose intents are known."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import normalize

from ronid.assign.novelty import (
    COSINE_POWER,
    MAX_STEPS,
    MIN_PROBABILITY,
    MIN_STEPS,
    NOVEL_BELOW,
    Novelty,
    count_neighbors,
    distinct_rows,
    find_novelty,
    known_density,
    relative_density,
    walk,
    walk_graph,
)


def blobs(sizes: list[int], seed: int = 0, noise: float = 0.15) -> tuple[torch.Tensor, np.ndarray]:
    """Return unit vectors around orthogonal centers, and their classes."""
    generator = torch.Generator().manual_seed(seed)
    classes = np.repeat(np.arange(len(sizes)), sizes)
    centers = torch.eye(24)[: len(sizes)]
    spread = noise * torch.randn(len(classes), 24, generator=generator)
    return normalize(centers[torch.from_numpy(classes)] + spread, dim=1), classes


def label_every(classes: np.ndarray, known: int, step: int) -> np.ndarray:
    """Label every `step`-th row of the first `known` classes."""
    shown = np.arange(len(classes)) % step == 0
    return np.where(shown & (classes < known), classes, -1)


def found_in(points: torch.Tensor, targets: np.ndarray, known: int) -> Novelty:
    found = find_novelty(points, targets, known)
    assert found is not None
    return found


def graph_by_loops(points: np.ndarray) -> np.ndarray:
    n = len(points)
    cosines = points @ points.T
    weights = np.zeros((n, n))
    for i in range(n):
        others = [j for j in np.argsort(-cosines[i]) if j != i]
        for j in others[: count_neighbors(n)]:
            weights[i, j] = weights[j, i] = max(cosines[i, j], 0) ** COSINE_POWER
    degrees = weights.sum(1)
    return weights / np.sqrt(degrees[:, None] * degrees[None, :])


def test_graph_equals_a_loop_over_rows() -> None:
    points, _ = blobs([20, 15, 10])
    found = walk_graph(points.double())
    np.testing.assert_allclose(found.toarray(), graph_by_loops(points.double().numpy()), atol=1e-12)


def test_neighbors_grow_with_the_root_of_the_rows_within_limits() -> None:
    found = [count_neighbors(n) for n in (2, 16, 100, 400, 1600, 3600, 100_000)]
    assert found == [1, 4, 5, 5, 10, 15, 15]


def test_graph_is_symmetric_and_never_adds_mass() -> None:
    points, _ = blobs([30, 30], noise=0.4)
    graph = walk_graph(points).toarray()
    np.testing.assert_allclose(graph, graph.T)
    assert np.abs(np.linalg.eigvalsh(graph)).max() <= 1 + 1e-9


def test_row_without_similar_rows_has_no_density_and_is_novel() -> None:
    points, classes = blobs([20, 20])
    alone = torch.zeros(1, 24)
    alone[0, :2] = -(0.5**0.5)  # away from both blobs: no positive cosine
    targets = np.append(label_every(classes, 2, 5), -1)
    found = found_in(torch.cat([points.abs(), alone]), targets, 2)
    assert found.relative_density[-1] == 0
    assert found.novel[-1]
    assert np.isfinite(found.relative_density[:-1][label_every(classes, 2, 5) < 0]).all()


def test_walk_equals_the_sum_over_all_lengths() -> None:
    points, classes = blobs([12, 12, 12])
    graph = walk_graph(points)
    starts = np.eye(3)[classes]
    found = walk(graph, starts, 5)
    # naive reference: the sum of all walks of a length, each with its weight
    dense = graph.toarray()
    walks = sum(0.2 * 0.8**t * np.linalg.matrix_power(dense, t) for t in range(15))
    walks += 0.8**15 * np.linalg.matrix_power(dense, 15)
    np.testing.assert_allclose(found, walks @ starts, atol=1e-10)


@pytest.mark.parametrize(
    ("every", "low", "high"), [(1, 2, 2), (3, 4, 5), (10, 10, 10), (20, 15, 17), (200, 30, 30)]
)
def test_the_fewer_rows_are_labeled_the_longer_is_the_walk(every: int, low: int, high: int) -> None:
    points, classes = blobs([200] * 6)
    labeled = label_every(classes, 4, every) >= 0
    _, steps = relative_density(walk_graph(points), labeled)
    assert MIN_STEPS <= low <= steps <= high <= MAX_STEPS


@pytest.mark.parametrize("labels", [2, 3, 5])
def test_few_labels_find_new_intents_of_similar_size(labels: int) -> None:
    points, classes = blobs([80, 60, 50, 60, 40], noise=0.2)
    first = np.searchsorted(classes, np.arange(3))
    targets = np.full(len(classes), -1)
    for intent in range(3):
        targets[first[intent] : first[intent] + labels] = intent
    found = found_in(points, targets, 3)
    unlabeled = targets < 0
    assert (found.novel == (classes >= 3))[unlabeled].mean() > 0.9


@pytest.mark.parametrize("sizes", [[60] * 6, [200, 60, 30, 90, 40, 25]])
def test_blobs_without_labels_are_novel(sizes: list[int]) -> None:
    points, classes = blobs(sizes)
    targets = label_every(classes, 4, 10)
    found = found_in(points, targets, 4)
    unlabeled = targets < 0
    assert (found.novel == (classes >= 4))[unlabeled].mean() > 0.99
    known = classes < 4
    assert (found.nearest == classes)[known].mean() > 0.99


def test_novel_rows_do_not_depend_on_the_order_of_rows() -> None:
    points, classes = blobs([50, 40, 30, 30], noise=0.3)
    targets = label_every(classes, 2, 5)
    order = np.random.default_rng(0).permutation(len(classes))
    found = found_in(points, targets, 2)
    moved = found_in(points[torch.from_numpy(order)], targets[order], 2)
    np.testing.assert_array_equal(moved.novel, found.novel[order])


def test_no_row_is_novel_if_all_are_labeled() -> None:
    points, classes = blobs([10, 10])
    assert not found_in(points, classes, 2).novel.any()


@pytest.mark.parametrize(("labels", "told"), [(0, False), (3, False), (4, True)])
def test_fewer_than_two_labels_per_intent_say_nothing(labels: int, told: bool) -> None:
    points, classes = blobs([10, 10])
    targets = np.full(20, -1)
    rows = [0, 10, 1, 11][:labels]
    targets[rows] = classes[rows]
    assert (find_novelty(points, targets, 2) is not None) is told


def test_number_of_intents_follows_from_the_share_of_novel_rows() -> None:
    relative = np.where(np.arange(100) < 25, 0.1, 1.0)
    found = Novelty(relative, np.zeros(100, np.int64))
    assert found.n_intents(12) == 16  # 25 rows for 75 of 12 intents


def test_least_dense_rows_fill_up_a_mask_that_is_too_small() -> None:
    found = Novelty(np.array([np.inf, 0.9, 0.1, 0.7, 0.6]), np.zeros(5, np.int64))
    assert found.least_dense(1).tolist() == [False, False, True, False, False]
    assert found.least_dense(3).tolist() == [False, False, True, True, True]
    assert not found.least_dense(5)[0]  # a labeled row is never novel


@given(st.lists(st.floats(0, 1), min_size=1, max_size=50))
def test_known_density_is_the_mean_of_the_rows_above_its_half(values: list[float]) -> None:
    density = np.array(values)
    level = known_density(density)
    above = density[density >= NOVEL_BELOW * level]
    assert level > 0
    if density.any():
        assert level == pytest.approx(above.mean(), rel=1e-6)


def test_known_density_leaves_out_a_group_of_novel_rows() -> None:
    density = np.array([0.01] * 30 + [0.09] * 40 + [0.11] * 40)
    assert known_density(density) == pytest.approx(0.1)


@given(st.lists(st.floats(0, 5), min_size=1, max_size=50))
def test_log_odds_fall_with_the_density_and_change_sign_where_rows_become_novel(
    values: list[float],
) -> None:
    relative = np.array([*sorted(values), np.inf])
    found = Novelty(relative, np.zeros(len(relative), np.int64))
    odds = found.log_odds()
    assert (np.diff(odds) <= 0).all()
    np.testing.assert_array_equal(odds > 0, found.novel)
    limit = np.log((1 - MIN_PROBABILITY) / MIN_PROBABILITY)
    assert np.abs(odds).max() <= limit + 1e-12
    assert odds[-1] == pytest.approx(-limit)


def test_log_odds_are_those_of_the_share_of_known_rows() -> None:
    found = Novelty(np.array([0.25, 0.5, 0.75]), np.zeros(3, np.int64))
    np.testing.assert_allclose(found.log_odds(), [np.log(3), 0, -np.log(3)], atol=1e-12)


class TestRepeatedRows:
    def test_many_copies_of_an_utterance_are_as_known_as_one(self) -> None:
        points, classes = blobs([60] * 6, noise=0.2)
        targets = label_every(classes, 4, 10)
        copies = np.where(np.arange(len(classes)) % 7 == 1, 40, 1)
        rows = np.repeat(np.arange(len(classes)), copies)
        noise = 1e-6 * torch.randn(len(rows), 24, generator=torch.Generator().manual_seed(1))
        repeated = normalize(points[torch.from_numpy(rows)] + noise, dim=1)
        found = found_in(repeated, targets[rows], 4)
        once = found_in(points, targets, 4)
        np.testing.assert_allclose(found.relative_density, once.relative_density[rows], rtol=0.2)
        np.testing.assert_array_equal(found.novel, once.novel[rows])

    def test_a_copy_of_a_labeled_utterance_is_known(self) -> None:
        points, classes = blobs([20, 20, 20])
        targets = label_every(classes, 2, 5)
        again = torch.cat([points, points[:1]])
        found = found_in(again, np.append(targets, -1), 2)
        assert found.relative_density[-1] == np.inf
        assert found.nearest[-1] == 0

    @given(st.lists(st.integers(0, 5), min_size=1, max_size=40))
    def test_rows_of_one_group_are_equal_and_others_differ(self, which: list[int]) -> None:
        points = torch.eye(6)[which]
        group = distinct_rows(points)
        assert len(set(group)) == len(set(which))
        assert len({(g, w) for g, w in zip(group, which, strict=True)}) == len(set(which))
