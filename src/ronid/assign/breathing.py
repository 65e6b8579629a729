"""k-means that leaves local optima: centroids are added where they help, removed where they do not.

Lloyd's iterations cannot undo a start that put two centroids into one intent and one between two
others: every point would have to pass a worse place first. With many intents some such pair is in
nearly every restart. Here a few centroids are put into the worst clusters, and as many of the least
useful ones taken away; what lowers the inertia is kept.
"""

import math

import torch
from torch import Tensor

from ronid.assign.kmeans import (
    BLOCK_ROWS,
    KMeansResult,
    best_of,
    distances,
    draw,
    kmeans,
    slices,
)
from ronid.assign.semisup_kmeans import semisup_kmeans

PATIENCE = 12
"""Exchanges of a single centroid that may fail in a row before the search ends."""


@torch.no_grad()
def breathing_kmeans(  # noqa: PLR0913 - those of semisup_kmeans and the breaths
    points: Tensor,
    targets: Tensor,
    k: int,
    *,
    generator: torch.Generator,
    n_init: int = 3,
    breaths: int = 60,
    max_iterations: int = 200,
    tolerance: float = 1e-4,
    block_rows: int = BLOCK_ROWS,
) -> KMeansResult:
    """Cluster points into the known classes and k - M new ones, escaping local optima.

    Args:
        points: (n, d); normalise them first for clusters by cosine.
        targets: (n,) classes in 0..M-1, or -1 where unlabelled; labelled points keep their class,
            and the centroids of known classes are never taken away.
        k: Number of classes, known and new.
        generator: Source of starts and exchanges.
        n_init: Restarts of the k-means it begins with.
        breaths: Most exchanges tried.
        max_iterations: Lloyd iterations per attempt.
        tolerance: Stop Lloyd when the centroids move less than this share of the variance.
        block_rows: Rows whose distances are held at once.

    Returns:
        The clustering of least inertia; centroids 0..M-1 are those of the known classes.

    Reference:
        Fritzke, 2020, The breathing k-means algorithm; here with labelled points, and exchanges
        drawn at random.
    """
    targets = targets.to(points.device)
    known = int(targets.max()) + 1  # 0 where nothing is labelled
    settings = {"n_init": n_init, "max_iterations": max_iterations, "tolerance": tolerance}
    if known > 0:
        best = semisup_kmeans(points, targets, k, generator=generator, **settings)  # type: ignore[arg-type]
    else:
        best = kmeans(points, k, generator=generator, **settings)  # type: ignore[arg-type]
    return breathe(
        points,
        targets,
        best.centroids,
        generator=generator,
        breaths=breaths,
        max_iterations=max_iterations,
        tolerance=tolerance,
        block_rows=block_rows,
    )


@torch.no_grad()
def breathe(  # noqa: PLR0913 - as above
    points: Tensor,
    targets: Tensor,
    centroids: Tensor,
    *,
    generator: torch.Generator,
    breaths: int = 60,
    max_iterations: int = 200,
    tolerance: float = 1e-4,
    block_rows: int = BLOCK_ROWS,
) -> KMeansResult:
    """Improve a clustering by exchanging centroids; arguments as of `breathing_kmeans`."""
    targets = targets.to(points.device)
    known = int(targets.max()) + 1
    new = len(centroids) - known
    best = _settle(points, centroids, targets, max_iterations, tolerance, block_rows)
    size, failed = max(1, new // 4), 0
    for _ in range(breaths if new else 0):
        wide = _inhaled(points, best, size, generator)
        wide = _settle(points, wide, targets, max_iterations, tolerance, block_rows).centroids
        narrow = _exhaled(points, wide, targets, known, size, block_rows)
        found = _settle(points, narrow, targets, max_iterations, tolerance, block_rows)
        if found.inertia < best.inertia * (1 - 1e-5):
            best, failed = found, 0
        elif size > 1:
            size //= 2
        else:
            failed += 1
            if failed == PATIENCE:
                break
    return best


def _settle(  # noqa: PLR0913, PLR0917 - passes on
    points: Tensor,
    centroids: Tensor,
    targets: Tensor,
    max_iterations: int,
    tolerance: float,
    block_rows: int,
) -> KMeansResult:
    """Lloyd's iterations from `centroids`."""
    return best_of(
        points, centroids[None], max_iterations, tolerance, given=targets, block_rows=block_rows
    )


def _inhaled(points: Tensor, found: KMeansResult, size: int, generator: torch.Generator) -> Tensor:
    """Return the centroids and `size` more: points drawn by their share of the inertia."""
    own = (points - found.centroids[found.labels]).square().sum(dim=1)  # (n,)
    return torch.cat([found.centroids, points[draw(own[None], size, generator)[0]]])


def _exhaled(
    points: Tensor, centroids: Tensor, targets: Tensor, known: int, size: int, block_rows: int
) -> Tensor:
    """Return the centroids without the `size` whose points lose least by going elsewhere."""
    squares = points.square().sum(dim=1)  # (n,)
    for _ in range(size):  # one by one: of twins either may go, but not both
        losses = points.new_zeros(len(centroids))
        for rows in slices(len(points), block_rows):
            gaps = distances(points[rows], squares[rows], centroids)  # (b, k)
            near = gaps.topk(2, largest=False)
            free = targets[rows] < 0  # a labelled point stays with its known class anyway
            loss = torch.where(free, near.values[:, 1] - near.values[:, 0], 0)
            losses.index_add_(0, near.indices[:, 0], loss)
        losses[:known] = math.inf
        kept = torch.arange(len(centroids), device=points.device) != losses.argmin()
        centroids = centroids[kept]
    return centroids
