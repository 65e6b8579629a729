"""One action applied to a state: `apply(state, action, who) -> state`, or a reason why not."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ronid.review.events import (
    Accept,
    Act,
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
    Split,
    Unlock,
)
from ronid.review.problems import NotApplicable
from ronid.review.state import OUT, ReviewIntent, State, Status, name_key

Rows = NDArray[np.int64]


def apply(state: State, action: Act, who: str) -> State:
    """Return the state after an action.

    Args:
        state: The state before; it is not changed.
        action: What is done.
        who: Who does it.

    Raises:
        NotApplicable: The action makes no sense in this state.
    """
    return _APPLY[type(action)](state, action, who)


def touched(state: State, action: Act) -> frozenset[str]:
    """Return the ids of all intents that an action is about, made by it, or takes from."""
    ids: set[str] = set()
    for name in ("intent", "into", "id"):
        if hasattr(action, name):
            ids.add(getattr(action, name))
    ids.update(getattr(action, "intents", ()))
    if isinstance(action, Learn):
        ids.update(id for shift in action.shifts for id in (shift.source, shift.into))
    elif isinstance(action, Split):
        ids.update(part.id for part in action.parts)
    elif hasattr(action, "rows"):
        rows = np.array(action.rows, np.int64)
        slots = np.unique(state.places[rows[rows < len(state.places)]])
        ids.update(state.slots[slot] for slot in slots if slot != OUT)
    return frozenset(ids)


def _found(state: State, id: str) -> ReviewIntent:
    intent = state.intents.get(id)
    if intent is not None:
        return intent
    into = id
    while into in state.gone:
        into = state.gone[into]
    if into in state.intents:
        raise NotApplicable(f"this intent was merged into '{state.intents[into].name}'")
    raise NotApplicable("this intent does not exist, or does not any more")


def _free(state: State, id: str) -> ReviewIntent:
    """Return an intent that may change."""
    intent = _found(state, id)
    if intent.locked:
        raise NotApplicable(f"'{intent.name}' is locked; unlock it first")
    return intent


def _existing(state: State, rows: Sequence[int]) -> Rows:
    found = np.array(rows, np.int64)
    if len(found) and found.max() >= len(state.places):
        raise NotApplicable(f"utterance {found.max() + 1} does not exist")
    return found


def _check_name(state: State, name: str, own: str | None = None) -> None:
    holder = state.names.get(name_key(name))
    if holder is not None and holder != own:
        raise NotApplicable(
            f"'{state.intents[holder].name}' is the name of another intent; merge them, or choose "
            "another name"
        )


def _check_new(state: State, id: str) -> None:
    if id in state.slots:
        raise NotApplicable("there is an intent of this id already; try again")


def _set_status(state: State, id: str, status: Status) -> ReviewIntent:
    intent = _free(state, id)
    if intent.status == status:
        raise NotApplicable(f"'{intent.name}' is {status} already")
    return replace(intent, status=status)


def _accept(state: State, action: Accept, who: str) -> State:
    intent = _set_status(state, action.intent, "accepted")
    if not state.size(intent.id):
        raise NotApplicable(f"'{intent.name}' has no utterances to accept")
    confirmed = state.confirmed | (state.places == intent.slot)
    # Whoever accepts an intent has read its name too.
    return replace(state.with_intent(replace(intent, changed=0)), confirmed=confirmed)


def _reject(state: State, action: Reject, who: str) -> State:
    intent = _set_status(state, action.intent, "rejected")
    confirmed = state.confirmed & (state.places != intent.slot)
    return replace(state.with_intent(intent), confirmed=confirmed)


def _reopen(state: State, action: Reopen, who: str) -> State:
    return state.with_intent(_set_status(state, action.intent, "open"))


def _lock(state: State, action: Lock, who: str) -> State:
    intent = _found(state, action.intent)
    if intent.locked:
        raise NotApplicable(f"'{intent.name}' is locked already")
    return state.with_intent(replace(intent, locked=True))


def _unlock(state: State, action: Unlock, who: str) -> State:
    intent = _found(state, action.intent)
    if not intent.locked:
        raise NotApplicable(f"'{intent.name}' is not locked")
    return state.with_intent(replace(intent, locked=False))


def _rename(state: State, action: Rename, who: str) -> State:
    intent = _free(state, action.intent)
    if intent.name == action.name:
        raise NotApplicable(f"'{intent.name}' has this name already")
    _check_name(state, action.name, own=intent.id)
    renamed = replace(intent, name=action.name, named_by=f"person:{who}", changed=0)
    return state.with_intent(renamed)


def _describe(state: State, action: Describe, who: str) -> State:
    intent = _free(state, action.intent)
    if intent.description == action.description:
        raise NotApplicable(f"'{intent.name}' has this description already")
    return state.with_intent(replace(intent, description=action.description))


def _confirm(state: State, action: Confirm, who: str) -> State:
    rows = _existing(state, action.rows)
    if (state.places[rows] == OUT).any():
        raise NotApplicable("an utterance that is out of scope cannot be confirmed; move it first")
    if state.confirmed[rows].all():
        raise NotApplicable("these utterances are confirmed already")
    confirmed = state.confirmed.copy()
    confirmed[rows] = True
    return replace(state, confirmed=confirmed)


def _leaving(state: State, rows: Rows) -> dict[str, ReviewIntent]:
    """Return the intents that rows are taken from, with that counted; refuse locked ones."""
    slots, counts = np.unique(state.places[rows], return_counts=True)
    found = {}
    for slot, count in zip(slots, counts, strict=True):
        if slot != OUT:
            intent = _free(state, state.slots[slot])
            found[intent.id] = replace(intent, changed=intent.changed + int(count))
    return found


def _move(state: State, action: Move, who: str) -> State:
    target = _free(state, action.intent)
    rows = _existing(state, action.rows)
    coming = rows[state.places[rows] != target.slot]
    if not len(coming):
        raise NotApplicable(f"these utterances are in '{target.name}' already")
    changed = _leaving(state, coming)
    target = replace(target, changed=target.changed + len(coming))
    if target.status == "rejected":
        raise NotApplicable(f"'{target.name}' is rejected; reopen it first")
    places, confirmed = state.places.copy(), state.confirmed.copy()
    places[rows], confirmed[rows] = target.slot, True
    moved = replace(state, places=places, confirmed=confirmed)
    return moved.with_intent(*changed.values(), target)


def _out_of_scope(state: State, action: OutOfScope, who: str) -> State:
    rows = _existing(state, action.rows)
    leaving = rows[state.places[rows] != OUT]
    if not len(leaving):
        raise NotApplicable("these utterances are out of scope already")
    changed = _leaving(state, leaving)
    places, confirmed = state.places.copy(), state.confirmed.copy()
    places[rows], confirmed[rows] = OUT, True
    return replace(state, places=places, confirmed=confirmed).with_intent(*changed.values())


def _made(state: State, id: str, name: str, rows: Rows, origin: tuple[str, ...]) -> State:
    """Return the state with a new intent of these rows; they are not confirmed by that."""
    _check_new(state, id)
    _check_name(state, name)
    intent = ReviewIntent(id, len(state.slots), name, "", False, named_by="parts", origin=origin)
    places, confirmed = state.places.copy(), state.confirmed.copy()
    places[rows], confirmed[rows] = intent.slot, False
    made = replace(state, slots=(*state.slots, id), places=places, confirmed=confirmed)
    return made.with_intent(intent)


def _gather(state: State, action: Gather, who: str) -> State:
    rows = _existing(state, action.rows)
    changed = _leaving(state, rows)
    made = _made(state, action.id, action.name, rows, tuple(changed)).with_intent(*changed.values())
    named = replace(made.intents[action.id], named_by=f"person:{who}")
    return made.with_intent(named)


def _split(state: State, action: Split, who: str) -> State:
    intent = _free(state, action.intent)
    leaving = 0
    for part in action.parts:
        rows = _existing(state, part.rows)
        if (state.places[rows] != intent.slot).any():
            raise NotApplicable(f"some of these utterances are not in '{intent.name}' any more")
        leaving += len(rows)
    if leaving >= state.size(intent.id):
        raise NotApplicable(f"nothing would be left of '{intent.name}'; leave one part in it")
    for part in action.parts:
        state = _made(state, part.id, part.name, np.array(part.rows, np.int64), (intent.id,))
    rest = replace(intent, changed=intent.changed + leaving, status="open")
    return state.with_intent(rest)


def _merge(state: State, action: Merge, who: str) -> State:
    if action.into not in action.intents:
        raise NotApplicable("an intent can only be merged into one of those that are merged")
    merged = [_free(state, id) for id in action.intents]
    into = state.intents[action.into]
    others = [intent for intent in merged if intent.id != into.id]
    coming = np.isin(state.places, [intent.slot for intent in others])
    places = np.where(coming, np.int32(into.slot), state.places)
    keep = replace(
        into,
        changed=into.changed + int(coming.sum()),
        status="accepted" if all(i.status == "accepted" for i in merged) else "open",
        known=any(i.known for i in merged),
    )
    gone = {intent.id: into.id for intent in others}
    left = {id: intent for id, intent in state.intents.items() if id not in gone}
    state = replace(state, intents=left, places=places, gone={**state.gone, **gone})
    return state.with_intent(keep)


def _keep_apart(state: State, action: KeepApart, who: str) -> State:
    for id in action.intents:
        _found(state, id)
    pairs = {frozenset((a, b)) for a in action.intents for b in action.intents if a != b}
    if pairs <= state.apart:
        raise NotApplicable("these intents are kept apart already")
    return replace(state, apart=state.apart | pairs)


def _keep_whole(state: State, action: KeepWhole, who: str) -> State:
    intent = _found(state, action.intent)
    if intent.id in state.whole:
        raise NotApplicable(f"'{intent.name}' is kept whole already")
    return replace(state, whole=state.whole | {intent.id})


def _learn(state: State, action: Learn, who: str) -> State:
    """Shift what is still where training saw it; what people said meanwhile counts more."""
    places = state.places.copy()
    came = np.zeros(len(state.slots), np.int64)
    for shift in action.shifts:
        source, target = state.intents.get(shift.source), state.intents.get(shift.into)
        if source is None or target is None or target.status == "rejected":
            continue
        if source.locked or target.locked:
            continue
        rows = _existing(state, shift.rows)
        rows = rows[(state.places[rows] == source.slot) & ~state.confirmed[rows]]
        places[rows] = target.slot
        came[[source.slot, target.slot]] += len(rows)
    moved = [
        replace(i, changed=i.changed + int(came[i.slot]))
        for i in state.intents.values()
        if came[i.slot]
    ]
    return replace(state, places=places).with_intent(*moved)


_APPLY: dict[type, Callable[[State, Any, str], State]] = {
    Accept: _accept,
    Reject: _reject,
    Reopen: _reopen,
    Lock: _lock,
    Unlock: _unlock,
    Rename: _rename,
    Describe: _describe,
    Confirm: _confirm,
    Move: _move,
    OutOfScope: _out_of_scope,
    Gather: _gather,
    Split: _split,
    Merge: _merge,
    KeepApart: _keep_apart,
    KeepWhole: _keep_whole,
    Learn: _learn,
}
