import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronid.name.keyphrases import (
    LENGTH_BONUS,
    SMOOTHING,
    SPECIFICITY,
    Phrase,
    distinct,
    find_phrases,
    rank_phrases,
)

RIDE = ["book a group ride", "I want to book a group ride", "book our group ride tomorrow"]
PAUSE = ["pause my membership", "please pause my membership", "can I pause a membership"]
REFUND = ["refund my ride", "I need a refund", "refund please"]


def rank(*groups: list[str]) -> list[list[Phrase]]:
    return rank_phrases([[find_phrases(text) for text in group] for group in groups])


def texts(phrases: list[Phrase]) -> list[str]:
    return [phrase.text for phrase in phrases]


def test_a_phrase_that_all_utterances_share_leads() -> None:
    ride, pause, refund = rank(RIDE, PAUSE, REFUND)
    assert texts(ride)[0] == "book group ride"
    assert texts(pause)[0] == "pause membership"
    assert texts(refund)[0] == "refund"


def test_weight_of_a_word_follows_the_formula() -> None:
    _, _, refund = rank(RIDE, PAUSE, REFUND)
    by_text = {phrase.text: phrase for phrase in refund}
    shares = [1.0, 0.0, 1 / 3]  # of "ride" in the three intents
    expected = shares[2] * math.log(1 + SPECIFICITY / (sum(shares) + SMOOTHING)) * LENGTH_BONUS[0]
    assert by_text["ride"].weight == pytest.approx(expected)
    assert by_text["refund"].weight == pytest.approx(math.log(1 + 3 / 1.5))  # golden value


def test_kept_phrases_hold_no_part_of_a_stronger_one_and_no_plural_twice() -> None:
    ranked = rank([*RIDE, "group rides", "book group rides"], PAUSE)[0]
    kept = distinct(ranked)
    assert texts(kept)[0] == "book group ride"
    assert "group" not in texts(kept)
    assert len({phrase.stems for phrase in kept}) == len(kept)


def test_scripts_without_spaces_give_the_longest_shared_characters() -> None:
    lost, limit = rank(
        ["我的信用卡丢了", "信用卡丢了怎么办", "昨天信用卡丢了"],
        ["提高转账限额", "转账限额是多少", "我的转账限额"],
    )
    assert "信用卡丢" in texts(lost)[0]
    assert "转账限额" in texts(limit)[0]
    assert len(distinct(lost)) <= 8


def test_utterances_without_words_give_no_phrases() -> None:
    assert rank(["???", "🎉🎉", ""], RIDE)[0] == []
    assert rank([]) == [[]]


@given(st.lists(st.lists(st.text(max_size=30), max_size=5), min_size=1, max_size=4))
def test_any_text_is_ranked_with_positive_falling_weights(groups: list[list[str]]) -> None:
    for phrases in rank(*groups):
        weights = [phrase.weight for phrase in phrases]
        assert weights == sorted(weights, reverse=True)
        assert all(weight > 0 for weight in weights)
        assert all(0 < phrase.coverage <= 1 for phrase in phrases)
        assert len(distinct(phrases)) <= 8
