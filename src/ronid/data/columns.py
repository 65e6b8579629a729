"""Which column holds what: a table as the readers see it, and the choice of its columns."""

import difflib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ronid.errors import DataError

ROLES = ("text", "label", "truth", "id")

TEXT_NAMES = (
    "text", "utterance", "query", "message", "sentence", "question", "body", "content",
    "utterances", "texts", "phrase", "request", "input", "prompt", "title", "comment",
)  # fmt: skip
LABEL_NAMES = (
    "label", "intent", "category", "class", "labels", "intents", "topic", "tag", "target",
)  # fmt: skip


@dataclass(frozen=True)
class Table:
    """Named columns whose rows are read when asked for, so that a large file is never held.

    Args:
        names: Column names in their order.
        rows: Function from column positions to rows that hold just those columns.
        messages: Choices made while opening, one line each.
    """

    names: tuple[str, ...]
    rows: Callable[[Sequence[int]], Iterator[Sequence[Any]]]
    messages: tuple[str, ...] = ()


@dataclass(frozen=True)
class Wanted:
    """Column names given by the user; None leaves text and label to a guess.

    An empty `label` says that the labels, if any, are not to be used.
    """

    text: str | None = None
    label: str | None = None
    truth: str | None = None
    id: str | None = None


@dataclass(frozen=True)
class Columns:
    """The chosen columns.

    Args:
        positions: Column position of each role that was found, the text first.
        messages: What was guessed, and how to say otherwise.
    """

    positions: dict[str, int]
    messages: tuple[str, ...] = field(default=())


def choose_columns(table: Table, wanted: Wanted, origin: str) -> Columns:
    """Find the column of each role by the user's names, or by the usual ones.

    Args:
        table: The table with its column names.
        wanted: Names given by the user.
        origin: What messages call the source.

    Returns:
        The positions, and a message per guess.

    Raises:
        DataError: A named column does not exist or is named twice, or no column looks like text.
    """
    found: dict[str, int] = {}
    messages: list[str] = []
    for role in ROLES:
        name = getattr(wanted, role)
        if name:
            found[role] = _named(table.names, name, role, origin)
    _check_apart(table.names, found)
    if "text" not in found:
        found["text"] = _guess_text(table.names, set(found.values()), origin)
        if len(table.names) > 1:
            messages.append(_guessed("text", table.names[found["text"]], ""))
    if "label" not in found and wanted.label is None:
        guess = _guess(table.names, LABEL_NAMES, set(found.values()))
        if guess is not None:
            found["label"] = guess
            messages.append(_guessed("label", table.names[guess], ', or --label "" for none'))
    return Columns({role: found[role] for role in ROLES if role in found}, tuple(messages))


def is_text_header(cell: str, wanted: str | None) -> bool:
    """Whether the first cell of a one-column file is a header, not an utterance.

    Only a whole usual name counts: "message" is a header, "I got a message" is not.
    """
    return cell.strip() == wanted or (wanted is None and _plain(cell) in TEXT_NAMES)


def is_usual(name: str) -> bool:
    """Whether a column name is one that is guessed to hold the text or the label."""
    return _plain(name) in TEXT_NAMES or _plain(name) in LABEL_NAMES


def _named(names: Sequence[str], name: str, role: str, origin: str) -> int:
    if name in names:
        return names.index(name)
    close = difflib.get_close_matches(name.lower(), [other.lower() for other in names], n=1)
    hint = ""
    if close:
        meant = next(other for other in names if other.lower() == close[0])
        hint = f"; did you mean {meant!r}?"
    raise DataError(
        f"{origin} has no column {name!r} (asked for by --{role}); its columns are: "
        f"{_listed(names)}{hint}"
    )


def _check_apart(names: Sequence[str], found: dict[str, int]) -> None:
    """Refuse a column in two roles; a truth that is the label says nothing of other rows."""
    first: dict[int, str] = {}
    for role, position in found.items():
        other = first.setdefault(position, role)
        if other != role:
            raise DataError(
                f"column {names[position]!r} is asked for by both --{other} and --{role}; "
                "give each a column of its own"
            )


def _guess_text(names: Sequence[str], taken: set[int], origin: str) -> int:
    if len(names) == 1 and not taken:
        return 0
    guess = _guess(names, TEXT_NAMES, taken)
    if guess is None:
        raise DataError(
            f"{origin}: no column looks like text; its columns are: {_listed(names)}; "
            "name the one to read with --text"
        )
    return guess


def _guess(names: Sequence[str], usual: Sequence[str], taken: set[int]) -> int | None:
    """Position of the first usual name, else of the only column with a usual word in its name."""
    free = {p: _plain(name) for p, name in enumerate(names) if p not in taken}
    for name in usual:
        for position, plain in free.items():
            if plain == name:
                return position
    partly = [p for p, plain in free.items() if set(plain.split("_")) & set(usual)]
    return partly[0] if len(partly) == 1 else None


def _plain(name: str) -> str:
    """`User Message` and `userMessage` both as `user_message`."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.strip())
    return re.sub(r"[\W_]+", "_", spaced).strip("_").lower()


def _guessed(role: str, name: str, otherwise: str) -> str:
    return f"column {name!r} is read as the {role}; to use another, pass --{role} NAME{otherwise}"


def _listed(names: Sequence[str], limit: int = 20) -> str:
    shown = ", ".join(map(repr, names[:limit]))
    return shown + (f" and {len(names) - limit} more" if len(names) > limit else "")
