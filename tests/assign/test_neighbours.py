"""Nearest neighbours against a plain sort."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import normalize

from ronid.assign.neighbours import nearest_neighbours


def units(n: int, seed: int, d: int = 6) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return normalize(torch.randn(n, d, generator=generator, dtype=torch.float64), dim=1)


@given(n=st.integers(2, 25), count=st.integers(1, 30), seed=st.integers(0, 999))
def test_neighbours_equal_a_sort_of_each_row(n: int, count: int, seed: int) -> None:
    points = units(n, seed)
    found = nearest_neighbours(points, count)
    for i in range(n):
        others = [j for j in range(n) if j != i]
        others.sort(key=lambda j: -float(points[i] @ points[j]))
        assert found[i].tolist() == others[:count]


@given(n=st.integers(2, 25), count=st.integers(1, 30), seed=st.integers(0, 999))
def test_no_point_is_its_own_neighbour_nor_twice_another(n: int, count: int, seed: int) -> None:
    found = nearest_neighbours(units(n, seed), count)
    assert found.shape == (n, min(count, n - 1))
    for i, row in enumerate(found.tolist()):
        assert i not in row
        assert len(set(row)) == len(row)


@given(block=st.integers(1, 30), seed=st.integers(0, 999))
def test_blocks_do_not_matter(block: int, seed: int) -> None:
    points = units(23, seed)
    assert torch.equal(
        nearest_neighbours(points, 4, block_rows=block), nearest_neighbours(points, 4)
    )


def test_golden_neighbours() -> None:
    angles = torch.tensor([0.0, 0.1, 0.3, 2.0])
    points = torch.stack([angles.cos(), angles.sin()], dim=1)
    assert nearest_neighbours(points, 2).tolist() == [[1, 2], [0, 2], [1, 0], [2, 1]]


def test_equal_points_are_neighbours_of_each_other() -> None:
    points = units(1, 0).repeat(5, 1)
    found = nearest_neighbours(points, 4)
    assert all(sorted([i, *row]) == [0, 1, 2, 3, 4] for i, row in enumerate(found.tolist()))


@pytest.mark.parametrize("n", [0, 1])
def test_lonely_points_have_no_neighbours(n: int) -> None:
    assert nearest_neighbours(torch.zeros(n, 3), 5).shape == (n, 0)
