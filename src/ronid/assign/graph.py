"""Graphs of near neighbours: weights spread over several hops, and smoothing along the edges.

Both are built for all points of a corpus. What is held is sparse or a block of rows; no n x n
matrix ever is.
"""

import warnings
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize

from ronid.assign.neighbours import nearest_neighbours

BLOCK_ROWS = 256


@dataclass(frozen=True, eq=False)
class DiffusionGraph:
    """Weights in [0, 1] between all points, the heaviest of each row stored.

    The tables have one width for all rows, so that a block of weights comes from fixed shapes and
    without a look at the values: a recorded CUDA graph can hold it.

    Args:
        columns: (n, m) int32 points that a row has weights to, heaviest first, none twice.
        weights: (n, m) their weights before known labels; 0 beyond the last one of a row.
        targets: (n,) known label of every point, -1 where there is none.
        dropped: Share of the weight of all rows, before known labels, that the tables leave out;
            0, up to rounding, where every row fits.
    """

    columns: Tensor
    weights: Tensor
    targets: Tensor
    dropped: float

    def rows(self, index: Tensor) -> Tensor:
        """Weights from some points to all, known labels included.

        Args:
            index: (b,) int64 numbers of points, on the device of the graph.

        Returns:
            (b, n) weights: those of the graph, and 1 between points of the same known label.
        """
        block = self.weights.new_zeros(len(index), len(self.columns))
        block.scatter_(1, self.columns[index].long(), self.weights[index])
        known = self.targets[index][:, None]  # (b, 1)
        return block.masked_fill_((known == self.targets) & (known >= 0), 1)


@torch.no_grad()
def diffusion_graph(  # noqa: PLR0913 - the choices of the published graph, each with its value
    points: Tensor,
    neighbours: int,
    *,
    targets: Tensor | None = None,
    hops: int = 3,
    least_cosine: float = 0.3,
    scale: float = 1.1,
    most: int = 2048,
    narrow: bool = True,
    block_rows: int = BLOCK_ROWS,
) -> DiffusionGraph:
    """Spread the weights of near neighbours over paths of a few hops: the graph of DWGF.

    With A of `neighbour_graph`, the weights are A + A^2 + ... + A^hops without decay. They are
    0 where the cosine of the two points is at most `least_cosine`; each row is divided by its
    largest weight, multiplied by `scale` and cut at 1, so that what lies near the largest weight
    counts in full. Pairs of the same known label weigh 1, near or not. A point's weight to itself
    is never cut by the cosine. The rows are scaled one by one: unlike A, the result is not
    symmetric.

    Args:
        points: (n, d) unit vectors, float32 or float64.
        neighbours: Neighbours per point before the graph is made symmetric.
        targets: (n,) known label of every point, -1 where there is none; None: none is known.
        hops: Length of the longest path.
        least_cosine: Cosine that a pair must exceed.
        scale: Factor on the weights of a row after division by their maximum.
        most: Weights stored per row, the heaviest; `DiffusionGraph.dropped` says what is lost.
        narrow: Whether the tables are no wider than their fullest row; else they are `most` wide
            whatever the points, as far as there are so many.
        block_rows: Rows of the graph computed at once; a handful of (block_rows, n) blocks is
            the memory needed beyond the tables.

    Returns:
        The graph, on the device of the points.

    Raises:
        ValueError: A count is less than 1, `least_cosine` is not below 1, `scale` is not
            positive, `targets` has another length, there is no point, or one is not finite.
    """
    _check(points, min(neighbours, hops, most, block_rows), least_cosine, scale)
    n = len(points)
    if targets is None:
        targets = torch.full((n,), -1, device=points.device)
    if len(targets) != n:
        raise ValueError(f"there are {len(targets)} targets for {n} points")
    graph = neighbour_graph(points, neighbours, block_rows=block_rows)
    columns = torch.empty(n, min(most, n), dtype=torch.int32, device=points.device)
    weights = torch.empty_like(columns, dtype=points.dtype)
    mass = torch.empty(2, n, dtype=torch.float64, device=points.device)  # of all, of those stored
    for start in range(0, n, block_rows):
        rows = slice(start, min(start + block_rows, n))
        block = _diffused(graph, rows, hops)
        block.masked_fill_(_far(points, rows, least_cosine), 0)
        block.mul_(scale / block.amax(dim=1, keepdim=True)).clamp_(max=1)
        weights[rows], columns[rows] = block.topk(columns.shape[1])
        mass[0, rows] = block.sum(dim=1, dtype=torch.float64)
        mass[1, rows] = weights[rows].sum(dim=1, dtype=torch.float64)
    lost = (mass[0] - mass[1]).clamp_(min=0)[weights[:, -1] > 0].sum()  # else the row is whole
    if narrow:
        width = int((weights > 0).any(dim=0).sum())
        columns = _narrowed(columns, width)  # one by one: both are large
        weights = _narrowed(weights, width)
    dropped = float(lost / mass[0].sum())
    return DiffusionGraph(columns, weights, targets.to(points.device), dropped)


@torch.no_grad()
def neighbour_graph(points: Tensor, neighbours: int, *, block_rows: int = BLOCK_ROWS) -> Tensor:
    """Join every point with its nearest others, in both directions, and with itself.

    Two points are joined where either is among the nearest of the other; the edge weighs their
    cosine, one value for both directions. A cosine of 0 or less makes no edge, however few the
    neighbours: paths over it would subtract weight. Every point has an edge of weight 1 to itself.

    Args:
        points: (n, d) unit vectors, float32 or float64.
        neighbours: Nearest others per point; hubs end up with more edges, none with fewer but for
            cosines of 0 or less.
        block_rows: Points compared with all others at a time.

    Returns:
        (n, n) symmetric sparse CSR tensor.
    """
    n = len(points)
    near = nearest_neighbours(points, neighbours, block_rows=block_rows)  # (n, k)
    cosines = points.new_empty(near.shape)
    for start in range(0, n, block_rows):
        rows = slice(start, start + block_rows)
        cosines[rows] = (points[near[rows]] @ points[rows, :, None])[:, :, 0]
    itself = torch.arange(n, device=points.device)
    pairs = torch.minimum(itself[:, None], near) * n + torch.maximum(itself[:, None], near)
    pairs, which = pairs.flatten().unique(return_inverse=True)
    edges = cosines.new_zeros(len(pairs)).scatter_reduce_(0, which, cosines.flatten(), "amax")
    pairs, edges = pairs[edges > 0], edges[edges > 0].clamp(max=1)  # 1: rounding of equal points
    low, high = pairs // n, pairs % n
    keys, order = torch.cat([pairs, high * n + low, itself * (n + 1)]).sort()
    values = torch.cat([edges, edges, edges.new_ones(n)])[order]
    firsts = torch.searchsorted(keys, torch.arange(n + 1, device=points.device) * n)
    return _csr(firsts, keys % n, values)


@torch.no_grad()
def smoothed(
    points: Tensor, neighbours: int, *, rounds: int = 2, block_rows: int = BLOCK_ROWS
) -> Tensor:
    """Draw every point towards its neighbours: the filter that DWGF clusters after.

    The edges are those of `neighbour_graph` by the cosines of the points, all of weight 1, those
    to oneself included. With the normalised Laplacian L = I - D^-1/2 A D^-1/2 of these edges each
    round is X <- (I - L / 2) X. Lengths are not restored: a point of a denser part grows longer.

    Args:
        points: (n, d) vectors of any length, float32 or float64.
        neighbours: Nearest others per point.
        rounds: Times the filter is applied; 0 returns the points.
        block_rows: Points compared with all others at a time.

    Returns:
        (n, d) smoothed points.

    Raises:
        ValueError: `neighbours` or `block_rows` is less than 1, `rounds` is negative, there is no
            point, or one is not finite.
    """
    _check(points, min(neighbours, block_rows, rounds + 1))
    graph = neighbour_graph(normalize(points, dim=1), neighbours, block_rows=block_rows)
    firsts = graph.crow_indices()
    shrink = firsts.diff().to(points.dtype).rsqrt()[:, None]  # (n, 1), D^-1/2
    joined = _csr(firsts, graph.col_indices(), torch.ones_like(graph.values()))
    for _ in range(rounds):
        points = (points + shrink * (joined @ (shrink * points))) / 2
    return points


def _check(points: Tensor, least_count: int, least_cosine: float = 0.0, scale: float = 1.0) -> None:
    """Raise a ValueError in one line where there is no graph to build."""
    if least_count < 1:
        raise ValueError(
            "neighbours, hops, most and block_rows must be at least 1, rounds at least 0"
        )
    if least_cosine >= 1 or scale <= 0:
        raise ValueError(
            f"least_cosine is {least_cosine} and scale {scale}; they must be below 1 and above 0"
        )
    if not len(points):
        raise ValueError("there are no points to join")
    if not points.isfinite().all():
        raise ValueError("points hold NaN or infinity; look for empty texts or zero vectors")


def _csr(firsts: Tensor, columns: Tensor, values: Tensor) -> Tensor:
    """Square sparse tensor of rows that begin at `firsts` (n + 1,)."""
    n = len(firsts) - 1
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse")  # the layout calls itself beta
        return torch.sparse_csr_tensor(firsts, columns, values, (n, n), check_invariants=False)


def _diffused(graph: Tensor, rows: slice, hops: int) -> Tensor:
    """Rows of A + A^2 + ... + A^hops, dense (b, n)."""
    firsts, columns, values = graph.crow_indices(), graph.col_indices(), graph.values()
    counts = firsts[rows.start : rows.stop + 1].diff()
    first, last = int(firsts[rows.start]), int(firsts[rows.stop])
    owner = torch.arange(len(counts), device=counts.device).repeat_interleave(counts)
    # A is symmetric: its columns are its rows, and a product from the left is the fast one.
    edges = values.new_zeros(len(graph), len(counts))  # (n, b)
    edges[columns[first:last], owner] = values[first:last]
    total = edges
    for _ in range(hops - 1):
        total = torch.addmm(edges, graph, total)  # Horner: A + A (A + A (...))
    return total.T.contiguous()


def _far(points: Tensor, rows: slice, least_cosine: float) -> Tensor:
    """Which points (b, n) are no nearer than `least_cosine`; never a point to itself."""
    far = points[rows] @ points.T <= least_cosine
    far.diagonal(rows.start).fill_(False)
    return far


def _narrowed(table: Tensor, width: int) -> Tensor:
    """First columns of a table, without the memory of the others."""
    return table if width == table.shape[1] else table[:, :width].clone()
