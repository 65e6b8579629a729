"""Random batches: every row equally often, equal sizes, nothing but the generator decides."""

from collections.abc import Iterable
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronid.train.batches import (
    beside_labelled,
    cycled_batches,
    one_pass,
    one_pass_with_labelled,
    shuffled_batches,
    some_steps,
    steps_per_epoch,
    uniform_batches,
)

ROWS = st.lists(st.integers(0, 500), min_size=1, max_size=40, unique=True)


@given(n=st.integers(0, 80), size=st.integers(1, 20), seed=st.integers(0, 99))
def test_shuffled_batches_hold_every_row_once(n: int, size: int, seed: int) -> None:
    batches = list(shuffled_batches(n, size, np.random.default_rng(seed)))
    assert sorted(row for batch in batches for row in batch) == list(range(n))
    assert len(batches) == (steps_per_epoch(n, size) if n else 0)
    assert {len(batch) for batch in batches[:-1]} <= {size}
    assert all(0 < len(batch) <= size for batch in batches[-1:])


@given(n=st.integers(1, 80), size=st.integers(1, 20), seed=st.integers(0, 99))
def test_shuffled_batches_follow_the_generator(n: int, size: int, seed: int) -> None:
    one = list(shuffled_batches(n, size, np.random.default_rng(seed)))
    two = list(shuffled_batches(n, size, np.random.default_rng(seed)))
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))


def test_each_call_shuffles_anew() -> None:
    rng = np.random.default_rng(0)
    (one,), (two,) = (list(shuffled_batches(64, 64, rng)) for _ in range(2))
    assert not np.array_equal(one, two)
    assert one.tolist() != sorted(one)


@given(rows=ROWS, size=st.integers(1, 50), seed=st.integers(0, 99))
def test_cycled_batches_hold_every_row_equally_often(rows: list[int], size: int, seed: int) -> None:
    endless = cycled_batches(np.array(rows), size, np.random.default_rng(seed))
    size = min(size, len(rows))
    passes = size  # the first number of passes that surely fills whole batches
    batches = list(islice(endless, passes * len(rows) // size))
    assert {len(batch) for batch in batches} == {size}
    drawn = np.concatenate(batches)
    for start in range(0, len(drawn), len(rows)):  # and one pass after the other
        assert sorted(drawn[start : start + len(rows)]) == sorted(rows)


@given(rows=ROWS, size=st.integers(1, 50), steps=st.integers(1, 30))
def test_no_row_is_a_pass_ahead_of_another(rows: list[int], size: int, steps: int) -> None:
    endless = cycled_batches(np.array(rows), size, np.random.default_rng(0))
    drawn = np.concatenate(list(islice(endless, steps))).tolist()
    counts = [drawn.count(row) for row in rows]
    assert max(counts) - min(counts) <= 1


@given(rows=ROWS, size=st.integers(1, 50), seed=st.integers(0, 99))
def test_cycled_batches_follow_the_generator(rows: list[int], size: int, seed: int) -> None:
    one, two = (
        np.concatenate(
            list(islice(cycled_batches(np.array(rows), size, np.random.default_rng(seed)), 5))
        )
        for _ in range(2)
    )
    assert np.array_equal(one, two)


def test_each_pass_has_a_new_order() -> None:
    endless = cycled_batches(np.arange(50), 50, np.random.default_rng(0))
    assert not np.array_equal(next(endless), next(endless))


@pytest.mark.parametrize(("rows", "size"), [(0, 5), (5, 0), (0, 0)])
def test_no_rows_or_no_room_give_empty_batches(rows: int, size: int) -> None:
    batches = list(islice(cycled_batches(np.arange(rows), size, np.random.default_rng(0)), 3))
    assert [len(batch) for batch in batches] == [0, 0, 0]
    assert {batch.dtype for batch in batches} == {np.dtype(np.int64)}  # fit to be an index


def test_golden_steps() -> None:
    assert [steps_per_epoch(n, 4) for n in (0, 1, 4, 5, 9)] == [1, 1, 1, 2, 3]


LABELS = st.lists(st.integers(0, 6), min_size=1, max_size=60)


@given(labels=LABELS, size=st.integers(1, 20), seed=st.integers(0, 99))
def test_uniform_batches_hold_every_cluster_equally_often(
    labels: list[int], size: int, seed: int
) -> None:
    clusters = np.array(labels)
    batches = list(uniform_batches(clusters, size, np.random.default_rng(seed)))
    assert len(batches) == steps_per_epoch(len(labels), size)
    assert {len(batch) for batch in batches} == {min(size, len(labels))}
    rows = np.concatenate(batches)
    share = -(-len(rows) // len(set(labels)))
    drawn = np.bincount(clusters[rows], minlength=7)
    assert drawn.max() <= share
    # What is cut off to fill whole batches is less than one row per cluster.
    assert np.sum(share - drawn[np.unique(clusters)]) < len(set(labels))
    for name in set(labels):
        often = np.bincount(rows, minlength=len(labels))[clusters == name]
        assert often.max() <= -(-share // len(often))


def test_uniform_batches_follow_the_generator() -> None:
    labels = np.arange(50) % 3
    one, two, other = (
        np.concatenate([*uniform_batches(labels, 8, np.random.default_rng(seed))])
        for seed in (0, 0, 1)
    )
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)


def test_a_cluster_of_one_row_comes_as_often_as_a_large_one() -> None:
    labels = np.array([0] * 99 + [1])
    rows = np.concatenate([*uniform_batches(labels, 10, np.random.default_rng(0))])
    assert (rows == 99).sum() == 50
    assert len(np.unique(rows[rows != 99])) == 50


def test_uniform_batches_of_no_rows_are_none() -> None:
    assert list(uniform_batches(np.empty(0, np.int64), 8, np.random.default_rng(0))) == []


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def same(one: Iterable[np.ndarray], two: Iterable[np.ndarray]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))


@given(n=st.integers(0, 80), size=st.integers(1, 20), seed=st.integers(0, 99))
def test_one_pass_is_the_shuffled_batches_as_one_group(n: int, size: int, seed: int) -> None:
    groups = list(one_pass(n, size)(rng(seed)))
    assert {len(group) for group in groups} <= {1}
    assert same((group[0] for group in groups), shuffled_batches(n, size, rng(seed)))


def test_a_sampler_begins_anew_with_every_generator() -> None:
    for sampler in (one_pass(9, 4), some_steps(np.arange(9), 4, 3)):
        one, two, other = (np.concatenate([*sampler(rng(seed))], axis=1) for seed in (0, 0, 1))
        assert np.array_equal(one, two)
        assert not np.array_equal(one, other)


@given(rows=ROWS, given=st.integers(0, 20), n=st.integers(0, 60), size=st.integers(1, 20))
def test_a_pass_over_all_rows_has_labelled_ones_beside_every_batch(
    rows: list[int], given: int, n: int, size: int
) -> None:
    labelled = np.array(rows)
    pairs = list(beside_labelled(labelled, given, n, size, rng(1)))
    assert sorted(row for _, mixed in pairs for row in mixed) == list(range(n))
    assert {len(known) for known, _ in pairs} <= {min(given, len(rows))}
    drawn = [row for known, _ in pairs for row in known]
    assert set(drawn) <= set(rows)
    counts = [drawn.count(row) for row in rows]
    assert max(counts) - min(counts) <= 1
    joined = one_pass_with_labelled(labelled, given, n, size)(rng(1))
    assert same((group[0] for group in joined), (np.concatenate(pair) for pair in pairs))


def test_golden_draws_of_a_pass_with_labelled_rows() -> None:
    # The pass is drawn first, then the labelled rows: stored figures rest on this order.
    draws = rng(0)
    order, labelled = draws.permutation(5), draws.permutation([7, 8, 9])
    pairs = list(beside_labelled(np.array([7, 8, 9]), 1, 5, 2, rng(0)))
    assert np.array_equal(np.concatenate([mixed for _, mixed in pairs]), order)
    assert np.array_equal(np.concatenate([known for known, _ in pairs]), labelled)


@given(rows=ROWS, size=st.integers(1, 50), steps=st.integers(0, 12), seed=st.integers(0, 99))
def test_some_steps_are_the_first_of_an_endless_cycle(
    rows: list[int], size: int, steps: int, seed: int
) -> None:
    draws = rng(seed)
    groups = list(some_steps(np.array(rows), size, steps)(draws))
    assert len(groups) == steps
    after = rng(seed)
    assert same((g[0] for g in groups), islice(cycled_batches(np.array(rows), size, after), steps))
    assert draws.integers(1 << 30) == after.integers(1 << 30)  # and nothing more was drawn
