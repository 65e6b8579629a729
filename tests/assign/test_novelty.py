"""Label density: against loops over rows, and on blobs whose intents are known."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import normalize

from ronid.assign.novelty import (
    COSINE_POWER,
    N_NEIGHBORS,
    N_STEPS,
    NOVELTY_RATIO,
    STEP_SHARE,
    Novelty,
    find_novelty,
    label_mass,
    novelty_threshold,
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


def graph_by_loops(points: np.ndarray) -> np.ndarray:
    n = len(points)
    cosines = points @ points.T
    weights = np.zeros((n, n))
    for i in range(n):
        others = [j for j in np.argsort(-cosines[i]) if j != i][:N_NEIGHBORS]
        for j in others:
            weights[i, j] = weights[j, i] = max(cosines[i, j], 0) ** COSINE_POWER
    degrees = weights.sum(1)
    return weights / np.sqrt(degrees[:, None] * degrees[None, :])


def test_graph_equals_a_loop_over_rows() -> None:
    points, _ = blobs([20, 15, 10])
    found = walk_graph(points.double())
    np.testing.assert_allclose(found.toarray(), graph_by_loops(points.double().numpy()), atol=1e-12)


def test_graph_is_symmetric_and_never_adds_mass() -> None:
    points, _ = blobs([30, 30], noise=0.4)
    graph = walk_graph(points).toarray()
    np.testing.assert_allclose(graph, graph.T)
    assert np.abs(np.linalg.eigvalsh(graph)).max() <= 1 + 1e-9


def test_row_without_similar_rows_has_no_density_and_is_novel() -> None:
    points, classes = blobs([20, 20])
    alone = torch.zeros(1, 24)
    alone[0, :2] = -(0.5**0.5)  # away from both blobs: no positive cosine
    found = find_novelty(
        torch.cat([points.abs(), alone]), np.append(label_every(classes, 2, 5), -1), 2
    )
    assert found.density[-1] == 0
    assert found.novel[-1]
    assert np.isfinite(found.density[:-1][label_every(classes, 2, 5) < 0]).all()


def test_mass_equals_the_sum_over_walks() -> None:
    points, classes = blobs([12, 12, 12])
    graph = walk_graph(points)
    targets = label_every(classes, 2, 4)
    mass, total = label_mass(graph, targets, 2)
    # naive reference: the sum of all walks of a length, each with its weight
    dense = graph.toarray()
    walks = sum(
        (1 - STEP_SHARE) * STEP_SHARE**t * np.linalg.matrix_power(dense, t) for t in range(N_STEPS)
    ) + STEP_SHARE**N_STEPS * np.linalg.matrix_power(dense, N_STEPS)
    for intent in range(2):
        np.testing.assert_allclose(mass[:, intent], walks[:, targets == intent].sum(1), atol=1e-10)
    np.testing.assert_allclose(total, walks.sum(1), atol=1e-10)


def test_density_is_the_labeled_share_if_all_rows_are_alike() -> None:
    points = torch.ones(16, 3) / 3**0.5  # 15 neighbors: every row knows every other
    targets = np.where(np.arange(16) < 4, 0, -1)
    graph = walk_graph(points)
    mass, total = label_mass(graph, targets, 1)
    assert (mass.sum() / total.sum()) == pytest.approx(4 / 16)


@pytest.mark.parametrize("sizes", [[60] * 6, [200, 60, 30, 90, 40, 25]])
def test_blobs_without_labels_are_novel(sizes: list[int]) -> None:
    points, classes = blobs(sizes)
    targets = label_every(classes, 4, 10)
    found = find_novelty(points, targets, 4)
    unlabeled = targets < 0
    assert (found.novel == (classes >= 4))[unlabeled].mean() > 0.99
    known = classes < 4
    assert (found.nearest == classes)[known].mean() > 0.99


def test_novel_rows_do_not_depend_on_the_order_of_rows() -> None:
    points, classes = blobs([50, 40, 30, 30], noise=0.3)
    targets = label_every(classes, 2, 5)
    order = np.random.default_rng(0).permutation(len(classes))
    found = find_novelty(points, targets, 2)
    moved = find_novelty(points[torch.from_numpy(order)], targets[order], 2)
    np.testing.assert_array_equal(moved.novel, found.novel[order])


def test_all_rows_are_novel_without_labels_and_none_if_all_are_labeled() -> None:
    points, classes = blobs([10, 10])
    assert find_novelty(points, np.full(20, -1), 0).novel.all()
    assert not find_novelty(points, classes, 2).novel.any()


def test_number_of_intents_follows_from_the_share_of_novel_rows() -> None:
    novel = np.arange(100) < 25
    found = Novelty(np.ones(100), np.zeros(100, np.int64), novel)
    assert found.n_intents(12) == 16  # 25 rows for 75 of 12 intents


def test_least_dense_rows_fill_up_a_mask_that_is_too_small() -> None:
    density = np.array([np.inf, 0.4, 0.1, 0.3, 0.2])
    found = Novelty(density, np.zeros(5, np.int64), density < 0.15)
    assert found.least_dense(1).tolist() == [False, False, True, False, False]
    assert found.least_dense(3).tolist() == [False, False, True, True, True]
    assert not found.least_dense(5)[0]  # a labeled row is never novel


@given(st.lists(st.floats(0, 1), min_size=1, max_size=50))
def test_threshold_is_the_share_of_the_mean_above_it(values: list[float]) -> None:
    density = np.array(values)
    threshold = novelty_threshold(density)
    above = density[density >= threshold]
    assert threshold == pytest.approx(NOVELTY_RATIO * above.mean(), rel=1e-6, abs=1e-12)


def test_threshold_lies_between_two_groups() -> None:
    density = np.array([0.01] * 30 + [0.09] * 40 + [0.11] * 40)
    assert novelty_threshold(density) == pytest.approx(NOVELTY_RATIO * 0.1)
