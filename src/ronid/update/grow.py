"""New intents beside old ones: which of the utterances that came make an intent.

    what came -> those whose neighbours are new -> counted and clustered -> intents of their own?
              -> (the adapter learns to tell them apart) -> nearest prototype, old or new

The prototypes of the old intents stand still. What is too small, too scattered or no different from
an old intent is given up; what fits nowhere then is collected until more like it comes.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from ronid.assign.breathing import breathing_kmeans
from ronid.assign.count import count_by_tree
from ronid.head import Scope, closeness
from ronid.types import FloatArray, IntArray, Rule
from ronid.update.novelty import Novelty, neighbours_of, novelty, own_share, tightness

Flags = NDArray[np.bool_]

DRAWS, DRAWN = 5, 0.8
"""The number of intents is the median over so many samples of this share of the utterances."""

SHARE = 0.35
"""Of the median size of the old intents, from which on a new one counts."""

FEWEST = 5
"""Utterances that any intent has."""

TIGHT = 0.35
"""Share of a new intent's utterances that must lie as near to each other as old ones do. Measured
with seed 100: of new intents 0.53 to 1 do, of scattered utterances 0 to 0.22."""

OWN = 0.75
"""How much a new intent keeps to itself beside its nearest old ones, see `own_share`. Measured
with seeds of 100 and up: new intents 0.74 to 1, more of an old intent 0.37 to 0.68, a part of one
0.78 or less in 19 of 20 cases."""

OWN_TOGETHER = 0.7
"""The same for all new intents beside one old one together; more of that one has a half."""

TOGETHER = 0.85
"""How little two clusters keep to themselves beside each other when they are one intent. Seeds of
100 and up: halves of an intent of StackOverflow 0.56 to 0.87, its nearest intents 0.93 to 0.98; on
the others 0.48 to 1 (half of them below 0.88), and 0.77 to 1 (nine of ten above)."""

AMONG_OLD = 0.1
"""Share of the threshold that the belonging of an utterance with old neighbours must reach: a tenth
of what does belong would fall below the whole of it, and wait without end."""

RIVALS = 2
"""Old intents, by where its utterances would go, that a new one is compared with."""

_ITERATIONS = 10


@dataclass(frozen=True)
class Views:
    """Utterances as the model sees them, and as they are compared with each other.

    Args:
        vectors: (n, d) features.
        plain: (n, w) unit vectors in which any two intents can be told apart, also those that the
            model was not trained to tell apart.
    """

    vectors: FloatArray
    plain: FloatArray


@dataclass(frozen=True)
class Beside:
    """What is there already.

    Args:
        prototypes: (k, d) of the old intents.
        rule: What closeness is.
        scope: Tells what belongs to them.
        threshold: Least p-value of newness and of belonging.
        least: Fewest utterances of a new intent.
        seen: m of the utterances that were there.
        labels: (m,) their intents.
    """

    prototypes: FloatArray
    rule: Rule
    scope: Scope
    threshold: float
    least: int
    seen: Views
    labels: IntArray

    def nearest(self, vectors: FloatArray, new: FloatArray) -> IntArray:
        """Return the (n,) nearest prototype of each vector, old ones first."""
        return closeness(vectors, np.concatenate([self.prototypes, new]), self.rule).argmax(1)


@dataclass(frozen=True)
class Learnt:
    """What an encoder that was trained on says.

    Args:
        vectors: (n, d) features of what came.
        new: (c, d) prototypes of the new intents.
        scope: Of the old utterances, with their features of now.
        before: Features of all that were there; None where they are what they were.
    """

    vectors: FloatArray
    new: FloatArray
    scope: Scope
    before: FloatArray | None = None


Learn = Callable[[IntArray, Flags], Learnt]
"""Trains an encoder on, given (n,) first intents of what came and which of them are certain."""


@dataclass(frozen=True)
class Grown:
    """What became of the utterances that came.

    Args:
        labels: (n,) nearest intent; the new ones are numbered after the old ones.
        prototypes: (k, d): the old ones, bit for bit, and the new ones behind them.
        fits: (n,) whether the utterance belongs there; else it is collected.
        vectors: (n, d) features, of the encoder as it is now.
        scope: Of the old utterances, as they are now.
        before: Features of all that were there; None where they are what they were.
    """

    labels: IntArray
    prototypes: FloatArray
    fits: Flags
    vectors: FloatArray
    scope: Scope
    before: FloatArray | None = None


def least_size(sizes: IntArray) -> int:
    """Return the fewest utterances of a new intent, from the (k,) sizes of the old ones."""
    return max(FEWEST, round(SHARE * float(np.median(sizes)))) if len(sizes) else FEWEST


def prototype_of(vectors: FloatArray, rule: Rule) -> FloatArray:
    """Return the (d,) mean of vectors, of length 1 where closeness is the cosine."""
    mean: FloatArray = vectors.mean(0)
    return mean / max(float(np.linalg.norm(mean)), 1e-12) if rule == "cosine" else mean


def grow(
    came: Views, fixed: IntArray, old: Beside, *, seed: int = 0, learn: Learn | None = None
) -> Grown:
    """Give every utterance its intent, and make new intents of those that are new.

    Args:
        came: Utterances.
        fixed: (n,) intents that the user gave, -1 where none.
        old: The intents that are there.
        seed: Of the clustering.
        learn: Trains the encoder on where there are new intents; None where it stands still.
    """
    free, k = fixed < 0, len(old.prototypes)
    old = _with_fixed(old, came, fixed)
    sizes = np.bincount(old.labels, minlength=k)
    seen = novelty(
        old.seen.plain, came.plain, neighbours=neighbours_of(sizes[sizes > 0]), seed=seed
    )
    strange = free & (seen.newness < old.threshold)
    strange &= ~seen.is_near(came.plain, came.plain[~free], old.threshold)
    groups = new_groups(came, strange, old, seen, seed)
    labels = np.where(free, old.nearest(came.vectors, came.vectors[:0]), fixed)
    labels = np.where(groups >= 0, k + groups, labels)
    now = Learnt(came.vectors, means_of(came.vectors, groups, old.rule), old.scope)
    if len(now.new) and learn is not None:
        now = learn(labels, groups < 0)
    new, nearest = keep_large(now.vectors[free], now.new, old)
    labels[free] = nearest
    fits = ~free | (labels >= k)
    rest = np.flatnonzero(~fits)
    asked = old.threshold * np.where(strange[rest], 1.0, AMONG_OLD)
    fits[rest] = now.scope.belonging(now.vectors[rest]) >= asked
    prototypes = np.concatenate([old.prototypes, new])
    return Grown(labels, prototypes, fits, now.vectors, now.scope, now.before)


def _with_fixed(old: Beside, came: Views, fixed: IntArray) -> Beside:
    """Put what came with an intent beside what was there: it shows what is of an intent already."""
    sure = fixed >= 0
    vectors, plain = (
        np.concatenate([before, now[sure]])
        for before, now in ((old.seen.vectors, came.vectors), (old.seen.plain, came.plain))
    )
    labels = np.concatenate([old.labels, fixed[sure]])
    return replace(old, seen=Views(vectors, plain), labels=labels)


def new_groups(came: Views, strange: Flags, old: Beside, seen: Novelty, seed: int) -> IntArray:
    """Return the (n,) new intent of every utterance, -1 where it is none.

    Args:
        came: Utterances.
        strange: (n,) those that look new.
        old: The intents that are there.
        seen: How new utterances look.
        seed: Of samples and k-means.
    """
    groups = np.full(len(strange), -1)
    rows = np.flatnonzero(strange)
    if len(rows) < old.least:
        return groups
    points = came.plain[rows]
    labels = clusters(points, max(1, len(rows) // old.least), seed)
    alone = replace(old, prototypes=points[:0], rule="cosine")
    _, labels = keep_large(points, means_of(points, labels, "cosine"), alone)
    parts = [rows[labels == cluster] for cluster in np.unique(labels[labels >= 0])]
    whole = partial(is_intent, came, old=old, seen=seen, seed=seed)
    parts = joined(came, [part for part in parts if whole(part)], whole, seed)
    for made, part in enumerate(apart_together(came, parts, old, seed)):
        groups[part] = made
    return groups


def clusters(vectors: FloatArray, most: int, seed: int) -> IntArray:
    """Count and cluster utterances; return the (n,) cluster of each.

    Args:
        vectors: (n, w) as they are compared.
        most: Clusters at most.
        seed: Of samples and k-means.
    """
    points = torch.from_numpy(np.ascontiguousarray(vectors, np.float32))
    generator = torch.Generator().manual_seed(seed)
    counts = []
    for _ in range(DRAWS if most > 1 else 0):
        rows = torch.randperm(len(points), generator=generator)[: int(DRAWN * len(points))]
        counts.append(count_by_tree(points[rows], 0, draws=1, generator=generator).k)
    k = min(most, int(np.median(counts))) if counts else 1
    unknown = torch.full((len(points),), -1)
    found = breathing_kmeans(points, unknown, k, generator=generator, n_init=3, breaths=8)
    return found.labels.numpy()


def joined(
    came: Views, parts: list[IntArray], whole: Callable[[IntArray], bool], seed: int
) -> list[IntArray]:
    """Join pieces of one intent: those that do not keep to themselves beside their nearest other.

    Args:
        came: All that came.
        parts: Rows of each cluster.
        whole: Whether rows make an intent; what is joined must.
        seed: Of what is compared.
    """
    parts = list(parts)
    while len(parts) > 1:
        means = np.stack([prototype_of(came.plain[part], "cosine") for part in parts])
        alike = means @ means.T
        np.fill_diagonal(alike, -1)
        pairs = {(min(i, j), max(i, j)) for i, j in enumerate(alike.argmax(1))}
        shares = {pair: _apartness(came, parts[pair[0]], parts[pair[1]], seed) for pair in pairs}
        for first, second in sorted(shares, key=shares.__getitem__):
            both = np.sort(np.concatenate([parts[first], parts[second]]))
            if shares[first, second] < TOGETHER and whole(both):
                parts[first] = both
                del parts[second]
                break
        else:
            break
    return parts


def _apartness(came: Views, one: IntArray, other: IntArray, seed: int) -> float:
    """Return how much the less separate of two groups keeps to itself, where it shows best."""
    return max(
        min(own_share(a, b, seed=seed), own_share(b, a, seed=seed))
        for a, b in ((view[one], view[other]) for view in (came.plain, came.vectors))
    )


def is_intent(came: Views, members: IntArray, old: Beside, seen: Novelty, seed: int) -> bool:
    """Return whether utterances are near to each other, and apart from the old intents.

    Args:
        came: All that came.
        members: Rows of them.
        old: The intents that are there.
        seen: How new utterances look.
        seed: Of what they are compared with.
    """
    group = came.plain[members]
    if tightness(group, seen.usual, old.threshold) < TIGHT:
        return False
    likeness = np.bincount(old.labels, old.seen.plain @ group.mean(0))
    alike = int((likeness / np.maximum(1, np.bincount(old.labels))).argmax())
    rivals = {alike, *_rivals(came, members, old)}
    return all(_apart(came, members, rival, old, seed) for rival in rivals)


def apart_together(came: Views, parts: list[IntArray], old: Beside, seed: int) -> list[IntArray]:
    """Return the parts that are also apart from an old intent together with others beside it.

    Many utterances of one old intent, cut into pieces, are apart piece by piece.

    Args:
        came: All that came.
        parts: Rows of each possible intent.
        old: The intents that are there.
        seed: Of what they are compared with.
    """
    nearest = [_rivals(came, part, old)[0] for part in parts]
    fine = set()
    for rival in set(nearest):
        beside = [part for part, own in zip(parts, nearest, strict=True) if own == rival]
        if _apart(came, np.concatenate(beside), rival, old, seed, OWN_TOGETHER):
            fine.add(rival)
    return [part for part, own in zip(parts, nearest, strict=True) if own in fine]


def _rivals(came: Views, members: IntArray, old: Beside) -> list[int]:
    """Return the old intents that most utterances would go to, the first one first."""
    votes = np.bincount(old.nearest(came.vectors[members], came.vectors[:0]))
    return [int(rival) for rival in votes.argsort()[::-1][:RIVALS] if votes[rival]]


def _apart(
    came: Views, members: IntArray, rival: int, old: Beside, seed: int, least: float = OWN
) -> bool:
    """Return whether a group keeps to itself beside an old intent, in one view at least.

    Of an old intent that is too small to say, any group is apart.
    """
    own = old.labels == rival
    views = ((came.plain, old.seen.plain), (came.vectors, old.seen.vectors))
    sides = ((new[members], there[own]) for new, there in views)
    return int(own.sum()) < FEWEST or any(own_share(*pair, seed=seed) >= least for pair in sides)


def means_of(vectors: FloatArray, labels: IntArray, rule: Rule) -> FloatArray:
    """Return the (c, d) prototypes of clusters 0 to c - 1; rows of -1 take no part."""
    empty = np.empty((0, vectors.shape[1]), np.float32)
    means = [prototype_of(vectors[labels == c], rule) for c in range(labels.max(initial=-1) + 1)]
    return np.stack(means) if means else empty


def keep_large(vectors: FloatArray, new: FloatArray, old: Beside) -> tuple[FloatArray, IntArray]:
    """Let new prototypes settle among old ones; give up the smallest until all are large enough.

    Args:
        vectors: (n, d) features, or as they are compared.
        new: (c, d) first prototypes.
        old: The intents that are there.

    Returns:
        (c, d) prototypes that are left, and the (n,) nearest prototypes, old ones first; -1 where
        there is none at all.
    """
    new, labels = _settled(vectors, new, old, _ITERATIONS)
    while len(new):
        sizes = np.bincount(labels, minlength=len(old.prototypes) + len(new))[len(old.prototypes) :]
        worst = int(sizes.argmin())
        if sizes[worst] >= old.least:
            break
        new, labels = _settled(vectors, np.delete(new, worst, 0), old, 2)
    return new, labels


def _settled(
    vectors: FloatArray, new: FloatArray, old: Beside, iterations: int
) -> tuple[FloatArray, IntArray]:
    """Move new prototypes to their members; the old ones stay where they are."""
    if len(old.prototypes) + len(new) == 0:
        return new, np.full(len(vectors), -1)
    labels = old.nearest(vectors, new)
    for _ in range(iterations):
        means = new.copy()
        for j in range(len(new)):
            members = vectors[labels == len(old.prototypes) + j]
            if len(members):
                means[j] = prototype_of(members, old.rule)
        moved, new = old.nearest(vectors, means), means
        if np.array_equal(moved, labels):
            break
        labels = moved
    return new, labels
