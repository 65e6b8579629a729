"""How many intents there are: by a tree of clusters, or as published methods filter clusters.

Ward's tree over the rows joins clusters at a growing cost. Joins inside intents are cheap, joins of
intents are expensive. The number of clusters at which the cost rises fastest, both on a logarithmic
scale, is where intents are whole and separate. Label density, see `novelty`, gives a second
estimate, `Expected`: it follows from the share of new utterances if new intents are as large as
known ones on average. Both are weighed as evidence about one unknown number. A cluster of leftovers
between all intents is not counted.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

from ronid.assign.align import match
from ronid.assign.kmeans import class_means, kmeans
from ronid.assign.novelty import Novelty
from ronid.assign.ward import Grains, WardTree, grains, ward_tree
from ronid.types import IntArray

GRAINS = 1500
"""Groups of rows that the tree is built over; ten for every known intent where these are more."""

DRAWS = 12
"""Trees, over different groups, whose curves are averaged; the curve of a single one is ragged."""

DRAWN = 0.9
"""Share of the rows that groups are made around, at most: else all trees were the same."""

WINDOWS = (0.05, 0.1, 0.2, 0.3)
"""Widths of the stretches, as shares of the number of clusters, over which a rise is measured."""

BLOCK_ROWS = 65_536
"""Rows compared with all centres at a time."""

NEARLY = 0.9
"""Numbers whose rise is so near to the steepest are held possible."""

BELOW = 0.6
"""Share of a hill below the estimate: an intent that is missed costs half as much again as one too
many."""

FEWEST = 5
"""Groups of rows that an intent must have on average for it to be seen whole and apart."""

DOUBT = 10
"""One part in so many of the estimate, in both directions, is possible whatever the curves say."""

HILLS = 0.8
"""Without labels nothing says how fine intents are meant to be: hills so high are all possible."""

DOUBT_UNLABELLED = 3
"""What `DOUBT` is without labels."""

SHARE_ERROR = 0.1
"""Relative error of an expected number if many utterances are seen and none is new."""

SHARPNESS = 3
"""Power of the rise as evidence, next to an expected number."""

TAIL = 0.05
"""Share of the evidence below the lower bound, and above the upper one."""

SAME_HILL = 1.5
"""A number that differs from the steepest by more than this factor is on another hill."""


@dataclass(frozen=True)
class IntentCount:
    """An estimate of the number of intents, and its evidence.

    Args:
        k: The estimate.
        low: Least number that is held possible.
        high: Largest.
        numbers: (c,) numbers of clusters that were looked at.
        rise: (c,) how fast the cost of joining rises there.
        leftover: Clusters that were seen and not counted, because they hold what is left over.
    """

    k: int
    low: int
    high: int
    numbers: IntArray
    rise: NDArray[np.float64]
    leftover: int = 0


@dataclass(frozen=True)
class Expected:
    """The number of intents that label density expects.

    Args:
        k: The number.
        error: Standard deviation of its logarithm.
    """

    k: int
    error: float

    @classmethod
    def from_novelty(cls, novelty: Novelty, n_known: int) -> "Expected":
        """Return what the share of new utterances says, see `Novelty.n_intents`.

        An error of the share counts for more the fewer utterances are of known intents, and it is
        larger where there are few utterances at all.
        """
        novel = novelty.novel
        n = len(novel)
        known_share = max(float((~novel).mean()), 1 / n)
        return cls(novelty.n_intents(n_known), (SHARE_ERROR + n**-0.5) / known_share)


def count_by_tree(
    embeddings: Tensor,
    n_known: int,
    *,
    generator: torch.Generator,
    expected: Expected | None = None,
    at_most: int | None = None,
    draws: int = DRAWS,
    finest: bool = False,
) -> IntentCount:
    """Estimate the number of intents.

    Args:
        embeddings: (n, d) features of all rows.
        n_known: How many intents are known; the estimate is at least this number.
        generator: Source of randomness, on the device of the features.
        expected: What label density expects; None without labels.
        at_most: Largest number that may come out.
        draws: Trees to average over; a single one may hold all rows.
        finest: Without an expected number: whether the finest of several high peaks counts, not the
            highest.
    """
    n = len(embeddings)
    m = min(n if draws == 1 else int(DRAWN * n), max(GRAINS, 10 * n_known))
    least = max(1, n_known)
    limit = n if at_most is None else min(n, at_most)
    if n < 4 or limit <= least:  # noqa: PLR2004 - nothing to see
        return _unseen(least, limit)
    drawn: list[tuple[WardTree, Grains]] = []
    for _ in range(draws):
        groups = grains(embeddings, m, generator=generator)
        drawn.append((ward_tree(groups.centres, groups.weights), groups))
    heights = [tree.heights[::-1] for tree, _ in drawn]  # entry j: the join that leaves j + 1
    length = min(map(len, heights))
    most = min(limit, max(least + 1, length // FEWEST))
    different = min(limit, length + 1)
    numbers = np.arange(max(2, least), max(most, 2, least) + 1)
    if length < 3:  # noqa: PLR2004 - rows are nearly all alike
        return _unseen(least, different)
    rise = rises(np.mean([_logs(h[:length]) for h in heights], axis=0), numbers)
    found = weigh(numbers, rise, expected) if expected else _estimate(numbers, rise, finest=finest)
    cuts = [tree.cut(min(found.k, len(g.weights)))[g.labels] for tree, g in drawn]
    seen = float(np.mean([count_leftover(embeddings, labels) for labels in cuts]))
    new = expected is not None and expected.k > n_known  # label density has seen a new intent
    leftover = max(0, min(round(seen), found.k - least - new))
    k = found.k - leftover
    doubt = -(-k // (DOUBT if expected else DOUBT_UNLABELLED))
    low, high = max(least, min(found.low, k - doubt)), min(n, max(found.high, k + doubt))
    if not expected and high >= numbers[-1]:  # every other row may be another intent
        high = max(high, different)
    return replace(found, k=k, low=low, high=min(high, limit), leftover=leftover)


def count_leftover(embeddings: Tensor, labels: IntArray, *, block_rows: int = BLOCK_ROWS) -> int:
    """Count clusters whose rows are, on average, nearer to the centre of another than to their own.

    A tree gathers what joins nothing else cheaply; its centre is then in the middle of all others.

    Args:
        embeddings: (n, d) unit vectors.
        labels: (n,) clusters, numbered from 0 without a gap.
        block_rows: Rows compared with all centres at a time.
    """
    k = int(labels.max()) + 1
    if k == 1:
        return 0
    at = torch.from_numpy(labels).to(embeddings.device)
    centres = normalize(class_means(embeddings, at, k), dim=1)
    margins = torch.zeros(k, dtype=torch.float64, device=embeddings.device)
    for rows, own in zip(embeddings.split(block_rows), at.split(block_rows), strict=True):
        near = rows @ centres.T  # (b, k)
        mine = near.gather(1, own[:, None])[:, 0]
        others = near.scatter(1, own[:, None], -torch.inf).amax(1)
        margins.index_add_(0, own, (mine - others).double())
    return int((margins < 0).sum())


def _unseen(least: int, most: int) -> IntentCount:
    """Return what is known of a number where there is too little to look at."""
    return IntentCount(least, least, max(least, most), np.array([least]), np.zeros(1))


def weigh(numbers: IntArray, rise: NDArray[np.float64], expected: Expected) -> IntentCount:
    """Weigh the rise of the cost against the expected number, on a logarithmic scale.

    The evidence at log k is rise(k)^SHARPNESS times the normal density of log k around the expected
    number. The estimate is the mean of log k under this evidence, and the bounds are its quantiles.
    The sums over k divide by k, because large numbers are closer to each other on this scale.

    Args:
        numbers: (c,) numbers of clusters.
        rise: (c,) how fast the cost of joining rises there.
        expected: The number that label density expects.
    """
    away = np.log(numbers / expected.k) / expected.error
    height = np.maximum(rise, 0) / max(float(rise.max()), 1e-12)
    # Relative to the nearest number, so that one far from all of them leaves evidence.
    evidence = height**SHARPNESS * np.exp((np.min(away**2) - away**2) / 2) / numbers
    if not evidence.any():  # a flat curve
        evidence = np.exp((np.min(away**2) - away**2) / 2) / numbers
    below = np.cumsum(evidence) / evidence.sum()
    k = round(float(np.exp(evidence @ np.log(numbers) / evidence.sum())))
    low, high = numbers[np.searchsorted(below, [TAIL, 1 - TAIL])]
    return IntentCount(k, int(low), int(high), numbers, rise)


def _estimate(numbers: IntArray, rise: NDArray[np.float64], *, finest: bool = False) -> IntentCount:
    """Estimate the number from the rise of the cost alone.

    The peak is ragged: a point amid it moves less from draw to draw than the highest one.
    """
    steepest = _finest(numbers, rise) if finest else int(numbers[rise.argmax()])
    near = np.abs(np.log(numbers / steepest)) < np.log(SAME_HILL)
    k = round(_point_of(numbers, np.where(near, rise - NEARLY * rise[near].max(), 0)))
    high = numbers[rise >= HILLS * rise.max()]
    return IntentCount(k, int(high.min()), int(high.max()), numbers, rise)


def _finest(numbers: IntArray, rise: NDArray[np.float64]) -> int:
    """Return where the rise is steepest on the finest of the high hills.

    An intent that is missed costs more than one too many.
    """
    last = numbers[rise >= HILLS * rise.max()].max()
    fine = numbers >= last / SAME_HILL
    return int(numbers[fine][rise[fine].argmax()])


def _point_of(numbers: IntArray, height: NDArray[np.float64]) -> float:
    """Return the number up to which `BELOW` of a hill lies, on a logarithmic scale.

    Args:
        numbers: (c,) where the curve was looked at.
        height: (c,) how far it is above the foot of the hill; what is not above 0 is not of it.
    """
    weights = np.maximum(height, 0) / numbers  # large numbers stand closer on that scale
    if not weights.any():  # a flat curve
        weights = 1 / numbers
    below = np.concatenate([[0.0], np.cumsum(weights)]) / weights.sum()
    edges = np.concatenate([[numbers[0] - 0.5], numbers + 0.5])  # every number is a step as wide
    return float(np.interp(BELOW, below, edges))


def _logs(heights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log costs; the cheapest joins, such as of equal rows, tell nothing and are alike."""
    return np.log(np.maximum(heights, 1e-3 * heights.max() + 1e-300))


def rises(log_heights: NDArray[np.float64], numbers: IntArray) -> NDArray[np.float64]:
    """Slopes of log cost against log number of clusters, summed over windows.

    Args:
        log_heights: Entry j is the join that leaves j + 1 clusters.
        numbers: (c,) numbers of clusters, 2 or more; k intents are whole and apart where the join
            that leaves k - 1 is dear and the one that leaves k is cheap.
    """
    left = np.arange(1, len(log_heights) + 1)
    logs = np.log(left)
    found = np.zeros(len(numbers))
    for width in WINDOWS:
        for i, k in enumerate(numbers):
            first = max(1, min(k - 1, int(k / (1 + width))))
            last = min(len(left), max(k, int(np.ceil(k * (1 + width)))))
            x, y = logs[first - 1 : last], log_heights[first - 1 : last]
            if len(x) < 2:  # noqa: PLR2004 - no slope
                continue
            away = np.abs(x - np.log(k - 0.5)) / np.log(1 + width)
            weight = np.maximum(0.05, 1 - 0.8 * away)
            x, y = x - np.average(x, weights=weight), y - np.average(y, weights=weight)
            found[i] -= (weight * x * y).sum() / (weight * x * x).sum()
    return found


def count_by_size(
    embeddings: Tensor, start: int, *, generator: torch.Generator, share: float = 1.0
) -> int:
    """Count the clusters of k-means that are not small: DeepAligned (AAAI 2021), DPN (AAAI 2023).

    Args:
        embeddings: (n, d) features of all rows.
        start: Number of clusters to begin with, K'.
        generator: Source of randomness.
        share: A cluster counts from this share of n / K' on: 1 in DeepAligned, 0.9 in DPN.
    """
    found = kmeans(embeddings, start, n_init=1, generator=generator)
    sizes = torch.bincount(found.labels, minlength=start)
    return int((sizes >= share * len(embeddings) / start).sum())


def count_beside_known(
    embeddings: Tensor, targets: Tensor, n_known: int, start: int, *, generator: torch.Generator
) -> int:
    """Count known intents, and those of the other clusters that are not small: USNID (TKDE 2023).

    Args:
        embeddings: (n, d) features of all rows.
        targets: (n,) given intents, -1 where there is none.
        n_known: Number of known intents.
        start: Number of clusters to begin with, K'.
        generator: Source of randomness.
    """
    found = kmeans(embeddings, start, n_init=1, generator=generator)
    sizes = torch.bincount(found.labels, minlength=start)
    large = sizes >= len(embeddings) / start
    given = targets >= 0
    if n_known and given.any():
        means = class_means(embeddings[given], targets[given], n_known)
        large[match(means, found.centroids)] = False
    return n_known + int(large.sum())
