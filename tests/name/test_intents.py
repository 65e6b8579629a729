import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronid.name import name_intents
from ronid.name.taken import name_stems
from ronid.types import Discovery

GROUPS = {
    "Order Status!": ["where is my order", "order status please", "track my order"],
    "gift": ["buy a gift card", "gift card for a friend", "do you sell a gift card"],
    "pause": ["pause my membership", "please pause my membership", "pause membership for a month"],
    "ride": ["book a group ride", "I'd like to book a group ride", "book the group ride"],
}


def discover(groups: list[list[str]], known: tuple[str, ...] = ()) -> tuple[list[str], Discovery]:
    texts = [text for group in groups for text in group]
    labels = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    rng = np.random.default_rng(0)
    embeddings = rng.normal(size=(len(texts), 4)).astype(np.float32)
    return texts, Discovery(
        labels=labels,
        confidence=np.linspace(0.5, 1, len(texts)).astype(np.float32),
        embeddings=embeddings,
        prototypes=rng.normal(size=(len(groups), 4)).astype(np.float32),
        prior=np.full(len(groups), 1 / len(groups)),
        temperature=0.1,
        known=known,
    )


def names(groups: list[list[str]], known: tuple[str, ...] = ()) -> list[str]:
    return [intent.name for intent in name_intents(*discover(groups, known))]


def test_known_intents_keep_their_names_and_new_ones_are_named_by_phrase() -> None:
    found = names(list(GROUPS.values()), known=("Order Status!",))
    assert found == ["Order Status!", "gift_card", "pause_membership", "book_group_ride"]


def test_words_of_a_large_intent_come_from_all_its_parts_and_all_utterances_count() -> None:
    # The first half alone would be read as something else.
    large = [f"pause my membership {i}" for i in range(450)] + ["buy a gift card"] * 550
    texts, discovery = discover([large, GROUPS["ride"]])
    found = name_intents(texts, discovery)
    assert [intent.name for intent in found] == ["buy_gift_card", "book_group_ride"]
    assert "pause membership" in " ".join(found[0].keyphrases)
    assert found[0].size == 1_000


def test_numbers_of_an_intent_add_up() -> None:
    texts, discovery = discover(list(GROUPS.values()), ("Order Status!",))
    intents = name_intents(texts, discovery)
    assert [intent.index for intent in intents] == [0, 1, 2, 3]
    assert [intent.known for intent in intents] == [True, False, False, False]
    assert sum(intent.size for intent in intents) == len(texts)
    assert sum(intent.share for intent in intents) == pytest.approx(1)
    assert intents[0].confidence == pytest.approx(float(discovery.confidence[:3].mean()))
    assert intents[1].prior == pytest.approx(0.25)
    assert set(intents[1].exemplars) == set(GROUPS["gift"])


def test_a_contested_name_is_told_apart_by_a_phrase_before_a_number() -> None:
    lost = ["lost my card", "lost card abroad", "I lost the card"]
    blocked = ["card blocked", "my card is blocked", "card was blocked"]
    found = names([lost, blocked, ["refund"] * 4, ["refund"] * 4])
    assert found[:2] == ["lost_card", "card_blocked"]
    assert found[2:] == ["refund", "refund_2"]


def test_singular_and_plural_are_one_name_and_told_apart() -> None:
    many = ["bikes for kids", "kids need bikes", *["bikes"] * 6]
    one = ["bike is stuck", "stuck bike", *["my bike"] * 6]
    found = names([many, one])
    assert len(found) == len({name_stems(name) for name in found})
    assert "kids" in found[0]
    assert "stuck" in found[1]


def test_where_nothing_tells_inflections_apart_a_number_does() -> None:
    assert names([["bikes"] * 4, ["bike"] * 4]) == ["bikes", "bike_2"]


def test_a_new_name_never_repeats_a_known_one() -> None:
    found = names([["hello there"] * 3, GROUPS["gift"]], known=("Gift_Card",))
    assert found[1] != "gift_card"
    assert found[1].lower() != "gift_card"
    assert "gift" in found[1]


def test_intents_without_words_are_named_by_exemplar_or_number() -> None:
    found = names([GROUPS["gift"], [], ["🎉", "🎉🎉"], ["what is it", "why", "What is it"]])
    assert found[1] == "new_intent_1"
    assert found[2] == "new_intent_2"
    assert found[3] in {"what_is_it", "why"}


def test_digits_alone_name_no_intent() -> None:
    found = name_intents(
        *discover([GROUPS["gift"], ["🎉 6", "🎉 6"], ["7, 8 🎉"], ["2024", "why 5"]])
    )
    assert [intent.name for intent in found[1:3]] == ["new_intent_1", "new_intent_2"]
    assert [intent.named_by for intent in found[1:3]] == ["number", "number"]
    assert found[3].name in {"why_5", "new_intent_3"}  # as its most central utterance is


def test_digits_of_a_script_without_spaces_name_no_intent() -> None:
    years = [f"2024{letter}" for letter in "年月日时分秒"]  # the digits are all that they share
    found = name_intents(*discover([years, GROUPS["gift"]]))[0]
    assert (found.name in years, found.named_by) == (True, "utterance")


def test_a_known_intent_without_utterances_contests_no_name() -> None:
    found = names([[], GROUPS["gift"], GROUPS["pause"]], known=("sell gift card",))
    assert found == ["sell gift card", "buy_gift_card", "pause_membership"]


def test_a_script_without_spaces_is_named_in_that_script() -> None:
    found = names([["我的信用卡丢了", "信用卡丢了怎么办", "昨天信用卡丢了"], GROUPS["gift"]])
    assert "信用卡" in found[0]


def test_a_name_never_joins_characters_with_others_that_hold_or_overlap_them() -> None:
    sent = ["什么时候发货", "请问什么时候发货", "订单什么时候发货", "什么时候"]
    arrive = ["什么时候到", "包裹什么时候到", "快递什么时候到", "什么时候"]
    found = names([sent, arrive, GROUPS["gift"]])
    assert found[:2] == ["什么时候发货", "什么时候到"]


def test_characters_that_belong_to_longer_ones_are_not_cut_off_them() -> None:
    track = ["物流信息查询", "你好，物流信息查询", "请问物流信息查询"]
    lost = ["我的信用卡丢了怎么办", "你好，我的信用卡丢了怎么办", "谢谢，我的信用卡丢了怎么办"]
    assert names([track, lost]) == ["物流信息查询", "我的信用卡丢了怎么办"]


def test_texts_and_labels_of_different_length_are_refused() -> None:
    texts, discovery = discover([GROUPS["gift"]])
    with pytest.raises(ValueError, match="2 utterances but 3 labels"):
        name_intents(texts[:2], discovery)


@given(st.lists(st.lists(st.text(max_size=25), max_size=4), min_size=1, max_size=6))
def test_names_of_any_text_are_unique_and_not_empty(groups: list[list[str]]) -> None:
    found = names(groups, known=("lost_card",))
    assert len({name.lower() for name in found}) == len(groups)
    assert all(found)


def test_the_same_discovery_gets_the_same_names() -> None:
    groups = list(GROUPS.values())
    assert name_intents(*discover(groups)) == name_intents(*discover(groups))


def test_naming_18000_utterances_takes_seconds() -> None:
    rng = np.random.default_rng(0)
    vocabulary = np.array([f"w{index}x" for index in range(3000)])
    groups = [
        [" ".join(vocabulary[rng.integers(k * 15, k * 15 + 60, size=9) % 3000]) for _ in range(120)]
        for k in range(150)
    ]
    started = time.process_time()  # other work on the machine does not count
    found = names(groups)
    assert time.process_time() - started < 15
    assert len(set(found)) == 150
