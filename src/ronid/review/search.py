"""Search over all utterances, as people type: case, accents and width do not matter."""

import re
import unicodedata
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_PHRASE = re.compile(r'"([^"]*)"|(\S+)')
_MARKS = re.compile(
    "[\u0300-\u036f"  # accents of Latin, Greek and Cyrillic letters
    "\u0591-\u05c7"  # points of Hebrew
    "\u0610-\u061a\u064b-\u065f\u0670\u0640]"  # vowels of Arabic, and its lengthening stroke
)
# Letters that Unicode does not take apart, but keyboards often cannot type.
_LETTERS = str.maketrans(
    {"ł": "l", "ø": "o", "đ": "d", "ħ": "h", "ı": "i", "æ": "ae", "œ": "oe", "\u00ad": None}
)


def fold(text: str) -> str:
    """Return a text without what a search should not see: case, accents, width, line breaks.

    Marks of scripts that cannot be read without them, such as Devanagari or Thai, are kept.
    """
    if text.isascii():
        return " ".join(text.lower().split())
    bare = _MARKS.sub("", unicodedata.normalize("NFKD", text).casefold())
    return " ".join(unicodedata.normalize("NFC", bare).translate(_LETTERS).split())


class Index:
    """All utterances in one long text.

    Args:
        texts: n utterances.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._folded = [fold(text) for text in texts]
        self._all = "\n".join(self._folded) + "\n"
        lengths = np.array([len(text) + 1 for text in self._folded], np.int64)
        self._ends = lengths.cumsum().tolist()

    def find(self, query: str) -> NDArray[np.int64]:
        """Return the rows that hold all words of a query, anywhere; quoted words as they stand.

        Words are found inside others: scripts without spaces need nothing special.
        """
        found = _PHRASE.findall(query.replace("“", '"').replace("”", '"'))
        terms = {fold(quoted or plain.strip('"')) for quoted, plain in found}
        words = sorted(terms - {""}, key=len, reverse=True)
        if not words:
            return np.empty(0, np.int64)
        rows = self._holding(words[0])
        folded = self._folded
        for word in words[1:]:
            rows = [row for row in rows if word in folded[row]]
        return np.array(rows, np.int64)

    def _holding(self, word: str) -> list[int]:
        """Return the rows with a word; after a hit the search goes on in the next row."""
        rows: list[int] = []
        ends, text = self._ends, self._all
        at = text.find(word)
        row = 0
        while at >= 0:
            row = _row_at(ends, at, row)
            rows.append(row)
            at = text.find(word, ends[row])
        return rows


def _row_at(ends: list[int], at: int, low: int) -> int:
    """Return the row of a position; most hits are near the one before."""
    from bisect import bisect_right

    return bisect_right(ends, at, low)
