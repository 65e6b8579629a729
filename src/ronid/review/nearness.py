"""What lies near what, as the review stands: central and borderline utterances, nearest intents.

An intent is where its utterances are on average; confirmed ones count no more than others.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ronid.review.base import Base
from ronid.review.state import OUT, State
from ronid.types import FloatArray

_BLOCK = 16_384
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Near:
    """An intent near another one, and the cosine of their centres."""

    id: str
    similarity: float


@dataclass(frozen=True, eq=False)
class Members:
    """The utterances of an intent by how well they belong, best first.

    Args:
        rows: (m,) utterances.
        own: (m,) how near each is to its intent: a cosine, or its confidence without vectors.
        margin: (m,) how much nearer than to the nearest other intent; negative: it is nearer there.
        other: Id of that other intent for every row, None without vectors.
    """

    rows: Rows
    own: FloatArray
    margin: FloatArray
    other: tuple[str | None, ...]


@dataclass(frozen=True, eq=False)
class Doubts:
    """Utterances that lie nearer to another intent than to their own, clearest first.

    Args:
        rows: (m,) utterances.
        margin: (m,) how much nearer they are to their own; negative.
        other: (m,) slot of the nearest intent.
    """

    rows: Rows
    margin: FloatArray
    other: NDArray[np.int32]


class Centres:
    """Centres of all intents, kept up to date from state to state.

    Args:
        base: The run; with its vectors.
    """

    def __init__(self, base: Base) -> None:
        assert base.unit is not None
        self._points = base.unit
        self._state: State | None = None
        self._sums = np.empty((0, self._points.shape[1]))

    def of(self, state: State) -> FloatArray:
        """Return the (slots, d) centres of unit length; those of empty slots are zero."""
        if state is not self._state:
            self._sums = self._moved(state)
            self._state = state
        lengths = np.linalg.norm(self._sums, axis=1, keepdims=True)
        centres: FloatArray = (self._sums / np.maximum(lengths, 1e-12)).astype(np.float32)
        centres[state.counts == 0] = 0  # what rounding left of utterances that went
        return centres

    def _moved(self, state: State) -> NDArray[np.float64]:
        """Return the sums of vectors per slot, from those of the state before where it is near."""
        n, before = len(state.slots), self._state
        if before is None or _common(before.slots, state.slots) < min(len(before.slots), n):
            return _sums(self._points, state.places, n)
        rows = np.flatnonzero(before.places != state.places)
        if len(rows) > len(state.places) // 4:
            return _sums(self._points, state.places, n)
        sums = np.zeros((max(n, len(before.slots)), self._points.shape[1]))
        sums[: len(before.slots)] = self._sums
        sums[:n] += _sums(self._points[rows], state.places[rows], n)
        sums -= _sums(self._points[rows], before.places[rows], len(sums))
        return sums[:n]


def _common(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    pairs = zip(one, other, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _sums(points: FloatArray, places: NDArray[np.int32], n: int) -> NDArray[np.float64]:
    """Return (n, d) sums of points per place; `OUT` is left out."""
    order = np.argsort(places, kind="stable")
    order = order[places[order] != OUT]
    sums = np.zeros((n, points.shape[1]))
    if len(order):
        used, starts = np.unique(places[order], return_index=True)
        for slot, part in zip(used, np.split(order, starts[1:]), strict=True):
            sums[slot] = points[part].sum(axis=0, dtype=np.float64)
    return sums


def members(base: Base, state: State, id: str, centres: FloatArray | None) -> Members:
    """Return the utterances of an intent by how well they belong.

    Args:
        base: The run.
        state: The state.
        id: The intent.
        centres: Of all intents, or None where the run keeps no vectors.
    """
    rows = state.rows(id)
    if centres is None or base.unit is None:
        own = base.confidence[rows]
        order = np.argsort(-own, kind="stable")
        return Members(rows[order], own[order], own[order], (None,) * len(rows))
    slot = state.intents[id].slot
    close = base.unit[rows] @ centres.T
    own = close[:, slot].copy()
    close[:, state.counts == 0] = -2
    close[:, slot] = -2
    other = close.argmax(axis=1)
    far = close[np.arange(len(rows)), other]
    alone = far < -1  # there is no other intent
    margin = np.where(alone, own, own - far).astype(np.float32)
    order = np.argsort(-margin, kind="stable")
    names = tuple(None if alone[i] else state.slots[other[i]] for i in order)
    return Members(rows[order], own[order], margin[order], names)


def nearest(state: State, id: str, centres: FloatArray, top: int = 6) -> list[Near]:
    """Return the intents whose centres are most like that of an intent."""
    close = centres @ centres[state.intents[id].slot]
    others = [i for i in state.intents.values() if i.id != id and state.counts[i.slot]]
    found = sorted((Near(i.id, float(close[i.slot])) for i in others), key=lambda n: -n.similarity)
    return found[:top]


def find_doubts(base: Base, state: State, centres: FloatArray, most: int = 2_000) -> Doubts:
    """Return utterances nearer to another intent than to their own; labels are not doubted.

    Args:
        base: The run; with its vectors.
        state: The state; confirmed utterances, locked and rejected intents are left alone.
        centres: Of all intents.
        most: How many to return at most.
    """
    assert base.unit is not None
    settled = [i.slot for i in state.intents.values() if i.locked or i.status == "rejected"]
    asked = (state.places != OUT) & ~state.confirmed & ~base.given
    rows = np.flatnonzero(asked & ~np.isin(state.places, settled))
    margins = np.empty(len(rows), np.float32)
    others = np.empty(len(rows), np.int32)
    empty = np.flatnonzero(state.counts == 0)
    for start in range(0, len(rows), _BLOCK):
        part = rows[start : start + _BLOCK]
        close = base.unit[part] @ centres.T
        close[:, empty] = -2
        at = np.arange(len(part)), state.places[part]
        own = close[at].copy()
        close[at] = -2
        others[start : start + _BLOCK] = close.argmax(axis=1)
        margins[start : start + _BLOCK] = own - close.max(axis=1)
    doubtful = np.flatnonzero(margins < 0)
    order = doubtful[np.argsort(margins[doubtful], kind="stable")][:most]
    return Doubts(rows[order], margins[order], others[order])
