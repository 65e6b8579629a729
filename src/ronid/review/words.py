"""An action in words, with the names that intents had when it happened."""

from collections.abc import Callable
from typing import Any

from ronid.review.events import (
    Accept,
    Action,
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
    Redo,
    Reject,
    Rename,
    Reopen,
    Return,
    Split,
    Undo,
    Unlock,
)
from ronid.review.state import State

Named = Callable[[str], str]


def say(state: State, action: Action) -> str:
    """Return what an action does, as the rest of a sentence that begins with who did it.

    Args:
        state: The state before it.
        action: What is done.
    """

    def name(id: str) -> str:
        intent = state.intents.get(id)
        return f"“{intent.name}”" if intent else "an intent that is gone"

    return _WORDS[type(action)](action, name)


def count_rows(rows: int) -> str:
    """Return a number of utterances in words."""
    return "1 utterance" if rows == 1 else f"{rows:,} utterances"


def _merged(action: Merge, name: Named) -> str:
    others = ", ".join(name(id) for id in action.intents if id != action.into)
    return f"merged {others} into {name(action.into)}"


def _split(action: Split, name: Named) -> str:
    parts = ", ".join(f"“{part.name}” ({len(part.rows)})" for part in action.parts)
    return f"split {parts} off {name(action.intent)}"


def _learnt(action: Learn, name: Named) -> str:
    moved = sum(len(shift.rows) for shift in action.shifts)
    return f"trained on, to version {action.version} of the run: {count_rows(moved)} went elsewhere"


_WORDS: dict[type, Callable[[Any, Named], str]] = {
    Accept: lambda a, name: f"accepted {name(a.intent)}",
    Reject: lambda a, name: f"rejected {name(a.intent)}",
    Reopen: lambda a, name: f"reopened {name(a.intent)}",
    Lock: lambda a, name: f"locked {name(a.intent)}",
    Unlock: lambda a, name: f"unlocked {name(a.intent)}",
    Rename: lambda a, name: f"renamed {name(a.intent)} to “{a.name}”",
    Describe: lambda a, name: f"described {name(a.intent)}",
    Confirm: lambda a, name: f"confirmed {count_rows(len(a.rows))}",
    Move: lambda a, name: f"moved {count_rows(len(a.rows))} to {name(a.intent)}",
    OutOfScope: lambda a, name: f"marked {count_rows(len(a.rows))} as out of scope",
    Gather: lambda a, name: f"made “{a.name}” of {count_rows(len(a.rows))}",
    Split: _split,
    Merge: _merged,
    KeepApart: lambda a, name: f"kept {' and '.join(name(id) for id in a.intents)} apart",
    KeepWhole: lambda a, name: f"kept {name(a.intent)} whole",
    Learn: _learnt,
    Undo: lambda a, name: f"took back #{a.target}",
    Redo: lambda a, name: f"redid #{a.target}",
    Return: lambda a, name: f"returned to version {a.version}",
}
