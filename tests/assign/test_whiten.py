"""Whitened principal components, against a singular value decomposition."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import normalize

from ronid.assign.whiten import whitened


def stretched(n: int, d: int, seed: int) -> Tensor:
    """Points whose axes differ in variance, turned and far from the origin."""
    generator = torch.Generator().manual_seed(seed)
    points = torch.randn(n, d, generator=generator, dtype=torch.float64)
    turn = torch.linalg.qr(torch.randn(d, d, generator=generator, dtype=torch.float64)).Q
    return points * 2.0 ** -torch.arange(d) @ turn + 5


def naive(points: Tensor, dims: int) -> Tensor:
    centred = points - points.mean(dim=0)
    left, _, _ = torch.linalg.svd(centred, full_matrices=False)
    return normalize(left[:, :dims], dim=1)  # the left vectors are the whitened components


@settings(max_examples=30, deadline=None)
@given(n=st.integers(8, 40), d=st.integers(1, 6), dims=st.integers(1, 9), seed=st.integers(0, 999))
def test_all_cosines_are_those_of_the_decomposition(n: int, d: int, dims: int, seed: int) -> None:
    points = stretched(n, d, seed)
    found, expected = whitened(points, dims), naive(points, dims)
    assert found.shape == expected.shape
    # Axes may be mirrored; products of points are not.
    torch.testing.assert_close(found @ found.T, expected @ expected.T, atol=1e-6, rtol=0)
    torch.testing.assert_close(found.norm(dim=1), torch.ones(n, dtype=torch.float64))


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 999), factor=st.floats(0.01, 100), shift=st.floats(-10, 10))
def test_scale_and_place_do_not_matter(seed: int, factor: float, shift: float) -> None:
    points = stretched(30, 4, seed)
    one, two = whitened(points, 3), whitened(factor * points + shift, 3)
    torch.testing.assert_close(one @ one.T, two @ two.T, atol=1e-6, rtol=0)


def test_golden_values() -> None:
    # Variances 8 and 1/2: whitening makes the four corners of a long box those of a square.
    points = torch.tensor([[4.0, 1.0], [4.0, -1.0], [-4.0, 1.0], [-4.0, -1.0]])
    half = 0.5**0.5
    torch.testing.assert_close(whitened(points, 2).abs(), torch.full((4, 2), half))
    assert whitened(points, 1).abs().tolist() == [[1.0]] * 4


def test_no_more_components_than_the_points_span() -> None:
    flat = torch.randn(50, 2, generator=torch.Generator().manual_seed(0))
    points = flat @ torch.randn(2, 9, generator=torch.Generator().manual_seed(1))
    assert whitened(points, 9).shape == (50, 2)
    few = torch.randn(4, 9, generator=torch.Generator().manual_seed(2))
    assert whitened(few, 9).shape == (4, 3)


@pytest.mark.parametrize("n", [1, 5])
def test_equal_points_become_zeros(n: int) -> None:
    found = whitened(torch.full((n, 3), 0.7), 2)
    assert found.isfinite().all()
    assert (found == 0).all()


def test_kind_of_number_stays() -> None:
    assert whitened(stretched(9, 3, 0).float(), 2).dtype == torch.float32


def test_impossible_requests_are_refused() -> None:
    with pytest.raises(ValueError, match="dims is 0"):
        whitened(torch.zeros(3, 2), 0)
    with pytest.raises(ValueError, match="NaN"):
        whitened(torch.full((3, 2), torch.nan), 1)
