"""Row indices in random order: the only sampler, drawn from a generator given by the caller."""

from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np

from ronid.types import IntArray

Batches = Callable[[np.random.Generator], Iterator[tuple[IntArray]]]
"""Given an epoch's generator, yields its batches, each as one group of rows."""


def shuffled_batches(n: int, size: int, rng: np.random.Generator) -> Iterator[IntArray]:
    """Yield every one of `n` rows once, in random batches.

    Args:
        n: Number of rows.
        size: Rows per batch; the last may be smaller.
        rng: Source of randomness.
    """
    order = rng.permutation(n)
    for start in range(0, n, size):
        yield order[start : start + size]


def cycled_batches(rows: IntArray, size: int, rng: np.random.Generator) -> Iterator[IntArray]:
    """Yield batches of `rows` for ever, all of one size, each pass in a new random order.

    Args:
        rows: Rows to draw from; empty rows give empty batches.
        size: Rows per batch; with fewer rows than that, all of them.
        rng: Source of randomness.
    """
    size = min(size, len(rows))
    left = rows[:0]
    while True:
        if len(left) < size:
            # Equal sizes, so that a GPU can repeat one recorded step: passes flow together.
            left = np.concatenate([left, rng.permutation(rows)])
        yield left[:size]
        left = left[size:]


def uniform_batches(labels: IntArray, size: int, rng: np.random.Generator) -> Iterator[IntArray]:
    """Yield the batches of one pass, all of one size, every cluster equally often.

    A small cluster gives its rows again and again; of a large one some stay out.

    Args:
        labels: (n,) cluster of every row.
        size: Rows per batch; with fewer rows than that, as many as there are.
        rng: Source of randomness.
    """
    size = min(size, len(labels))
    total = size * steps_per_epoch(len(labels), max(1, size))
    members = [np.flatnonzero(labels == name) for name in np.unique(labels)]
    share = -(-total // max(1, len(members)))
    pool = [np.resize(rng.permutation(rows), share) for rows in members]
    order = rng.permutation(np.concatenate(pool)) if pool else labels
    for start in range(0, total, max(1, size)):
        yield order[start : start + size]


def beside_labelled(
    labelled: IntArray, given: int, n: int, size: int, rng: np.random.Generator
) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield every one of `n` rows once, in random batches, and labelled rows beside each of them.

    Args:
        labelled: The labelled ones among the rows.
        given: Of these, so many per batch, again and again.
        n: Number of rows.
        size: Rows per batch; the last may be smaller.
        rng: Source of randomness.
    """
    endless = cycled_batches(labelled, given, rng)
    for mixed in shuffled_batches(n, size, rng):
        yield next(endless), mixed


def one_pass(n: int, size: int) -> Batches:
    """Return the batches of a stage whose epoch is one pass over `n` rows."""

    def batches(rng: np.random.Generator) -> Iterator[tuple[IntArray]]:
        return ((batch,) for batch in shuffled_batches(n, size, rng))

    return batches


def one_pass_with_labelled(labelled: IntArray, given: int, n: int, size: int) -> Batches:
    """Return those of a stage that puts `given` labelled rows before each batch of the pass."""

    def batches(rng: np.random.Generator) -> Iterator[tuple[IntArray]]:
        pairs = beside_labelled(labelled, given, n, size, rng)
        return ((np.concatenate(pair),) for pair in pairs)

    return batches


def some_steps(rows: IntArray, size: int, steps: int) -> Batches:
    """Return those of a stage whose epoch is a number of steps, with as many rows in each."""

    def batches(rng: np.random.Generator) -> Iterator[tuple[IntArray]]:
        return ((batch,) for batch in islice(cycled_batches(rows, size, rng), steps))

    return batches


def steps_per_epoch(rows: int, size: int) -> int:
    """Return the number of batches of one pass."""
    return max(1, -(-rows // size))
