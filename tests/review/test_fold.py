"""The fold of a review: single actions, and random ones against invariants and a naive fold."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronid.errors import UsageError
from ronid.review.apply import apply
from ronid.review.events import (
    Accept,
    Action,
    Confirm,
    Gather,
    KeepApart,
    KeepWhole,
    Lock,
    Merge,
    Move,
    OutOfScope,
    Part,
    Recorded,
    Redo,
    Reject,
    Rename,
    Reopen,
    Return,
    Split,
    Undo,
    Unlock,
    make_event,
)
from ronid.review.problems import Conflict, NotApplicable
from ronid.review.state import OUT, State, same, start
from ronid.review.timeline import Timeline
from tests.helpers.review_base import make_base, random_action


def line() -> Timeline:
    return Timeline(start(make_base()))


def do(line: Timeline, action: Action, who: str = "Ann", seen: int | None = None) -> State:
    event = make_event(action, who, line.version if seen is None else seen)
    line.advance(Recorded(line.version + 1, event), line.plan(event))
    return line.state


def check_nothing_lost(state: State) -> None:
    """Every utterance is out of scope or in an intent that there is; names are unique."""
    slots = {intent.slot for intent in state.intents.values()}
    assert set(np.unique(state.places).tolist()) <= slots | {OUT}
    assert sum(state.size(id) for id in state.intents) + len(state.out_rows()) == 24
    assert len(state.names) == len(state.intents)
    assert all(state.slots[i.slot] == id == i.id for id, i in state.intents.items())
    assert not set(state.gone) & set(state.intents)


def test_accepting_confirms_what_is_there() -> None:
    state = do(line(), Accept("i1"))
    assert state.intents["i1"].status == "accepted"
    assert state.confirmed.tolist() == [row % 4 == 1 for row in range(24)]


def test_rejecting_and_reopening_keep_the_utterances() -> None:
    times = line()
    do(times, Accept("i1"))
    state = do(times, Reject("i1"))
    assert not state.confirmed.any()
    assert do(times, Reopen("i1")).intents["i1"].status == "open"
    assert times.state.size("i1") == 6


def test_moving_confirms_and_counts_towards_a_stale_name() -> None:
    state = do(line(), Move((1, 5), "i2"))
    assert state.of_row(1) == state.of_row(5) == "i2"
    assert state.confirmed[[1, 5]].all()
    assert state.stale("i1")
    assert state.stale("i2")
    assert not state.stale("i3")


def test_names_of_known_intents_are_never_stale_and_renaming_ends_it() -> None:
    times = line()
    assert not do(times, Move((1, 5), "i0")).stale("i0")
    assert times.state.stale("i1")
    assert not do(times, Rename("i1", "better")).stale("i1")
    assert times.state.intents["i1"].named_by == "person:Ann"


def test_splitting_leaves_the_rest_and_new_parts_are_open() -> None:
    times = line()
    do(times, Accept("i1"))
    state = do(times, Split("i1", (Part("a", "A", (1, 5)), Part("b", "B", (9,)))))
    assert [state.size(id) for id in ("i1", "a", "b")] == [3, 2, 1]
    assert state.intents["a"].origin == ("i1",)
    assert state.intents["i1"].status == state.intents["a"].status == "open"
    assert not state.confirmed[[1, 5, 9]].any()


def test_merging_keeps_the_known_one_known() -> None:
    state = do(line(), Merge(("i0", "i1"), "i1"))
    assert "i0" not in state.intents
    assert state.intents["i1"].known
    assert state.size("i1") == 12
    with pytest.raises(NotApplicable, match="was merged into 'intent 1'"):
        apply(state, Accept("i0"), "Ann")


def test_out_of_scope_and_back() -> None:
    times = line()
    assert do(times, OutOfScope((1, 2))).out_rows().tolist() == [1, 2]
    assert do(times, Move((1,), "i1")).out_rows().tolist() == [2]


def test_gathering_takes_from_many() -> None:
    state = do(line(), Gather((0, 1, 2), "g", "together"))
    assert state.rows("g").tolist() == [0, 1, 2]
    assert state.intents["g"].origin == ("i0", "i1", "i2")


@pytest.mark.parametrize(
    "action",
    [
        Accept("i1"),
        Reject("i1"),
        Rename("i1", "new"),
        Move((1,), "i2"),
        Move((2,), "i1"),
        OutOfScope((1,)),
        Split("i1", (Part("a", "A", (1,)),)),
        Merge(("i1", "i2"), "i2"),
        Gather((1, 2), "g", "G"),
        Lock("i1"),
    ],
)
def test_nothing_about_a_locked_intent_changes(action: Action) -> None:
    times = line()
    do(times, Lock("i1"))
    with pytest.raises(NotApplicable, match="locked"):
        do(times, action)
    do(times, Unlock("i1"))
    if not isinstance(action, Lock):
        do(times, action)


@pytest.mark.parametrize(
    ("action", "says"),
    [
        (Accept("nothing"), "does not exist"),
        (Rename("i1", "INTENT  2"), "name of another intent; merge them"),
        (Rename("i1", "intent 1"), "already"),
        (Move((1,), "i1"), "already"),
        (Move((24,), "i1"), "does not exist"),
        (Split("i1", (Part("a", "A", (2,)),)), "not in 'intent 1' any more"),
        (Split("i1", (Part("a", "A", (1, 5, 9, 13, 17, 21)),)), "nothing would be left"),
        (Split("i1", (Part("i2", "A", (1,)),)), "of this id"),
        (Split("i1", (Part("a", "intent 2", (1,)),)), "name of another"),
        (Merge(("i1", "i2"), "i3"), "one of those"),
        (Undo(1), "no event #1"),
        (Return(5), "version 5 does not exist"),
        (Return(0), "nothing would change"),
        (Reopen("i1"), "open already"),
    ],
)
def test_what_makes_no_sense_changes_nothing(action: Action, says: str) -> None:
    times = line()
    with pytest.raises(NotApplicable, match=says):
        do(times, action)
    assert same(times.state, times.first)


def test_suggestions_turned_down_are_kept() -> None:
    times = line()
    state = do(times, KeepApart(("i1", "i2")))
    state = do(times, KeepWhole("i3"))
    assert state.apart == {frozenset(("i1", "i2"))}
    assert state.whole == {"i3"}


def test_confirming_single_utterances() -> None:
    times = line()
    assert do(times, Confirm((1, 2))).confirmed.sum() == 2
    do(times, OutOfScope((3,)))
    with pytest.raises(NotApplicable, match="move it first"):
        do(times, Confirm((3,)))


def test_each_person_undoes_their_own() -> None:
    times = line()
    do(times, Rename("i1", "by Ann"))
    do(times, Rename("i2", "by Bob"), "Bob")
    mine = times.undoable("Ann")
    assert mine is not None
    state = do(times, Undo(mine.seq))
    assert state.intents["i1"].name == "intent 1"
    assert state.intents["i2"].name == "by Bob"
    assert times.undoable("Ann") is None
    again = times.redoable("Ann")
    assert again is not None
    assert do(times, Redo(again.seq)).intents["i1"].name == "by Ann"
    assert times.redoable("Ann") is None


def test_doing_something_new_ends_what_can_be_redone() -> None:
    times = line()
    do(times, Accept("i1"))
    do(times, Undo(1))
    do(times, Accept("i2"))
    assert times.redoable("Ann") is None


def test_undo_is_refused_while_others_rest_on_it() -> None:
    times = line()
    do(times, Split("i1", (Part("a", "A", (1, 5)),)))
    do(times, Move((2,), "a"), "Bob")
    with pytest.raises(NotApplicable, match="#2, Bob moved 1 utterance to “A”, rests on it"):
        do(times, Undo(1))
    do(times, Undo(2), "Bob")
    assert "a" not in do(times, Undo(1)).intents


def test_returning_can_be_undone_and_keeps_what_came_after() -> None:
    times = line()
    do(times, Accept("i1"))
    do(times, Accept("i2"))
    do(times, Return(1))
    do(times, Accept("i3"))
    state = do(times, Undo(3))
    assert [state.intents[f"i{k}"].status for k in range(4)] == ["open", *["accepted"] * 3]
    assert do(times, Redo(3)).intents["i2"].status == "open"


def test_acting_on_what_another_changed_is_a_conflict_that_says_so() -> None:
    times = line()
    do(times, Merge(("i1", "i2"), "i2"), "Bob")
    with pytest.raises(Conflict) as caught:
        do(times, Rename("i1", "mine"), "Ann", seen=0)
    since = caught.value.since
    assert [(each.seq, each.who) for each in since] == [(1, "Bob")]
    assert "Bob merged “intent 1” into “intent 2”" in str(caught.value)
    assert caught.value.version == 1
    do(times, Rename("i3", "mine"), "Ann", seen=0)
    do(times, Rename("i2", "yours"), "Ann", seen=1)
    assert times.state.size("i2") == 12


def test_ones_own_actions_are_no_conflict() -> None:
    times = line()
    do(times, Rename("i1", "a"))
    do(times, Accept("i1"), seen=0)


def test_utterances_moved_by_another_are_a_conflict() -> None:
    times = line()
    do(times, Move((1,), "i2"), "Bob")
    with pytest.raises(Conflict):
        do(times, OutOfScope((1,)), seen=0)


def random_walk(seed: int, steps: int) -> Timeline:
    rng = np.random.default_rng(seed)
    times = line()
    for number in range(steps):
        who = str(rng.choice(["Ann", "Bob"]))
        choice: Any = random_action(times.state, rng, number)
        odds = rng.random()
        if times.version and odds < 0.15:
            choice = Undo(int(rng.integers(1, times.version + 1)))
        elif times.version and odds < 0.25:
            choice = Redo(int(rng.integers(1, times.version + 1)))
        elif times.version and odds < 0.3:
            choice = Return(int(rng.integers(0, times.version + 1)))
        before = times.state
        try:
            do(times, choice, who)
        except UsageError:
            assert times.state is before
        check_nothing_lost(times.state)
    return times


@given(st.integers(0, 2**32 - 1))
def test_folding_step_by_step_equals_folding_from_scratch(seed: int) -> None:
    times = random_walk(seed, 60)
    state = times.first
    for seq in sorted(times.counting):
        event = times.entries[seq - 1].event
        state = apply(state, event.action, event.who)  # type: ignore[arg-type]
    assert same(state, times.state)
    again = line()
    for entry in times.entries:
        again.advance(Recorded(entry.seq, entry.event))
    assert same(again.state, times.state)
    assert [entry.problem for entry in again.entries] == [""] * len(times.entries)


@given(st.integers(0, 2**32 - 1))
def test_any_earlier_version_is_what_it_was(seed: int) -> None:
    rng = np.random.default_rng(seed)
    times, states = line(), {}
    for number in range(50):
        states[times.version] = times.state
        for attempt in range(20):
            try:
                do(times, random_action(times.state, rng, 100 * number + attempt))
                break
            except UsageError:
                pass
    for version in rng.permutation(list(states))[:10].tolist():
        assert same(times.state_at(version), states[version])
    wanted = int(rng.choice(list(states)[:-1]))
    assert same(do(times, Return(wanted)), states[wanted])


@given(st.integers(0, 2**32 - 1))
def test_undoing_everything_is_the_start_and_redoing_it_the_end(seed: int) -> None:
    times = random_walk(seed, 40)
    end = times.state
    acts = sorted(times.counting)
    for seq in reversed(acts):
        do(times, Undo(seq))
    assert same(times.state, times.first)
    for seq in acts:
        do(times, Redo(seq))
    assert same(times.state, end)
