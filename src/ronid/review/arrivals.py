"""When utterances and intents came to a run, so that decisions stay with what they were about.

Rows and intents are numbered. An update that is undone frees its numbers, and the next update gives
them to others: what was decided before these came cannot be about them.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from ronid.review.events import Event, Learn, Part
from ronid.review.problems import NotApplicable


@dataclass(frozen=True)
class Arrival:
    """An update of the run.

    Args:
        when: When it was made, ISO 8601.
        rows: Utterances that were there before.
        intents: Intents that were there before, as the review numbers them.
    """

    when: str
    rows: int
    intents: int


def arrivals_of(updates: Iterable[dict[str, Any]], intents: int) -> tuple[Arrival, ...]:
    """Return the updates that a run remembers, oldest first.

    Args:
        updates: What `run.json` tells of its versions; training on brings nothing.
        intents: How many intents the fit found.
    """
    found = []
    for update in updates:
        if update.get("kind") != "learn":
            found.append(Arrival(update["when"], update["old"], intents))
            intents += len(update["new"])
    return tuple(found)


def check_arrived(arrivals: Sequence[Arrival], event: Event) -> None:
    """Refuse what is about utterances or intents that came after it.

    Args:
        arrivals: Updates of the run, oldest first.
        event: What was decided. A training is of a version, and is judged by that.

    Raises:
        NotApplicable: It is about what an update had brought that was undone since.
    """
    at = datetime.fromisoformat(event.at)
    later = (each for each in arrivals if datetime.fromisoformat(each.when) > at)
    first = next(later, None)
    if first is None or isinstance(event.action, Learn):
        return
    rows, intents = _mentioned(event.action)
    if max(rows, default=-1) >= first.rows or max(intents, default=-1) >= first.intents:
        raise NotApplicable("it is about what an update had brought that was undone since")


def _mentioned(action: Any) -> tuple[list[int], list[int]]:
    """Return the rows and the numbers of discovered intents that an action names."""
    rows: list[int] = []
    intents: list[int] = []
    for name, value in _values(action):
        if name == "rows":
            rows += value
        elif name in ("intent", "into", "intents"):
            ids = (value,) if isinstance(value, str) else value
            intents += [int(id[1:]) for id in ids if id[0] == "i" and id[1:].isdecimal()]
    return rows, intents


def _values(action: Any) -> Iterator[tuple[str, Any]]:
    """Yield the fields of an action and of its parts."""
    for field in fields(action):
        value = getattr(action, field.name)
        if field.name == "parts":
            for part in value:
                assert isinstance(part, Part)
                yield from _values(part)
        else:
            yield field.name, value
