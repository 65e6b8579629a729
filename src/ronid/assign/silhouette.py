"""How well a clustering separates its points, without the distances of all pairs at once."""

import torch
from torch import Tensor

from ronid.assign.kmeans import class_sums, distances

BLOCK_ROWS = 512
# Squared distances below this share of the squared lengths are rounding: the points are equal.
EQUAL = 1e-13


@torch.no_grad()
def silhouette(
    points: Tensor,
    labels: Tensor,
    *,
    generator: torch.Generator,
    most: int = 5000,
    block_rows: int = BLOCK_ROWS,
) -> float:
    """Mean silhouette coefficient by Euclidean distance, over a random sample of the points.

    A point at mean distance a from the others of its cluster and b from the nearest other cluster
    has the coefficient (b - a) / max(a, b). A point alone in its cluster counts 0, as does one
    with a = b = 0. Where the points are more than `most`, the clusters are those of the sample.

    Args:
        points: (n, d).
        labels: (n,) integers, one cluster per value.
        generator: Source of the sample; left alone where all points are taken.
        most: Points that are taken at most.
        block_rows: Points whose distances are held at once.

    Returns:
        The mean coefficient, in [-1, 1]; 0.0 where fewer than two clusters are in the sample.

    Raises:
        ValueError: `labels` has another length, a count is less than 1, or a point is not finite.
    """
    n = len(points)
    if len(labels) != n:
        raise ValueError(f"there are {len(labels)} labels for {n} points")
    if min(most, block_rows) < 1:
        raise ValueError("most and block_rows must be at least 1")
    if not points.isfinite().all():
        raise ValueError("points hold NaN or infinity; look for empty texts or zero vectors")
    if n > most:
        drawn = torch.randperm(n, generator=generator, device=generator.device)[:most]
        points, labels = points[drawn.to(points.device)], labels[drawn.to(labels.device)]
    values, labels = labels.to(points.device).unique(return_inverse=True)
    k = len(values)
    if k < 2:
        return 0.0
    points = points.double()
    points = points - points.mean(dim=0)  # distances lose fewer digits around the origin
    total = sum(
        _coefficients(points, labels, k, start, block_rows).sum()
        for start in range(0, len(points), block_rows)
    )
    return float(total) / len(points)


def _coefficients(points: Tensor, labels: Tensor, k: int, start: int, block_rows: int) -> Tensor:
    """Coefficients (b,) of the points from `start` on."""
    rows = slice(start, start + block_rows)
    squares = points.square().sum(dim=1)
    gaps = distances(points[rows], squares[rows], points)  # (b, n)
    gaps.masked_fill_(gaps <= EQUAL * (squares[rows, None] + squares), 0)
    sums, counts = class_sums(gaps.sqrt_().T, labels, k)
    sums, own = sums.T, labels[rows, None]  # (b, k), (b, 1)
    inside = (sums.gather(1, own) / (counts[own] - 1).clamp(min=1))[:, 0]
    outside = (sums / counts).scatter_(1, own, torch.inf).amin(dim=1)
    wider = torch.maximum(inside, outside)
    lonely = counts[own[:, 0]] == 1
    return ((outside - inside) / wider).masked_fill_(lonely | (wider == 0), 0)
