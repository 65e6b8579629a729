"""Changes of a benchmark: few or wrong labels, class imbalance, off-topic text, entities.

A `Pile` describes how the training file of a benchmark is changed before a method sees it. The test
file keeps all its rows. Each change draws from its own random generator, so the draws of one change
do not depend on the others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ronid.errors import UsageError
from ronid.metrics import small_classes
from ronid.types import IntArray

_STREAMS = (
    "tail", "label_noise", "absent", "chatter", "shots", "dominant", "entities", "small_talk",
)  # fmt: skip

MIXED_SHOTS = (1, 2, 5, 10, 20)
"""Numbers of labeled utterances per intent that `mixed_shots` draws from."""

THIN_SHOTS = (1, 2, 3)
"""Numbers of labeled utterances per small intent that `thin_shots` draws from."""

MIN_UTTERANCES_BESIDE_DOMINANT = 5
"""Utterances of every other intent that `dominant` keeps at least, if the intent has as many."""

BY_RATIO = -1
"""Number of labeled utterances of an intent for which `labelled_ratio` decides."""


@dataclass(frozen=True)
class Pile:
    """How a pile differs from the published protocol; the defaults change nothing.

    Args:
        shots: Labelled utterances of every known intent, instead of a share; 0 for the share.
        label_noise: Share of the labels that name another known intent than the true one.
        absent_ratio: Share of the known intents that have labelled utterances only, none raw.
        tail: How many times as large the largest intent is as the smallest; 1 leaves sizes alone.
        chatter_ratio: Share of the pile that belongs to no intent.
        mixed_shots: 1 draws the number of labeled utterances of each known intent from
            `MIXED_SHOTS`, whatever the size of the intent. 0 does not.
        thin_shots: 1 draws the number of labeled utterances of each small known intent from
            `THIN_SHOTS`; the other settings apply to the other intents. The smallest third of the
            known intents in the training file is small, see `small_classes`. 0 does not.
        dominant: Share of the training file that belongs to a single intent; 0 keeps the sizes.
        entities: Share of all utterances, those of dev and test included, that mention a random
            place, date, amount, name or number.
        small_talk: Share of the training file that is small talk or a fragment of a sentence.

    Raises:
        UsageError: A value is out of its range.
    """

    shots: int = 0
    label_noise: float = 0.0
    absent_ratio: float = 0.0
    tail: float = 1.0
    chatter_ratio: float = 0.0
    mixed_shots: int = 0
    thin_shots: int = 0
    dominant: float = 0.0
    entities: float = 0.0
    small_talk: float = 0.0

    def __post_init__(self) -> None:
        fits = {
            "shots": (isinstance(self.shots, int) and self.shots >= 0, "a whole number"),
            "label_noise": (0 <= self.label_noise <= 1, "a number from 0 to 1"),
            "absent_ratio": (0 <= self.absent_ratio <= 1, "a number from 0 to 1"),
            "tail": (1 <= self.tail < np.inf, "1 or more"),
            "chatter_ratio": (0 <= self.chatter_ratio < 1, "0 or more and below 1"),
            "mixed_shots": (self.mixed_shots in (0, 1), "0 or 1"),
            "thin_shots": (self.thin_shots in (0, 1), "0 or 1"),
            "dominant": (0 <= self.dominant < 1, "0 or more and below 1"),
            "entities": (0 <= self.entities <= 1, "a number from 0 to 1"),
            "small_talk": (0 <= self.small_talk < 1, "0 or more and below 1"),
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
    """Return the (k,) sizes of intents with a given imbalance ratio.

    Intent number j in a random order gets n_j = n_max * ratio ** (-j / (k - 1)) utterances,
    j = 0..k-1, where n_max is the size of the largest intent. These are the class-size profiles of
    ImbaNID (ACL 2024) with ratio 3, 5 and 10. Sizes are rounded to whole numbers, are at least 1
    and at most the number of utterances that the intent has.

    Args:
        sizes: (k,) utterances of every intent.
        ratio: Imbalance ratio: size of the largest intent divided by that of the smallest.
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
    rng = generator_of(seed, "tail")
    sizes = tail_sizes(np.bincount(classes), ratio, rng)
    kept = [
        rng.choice(np.flatnonzero(classes == each), size, replace=False)
        for each, size in enumerate(sizes)
    ]
    return np.sort(np.concatenate(kept))


def dominated(classes: IntArray, share: float, seed: int) -> IntArray:
    """Return the rows, ascending, that remain when a single intent has a given share of all rows.

    The dominant intent keeps all its rows. The others keep rows in proportion to their sizes, but
    at least `MIN_UTTERANCES_BESIDE_DOMINANT`.

    Args:
        classes: (n,) class of every row, 0..k-1.
        share: Share of the dominant intent, between 0 and 1.
        seed: Decides which intent dominates, of those that can, and which rows remain.

    Raises:
        UsageError: No intent can have this share.
    """
    rng = generator_of(seed, "dominant")
    sizes = np.bincount(classes)
    fewest = np.minimum(sizes, MIN_UTTERANCES_BESIDE_DOMINANT)
    smallest_share = sizes / sizes.sum()
    largest_share = sizes / (sizes + fewest.sum() - fewest)
    possible = np.flatnonzero((smallest_share <= share) & (share <= largest_share))
    if not len(possible):
        raise UsageError(
            f"dominant is {share:g}, but an intent of this data set can have at least "
            f"{smallest_share.min():.3f} and at most {largest_share.max():.3f} of the utterances; "
            "give a share in between"
        )
    dominant = int(rng.choice(possible))
    others = np.arange(len(sizes)) != dominant
    total = round(sizes[dominant] * (1 - share) / share)
    wanted = sizes.copy()
    wanted[others] = _proportional(sizes[others], fewest[others], total)
    kept = [
        rng.choice(np.flatnonzero(classes == each), size, replace=False)
        for each, size in enumerate(wanted)
    ]
    return np.sort(np.concatenate(kept))


def _proportional(sizes: IntArray, fewest: IntArray, total: int) -> IntArray:
    """Return sizes that add up to `total`: in proportion to `sizes`, from `fewest` to `sizes`."""
    low, high = 0.0, 1.0
    for _ in range(60):  # bisection of the factor; the sum rises with it
        factor = (low + high) / 2
        enough = np.clip(factor * sizes, fewest, sizes).sum() >= total
        low, high = (low, factor) if enough else (factor, high)
    exact = np.clip(high * sizes, fewest, sizes)
    found = np.floor(exact).astype(np.int64)
    # The largest remainders are rounded up, so that the sum is right.
    order = np.argsort(found - exact, kind="stable")
    missing = total - int(found.sum())
    found[order[: max(0, missing)]] += 1
    return np.clip(found, fewest, sizes)


def shots_per_intent(sizes: IntArray, pile: Pile, seed: int) -> IntArray:
    """Return the (m,) numbers of labeled utterances of the known intents, or `BY_RATIO`.

    Args:
        sizes: (m,) utterances of each known intent in the training file.
        pile: Its `shots`, `mixed_shots` and `thin_shots` apply.
        seed: Decides the numbers that are drawn.

    Raises:
        UsageError: `thin_shots` is set, and no known intent is smaller than the others.
    """
    rng = generator_of(seed, "shots")
    mixed = rng.choice(MIXED_SHOTS, len(sizes))
    thin = rng.choice(THIN_SHOTS, len(sizes))
    shots = np.full(len(sizes), pile.shots or BY_RATIO, np.int64)
    if pile.mixed_shots:
        shots = mixed
    if pile.thin_shots and len(sizes):
        small = small_classes(sizes)
        if not len(small):
            raise UsageError(
                "thin_shots is 1, but no known intent is smaller than the others; "
                "give tail, or another data set"
            )
        shots[small] = thin[small]
    return shots


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
    rng = generator_of(seed, "label_noise")
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
    rng = generator_of(seed, "absent")
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
    drawn = generator_of(seed, "chatter").choice(len(pool), wanted, replace=False)
    return [pool[index] for index in np.sort(drawn)]


def generator_of(seed: int, stream: str, *more: int) -> np.random.Generator:
    """Return the random generator of one kind of change.

    Args:
        seed: Seed of the split.
        stream: Name of the change.
        more: Further numbers that the generator depends on.
    """
    return np.random.default_rng([seed, 1 + _STREAMS.index(stream), *more])
