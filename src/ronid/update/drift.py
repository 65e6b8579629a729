"""Whether old intents are what they were: where their new utterances lie, and how many came."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ronid.types import FloatArray, IntArray

FEWEST = 5
"""New utterances of an intent, or expected ones, from which on anything can be said."""

MOVED = 2.0
"""Times the squared distance of the means that chance would give, from which on it is a drift."""

LEAST_ANGLE = 1.0
"""Degrees below which nothing has moved. Old vectors were rounded to half precision, and where a
text repeats chance gives no distance at all: that rounding would be a drift of 0 degrees."""

SHARE_FACTOR, SHARE_DEVIATIONS = 2.0, 3.0
"""A share has changed when it is this many times larger or smaller, and by as many deviations."""

SHOWN = 3


@dataclass(frozen=True)
class Drift:
    """An old intent that changed.

    Args:
        index: The intent.
        name: Its name.
        angle: Degrees between the mean of its utterances before and that of the new ones.
        moved: Whether that is more than chance gives.
        share_before: Its share of the utterances before.
        share_now: Its share of those that came to old intents.
        shows: New utterances that lie farthest in the direction of the move.
    """

    index: int
    name: str
    angle: float
    moved: bool
    share_before: float
    share_now: float
    shows: tuple[str, ...] = ()


@dataclass(frozen=True)
class Members:
    """Utterances of old intents.

    Args:
        vectors: (n, d) features.
        labels: (n,) their intents.
    """

    vectors: FloatArray
    labels: IntArray

    def of(self, intent: int) -> FloatArray:
        """Return the (m, d) features of one intent's."""
        return self.vectors[self.labels == intent]


def find_drift(
    before: Members, now: Members, texts: Sequence[str], names: Sequence[str]
) -> tuple[Drift, ...]:
    """Return the old intents that changed, those that moved farthest first.

    Args:
        before: Utterances that the intents had.
        now: Utterances that came to them.
        texts: Those that came, in words.
        names: Of the old intents.
    """
    found = []
    for intent, name in enumerate(names):
        old, new = before.of(intent), now.of(intent)
        share_before = len(old) / max(1, len(before.labels))
        share_now = len(new) / max(1, len(now.labels))
        expected = share_before * len(now.labels)
        angle, ratio = mean_shift(old, new) if min(len(old), len(new)) >= FEWEST else (0.0, 0.0)
        moved = ratio > MOVED and angle >= LEAST_ANGLE
        if moved or _changed(len(new), expected):
            rows = np.flatnonzero(now.labels == intent)
            shows = tuple(texts[rows[i]] for i in farthest(old, new)) if len(old) else ()
            found.append(Drift(intent, name, angle, moved, share_before, share_now, shows))
    return tuple(sorted(found, key=lambda drift: (-drift.moved, -drift.angle)))


def mean_shift(old: FloatArray, new: FloatArray) -> tuple[float, float]:
    """Return how far a mean moved: degrees, and times the squared distance that chance gives.

    Args:
        old: (n, d) features, two or more.
        new: (m, d) features, two or more.
    """
    a, b = old.mean(0, dtype=np.float64), new.mean(0, dtype=np.float64)
    chance = sum(float(part.var(0, ddof=1).sum()) / len(part) for part in (old, new))
    lengths = float(np.linalg.norm(a) * np.linalg.norm(b))
    cosine = float(a @ b) / lengths if lengths else 1.0
    angle = float(np.degrees(np.arccos(np.clip(cosine, -1, 1))))
    distance = float(((a - b) ** 2).sum())
    return angle, distance / chance if chance else (np.inf if distance > 1e-12 else 0.0)


def farthest(old: FloatArray, new: FloatArray) -> list[int]:
    """Return the new utterances that lie farthest in the direction in which the mean moved."""
    if not len(new):
        return []
    start = old.mean(0)
    along = (new - start) @ (new.mean(0) - start)
    return [int(i) for i in np.argsort(-along, kind="stable")[:SHOWN]]


def _changed(count: int, expected: float) -> bool:
    """Whether clearly more or fewer utterances came than the old share would give."""
    if max(count, expected) < FEWEST:
        return False
    large = not expected / SHARE_FACTOR < count < expected * SHARE_FACTOR
    return large and abs(count - expected) > SHARE_DEVIATIONS * max(1.0, expected) ** 0.5
