import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronid.export.catalogue import Row
from ronid.export.limits import Limits, Line, reasons, trim, units

Said = tuple[str, str, str, float | None]


def lines(*said: Said) -> list[Line]:
    """Return lines of (text, intent, by, confidence)."""
    return [
        Line(Row(text, intent, by=by, confidence=confidence), intent, text)  # type: ignore[arg-type]
        for text, intent, by, confidence in said
    ]


MANY = lines(
    ("weak", "a", "model", 0.2),
    ("given", "a", "given", None),
    ("sure", "a", "model", 0.9),
    ("decided", "a", "person", None),
    ("other", "b", "model", 0.1),
)


def kept(limits: Limits) -> list[str]:
    return [line.text for line in trim(MANY, limits).kept]


def test_decisions_and_given_labels_stay_before_predictions() -> None:
    assert kept(Limits(most=1)) == ["decided", "other"]
    assert kept(Limits(most=2)) == ["given", "decided", "other"]
    assert kept(Limits(most=3)) == ["given", "sure", "decided", "other"]


def test_no_intent_goes_before_another_has_lost_as_much() -> None:
    assert kept(Limits(utterances=2)) == ["decided", "other"]
    assert kept(Limits(letters=len("decidedother"))) == ["decided", "other"]


def test_largest_intents_stay_where_there_are_too_many() -> None:
    assert "other" not in kept(Limits(intents=1))


def test_intents_that_are_too_small_are_left_out() -> None:
    trimmed = trim(MANY, Limits(least=2))
    assert reasons(trimmed.left_out) == {"in intents of fewer than 2 utterances": 1}


def test_repeats_stay_where_the_label_is_strongest() -> None:
    twice = lines(("x", "a", "model", 0.9), ("x", "b", "given", None), ("x", "b", "model", 0.5))
    within = trim(twice, Limits(once="intent"))
    assert [line.intent for line in within.kept] == ["a", "b"]
    overall = trim(twice, Limits(once="export"))
    assert [(line.intent, line.row.by) for line in overall.kept] == [("b", "given")]
    assert reasons(overall.left_out) == {"repeated": 2}


def test_length_is_counted_in_utf16_units() -> None:
    assert [units(text) for text in ("abc", "né", "取消", "🎉")] == [3, 2, 2, 2]
    emoji = lines(("🎉🎉", "a", "model", 1.0), ("abc", "a", "model", 1.0))
    assert [line.text for line in trim(emoji, Limits(longest=3)).kept] == ["abc"]


def test_white_space_is_no_utterance() -> None:
    trimmed = trim(lines((" \n", "a", "model", 1.0)), Limits())
    assert reasons(trimmed.left_out) == {"without text": 1}


@pytest.mark.parametrize("once", [None, "intent", "export"])
@given(
    said=st.lists(
        st.tuples(
            st.text("ab ", max_size=4),
            st.sampled_from("xyz"),
            st.sampled_from(["given", "person", "model"]),
            st.floats(0, 1),
        ),
        max_size=20,
    ),
    most=st.integers(1, 5),
    bound=st.integers(1, 12),
)
def test_nothing_is_lost_silently_and_limits_hold(once, said, most, bound) -> None:
    everything = lines(*said)
    limits = Limits(longest=3, most=most, intents=2, utterances=bound, letters=bound, once=once)
    trimmed = trim(everything, limits)
    assert len(trimmed.kept) + len(trimmed.left_out) == len(everything)
    assert {id(line) for line in trimmed.kept} | {id(e.line) for e in trimmed.left_out} == {
        id(line) for line in everything
    }
    by_intent = [line.intent for line in trimmed.kept]
    assert len(trimmed.kept) <= bound
    assert sum(units(line.text) for line in trimmed.kept) <= bound
    assert len(set(by_intent)) <= 2
    assert all(by_intent.count(intent) <= most for intent in by_intent)
    at = {id(line): place for place, line in enumerate(everything)}  # equal lines are not the same
    places = [at[id(line)] for line in trimmed.kept]
    assert places == sorted(places)
