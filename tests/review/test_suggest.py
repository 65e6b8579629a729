"""Suggestions on groups that were made to be twins and mixtures."""

import numpy as np
import pytest

from ronid.errors import UsageError
from ronid.review.apply import apply
from ronid.review.base import Base
from ronid.review.events import KeepApart, KeepWhole, Lock, Merge, OutOfScope, Rename
from ronid.review.nearness import Centres
from ronid.review.problems import NotApplicable
from ronid.review.propose import propose_name, propose_split
from ronid.review.state import start
from ronid.review.suggest import MOST_ROWS, _sample, still_stands, suggest
from ronid.types import Intent

WORDS = [
    "refund",
    "order",
    "card",
    "login",
    "parcel",
    "invoice",
    "weather",
    "battery",
    "store",
    "gift",
]


@pytest.fixture(scope="module")
def base() -> Base:
    """Ten groups of 30; intents 8 and 9 are halves of one group, intent 0 is two groups."""
    rng = np.random.default_rng(0)
    means = rng.normal(size=(10, 16))
    group = np.repeat(np.arange(10), 30)
    vectors = means[group] + 0.35 * rng.normal(size=(300, 16))
    labels = group.copy()
    labels[group == 1] = 0
    labels[group == 9] = 8
    labels[np.flatnonzero(group == 9)[::2]] = 9
    vectors[group == 8] = means[9] + 0.35 * rng.normal(size=(30, 16))
    labels[np.flatnonzero(group == 8)[::2]] = 9
    sizes = np.bincount(labels, minlength=10)
    texts = [f"please help with my {WORDS[g]} number {row}" for row, g in enumerate(group)]
    names = [f"intent {k}" for k in range(10)]
    return Base(
        run="made",
        title="made",
        texts=texts,
        ids=[str(row) for row in range(300)],
        given=np.zeros(300, np.bool_),
        labels=labels.astype(np.int32),
        confidence=np.full(300, 0.5, np.float32),
        places=vectors[:, :2].astype(np.float32),
        intents=tuple(Intent(k, names[k], False, int(sizes[k]), 0.1, 0.1, 0.5) for k in range(10)),
        unit=(vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32),
    )


def kinds(base: Base, state: object) -> set[tuple[str, frozenset[str]]]:
    found = suggest(base, state, 3, Centres(base))  # type: ignore[arg-type]
    assert found.version == 3
    return {(each.kind, frozenset(each.intents)) for each in found.found}


TWINS = ("merge", frozenset(("i8", "i9")))
MIXTURE = ("split", frozenset(("i0",)))


def test_twins_and_mixtures_are_found_with_reasons_and_shown(base: Base) -> None:
    found = suggest(base, start(base), 0, Centres(base))
    first = {each.kind: each for each in reversed(found.found)}
    assert frozenset(first["merge"].intents) == TWINS[1]
    assert first["split"].intents == ("i0",)
    for each in first.values():
        assert "chance" in each.reason
        assert each.shows
        assert all(text in base.texts for pair in each.shows for text in pair)
    assert found.of("i0")[0].kind == "split"


def test_what_was_turned_down_or_locked_is_not_suggested_again(base: Base) -> None:
    state = start(base)
    assert {TWINS, MIXTURE} <= kinds(base, state)
    assert TWINS not in kinds(base, apply(state, KeepApart(("i9", "i8")), "Ann"))
    assert MIXTURE not in kinds(base, apply(state, KeepWhole("i0"), "Ann"))
    assert MIXTURE not in kinds(base, apply(state, Lock("i0"), "Ann"))


def test_suggestions_end_with_the_state_they_were_made_for(base: Base) -> None:
    state = start(base)
    twins = next(s for s in suggest(base, state, 0, Centres(base)).found if s.kind == "merge")
    assert still_stands(twins, state)
    merged = apply(state, Merge(("i8", "i9"), "i8"), "Ann")
    assert not still_stands(twins, merged)
    assert TWINS not in kinds(base, merged)


def test_utterances_out_of_scope_are_left_out(base: Base) -> None:
    state = apply(start(base), OutOfScope(tuple(range(0, 55))), "Ann")
    assert MIXTURE not in kinds(base, state)


def test_a_split_is_proposed_whole_and_changes_nothing(base: Base) -> None:
    state = start(base)
    found = propose_split(base, state, "i0")
    assert [len(part.rows) for part in found.parts] == [30, 30]
    rows = np.concatenate([part.rows for part in found.parts])
    assert sorted(rows.tolist()) == state.rows("i0").tolist()
    assert {part // 30 for part in found.parts[0].rows} in ({0}, {1})
    assert found.parts[0].name == "intent 0"
    assert any(word in found.parts[1].name for word in WORDS[:2])
    assert found.clear > 0.3


@pytest.mark.parametrize("parts", [2, 3, 8])
def test_as_many_parts_as_asked(base: Base, parts: int) -> None:
    found = propose_split(base, start(base), "i0", parts)
    assert len(found.parts) == parts
    assert len({part.name for part in found.parts}) == parts


def test_impossible_splits_are_refused(base: Base) -> None:
    state = start(base)
    with pytest.raises(UsageError, match="2 to 8"):
        propose_split(base, state, "i0", 9)
    with pytest.raises(NotApplicable, match="does not exist"):
        propose_split(base, state, "nothing")
    few = apply(state, OutOfScope(tuple(state.rows("i3").tolist()[3:])), "Ann")
    with pytest.raises(NotApplicable, match="too few"):
        propose_split(base, few, "i3")


def test_names_tell_utterances_from_the_rest(base: Base) -> None:
    name = propose_name(base, start(base), start(base).rows("i3"))
    assert "login" in name


def test_a_proposed_name_is_no_other_form_of_one_in_use(base: Base) -> None:
    state, rows = start(base), start(base).rows("i3")
    free = propose_name(base, state, rows)
    inflected = "_".join(f"{word}s" for word in reversed(free.split("_")))
    used = apply(state, Rename("i5", inflected), "Ann")
    assert propose_name(base, used, rows) == f"{free}_2"


def test_large_runs_are_sampled_evenly() -> None:
    labels = np.concatenate([np.zeros(9 * MOST_ROWS, np.int64), np.repeat(np.arange(1, 9), 30)])
    rows = _sample(np.append(labels, -1), 9)
    counts = np.bincount(labels[rows])
    assert counts[1:].tolist() == [30] * 8
    assert counts[0] == MOST_ROWS // 9
