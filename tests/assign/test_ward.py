"""Ward's tree against SciPy, which knows no weights, and against copies, which stand for them."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.metrics import adjusted_rand_score

from ronid.assign.ward import grains, ward_tree

SEEDS = st.integers(0, 999)


def points_of(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, 3)).astype(np.float32)


@given(n=st.integers(2, 40), seed=SEEDS)
def test_heights_and_cuts_are_those_of_scipy(n: int, seed: int) -> None:
    points = points_of(n, seed)
    tree, found = ward_tree(points, np.ones(n)), linkage(points.astype(np.float64), "ward")
    # SciPy's height is the square root of twice the growth of the squared error.
    np.testing.assert_allclose(tree.heights, found[:, 2] ** 2 / 2, rtol=1e-6, atol=1e-9)
    for k in {1, 2, n // 2 or 1, n}:
        other = fcluster(found, k, "maxclust")
        assert adjusted_rand_score(tree.cut(k), other) == pytest.approx(1)


@given(n=st.integers(2, 15), seed=SEEDS)
def test_a_weight_stands_for_copies(n: int, seed: int) -> None:
    points = points_of(n, seed)
    weights = np.random.default_rng(seed).integers(1, 5, n)
    copies = np.repeat(points, weights, axis=0)
    light, heavy = ward_tree(points, weights.astype(float)), ward_tree(copies, np.ones(len(copies)))
    np.testing.assert_allclose(heavy.heights[-(n - 1) :], light.heights, rtol=1e-5, atol=1e-9)


@given(n=st.integers(1, 30), seed=SEEDS, k=st.integers(1, 30))
def test_a_cut_leaves_k_clusters_and_heights_never_fall(n: int, seed: int, k: int) -> None:
    tree = ward_tree(points_of(n, seed), np.ones(n))
    assert (np.diff(tree.heights) >= 0).all()
    assert set(tree.cut(min(k, n))) == set(range(min(k, n)))


def test_golden_joins() -> None:
    # 0 and 1 first: 1 * 1 / 2 * 1; then 4 and their middle 0.5: 2 * 1 / 3 * 3.5 ** 2.
    tree = ward_tree(np.array([[0.0], [1.0], [4.0]], np.float32), np.ones(3))
    np.testing.assert_allclose(tree.heights, [0.5, 2 / 3 * 3.5**2])
    assert tree.cut(2).tolist() == [0, 0, 1] or tree.cut(2).tolist() == [1, 1, 0]


def test_equal_points_join_for_nothing() -> None:
    tree = ward_tree(np.zeros((5, 2), np.float32), np.ones(5))
    assert tree.heights.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("m", [1, 7, 50, 500])
def test_grains_hold_every_row_once_at_its_nearest_centre(m: int) -> None:
    rows = torch.from_numpy(points_of(200, 0))
    found = grains(rows, m, generator=torch.Generator().manual_seed(0))
    assert found.weights.sum() == 200
    assert (np.bincount(found.labels) == found.weights).all()
    for group in range(len(found.centres)):
        mean = rows[found.labels == group].mean(0).numpy()
        np.testing.assert_allclose(found.centres[group], mean, atol=1e-5)
    assert len(found.centres) <= m


def test_grains_of_equal_rows_are_one() -> None:
    found = grains(torch.ones(30, 2), 10, generator=torch.Generator().manual_seed(0))
    assert len(found.centres) == 1
