"""New intents beside old ones: which of the utterances that fit nowhere make an intent.

The encoder stands still, and so do the prototypes of the old intents. Utterances that fit nowhere
are counted and clustered; then every utterance that came goes to its nearest prototype, old or new,
and the new ones move to their members until that settles. What is too small or too loose to be an
intent is given up, and its utterances are collected until more like them come.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from ronid.assign.breathing import breathing_kmeans
from ronid.assign.count import count_by_tree
from ronid.reject import Scope, closeness, p_values, squared_distances
from ronid.types import FloatArray, IntArray, Rule

Flags = NDArray[np.bool_]

DRAWS, DRAWN = 7, 0.8
"""The number of intents is the median over so many samples of this share of the utterances."""

PASSES = 2
"""What fits nowhere when the first new intents are there is looked at again."""

SHARE = 0.35
"""Of the median size of the old intents, from which on a new one counts."""

FEWEST = 5
"""Utterances that any intent has."""

TIGHT = 0.1
"""Share of a new intent's utterances that must lie as near to each other as old ones do. The
encoder was trained on the old ones: few of a true new intent do, of scattered utterances none."""

_ITERATIONS = 10


@dataclass(frozen=True)
class Grown:
    """What became of the utterances that came.

    Args:
        labels: (n,) nearest intent; the new ones are numbered after the old ones.
        prototypes: (k, d): the old ones, bit for bit, and the new ones behind them.
        fits: (n,) whether the utterance belongs there; else it is collected.
    """

    labels: IntArray
    prototypes: FloatArray
    fits: Flags


@dataclass(frozen=True)
class Beside:
    """What is there already.

    Args:
        prototypes: (k, d) of the old intents.
        rule: What closeness is.
        scope: Tells what belongs to them.
        threshold: Least belonging that fits.
        least: Fewest utterances of a new intent.
    """

    prototypes: FloatArray
    rule: Rule
    scope: Scope
    threshold: float
    least: int

    def nearest(self, vectors: FloatArray, new: FloatArray) -> IntArray:
        """Return the (n,) nearest prototype of each vector, old ones first."""
        return closeness(vectors, np.concatenate([self.prototypes, new]), self.rule).argmax(1)

    def mean(self, vectors: FloatArray) -> FloatArray:
        """Return the (d,) prototype of some vectors."""
        return prototype_of(vectors, self.rule)


def prototype_of(vectors: FloatArray, rule: Rule) -> FloatArray:
    """Return the (d,) mean of vectors, of length 1 where closeness is the cosine."""
    mean: FloatArray = vectors.mean(0)
    return mean / max(float(np.linalg.norm(mean)), 1e-12) if rule == "cosine" else mean


def least_size(sizes: IntArray) -> int:
    """Return the fewest utterances of a new intent, from the (k,) sizes of the old ones."""
    return max(FEWEST, round(SHARE * float(np.median(sizes)))) if len(sizes) else FEWEST


def grow(vectors: FloatArray, fixed: IntArray, old: Beside, *, seed: int = 0) -> Grown:
    """Give every utterance its intent, and make new intents of those that fit nowhere.

    Args:
        vectors: (n, d) features of utterances.
        fixed: (n,) intents that the user gave, -1 where none.
        old: The intents that are there.
        seed: Of the clustering.
    """
    new = np.empty((0, old.prototypes.shape[1]), np.float32)
    free = fixed < 0
    belongs = free & (old.scope.belonging(vectors) >= old.threshold)
    strange = free & ~belongs
    for turn in range(PASSES):
        if strange.sum() < 2 * old.least:
            break
        candidates = candidate_intents(vectors[strange], old, seed + turn)
        kept = keep_intents(vectors[free], np.concatenate([new, candidates]), old)
        found = old.nearest(vectors, kept) >= len(old.prototypes)
        strange = free & ~belongs & ~found & ~_near(vectors, free & found, old)
        if len(kept) == len(new):
            break
        new = kept
    labels = np.where(free, old.nearest(vectors, new), fixed)
    return Grown(labels, np.concatenate([old.prototypes, new]), ~strange)


def candidate_intents(vectors: FloatArray, old: Beside, seed: int) -> FloatArray:
    """Return the (c, d) prototypes of clusters among utterances that fit nowhere.

    Args:
        vectors: (n, d) their features.
        old: The intents that are there.
        seed: Of the samples and of k-means.
    """
    points = torch.from_numpy(np.ascontiguousarray(vectors, np.float32))
    generator = torch.Generator().manual_seed(seed)
    counts = []
    for _ in range(DRAWS):
        rows = torch.randperm(len(points), generator=generator)[: int(DRAWN * len(points))]
        unknown = torch.full((len(rows),), -1)
        counts.append(count_by_tree(points[rows], unknown, 0, draws=1, generator=generator).k)
    k = int(np.median(counts))
    unknown = torch.full((len(points),), -1)
    found = breathing_kmeans(points, unknown, k, generator=generator, n_init=3, breaths=8)
    labels = found.labels.numpy()
    return np.stack([old.mean(vectors[labels == c]) for c in np.unique(labels)])


def keep_intents(vectors: FloatArray, new: FloatArray, old: Beside) -> FloatArray:
    """Let new prototypes settle among old ones; give up the smallest or loosest until all are good.

    Args:
        vectors: (n, d) features of all utterances that came.
        new: (c, d) first prototypes.
        old: The intents that are there.
    """
    new, labels = _settled(vectors, new, old, _ITERATIONS)
    while len(new):
        members = [vectors[labels == len(old.prototypes) + j] for j in range(len(new))]
        sizes = np.array([len(each) for each in members])
        worst = int(sizes.argmin())
        if sizes[worst] >= old.least:
            tight = np.array([tightness(each, old) for each in members])
            worst = int(tight.argmin())
            if tight[worst] >= TIGHT:
                break
        new, labels = _settled(vectors, np.delete(new, worst, 0), old, 2)
    return new


def tightness(members: FloatArray, old: Beside) -> float:
    """Return the share of utterances that have another as near as the old intents' usually have."""
    if len(members) < 2:  # noqa: PLR2004 - alone
        return 0.0
    scaled = members / old.scope.scale
    far = squared_distances(scaled, scaled)
    np.fill_diagonal(far, np.inf)
    return float((p_values(old.scope.usual, far.min(1)) >= old.threshold).mean())


def _settled(
    vectors: FloatArray, new: FloatArray, old: Beside, iterations: int
) -> tuple[FloatArray, IntArray]:
    """Move new prototypes to their members; the old ones stay where they are."""
    labels = old.nearest(vectors, new)
    for _ in range(iterations):
        means = new.copy()
        for j in range(len(new)):
            members = vectors[labels == len(old.prototypes) + j]
            if len(members):
                means[j] = old.mean(members)
        moved, new = old.nearest(vectors, means), means
        if np.array_equal(moved, labels):
            break
        labels = moved
    return new, labels


def _near(vectors: FloatArray, found: Flags, old: Beside) -> Flags:
    """Return which utterances lie as near to those of the new intents as belonging asks."""
    if not found.any():
        return np.zeros(len(vectors), bool)
    scaled = vectors / old.scope.scale
    far = squared_distances(scaled, scaled[found]).min(1)
    return np.asarray(p_values(old.scope.usual, far) >= old.threshold)
