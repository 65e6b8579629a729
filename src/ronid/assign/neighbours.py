"""Nearest neighbours by inner product, in blocks: no n x n matrix is ever held."""

import torch
from torch import Tensor


@torch.no_grad()
def nearest_neighbours(points: Tensor, count: int, *, block_rows: int = 2048) -> Tensor:
    """Return for every point the rows of its nearest others, nearest first.

    Args:
        points: (n, d); unit vectors for neighbours by cosine, as they are for CLNN's.
        count: Neighbours per point; at most n - 1 are returned.
        block_rows: Points compared with all others at a time.

    Returns:
        (n, count) row indices; a point is not its own neighbour.
    """
    n = len(points)
    count = min(count, n - 1)
    out = torch.empty(n, max(count, 0), dtype=torch.long, device=points.device)
    if count < 1:
        return out
    for start in range(0, n, block_rows):
        block = points[start : start + block_rows]
        similar = block @ points.T  # (b, n)
        rows = torch.arange(len(block), device=points.device)
        similar[rows, rows + start] = -torch.inf
        out[start : start + block_rows] = similar.topk(count).indices
    return out
