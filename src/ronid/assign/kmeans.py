"""k-means: Lloyd's iterations from greedy k-means++ starts, on CPU and GPU.

Both halves work on blocks of rows, so that memory beyond the points stays that of one block of
distances. Semi-supervised k-means is the same two halves with some centroids and labels given.

On a GPU all restarts go through an iteration together: one of them alone would wait for the launch
of its kernels more than for their work. A CPU has nothing to wait for, and does them one by one.
"""

import math
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ronid.errors import RonidWarning

BLOCK_ROWS = 16384

BLOCK_DISTANCES = 2**26
"""Distances held at once where restarts go together; 256 MiB of float32."""


@dataclass(frozen=True, eq=False)
class KMeansResult:
    """The best of the restarts.

    Args:
        centroids: (k, d).
        labels: (n,) int64 index of the centroid of every point.
        inertia: Sum of squared distances of the points to their centroids.
        iterations: Lloyd iterations of the best restart.
        fixed: Whether its last iteration changed no label.
    """

    centroids: Tensor
    labels: Tensor
    inertia: float
    iterations: int
    fixed: bool


@torch.no_grad()
def kmeans(  # noqa: PLR0913 - the parameters scikit-learn users expect
    points: Tensor,
    k: int,
    *,
    generator: torch.Generator,
    n_init: int = 10,
    max_iterations: int = 300,
    tolerance: float = 1e-4,
    init: Tensor | None = None,
    block_rows: int = BLOCK_ROWS,
) -> KMeansResult:
    """Cluster points into k groups of least inertia.

    Args:
        points: (n, d) float32 or float64; normalise them first for clusters by cosine.
        k: Number of clusters, at most n.
        generator: Source of the starts; the same seed gives the same result on CPU.
        n_init: Restarts, of which the one of least inertia is kept.
        max_iterations: Lloyd iterations per restart.
        tolerance: Stop when the centroids move less than this share of the points' variance.
        init: (k, d) centroids to start from instead; then there is one restart.
        block_rows: Rows whose distances are held at once.

    Returns:
        The best restart.

    Raises:
        ValueError: `k` is not in 1..n, `init` has another shape, a count is less than 1, or a
            point is not finite.
    """
    check_problem(points, k, min(n_init, max_iterations, block_rows))
    centre = points.mean(dim=0)
    points = points - centre  # float32 distances lose fewer digits around the origin
    if init is not None:
        if init.shape != (k, points.shape[1]):
            raise ValueError(f"init has shape {tuple(init.shape)}, not {(k, points.shape[1])}")
        starts = (init.to(points) - centre)[None]
    else:
        starts = plus_plus(points, k, n_init, generator=generator, block_rows=block_rows)
    best = best_of(points, starts, max_iterations, tolerance, block_rows=block_rows)
    return replace(best, centroids=best.centroids + centre)


def check_problem(points: Tensor, k: int, least_count: int) -> None:
    """Raise a ValueError in one line where no clustering is possible.

    Args:
        points: (n, d).
        k: Number of clusters.
        least_count: The smallest of n_init, max_iterations and block_rows.
    """
    n = len(points)
    if not 1 <= k <= n:
        raise ValueError(f"k is {k}; it must lie between 1 and the number of points, {n}")
    if least_count < 1:
        raise ValueError("n_init, max_iterations and block_rows must be at least 1")
    if not points.isfinite().all():
        raise ValueError("points hold NaN or infinity; look for empty texts or zero vectors")


def plus_plus(
    points: Tensor,
    k: int,
    n_init: int,
    *,
    generator: torch.Generator,
    first: Tensor | None = None,
    block_rows: int = BLOCK_ROWS,
) -> Tensor:
    """Greedy k-means++ starts for all restarts at once.

    Each next centre is the best of a few points drawn by squared distance to the nearest centre.
    The restarts share every product with the points, which is what the time goes into.

    Args:
        points: (n, d).
        k: Number of centres, those of `first` included.
        n_init: Number of restarts.
        generator: Source of the draws.
        first: (m, d) centres that are given, or None.
        block_rows: Rows whose distances are held at once.

    Returns:
        (n_init, k, d) centres, `first` leading.
    """
    candidates = 2 + int(math.log(k))
    squares = points.square().sum(dim=1)  # (n,)
    if first is None:
        chosen = _draw(torch.ones_like(squares)[None], n_init, generator)[0]
        centres = points[chosen][:, None]  # (r, 1, d)
    else:
        centres = first.to(points).expand(n_init, *first.shape)
    nearest = torch.full((n_init, len(points)), math.inf).to(points)
    for given in centres.unbind(dim=1):
        _shrink(nearest, points, squares, given, block_rows)
    while centres.shape[1] < k:
        drawn = _draw(nearest, candidates, generator)  # (r, c) rows of points
        potential = torch.zeros_like(drawn, dtype=torch.float64)
        for rows in _slices(len(points), block_rows):
            gaps = distances(points[rows], squares[rows], points[drawn.flatten()])
            gaps = gaps.T.reshape(*drawn.shape, -1)  # (r, c, b)
            potential += torch.minimum(gaps, nearest[:, None, rows]).sum(dim=2)
        best = drawn.gather(1, potential.argmin(dim=1, keepdim=True))[:, 0]  # (r,)
        _shrink(nearest, points, squares, points[best], block_rows)
        centres = torch.cat([centres, points[best][:, None]], dim=1)
    return centres


def _draw(weights: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """Draw `count` columns per row of (r, n) weights, with replacement: (r, count)."""
    cumulated = weights.double().cumsum(dim=1)
    uniform = torch.rand(
        (len(weights), count), generator=generator, dtype=torch.float64, device=generator.device
    )
    drawn = torch.searchsorted(cumulated, uniform.to(weights.device) * cumulated[:, -1:])
    return drawn.clamp_(max=weights.shape[1] - 1)


def _shrink(
    nearest: Tensor, points: Tensor, squares: Tensor, centres: Tensor, block_rows: int
) -> None:
    """Lower the (r, n) squared distances to the nearest centre by one new centre per restart."""
    for rows in _slices(len(points), block_rows):
        gaps = distances(points[rows], squares[rows], centres).T  # (r, b)
        nearest[:, rows] = torch.minimum(nearest[:, rows], gaps)


def best_of(
    points: Tensor,
    starts: Tensor,
    max_iterations: int,
    tolerance: float,
    *,
    given: Tensor | None = None,
    block_rows: int = BLOCK_ROWS,
) -> KMeansResult:
    """Run Lloyd's iterations from every start and keep the result of least inertia.

    Args:
        points: (n, d).
        starts: (r, k, d) centroids to start from.
        max_iterations: Iterations per start.
        tolerance: Share of the points' variance below which a move of the centroids ends it.
        given: (n,) labels that points keep, -1 where free, or None.
        block_rows: Rows whose distances are held at once.

    Returns:
        The best result.
    """
    threshold = tolerance * float(points.var(dim=0, correction=0).mean())
    how = (max_iterations, threshold, given, block_rows)
    runs: Iterable[KMeansResult] = (_lloyd(points, start, *how) for start in starts)
    if points.is_cuda and len(starts) > 1:
        runs = _lloyd_together(points, starts, *how)
    best = min(runs, key=lambda run: run.inertia)
    empty = len(starts[0]) - len(best.labels.unique())
    if empty:
        warnings.warn(
            f"{empty} of {len(starts[0])} clusters are empty: too few distinct points for so many",
            RonidWarning,
            stacklevel=4,
        )
    return best


def _lloyd_together(
    points: Tensor,
    starts: Tensor,
    max_iterations: int,
    threshold: float,
    given: Tensor | None,
    block_rows: int,
) -> Iterator[KMeansResult]:
    """Run all starts at once, each until it would stop on its own."""
    centroids, labels = starts.clone(), _nearest_of_each(points, starts, given, block_rows)
    counts = torch.zeros(len(starts), dtype=torch.int64, device=points.device)
    fixed = torch.zeros_like(counts, dtype=torch.bool)
    going = torch.arange(len(starts), device=points.device)
    for _ in range(max_iterations):
        before, own = centroids[going], labels[going]
        moved = _means_of_each(points, own, before, given)
        nearest = _nearest_of_each(points, moved, given, block_rows)
        centroids[going], labels[going] = moved, nearest
        fixed[going] = (nearest == own).all(dim=1)
        counts[going] += 1
        settled = fixed[going] | ((moved - before).square().sum(dim=(1, 2)) <= threshold)
        going = going[~settled]
        if not len(going):
            break
    ends = zip(centroids, labels, counts.tolist(), fixed.tolist(), strict=True)
    for means, nearest, iterations, stays in ends:
        yield KMeansResult(means, nearest, _inertia(points, means, nearest), iterations, stays)


def _nearest_of_each(
    points: Tensor, centroids: Tensor, given: Tensor | None, block_rows: int
) -> Tensor:
    """Labels (r, n) of all points by each of (r, k, d) sets of centroids."""
    sets, k, _ = centroids.shape
    flat = centroids.flatten(0, 1)
    offset = flat.square().sum(dim=1)  # (r * k,)
    block_rows = max(1, min(block_rows, BLOCK_DISTANCES // len(flat)))
    nearest = [
        torch.addmm(offset, points[rows], flat.T, alpha=-2).view(-1, sets, k).argmin(dim=2)
        for rows in _slices(len(points), block_rows)
    ]
    labels = torch.cat(nearest).T.contiguous()
    return labels if given is None else torch.where(given >= 0, given, labels)


def _means_of_each(
    points: Tensor, labels: Tensor, centroids: Tensor, given: Tensor | None
) -> Tensor:
    """New centroids (r, k, d) of each set, as `_means` makes them."""
    sums, counts = torch.zeros_like(centroids), torch.zeros_like(centroids[:, :, 0])
    for total, own in zip(sums, labels, strict=True):
        total.index_add_(0, own, points)
    counts.scatter_add_(1, labels, counts.new_ones(()).expand_as(labels))  # bincount would wait
    means = sums / counts.clamp(min=1)[:, :, None]
    for i in (counts == 0).any(dim=1).nonzero()[:, 0].tolist():
        means[i] = _means(points, labels[i], centroids[i], given)
    return means


def _lloyd(
    points: Tensor,
    centroids: Tensor,
    max_iterations: int,
    threshold: float,
    given: Tensor | None,
    block_rows: int,
) -> KMeansResult:
    """Assign, average, repeat, until no label changes or the centroids stay where they are."""
    labels = nearest_centroid(points, centroids, given=given, block_rows=block_rows)
    iterations, fixed, settled = 0, False, False
    while not settled and iterations < max_iterations:
        moved = _means(points, labels, centroids, given)
        shift = float((moved - centroids).square().sum())
        previous, centroids = labels, moved
        labels = nearest_centroid(points, centroids, given=given, block_rows=block_rows)
        fixed = torch.equal(labels, previous)
        settled = fixed or shift <= threshold
        iterations += 1
    inertia = _inertia(points, centroids, labels)
    return KMeansResult(centroids, labels, inertia, iterations, fixed)


def nearest_centroid(
    points: Tensor,
    centroids: Tensor,
    *,
    given: Tensor | None = None,
    block_rows: int = BLOCK_ROWS,
) -> Tensor:
    """Index of the nearest centroid of every point.

    Args:
        points: (n, d).
        centroids: (k, d).
        given: (n,) labels that points keep, -1 where free, or None.
        block_rows: Rows whose distances are held at once.

    Returns:
        (n,) int64 labels.
    """
    offset = centroids.square().sum(dim=1)  # (k,); |x|^2 is the same for all centroids
    nearest = [
        torch.addmm(offset, points[rows], centroids.T, alpha=-2).argmin(dim=1)
        for rows in _slices(len(points), block_rows)
    ]
    labels = torch.cat(nearest)
    return labels if given is None else torch.where(given >= 0, given, labels)


def class_means(points: Tensor, labels: Tensor, k: int) -> Tensor:
    """Mean of the points of each class; zeros for a class without points.

    Args:
        points: (n, d).
        labels: (n,) classes in 0..k-1, or -1 for points to leave out.
        k: Number of classes.

    Returns:
        (k, d) means.
    """
    kept = labels >= 0
    sums, counts = class_sums(points[kept], labels[kept], k)
    return sums / counts.clamp(min=1)[:, None]


def class_sums(points: Tensor, labels: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Sum (k, d) and number (k,) of the points of each class; every point has one."""
    sums = points.new_zeros(k, points.shape[1]).index_add_(0, labels, points)
    return sums, torch.bincount(labels, minlength=k)


def _means(points: Tensor, labels: Tensor, centroids: Tensor, given: Tensor | None) -> Tensor:
    """New centroids; an empty cluster restarts at one of the free points farthest from theirs."""
    sums, counts = class_sums(points, labels, len(centroids))
    means = sums / counts.clamp(min=1)[:, None]
    empty = (counts == 0).nonzero()[:, 0]
    if len(empty):
        gaps = (points - centroids[labels]).square().sum(dim=1)
        if given is not None:
            gaps.masked_fill_(given >= 0, -1)
        means[empty] = points[gaps.topk(len(empty)).indices]
    return means


def _inertia(points: Tensor, centroids: Tensor, labels: Tensor) -> float:
    total = 0.0
    for rows in _slices(len(points), BLOCK_ROWS):
        total += float((points[rows] - centroids[labels[rows]]).square().sum())
    return total


def distances(points: Tensor, squares: Tensor, centres: Tensor) -> Tensor:
    """Squared distances (b, c) of points with these squared norms to centres."""
    gaps = torch.addmm(squares[:, None], points, centres.T, alpha=-2)
    return gaps.add_(centres.square().sum(dim=1)).clamp_(min=0)


def _slices(n: int, block_rows: int) -> list[slice]:
    """Cut 0..n-1 into blocks of rows."""
    return [slice(start, min(start + block_rows, n)) for start in range(0, n, block_rows)]
