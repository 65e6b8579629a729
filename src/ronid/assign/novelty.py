"""Find the utterances that belong to no known intent, by the density of labels around them.

Labels are spread from row to row over a graph of nearest neighbors, and so is a constant. Their
ratio is the label density of a row: the share of labeled rows around it, where near rows count for
more. Around an utterance of a known intent it is about the share of its intent that is labeled;
around an utterance of a new intent it is close to 0. Relative to the mean density of known rows it
is the probability that a row is of a known intent: labels are then a random sample of what is known
(Elkan and Noto, KDD 2008). A row is called novel if this probability is below one half.

The distance to labeled rows or the confidence of a classifier separates known from new utterances
less well, because an intent often consists of several dense regions that the graph connects.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags_array
from torch import Tensor

from ronid.assign.graph import neighbour_graph
from ronid.types import IntArray

MIN_NEIGHBORS, MAX_NEIGHBORS = 5, 15
"""Neighbors of a row before the graph is made symmetric. Fewer rows have smaller intents, and their
neighbors reach into other intents sooner: see `count_neighbors`."""

COSINE_POWER = 8
"""Edge weight = cosine to this power."""

USUAL_STEPS = 10
"""Mean length of the walk, unless labels are few or many."""

MIN_LABELS_MET, MAX_LABELS_MET = 0.8, 1.5
"""Labeled rows that a walk inside a known intent meets on average, within the limits of length."""

MIN_STEPS, MAX_STEPS = 2, 30
"""Limits of the mean length. Longer walks leave the intent."""

MAX_ROUNDS = 10
"""Rounds after which the search for the length stops."""

SAME_ROW = 1e-6
"""Squared distance up to which two unit vectors count as equal."""

MIN_DEGREE = 1e-12
"""Degree of a row without edges, so that nothing is divided by 0."""

MIN_LABELS_PER_INTENT = 2
"""Labeled rows per known intent, on average, from which on their density says what is new."""

NOVEL_BELOW = 0.5
"""Relative density below which a row is called novel."""

MIN_PROBABILITY = 0.02
"""A row is known, and novel, with at least this probability, whatever its density."""

MAX_ITERATIONS = 200
"""Iterations after which the search for the threshold stops."""


@dataclass(frozen=True, eq=False)
class Novelty:
    """What the given labels say about every row.

    Args:
        relative_density: (n,) label density over the mean of known rows; infinite for labeled rows
            and rows equal to them.
        nearest: (n,) known intent with the largest mass at the row, or the given one.
    """

    relative_density: NDArray[np.float64]
    nearest: IntArray

    @property
    def novel(self) -> NDArray[np.bool_]:
        """Return the (n,) mask of rows that probably belong to no known intent."""
        return self.relative_density < NOVEL_BELOW

    def log_odds(self) -> NDArray[np.float64]:
        """Return the (n,) log odds that a row belongs to no known intent."""
        known = np.clip(self.relative_density, MIN_PROBABILITY, 1 - MIN_PROBABILITY)
        return np.log((1 - known) / known)

    def n_intents(self, n_known: int) -> int:
        """Estimate the number of intents: new ones are as large as known ones on average."""
        n_novel = int(self.novel.sum())
        n_rest = len(self.novel) - n_novel
        return n_known + round(n_known * n_novel / max(1, n_rest))

    def least_dense(self, count: int) -> NDArray[np.bool_]:
        """Return a mask of the novel rows, filled up to `count` rows in order of density.

        It has fewer rows only if the others are labeled or equal to labeled ones.
        """
        mask = self.novel
        if mask.sum() < count:
            order = np.argsort(self.relative_density, kind="stable")[:count]
            mask[order[np.isfinite(self.relative_density[order])]] = True
        return mask


def find_novelty(points: Tensor, targets: IntArray, n_known: int) -> Novelty | None:
    """Decide which rows belong to no known intent.

    Args:
        points: (n, d) unit vectors.
        targets: (n,) given intents 0..n_known-1, -1 where there is none.
        n_known: Number of known intents, each with a labeled row.

    Returns:
        The label density of every row, and what follows from it; None if there are too few labels
        to tell.
    """
    labeled = targets >= 0
    if labeled.sum() < max(1, MIN_LABELS_PER_INTENT * n_known):
        return None
    group = distinct_rows(points)
    first = np.unique(group, return_index=True)[1]
    given = np.full(len(first), -1)
    given[group[labeled]] = targets[labeled]
    graph = walk_graph(points[torch.from_numpy(first).to(points.device)])
    relative, steps = relative_density(graph, given >= 0)
    starts = np.zeros((len(given), n_known))
    starts[given >= 0, given[given >= 0]] = 1
    mass = walk(graph, starts, steps)
    counts = np.bincount(given[given >= 0], minlength=n_known)
    # The root keeps intents with many labels from taking the rows of those with few.
    nearest = (mass / np.sqrt(np.maximum(counts, 1))).argmax(1)
    relative[given >= 0] = np.inf
    return Novelty(relative[group], np.where(labeled, targets, nearest[group]))


def distinct_rows(points: Tensor) -> IntArray:
    """Group rows that are equal but for rounding errors.

    An utterance that occurs more often than `MAX_NEIGHBORS` times would have only copies of itself
    as neighbors, and no path would lead to a label.

    Args:
        points: (n, d) unit vectors.

    Returns:
        (n,) group of each row, numbered from 0 without a gap.
    """
    generator = torch.Generator().manual_seed(0)
    direction = torch.randn(points.shape[1], generator=generator).to(points)
    order = (points @ direction).argsort(stable=True)  # equal rows are next to each other
    steps = points[order].diff(dim=0).square().sum(1)
    group = torch.zeros_like(order)
    group[order[1:]] = (steps > SAME_ROW).cumsum(0)
    return group.cpu().numpy()


def walk_graph(points: Tensor) -> csr_matrix:
    """Return the normalized graph D^-1/2 W D^-1/2 of nearest neighbors by cosine.

    Args:
        points: (n, d) unit vectors, n >= 2.

    Returns:
        (n, n) symmetric matrix without self-loops. Two rows share an edge if either is a neighbor
        of the other and their cosine is positive.
    """
    joined = neighbour_graph(points, count_neighbors(len(points))).cpu()
    graph = csr_matrix((joined.values().double(), joined.col_indices(), joined.crow_indices()))
    graph.data **= COSINE_POWER
    graph.setdiag(0)
    degrees = np.asarray(graph.sum(1)).ravel()
    scale = diags_array(1 / np.sqrt(np.maximum(degrees, MIN_DEGREE)))
    return csr_matrix(scale @ graph @ scale)


def count_neighbors(n: int) -> int:
    """Return the number of neighbors in a graph of n rows: a quarter of the root, within limits."""
    root = math.isqrt(n)
    return min(root, max(MIN_NEIGHBORS, min(MAX_NEIGHBORS, root // 4)))


def relative_density(
    graph: csr_matrix, labeled: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], float]:
    """Return the label density of every row over the mean of known rows.

    If few rows of a known intent are labeled, a short walk meets none, and the intent looks new. If
    many are, a long walk meets them from a new intent, too. The length therefore follows the share
    of labeled rows among those that are not novel. This share depends on the length, so both are
    found by iteration.

    Args:
        graph: (n, n) matrix of `walk_graph`.
        labeled: (n,) which rows are labeled, at least one.

    Returns:
        (n,) relative densities, and the mean length of the walk.
    """
    starts = np.stack([labeled, np.ones(len(labeled))], axis=1).astype(float)
    steps = float(USUAL_STEPS)
    for _ in range(MAX_ROUNDS):
        mass, total = walk(graph, starts, steps).T
        density = mass / total
        relative = density / known_density(density[~labeled])
        n_known = len(labeled) - np.count_nonzero(~labeled & (relative < NOVEL_BELOW))
        rows_per_label = n_known / labeled.sum()
        least, most = MIN_LABELS_MET * rows_per_label, MAX_LABELS_MET * rows_per_label
        suited = float(np.clip(np.clip(USUAL_STEPS, least, most), MIN_STEPS, MAX_STEPS))
        if abs(suited - steps) < 0.5:  # noqa: PLR2004 - less than a step
            break
        steps = suited
    return relative, steps


def walk(graph: csr_matrix, starts: NDArray[np.float64], steps: float) -> NDArray[np.float64]:
    """Spread mass over a graph.

    Args:
        graph: (n, n) matrix of `walk_graph`.
        starts: (n, c) mass of each row at the start.
        steps: Mean number of steps; the sum over all lengths is cut at three times this number.

    Returns:
        (n, c) mass after the walk.
    """
    stay = 1 / steps
    mass = starts
    for _ in range(round(3 * steps)):
        mass = (1 - stay) * (graph @ mass) + stay * starts
    return mass


def known_density(density: NDArray[np.float64]) -> float:
    """Return the mean density of the unlabeled rows that belong to known intents.

    These are the rows above `NOVEL_BELOW` of this mean, found by iteration from the mean of all
    unlabeled rows. Labeled rows are left out: training pulls them together, so the density around
    them is higher than around other rows of their intents.

    Args:
        density: (u,) densities of the unlabeled rows.

    Returns:
        The mean, above 0.
    """
    level = float(density.mean()) if len(density) else 0.0
    for _ in range(MAX_ITERATIONS):
        above = density[density >= NOVEL_BELOW * level]
        moved = float(above.mean()) if len(above) else level
        if abs(moved - level) <= 1e-9 * max(level, 1e-300):
            break
        level = moved
    return max(level, float(np.finfo(np.float64).tiny))
