"""Semi-supervised k-means: labelled points keep their class (Vaze et al., 2022, GCD)."""

from dataclasses import replace

import torch
from torch import Tensor

from ronid.assign.kmeans import (
    BLOCK_ROWS,
    KMeansResult,
    best_of,
    check_problem,
    class_means,
    plus_plus,
)


@torch.no_grad()
def semisup_kmeans(  # noqa: PLR0913 - those of kmeans and the targets
    points: Tensor,
    targets: Tensor,
    k: int,
    *,
    generator: torch.Generator,
    n_init: int = 10,
    max_iterations: int = 200,
    tolerance: float = 1e-4,
    block_rows: int = BLOCK_ROWS,
) -> KMeansResult:
    """Cluster points into the known classes and k - M new ones.

    The known centroids start at the means of their labelled points. The others are drawn by
    k-means++ among the unlabelled points, with the known ones as first centres. In Lloyd's
    iterations labelled points stay in their class, unlabelled ones may join any.

    Args:
        points: (n, d); normalise them first for clusters by cosine.
        targets: (n,) classes in 0..M-1, or -1 where unlabelled.
        k: Number of classes, known and new.
        generator: Source of the starts.
        n_init: Restarts, of which the one of least inertia over all points is kept.
        max_iterations: Lloyd iterations per restart.
        tolerance: Stop when the centroids move less than this share of the points' variance.
        block_rows: Rows whose distances are held at once.

    Returns:
        The best restart; centroids 0..M-1 are those of the known classes.

    Raises:
        ValueError: A known class has no labelled point, there are more known classes than `k` or
            fewer unlabelled points than new ones, or as for `kmeans`.
    """
    check_problem(points, k, min(n_init, max_iterations, block_rows))
    targets = targets.to(points.device)
    free = targets < 0
    counts = torch.bincount(targets[~free])  # (M,)
    if (counts == 0).any():
        missing = (counts == 0).nonzero()[:, 0].tolist()
        raise ValueError(f"known classes {missing} have no labelled point; number them 0..M-1")
    if not len(counts) <= k <= len(counts) + int(free.sum()):
        raise ValueError(
            f"k is {k}; it must lie between the number of known classes, {len(counts)}, and "
            f"that plus the number of unlabelled points, {int(free.sum())}"
        )
    centre = points.mean(dim=0)
    points = points - centre  # float32 distances lose fewer digits around the origin
    known = class_means(points, targets, len(counts)) if len(counts) else None
    starts = plus_plus(
        points[free], k, n_init, generator=generator, first=known, block_rows=block_rows
    )
    best = best_of(points, starts, max_iterations, tolerance, given=targets, block_rows=block_rows)
    return replace(best, centroids=best.centroids + centre)
