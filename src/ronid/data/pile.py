"""Piles unlike those of the published protocol: few or wrong labels, long tails, chatter.

A `Pile` says how a benchmark's training file is changed before a method sees it; the test file
stays whole. Every change draws from a generator of its own, so that one never shifts another.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ronid.errors import UsageError
from ronid.types import IntArray

_STREAMS = ("tail", "label_noise", "absent", "chatter")


@dataclass(frozen=True)
class Pile:
    """How a pile differs from the published protocol; the defaults change nothing.

    Args:
        shots: Labelled utterances of every known intent, instead of a share; 0 for the share.
        label_noise: Share of the labels that name another known intent than the true one.
        absent_ratio: Share of the known intents that have labelled utterances only, none raw.
        tail: How many times as large the largest intent is as the smallest; 1 leaves sizes alone.
        chatter_ratio: Share of the pile that belongs to no intent.

    Raises:
        UsageError: A value is out of its range.
    """

    shots: int = 0
    label_noise: float = 0.0
    absent_ratio: float = 0.0
    tail: float = 1.0
    chatter_ratio: float = 0.0

    def __post_init__(self) -> None:
        fits = {
            "shots": (isinstance(self.shots, int) and self.shots >= 0, "a whole number"),
            "label_noise": (0 <= self.label_noise <= 1, "a number from 0 to 1"),
            "absent_ratio": (0 <= self.absent_ratio <= 1, "a number from 0 to 1"),
            "tail": (1 <= self.tail < np.inf, "1 or more"),
            "chatter_ratio": (0 <= self.chatter_ratio < 1, "0 or more and below 1"),
        }
        for name, (fit, range_) in fits.items():
            if not fit:
                raise UsageError(f"{name} is {getattr(self, name)}; give {range_}")

    @property
    def changes(self) -> dict[str, Any]:
        """The values that are not the published protocol's, by name."""
        # 50 and 50.0 are one pile, and must have one hash.
        values = {key: type(PUBLISHED[key])(getattr(self, key)) for key in PILE_KEYS}
        return {name: value for name, value in values.items() if value != PUBLISHED[name]}


PILE_KEYS = tuple(item.name for item in fields(Pile))
PUBLISHED: Mapping[str, Any] = {item.name: item.default for item in fields(Pile)}
"""What the published protocol has, by name."""


def tail_sizes(sizes: IntArray, ratio: float, rng: np.random.Generator) -> IntArray:
    """Return the (k,) sizes of intents thinned to a long tail.

    Sizes fall exponentially from that of the largest intent to `ratio` times less; which intent
    is large is drawn. None gets more than it has, or less than one.

    Args:
        sizes: (k,) utterances of every intent.
        ratio: How many times as large the largest is as the smallest.
        rng: Draws the order.
    """
    rank = rng.permutation(len(sizes)) / max(1, len(sizes) - 1)
    wanted = np.rint(sizes.max() * ratio**-rank).astype(np.int64)
    return np.clip(wanted, 1, sizes)


def thinned(classes: IntArray, ratio: float, seed: int) -> IntArray:
    """Return the rows, ascending, that a long tail leaves of each class.

    Args:
        classes: (n,) class of every row, 0..k-1.
        ratio: How many times as large the largest class is as the smallest.
        seed: Decides which class is large, and which rows stay.
    """
    rng = _generator(seed, "tail")
    sizes = tail_sizes(np.bincount(classes), ratio, rng)
    kept = [
        rng.choice(np.flatnonzero(classes == each), size, replace=False)
        for each, size in enumerate(sizes)
    ]
    return np.sort(np.concatenate(kept))


def misnamed(names: Sequence[str], known: Sequence[str], noise: float, seed: int) -> list[str]:
    """Return labels of which a share names another known intent, each as likely.

    Args:
        names: True intents of the labelled rows.
        known: The known intents.
        noise: Share of the labels to change, rounded to whole labels.
        seed: Decides which, and to what.
    """
    found = list(names)
    if len(known) < 2:
        return found
    rng = _generator(seed, "label_noise")
    for row in rng.choice(len(found), round(noise * len(found)), replace=False):
        found[row] = str(rng.choice([name for name in known if name != found[row]]))
    return found


def absent_intents(known: Sequence[str], ratio: float, seed: int) -> set[str]:
    """Draw the known intents of which no raw utterance is left.

    Args:
        known: The known intents.
        ratio: Share of them, rounded to whole intents.
        seed: Decides which.
    """
    rng = _generator(seed, "absent")
    drawn = rng.choice(len(known), round(ratio * len(known)), replace=False)
    return {known[index] for index in drawn}


def chatter_rows(
    sizes: Mapping[str, int], n: int, ratio: float, seed: int
) -> list[tuple[str, int]]:
    """Draw foreign utterances that are to be a share of a pile.

    Args:
        sizes: Utterances that each other benchmark has.
        n: Utterances of the pile without chatter.
        ratio: Share of the whole pile that shall be chatter.
        seed: Decides which.

    Returns:
        Benchmark and row of every utterance, in order of benchmark and row.

    Raises:
        UsageError: The other benchmarks have too few.
    """
    wanted = round(n * ratio / (1 - ratio))
    pool = [(name, row) for name, size in sizes.items() for row in range(size)]
    if wanted > len(pool):
        raise UsageError(
            f"chatter_ratio {ratio:g} needs {wanted:,} utterances from elsewhere, and there are "
            f"{len(pool):,}; give a smaller one"
        )
    drawn = _generator(seed, "chatter").choice(len(pool), wanted, replace=False)
    return [pool[index] for index in np.sort(drawn)]


def _generator(seed: int, stream: str) -> np.random.Generator:
    return np.random.default_rng([seed, 1 + _STREAMS.index(stream)])
