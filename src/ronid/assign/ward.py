"""Ward's tree over weighted points: which clusters join next, and what the join costs."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ronid.assign.kmeans import class_means, nearest_centroid
from ronid.types import FloatArray, IntArray


@dataclass(frozen=True)
class Grains:
    """Rows gathered into small groups, so that a tree over them is cheap.

    Args:
        centres: (m, d) means of the groups.
        weights: (m,) rows in each, none of them 0.
        labels: (n,) group of every row.
    """

    centres: FloatArray
    weights: NDArray[np.float64]
    labels: IntArray


@dataclass(frozen=True)
class WardTree:
    """Joins of m points in the order of their cost.

    Args:
        joins: (m - 1, 2) what is joined: points are 0..m-1, the outcome of join i is m + i.
        heights: (m - 1,) growth of the squared error by each join, never falling.
    """

    joins: IntArray
    heights: NDArray[np.float64]

    def cut(self, k: int) -> IntArray:
        """Return the (m,) cluster of every point when k clusters are left, numbered from 0."""
        m = len(self.joins) + 1
        parent = np.arange(2 * m - 1)
        for i, (a, b) in enumerate(self.joins[: m - k]):
            parent[a] = parent[b] = m + i
        for node in range(2 * m - 2, -1, -1):  # parents have higher numbers
            parent[node] = parent[parent[node]]
        return np.unique(parent[:m], return_inverse=True)[1].astype(np.int64)


def grains(embeddings: Tensor, m: int, *, generator: torch.Generator, rounds: int = 2) -> Grains:
    """Gather rows around m of them drawn at random: a few rounds of k-means, no more is needed.

    Args:
        embeddings: (n, d) rows.
        m: Groups wanted; fewer come back where rows are alike.
        generator: Source of randomness, on the device of the rows.
        rounds: Times that the groups move to their means.
    """
    drawn = torch.randperm(len(embeddings), generator=generator, device=embeddings.device)
    centres = embeddings[drawn[:m]]
    labels = nearest_centroid(embeddings, centres)
    for _ in range(rounds):
        used, labels = labels.unique(return_inverse=True)
        centres = class_means(embeddings, labels, len(used))
        labels = nearest_centroid(embeddings, centres)
    used, labels = labels.unique(return_inverse=True)
    centres = class_means(embeddings, labels, len(used))
    weights = torch.bincount(labels, minlength=len(used)).double()
    return Grains(centres.float().cpu().numpy(), weights.cpu().numpy(), labels.cpu().numpy())


def ward_tree(points: FloatArray, weights: NDArray[np.float64]) -> WardTree:
    """Join the two clusters whose union adds least to the squared error, until one is left.

    The cost of joining clusters of weight u and v whose means lie d apart is u v / (u + v) d^2.
    Followed by chains of nearest neighbours, which needs O(m^2) time and memory.

    Args:
        points: (m, d).
        weights: (m,) rows that each point stands for.
    """
    m = len(points)
    cost = _costs(points.astype(np.float64), weights)
    size, node = weights.astype(np.float64).copy(), np.arange(m)
    found: list[tuple[float, int, int]] = []
    chain: list[int] = []
    alive = np.ones(m, bool)
    while len(found) < m - 1:
        if not chain:
            chain.append(int(alive.argmax()))
        a = chain[-1]
        b = int(cost[a].argmin())
        # On a tie the chain must turn back, or it would run in a circle.
        if len(chain) > 1 and cost[a, chain[-2]] <= cost[a, b]:
            b = chain[-2]
        if len(chain) > 1 and b == chain[-2]:
            chain = chain[:-2]
            found.append((float(cost[a, b]), int(node[a]), int(node[b])))
            _join(cost, size, alive, a, b)
            node[a] = m + len(found) - 1
        else:
            chain.append(b)
    return _in_order(found, m)


def _costs(points: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the (m, m) costs of joining two points; a point and itself are infinitely dear."""
    square = (points**2).sum(1)
    cost: NDArray[np.float64] = square[:, None] + square[None] - 2 * points @ points.T
    np.maximum(cost, 0, out=cost)
    cost *= weights[:, None] * weights[None] / (weights[:, None] + weights[None])
    np.fill_diagonal(cost, np.inf)
    return cost


def _join(
    cost: NDArray[np.float64],
    size: NDArray[np.float64],
    alive: NDArray[np.bool_],
    a: int,
    b: int,
) -> None:
    """Put b into a and write what joins of a cost now (the rule of Lance and Williams)."""
    total = size[a] + size[b] + size
    joined = (size[a] + size) * cost[a] + (size[b] + size) * cost[b] - size * cost[a, b]
    alive[b] = False
    size[a] += size[b]
    row = np.where(alive, joined / total, np.inf)
    row[a] = np.inf
    cost[a] = cost[:, a] = row
    cost[b] = cost[:, b] = np.inf


def _in_order(found: list[tuple[float, int, int]], m: int) -> WardTree:
    """Return the joins by height, their outcomes numbered anew."""
    heights = np.array([height for height, _, _ in found])
    order = np.argsort(heights, kind="stable")
    number = np.arange(2 * m - 1)
    number[m + order] = m + np.arange(len(order))
    joins = np.array([(a, b) for _, a, b in found], np.int64).reshape(-1, 2)
    return WardTree(number[joins[order]], np.maximum.accumulate(heights[order]))
