"""Decisions stay with what they were about when numbers are given out anew."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from ronid.review.arrivals import Arrival, arrivals_of, check_arrived
from ronid.review.events import (
    Accept,
    Action,
    Confirm,
    Gather,
    KeepApart,
    Learn,
    Merge,
    Move,
    Part,
    Recorded,
    Redo,
    Shift,
    Split,
    Undo,
    make_event,
)
from ronid.review.problems import NotApplicable
from ronid.review.state import start
from ronid.review.timeline import Timeline
from tests.helpers.review_base import make_base

CAME = Arrival("2026-03-01T12:00:00+00:00", rows=20, intents=3)
"""The last 4 of 24 utterances and the last of 4 intents came then."""


def line_of(actions: Sequence[Action], at: str, arrivals: Sequence[Arrival] = (CAME,)) -> Timeline:
    line = Timeline(start(make_base()), arrivals)
    for seq, action in enumerate(actions, 1):
        line.advance(Recorded(seq, replace(make_event(action, "Ann", seq - 1), at=at)))
    return line


ABOUT_NEW = [
    Accept("i3"),
    Confirm((2, 20)),
    Move((21,), "i2"),
    Move((1,), "i3"),
    Gather((1, 23), "n1", "made"),
    Merge(("i1", "i3"), "i1"),
    KeepApart(("i1", "i3")),
    Split("i1", (Part("n1", "made", (1, 21)),)),
]
ABOUT_OLD = [
    Accept("i2"),
    Confirm((2, 19)),
    Gather((1, 19), "n1", "made"),
    Merge(("i1", "i2"), "i1"),
    Split("i1", (Part("n1", "made", (1, 17)),)),
]


@pytest.mark.parametrize("action", ABOUT_NEW, ids=lambda action: action.kind)
def test_what_was_decided_before_something_came_is_not_about_it(action: Action) -> None:
    line = line_of([action], "2026-03-01T11:59:59.999+00:00")
    assert line.entries[0].problem == "it is about what an update had brought that was undone since"
    assert not line.counting
    assert line.state is line.first


@pytest.mark.parametrize("action", [*ABOUT_NEW, *ABOUT_OLD], ids=lambda action: action.kind)
def test_what_was_decided_since_counts(action: Action) -> None:
    line = line_of([action], "2026-03-01T12:00:00.500+00:00")
    assert not line.entries[0].problem
    assert line.counting == {1}


@pytest.mark.parametrize("action", ABOUT_OLD, ids=lambda action: action.kind)
def test_what_was_there_before_keeps_its_decisions(action: Action) -> None:
    line = line_of([action], "2026-02-01T00:00:00.000+00:00")
    assert not line.entries[0].problem


def test_it_cannot_be_done_again_either() -> None:
    line = line_of([Accept("i3"), Undo(1), Redo(1)], "2026-02-01T00:00:00.000+00:00")
    assert not line.counting


def test_a_decision_must_fit_the_first_update_that_came_after_it() -> None:
    second = Arrival("2026-04-01T12:00:00+00:00", rows=22, intents=4)
    early, between = "2026-02-01T00:00:00.000+00:00", "2026-03-15T00:00:00.000+00:00"
    for action, at, counts in [
        (Confirm((19,)), early, True),
        (Confirm((21,)), early, False),
        (Confirm((21,)), between, True),
        (Confirm((22,)), between, False),
        (Accept("i3"), between, True),
    ]:
        line = line_of([action], at, (CAME, second))
        assert (line.counting == {1}) is counts


def test_a_training_is_judged_by_its_version_and_ids_of_people_by_what_they_rest_on() -> None:
    early = "2026-02-01T00:00:00.000+00:00"
    learnt = make_event(Learn(1, (Shift("i3", "i1", (21,)),)), "Ann", 0)
    check_arrived((CAME,), replace(learnt, at=early))
    line = line_of([Gather((22,), "n1", "made"), Accept("n1")], early)
    assert [bool(entry.problem) for entry in line.entries] == [True, True]


def test_a_plan_for_what_came_later_by_the_clock_is_refused_at_once() -> None:
    line = line_of([], "")
    event = make_event(Accept("i3"), "Ann", 0)
    assert line.plan(event).added
    with pytest.raises(NotApplicable, match="undone since"):
        line.plan(replace(event, at="2026-02-01T00:00:00.000+00:00"))


def test_updates_are_counted_from_what_the_fit_found_and_trainings_bring_nothing() -> None:
    updates = [
        {"when": "a", "old": 100, "new": [{}, {}]},
        {"when": "b", "kind": "learn"},
        {"when": "c", "old": 130, "new": []},
        {"when": "d", "old": 140, "new": [{}]},
    ]
    assert arrivals_of(updates, 10) == (
        Arrival("a", 100, 10),
        Arrival("c", 130, 12),
        Arrival("d", 140, 12),
    )
