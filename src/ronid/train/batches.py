"""Row indices in random order: the only sampler, drawn from a generator given by the caller."""

from collections.abc import Iterator

import numpy as np

from ronid.types import IntArray


def shuffled_batches(
    lengths: IntArray, size: int, rng: np.random.Generator, *, pool: int = 16
) -> Iterator[IntArray]:
    """Yield every row once, in random batches of rows of like length.

    Rows are shuffled, then sorted by length inside pools of `pool` batches, so that batches stay
    random while little padding is wasted; the order of batches is shuffled again.

    Args:
        lengths: (n,) tokens per row.
        size: Rows per batch; the last of all may be smaller.
        rng: Source of randomness.
        pool: Batches sorted together.
    """
    order = rng.permutation(len(lengths))
    batches: list[IntArray] = []
    for start in range(0, len(order), size * pool):
        part = order[start : start + size * pool]
        part = part[np.argsort(lengths[part], kind="stable")]
        batches += [part[i : i + size] for i in range(0, len(part), size)]
    for i in rng.permutation(len(batches)):
        yield batches[i]


def cycled_batches(rows: IntArray, size: int, rng: np.random.Generator) -> Iterator[IntArray]:
    """Yield batches of `rows` for ever, each pass in a new random order.

    Args:
        rows: Rows to draw from; empty rows give empty batches.
        size: Rows per batch.
        rng: Source of randomness.
    """
    if len(rows) == 0:
        while True:
            yield rows
    while True:
        order = rng.permutation(rows)
        for start in range(0, len(order), size):
            yield order[start : start + size]


def steps_per_epoch(rows: int, size: int) -> int:
    """Return the number of batches of one pass."""
    return max(1, -(-rows // size))
