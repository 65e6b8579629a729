"""Actions and events as plain values, for log and pages, and back with every value checked."""

import types
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar, get_args, get_origin, get_type_hints

from ronid.errors import UsageError
from ronid.review.events import ACTIONS, Action, Event, Part, Shift


def action_to_json(action: Action | Part | Shift) -> dict[str, Any]:
    """Return plain values; the kind comes first."""
    values: dict[str, Any] = {} if isinstance(action, Part | Shift) else {"kind": action.kind}
    for field in fields(action):
        value = getattr(action, field.name)
        if field.name in ("parts", "shifts"):
            value = [action_to_json(part) for part in value]
        values[field.name] = list(value) if isinstance(value, tuple) else value
    return values


def action_from_json(values: Mapping[str, Any]) -> Action:
    """Return the action that plain values describe.

    Raises:
        UsageError: The kind is unknown, or a value is missing, of another type, or one too many.
    """
    kind = values.get("kind") if isinstance(values, Mapping) else None
    if not isinstance(kind, str) or kind not in ACTIONS:
        raise UsageError(f"'{str(kind)[:80]}' is no action; there are {', '.join(ACTIONS)}")
    action: Action = _made(ACTIONS[kind], {k: v for k, v in values.items() if k != "kind"}, kind)
    return action


def _made(of: type[Any], values: Mapping[str, Any], kind: str) -> Any:
    hints = {k: v for k, v in get_type_hints(of).items() if get_origin(v) is not ClassVar}
    if set(values) != set(hints):
        wrong = ", ".join(sorted(set(values) ^ set(hints)))
        raise UsageError(f"action '{kind}' has missing or unknown values: {wrong[:200]}")
    return of(**{name: _typed(values[name], hint, kind) for name, hint in hints.items()})


def _typed(value: Any, hint: Any, kind: str) -> Any:
    if isinstance(hint, types.GenericAlias) and isinstance(value, list | tuple):
        return tuple(_typed(item, get_args(hint)[0], kind) for item in value)
    if hint in (Part, Shift) and isinstance(value, Mapping):
        return _made(hint, value, kind)
    if hint in (int, str) and type(value) is hint:
        return value
    raise UsageError(f"action '{kind}' has a value of the wrong type: {str(value)[:80]}")


def event_to_json(event: Event) -> dict[str, Any]:
    """Return plain values."""
    return {
        "who": event.who,
        "at": event.at,
        "key": event.key,
        "seen": event.seen,
        "action": action_to_json(event.action),
    }


def event_from_json(values: Mapping[str, Any]) -> Event:
    """Return the event that plain values describe.

    Raises:
        UsageError: It is not one.
    """
    try:
        return Event(
            action_from_json(values["action"]),
            str(values["who"]),
            str(values["key"]),
            int(values["seen"]),
            str(values["at"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"this is no event: {error}") from None
