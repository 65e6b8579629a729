import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronid.export.batch import Options
from ronid.export.catalogue import CatalogueIntent
from ronid.export.formats import FORMATS, load_format
from ronid.export.names import legal_names
from tests.helpers.export_strategies import NAMES, called

# What the documents of the targets say, written down once more.
PATTERNS = {
    "rasa": re.compile(r"[^\W_][^\s/:{}\[\]()#\"'\\]{0,199}"),
    "dialogflow-cx": re.compile(r"[^\W_][^/\\:\x00-\x1f]{0,63}"),
    "lex": re.compile(r"(?=.{1,100}\Z)([0-9a-zA-Z][_-]?)+"),
    "watson": re.compile(r"(?!sys-)[\w.-]{1,128}"),
    "clu": re.compile(r"(?!none\Z)[A-Za-z0-9][A-Za-z0-9_.-]{0,49}", re.IGNORECASE),
}


def intents(names: list[str]) -> list[CatalogueIntent]:
    return [CatalogueIntent(f"i{i}", name) for i, name in enumerate(names)]


def rule(to: str):
    return load_format(to).target(Options()).names


@pytest.mark.parametrize("to", PATTERNS)
@given(names=st.lists(called, max_size=12))
def test_names_are_legal_unique_and_stable(to: str, names: list[str]) -> None:
    made = legal_names(intents(names), rule(to))
    assert all(PATTERNS[to].fullmatch(name) for name in made.values()), made
    assert len({name.casefold() if to != "rasa" else name for name in made.values()}) == len(names)
    for count in range(len(names)):  # intents that come later change nothing
        before = legal_names(intents(names[:count]), rule(to))
        assert list(before.items()) == list(made.items())[:count]
    again = legal_names([CatalogueIntent(i, name) for i, name in made.items()], rule(to))
    assert again == made


@pytest.mark.parametrize("to", [name for name in FORMATS if name not in PATTERNS])
def test_tables_keep_names_as_they_are(to: str) -> None:
    assert list(legal_names(intents(list(NAMES)), rule(to)).values()) == list(NAMES)


def test_tables_tell_equal_names_apart() -> None:
    assert list(legal_names(intents(["a", "a", "a_2"]), None).values()) == ["a", "a_2", "a_2_2"]


@pytest.mark.parametrize(
    ("to", "name", "expected"),
    [
        ("rasa", "faq/topic", "faq_topic"),
        ("rasa", "restart", "intent_restart"),
        ("rasa", "取消订单", "取消订单"),
        ("rasa", "रद्द करें", "रद्द_करें"),
        ("rasa", "Card Arrival?!", "Card_Arrival"),
        ("rasa", "\u0301_x", "x"),
        ("dialogflow-cx", "Card arrival", "Card arrival"),
        ("dialogflow-cx", "../../etc", "etc"),
        ("dialogflow-cx", "Default Welcome Intent", "intent_Default Welcome Intent"),
        ("lex", "a__b--c", "a_b-c"),
        ("lex", "ünïcode näme", "unicode_name"),
        ("lex", "取消订单", "intent_i0"),
        ("lex", "fallbackintent", "intent_fallbackintent"),
        ("watson", "sys-thing", "intent_sys-thing"),
        ("watson", "取消.订单", "取消.订单"),
        ("clu", "None", "intent_None"),
        ("clu", "x" * 60, "x" * 50),
    ],
)
def test_name_is_made_legal(to: str, name: str, expected: str) -> None:
    assert legal_names(intents([name]), rule(to)) == {"i0": expected}


def test_collisions_get_numbers_within_the_length() -> None:
    made = list(legal_names(intents(["x" * 60, "x" * 50, "X" * 50]), rule("clu")).values())
    assert made == ["x" * 50, "x" * 48 + "_2", "X" * 48 + "_3"]
