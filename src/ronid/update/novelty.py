"""What is new has neighbours that are new.

One utterance rarely shows that it is new: an encoder that was trained on some intents sees all
others near to one of them. Many together do. The nearest others of an utterance of an old intent
are mostly old utterances; those of a new intent came with it.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

from ronid.head import Floats, p_values
from ronid.types import FloatArray, IntArray

NEIGHBOURS, LEAST_NEIGHBOURS = 15, 5
"""Nearest others that are looked at: half of an old intent, between these numbers."""

ASKED = 1_000
"""Old utterances that tell how new neighbours usually are."""

FELLOWS = 10
"""Nearest others that tell two groups apart."""

_BLOCK = 1_000


@dataclass(frozen=True)
class Novelty:
    """How new utterances look beside old ones.

    Args:
        newness: (n,) share of old utterances whose neighbours are as new as those of each that
            came, or newer: a conformal p-value, small for what is new.
        usual: (a,) ascending distances, 1 - cosine, of old utterances to the nearest other old one.
    """

    newness: Floats
    usual: Floats

    def is_near(self, points: FloatArray, others: FloatArray, least: float) -> NDArray[np.bool_]:
        """Return (n,) which points are as near to one of the others as old ones are to another.

        Args:
            points: (n, w) unit vectors.
            others: (m, w) unit vectors, or none.
            least: Least p-value that counts as near.
        """
        if not (len(points) and len(others)):
            return np.zeros(len(points), np.bool_)
        blocks = range(0, len(points), _BLOCK)
        nearest = np.concatenate([(points[i : i + _BLOCK] @ others.T).max(1) for i in blocks])
        return _as_near(self.usual, nearest, least)


def neighbours_of(sizes: IntArray) -> int:
    """Return how many neighbours to look at beside old intents of (k,) sizes.

    Beyond its own intent an old utterance has any neighbours, new ones as well.
    """
    half = int(np.median(sizes)) // 2 if len(sizes) else 0
    return min(NEIGHBOURS, max(LEAST_NEIGHBOURS, half))


def novelty(
    old: FloatArray, came: FloatArray, *, neighbours: int = NEIGHBOURS, seed: int = 0
) -> Novelty:
    """Look at the neighbours of all that came, and of some that were there.

    Args:
        old: (m, w) unit vectors of old utterances, two or more.
        came: (n, w) unit vectors of those that came.
        neighbours: How many.
        seed: Of the old utterances that are asked.
    """
    points = torch.from_numpy(np.concatenate([old, came]).astype(np.float32))
    drawn = np.random.default_rng(seed).permutation(len(old))[:ASKED]
    asked = (torch.arange(len(old), len(points)), torch.from_numpy(drawn))
    (shares, _), (others, nearest) = (
        _neighbours(points, rows, len(old), neighbours) for rows in asked
    )
    # Shares that are the larger the newer become distances that are: p_values counts those beyond.
    return Novelty(p_values(np.sort(others), shares), np.sort(1 - nearest))


def own_share(group: FloatArray, others: FloatArray, *, seed: int = 0) -> float:
    """Return how much a group keeps to itself beside as many others: 0.5 not at all, 1 fully.

    That is the share of their own among the nearest of its members, where both sides have the same
    number: so many utterances of an old intent at once make no new one.

    Args:
        group: (n, w) vectors of any length.
        others: (m, w) vectors of any length.
        seed: Of the draw from the larger side.
    """
    rng = np.random.default_rng(seed)
    each = min(len(group), len(others))
    sides = [side[rng.permutation(len(side))[:each]] for side in (group, others)]
    points = normalize(torch.from_numpy(np.concatenate(sides).astype(np.float32)), dim=1)
    nearest = _nearest(points, torch.arange(each), min(FELLOWS, each - 1)).indices
    return float((nearest < each).double().mean())


def tightness(group: FloatArray, usual: Floats, least: float) -> float:
    """Return the share of a group that has a fellow as near as old utterances have another.

    Args:
        group: (n, w) unit vectors, two or more.
        usual: Of `Novelty`.
        least: Least p-value that counts as near.
    """
    points = torch.from_numpy(group.astype(np.float32))
    nearest = _nearest(points, torch.arange(len(points)), 1).values[:, 0]
    return float(_as_near(usual, nearest.numpy(), least).mean())


def _as_near(usual: Floats, cosines: FloatArray, least: float) -> NDArray[np.bool_]:
    """Return (n,) which cosines to the nearest other are as large as those of old utterances."""
    return p_values(usual, 1 - cosines.astype(np.float64)) >= least


def _neighbours(
    points: Tensor, asked: Tensor, n_old: int, neighbours: int
) -> tuple[Floats, Floats]:
    """Return (a,) shares of new ones among the neighbours, and cosines to the nearest old one."""
    count = min(neighbours, len(points) - 1)
    shares, nearest = [], []
    for rows in asked.split(_BLOCK):
        cosines = _cosines(points, rows)
        shares.append((cosines.topk(count, dim=1).indices >= n_old).double().mean(1))
        nearest.append(cosines[:, :n_old].max(1).values.double())
    return torch.cat(shares).numpy(), torch.cat(nearest).numpy()


def _nearest(points: Tensor, rows: Tensor, count: int) -> torch.return_types.topk:
    """Return the nearest other points of some."""
    return _cosines(points, rows).topk(count, dim=1)


def _cosines(points: Tensor, rows: Tensor) -> Tensor:
    """Return the (a, n) cosines of some points to all; none is its own neighbour."""
    cosines = points[rows] @ points.T
    cosines[torch.arange(len(rows)), rows] = -2.0
    return cosines
