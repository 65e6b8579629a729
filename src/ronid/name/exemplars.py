"""The utterances that stand for an intent: those nearest its prototype."""

from collections.abc import Sequence

import numpy as np

from ronid.types import FloatArray, IntArray


def exemplars(
    texts: Sequence[str],
    rows: IntArray,
    embeddings: FloatArray,
    prototype: FloatArray,
    top: int = 5,
) -> tuple[str, ...]:
    """Pick the most central distinct utterances of one intent.

    Args:
        texts: n utterances.
        rows: Rows of the intent.
        embeddings: (n, d) vectors.
        prototype: (d,) vector of the intent.
        top: How many to pick at most.

    Returns:
        Utterances, nearest first; repeats that differ in case or spacing count once.
    """
    # Between unit vectors the nearest is the one of largest cosine.
    far = np.square(embeddings[rows] - prototype).sum(axis=1)
    picked: dict[str, str] = {}
    for row in rows[np.argsort(far, kind="stable")]:
        text = " ".join(texts[row].split())
        if text:
            picked.setdefault(text.casefold(), text)
        if len(picked) == top:
            break
    return tuple(picked.values())
