"""k-means that leaves local optima: centroids are added where they help, removed where they do not.

Lloyd's iterations cannot undo a start that put two centroids into one intent and one between two
others: every point would have to pass a worse place first. With many intents some such pair is in
nearly every restart. Here a few centroids are put into the worst clusters, and as many of the least
useful ones taken away; what lowers the inertia is kept.
"""

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial

import torch
from torch import Tensor
from torch.nn.functional import normalize

from ronid.assign.kmeans import (
    BLOCK_ROWS,
    KMeansResult,
    best_of,
    class_sums,
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
    lloyd = _Lloyd(points, targets.to(points.device), max_iterations, tolerance, block_rows)
    return _exchanged(lloyd, lloyd.begun(k, n_init, generator), breaths, generator)


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
    lloyd = _Lloyd(points, targets.to(points.device), max_iterations, tolerance, block_rows)
    return _exchanged(lloyd, lloyd.settled(centroids), breaths, generator)


@dataclass(frozen=True, eq=False)
class _Lloyd:
    """Lloyd's iterations on one problem; arguments as of `breathing_kmeans`."""

    points: Tensor
    targets: Tensor
    max_iterations: int
    tolerance: float
    block_rows: int

    @cached_property
    def known(self) -> int:
        """Number of known classes, 0 where nothing is labelled."""
        return int(self.targets.max()) + 1

    def begun(self, k: int, n_init: int, generator: torch.Generator) -> KMeansResult:
        """Cluster by k-means alone."""
        plain = partial(semisup_kmeans, targets=self.targets) if self.known else kmeans
        found = plain(
            self.points,
            k=k,
            generator=generator,
            n_init=n_init,
            max_iterations=self.max_iterations,
            tolerance=self.tolerance,
            block_rows=self.block_rows,
        )
        return found if found.fixed else self.settled(found.centroids)

    def settled(self, centroids: Tensor, iterations: int | None = None) -> KMeansResult:
        """Iterate from `centroids` on, to the end or a few times only."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RonidWarning)  # of centroids that are only tried
            return best_of(
                self.points,
                centroids[None],
                iterations or self.max_iterations,
                self.tolerance,
                given=self.targets,
                block_rows=self.block_rows,
            )

    def blocks(self, labels: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Cut the points and their labels into blocks of rows."""
        return zip(self.points.split(self.block_rows), labels.split(self.block_rows), strict=True)


def _exchanged(
    lloyd: _Lloyd, best: KMeansResult, breaths: int, generator: torch.Generator
) -> KMeansResult:
    """Exchange centroids of a settled clustering as long as that helps."""
    new = len(best.centroids) - lloyd.known
    if not new:  # known centroids are never taken away
        return best
    halves = _halve(lloyd, best, generator)
    size, failed = max(1, new // 4), 0
    for _ in range(breaths):
        # After failures at size 1 the next best split is tried.
        split = halves.gains.topk(min(size + failed, len(best.centroids))).indices[-size:]
        wide = best.centroids.index_copy(0, split, halves.stay[split])
        wide = torch.cat([wide, halves.leave[split]])
        narrow = _exhaled(lloyd, lloyd.settled(wide, BRIEF).centroids, size)
        found = lloyd.settled(narrow, 2 * BRIEF)
        if found.inertia < best.inertia * (1 - 1e-5):
            best, failed = found, 0
            halves = _halve(lloyd, best, generator)
        elif size > 1:
            size //= 2
        else:
            failed += 1
            if failed == min(PATIENCE, len(best.centroids)):
                break
    return lloyd.settled(best.centroids)


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


def _halve(lloyd: _Lloyd, found: KMeansResult, generator: torch.Generator) -> _Halves:
    """Split every cluster along its longest axis, then by 2-means within it."""
    points, labels, k = lloyd.points, found.labels, len(found.centroids)
    side = _side(lloyd, found, generator)
    for _ in range(BRIEF):
        # Not class_means: that copies the points to leave some of them out.
        sums, counts = class_sums(points, 2 * labels + side, 2 * k)
        centres = (sums / counts.clamp(min=1)[:, None]).view(k, 2, -1)
        gaps = torch.stack([_gaps(lloyd, centres[:, i], labels) for i in (0, 1)], dim=1)  # (n, 2)
        side = gaps.argmin(dim=1)
    gained = _gaps(lloyd, found.centroids, labels) - gaps.amin(dim=1)
    gains = points.new_zeros(k).index_add_(0, labels, gained)
    given = torch.bincount((2 * labels + side)[lloyd.targets >= 0], minlength=2 * k).view(k, 2)
    first = (given[:, 0] >= given[:, 1])[:, None]
    return _Halves(
        gains,
        torch.where(first, centres[:, 0], centres[:, 1]),
        torch.where(first, centres[:, 1], centres[:, 0]),
    )


def _side(lloyd: _Lloyd, found: KMeansResult, generator: torch.Generator) -> Tensor:
    """On which side (n,) of its cluster, 0 or 1, each point lies along the longest axis."""
    centroids = found.centroids
    axes = torch.randn(centroids.shape, generator=generator, device=generator.device)
    axes = axes.to(centroids)
    for _ in range(BRIEF):  # power iterations of all clusters at once
        pull = torch.zeros_like(axes)
        for x, own in lloyd.blocks(found.labels):
            offsets = x - centroids[own]
            along = (offsets * axes[own]).sum(dim=1, keepdim=True)
            pull.index_add_(0, own, along * offsets)
        axes = normalize(pull, dim=1)
    sides = [
        ((x - centroids[own]) * axes[own]).sum(dim=1) > 0 for x, own in lloyd.blocks(found.labels)
    ]
    return torch.cat(sides).long()


def _gaps(lloyd: _Lloyd, centres: Tensor, labels: Tensor) -> Tensor:
    """Squared distance (n,) of every point to the centre of its cluster."""
    return torch.cat([(x - centres[own]).square().sum(dim=1) for x, own in lloyd.blocks(labels)])


def _exhaled(lloyd: _Lloyd, centroids: Tensor, size: int) -> Tensor:
    """Return the centroids without the `size` whose points lose least by going elsewhere."""
    points, targets = lloyd.points, lloyd.targets
    squares = points.square().sum(dim=1)  # (n,)
    gone = torch.zeros(len(centroids), dtype=torch.bool, device=points.device)
    near = points.new_empty(len(points), 2)  # distances to the two nearest that are left
    which = torch.empty(len(points), 2, dtype=torch.int64, device=points.device)
    stale = torch.arange(len(points), device=points.device)
    for _ in range(size):  # one by one: of twins either may go, but not both
        for rows in stale.split(lloyd.block_rows):
            gaps = distances(points[rows], squares[rows], centroids).masked_fill_(gone, math.inf)
            near[rows], which[rows] = gaps.topk(2, largest=False)
        # A labelled point stays with its known class whatever happens to the others.
        loss = torch.where(targets < 0, near[:, 1] - near[:, 0], 0)
        losses = points.new_zeros(len(centroids)).index_add_(0, which[:, 0], loss)
        losses[: lloyd.known] = math.inf
        least = losses.masked_fill(gone, math.inf).argmin()
        gone[least] = True
        stale = (which == least).any(dim=1).nonzero()[:, 0]
    first = len(centroids) - size
    kept = centroids[:first].clone()
    kept[gone[:first]] = centroids[first:][~gone[first:]]  # the others keep their numbers
    return kept
