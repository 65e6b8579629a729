"""How cleanly a neighbour graph falls into parts."""

import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from ronid.assign.cuts import separability


def blobs(parts: int, each: int, spread: float, seed: int = 0) -> Tensor:
    """Unit vectors around so many axes."""
    generator = torch.Generator().manual_seed(seed)
    centres = torch.eye(16)[:parts].repeat_interleave(each, dim=0)
    return normalize(centres + spread * torch.randn(parts * each, 16, generator=generator), dim=1)


def test_parts_with_nothing_between_them_are_fully_separable() -> None:
    assert separability(blobs(4, 20, 0.01), 4, 5) == pytest.approx(1, abs=1e-5)


def test_more_parts_than_there_are_cost_something() -> None:
    points = blobs(4, 20, 0.01)
    assert separability(points, 8, 5) < separability(points, 4, 5)


@pytest.mark.parametrize("seed", range(3))
def test_wider_parts_are_less_separable(seed: int) -> None:
    found = [separability(blobs(4, 20, spread, seed), 4, 5) for spread in (0.01, 0.4, 2.0)]
    assert found == sorted(found, reverse=True)
    assert found[0] > found[2] + 0.05


def test_it_is_what_dense_linear_algebra_says() -> None:
    points = blobs(3, 6, 0.5)
    similar = points @ points.T - 2 * torch.eye(18)
    graph = torch.zeros(18, 18)
    for row in range(18):
        graph[row, similar[row].argsort(descending=True)[:4]] = 1
    graph = ((graph + graph.T) > 0).double()
    degree = graph.sum(1)
    walk = graph / degree[:, None]  # similar to the normalised adjacency: the same eigenvalues
    expected = torch.linalg.eigvals(walk).real.sort().values[-3:].mean()
    assert separability(points, 3, 4) == pytest.approx(float(expected), abs=1e-5)


def test_more_parts_than_points_take_all_eigenvalues() -> None:
    assert separability(blobs(2, 3, 0.1), 50, 2) <= 1
