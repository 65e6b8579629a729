"""Labels lent to neighbours: each labelled utterance speaks for those most like it."""

import torch
from torch import Tensor
from torch.nn.functional import normalize

BLOCK_ROWS = 512


@torch.no_grad()
def donated_labels(
    points: Tensor, targets: Tensor, clusters: Tensor, count: int, *, block_rows: int = BLOCK_ROWS
) -> Tensor:
    """Given labels, and those that labelled points lend to the most similar points without one.

    A labelled point gives its label to the `count` unlabelled points of its own cluster with which
    it has the largest cosine, or to fewer where there are fewer. A point that is offered several
    labels takes that of the most similar giver, and of equally similar ones the smallest.

    Args:
        points: (n, d) of any length.
        targets: (n,) given labels, -1 where there is none.
        clusters: (n,) cluster of every point.
        count: Points that each labelled one gives to; 0 for none.
        block_rows: Labelled points compared with all others at a time.

    Returns:
        (n,) labels, -1 where there is still none.
    """
    given, free = (targets >= 0).nonzero()[:, 0], (targets < 0).nonzero()[:, 0]
    count = min(count, len(free))
    if count < 1 or not len(given):
        return targets.clone()
    unit = normalize(points, dim=1)
    best = unit.new_full((len(free),), -torch.inf)
    most = int(targets.max()) + 1
    lent = torch.full_like(free, most)  # more than any label
    for givers in given.split(block_rows):
        similar = unit[givers] @ unit[free].T  # (b, f)
        apart = clusters[givers][:, None] != clusters[free]
        offers, takers = similar.masked_fill_(apart, -torch.inf).topk(count)  # (b, count)
        offers, takers = offers.flatten(), takers.flatten()
        labels = targets[givers].repeat_interleave(count)
        better = best.scatter_reduce(0, takers, offers, "amax")
        lent.masked_fill_(better > best, most)
        best = better
        chosen = (offers == best[takers]) & offers.isfinite()
        lent.scatter_reduce_(0, takers, torch.where(chosen, labels, most), "amin")
    out = targets.clone()
    out[free] = torch.where(lent < most, lent, -1)
    return out
