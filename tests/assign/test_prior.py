"""The moving class prior and what it leaves for unlabelled rows."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ronid.assign.prior import uniform_prior, unlabelled_marginal, update_prior


def test_uniform_prior_is_even() -> None:
    torch.testing.assert_close(uniform_prior(4), torch.full((4,), 0.25, dtype=torch.float64))


def test_a_prior_needs_an_intent() -> None:
    with pytest.raises(ValueError, match="at least one"):
        uniform_prior(0)


def test_update_equals_a_loop_over_rows() -> None:
    prior = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
    predictions = [0, 0, 1, 0, 2, 0, 0, 1]
    expected = []
    for j in range(3):
        share = sum(1 for p in predictions if p == j) / len(predictions)
        expected.append(0.9 * float(prior[j]) + 0.1 * share)
    moved = update_prior(prior, torch.tensor(predictions), momentum=0.9)
    np.testing.assert_allclose(moved, expected)


def test_golden_update() -> None:
    moved = update_prior(uniform_prior(2), torch.tensor([0, 0, 0, 1]), momentum=0.95)
    np.testing.assert_allclose(moved, [0.5125, 0.4875])


@given(
    predictions=st.lists(st.integers(0, 5), min_size=1, max_size=50),
    momentum=st.floats(0, 1),
    floor=st.sampled_from([1e-4, 1e-2]),
)
def test_updated_prior_sums_to_one_and_keeps_every_intent(
    predictions: list[int], momentum: float, floor: float
) -> None:
    moved = update_prior(uniform_prior(6), torch.tensor(predictions), momentum, floor)
    assert float(moved.sum()) == pytest.approx(1)
    assert float(moved.min()) >= floor / (1 + 6 * floor)


def test_momentum_one_keeps_and_zero_forgets() -> None:
    prior = torch.tensor([0.25, 0.75], dtype=torch.float64)
    predictions = torch.tensor([0, 0, 0, 1, 1])
    torch.testing.assert_close(update_prior(prior, predictions, momentum=1), prior)
    np.testing.assert_allclose(update_prior(prior, predictions, momentum=0), [0.6, 0.4])


@pytest.mark.parametrize(
    ("predictions", "momentum", "message"),
    [([], 0.9, "no predictions"), ([2], 0.9, "0..1"), ([-1], 0.9, "0..1"), ([0], 1.5, "momentum")],
)
def test_impossible_updates_are_refused(
    predictions: list[int], momentum: float, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        update_prior(uniform_prior(2), torch.tensor(predictions, dtype=torch.int64), momentum)


def test_marginal_subtracts_labelled_rows() -> None:
    prior = torch.tensor([0.4, 0.4, 0.2], dtype=torch.float64)
    marginal = unlabelled_marginal(prior, torch.tensor([10, 20, 0]), n=100)
    np.testing.assert_allclose(marginal, np.array([30, 20, 20]) / 70)


def test_an_intent_labelled_beyond_its_share_keeps_a_trace() -> None:
    marginal = unlabelled_marginal(uniform_prior(2), torch.tensor([60, 0]), n=100, epsilon=0.5)
    np.testing.assert_allclose(marginal, np.array([0.5, 50]) / 50.5)


@given(counts=st.lists(st.integers(0, 20), min_size=3, max_size=3), extra=st.integers(0, 50))
def test_marginal_is_a_distribution(counts: list[int], extra: int) -> None:
    marginal = unlabelled_marginal(uniform_prior(3), torch.tensor(counts), sum(counts) + extra)
    assert float(marginal.sum()) == pytest.approx(1)
    assert (marginal > 0).all()


def test_impossible_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="count of 0"):
        unlabelled_marginal(uniform_prior(3), torch.tensor([1, 2]), n=10)
    with pytest.raises(ValueError, match="12 rows"):
        unlabelled_marginal(uniform_prior(2), torch.tensor([6, 6]), n=10)
