"""Whitened principal components, against a singular value decomposition."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import normalize

from ronid.assign.whiten import whitened, within_whitened


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


@given(n=st.integers(8, 40), d=st.integers(1, 6), dims=st.integers(1, 9), seed=st.integers(0, 999))
def test_all_cosines_are_those_of_the_decomposition(n: int, d: int, dims: int, seed: int) -> None:
    points = stretched(n, d, seed)
    found, expected = whitened(points, dims), naive(points, dims)
    assert found.shape == expected.shape
    # Axes may be mirrored; products of points are not.
    torch.testing.assert_close(found @ found.T, expected @ expected.T, atol=1e-6, rtol=0)
    torch.testing.assert_close(found.norm(dim=1), torch.ones(n, dtype=torch.float64))


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


def labelled_points(seed: int, per: int = 30, known: int = 4, d: int = 5) -> tuple[Tensor, Tensor]:
    """Known intents that differ along the last axis and vary within along the first."""
    generator = torch.Generator().manual_seed(seed)
    targets = torch.arange(known).repeat_interleave(per)
    points = 0.1 * torch.randn(known * per, d, generator=generator, dtype=torch.float64)
    points[:, 0] += 3 * torch.randn(known * per, generator=generator, dtype=torch.float64)
    points[:, -1] += targets
    return points, targets


def naive_within(points: Tensor, targets: Tensor, shrinkage: float) -> Tensor:
    d = points.shape[1]
    scatter = torch.zeros(d, d, dtype=torch.float64)
    seen, intents = 0, 0
    for intent in set(targets[targets >= 0].tolist()):
        own = points[targets == intent]
        for point in own:
            offset = point - own.mean(dim=0)
            scatter += torch.outer(offset, offset)
        seen, intents = seen + len(own), intents + 1
    covariance = scatter / (seen - intents)
    even = shrinkage * (1 + d / (seen - intents)) * covariance.trace() / d
    covariance = covariance + even * torch.eye(d, dtype=torch.float64)
    # Cosines under the inverse covariance are those of whitened points.
    centred = points - points.mean(dim=0)
    products = centred @ torch.linalg.inv(covariance) @ centred.T
    lengths = products.diagonal().sqrt()
    return products / lengths[:, None] / lengths


@given(seed=st.integers(0, 999), shrinkage=st.floats(0.05, 5), hidden=st.floats(0, 0.9))
def test_cosines_are_those_under_the_inverse_covariance(
    seed: int, shrinkage: float, hidden: float
) -> None:
    points, targets = labelled_points(seed)
    generator = torch.Generator().manual_seed(seed)
    targets[torch.rand(len(targets), generator=generator) < hidden] = -1
    if (targets >= 0).sum() - len(targets[targets >= 0].unique()) < 1:
        return
    found = within_whitened(points, targets, shrinkage)
    torch.testing.assert_close(found @ found.T, naive_within(points, targets, shrinkage))


def test_what_varies_within_intents_counts_for_less() -> None:
    points, targets = labelled_points(0)
    same = targets[:, None] == targets
    plain = normalize(points - points.mean(dim=0), dim=1)
    told = within_whitened(points, targets, 0.1)

    def gap(unit: Tensor) -> float:
        cosines = unit @ unit.T
        return float(cosines[same].mean() - cosines[~same].mean())

    assert gap(told) > 2 * gap(plain)


@pytest.mark.parametrize("label", [-1, 0])
def test_labels_that_show_no_difference_change_nothing(label: int) -> None:
    points = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
    targets = torch.full((6,), -1)
    targets[2] = label  # one utterance alone does not vary
    torch.testing.assert_close(within_whitened(points, targets), normalize(points, dim=1))


def test_without_shrinkage_it_is_refused() -> None:
    with pytest.raises(ValueError, match="shrinkage is 0"):
        within_whitened(torch.eye(3), torch.zeros(3, dtype=torch.long), 0)


def test_golden_values_of_the_discount() -> None:
    # Within the intent the first axis varies by 2 and the second not; shrunk by (1 + 2 / 1) * 1.
    points = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [3.0, 4.0], [-3.0, -4.0]], dtype=torch.float64)
    targets = torch.tensor([0, 0, -1, -1])
    found = within_whitened(points, targets, 1.0)
    expected = normalize(points * torch.tensor([5.0, 3.0]).double().rsqrt(), dim=1)
    torch.testing.assert_close(found, expected)
