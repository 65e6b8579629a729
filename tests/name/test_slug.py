import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronid.name.slug import MAX_LENGTH, is_name, slug, unique


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Gift card", "gift_card"),
        ("  What's -- up?! ", "what_s_up"),
        ("Überweisung ändern", "überweisung_ändern"),
        ("信用卡 丢了", "信用卡_丢了"),
        ("मेरा कार्ड", "मेरा_कार्ड"),
        ("🎉!", ""),
    ],
)
def test_slug_keeps_letters_of_any_script(text: str, expected: str) -> None:
    assert slug(text) == expected


def test_long_slugs_are_cut_between_words() -> None:
    assert slug("abcde " * 20) == "_".join(["abcde"] * 6)
    assert slug("x" * 100) == "x" * MAX_LENGTH


@given(st.text())
def test_slug_is_short_and_stable(text: str) -> None:
    once = slug(text)
    assert len(once) <= MAX_LENGTH
    assert not once.startswith("_")
    assert not once.endswith("_")
    assert slug(once) == once


@pytest.mark.parametrize("text", ["", "🎉", "6", "7, 8", "٣"])
def test_nothing_and_digits_are_no_name(text: str) -> None:
    assert not is_name(slug(text))
    assert is_name(slug(f"{text} a"))


def test_unique_counts_up_past_taken_names() -> None:
    assert unique("refund", set()) == "refund"
    assert unique("refund", {"refund"}) == "refund_2"
    assert unique("Refund", {"refund", "refund_2"}) == "Refund_3"
    assert unique("new_intent_17", set()) == "new_intent_17"
