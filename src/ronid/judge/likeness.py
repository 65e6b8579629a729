"""Two intents that look like one, and one intent that looks like two: one question asked twice.

Every intent is compared with its neighbours, and halved and its halves compared. Halves of known
intents show what one intent looks like, pairs of known intents what two do: both are what the user
said. Where few intents are known all of them serve, as most are neither twins nor mixtures.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ronid.judge.evidence import Evidence
from ronid.judge.gaps import SMALLEST, Gap, halve, measure_gap
from ronid.name.exemplars import exemplars
from ronid.seeds import derive
from ronid.types import IntArray

NEAREST = 3
"""Neighbours that every intent is compared with."""

ENOUGH_KNOWN = 8
"""Known intents from which on they alone say what one and two intents look like."""

FACING = 500
"""Utterances of an intent, those nearest to the other, among which the closest pairs are sought."""

SHOWN = 3
"""Utterances, or pairs of them, that show a finding."""


@dataclass(frozen=True)
class Twins:
    """Two intents that may be one.

    Args:
        intents: Their positions among the prototypes.
        chance: How much more they look like halves of one intent than like two, in 0..1.
        gap: What lies between them.
        pairs: Closest utterances across them.
    """

    intents: tuple[int, int]
    chance: float
    gap: Gap
    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Mixture:
    """An intent that may be two.

    Args:
        intent: Its position among the prototypes.
        chance: How much more its halves look like two intents than like one, in 0..1.
        share: Share of the smaller half.
        gap: What lies between the halves.
        halves: Most central utterances of either.
    """

    intent: int
    chance: float
    share: float
    gap: Gap
    halves: tuple[tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True)
class Likeness:
    """What looks like something else.

    Args:
        twins: Every compared pair with a new intent in it, likeliest twins first.
        mixtures: Every intent that could be halved, likeliest mixtures first.
    """

    twins: tuple[Twins, ...]
    mixtures: tuple[Mixture, ...]


@dataclass(frozen=True)
class _Compared:
    """Two groups of rows and what lies between them; `of` names the intents they come from."""

    of: tuple[int, ...]
    rows: tuple[IntArray, IntArray]
    gap: Gap


def measure_likeness(evidence: Evidence, neighbours: IntArray, *, seed: int) -> Likeness:
    """Compare intents with their neighbours and with themselves.

    Args:
        evidence: The run.
        neighbours: (n, c) nearest neighbours of every row.
        seed: Source of the starts of 2-means.
    """
    members = evidence.members()
    pairs = _compared_pairs(evidence, neighbours, members)
    halves = _compared_halves(evidence, neighbours, members, seed)
    one, two = _chances(evidence, pairs, halves)
    twins = [
        _twins(evidence, pair, chance)
        for pair, chance in zip(pairs, one, strict=True)
        if not all(evidence.known[i] for i in pair.of)  # the user said that those are two
    ]
    mixtures = [_mixture(evidence, half, chance) for half, chance in zip(halves, two, strict=True)]
    return Likeness(
        tuple(sorted(twins, key=lambda found: -found.chance)),
        tuple(sorted(mixtures, key=lambda found: -found.chance)),
    )


def _compared_pairs(
    evidence: Evidence, neighbours: IntArray, members: Sequence[IntArray]
) -> list[_Compared]:
    """Compare every intent with those whose prototypes are nearest."""
    large = np.array([i for i, rows in enumerate(members) if len(rows) >= SMALLEST], np.int64)
    centres = torch.from_numpy(evidence.prototypes[large])
    far = torch.cdist(centres, centres).fill_diagonal_(torch.inf)
    nearest = far.topk(min(NEAREST, max(len(large) - 1, 0)), largest=False).indices.numpy()
    found = {tuple(sorted((large[i], large[j]))) for i, js in enumerate(nearest) for j in js}
    return [
        _Compared((int(i), int(j)), rows, measure_gap(evidence.embeddings, neighbours, *rows))
        for i, j in sorted(found)
        for rows in ((members[i], members[j]),)
    ]


def _compared_halves(
    evidence: Evidence, neighbours: IntArray, members: Sequence[IntArray], seed: int
) -> list[_Compared]:
    """Compare the halves of every intent that has enough utterances for two."""
    found = []
    for i, rows in enumerate(members):
        if len(rows) < 2 * SMALLEST:
            continue
        generator = torch.Generator().manual_seed(derive(seed, "halve", i))
        larger, smaller = halve(evidence.embeddings, rows, generator)
        if len(smaller) >= SMALLEST:
            gap = measure_gap(evidence.embeddings, neighbours, larger, smaller)
            found.append(_Compared((i,), (larger, smaller), gap))
    return found


def _chances(
    evidence: Evidence, pairs: Sequence[_Compared], halves: Sequence[_Compared]
) -> tuple[np.ndarray, np.ndarray]:
    """Return how much every pair looks like one intent, and every halved one like two."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    ours = sum(evidence.known) >= ENOUGH_KNOWN
    serves = [not ours or all(evidence.known[i] for i in c.of) for c in (*halves, *pairs)]
    is_two = np.repeat([False, True], [len(halves), len(pairs)])
    if len(set(is_two[serves])) < 2:
        return np.zeros(len(pairs)), np.zeros(len(halves))
    features = np.array([_features(compared.gap) for compared in (*halves, *pairs)])
    rule = make_pipeline(StandardScaler(), LogisticRegression(class_weight="balanced"))
    rule.fit(features[serves], is_two[serves])
    two = rule.predict_proba(features)[:, 1]
    return 1 - two[len(halves) :], two[: len(halves)]


def _features(gap: Gap) -> tuple[float, ...]:
    return gap.apart, gap.mixing, gap.similarity


def _twins(evidence: Evidence, pair: _Compared, chance: float) -> Twins:
    return Twins(
        intents=(pair.of[0], pair.of[1]),
        chance=float(chance),
        gap=pair.gap,
        pairs=_closest(evidence, *pair.rows),
    )


def _closest(evidence: Evidence, first: IntArray, second: IntArray) -> tuple[tuple[str, str], ...]:
    """Return the closest utterances across two intents, each of them in one pair."""
    first, second = _facing(evidence, first, second), _facing(evidence, second, first)
    points = torch.from_numpy(evidence.embeddings)
    far = torch.cdist(points[first], points[second])
    found: list[tuple[str, str]] = []
    for _ in range(min(SHOWN, *far.shape)):
        i, j = divmod(int(far.argmin()), far.shape[1])
        found.append((evidence.texts[first[i]], evidence.texts[second[j]]))
        far[i], far[:, j] = torch.inf, torch.inf
    return tuple(found)


def _facing(evidence: Evidence, rows: IntArray, others: IntArray) -> IntArray:
    """Return the rows nearest to the mean of other rows, few enough to compare them all."""
    if len(rows) <= FACING:
        return rows
    mean = evidence.embeddings[others].mean(axis=0)
    far = np.square(evidence.embeddings[rows] - mean).sum(axis=1)
    return rows[np.argpartition(far, FACING)[:FACING]]


def _mixture(evidence: Evidence, half: _Compared, chance: float) -> Mixture:
    larger, smaller = (
        exemplars(
            evidence.texts,
            rows,
            evidence.embeddings,
            evidence.embeddings[rows].mean(axis=0),
            top=SHOWN,
        )
        for rows in half.rows
    )
    counts = [len(rows) for rows in half.rows]
    return Mixture(half.of[0], float(chance), counts[1] / sum(counts), half.gap, (larger, smaller))
