"""Would the same intents be found again, in other utterances or from another start?

Both repetitions stand on the trained embeddings as they are: what is repeated is the search for
clusters, not the training.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ronid.assign.kmeans import kmeans, nearest_centroid
from ronid.assign.semisup_kmeans import semisup_kmeans
from ronid.judge.evidence import Evidence
from ronid.seeds import derive
from ronid.types import UNLABELLED, IntArray

ITERATIONS = 50


@dataclass(frozen=True)
class Stability:
    """How well repetitions agree with the run; 1 is the same, 0 is what chance gives.

    Args:
        resampling: Adjusted Rand index with the clusters of random halves of the utterances,
            which start from the prototypes; read at the other halves.
        seeds: Adjusted Rand index with the clusters that other starts find.
        hidden: Share of given labels that come back where half of them were hidden; NaN without.
        intents: (k,) Jaccard overlap of every intent with the cluster most like it, the mean over
            halves and other starts.
    """

    resampling: float
    seeds: float
    hidden: float
    intents: np.ndarray


@dataclass(frozen=True)
class _Again:
    """Clusters `found` of some `rows`, beside the intents the run gave them."""

    rows: IntArray
    found: IntArray


def measure_stability(evidence: Evidence, *, seed: int, repeats: int = 3) -> Stability:
    """Cluster halves of the utterances, and all of them from other starts.

    Args:
        evidence: The run.
        seed: Source of halves, hidden labels and starts.
        repeats: Repetitions of either kind to average over.
    """
    points = torch.from_numpy(evidence.embeddings)
    halves = [_half(points, evidence, derive(seed, "half", i)) for i in range(repeats)]
    starts, hidden = [], []
    for i in range(repeats):
        shown = _shown(evidence.targets, np.random.default_rng(derive(seed, "hide", i)))
        again = _start(points, shown, evidence.n_intents, derive(seed, "start", i))
        starts.append(again)
        asked = np.flatnonzero((evidence.targets != UNLABELLED) & (shown == UNLABELLED))
        hidden.append(again.found[asked] == evidence.targets[asked])
    held = np.concatenate(hidden)
    return Stability(
        resampling=_agreement(evidence.labels, halves),
        seeds=_agreement(evidence.labels, starts),
        hidden=float(held.mean()) if len(held) else float("nan"),
        intents=np.mean([_overlap(evidence, again) for again in (*halves, *starts)], axis=0),
    )


def agreement(first: IntArray, second: IntArray) -> float:
    """Return the adjusted Rand index of two clusterings of the same rows."""
    from sklearn.metrics import adjusted_rand_score

    return float(adjusted_rand_score(first, second))


def _agreement(labels: IntArray, repetitions: Sequence[_Again]) -> float:
    return float(np.mean([agreement(labels[again.rows], again.found) for again in repetitions]))


def _half(points: Tensor, evidence: Evidence, seed: int) -> _Again:
    """Cluster a random half from the prototypes; give its clusters to the other half."""
    generator = torch.Generator().manual_seed(seed)
    mine, others = torch.randperm(len(points), generator=generator).tensor_split(2)
    k, init = evidence.n_intents, torch.from_numpy(evidence.prototypes)
    if k > len(mine):
        mine = others = torch.arange(len(points))
    found = kmeans(points[mine], k, generator=generator, init=init, max_iterations=ITERATIONS)
    return _Again(others.numpy(), nearest_centroid(points[others], found.centroids).numpy())


def _shown(targets: IntArray, rng: np.random.Generator) -> IntArray:
    """Return the given labels with half of every intent's hidden, one at least left."""
    shown = targets.copy()
    for intent in np.unique(targets[targets != UNLABELLED]):
        rows = np.flatnonzero(targets == intent)
        shown[rng.choice(rows, len(rows) // 2, replace=False)] = UNLABELLED
    return shown


def _start(points: Tensor, targets: IntArray, k: int, seed: int) -> _Again:
    """Cluster all rows anew, as a fit with another seed would start."""
    generator = torch.Generator().manual_seed(seed)
    free = targets == UNLABELLED
    known = np.unique(targets[~free])
    if len(known) and np.count_nonzero(free) >= k - len(known):
        given = np.where(free, UNLABELLED, np.searchsorted(known, targets))
        found = semisup_kmeans(
            points,
            torch.from_numpy(given),
            k,
            generator=generator,
            n_init=1,
            max_iterations=ITERATIONS,
        )
    else:
        known = known[:0]
        found = kmeans(points, k, generator=generator, n_init=1, max_iterations=ITERATIONS)
    # Intents of which no label was drawn are numbered with the new ones.
    numbers = np.concatenate([known, np.setdiff1d(np.arange(k), known)])
    clusters = nearest_centroid(points, found.centroids).numpy()
    return _Again(np.arange(len(points)), numbers[clusters])


def _overlap(evidence: Evidence, again: _Again) -> np.ndarray:
    """Return the (k,) overlap of every intent with the cluster most like it; 0 if empty."""
    k = evidence.n_intents
    together = np.zeros((k, k))
    np.add.at(together, (evidence.labels[again.rows], again.found), 1)
    sizes, found = together.sum(axis=1, keepdims=True), together.sum(axis=0)
    return np.asarray((together / np.maximum(sizes + found - together, 1)).max(axis=1))
