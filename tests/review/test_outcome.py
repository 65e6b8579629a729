from pathlib import Path

import numpy as np
import pytest

from ronid.errors import UsageError
from ronid.review.desk import Desk
from ronid.review.events import Accept, KeepApart, Merge, Move, OutOfScope, Part, Split, Undo
from ronid.review.outcome import outcome
from ronid.review.store import store_for
from tests.helpers.review_base import make_base, random_action


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(make_base(), store_for(tmp_path / "review.sqlite", "made"))


def test_labels_say_where_they_come_from(desk: Desk) -> None:
    desk.act(Accept("i1"), "Ann", 0)
    desk.act(Move((2,), "i3"), "Bob", 1)
    desk.act(OutOfScope((6,)), "Ann", 2)
    found = outcome(desk)
    assert found.version == 3
    rows = {label.row: label for label in found.labels}
    assert (rows[0].intent, rows[0].source, rows[0].event) == ("i0", "given", 0)
    assert (rows[4].intent, rows[4].source) == ("i0", "given")
    assert (rows[1].intent, rows[1].source, rows[1].event, rows[1].who) == (
        "i1",
        "person",
        1,
        "Ann",
    )
    assert (rows[2].intent, rows[2].source, rows[2].who) == ("i3", "person", "Bob")
    assert (rows[6].intent, rows[6].source, rows[6].event) == (None, "person", 3)
    assert (rows[3].intent, rows[3].source, rows[3].event) == ("i3", "discovered", 0)
    assert [intent.id for intent in found.accepted()] == ["i1"]
    assert rows[1].at.startswith("20")


def test_what_was_taken_back_decides_nothing(desk: Desk) -> None:
    desk.act(Move((2,), "i3"), "Bob", 0)
    desk.act(Undo(1), "Bob", 1)
    label = outcome(desk).labels[2]
    assert (label.intent, label.source, label.event) == ("i2", "discovered", 0)


def test_parts_that_nobody_accepted_are_not_decided_by_a_person(desk: Desk) -> None:
    desk.act(Split("i1", (Part("a", "A", (1, 5)),)), "Ann", 0)
    desk.act(Merge(("i2", "i3"), "i2"), "Ann", 1)
    desk.act(KeepApart(("i0", "i1")), "Ann", 2)
    found = outcome(desk)
    assert (found.labels[1].intent, found.labels[1].source) == ("a", "discovered")
    assert (found.labels[1].event, found.labels[3].event) == (1, 2)
    assert found.apart == {frozenset(("i0", "i1"))}


def test_the_outcome_is_the_state(desk: Desk) -> None:
    rng = np.random.default_rng(3)
    for number in range(120):
        try:
            desk.act(random_action(desk.view().state, rng, number), "Ann", desk.version)
        except UsageError:
            continue
        if rng.random() < 0.2:
            last = desk.undoable("Ann")
            assert last is not None
            desk.act(Undo(last.seq), "Ann", desk.version)
    state, found = desk.view().state, outcome(desk)
    assert [label.intent for label in found.labels] == [state.of_row(r) for r in range(24)]
    assert found.intents == tuple(state.intents.values())
