"""Find the utterances that belong to no known intent, by the density of labels around them.

Labels are spread from row to row over a graph of nearest neighbors, and so is a constant. Their
ratio is the label density of a row: the share of labeled rows around it, where near rows count for
more. Around an utterance of a known intent it is about the share of its intent that is labeled;
around an utterance of a new intent it is close to 0. A row is called novel if its density is below
`NOVELTY_RATIO` of the mean density of the rows that are not novel.

The distance to labeled rows or the confidence of a classifier separates known from new utterances
less well, because an intent often consists of several dense regions that the graph connects.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags_array
from torch import Tensor

from ronid.assign.graph import neighbour_graph
from ronid.types import IntArray

N_NEIGHBORS = 15
"""Neighbors of a row before the graph is made symmetric."""

COSINE_POWER = 8
"""Edge weight = cosine to this power."""

STEP_SHARE = 0.9
"""Share of the mass of a row that it passes on in each step of the walk."""

N_STEPS = 30
"""Steps of the walk."""

MIN_DEGREE = 1e-12
"""Degree of a row without edges, so that nothing is divided by 0."""

NOVELTY_RATIO = 0.5
"""Share of the mean density of known rows below which a row is called novel."""

MAX_ITERATIONS = 200
"""Iterations after which the search for the threshold stops."""


@dataclass(frozen=True, eq=False)
class Novelty:
    """What the given labels say about every row.

    Args:
        density: (n,) label density; infinite for labeled rows.
        nearest: (n,) known intent with the largest mass at the row, or the given one.
        novel: (n,) whether the row belongs to no known intent.
    """

    density: NDArray[np.float64]
    nearest: IntArray
    novel: NDArray[np.bool_]

    def n_intents(self, n_known: int) -> int:
        """Estimate the number of intents: new ones are as large as known ones on average."""
        n_novel = int(self.novel.sum())
        n_rest = len(self.novel) - n_novel
        return n_known + round(n_known * n_novel / max(1, n_rest))

    def least_dense(self, count: int) -> NDArray[np.bool_]:
        """Return a mask of the novel rows, filled up to `count` rows in order of density."""
        mask = self.novel.copy()
        if mask.sum() < count:
            order = np.argsort(self.density, kind="stable")[:count]
            mask[order[np.isfinite(self.density[order])]] = True
        return mask


def find_novelty(points: Tensor, targets: IntArray, n_known: int) -> Novelty:
    """Decide which rows belong to no known intent.

    Args:
        points: (n, d) unit vectors.
        targets: (n,) given intents 0..n_known-1, -1 where there is none.
        n_known: Number of known intents, each with a labeled row.

    Returns:
        The label density of every row, and what follows from it. Without labels every row is
        novel.
    """
    labeled = targets >= 0
    if not labeled.any() or len(targets) == 1:
        return Novelty(np.where(labeled, np.inf, 0.0), np.where(labeled, targets, 0), ~labeled)
    graph = walk_graph(points)
    mass, total = label_mass(graph, targets, n_known)
    density = np.where(labeled, np.inf, mass.sum(1) / total)
    counts = np.bincount(targets[labeled], minlength=n_known)
    # The root keeps intents with many labels from taking the rows of those with few.
    nearest = (mass / np.sqrt(np.maximum(counts, 1))).argmax(1)
    threshold = novelty_threshold(density[~labeled])
    return Novelty(density, np.where(labeled, targets, nearest), density < threshold)


def walk_graph(points: Tensor) -> csr_matrix:
    """Return the normalized graph D^-1/2 W D^-1/2 of nearest neighbors by cosine.

    Args:
        points: (n, d) unit vectors, n >= 2.

    Returns:
        (n, n) symmetric matrix without self-loops. Two rows share an edge if either is a neighbor
        of the other and their cosine is positive.
    """
    joined = neighbour_graph(points, N_NEIGHBORS).cpu()
    graph = csr_matrix((joined.values().double(), joined.col_indices(), joined.crow_indices()))
    graph.data **= COSINE_POWER
    graph.setdiag(0)
    degrees = np.asarray(graph.sum(1)).ravel()
    scale = diags_array(1 / np.sqrt(np.maximum(degrees, MIN_DEGREE)))
    return csr_matrix(scale @ graph @ scale)


def label_mass(
    graph: csr_matrix, targets: IntArray, n_known: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Spread labels, and a constant, over a graph.

    Args:
        graph: (n, n) matrix of `walk_graph`.
        targets: (n,) given intents, -1 where there is none.
        n_known: Number of known intents.

    Returns:
        (n, n_known) mass of the labels of each known intent, and (n,) mass of the constant.
    """
    n = len(targets)
    rows = np.flatnonzero(targets >= 0)
    start = np.zeros((n, n_known + 1))
    start[rows, targets[rows]] = 1
    start[:, n_known] = 1
    mass = start.copy()
    for _ in range(N_STEPS):
        mass = STEP_SHARE * (graph @ mass) + (1 - STEP_SHARE) * start
    return mass[:, :n_known], mass[:, n_known]


def novelty_threshold(density: NDArray[np.float64], share: float = NOVELTY_RATIO) -> float:
    """Return the density below which an unlabeled row is novel.

    The threshold is a share of the mean density of the rows above it, found by iteration from the
    mean of all rows. Labeled rows are left out: training pulls them together, so the density
    around them is higher than around other rows of their intents.

    Args:
        density: (u,) densities of the unlabeled rows.
        share: Share of the mean.
    """
    if not len(density):
        return 0.0
    level = float(density.mean())
    for _ in range(MAX_ITERATIONS):
        above = density[density >= share * level]
        moved = float(above.mean()) if len(above) else level
        if abs(moved - level) <= 1e-9 * max(level, 1e-300):
            break
        level = moved
    return share * level
