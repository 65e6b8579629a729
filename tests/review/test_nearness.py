import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronid.errors import UsageError
from ronid.review.apply import apply
from ronid.review.events import Accept, Lock, Merge, Move, OutOfScope
from ronid.review.nearness import Centres, find_doubts, members, nearest
from ronid.review.state import State, start
from tests.helpers.review_base import make_base, random_action

BASE = make_base(rows=60, intents=5)


def naive_centres(state: State) -> np.ndarray:
    assert BASE.unit is not None
    centres = np.zeros((len(state.slots), BASE.unit.shape[1]))
    for slot in range(len(state.slots)):
        rows = np.flatnonzero(state.places == slot)
        if len(rows):
            mean = BASE.unit[rows].mean(axis=0)
            centres[slot] = mean / np.linalg.norm(mean)
    return centres


@given(st.integers(0, 2**32 - 1))
def test_centres_follow_every_change(seed: int) -> None:
    rng = np.random.default_rng(seed)
    states, centres = [start(BASE)], Centres(BASE)
    for number in range(40):
        try:
            action = random_action(states[-1], rng, number)
            states.append(apply(states[-1], action, "Ann"))  # type: ignore[arg-type]
        except UsageError:
            continue
        # Now and then an earlier state comes back, as after an undo.
        state = states[int(rng.integers(len(states)))] if rng.random() < 0.2 else states[-1]
        np.testing.assert_allclose(centres.of(state), naive_centres(state), atol=1e-5)


def test_members_are_ordered_by_how_much_they_belong() -> None:
    state = apply(start(BASE), Move((1,), "i2"), "Ann")
    found = members(BASE, state, "i2", Centres(BASE).of(state))
    assert sorted(found.rows.tolist()) == state.rows("i2").tolist()
    assert (np.diff(found.margin) <= 0).all()
    assert found.rows[-1] == 1
    assert found.other[-1] == "i1"
    assert found.margin[-1] < 0 < found.margin[0]


def test_members_without_vectors_are_ordered_by_confidence() -> None:
    found = members(BASE, start(BASE), "i2", None)
    assert (np.diff(BASE.confidence[found.rows]) <= 0).all()


def test_an_only_intent_has_no_other() -> None:
    state = start(BASE)
    state = apply(state, Merge(("i0", "i1", "i2", "i3", "i4"), "i0"), "Ann")
    found = members(BASE, state, "i0", Centres(BASE).of(state))
    assert set(found.other) == {None}
    assert nearest(state, "i0", Centres(BASE).of(state)) == []


def test_nearest_intents_are_those_of_largest_cosine() -> None:
    state = start(BASE)
    centres = naive_centres(state).astype(np.float32)
    found = nearest(state, "i0", centres)
    wanted = sorted(
        (f"i{k}" for k in range(1, 5)), key=lambda id: -centres[int(id[1])] @ centres[0]
    )
    assert [near.id for near in found] == wanted


def test_doubtful_are_those_nearer_to_another_unless_settled() -> None:
    state = start(BASE)
    places = state.places.copy()
    places[[6, 11, 17]] = [2, 3, 4]  # of intents 1, 1 and 2
    state = State(state.intents, state.slots, places, state.confirmed, {})

    def doubted(state: State) -> dict[int, str]:
        found = find_doubts(BASE, state, Centres(BASE).of(state))
        return {int(r): state.slots[o] for r, o in zip(found.rows, found.other, strict=True)}

    assert doubted(state) == {6: "i1", 11: "i1", 17: "i2"}
    assert 6 not in doubted(apply(state, Accept("i2"), "Ann"))
    assert 11 not in doubted(apply(state, Lock("i3"), "Ann"))
    assert 17 not in doubted(apply(state, OutOfScope((17,)), "Ann"))


def test_labels_of_the_user_are_not_doubted() -> None:
    state = start(BASE)
    places = state.places.copy()
    given = int(np.flatnonzero(BASE.given)[0])
    places[given] = 3
    state = State(state.intents, state.slots, places, state.confirmed, {})
    assert given not in find_doubts(BASE, state, Centres(BASE).of(state)).rows


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_few_utterances_do_no_harm(rows: int) -> None:
    base = make_base(rows=rows, intents=2)
    state = start(base)
    centres = Centres(base).of(state)
    assert len(members(base, state, "i0", centres).rows) == (rows + 1) // 2
    assert len(find_doubts(base, state, centres).rows) <= rows
