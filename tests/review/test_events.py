import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronid.errors import UsageError
from ronid.review.events import (
    ACTIONS,
    Accept,
    Action,
    Describe,
    Merge,
    Move,
    Part,
    Redo,
    Rename,
    Return,
    Split,
    Undo,
    cleaned,
    make_event,
)
from ronid.review.state import start
from ronid.review.wire import action_from_json, action_to_json, event_from_json, event_to_json
from tests.helpers.review_base import make_base, random_action


@given(st.integers(0, 10_000))
def test_actions_survive_json(seed: int) -> None:
    rng = np.random.default_rng(seed)
    action = random_action(start(make_base()), rng, seed)
    assert action_from_json(json.loads(json.dumps(action_to_json(action)))) == action


@pytest.mark.parametrize("action", [Undo(3), Redo(3), Return(0)])
def test_events_survive_json(action: Action) -> None:
    event = make_event(action, "Ann", 7)
    assert event_from_json(json.loads(json.dumps(event_to_json(event)))) == event


def test_every_kind_has_a_name_of_its_own() -> None:
    assert len(ACTIONS) == 19
    assert all(of.kind == kind for kind, of in ACTIONS.items())


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"kind": "drop_table"},
        {"kind": ["accept"]},
        {"kind": "accept"},
        {"kind": "accept", "intent": 3},
        {"kind": "accept", "intent": "i1", "more": 1},
        {"kind": "move", "rows": "12", "intent": "i1"},
        {"kind": "move", "rows": [1.5], "intent": "i1"},
        {"kind": "move", "rows": [True], "intent": "i1"},
        {"kind": "split", "intent": "i1", "parts": [{"id": "a"}]},
        {"kind": "undo", "target": "1"},
    ],
)
def test_malformed_actions_are_refused(values: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        action_from_json(values)


@pytest.mark.parametrize(
    "action",
    [
        Accept("../../etc/passwd"),
        Accept(""),
        Rename("i1", "  "),
        Rename("i1", "x" * 201),
        Rename("i1", "nul\x00"),
        Rename("i1", "lone \ud800"),
        Describe("i1", "x" * 2001),
        Move((), "i1"),
        Move((-1,), "i1"),
        Merge(("i1",), "i1"),
        Merge(("i1", "i1"), "i1"),
        Split("i1", ()),
        Split("i1", (Part("a", "a", (1,)), Part("b", "b", (1, 2)))),
    ],
)
def test_impossible_actions_are_refused(action: Action) -> None:
    with pytest.raises(UsageError):
        make_event(action, "Ann", 0)


@pytest.mark.parametrize(("who", "seen", "key"), [("", 0, None), ("A", -1, None), ("A", 0, "x y")])
def test_impossible_circumstances_are_refused(who: str, seen: int, key: str | None) -> None:
    with pytest.raises(UsageError):
        make_event(Accept("i1"), who, seen, key)


def test_names_and_rows_are_brought_into_one_form() -> None:
    assert cleaned(Rename("i1", "  cafe\u0301  menu\n")) == Rename("i1", "caf\u00e9 menu")
    assert cleaned(Move((3, 1, 3), "i1")) == Move((1, 3), "i1")
