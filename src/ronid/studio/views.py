"""What every page shows, as plain values; the pages hold no logic of their own."""

from typing import Any

import numpy as np

from ronid.review.base import Base, base_id
from ronid.review.desk import View
from ronid.review.events import Merge, Redo, Return, Undo
from ronid.review.problems import NotApplicable
from ronid.review.propose import ProposedSplit
from ronid.review.state import OUT, ReviewIntent, State
from ronid.review.suggest import Suggestion
from ronid.review.timeline import Entry
from ronid.studio.room import Room

PAGE_ROWS = 200
"""Utterances that are sent at a time."""

Values = dict[str, Any]


def overview(room: Room, view: View, who: str) -> Values:
    """Return all intents, how far the review is, and what is suggested.

    Args:
        room: The room.
        view: The state to show, of now or of then.
        who: Whose undo and redo to tell.
    """
    state = view.state
    suggestions = room.suggestions(state)
    mean, confirmed, given = _means(room.base, state)
    doubts = np.zeros(len(state.slots) + 1, np.int64)
    if suggestions.doubts is not None:
        rows = suggestions.doubts.rows
        rows = rows[~state.confirmed[rows]]
        doubts += np.bincount(state.places[rows] + 1, minlength=len(doubts))
    told = [suggestion(state, each) for each in suggestions.found]
    by_intent: dict[str, list[Values]] = {}
    for each in told:
        for one in each["intents"]:
            by_intent.setdefault(one["id"], []).append(each)
    intents = [
        {
            **_intent(state, intent),
            "confidence": round(float(mean[intent.slot]), 3),
            "confirmed": int(confirmed[intent.slot]),
            "given": int(given[intent.slot]),
            "doubts": int(doubts[intent.slot + 1]),
            "suggests": [_short(each, intent.id) for each in by_intent.get(intent.id, [])],
        }
        for intent in state.intents.values()
    ]
    return {
        "version": view.version,
        "now": room.desk.version,
        "title": room.title,
        "utterances": len(room.base),
        "intents": intents,
        "gone": dict(state.gone),
        "suggestions": told[:50],
        "suggested": suggestions.version,
        "progress": _progress(room.base, state),
        "me": _mine(room, who),
        "latest": [
            {"seq": entry.seq, "who": entry.event.who, "says": entry.says}
            for entry in room.desk.entries(last=3)
        ],
        "vectors": room.has_vectors,
    }


def _means(base: Base, state: State) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return mean confidence, confirmed and labelled utterances of every slot."""
    inside = state.places != OUT
    slots, n = state.places[inside], len(state.slots)
    counts = np.maximum(state.counts, 1)
    mean = np.bincount(slots, weights=base.confidence[inside], minlength=n) / counts
    confirmed = np.bincount(slots[(state.confirmed | base.given)[inside]], minlength=n)
    return mean, confirmed, np.bincount(slots[base.given[inside]], minlength=n)


def _intent(state: State, intent: ReviewIntent) -> Values:
    return {
        "id": intent.id,
        "slot": intent.slot,
        "name": intent.name,
        "known": intent.known,
        "size": state.size(intent.id),
        "status": intent.status,
        "locked": intent.locked,
        "stale": state.stale(intent.id),
    }


def _short(told: Values, id: str) -> Values:
    others = [one["name"] for one in told["intents"] if one["id"] != id]
    words = f"merge with {others[0]}" if others else "split"
    return {"kind": told["kind"], "words": words, "chance": told["chance"]}


def suggestion(state: State, each: Suggestion) -> Values:
    """Return a suggestion with the names of now."""
    return {
        "kind": each.kind,
        "intents": [_intent(state, state.intents[id]) for id in each.intents],
        "chance": round(each.chance, 3),
        "reason": each.reason,
        "shows": [list(pair) for pair in each.shows],
    }


def _progress(base: Base, state: State) -> Values:
    decided = {"accepted": 0, "rejected": 0, "open": 0}
    rows = 0
    for intent in state.intents.values():
        decided[intent.status] += 1
        if intent.status != "open":
            rows += state.size(intent.id)
    out = len(state.out_rows())
    return {**decided, "out": out, "rows": rows + out, "of": len(base)}


def _mine(room: Room, who: str) -> Values:
    undo, redo = room.desk.undoable(who), room.desk.redoable(who)
    return {
        "name": who,
        "undo": undo and {"seq": undo.seq, "says": undo.says},
        "redo": redo and {"seq": redo.seq, "says": redo.says},
    }


def intent_page(room: Room, view: View, id: str, *, order: str = "central") -> Values:
    """Return one intent with its utterances and neighbours.

    Args:
        room: The room.
        view: The state to show.
        id: The intent.
        order: `central` or `borderline` utterances first.

    Raises:
        NotApplicable: There is no such intent; says what became of it.
    """
    state = view.state
    intent = state.intents.get(id)
    if intent is None:
        into = id
        while into in state.gone:
            into = state.gone[into]
        raise NotApplicable(
            f"this intent was merged into “{state.intents[into].name}”"
            if into in state.intents
            else "there is no such intent, or there is none any more"
        )
    found = {base_id(each.index): each for each in room.base.intents}.get(id)
    told = [suggestion(state, each) for each in room.suggestions(state).of(id)]
    return {
        **_intent(state, intent),
        "version": view.version,
        "description": intent.description,
        "named_by": intent.named_by,
        "keyphrases": list(found.keyphrases) if found else [],
        "origin": [
            {"id": each, "name": state.intents[each].name}
            for each in intent.origin
            if each in state.intents
        ],
        "nearest": [
            {**_intent(state, state.intents[near.id]), "similarity": round(near.similarity, 3)}
            for near in room.nearest(state, id)
        ],
        "suggestions": told,
        **utterances(room, view, id, order=order, start=0),
    }


def utterances(room: Room, view: View, id: str, *, order: str, start: int) -> Values:
    """Return a page of the utterances of an intent; id `out` is what is out of scope."""
    state = view.state
    if id == "out":
        out = state.out_rows()
        part = out[start : start + PAGE_ROWS]
        return {"total": len(out), "start": start, "rows": [_row(room, state, r) for r in part]}
    found = room.members(state, id)
    step = -1 if order == "borderline" else 1
    places = np.arange(len(found.rows))[::step][start : start + PAGE_ROWS]
    rows = []
    for place in places:
        values = _row(room, state, int(found.rows[place]))
        values["fit"] = round(float(found.own[place]), 3)
        values["margin"] = round(float(found.margin[place]), 3)
        other = found.other[place]
        if other is not None and found.margin[place] < 0:
            values["nearer"] = {"id": other, "name": state.intents[other].name}
        rows.append(values)
    return {"total": len(found.rows), "start": start, "rows": rows}


def _row(room: Room, state: State, row: int) -> Values:
    row = int(row)
    id = state.of_row(row)
    return {
        "row": row,
        "text": _shown(room.base.texts[row]),
        "intent": id and {"id": id, "name": state.intents[id].name},
        "confirmed": bool(state.confirmed[row]),
        "given": bool(room.base.given[row]),
        "confidence": round(float(room.base.confidence[row]), 3),
    }


def _shown(text: str) -> str:
    """Return a text that JSON can carry; a lone surrogate is no character."""
    return text.encode("utf-8", "replace").decode("utf-8")


def search_page(room: Room, view: View, query: str) -> Values:
    """Return the utterances that hold all words of a query: the first ones, and all row numbers."""
    rows = room.index.find(query)
    return {
        "query": query,
        "version": view.version,
        "total": len(rows),
        "all": rows.tolist(),
        "rows": [_row(room, view.state, row) for row in rows[:PAGE_ROWS]],
    }


def rows_page(room: Room, view: View, rows: list[int]) -> Values:
    """Return some utterances, such as those chosen on the map."""
    known = [row for row in rows if 0 <= row < len(room.base)]
    shown = [_row(room, view.state, row) for row in known[:PAGE_ROWS]]
    return {"version": view.version, "total": len(known), "all": known, "rows": shown}


def doubts_page(room: Room, view: View) -> Values:
    """Return the utterances that lie nearer to another intent, clearest first."""
    doubts = room.suggestions(view.state).doubts
    if doubts is None:
        return {"version": view.version, "total": 0, "rows": []}
    state, rows = view.state, []
    for row, margin, slot in zip(doubts.rows, doubts.margin, doubts.other, strict=True):
        own = state.of_row(int(row))
        other = state.slots[slot] if slot < len(state.slots) else ""
        if own is None or own == other or other not in state.intents or state.confirmed[row]:
            continue
        values = _row(room, state, int(row))
        values["margin"] = round(float(margin), 3)
        values["nearer"] = {"id": other, "name": state.intents[other].name}
        rows.append(values)
    return {"version": view.version, "total": len(rows), "rows": rows[:PAGE_ROWS]}


def split_page(room: Room, proposed: ProposedSplit, version: int) -> Values:
    """Return the parts of a proposed split, with their most central utterances."""
    return {
        "version": version,
        "intent": proposed.intent,
        "clear": round(proposed.clear, 3),
        "parts": [
            {
                "name": part.name,
                "rows": part.rows.tolist(),
                "shows": [_shown(room.base.texts[row]) for row in part.rows[:8]],
            }
            for part in proposed.parts
        ],
    }


def history_page(room: Room, before: int | None = None) -> Values:
    """Return what happened, the latest first; a page of it that ends before an event."""
    entries = room.desk.entries()
    end = len(entries) if before is None else max(0, min(before - 1, len(entries)))
    part = entries[max(0, end - PAGE_ROWS) : end]
    state = room.desk.view().state
    return {
        "version": room.desk.version,
        "people": sorted({entry.event.who for entry in entries}),
        "more": end > PAGE_ROWS,
        "entries": [_entry(room, state, entry) for entry in reversed(part)],
    }


def _entry(room: Room, state: State, entry: Entry) -> Values:
    action = entry.event.action
    about = sorted(id for id in entry.touches if id in state.intents)
    if isinstance(action, Merge) and action.into in about:
        about = [action.into]
    steers = isinstance(action, Undo | Redo | Return)
    return {
        "seq": entry.seq,
        "who": entry.event.who,
        "at": entry.event.at,
        "kind": action.kind,
        "says": entry.says,
        "problem": entry.problem,
        "counts": True if isinstance(action, Undo | Redo) else room.desk.counts(entry.seq),
        "steers": steers,
        "about": [{"id": id, "name": state.intents[id].name} for id in about[:3]],
    }
