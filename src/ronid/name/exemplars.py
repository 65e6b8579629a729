"""The utterances that stand for an intent: the most central ones, and the least sure ones."""

from collections.abc import Collection, Iterable, Sequence
from unicodedata import category

import numpy as np

from ronid.name.words import spans, stem
from ronid.types import FloatArray, IntArray

SHOWN = 5


def exemplars(
    texts: Sequence[str],
    rows: IntArray,
    embeddings: FloatArray,
    prototype: FloatArray,
    top: int = SHOWN,
) -> tuple[str, ...]:
    """Pick the most central distinct utterances of one intent.

    Args:
        texts: n utterances.
        rows: Rows of the intent.
        embeddings: (n, d) vectors.
        prototype: (d,) vector of the intent.
        top: How many to pick at most.

    Returns:
        Utterances, nearest first. Those that say the same in almost the same words count once,
        unless nothing else is left; repeats that differ in case or punctuation always do.
    """
    # Between unit vectors the nearest is the one of largest cosine.
    far = np.square(embeddings[rows] - prototype).sum(axis=1)
    return _distinct(texts, rows[np.argsort(far, kind="stable")], top)


def borderline(
    texts: Sequence[str],
    rows: IntArray,
    confidence: FloatArray,
    central: Collection[str],
    top: int = SHOWN,
) -> tuple[str, ...]:
    """Pick the distinct utterances that are least sure to belong to an intent.

    Args:
        texts: n utterances.
        rows: Rows of the intent.
        confidence: (n,) probability of each utterance's intent.
        central: Utterances that are shown already, such as the exemplars.
        top: How many to pick at most.

    Returns:
        Utterances, least sure first, none of them among `central`.
    """
    order = rows[np.argsort(confidence[rows], kind="stable")]
    return _distinct(texts, order, top, central)


def _distinct(
    texts: Sequence[str], rows: Iterable[int], top: int, without: Collection[str] = ()
) -> tuple[str, ...]:
    """Take texts in order, first those of new content, then those merely of new wording."""
    wordings = {_wording(text) for text in without}
    contents = {_content(text) for text in without}
    fresh: list[tuple[int, str]] = []
    spare: list[tuple[int, str]] = []
    for place, row in enumerate(rows):
        text = " ".join(texts[row].split())
        wording, content = _wording(text), _content(text)
        if not text or wording in wordings:
            continue
        wordings.add(wording)
        (spare if content in contents else fresh).append((place, text))
        contents.add(content)
        if len(fresh) == top:
            break
    picked = sorted(fresh + spare[: top - len(fresh)])
    return tuple(text for _, text in picked)


def _wording(text: str) -> str:
    """Return an utterance without case and punctuation; one of punctuation only stays itself."""
    kept = (" " if category(character)[0] == "P" else character for character in text.casefold())
    return " ".join("".join(kept).split()) or text


def _content(text: str) -> frozenset[str] | str:
    """Return the content words of an utterance, or its wording where it has none."""
    words = frozenset(stem(word) for span in spans(text) for word in span)
    return words or _wording(text)
