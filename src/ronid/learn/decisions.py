"""What people said, act by act: which utterances were meant themselves, and what was refused."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ronid.errors import UsageError
from ronid.review.apply import apply
from ronid.review.desk import Desk
from ronid.review.events import Act, Confirm, Gather, Learn, Move, OutOfScope
from ronid.review.problems import NotApplicable
from ronid.review.state import OUT, State
from ronid.review.timeline import Entry


@dataclass(frozen=True, eq=False)
class Said:
    """What the acts that count come to.

    Args:
        state: The state they fold to.
        meant: (n,) whether a person spoke of the utterance itself and that still stands; else it
            was at most among those of an accepted intent.
        refused: Row to the ids of intents that a person took it out of.
    """

    state: State
    meant: NDArray[np.bool_]
    refused: dict[int, frozenset[str]]


def walk(first: State, acts: Iterable[Entry]) -> Said:
    """Go through the acts that count, in order.

    Args:
        first: The state before any of them.
        acts: Entries whose acts count.
    """
    state = first
    meant = np.zeros(len(first.places), np.bool_)
    refused: dict[int, set[str]] = {}
    for entry in acts:
        action: Act = entry.event.action  # type: ignore[assignment]
        try:
            after = apply(state, action, entry.event.who)
        except NotApplicable:  # as the timeline does, where the run itself was changed
            continue
        if isinstance(action, Confirm | Move | OutOfScope):
            meant[list(action.rows)] = True
        if isinstance(action, Move | OutOfScope | Gather):
            _refuse(refused, state, after, action.rows)
        state = after
    standing = {row: _standing(state, row, ids) for row, ids in refused.items()}
    return Said(state, meant & state.confirmed, {r: ids for r, ids in standing.items() if ids})


def _refuse(
    refused: dict[int, set[str]], before: State, after: State, rows: tuple[int, ...]
) -> None:
    """Note which intents rows were taken out of; where one is put back, that is forgotten."""
    for row in rows:
        source, target = before.of_row(row), after.of_row(row)
        if source is not None and source != target:
            refused.setdefault(row, set()).add(source)
        if target is not None and row in refused:
            refused[row].discard(target)


def _standing(state: State, row: int, ids: set[str]) -> frozenset[str]:
    """Return the intents of now that a row must not get; merged ones are what they went into."""
    now = set()
    for id in ids:
        while id in state.gone:
            id = state.gone[id]  # noqa: PLW2901 - follow it to the end
        if id in state.intents:
            now.add(id)
    return frozenset(now - {state.slots[state.places[row]] if state.places[row] != OUT else ""})


@dataclass(frozen=True)
class Fresh:
    """What the model has not learnt yet.

    Args:
        decided: Acts that count and are no trainings, all of them.
        new: Those that the last training did not know, also what was decided while it ran.
        taken_back: How many it knew that do not count any more.
        trained: Whether a training counts.
    """

    decided: tuple[Entry, ...]
    new: tuple[Entry, ...]
    taken_back: int
    trained: bool


def fresh_decisions(desk: Desk) -> Fresh:
    """Return what was decided since the last training that counts.

    Args:
        desk: The review.
    """
    acts = desk.acts()[1]
    trainings = [entry for entry in acts if isinstance(entry.event.action, Learn)]
    decided = tuple(entry for entry in acts if not isinstance(entry.event.action, Learn))
    known = desk.acts_at(trainings[-1].event.seen) if trainings else frozenset()
    known -= {entry.seq for entry in desk.entries() if isinstance(entry.event.action, Learn)}
    return Fresh(
        decided=decided,
        new=tuple(entry for entry in decided if entry.seq not in known),
        taken_back=len(known - {entry.seq for entry in decided}),
        trained=bool(trainings),
    )


class NothingDecidedError(UsageError):
    """There is nothing to learn from a review; the message is the reason alone."""


def check_decided(desk: Desk) -> None:
    """Refuse where there is nothing to learn.

    Args:
        desk: The review.

    Raises:
        NothingDecidedError: Nothing was decided since the last training.
    """
    found = fresh_decisions(desk)
    if not found.decided or not (found.new or found.taken_back):
        since = " since the last training" if found.trained else ""
        raise NothingDecidedError(f"nothing was decided{since}, so there is nothing to learn")
