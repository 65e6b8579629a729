"""Names as identifiers: lower case, words joined by underscores, letters of any script kept."""

import re
import unicodedata

MAX_LENGTH = 40

_EMOJI_MARKS = {*map(chr, range(0xFE00, 0xFE10)), "\u20e3"}
"""Variation selectors, and the frame of keycaps."""


def slug(text: str, max_length: int = MAX_LENGTH) -> str:
    """Turn a phrase into an identifier such as `gift_card`.

    Args:
        text: The phrase, in any script.
        max_length: Longest result; cut between words where there is a boundary.

    Returns:
        The identifier, or "" where the phrase has neither letters nor digits.
    """
    plain = unicodedata.normalize("NFKC", text).lower()
    kept = "".join(character if _belongs(character) else " " for character in plain)
    whole = "_".join(kept.split())
    if len(whole) <= max_length:
        return whole
    cut = whole[: max_length + 1].rpartition("_")[0] or whole[:max_length]
    return cut.strip("_")


def is_name(legal: str) -> bool:
    """Say whether an identifier can name an intent; one of nothing but digits says nothing.

    Args:
        legal: What `slug` made.
    """
    letters = "".join(filter(str.isalnum, legal))  # marks alone cannot be seen
    return bool(letters) and not letters.isdigit()


def unique(name: str, taken: set[str]) -> str:
    """Add `_2`, `_3`, ... to a name until nobody has it.

    Args:
        name: The name wanted.
        taken: Names in use, lower case.

    Returns:
        The name itself when it is free.
    """
    stem = re.sub(r"_\d+$", "", name) if name.lower() in taken else name
    number, candidate = 1, name
    while candidate.lower() in taken:
        number += 1
        candidate = f"{stem}_{number}"
    return candidate


def _belongs(character: str) -> bool:
    # Marks are the vowel signs of Indic and Thai scripts and the accents of many others; some only
    # say how an emoji looks.
    if character in _EMOJI_MARKS:
        return False
    return character.isalnum() or unicodedata.category(character).startswith("M")
