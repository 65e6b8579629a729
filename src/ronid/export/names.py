"""Names as a target allows them: one place that makes them legal, unique and stable."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from ronid.export.catalogue import CatalogueIntent


@dataclass(frozen=True)
class NameRule:
    """What a target allows in the name of an intent.

    Args:
        longest: Most characters.
        symbols: Allowed besides letters and digits.
        ascii: Whether letters and digits must be those of ASCII.
        marks: Whether vowel signs and accents that stand alone are allowed.
        doubled: Whether one symbol may follow another.
        reserved: Names that mean something else there, in lower case.
        prefixes: Beginnings that are reserved, in lower case.
        cases: Whether names may differ in upper and lower case alone.
    """

    longest: int
    symbols: str = "_-."
    ascii: bool = False
    marks: bool = False
    doubled: bool = True
    reserved: frozenset[str] = frozenset()
    prefixes: tuple[str, ...] = ()
    cases: bool = False


def legal_names(intents: Iterable[CatalogueIntent], rule: NameRule | None) -> dict[str, str]:
    """Return a legal name of every intent.

    A name depends on its intent and those before it only: intents that come later, or that are
    left out of an export, change no name.

    Args:
        intents: All intents there are, old ones first.
        rule: What the target allows; None if it allows everything.

    Returns:
        Id to name. No two names are the same.
    """
    names: dict[str, str] = {}
    taken: set[str] = set()
    for intent in intents:
        wanted = intent.name if rule is None else legal_name(intent.name, rule, intent.id)
        name = _unique(wanted, taken, rule)
        taken.add(_folded(name, rule))
        names[intent.id] = name
    return names


def legal_name(name: str, rule: NameRule, otherwise: str = "") -> str:
    """Return a name that the target allows; one that is legal already is returned as it is.

    Args:
        name: What people call it.
        rule: What the target allows.
        otherwise: What is left to call it by where no character of the name is allowed.
    """
    legal = _cut(_cleaned(name, rule), rule) or _cut(_cleaned(f"intent_{otherwise}", rule), rule)
    folded = legal.lower()
    if folded in rule.reserved or folded.startswith(rule.prefixes or "\0"):
        return _cut(f"intent_{legal}", rule)
    return legal


def _cleaned(name: str, rule: NameRule) -> str:
    """Replace every run of what is not allowed by one underscore; begin with a letter or digit."""
    text = unicodedata.normalize("NFKD" if rule.ascii else "NFC", name)
    kept = "".join(_allowed(character, rule) for character in text)
    kept = re.sub("\0+", "_", kept.strip("\0"))
    if not rule.doubled:
        kept = re.sub("([_-])[_-]+", r"\1", kept)
    return re.sub(r"^[\W_]+", "", kept).rstrip(" .")


def _allowed(character: str, rule: NameRule) -> str:
    """Return the character, nothing for an accent, or NUL for what has to be replaced."""
    if character in rule.symbols:
        return character
    if unicodedata.category(character).startswith("M"):
        return character if rule.marks else ""
    return character if character.isalnum() and (character.isascii() or not rule.ascii) else "\0"


def _cut(name: str, rule: NameRule) -> str:
    return name if len(name) <= rule.longest else name[: rule.longest].rstrip(rule.symbols)


def _unique(name: str, taken: set[str], rule: NameRule | None) -> str:
    """Add `_2`, `_3`, ... until nobody has the name, and leave room for it."""
    candidate, number = name, 1
    while _folded(candidate, rule) in taken:
        number += 1
        ending = f"_{number}"
        room = len(name) if rule is None else rule.longest - len(ending)
        stem = name[:room] if rule is None else name[:room].rstrip(rule.symbols)
        candidate = stem + ending
    return candidate


def _folded(name: str, rule: NameRule | None) -> str:
    return name if rule is None or rule.cases else unicodedata.normalize("NFC", name).casefold()
