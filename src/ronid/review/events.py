"""What people can do in a review: one small frozen class per action.

An event is an action with its circumstances: who, when, the version the person saw, and a key made
by the client, by which a retry after a lost answer is recognised.
"""

import re
import unicodedata
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, ClassVar, Union, get_args
from uuid import uuid4

from ronid.errors import UsageError

LONGEST_NAME = 200
LONGEST_DESCRIPTION = 2_000
LONGEST_WHO = 80
_ID = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_KEY = re.compile(r"[A-Za-z0-9_.-]{8,64}")


@dataclass(frozen=True)
class Accept:
    """The intent is right: its utterances of now are confirmed."""

    kind: ClassVar[str] = "accept"
    intent: str


@dataclass(frozen=True)
class Reject:
    """The intent is none: nothing of it is to be used."""

    kind: ClassVar[str] = "reject"
    intent: str


@dataclass(frozen=True)
class Reopen:
    """The intent is neither accepted nor rejected any more."""

    kind: ClassVar[str] = "reopen"
    intent: str


@dataclass(frozen=True)
class Lock:
    """Nothing about the intent may change."""

    kind: ClassVar[str] = "lock"
    intent: str


@dataclass(frozen=True)
class Unlock:
    """The intent may change again."""

    kind: ClassVar[str] = "unlock"
    intent: str


@dataclass(frozen=True)
class Rename:
    """The intent has another name."""

    kind: ClassVar[str] = "rename"
    intent: str
    name: str


@dataclass(frozen=True)
class Describe:
    """The intent is about something else than was said, or nothing was said."""

    kind: ClassVar[str] = "describe"
    intent: str
    description: str


@dataclass(frozen=True)
class Confirm:
    """These utterances are right where they are."""

    kind: ClassVar[str] = "confirm"
    rows: tuple[int, ...]


@dataclass(frozen=True)
class Move:
    """These utterances belong to that intent."""

    kind: ClassVar[str] = "move"
    rows: tuple[int, ...]
    intent: str


@dataclass(frozen=True)
class OutOfScope:
    """These utterances belong to no intent."""

    kind: ClassVar[str] = "out_of_scope"
    rows: tuple[int, ...]


@dataclass(frozen=True)
class Gather:
    """These utterances, wherever they are, make a new intent."""

    kind: ClassVar[str] = "gather"
    rows: tuple[int, ...]
    id: str
    name: str


@dataclass(frozen=True)
class Part:
    """One part of a split: the utterances that leave, and the new intent they make."""

    id: str
    name: str
    rows: tuple[int, ...]


@dataclass(frozen=True)
class Split:
    """Parts of an intent become intents of their own; what is in no part stays."""

    kind: ClassVar[str] = "split"
    intent: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Merge:
    """Intents become one of them."""

    kind: ClassVar[str] = "merge"
    intents: tuple[str, ...]
    into: str


@dataclass(frozen=True)
class KeepApart:
    """Two intents are not the same, whatever is suggested."""

    kind: ClassVar[str] = "keep_apart"
    intents: tuple[str, ...]


@dataclass(frozen=True)
class KeepWhole:
    """The intent is one, whatever is suggested."""

    kind: ClassVar[str] = "keep_whole"
    intent: str


@dataclass(frozen=True)
class Shift:
    """Utterances that training on took from one intent to another."""

    source: str
    into: str
    rows: tuple[int, ...]


@dataclass(frozen=True)
class Learn:
    """The model was trained on, and sees some utterances elsewhere than before.

    Args:
        version: Version of the run that it made.
        shifts: Utterances that went elsewhere.
    """

    kind: ClassVar[str] = "learn"
    version: int
    shifts: tuple[Shift, ...]


@dataclass(frozen=True)
class Undo:
    """The event of that number is taken back."""

    kind: ClassVar[str] = "undo"
    target: int


@dataclass(frozen=True)
class Redo:
    """The event of that number, taken back before, counts again."""

    kind: ClassVar[str] = "redo"
    target: int


@dataclass(frozen=True)
class Return:
    """Everything is as it was at that version."""

    kind: ClassVar[str] = "return"
    version: int


Act = Union[  # noqa: UP007 - read by `get_args` below
    Accept,
    Reject,
    Reopen,
    Lock,
    Unlock,
    Rename,
    Describe,
    Confirm,
    Move,
    OutOfScope,
    Gather,
    Split,
    Merge,
    KeepApart,
    KeepWhole,
    Learn,
]
"""What changes intents or utterances; `Undo`, `Redo` and `Return` decide which acts count."""

Action = Act | Undo | Redo | Return
ACTIONS: dict[str, type[Any]] = {each.kind: each for each in (*get_args(Act), Undo, Redo, Return)}


@dataclass(frozen=True)
class Event:
    """An action and its circumstances.

    Args:
        action: What is done.
        who: Name of the person.
        key: Made by the client, unique; the same key again is the same event again.
        seen: Version the person looked at.
        at: When, ISO 8601 in UTC.
    """

    action: Action
    who: str
    key: str
    seen: int
    at: str


@dataclass(frozen=True)
class Recorded:
    """An event and its number in the log; the version after it has the same number."""

    seq: int
    event: Event


def make_event(action: Action, who: str, seen: int, key: str | None = None) -> Event:
    """Return a checked event that happens now.

    Args:
        action: What is done.
        who: Name of the person.
        seen: Version the person looked at.
        key: Key of the client; a new one when None.

    Raises:
        UsageError: Something about it is impossible, whatever the state.
    """
    at = datetime.now(UTC).isoformat(timespec="milliseconds")
    event = Event(cleaned(action), clean_who(who), key or uuid4().hex, seen, at)
    if not _KEY.fullmatch(event.key):
        raise UsageError("the key of an event is 8 to 64 letters, digits, dots or dashes")
    if seen < 0:
        raise UsageError(f"version {seen} does not exist")
    return event


def new_id() -> str:
    """Return an id for an intent that a person makes."""
    return f"n{uuid4().hex[:12]}"


def clean_who(who: str) -> str:
    """Return a person's name as it is stored.

    Raises:
        UsageError: It is empty, too long, or has control characters.
    """
    return _text(who, "your name", LONGEST_WHO)


def cleaned(action: Action) -> Action:
    """Return the action with names and rows in one form.

    Raises:
        UsageError: A name is empty or too long, rows are missing or repeated, an id is malformed.
    """
    values: dict[str, Any] = {}
    for field in fields(action):
        value = getattr(action, field.name)
        if field.name in ("intent", "into", "id", "source"):
            _check_id(value)
        elif field.name == "intents":
            values["intents"] = _ids(value)
        elif field.name == "name":
            values["name"] = _text(value, "the name", LONGEST_NAME)
        elif field.name == "description":
            values["description"] = _description(value)
        elif field.name == "rows":
            values["rows"] = _rows(value)
        elif field.name in ("parts", "shifts"):
            values[field.name] = tuple(cleaned(part) for part in value)
    if isinstance(action, Split):
        _check_parts(values["parts"])
    return type(action)(**{f.name: getattr(action, f.name) for f in fields(action)} | values)


def _check_parts(parts: tuple[Part, ...]) -> None:
    if not parts:
        raise UsageError("a split needs a part that leaves")
    rows = [row for part in parts for row in part.rows]
    if len(set(rows)) != len(rows):
        raise UsageError("the parts of a split share utterances")


def _check_id(value: str) -> None:
    if not _ID.fullmatch(value):
        raise UsageError(f"'{value[:80]}' is not the id of an intent")


def _ids(values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        _check_id(value)
    if len(set(values)) < 2 or len(set(values)) != len(values):
        raise UsageError("two different intents at least are needed")
    return tuple(values)


def _rows(values: tuple[int, ...]) -> tuple[int, ...]:
    found = tuple(sorted({int(value) for value in values}))
    if not found:
        raise UsageError("no utterance is chosen")
    if found[0] < 0:
        raise UsageError(f"utterance {found[0]} does not exist")
    return found


def _text(value: str, what: str, longest: int) -> str:
    text = " ".join(unicodedata.normalize("NFC", value).split())
    if not text:
        raise UsageError(f"{what} is empty")
    if len(text) > longest:
        raise UsageError(f"{what} has {len(text)} characters; {longest} are allowed")
    if any(unicodedata.category(c) in ("Cc", "Cs") for c in text):
        raise UsageError(f"{what} has control characters")
    return text


def _description(value: str) -> str:
    text = unicodedata.normalize("NFC", value).strip()
    if len(text) > LONGEST_DESCRIPTION:
        raise UsageError(
            f"the description has {len(text)} characters; {LONGEST_DESCRIPTION} are allowed"
        )
    if any(unicodedata.category(c) in ("Cc", "Cs") and c not in "\n\t" for c in text):
        raise UsageError("the description has control characters")
    return text
