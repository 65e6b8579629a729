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
        embeddings: (n, d) unit vectors.
        prototype: (d,) unit vector of the intent.
        top: How many to pick at most.

    Returns:
        Utterances by falling cosine; repeats that differ in case or spacing count once.
    """
    cosines = embeddings[rows] @ prototype
    picked: dict[str, str] = {}
    for row in rows[np.argsort(-cosines, kind="stable")]:
        text = " ".join(texts[row].split())
        if text:
            picked.setdefault(text.casefold(), text)
        if len(picked) == top:
            break
    return tuple(picked.values())
