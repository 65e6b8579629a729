"""Before and after: what went elsewhere, what grew and shrank, which decisions held."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ronid.learn.record import IntentChange, RowChange, Status, Verdict
from ronid.review.events import (
    Accept,
    Confirm,
    Describe,
    Gather,
    KeepApart,
    KeepWhole,
    Learn,
    Lock,
    Merge,
    Move,
    OutOfScope,
    Reject,
    Rename,
    Reopen,
    Shift,
    Split,
    Unlock,
)
from ronid.review.state import OUT, State
from ronid.review.timeline import Entry
from ronid.review.words import count_rows
from ronid.types import FloatArray, IntArray

EXAMPLES = 50
ENOUGH = 0.5
"""Share of a part's utterances that must be in it for the part to have held."""

Told = tuple[Status, str]


def shifts_of(state: State, slots: IntArray) -> tuple[Shift, ...]:
    """Return which utterances go elsewhere.

    Args:
        state: Where they are now; what is out of scope, and what is confirmed, stays.
        slots: (n,) slot where training sees each.
    """
    free = (state.places != OUT) & ~state.confirmed & (slots != state.places)
    rows = np.flatnonzero(free)
    pairs: dict[tuple[int, int], list[int]] = {}
    for row in rows:
        pairs.setdefault((int(state.places[row]), int(slots[row])), []).append(int(row))
    return tuple(
        Shift(state.slots[source], state.slots[into], tuple(found))
        for (source, into), found in sorted(pairs.items())
    )


def intent_changes(before: State, after: State) -> tuple[IntentChange, ...]:
    """Return the intents that got or lost utterances, the most changed first."""
    moved = before.places != after.places
    n = len(after.slots)
    came = np.bincount(after.places[moved & (after.places != OUT)], minlength=n)
    went = np.bincount(before.places[moved & (before.places != OUT)], minlength=n)
    found = [
        IntentChange(
            i.id, i.name, before.size(i.id), after.size(i.id), int(came[i.slot]), int(went[i.slot])
        )
        for i in after.intents.values()
        if came[i.slot] or went[i.slot]
    ]
    return tuple(sorted(found, key=lambda each: (-each.came - each.went, each.id)))


def row_changes(
    before: State, after: State, texts: Sequence[str], confidence: FloatArray
) -> tuple[RowChange, ...]:
    """Return utterances that went elsewhere, the surest first."""
    rows = np.flatnonzero((before.places != after.places) & (after.places != OUT))
    rows = rows[np.argsort(-confidence[rows], kind="stable")][:EXAMPLES]
    return tuple(
        RowChange(
            row,
            texts[row],
            _name(before, before.of_row(row)),
            _name(after, after.of_row(row)),
            round(float(confidence[row]), 3),
        )
        for row in rows.tolist()
    )


def verdicts_of(acts: Sequence[Entry], before: State, after: State) -> tuple[Verdict, ...]:
    """Return what became of every decision, those that did not hold first.

    Args:
        acts: The acts that count.
        before: The state they fold to.
        after: The state after training.
    """
    found = []
    for entry in acts:
        action = entry.event.action
        if isinstance(action, Learn):
            continue
        status, why = _TOLD[type(action)](action, before, after)
        found.append(Verdict(entry.seq, entry.event.who, entry.says, status, why))
    order = {"not held": 0, "held": 1, "overtaken": 2}
    return tuple(sorted(found, key=lambda each: (order[each.status], each.seq)))


def _name(state: State, id: str | None) -> str:
    if id is None:
        return "out of scope"
    return state.intents[id].name if id in state.intents else "an intent that is gone"


def _resolved(state: State, id: str) -> str:
    """Return what an intent is now, after all merges."""
    while id in state.gone:
        id = state.gone[id]
    return id


OVERTAKEN: Told = ("overtaken", "later decisions count instead")
HELD: Told = ("held", "")


def _in_place(rows: tuple[int, ...], slot: int, before: State, after: State) -> Told:
    """Judge rows that were put somewhere."""
    at = np.array(rows, np.int64)
    meant = at[before.places[at] == slot]
    if not len(meant):
        return OVERTAKEN
    lost = meant[after.places[meant] != slot]
    if not len(lost):
        later = len(at) - len(meant)
        return "held", f"{count_rows(later)} went elsewhere by later decisions" if later else ""
    where = _name(after, after.of_row(int(lost[0])))
    return "not held", f"{count_rows(len(lost))} went elsewhere, such as to “{where}”"


def _moved(action: Move, before: State, after: State) -> Told:
    id = _resolved(before, action.intent)
    if id not in before.intents or before.intents[id].status == "rejected":
        return OVERTAKEN
    return _in_place(action.rows, before.intents[id].slot, before, after)


def _out(action: OutOfScope, before: State, after: State) -> Told:
    return _in_place(action.rows, OUT, before, after)


def _confirmed(action: Confirm, before: State, after: State) -> Told:
    rows = np.array(action.rows, np.int64)
    rows = rows[before.confirmed[rows]]
    if not len(rows):
        return OVERTAKEN
    lost = rows[before.places[rows] != after.places[rows]]
    return ("not held", f"{count_rows(len(lost))} went elsewhere") if len(lost) else HELD


def _accepted(action: Accept, before: State, after: State) -> Told:
    id = _resolved(before, action.intent)
    if id not in before.intents or before.intents[id].status != "accepted":
        return OVERTAKEN
    slot = before.intents[id].slot
    mine = (before.places == slot) & before.confirmed
    lost = int((mine & (after.places != slot)).sum())
    if lost:
        return "not held", f"{count_rows(lost)} of it went elsewhere"
    came = int(((after.places == slot) & (before.places != slot)).sum())
    return "held", f"{count_rows(came)} came to it" if came else ""


def _rejected(action: Reject, before: State, after: State) -> Told:
    intent = before.intents.get(action.intent)
    if intent is None or intent.status != "rejected":
        return OVERTAKEN
    left = int((after.places == intent.slot).sum())
    if left:
        return "not held", f"{count_rows(left)} found no other intent"
    gone = before.size(intent.id)
    return "held", f"{count_rows(gone)} went to other intents" if gone else ""


def _locked(action: Lock, before: State, after: State) -> Told:
    intent = before.intents.get(action.intent)
    if intent is None or not intent.locked:
        return OVERTAKEN
    mine, now = before.places == intent.slot, after.places == intent.slot
    changed = int((mine != now).sum())
    return ("not held", f"{count_rows(changed)} came or went") if changed else HELD


def _merged(action: Merge, before: State, after: State) -> Told:
    intent = after.intents.get(_resolved(after, action.into))
    if intent is None or intent.status == "rejected":
        return OVERTAKEN
    mine = before.places == intent.slot
    went = int((mine & (after.places != intent.slot)).sum())
    if went > (1 - ENOUGH) * mine.sum():
        return "not held", f"{went:,} of {count_rows(int(mine.sum()))} went elsewhere"
    return "held", f"{count_rows(went)} went elsewhere" if went else ""


def _part(id: str, rows: tuple[int, ...], before: State, after: State) -> Told:
    """Judge an intent that people made of rows."""
    intent = before.intents.get(id)
    if intent is None or intent.status == "rejected":
        return OVERTAKEN
    at = np.array(rows, np.int64)
    at = at[before.places[at] == intent.slot]
    if not len(at):
        return OVERTAKEN
    stayed = int((after.places[at] == intent.slot).sum())
    why = f"{stayed:,} of {count_rows(len(at))} are in “{intent.name}”"
    return ("held" if stayed >= ENOUGH * len(at) else "not held"), why


def _gathered(action: Gather, before: State, after: State) -> Told:
    return _part(action.id, action.rows, before, after)


def _divided(action: Split, before: State, after: State) -> Told:
    told = [_part(part.id, part.rows, before, after) for part in action.parts]
    for status in ("not held", "held"):
        whys = [why for found, why in told if found == status]
        if whys:
            return status, "; ".join(whys)  # type: ignore[return-value]
    return OVERTAKEN


def _renamed(action: Rename, before: State, after: State) -> Told:
    intent = after.intents.get(action.intent)
    return HELD if intent is not None and intent.name == action.name else OVERTAKEN


def _described(action: Describe, before: State, after: State) -> Told:
    intent = after.intents.get(action.intent)
    return HELD if intent and intent.description == action.description else OVERTAKEN


def _apart(action: KeepApart, before: State, after: State) -> Told:
    now = {_resolved(after, id) for id in action.intents}
    return HELD if len(now) == len(action.intents) else OVERTAKEN


def _one(action: KeepWhole | Reopen | Unlock, before: State, after: State) -> Told:
    return HELD if action.intent in after.intents else OVERTAKEN


_TOLD: dict[type, Callable[[Any, State, State], Told]] = {
    Accept: _accepted,
    Reject: _rejected,
    Reopen: _one,
    Lock: _locked,
    Unlock: _one,
    Rename: _renamed,
    Describe: _described,
    Confirm: _confirmed,
    Move: _moved,
    OutOfScope: _out,
    Gather: _gathered,
    Split: _divided,
    Merge: _merged,
    KeepApart: _apart,
    KeepWhole: _one,
}
