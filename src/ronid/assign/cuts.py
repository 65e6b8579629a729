"""How well a neighbour graph falls into parts, without a label."""

import torch
from torch import Tensor

from ronid.assign.neighbours import nearest_neighbours


@torch.no_grad()
def separability(points: Tensor, k: int, neighbours: int) -> float:
    """Return how cleanly the graph of nearest neighbours may be cut into k parts.

    The least normalised cut into k parts leaves at most the sum of the k largest eigenvalues of
    the normalised adjacency within them (von Luxburg, 2007); their mean is 1 where the graph has k
    parts with nothing between them.

    Args:
        points: (n, d) unit vectors.
        k: Number of parts; at most n count.
        neighbours: Neighbours of every point, by cosine.

    Returns:
        A number of at most 1.
    """
    near = nearest_neighbours(points, neighbours)
    graph = points.new_zeros(len(points), len(points)).scatter_(1, near, 1.0)
    graph = torch.maximum(graph, graph.T)
    scale = graph.sum(dim=1).clamp(min=1).rsqrt()
    values = torch.linalg.eigvalsh(scale[:, None] * graph * scale)
    return float(values[-k:].mean())
