"""What counts as alike before anything was learned: the space of the first neighbour lists.

Sentence encoders see how something is asked as well as what it is about, and blur names and
products that they met seldom. Labelled utterances tell what matters here: directions in which one
intent varies count for less, and the words themselves count as much as helps to tell apart intents
whose labels were hidden. Without labels, or with a few only, the words count as much as the graph
of neighbours bears: as long as it falls into intents as cleanly as it does without them.
"""

import torch
from torch import Tensor
from torch.nn.functional import normalize

from ronid.assign.cuts import separability
from ronid.assign.neighbours import nearest_neighbours
from ronid.assign.whiten import within_whitened
from ronid.encode.encoder import Encoder
from ronid.encode.rows import Rows

WORD_WEIGHTS = (0.0, 0.5, 1.0)
"""Weights of the words beside the sentence vector, both of length 1, from which one is chosen."""

NEIGHBOURS = 10
"""Most neighbours by which a weight is judged."""


LEAST_LABELS = 100
"""Labelled utterances that it takes to judge a weight; fewer choose one by chance."""

ROWS = 2_000
"""Utterances of which a graph of neighbours is made."""

GRAPH_SHARE = 0.4
"""Length of its neighbour lists, as a share of the mean intent's size."""

LEEWAY = 0.005
"""Separability that words may cost: what another draw of utterances changes as well."""


def likeness(encoder: Encoder, rows: Rows, targets: Tensor, n_intents: int) -> Tensor:
    """Return (n, d) unit vectors whose cosines say how alike two utterances are.

    Args:
        encoder: As it is now.
        rows: The training rows, prepared.
        targets: (n,) given intents, -1 where there is none.
        n_intents: How many intents there are, known and new.
    """
    points = encoder.embed_all(rows)
    words = encoder.word_means(rows)
    if words is None:
        return within_whitened(points, targets)
    words = normalize(words - words.mean(dim=0), dim=1)
    if int((targets >= 0).sum()) < LEAST_LABELS:
        weight = borne_weight(points, words, n_intents)
    else:
        weight = chosen_weight(points, words, targets)
    return within_whitened(_joined(points, words, weight), targets)


def chosen_weight(points: Tensor, words: Tensor, targets: Tensor) -> float:
    """Return the weight of the words with which hidden intents show best.

    The known intents are cut in two. Those of one half are treated as new ones: their labels judge
    the neighbours in a space that was made with the labels of the other half.

    Args:
        points: (n, d) unit vectors.
        words: (n, w) unit vectors, or zeros.
        targets: (n,) given intents, -1 where there is none.
    """
    given = targets >= 0
    points, words, own = points[given], words[given], targets[given]
    if len(own) == 0:
        return WORD_WEIGHTS[0]
    purities = [_purity(_joined(points, words, weight), own) for weight in WORD_WEIGHTS]
    return WORD_WEIGHTS[purities.index(max(purities))]


def borne_weight(points: Tensor, words: Tensor, n_intents: int) -> float:
    """Return the largest weight of the words with which intents lie as far apart as without them.

    Args:
        points: (n, d) unit vectors.
        words: (n, w) unit vectors, or zeros.
        n_intents: How many intents there are.
    """
    drawn = torch.randperm(len(points), generator=torch.Generator().manual_seed(0))[:ROWS]
    points, words = (part[drawn.to(part.device)].float() for part in (points, words))
    near = round(GRAPH_SHARE * len(points) / max(1, n_intents))
    if n_intents < 2 or not 0 < near < len(points):
        return WORD_WEIGHTS[0]
    apart = [
        separability(normalize(_joined(points, words, weight), dim=1), n_intents, near)
        for weight in WORD_WEIGHTS
    ]
    return max(w for w, each in zip(WORD_WEIGHTS, apart, strict=True) if each >= apart[0] - LEEWAY)


def _joined(points: Tensor, words: Tensor, weight: float) -> Tensor:
    return torch.cat([points, weight * words], dim=1) if weight else points


def _purity(points: Tensor, own: Tensor) -> float:
    """Share of neighbours with the same intent, over both halves of the intents."""
    right, seen = 0, 0
    for half in (0, 1):
        hidden = own % 2 == half
        told = torch.where(hidden, -1, own)
        intents = own[hidden]
        each = len(intents) // max(1, len(intents.unique()))
        space = within_whitened(points, told)[hidden]
        near = nearest_neighbours(space, min(NEIGHBOURS, each // 2))
        right += int((intents[near] == intents[:, None]).sum())
        seen += near.numel()
    return right / max(1, seen)
