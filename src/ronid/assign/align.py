"""Matching of clusters: which of these is which of those (Hungarian algorithm)."""

from typing import Literal

import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

Metric = Literal["euclidean", "cosine"]


@torch.no_grad()
def match(a: Tensor, b: Tensor, metric: Metric = "euclidean") -> Tensor:
    """One-to-one matching of least total cost.

    Args:
        a: (m, d) vectors.
        b: (k, d) vectors, at least as many.
        metric: Cost of a pair: Euclidean distance, or 1 - cosine.

    Returns:
        (m,) int64 indices p on the device of `a`: row i of `a` belongs to row p[i] of `b`.

    Raises:
        ValueError: `b` has fewer rows than `a`, or the metric is unknown.
    """
    if len(a) > len(b):
        raise ValueError(f"cannot match {len(a)} vectors one to one with {len(b)}")
    if metric == "euclidean":
        cost = torch.cdist(a.double(), b.double())  # (m, k)
    elif metric == "cosine":
        unit_a, unit_b = (torch.nn.functional.normalize(x.double(), dim=1) for x in (a, b))
        cost = 1 - unit_a @ unit_b.T
    else:
        raise ValueError(f"metric is {metric!r}; use 'euclidean' or 'cosine'")
    _, matched = linear_sum_assignment(cost.cpu().numpy())
    return torch.as_tensor(matched, dtype=torch.int64, device=a.device)


def order_by_known(centroids: Tensor, class_means: Tensor, metric: Metric = "euclidean") -> Tensor:
    """Centroids reordered so that those of the known intents come first.

    Args:
        centroids: (k, d), in any order.
        class_means: (m, d) means of the labelled utterances of each known intent.
        metric: As in `match`.

    Returns:
        (k, d): row i < m is the centroid matched to known intent i; the others follow in order.

    Raises:
        ValueError: There are more known intents than centroids.
    """
    known = match(class_means, centroids, metric).to(centroids.device)
    novel = torch.ones(len(centroids), dtype=torch.bool, device=centroids.device)
    novel[known] = False
    return torch.cat([centroids[known], centroids[novel]])
