"""Before and after: shifts, sizes, and the verdict on every kind of decision."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronid.errors import UsageError
from ronid.learn.changes import intent_changes, row_changes, shifts_of, verdicts_of
from ronid.review.apply import apply
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
    Part,
    Reject,
    Rename,
    Reopen,
    Shift,
    Split,
    Unlock,
)
from ronid.review.state import OUT, State
from tests.helpers.review_base import Review, random_action, review


def trained(made: Review, **rows: int) -> State:
    """Return the state of which some rows (`r1=slot`) are elsewhere, whatever people said."""
    places = made.line.state.places.copy()
    for name, slot in rows.items():
        places[int(name[1:])] = slot
    return replace(made.line.state, places=places)


def verdict(made: Review, after: State | None = None) -> tuple[str, str]:
    found = verdicts_of(made.acts, made.line.state, after or made.line.state)
    first = min(found, key=lambda each: each.seq)
    return first.status, first.why


@pytest.mark.parametrize(
    "action",
    [
        Accept("i1"), Rename("i1", "better"), Describe("i1", "words"), Confirm((1, 5)),
        Move((1, 5), "i2"), OutOfScope((1,)), Gather((1, 2), "g", "gathered"),
        Split("i1", (Part("p", "part", (1, 5)),)), Merge(("i1", "i2"), "i2"),
        KeepApart(("i1", "i2")), KeepWhole("i1"), Lock("i1"),
    ],
    ids=lambda action: action.kind,
)  # fmt: skip
def test_a_decision_that_nothing_touched_has_held(action: Action) -> None:
    assert verdict(review(action))[0] == "held"


@pytest.mark.parametrize(
    ("action", "rows", "why"),
    [
        (Move((1, 5), "i2"), {"r1": 3}, "1 utterance went elsewhere, such as to “intent 3”"),
        (Confirm((1, 5)), {"r1": 3, "r5": 3}, "2 utterances went elsewhere"),
        (Accept("i1"), {"r1": 3}, "1 utterance of it went elsewhere"),
        (OutOfScope((1,)), {"r1": 3}, "such as to “intent 3”"),
        (Lock("i1"), {"r2": 1}, "1 utterance came or went"),
        (Merge(("i1", "i2"), "i2"), {f"r{row}": 3 for row in (1, 5, 9, 13, 17, 21, 2)}, "7 of 12"),
        (Reject("i1"), {}, "6 utterances found no other intent"),
        (Split("i1", (Part("p", "part", (1, 5, 9)),)), {"r1": 1, "r5": 1}, "1 of 3 utterances"),
        (Gather((1, 2), "g", "gathered"), {"r1": 1, "r2": 2}, "0 of 2 utterances"),
    ],
    ids=lambda value: getattr(value, "kind", None),
)
def test_a_decision_that_training_broke_is_told(
    action: Action, rows: dict[str, int], why: str
) -> None:
    made = review(action)
    status, told = verdict(made, trained(made, **rows))
    assert status == "not held"
    assert why in told


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (Move((1,), "i2"), Move((1,), "i3")),
        (Move((1,), "i2"), Reject("i2")),
        (Accept("i1"), Reopen("i1")),
        (Reject("i1"), Reopen("i1")),
        (Lock("i1"), Unlock("i1")),
        (Rename("i1", "a"), Rename("i1", "b")),
        (KeepApart(("i1", "i2")), Merge(("i1", "i2"), "i1")),
        (Gather((1, 2), "g", "gathered"), Merge(("g", "i3"), "i3")),
        (OutOfScope((1,)), Move((1,), "i3")),
    ],
    ids=lambda action: action.kind,
)
def test_what_people_decided_otherwise_later_is_overtaken(first: Action, then: Action) -> None:
    assert verdict(review(first, then))[0] == "overtaken"


def test_moves_into_an_intent_that_was_merged_have_held() -> None:
    assert verdict(review(Move((1,), "i2"), Merge(("i2", "i3"), "i3")))[0] == "held"


@given(st.integers(0, 100_000), st.integers(0, 15))
def test_shifts_lead_where_training_sees_what_is_free(seed: int, count: int) -> None:
    made, rng = Review(), np.random.default_rng(seed)
    for number in range(count):
        try:
            made.do(random_action(made.line.state, rng, number))
        except UsageError:
            continue
    before = made.line.state
    living = [i.slot for i in before.intents.values() if i.status != "rejected" and not i.locked]
    if not living:
        return
    free = np.array(before.places)
    frozen = [i.slot for i in before.intents.values() if i.locked]
    wish = np.where(np.isin(free, frozen), free, rng.choice(living, len(free)))
    shifts = shifts_of(before, wish)
    after = apply(before, Learn(1, shifts), "ronid")
    stays = before.confirmed | (before.places == OUT) | np.isin(before.places, frozen)
    assert after.places.tolist() == np.where(stays, before.places, wish).tolist()
    changes = intent_changes(before, after)
    for each in changes:
        assert each.after == each.before + each.came - each.went
        assert each.came or each.went
    assert sum(c.came for c in changes) == int((before.places != after.places).sum())
    told = row_changes(before, after, made.base.texts, made.base.confidence)
    assert len(told) == min(50, int((before.places != after.places).sum()))
    assert all(a.confidence >= b.confidence for a, b in zip(told, told[1:], strict=False))


def test_what_people_said_while_it_trained_counts_more() -> None:
    made = review(Move((1,), "i3"), Reject("i2"), Lock("i0"))
    learn = Learn(1, (Shift("i1", "i2", (1, 5)), Shift("i1", "i0", (9,)), Shift("i1", "i3", (13,)),
                      Shift("gone", "i3", (17,))))  # fmt: skip
    after = apply(made.line.state, learn, "ronid")
    assert after.of_row(1) == "i3"  # moved by a person since
    assert after.of_row(5) == "i1"  # its target was rejected since
    assert after.of_row(9) == "i1"  # its target was locked since
    assert after.of_row(13) == "i3"
    assert after.intents["i3"].changed == 2
