"""k-means that leaves local optima: centroids are added where they help, removed where they do not.

Lloyd's iterations cannot undo a start that put two centroids into one intent and one between two
others: every point would have to pass a worse place first. With many intents some such pair is in
nearly every restart. Here a few centroids are put into the worst clusters, and as many of the least
useful ones taken away; what lowers the inertia is kept.
"""

import math
import warnings
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize

from ronid.assign.kmeans import (
    BLOCK_ROWS,
    KMeansResult,
    best_of,
    class_means,
    distances,
    kmeans,
)
from ronid.assign.semisup_kmeans import semisup_kmeans
from ronid.errors import RonidWarning

PATIENCE = 12
"""Splits of single clusters that may fail in a row before the search ends."""

BRIEF = 5
"""Lloyd iterations after centroids were added; twice as many after some were removed."""


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
        Fritzke, 2020, The breathing k-means algorithm; here with labelled points, and with new
        centroids where splitting a cluster gains most.
    """
    targets = targets.to(points.device)
    known = int(targets.max()) + 1  # 0 where nothing is labelled
    settings = {
        "n_init": n_init,
        "max_iterations": max_iterations,
        "tolerance": tolerance,
        "block_rows": block_rows,
    }
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
    halves = _halve(points, best, targets, generator)
    size, failed = max(1, new // 4), 0
    for _ in range(breaths if new else 0):
        # After failures at size 1 the next best split is tried.
        split = halves.gains.topk(min(size + failed, len(best.centroids))).indices[-size:]
        wide = best.centroids.index_copy(0, split, halves.stay[split])
        wide = torch.cat([wide, halves.leave[split]])
        wide = _settle(points, wide, targets, BRIEF, tolerance, block_rows).centroids
        narrow = _exhaled(points, wide, targets, known, size, block_rows)
        found = _settle(points, narrow, targets, 2 * BRIEF, tolerance, block_rows)
        if found.inertia < best.inertia * (1 - 1e-5):
            best, failed = found, 0
            halves = _halve(points, best, targets, generator)
        elif size > 1:
            size //= 2
        else:
            failed += 1
            if failed == min(PATIENCE, len(best.centroids)):
                break
    return _settle(points, best.centroids, targets, max_iterations, tolerance, block_rows)


@dataclass(frozen=True)
class _Halves:
    """What splitting each cluster in two would bring.

    Args:
        gains: (k,) by how much the inertia would fall.
        stay: (k, d) centre of the half that keeps the cluster's number: of more labelled points.
        leave: (k, d) centre of the other half.
    """

    gains: Tensor
    stay: Tensor
    leave: Tensor


def _halve(
    points: Tensor, found: KMeansResult, targets: Tensor, generator: torch.Generator
) -> _Halves:
    """Split every cluster along its longest axis, then by 2-means within it."""
    labels, k = found.labels, len(found.centroids)
    offsets = points - found.centroids[labels]  # (n, d)
    axes = torch.randn(found.centroids.shape, generator=generator, device=generator.device)
    axes = axes.to(points)
    for _ in range(BRIEF):  # power iterations of all clusters at once
        along = (offsets * axes[labels]).sum(dim=1, keepdim=True)
        axes = normalize(torch.zeros_like(axes).index_add_(0, labels, along * offsets), dim=1)
    side = ((offsets * axes[labels]).sum(dim=1) > 0).long()  # (n,)
    for _ in range(BRIEF):
        centres = class_means(points, 2 * labels + side, 2 * k).view(k, 2, -1)
        halves = [(points - centres[labels, i]).square().sum(dim=1) for i in (0, 1)]
        gaps = torch.stack(halves, dim=1)  # (n, 2)
        side = gaps.argmin(dim=1)
    own = offsets.square().sum(dim=1)
    gains = own.new_zeros(k).index_add_(0, labels, own - gaps.amin(dim=1))
    given = torch.bincount((2 * labels + side)[targets >= 0], minlength=2 * k).view(k, 2)
    first = (given[:, 0] >= given[:, 1])[:, None]
    return _Halves(
        gains,
        torch.where(first, centres[:, 0], centres[:, 1]),
        torch.where(first, centres[:, 1], centres[:, 0]),
    )


def _settle(  # noqa: PLR0913, PLR0917 - passes on
    points: Tensor,
    centroids: Tensor,
    targets: Tensor,
    max_iterations: int,
    tolerance: float,
    block_rows: int,
) -> KMeansResult:
    """Lloyd's iterations from `centroids`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RonidWarning)  # of centroids that are only tried
        return best_of(
            points, centroids[None], max_iterations, tolerance, given=targets, block_rows=block_rows
        )


def _exhaled(
    points: Tensor, centroids: Tensor, targets: Tensor, known: int, size: int, block_rows: int
) -> Tensor:
    """Return the centroids without the `size` whose points lose least by going elsewhere."""
    squares = points.square().sum(dim=1)  # (n,)
    gone = torch.zeros(len(centroids), dtype=torch.bool, device=points.device)
    near = points.new_empty(len(points), 2)  # distances to the two nearest that are left
    which = torch.empty(len(points), 2, dtype=torch.int64, device=points.device)
    stale = torch.arange(len(points), device=points.device)
    for _ in range(size):  # one by one: of twins either may go, but not both
        for rows in stale.split(block_rows):
            gaps = distances(points[rows], squares[rows], centroids).masked_fill_(gone, math.inf)
            near[rows], which[rows] = gaps.topk(2, largest=False)
        # A labelled point stays with its known class whatever happens to the others.
        loss = torch.where(targets < 0, near[:, 1] - near[:, 0], 0)
        losses = points.new_zeros(len(centroids)).index_add_(0, which[:, 0], loss)
        losses[:known] = math.inf
        least = losses.masked_fill(gone, math.inf).argmin()
        gone[least] = True
        stale = (which == least).any(dim=1).nonzero()[:, 0]
    first = len(centroids) - size
    kept = centroids[:first].clone()
    kept[gone[:first]] = centroids[first:][~gone[first:]]  # the others keep their numbers
    return kept
