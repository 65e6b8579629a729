"""How far apart two groups of utterances are: along the line between them, and link by link."""

from dataclasses import dataclass

import numpy as np
import torch

from ronid.assign.kmeans import kmeans
from ronid.types import FloatArray, IntArray

SMALLEST = 4
"""Utterances a group needs for anything to be said of it."""


@dataclass(frozen=True)
class Gap:
    """What lies between two groups.

    Args:
        apart: Distance of the means in standard deviations, along the line between them. The line
            is drawn through one half of the utterances and read at the other, as among few
            utterances of many dimensions some line always parts them.
        mixing: Links to nearest neighbours that cross from group to group, over what chance would
            give; 0 for groups that do not touch, 1 for one group dealt out at random.
        cost: Rise of the squared distances to the means when both groups share one.
        similarity: Cosine of the means.
    """

    apart: float
    mixing: float
    cost: float
    similarity: float


def measure_gap(points: FloatArray, neighbours: IntArray, first: IntArray, second: IntArray) -> Gap:
    """Compare two groups.

    Args:
        points: (n, d).
        neighbours: (n, c) nearest neighbours of every row.
        first: Rows of one group, at least two.
        second: Rows of the other.
    """
    ends = points[first].mean(axis=0), points[second].mean(axis=0)
    inside = sum(
        np.square(points[rows] - end).sum() for rows, end in zip((first, second), ends, strict=True)
    )
    weight = len(first) * len(second) / (len(first) + len(second))
    between = weight * float(np.square(ends[1] - ends[0]).sum())
    return Gap(
        apart=_apart(points[first], points[second]),
        mixing=_mixing(neighbours, first, second),
        cost=between / max(float(inside), 1e-12),
        similarity=_cosine(*ends),
    )


def _cosine(first: FloatArray, second: FloatArray) -> float:
    """Return the cosine of two vectors."""
    lengths = float(np.linalg.norm(first) * np.linalg.norm(second))
    return float(first @ second) / max(lengths, 1e-12)


def _apart(first: FloatArray, second: FloatArray) -> float:
    """Return the cross-fitted distance, in standard deviations."""
    found = []
    for start in (0, 1):
        line = second[start::2].mean(axis=0) - first[start::2].mean(axis=0)
        line = line / max(float(np.linalg.norm(line)), 1e-12)
        one, other = first[1 - start :: 2] @ line, second[1 - start :: 2] @ line
        spread = np.sqrt((one.var() + other.var()) / 2)
        found.append((other.mean() - one.mean()) / max(float(spread), 1e-6))
    return float(np.mean(found))


def _mixing(neighbours: IntArray, first: IntArray, second: IntArray) -> float:
    """Return the links that cross, over those that a random deal would have."""
    side = np.zeros(len(neighbours), np.int8)
    side[first], side[second] = 1, 2
    ahead, back = side[neighbours[first]], side[neighbours[second]]
    crossing = int(np.count_nonzero(ahead == 2) + np.count_nonzero(back == 1))
    links = int(np.count_nonzero(ahead) + np.count_nonzero(back))
    share = len(first) / (len(first) + len(second))
    return crossing / max(links, 1) / (2 * share * (1 - share))


def halve(points: FloatArray, rows: IntArray, generator: torch.Generator) -> list[IntArray]:
    """Return the rows of the two clusters that 2-means finds among `rows`, the larger first."""
    found = kmeans(torch.from_numpy(points[rows]), 2, generator=generator, n_init=3)
    side = found.labels.numpy()
    return sorted((rows[side == 0], rows[side == 1]), key=len, reverse=True)
