"""What a review came to: the intents, where every utterance belongs, and who says so.

This is what leaves the review: exports and the next training start from it.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ronid.review.apply import apply
from ronid.review.base import Base
from ronid.review.desk import Desk
from ronid.review.problems import NotApplicable
from ronid.review.state import ReviewIntent, State, start
from ronid.review.timeline import Entry

Source = Literal["given", "person", "discovered"]


@dataclass(frozen=True)
class Label:
    """Where one utterance belongs, and why.

    Args:
        row: Its number.
        intent: Id of its intent, None where it is out of scope.
        source: `given` in the data, decided by a `person`, or only `discovered`.
        event: Number of the event that decided, 0 where none did.
        who: Who decided, empty where nobody did.
        at: When.
    """

    row: int
    intent: str | None
    source: Source
    event: int = 0
    who: str = ""
    at: str = ""


@dataclass(frozen=True, eq=False)
class Outcome:
    """A review at one version.

    Args:
        version: The version.
        intents: Those that there are, in order.
        labels: One per utterance.
        apart: Pairs of ids that people keep apart.
    """

    version: int
    intents: tuple[ReviewIntent, ...]
    labels: tuple[Label, ...]
    apart: frozenset[frozenset[str]]

    def accepted(self) -> tuple[ReviewIntent, ...]:
        """Return the intents that people accepted."""
        return tuple(intent for intent in self.intents if intent.status == "accepted")


def outcome(desk: Desk) -> Outcome:
    """Return what a review came to by now.

    Args:
        desk: The review.
    """
    version, acts = desk.acts()
    state = start(desk.base)
    decided = np.full(len(desk.base), -1, np.int64)  # place among the acts
    for place, entry in enumerate(acts):
        try:
            after = apply(state, entry.event.action, entry.event.who)  # type: ignore[arg-type]
        except NotApplicable:  # left out by the fold as well
            continue
        decided[_changed(state, after)] = place
        state = after
    labels = tuple(
        _label(desk.base, state, row, acts[place] if place >= 0 else None)
        for row, place in enumerate(decided.tolist())
    )
    return Outcome(version, tuple(state.intents.values()), labels, state.apart)


def _changed(before: State, after: State) -> NDArray[np.int64]:
    """Return the utterances that went elsewhere, or were confirmed or not any more."""
    # Slots keep their meaning from act to act: new ones are added behind.
    moved = before.places != after.places
    return np.flatnonzero(moved | (before.confirmed != after.confirmed))


def _label(base: Base, state: State, row: int, entry: Entry | None) -> Label:
    source: Source = "discovered"
    if state.confirmed[row]:
        source = "person"
    elif base.given[row] and base.labels[row] == state.places[row]:
        source = "given"
    if entry is None:
        return Label(row, state.of_row(row), source)
    event = entry.event
    return Label(row, state.of_row(row), source, entry.seq, event.who, event.at)
