"""Random batches: every row once, like lengths together, nothing but the generator decides."""

from itertools import islice

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ronid.train.batches import cycled_batches, shuffled_batches, steps_per_epoch

LENGTHS = st.lists(st.integers(1, 30), min_size=1, max_size=80).map(lambda x: np.array(x, np.int64))


@given(lengths=LENGTHS, size=st.integers(1, 20), pool=st.integers(1, 4), seed=st.integers(0, 99))
def test_shuffled_batches_hold_every_row_once(
    lengths: np.ndarray, size: int, pool: int, seed: int
) -> None:
    batches = list(shuffled_batches(lengths, size, np.random.default_rng(seed), pool=pool))
    assert sorted(np.concatenate(batches)) == list(range(len(lengths)))
    assert len(batches) == steps_per_epoch(len(lengths), size)
    sizes = sorted(map(len, batches))
    assert set(sizes[1:]) <= {size}
    assert 0 < sizes[0] <= size


@given(lengths=LENGTHS, size=st.integers(1, 20), seed=st.integers(0, 99))
def test_shuffled_batches_follow_the_generator(lengths: np.ndarray, size: int, seed: int) -> None:
    one = list(shuffled_batches(lengths, size, np.random.default_rng(seed)))
    two = list(shuffled_batches(lengths, size, np.random.default_rng(seed)))
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))


def test_rows_of_like_length_share_a_batch() -> None:
    lengths = np.random.default_rng(0).integers(1, 100, 640)
    sorted_waste = sum(
        lengths[b].max() * len(b) - lengths[b].sum()
        for b in shuffled_batches(lengths, 40, np.random.default_rng(0))
    )
    random_waste = sum(
        lengths[b].max() * len(b) - lengths[b].sum()
        for b in shuffled_batches(lengths, 40, np.random.default_rng(0), pool=1)
    )
    assert sorted_waste < random_waste / 5


def test_order_of_lengths_is_not_the_order_of_batches() -> None:
    lengths = np.arange(64)
    means = [b.mean() for b in shuffled_batches(lengths, 8, np.random.default_rng(0))]
    assert means != sorted(means)


@given(
    rows=st.lists(st.integers(0, 500), min_size=1, max_size=40, unique=True),
    size=st.integers(1, 50),
    passes=st.integers(1, 3),
)
def test_cycled_batches_go_through_all_rows_again_and_again(
    rows: list[int], size: int, passes: int
) -> None:
    steps = steps_per_epoch(len(rows), size)
    endless = cycled_batches(np.array(rows), size, np.random.default_rng(0))
    for _ in range(passes):
        batches = list(islice(endless, steps))
        assert sorted(np.concatenate(batches)) == sorted(rows)
        assert max(map(len, batches)) <= size


def test_each_pass_has_a_new_order() -> None:
    endless = cycled_batches(np.arange(50), 50, np.random.default_rng(0))
    assert not np.array_equal(next(endless), next(endless))


def test_no_rows_give_empty_batches() -> None:
    empty = cycled_batches(np.empty(0, np.int64), 5, np.random.default_rng(0))
    assert [len(batch) for batch in islice(empty, 3)] == [0, 0, 0]


def test_golden_steps() -> None:
    assert [steps_per_epoch(n, 4) for n in (0, 1, 4, 5, 9)] == [1, 1, 1, 2, 3]
