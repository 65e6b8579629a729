import pytest

from ronid.name.words import spans, stem


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Pause my membership", [["pause", "membership"]]),
        ("Can I get a gift card for my sister?", [["gift", "card"], ["sister"]]),
        ("It doesn't work. Top up failed!", [["not", "work"], ["top", "up", "failed"]]),
        ("perdu l\u2019argent", [["perdu", "argent"]]),
        ("मेरा कार्ड।खो गया", [["मेरा", "कार्ड"], ["खो", "गया"]]),
        ("", []),
        ("🎉 ?! 42", []),
    ],
)
def test_spans_end_at_stop_words_and_punctuation(text: str, expected: list[list[str]]) -> None:
    assert spans(text) == expected


@pytest.mark.parametrize(
    "forms",
    [
        ["card", "cards"],
        ["cancel", "cancels", "cancelled", "canceled", "cancelling"],
        ["charge", "charged", "charging", "charges"],
        ["company", "companies"],
        ["fee", "fees"],
    ],
)
def test_inflections_share_a_stem(forms: list[str]) -> None:
    assert len({stem(form) for form in forms}) == 1


def test_different_words_keep_different_stems() -> None:
    words = ["card", "cash", "pin", "visa", "refund", "transfer", "atm", "bill", "gas"]
    assert len({stem(word) for word in words}) == len(words)
