"""The known intents that an intent is most like, by the similarity of their prototypes."""

from collections.abc import Sequence

import numpy as np

from ronid.types import FloatArray, Neighbour, Rule


def nearest_known(
    prototypes: FloatArray, known: Sequence[str], rule: Rule = "cosine", top: int = 3
) -> list[tuple[Neighbour, ...]]:
    """Find the known intents nearest to every intent.

    Args:
        prototypes: (k, d), the known intents first.
        known: m names of the known intents.
        rule: What closeness is. Similarity is the cosine, or 1 / (1 + squared distance): either
            way 1 for equal prototypes.
        top: How many to find at most.

    Returns:
        For each of the k intents, known intents other than itself, nearest first.
    """
    alike = _similarity(prototypes.astype(np.float64), len(known), rule)  # (k, m)
    own = np.arange(len(known))
    alike[own, own] = -np.inf
    order = np.argsort(-alike, axis=1, kind="stable")[:, :top]
    return [
        tuple(
            Neighbour(known[m], round(float(alike[k, m]), 4))
            for m in order[k]
            if np.isfinite(alike[k, m])
        )
        for k in range(len(prototypes))
    ]


def _similarity(prototypes: np.ndarray, m: int, rule: Rule) -> np.ndarray:
    if rule == "distance":
        lengths = np.square(prototypes).sum(axis=1)
        squared = lengths[:, None] + lengths[None, :m] - 2 * prototypes @ prototypes[:m].T
        return np.asarray(1 / (1 + np.maximum(squared, 0)))
    lengths = np.linalg.norm(prototypes, axis=1, keepdims=True)
    unit = prototypes / np.maximum(lengths, 1e-12)
    return np.asarray(unit @ unit[:m].T)
