"""The class prior, moving or shrunk, and what it leaves for unlabelled rows."""

import statistics

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ronid.assign.prior import (
    shrunk_prior,
    uniform_prior,
    unlabelled_marginal,
    update_prior,
)


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


def rows_of(counts: list[int]) -> torch.Tensor:
    """Return predictions of which counts[j] are j."""
    return torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))


def naive_shrunk(counts: list[int], known: int, size_error: float, floor: float) -> list[float]:
    """Return the shrunk prior, one intent at a time."""
    shares = [count / sum(counts) for count in counts]
    seen = shares[:known] if known > 2 else shares
    spread = statistics.variance(seen) / statistics.mean(seen) ** 2 if len(seen) > 1 else 0.0
    belief = max(0.0, 1 - size_error**2 / spread) if spread else 0.0
    mixed = [max(floor, (1 - belief) / len(counts) + belief * share) for share in shares]
    return [value / sum(mixed) for value in mixed]


@given(
    counts=st.lists(st.integers(1, 400), min_size=1, max_size=12),
    known=st.integers(0, 12),
    size_error=st.sampled_from([0.05, 0.13, 0.5]),
)
def test_shrunk_prior_equals_a_loop_over_intents(
    counts: list[int], known: int, size_error: float
) -> None:
    known = min(known, len(counts))
    found = shrunk_prior(rows_of(counts), len(counts), known, size_error=size_error)
    np.testing.assert_allclose(
        found, naive_shrunk(counts, known, size_error, 1e-4), rtol=1e-7, atol=1e-9
    )


@given(
    predictions=st.lists(st.integers(0, 9), min_size=0, max_size=60),
    known=st.integers(0, 10),
    floor=st.sampled_from([1e-4, 1e-2]),
)
def test_shrunk_prior_is_a_distribution_that_keeps_every_intent(
    predictions: list[int], known: int, floor: float
) -> None:
    found = shrunk_prior(torch.tensor(predictions, dtype=torch.int64), 10, known, floor=floor)
    assert found.dtype == torch.float64
    assert float(found.sum()) == pytest.approx(1)
    assert float(found.min()) >= floor / (1 + 10 * floor)


def test_golden_shrunk_prior() -> None:
    # Shares 0.1 to 0.4. The three known have mean 0.2 and variance 0.01: a spread of 0.25.
    found = shrunk_prior(rows_of([2, 4, 6, 8]), 4, 3, size_error=0.1)
    belief = 1 - 0.1**2 / 0.25  # 0.96
    assert belief == pytest.approx(0.96)
    np.testing.assert_allclose(found, [0.106, 0.202, 0.298, 0.394])


def test_known_sizes_that_differ_little_give_equal_shares() -> None:
    counts = [100, 105, 95, 300, 20]  # new clusters may differ as they like: they may be wrong
    torch.testing.assert_close(shrunk_prior(rows_of(counts), 5, 3), uniform_prior(5))


def test_known_sizes_that_differ_much_give_the_predicted_shares() -> None:
    counts = [500, 100, 20, 300, 80]
    found = shrunk_prior(rows_of(counts), 5, 3)
    np.testing.assert_allclose(found, np.array(counts) / 1000, atol=0.005)


def test_belief_grows_with_the_spread_of_the_known() -> None:
    pulls = []
    for step in (0, 10, 20, 40, 80):
        found = shrunk_prior(rows_of([100 - step, 100, 100 + step, 40, 160]), 5, 3)
        pulls.append(float(found[4] - found[3]))
    assert pulls == sorted(pulls)
    assert pulls[0] == 0
    assert pulls[-1] > 0.2


@pytest.mark.parametrize("known", [0, 1, 2])
def test_fewer_than_three_known_intents_leave_the_judgement_to_all(known: int) -> None:
    equal, unequal = [50, 52, 49, 51], [10, 90, 40, 60]
    torch.testing.assert_close(shrunk_prior(rows_of(equal), 4, known), uniform_prior(4))
    found = shrunk_prior(rows_of(unequal), 4, known)
    np.testing.assert_allclose(found, np.array(unequal) / 200, atol=0.02)
    assert float(found[0]) > 0.05  # drawn a little towards 0.25


def test_an_intent_that_nothing_is_predicted_as_keeps_the_floor() -> None:
    found = shrunk_prior(rows_of([900, 50, 50, 0]), 4, 3, floor=0.01, size_error=0.0)
    np.testing.assert_allclose(found, np.array([0.9, 0.05, 0.05, 0.01]) / 1.01)


def test_no_row_predicted_as_known_is_no_evidence() -> None:
    torch.testing.assert_close(shrunk_prior(rows_of([0, 0, 0, 30, 10]), 5, 3), uniform_prior(5))


def test_a_single_intent_has_everything() -> None:
    assert shrunk_prior(rows_of([7]), 1, 1).tolist() == [1.0]
