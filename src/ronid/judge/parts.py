"""Parts of one intent that lie apart, for people to look at; and what a server asks of the judge.

Arrays in, arrays out: whoever asks need not know what they are worked out with.
"""

from dataclasses import dataclass

import numpy as np
import torch

from ronid.assign.kmeans import kmeans
from ronid.assign.neighbours import nearest_neighbours
from ronid.assign.silhouette import silhouette
from ronid.assign.threads import one_thread
from ronid.judge.evidence import Evidence
from ronid.judge.judgement import NEIGHBOURS
from ronid.judge.likeness import Likeness, measure_likeness
from ronid.types import FloatArray, IntArray

AS_CLEAR = 0.03
"""Silhouette that one part more must gain."""


@dataclass(frozen=True, eq=False)
class Parts:
    """Groups of points.

    Args:
        labels: (n,) part of every point.
        clear: How clearly the parts lie apart: their mean silhouette, in -1..1.
    """

    labels: IntArray
    clear: float


def find_parts(points: FloatArray, count: int | None = None, *, most: int = 5) -> Parts:
    """Find groups of points that lie apart.

    Args:
        points: (n, d) unit vectors, at least four.
        count: How many parts; None for the fewest that are about as clear as any, none tiny.
        most: Parts that are tried where none are asked for.
    """
    with one_thread():
        if count is not None:
            return _parts(points, count)
        tried = [_parts(points, k) for k in range(2, min(most, len(points) // 2) + 1)]
    least = max(2, len(points) // 20)
    whole = [found for found in tried if np.bincount(found.labels).min() >= least] or tried[:1]
    best = max(found.clear for found in whole)
    return next(found for found in whole if found.clear >= best - AS_CLEAR)


def _parts(points: FloatArray, count: int) -> Parts:
    tensor = torch.from_numpy(points)
    found = kmeans(tensor, count, generator=torch.Generator().manual_seed(count), n_init=4)
    generator = torch.Generator().manual_seed(0)
    clear = silhouette(tensor, found.labels, generator=generator)
    return Parts(found.labels.numpy(), float(clear))


def find_likeness(evidence: Evidence, *, seed: int = 0) -> Likeness:
    """Say which intents look like one, and which like two, on one thread.

    Args:
        evidence: Utterances and where they were put; unit vectors.
        seed: Source of the starts.
    """
    with one_thread():
        points = torch.from_numpy(evidence.embeddings)
        neighbours = nearest_neighbours(points, NEIGHBOURS).numpy()
        return measure_likeness(evidence, neighbours, seed=seed)
