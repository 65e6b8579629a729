"""Matching of centroids, against all permutations."""

from itertools import permutations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from ronid.assign.align import Metric, match, order_by_known


def cost(a: Tensor, b: Tensor, metric: Metric) -> Tensor:
    if metric == "euclidean":
        return torch.stack([torch.stack([(x - y).norm() for y in b]) for x in a])
    return torch.stack([torch.stack([1 - x @ y / x.norm() / y.norm() for y in b]) for x in a])


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_matching_is_the_best_of_all(metric: Metric) -> None:
    generator = torch.Generator().manual_seed(0)
    for _ in range(5):
        a, b = torch.randn(3, 4, generator=generator), torch.randn(5, 4, generator=generator)
        gaps = cost(a, b, metric)
        best = min(permutations(range(5), 3), key=lambda p: float(sum(gaps[range(3), list(p)])))
        assert match(a, b, metric).tolist() == list(best)


@given(seed=st.integers(0, 1000), k=st.integers(1, 12))
def test_a_shuffle_is_undone(seed: int, k: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    b = torch.randn(k, 6, generator=generator)
    shuffle = torch.randperm(k, generator=generator)
    assert match(b[shuffle], b).equal(shuffle)
    assert match(3 * b[shuffle], b, "cosine").equal(shuffle)


def test_known_centroids_come_first_and_the_rest_follow_in_order() -> None:
    centroids = torch.tensor([[0.0], [10.0], [20.0], [30.0]])
    ordered = order_by_known(centroids, torch.tensor([[29.0], [1.0]]))
    assert ordered[:, 0].tolist() == [30.0, 0.0, 10.0, 20.0]


def test_impossible_matchings_are_refused() -> None:
    with pytest.raises(ValueError, match="cannot match 3 vectors one to one with 2"):
        match(torch.zeros(3, 1), torch.zeros(2, 1))
    with pytest.raises(ValueError, match="metric is 'dot'"):
        match(torch.zeros(1, 1), torch.zeros(2, 1), "dot")  # type: ignore[arg-type]
