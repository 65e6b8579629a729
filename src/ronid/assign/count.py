"""How many intents there are: by a tree of clusters, or as published methods filter clusters.

Ward's tree over the rows joins clusters at a growing cost. Joins inside intents are cheap, joins
of intents dear; where the cost rises fastest, against the number of clusters that are left and
both on a logarithmic scale, there the intents are whole and apart. Labelled rows tell a second
time: the number of clusters at which pairs of them are together or apart as their labels say. A
cluster of what is left over, utterances that lie between all intents, is not counted.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

from ronid.assign.align import match
from ronid.assign.kmeans import class_means, kmeans
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

NEARLY_RECOVERED, OF_ONE_PAIR = 0.02, 0.5
"""F1 below the best that is still as good, and what it is at least for a single labelled pair: it
falls with the root of their number."""

HELD = 0.7
"""Labels that are as content there draw the number no further from the steepest rise than it is so
steep: where the tree is sure to one intent, they mostly say that many numbers would do."""

ENOUGH = 5
"""Labelled rows that give a known intent a whole voice."""

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
        recovery: (c,) F1 of pairs of labelled rows in the clusters there; None without labels.
        leftover: Clusters that were seen and not counted, because they hold what is left over.
    """

    k: int
    low: int
    high: int
    numbers: IntArray
    rise: NDArray[np.float64]
    recovery: NDArray[np.float64] | None = None
    leftover: int = 0


def count_by_tree(
    embeddings: Tensor,
    targets: Tensor,
    n_known: int,
    *,
    generator: torch.Generator,
    at_most: int | None = None,
    draws: int = DRAWS,
    finest: bool = False,
) -> IntentCount:
    """Estimate the number of intents from nothing.

    Args:
        embeddings: (n, d) features of all rows.
        targets: (n,) given intents 0..n_known-1, -1 where there is none.
        n_known: How many intents are known; there are at least so many.
        generator: Source of randomness, on the device of the features.
        at_most: Largest number that may come out.
        draws: Trees to average over; a single one may hold all rows.
        finest: Whether, where no intent is known, the finest of several high hills counts, not the
            highest.
    """
    n = len(embeddings)
    m = min(n if draws == 1 else int(DRAWN * n), max(GRAINS, 10 * n_known))
    least = max(1, n_known)
    limit = n if at_most is None else min(n, at_most)
    if n < 4 or limit <= least:  # noqa: PLR2004 - nothing to see
        return _unseen(least, limit)
    drawn: list[tuple[WardTree, Grains]] = []
    heights, recoveries = [], []
    given = targets.cpu().numpy()
    for _ in range(draws):
        groups = grains(embeddings, m, generator=generator)
        tree = ward_tree(groups.centres, groups.weights)
        drawn.append((tree, groups))
        heights.append(tree.heights[::-1])  # entry j is the join that leaves j + 1 clusters
        recoveries.append(pair_recovery(tree, groups, given, n_known)[::-1])
    length = min(map(len, heights))
    most = min(limit, max(least + 1, length // FEWEST))
    different = min(limit, length + 1)
    numbers = np.arange(max(2, least), max(most, 2, least) + 1)
    if length < 3:  # noqa: PLR2004 - rows are nearly all alike
        return _unseen(least, different)
    rise = rises(np.mean([_logs(h[:length]) for h in heights], axis=0), numbers)
    recovery = None
    mean = np.mean([r[:length] for r in recoveries], axis=0)
    if n_known and np.isfinite(mean).all():
        recovery = mean[np.minimum(numbers, length) - 1]
    sizes = np.bincount(given[given >= 0], minlength=least)
    found = _estimate(numbers, rise, recovery, sizes, finest=finest and not n_known)
    cuts = [tree.cut(min(found.k, len(g.weights)))[g.labels] for tree, g in drawn]
    seen = float(np.mean([count_leftover(embeddings, labels) for labels in cuts]))
    leftover = min(round(seen), found.k - least)
    k = found.k - leftover
    doubt = -(-k // (DOUBT_UNLABELLED if recovery is None else DOUBT))
    low, high = max(least, min(found.low, k - doubt)), min(n, max(found.high, k + doubt))
    if high >= numbers[-1]:  # more than could be looked at: every other row may be another intent
        high = max(high, different)
    return replace(found, k=k, low=low, high=high, leftover=leftover)


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


def _estimate(
    numbers: IntArray,
    rise: NDArray[np.float64],
    recovery: NDArray[np.float64] | None,
    sizes: IntArray,
    *,
    finest: bool = False,
) -> IntentCount:
    """Weigh where the cost rises against what the labels say, on a logarithmic scale.

    Both curves have a hill with a ragged top: a point amid the hill moves less from draw to draw
    than its highest one. The tree has seen all intents, labels only those that are known, some of
    them hardly: that many voices each of them has. `sizes` are the (m,) labelled rows of each.
    """
    steepest = int(numbers[rise.argmax()])
    if finest and recovery is None:
        steepest = _finest(numbers, rise)
    near = np.abs(np.log(numbers / steepest)) < np.log(SAME_HILL)
    risen = _point_of(numbers, np.where(near, rise - NEARLY * rise[near].max(), 0))
    if recovery is None:
        high = numbers[rise >= HILLS * rise.max()]
        return IntentCount(round(risen), int(high.min()), int(high.max()), numbers, rise)
    nearly = numbers[near & (rise >= NEARLY * rise.max())]
    leeway = max(NEARLY_RECOVERED, OF_ONE_PAIR / np.sqrt(_pairs(sizes).sum()))
    above = recovery - recovery.max() + leeway
    best = _best_recovered(numbers, above, near, steepest)
    known = min(len(sizes), sizes.sum() / ENOUGH)
    voices = known / (known + risen)
    drawn = round(risen ** (1 - voices) * best**voices)
    k = _held(numbers, rise, above > 0, steepest, drawn)
    possible = (int(nearly.min()), int(nearly.max()), k, round(best))
    return IntentCount(k, min(possible), max(possible), numbers, rise, recovery)


def _finest(numbers: IntArray, rise: NDArray[np.float64]) -> int:
    """Return where the rise is steepest on the finest of the high hills.

    An intent that is missed costs more than one too many.
    """
    last = numbers[rise >= HILLS * rise.max()].max()
    fine = numbers >= last / SAME_HILL
    return int(numbers[fine][rise[fine].argmax()])


def _held(
    numbers: IntArray,
    rise: NDArray[np.float64],
    content: NDArray[np.bool_],
    steepest: int,
    drawn: int,
) -> int:
    """Return the number nearest to `drawn` on the steep stretch, if labels are content there."""
    gentle = rise < HELD * rise[numbers == steepest]
    low = numbers[gentle & (numbers < steepest)].max(initial=0)
    high = numbers[gentle & (numbers > steepest)].min(initial=np.iinfo(np.int64).max)
    stretch = numbers[content & (numbers > low) & (numbers < high)]
    return int(np.clip(drawn, stretch.min(), stretch.max())) if len(stretch) else drawn


def _best_recovered(
    numbers: IntArray,
    above: NDArray[np.float64],
    near: NDArray[np.bool_],
    steepest: int,
) -> float:
    """Return the number that labels speak for, as near to the steepest rise as they allow.

    Args:
        numbers: (c,) where the curve was looked at.
        above: (c,) how far its recovery is above the least that is as good as the best.
        near: (c,) which numbers are on the hill of the steepest rise.
        steepest: Where that is.
    """
    if (above[near] > 0).any():
        return _point_of(numbers, np.where(near, above, 0))
    allowed = numbers[above > 0]
    return float(np.clip(steepest, allowed.min(), allowed.max()))


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


def pair_recovery(
    tree: WardTree, groups: Grains, targets: IntArray, n_known: int
) -> NDArray[np.float64]:
    """F1 of pairs of labelled rows after each join: together when, and only when, labels agree.

    Args:
        tree: Joins of the groups.
        groups: Which group every row is in.
        targets: (n,) given intents, -1 where there is none.
        n_known: Number of known intents.

    Returns:
        (m - 1,) one value per join; nan where no two labelled rows share an intent.
    """
    m = len(groups.centres)
    rows = np.flatnonzero(targets >= 0)
    counts = np.zeros((2 * m - 1, max(1, n_known)))
    np.add.at(counts, (groups.labels[rows], targets[rows]), 1)
    alike = _pairs(counts[:m].sum(0)).sum()
    together, right = _pairs(counts[:m].sum(1)).sum(), _pairs(counts[:m]).sum()
    found = np.full(m - 1, np.nan)
    for i, (a, b) in enumerate(tree.joins):
        together += counts[a].sum() * counts[b].sum()
        right += counts[a] @ counts[b]
        counts[m + i] = counts[a] + counts[b]
        if alike:
            found[i] = 2 * right / (together + alike)
    return found


def _pairs(counts: NDArray[np.float64] | IntArray) -> NDArray[np.float64]:
    return counts * (counts - 1) / 2


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
