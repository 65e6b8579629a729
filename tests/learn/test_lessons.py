"""Decisions as labels and constraints, against a naive reading of the log."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronid.errors import UsageError
from ronid.learn.decisions import walk
from ronid.learn.lessons import CENTRAL, Lessons, central_rows, numbered
from ronid.review.base import Base
from ronid.review.events import (
    Accept,
    Confirm,
    Gather,
    Lock,
    Merge,
    Move,
    OutOfScope,
    Part,
    Reject,
    Split,
)
from ronid.review.state import OUT, start
from tests.helpers.review_base import Review, make_base, random_action, review


def target(found: Lessons, row: int) -> str | None:
    number = int(found.targets[row])
    return None if number < 0 else found.ids[number]


def test_given_labels_come_first_and_everything_has_a_number() -> None:
    found = review().lessons()
    assert found.ids == ("i0", "i1", "i2", "i3")
    assert found.known == 1
    given = review().base.given
    assert (found.targets[given] == 0).all()
    assert (found.targets[~given] == -1).all()
    assert found.places.tolist() == [row % 4 for row in range(24)]


def test_moved_and_confirmed_utterances_are_labels_and_do_not_return() -> None:
    found = review(Move((1, 5), "i2"), Confirm((3,))).lessons()
    assert [target(found, row) for row in (1, 5, 3, 2)] == ["i2", "i2", "i3", None]
    banned = {(int(r), found.ids[i]) for r, i in found.forbidden}
    assert banned == {(1, "i1"), (5, "i1")}


def test_what_is_put_back_is_allowed_again() -> None:
    found = review(Move((1,), "i2"), Move((1,), "i1")).lessons()
    assert {(int(r), found.ids[i]) for r, i in found.forbidden} == {(1, "i2")}


def test_bans_follow_merges() -> None:
    found = review(Move((1,), "i3"), Merge(("i1", "i2"), "i2")).lessons()
    assert {(int(r), found.ids[i]) for r, i in found.forbidden} == {(1, "i2")}
    joined = review(Move((1,), "i2"), Merge(("i1", "i2"), "i2")).lessons()
    assert len(joined.forbidden) == 0


def test_of_an_accepted_intent_all_stay_and_the_central_ones_are_labels() -> None:
    made = review(Accept("i1"))
    found = made.lessons()
    own = found.ids.index("i1")
    rows = np.flatnonzero(np.arange(24) % 4 == 1)
    assert (found.fixed[rows] == own).all()
    assert (found.targets == own).sum() == int(np.ceil(CENTRAL * len(rows)))
    assert (found.fixed[found.targets >= 0] == found.targets[found.targets >= 0]).all()
    assert found.ids.index("i1") < found.known
    assert found.shares[own] == pytest.approx(6 / 24)
    assert np.isnan(found.shares[found.ids.index("i2")])


def test_merged_intents_are_one_and_split_ones_their_own() -> None:
    made = review(Merge(("i1", "i2"), "i2"), Split("i3", (Part("p", "part", (3, 7)),)))
    found = made.lessons()
    assert set(found.ids) == {"i0", "i2", "i3", "p"}
    assert (found.places == found.ids.index("i2")).sum() == 12
    assert np.flatnonzero(found.places == found.ids.index("p")).tolist() == [3, 7]
    assert found.shares[found.ids.index("i2")] == pytest.approx(0.5)


def test_rejected_intents_dissolve_and_what_is_out_of_scope_takes_no_part() -> None:
    found = review(Accept("i1"), Reject("i1"), OutOfScope((2, 6))).lessons()
    assert "i1" not in found.ids
    assert (found.places[1::4] == -1).all()
    assert (found.targets[1::4] == -1).all()
    assert np.flatnonzero(~found.taking_part).tolist() == [2, 6]
    problem = found.split([str(row) for row in range(24)])
    assert len(problem) == 22
    assert "2" not in problem.texts


def test_locked_intents_are_closed_and_all_theirs_are_labels() -> None:
    found = review(Lock("i2")).lessons()
    own = found.ids.index("i2")
    assert found.closed == (own,)
    assert (found.targets[2::4] == own).all()


def test_nothing_left_is_refused() -> None:
    made = review(*(Reject(f"i{k}") for k in range(4)))
    with pytest.raises(UsageError, match="no intent is left"):
        made.lessons()


def test_without_vectors_the_surest_are_central() -> None:
    made = review(Accept("i1"))
    base = Base(**{**made.base.__dict__, "unit": None})
    found = np.flatnonzero(central_rows(base, made.line.state, 1 / 6))
    assert found.tolist() == [20, 21, 22, 23]


def naive_refused(made: Review) -> set[tuple[int, str]]:
    """Read the log row by row: what was taken out and not put back, under its name of now."""
    state = made.line.first
    found: dict[int, list[str]] = {}
    from ronid.review.apply import apply

    for entry in made.acts:
        action: Any = entry.event.action
        after = apply(state, action, "Ann")
        if isinstance(action, Move | OutOfScope | Gather):
            for row in action.rows:
                left, to = state.of_row(row), after.of_row(row)
                bans = found.setdefault(row, [])
                if left is not None and left != to:
                    bans.append(left)
                found[row] = [ban for ban in bans if ban != to]
        state = after
    now = set()
    for row, bans in found.items():
        for each in bans:
            ban = each
            while ban in state.gone:
                ban = state.gone[ban]
            intent = state.intents.get(ban)
            if intent and intent.status != "rejected" and state.of_row(row) != ban:
                now.add((row, ban))
    return now


@given(st.integers(0, 100_000), st.integers(1, 25))
def test_lessons_of_random_reviews_agree_with_a_naive_reading(seed: int, count: int) -> None:
    made, rng = Review(), np.random.default_rng(seed)
    for number in range(count):
        try:
            made.do(random_action(made.line.state, rng, number))
        except UsageError:
            continue
    state = made.line.state
    try:
        found = made.lessons()
    except UsageError:
        assert all(i.status == "rejected" for i in state.intents.values())
        return
    assert made.said.state.places.tolist() == state.places.tolist()
    living = [i for i in state.intents.values() if i.status != "rejected"]
    assert set(found.ids) <= {i.id for i in living}
    bans = {(int(r), found.ids[i]) for r, i in found.forbidden}
    assert bans == {(r, id) for r, id in naive_refused(made) if id in found.ids}
    for row in range(24):
        id = state.of_row(row)
        intent = state.intents[id] if id else None
        assert bool(found.taking_part[row]) == (state.places[row] != OUT)
        usable = intent is not None and intent.status != "rejected"
        settled = state.confirmed[row] or made.base.given[row] or (intent and intent.locked)
        fixed = found.ids[found.fixed[row]] if found.fixed[row] >= 0 else None
        assert fixed == (id if usable and settled else None)
        assert target(found, row) in (None, fixed)
    has = np.bincount(found.targets[found.targets >= 0], minlength=len(found.ids)) > 0
    assert has.tolist() == [k < found.known for k in range(len(found.ids))]


@given(st.integers(0, 8), st.sets(st.integers(0, 7)), st.integers(0, 5))
def test_whoever_was_there_keeps_the_number(n: int, gone: set[int], made: int) -> None:
    before = [f"i{k}" for k in range(n)]
    living = [id for k, id in enumerate(before) if k not in gone] + [f"n{k}" for k in range(made)]
    after = numbered(before, living)
    assert sorted(after) == sorted(living)
    moved = [id for k, id in enumerate(before) if id in living and after.index(id) != k]
    assert len(moved) <= max(0, len(gone & set(range(n))) - made)


def test_acts_that_the_run_leaves_no_room_for_are_passed_over() -> None:
    made = review(Gather((1, 2), "g", "gathered"))
    short = make_base(2)
    said = walk(start(short), made.acts)
    assert "g" not in said.state.intents
    assert not said.meant.any()
