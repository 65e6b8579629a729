"""The number of intents: found where clusters are clear, within bounds where they are not."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import normalize

from ronid.assign import count
from ronid.assign.count import (
    SHARE_ERROR,
    SHARPNESS,
    TAIL,
    Expected,
    count_beside_known,
    count_by_size,
    count_by_tree,
    count_leftover,
    rises,
    weigh,
)
from ronid.assign.novelty import Novelty

SEEDS = st.integers(0, 999)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def clusters(sizes: list[int], spread: float = 0.1, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Unit vectors around as many random directions, and whose they are."""
    generator = seeded(seed)
    owner = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    centres = normalize(torch.randn(len(sizes), 32, generator=generator), dim=1)
    noise = spread * torch.randn(len(owner), 32, generator=generator)
    return normalize(centres[owner] + noise, dim=1), owner


def expected_of(k: int, known: int) -> Expected | None:
    """Return what the share of new rows says if all intents are equally large."""
    return Expected(k, SHARE_ERROR * k / known) if known else None


@pytest.mark.parametrize("k", [3, 12, 40])
@pytest.mark.parametrize("known", [0, 2])
def test_clear_clusters_are_counted(k: int, known: int) -> None:
    rows, _ = clusters([30] * k, seed=k)
    found = count_by_tree(rows, known, expected=expected_of(k, known), generator=seeded())
    assert found.k == k
    assert found.low <= k <= found.high


@pytest.mark.parametrize("wrong", [8, 18])
def test_clear_clusters_outweigh_a_wrong_expectation(wrong: int) -> None:
    rows, _ = clusters([30] * 12)
    found = count_by_tree(rows, 4, expected=Expected(wrong, 0.3), generator=seeded())
    assert found.k == 12


@pytest.mark.parametrize(
    ("k", "known", "low", "high"), [(40, 0, 26, 54), (12, 11, 11, 14), (3, 0, 2, 4)]
)
def test_bounds_leave_some_doubt_but_know_of_all_known(
    k: int, known: int, low: int, high: int
) -> None:
    rows, _ = clusters([30] * k, seed=k)
    found = count_by_tree(rows, known, expected=expected_of(k, known), generator=seeded())
    assert found.k == k
    assert known <= found.low <= low
    assert found.high >= high


def test_large_data_is_counted_over_grains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(count, "GRAINS", 150)
    rows, _ = clusters([100] * 10)
    rows[1:40] = rows[0]  # groups differ in number from draw to draw
    found = count_by_tree(rows, 6, expected=expected_of(10, 6), generator=seeded())
    assert abs(found.k - 10) <= 1


def test_small_and_large_clusters_are_both_counted() -> None:
    rows, _ = clusters([200, 100, 60, 40, 30, 20, 15, 15], spread=0.05)
    found = count_by_tree(rows, 4, expected=expected_of(8, 4), generator=seeded())
    assert abs(found.k - 8) <= 1


def test_equal_rows_do_not_look_like_intents_of_their_own() -> None:
    rows, _ = clusters([10] * 6, spread=0.15)
    copies = rows.repeat(4, 1)
    found = count_by_tree(copies, 0, generator=seeded())
    assert found.k == 6


def test_expectation_decides_between_two_grains() -> None:
    # Six tight groups in three pairs: both numbers are possible.
    generator = seeded(1)
    pairs = normalize(torch.randn(3, 32, generator=generator), dim=1)
    groups = pairs.repeat_interleave(2, 0) + 0.12 * torch.randn(6, 32, generator=generator)
    owner = torch.arange(6).repeat_interleave(40)
    rows = normalize(groups[owner] + 0.05 * torch.randn(240, 32, generator=generator), dim=1)
    for k in (3, 6):
        found = count_by_tree(rows, 2, expected=Expected(k, 0.15), generator=seeded())
        assert found.k == k


def hill(numbers: np.ndarray, top: float, width: float) -> np.ndarray:
    """A curve of height 1 over numbers on a logarithmic scale."""
    return np.exp(-0.5 * (np.log(numbers / top) / width) ** 2)


def test_a_ragged_top_moves_the_estimate_less_than_its_highest_point() -> None:
    numbers = np.arange(50, 301)
    rise = hill(numbers, 150, 0.2)
    rise[numbers == 135] = 1.02  # one draw was lucky there
    found = count._estimate(numbers, rise)
    assert abs(found.k - 150) <= 3
    assert found.low <= 135
    assert found.high > 150


def test_without_labels_the_finest_of_several_high_hills_counts_and_all_are_possible() -> None:
    numbers = np.arange(5, 301)
    rise = hill(numbers, 17, 0.1) + 0.85 * hill(numbers, 50, 0.1) + 0.6 * hill(numbers, 200, 0.1)
    fine = count._estimate(numbers, rise, finest=True)
    assert abs(fine.k - 50) <= 2
    assert fine.low <= 17
    assert 50 < fine.high < 100  # a hill of three fifths is none
    assert abs(count._estimate(numbers, rise).k - 17) <= 1
    for k in (17, 50):  # an expected number says which
        assert abs(weigh(numbers, rise, Expected(k, 0.2)).k - k) <= 2


@given(rise=st.lists(st.floats(0, 10), min_size=2, max_size=60))
def test_the_estimate_is_within_its_bounds_whatever_the_curve(rise: list[float]) -> None:
    numbers = np.arange(2, 2 + len(rise))
    for finest in (False, True):
        found = count._estimate(numbers, np.array(rise), finest=finest)
        assert 2 <= found.low <= found.high <= numbers[-1]
        assert numbers[0] <= found.k <= numbers[-1] + 1


def test_doubt_is_larger_without_labels() -> None:
    rows, _ = clusters([30] * 40)
    bare = count_by_tree(rows, 0, generator=seeded())
    labeled = count_by_tree(rows, 40, expected=expected_of(40, 40), generator=seeded())
    assert bare.low <= 0.67 * bare.k
    assert bare.high >= 1.33 * bare.k
    assert labeled.high < bare.high


class TestWeigh:
    def test_equals_a_loop_over_the_numbers(self) -> None:
        numbers = np.arange(10, 60)
        rise = hill(numbers, 30, 0.2)
        total, mean, evidence = 0.0, 0.0, []
        for k, height in zip(numbers, rise, strict=True):
            away = math.log(k / 24) / 0.1
            evidence.append((height / rise.max()) ** SHARPNESS * math.exp(-(away**2) / 2) / k)
            total += evidence[-1]
            mean += evidence[-1] * math.log(k)
        found = weigh(numbers, rise, Expected(24, 0.1))
        assert found.k == round(math.exp(mean / total))
        below = np.cumsum(evidence) / total
        assert found.low == numbers[(below < TAIL).sum()]
        assert found.high == numbers[(below < 1 - TAIL).sum()]

    def test_a_flat_curve_leaves_the_expected_number(self) -> None:
        numbers = np.arange(5, 200)
        for rise in (np.ones(195), np.zeros(195)):
            assert abs(weigh(numbers, rise, Expected(40, 0.1)).k - 40) <= 1

    def test_a_vague_expectation_leaves_the_peak(self) -> None:
        numbers = np.arange(5, 200)
        found = weigh(numbers, hill(numbers, 90, 0.1), Expected(40, 5.0))
        assert abs(found.k - 90) <= 2

    def test_estimate_lies_between_the_two(self) -> None:
        numbers = np.arange(5, 200)
        assert 60 < weigh(numbers, hill(numbers, 90, 0.3), Expected(60, 0.2)).k < 90

    @pytest.mark.parametrize("k", [1, 10_000])
    def test_an_expected_number_outside_the_curve_takes_the_nearest(self, k: int) -> None:
        numbers = np.arange(5, 200)
        found = weigh(numbers, np.ones(195), Expected(k, 0.01))
        assert found.k == (5 if k == 1 else 199)

    @given(
        rise=st.lists(st.floats(-1, 10), min_size=2, max_size=60),
        k=st.integers(1, 100),
        error=st.floats(0.05, 5),
    )
    def test_estimate_is_within_its_bounds(self, rise: list[float], k: int, error: float) -> None:
        numbers = np.arange(2, 2 + len(rise))
        found = weigh(numbers, np.array(rise), Expected(k, error))
        assert numbers[0] <= found.low <= found.high <= numbers[-1]
        assert numbers[0] <= found.k <= numbers[-1]


def test_expected_number_is_less_sure_the_more_rows_are_new() -> None:
    def of(new: int) -> Expected:
        relative = np.where(np.arange(100) < new, 0.0, 1.0)
        return Expected.from_novelty(Novelty(relative, np.zeros(100, np.int64)), 10)

    assert of(0) == Expected(10, SHARE_ERROR + 0.1)  # 100 rows
    assert of(50).k == 20
    assert of(50).error == pytest.approx(2 * of(0).error)
    assert np.isfinite(of(100).error)


@given(top=st.integers(10, 200), width=st.floats(0.02, 0.3))
def test_the_point_of_a_hill_has_three_fifths_of_it_below(top: int, width: float) -> None:
    numbers = np.arange(2, 600)
    height = hill(numbers, top, width)
    mass = height / numbers
    point = count._point_of(numbers, height)
    inside = mass[numbers <= point - 0.5].sum() / mass.sum()
    assert inside <= 0.6 <= mass[numbers <= point + 0.5].sum() / mass.sum() + 1e-9


def test_the_point_of_a_spike_is_there_and_of_nothing_in_the_middle() -> None:
    numbers = np.arange(5, 21)
    assert round(count._point_of(numbers, (numbers == 12).astype(float))) == 12
    assert 9 < count._point_of(numbers, np.zeros(len(numbers))) < 14


def with_leftover(k: int, left: int, seed: int) -> tuple[Tensor, Tensor]:
    """Clear clusters, and behind them rows that lie between some three of them."""
    rows, owner = clusters([40] * k, spread=0.05, seed=seed)
    centres = torch.stack([rows[owner == i].mean(0) for i in range(k)])
    between = torch.stack([torch.randperm(k, generator=seeded(seed + i))[:3] for i in range(left)])
    rest = centres[between].sum(1) + 0.05 * torch.randn(left, 32, generator=seeded(seed))
    return normalize(torch.cat([rows, rest]), dim=1), torch.cat([owner, torch.full((left,), k)])


@pytest.mark.parametrize("seed", range(3))
def test_what_lies_between_all_intents_is_seen_and_not_counted(seed: int) -> None:
    rows, owner = with_leftover(12, 120, seed)
    assert count_leftover(rows, owner.numpy()) == 1
    alone = count_leftover(rows[:480], owner[:480].numpy())
    assert alone == 0


def test_the_estimate_leaves_it_out(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, _ = clusters([40] * 12, spread=0.05)
    expected = expected_of(12, 6)
    clear = count_by_tree(rows, 6, expected=expected, generator=seeded())
    monkeypatch.setattr(count, "count_leftover", lambda *_: 2)
    found = count_by_tree(rows, 6, expected=expected, generator=seeded())
    assert (found.k, found.leftover, clear.leftover) == (clear.k - 2, 2, 0)
    assert found.low <= found.k <= found.high
    monkeypatch.setattr(count, "count_leftover", lambda *_: 11)
    found = count_by_tree(rows, 6, expected=expected, generator=seeded())
    assert found.k == 7  # six are known, and label density has seen a new one


@given(n=st.integers(4, 40), k=st.integers(1, 4), seed=SEEDS, block=st.integers(1, 50))
def test_leftover_clusters_are_those_nearer_to_another_centre(
    n: int, k: int, seed: int, block: int
) -> None:
    generator = seeded(seed)
    rows = normalize(torch.randn(n, 5, generator=generator), dim=1)
    labels = torch.cat([torch.arange(k), torch.randint(0, k, (n - k,), generator=generator)])
    expected = 0
    for c in range(k):
        margins = []
        for row in rows[labels == c].double():
            near = [row @ normalize(rows[labels == j].double().mean(0), dim=0) for j in range(k)]
            others = [float(v) for j, v in enumerate(near) if j != c]
            margins.append(float(near[c]) - max(others, default=0.0))
        expected += k > 1 and sum(margins) < 0
    assert count_leftover(rows, labels.numpy(), block_rows=block) == expected


@given(
    n=st.integers(1, 60), k=st.integers(1, 6), seed=SEEDS,
    known=st.integers(0, 3), most=st.one_of(st.none(), st.integers(1, 80)),
)  # fmt: skip
def test_bounds_hold_whatever_the_data(
    n: int, k: int, seed: int, known: int, most: int | None
) -> None:
    generator = seeded(seed)
    rows = torch.randn(n, 4, generator=generator)
    expected = Expected(known + k, 0.2) if known else None
    found = count_by_tree(rows, known, expected=expected, at_most=most, generator=generator)
    assert max(1, known) <= found.k
    assert found.low <= found.k <= found.high
    if most is not None and most >= max(2, known):
        assert found.k <= most


def test_alike_rows_are_one_intent() -> None:
    found = count_by_tree(torch.ones(50, 3), 0, generator=seeded())
    assert (found.k, found.low, found.high) == (1, 1, 1)


@pytest.mark.parametrize(("texts", "copies"), [(3, 40), (4, 30), (10, 30), (10, 1), (3, 1)])
def test_where_few_rows_differ_each_may_be_an_intent(texts: int, copies: int) -> None:
    rows, _ = clusters([1] * texts)
    every = rows.repeat(copies, 1)
    found = count_by_tree(every, 0, generator=seeded())
    assert found.low == 1
    # Of ten single rows a tree sees nine, so that no two trees are alike.
    assert found.high >= (texts if copies > 1 or texts < 4 else texts - 1)


def test_enough_rows_keep_the_bounds_close() -> None:
    rows, _ = clusters([30] * 8, spread=0.05)
    found = count_by_tree(rows, 4, expected=expected_of(8, 4), generator=seeded())
    assert found.high <= 10


def test_rise_is_the_slope_of_a_power_law() -> None:
    # heights = k ** -2: the slope is 2 everywhere, once per window.
    heights = -2 * np.log(np.arange(1, 400))
    found = rises(heights, np.array([5, 40, 200]))
    np.testing.assert_allclose(found, 2 * len(count.WINDOWS), rtol=1e-9)


def test_clusters_of_fair_size_are_counted_as_published() -> None:
    rows, owner = clusters([50, 50, 50, 4], spread=0.01)
    # Four clusters of 154 rows: 38.5 on average, and the small one does not reach it.
    assert count_by_size(rows, 4, generator=seeded()) == 3
    assert count_by_size(rows, 4, generator=seeded(), share=0.1) == 4
    # Known intents count whatever their size: the small one is known here.
    small = torch.where(owner == 3, 0, -1)
    assert count_beside_known(rows, small, 1, 4, generator=seeded()) == 4


@pytest.mark.parametrize("n", [4, 5, 20, 60])
def test_there_are_never_more_intents_than_rows(n: int) -> None:
    rows, _ = clusters([1] * n)
    expected = expected_of(n, n)
    found = count_by_tree(rows, n, expected=expected, generator=seeded())
    assert found.low <= found.k <= found.high <= n
