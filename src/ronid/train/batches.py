"""Row indices in random order: the only sampler, drawn from a generator given by the caller."""

from collections.abc import Iterator

import numpy as np

from ronid.types import IntArray


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


def steps_per_epoch(rows: int, size: int) -> int:
    """Return the number of batches of one pass."""
    return max(1, -(-rows // size))
