"""Decisions as the next problem: labels, what must not be, what is left out, what there is."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ronid.errors import UsageError
from ronid.learn.decisions import Said
from ronid.review.base import Base
from ronid.review.nearness import Centres, members
from ronid.review.state import OUT, ReviewIntent, State
from ronid.types import UNLABELLED, IntArray, Split

Flags = NDArray[np.bool_]

CENTRAL = 0.25
"""Share of an accepted intent's utterances that are trained towards it without being read."""


@dataclass(frozen=True, eq=False)
class Lessons:
    """One problem that people's decisions make.

    Args:
        intents: The k intents that there will be, those with labels first.
        known: How many have labels.
        targets: (n,) number of the intent that a row is trained to be, or UNLABELLED.
        fixed: (n,) number of the intent that a row has whatever training finds, or UNLABELLED.
        places: (n,) number of the intent that a row is in now, or UNLABELLED.
        taking_part: (n,) rows that are trained on; what is out of scope is not.
        forbidden: (p, 2) rows, and the number of an intent that each must not get.
        closed: Numbers of the locked intents.
        shares: (k,) share of the rows that an intent has whose size people vouch for: it was
            accepted, merged, or made by them; NaN for others.
    """

    intents: tuple[ReviewIntent, ...]
    known: int
    targets: IntArray
    fixed: IntArray
    places: IntArray
    taking_part: Flags
    forbidden: IntArray
    closed: tuple[int, ...]
    shares: NDArray[np.float64]

    @property
    def ids(self) -> tuple[str, ...]:
        """Review ids of the intents."""
        return tuple(intent.id for intent in self.intents)

    def split(self, texts: Sequence[str]) -> Split:
        """Return the problem of the rows that take part.

        Args:
            texts: All n utterances.
        """
        rows = np.flatnonzero(self.taking_part)
        place = np.cumsum(self.taking_part) - 1
        inside = self.taking_part[self.forbidden[:, 0]]
        pairs = self.forbidden[inside]
        return Split(
            texts=[texts[row] for row in rows.tolist()],
            targets=self.targets[rows],
            known=tuple(intent.name for intent in self.intents[: self.known]),
            n_intents=len(self.intents),
            forbidden=np.stack([place[pairs[:, 0]], pairs[:, 1]], axis=1),
            closed=self.closed,
            shares=self.shares,
        )


def fixed_rows(base: Base, said: Said) -> tuple[Flags, Flags]:
    """Return (n,) which rows stay where they are, and (n,) which of them are trained towards it.

    What was given, confirmed or locked stays. Whoever accepts an intent has not read all of it:
    of its utterances only the most central ones are trained towards it, unless a person spoke of
    them one by one.

    Args:
        base: The run.
        said: What people said.
    """
    state = said.state
    usable = np.zeros(len(state.slots) + 1, np.bool_)  # the last one: out of scope
    locked = usable.copy()
    for intent in state.intents.values():
        usable[intent.slot] = intent.status != "rejected"
        locked[intent.slot] = intent.locked
    sure = said.meant | base.given | locked[state.places]
    stays = (state.confirmed | sure) & usable[state.places]
    return stays, stays & (sure | central_rows(base, state))


def central_rows(base: Base, state: State, share: float = CENTRAL) -> Flags:
    """Return (n,) which rows are among the most central of their intents.

    Args:
        base: The run.
        state: The state.
        share: Of the utterances of each intent.
    """
    centres = None if base.unit is None else Centres(base).of(state)
    found = np.zeros(len(base), np.bool_)
    for intent in state.intents.values():
        if intent.status == "rejected" or not state.counts[intent.slot]:
            continue
        rows = members(base, state, intent.id, centres).rows
        found[rows[: int(np.ceil(share * len(rows)))]] = True
    return found


def make_lessons(base: Base, said: Said, present: Sequence[str]) -> Lessons:
    """Return the problem that decisions make.

    Args:
        base: The run.
        said: What people said.
        present: Ids of the intents that the model has now, in its order.

    Raises:
        UsageError: No intent is left.
    """
    state = said.state
    stays, labelled = fixed_rows(base, said)
    living = [i for i in state.intents.values() if _stays(i, state, present)]
    if not living:
        raise UsageError("no intent is left to learn: all are rejected or empty")
    counts = np.bincount(state.places[labelled], minlength=len(state.slots))
    order = {id: number for number, id in enumerate(present)}
    living.sort(key=lambda i: (not counts[i.slot], order.get(i.id, len(order) + i.slot)))
    number = np.full(len(state.slots) + 1, UNLABELLED, np.int64)
    number[[i.slot for i in living]] = np.arange(len(living))
    at = {intent.id: k for k, intent in enumerate(living)}
    forbidden = [
        (row, at[id]) for row, ids in sorted(said.refused.items()) for id in sorted(ids) if id in at
    ]
    return Lessons(
        intents=tuple(living),
        known=sum(bool(counts[i.slot]) for i in living),
        targets=np.where(labelled, number[state.places], UNLABELLED),
        fixed=np.where(stays, number[state.places], UNLABELLED),
        places=number[state.places],
        taking_part=state.places != OUT,
        forbidden=np.array(forbidden, np.int64).reshape(-1, 2),
        closed=tuple(k for k, i in enumerate(living) if i.locked),
        shares=_shares(state, living),
    )


def _shares(state: State, living: Sequence[ReviewIntent]) -> NDArray[np.float64]:
    """Return (k,) the shares of intents whose size people vouch for."""
    merged = set(state.gone.values())
    total = max(1, int((state.places != OUT).sum()))
    return np.array(
        [
            state.counts[i.slot] / total
            if i.status == "accepted" or i.locked or i.origin or i.id in merged
            else np.nan
            for i in living
        ]
    )


def numbered(present: Sequence[str], living: Collection[str]) -> tuple[str, ...]:
    """Return the intents of the next model in its order: whoever was there keeps the number.

    New ones take the numbers that became free, and further ones behind. Where more went than came,
    the last ones move into the numbers that are left, so that there is no gap.

    Args:
        present: Ids of the intents that the model has now, in its order.
        living: Ids of the intents that the next one has.
    """
    order: list[str | None] = [id if id in living else None for id in present]
    for id in living:
        if id in order:
            continue
        if None in order:
            order[order.index(None)] = id
        else:
            order.append(id)
    while None in order:
        last = order.pop()
        if last is not None:
            order[order.index(None)] = last
    return tuple(id for id in order if id is not None)


def _stays(intent: ReviewIntent, state: State, present: Sequence[str]) -> bool:
    """Whether an intent is one of the next model: an empty one only if the model knows it."""
    if intent.status == "rejected":
        return False
    return bool(state.counts[intent.slot]) or intent.id in present
