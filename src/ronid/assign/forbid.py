"""What must not be: rows that must not get an intent, and intents that no row may join."""

import numpy as np
import torch
from torch import Tensor

from ronid.assign.sinkhorn import Blocks
from ronid.types import IntArray, Split

NEVER = -1e4
"""Score of a pair that must not be: far below any cosine over a temperature, yet a number."""

_BLOCK = 8_192


def without(scores: Blocks, forbidden: IntArray, rows: Tensor) -> Blocks:
    """Return scores in which forbidden pairs are hopeless.

    Args:
        scores: (m, k) scores of some rows.
        forbidden: (p, 2) rows of the whole problem, and an intent that each must not get.
        rows: (m,) ascending rows of the whole problem that `scores` are of.
    """
    own = rows.cpu().numpy()
    at = np.searchsorted(own, forbidden[:, 0])
    inside = at < len(own)
    inside[inside] = own[at[inside]] == forbidden[inside, 0]
    if not inside.any():
        return scores
    order = np.argsort(at[inside], kind="stable")
    at, intents = at[inside][order], forbidden[inside, 1][order]

    def read(start: int, stop: int) -> Tensor:
        block = scores[start:stop]  # made for this call
        low, high = np.searchsorted(at, [start, stop])
        block[at[low:high] - start, intents[low:high]] = NEVER
        return block

    return Blocks(scores.shape, read)


@torch.no_grad()
def nearest_allowed(embeddings: Tensor, prototypes: Tensor, split: Split) -> Tensor:
    """Return the (n,) intent of largest cosine among those that each row may have.

    Args:
        embeddings: (n, d) unit vectors.
        prototypes: (k, d) unit vectors.
        split: Says what must not be.
    """
    rows = torch.arange(len(embeddings), device=embeddings.device)
    whole = Blocks((len(embeddings), len(prototypes)), lambda a, b: embeddings[a:b] @ prototypes.T)
    scores = without(whole, split.forbidden, rows)
    found = []
    for start in range(0, len(embeddings), _BLOCK):
        block = scores[start : start + _BLOCK]
        block[:, list(split.closed)] = NEVER
        found.append(block.argmax(dim=1))
    return torch.cat(found) if found else rows
