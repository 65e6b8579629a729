"""How utterances are placed: which surely, which far from every intent, which against labels."""

from dataclasses import dataclass

import numpy as np
import torch

from ronid.assign.kmeans import nearest_centroid
from ronid.judge.evidence import Evidence
from ronid.types import UNLABELLED, IntArray

SURE = 0.8
"""Share of an utterance's neighbours that must be of its intent for it to be surely placed. No more
neighbours are asked than there are others of the intent, or a small one could never be sure."""

FENCE = 1.5
"""An utterance is far beyond the upper quartile by so many times the range of the quartiles."""


@dataclass(frozen=True)
class Stray:
    """A known intent some of whose given utterances lie with another intent.

    Args:
        intent: The known intent.
        other: The intent nearest to those utterances.
        count: How many they are.
        given: Utterances labelled with the intent.
        texts: Some of them.
    """

    intent: int
    other: int
    count: int
    given: int
    texts: tuple[str, ...]


@dataclass(frozen=True)
class Placement:
    """Where utterances lie.

    Args:
        sure: (n,) whether most neighbours of an utterance are of its intent; one that is alone in
            its intent is never sure.
        far: (n,) whether an utterance is unusually far even from the nearest intent.
        given: Share of labelled utterances that lie nearest to the intent given; NaN without.
        strays: Known intents whose labels say something else, most strays first.
    """

    sure: np.ndarray
    far: np.ndarray
    given: float
    strays: tuple[Stray, ...]


def measure_placement(evidence: Evidence, neighbours: IntArray) -> Placement:
    """Look at every utterance, its neighbours and its nearest prototype.

    Args:
        evidence: The run.
        neighbours: (n, c) nearest neighbours of every row, nearest first.
    """
    points, prototypes = map(torch.from_numpy, (evidence.embeddings, evidence.prototypes))
    nearest = nearest_centroid(points, prototypes).numpy()
    distance = np.linalg.norm(evidence.embeddings - evidence.prototypes[nearest], axis=1)
    low, high = np.quantile(distance, (0.25, 0.75))
    labelled = np.flatnonzero(evidence.targets != UNLABELLED)
    right = nearest[labelled] == evidence.targets[labelled]
    return Placement(
        sure=_company(evidence, neighbours) >= SURE,
        far=distance > high + FENCE * (high - low),
        given=float(right.mean()) if len(labelled) else float("nan"),
        strays=_strays(evidence, nearest),
    )


def _company(evidence: Evidence, neighbours: IntArray) -> np.ndarray:
    """Return the (n,) share of the neighbours asked that are of an utterance's intent."""
    others = np.bincount(evidence.labels, minlength=evidence.n_intents)[evidence.labels] - 1
    asked = np.minimum(others, neighbours.shape[1])
    own = evidence.labels[neighbours] == evidence.labels[:, None]
    own &= np.arange(neighbours.shape[1]) < asked[:, None]
    return np.asarray(own.sum(axis=1) / np.maximum(asked, 1))


def _strays(evidence: Evidence, nearest: IntArray, least: int = 2) -> tuple[Stray, ...]:
    """Return the pairs of given and nearest intent that differ at least so many times."""
    astray = np.flatnonzero((evidence.targets != UNLABELLED) & (evidence.targets != nearest))
    pairs, place, counts = np.unique(
        np.stack([evidence.targets[astray], nearest[astray]], axis=1),
        axis=0,
        return_inverse=True,
        return_counts=True,
    )
    found = [
        Stray(
            intent=int(intent),
            other=int(other),
            count=int(count),
            given=int(np.count_nonzero(evidence.targets == intent)),
            texts=tuple(evidence.texts[row] for row in astray[place.ravel() == i][:3]),
        )
        for i, ((intent, other), count) in enumerate(zip(pairs, counts, strict=True))
        if count >= least
    ]
    return tuple(sorted(found, key=lambda stray: -stray.count / stray.given))
