"""A run judged without truth: its parts, one score, and what looks wrong."""

from dataclasses import dataclass

import numpy as np
import torch

from ronid.assign.neighbours import nearest_neighbours
from ronid.assign.silhouette import silhouette
from ronid.errors import DataError
from ronid.judge.evidence import MOST_ROWS, Evidence
from ronid.judge.likeness import Likeness, Mixture, Twins, measure_likeness
from ronid.judge.placement import Placement, Stray, measure_placement
from ronid.judge.stability import Stability, agreement, measure_stability
from ronid.plural import counted
from ronid.progress import Progress, Silent
from ronid.seeds import derive
from ronid.types import IntArray

NEIGHBOURS = 10
LIKELY = 0.5
"""Chance from which on two intents are called twins, or one a mixture."""


@dataclass(frozen=True)
class Parts:
    """What is measured, each in 0..1 but for the silhouette; higher is better but for `far`.

    Args:
        resampling: Agreement with clusters of halves of the utterances, see `Stability`.
        seeds: Agreement with clusters from other starts.
        silhouette: Mean silhouette coefficient in the trained space, in -1..1.
        sure: Share of utterances whose neighbours are mostly of their intent.
        far: Share of utterances far from every intent.
        given: Share of labelled utterances nearest to the intent given; NaN without labels.
        hidden: Share of hidden labels that clusters from other starts bring back; NaN without.
        single: Share of intents that do not look like a mixture.
        distinct: Share of intents that have no likely twin.
    """

    resampling: float
    seeds: float
    silhouette: float
    sure: float
    far: float
    given: float
    hidden: float
    single: float
    distinct: float


@dataclass(frozen=True)
class JudgedIntent:
    """One intent as a judge sees it.

    Args:
        name: Its name.
        known: Whether the user had labelled it.
        size: Utterances of it among those judged.
        stable: Overlap with the cluster most like it when clusters are found again, in 0..1.
        sure: Share of its utterances that are surely placed.
        far: Share of its utterances that are far from every intent.
    """

    name: str
    known: bool
    size: int
    stable: float
    sure: float
    far: float


@dataclass(frozen=True)
class Judgement:
    """What can be said of a run without truth.

    Args:
        score: One figure in 0..100 that ranks runs on the same utterances; not an accuracy.
        parts: What it is made of, and more.
        intents: The k intents.
        twins: Pairs of intents that look like one, likeliest first.
        mixtures: Intents that look like two, likeliest first.
        strays: Known intents whose labels lie with another intent.
        rows: Utterances of the run.
        judged: Utterances that were looked at.
        refit: Agreement with a whole second fit with another seed, or None.
    """

    score: float
    parts: Parts
    intents: tuple[JudgedIntent, ...]
    twins: tuple[Twins, ...]
    mixtures: tuple[Mixture, ...]
    strays: tuple[Stray, ...]
    rows: int
    judged: int
    refit: float | None = None


def judge(
    evidence: Evidence,
    *,
    seed: int = 0,
    refit: IntArray | None = None,
    progress: Progress | None = None,
) -> Judgement:
    """Judge a run by what it shows of itself.

    Args:
        evidence: The run; of more than `MOST_ROWS` utterances a sample is judged.
        seed: Source of the sample and of everything that is repeated.
        refit: (n,) intents that a second fit of the same utterances found, or None.
        progress: Told about the steps.

    Raises:
        DataError: There are too few utterances, or fewer than two intents, to say anything.
    """
    if len(evidence) <= NEIGHBOURS or evidence.n_intents < 2:
        raise DataError(
            f"the run has {counted(len(evidence), 'utterance')} and "
            f"{counted(evidence.n_intents, 'intent')}; "
            f"to be judged without truth it needs more than {NEIGHBOURS} and at least 2"
        )
    whole, progress = evidence, progress or Silent()
    evidence = evidence.sampled(MOST_ROWS, np.random.default_rng(derive(seed, "sample")))
    progress.begin("judge", 5)
    neighbours = nearest_neighbours(torch.from_numpy(evidence.embeddings), NEIGHBOURS).numpy()
    progress.advance()
    placement = measure_placement(evidence, neighbours)
    likeness = measure_likeness(evidence, neighbours, seed=seed)
    progress.advance()
    stability = measure_stability(evidence, seed=seed)
    progress.advance(2)
    parts = _parts(evidence, stability, placement, likeness, seed)
    progress.advance()
    progress.end()
    return Judgement(
        score=summary(parts),
        parts=parts,
        intents=_intents(evidence, stability, placement),
        twins=tuple(found for found in likeness.twins if found.chance >= LIKELY),
        mixtures=tuple(found for found in likeness.mixtures if found.chance >= LIKELY),
        strays=placement.strays,
        rows=evidence.rows,
        judged=len(evidence),
        refit=None if refit is None else agreement(whole.labels, refit),
    )


def summary(parts: Parts) -> float:
    """Return the geometric mean of four parts, in 0..100: none makes up for another.

    A run must be found again from other starts, its utterances must lie among their own kind, given
    labels must be in place, and no two intents may look like one. docs/judging.md says how well
    that ranks runs.
    """
    factors = np.array([parts.seeds, parts.sure, parts.given, parts.distinct])
    factors = factors[~np.isnan(factors)].clip(min=0)
    return 100 * float(factors.prod() ** (1 / len(factors)))


def _parts(
    evidence: Evidence, stability: Stability, placement: Placement, likeness: Likeness, seed: int
) -> Parts:
    generator = torch.Generator().manual_seed(derive(seed, "silhouette"))
    points, labels = torch.from_numpy(evidence.embeddings), torch.from_numpy(evidence.labels)
    twins = {i for found in likeness.twins if found.chance >= LIKELY for i in found.intents}
    mixed = sum(found.chance >= LIKELY for found in likeness.mixtures)
    return Parts(
        resampling=stability.resampling,
        seeds=stability.seeds,
        silhouette=silhouette(points, labels, generator=generator),
        sure=float(placement.sure.mean()),
        far=float(placement.far.mean()),
        given=placement.given,
        hidden=stability.hidden,
        single=1 - mixed / evidence.n_intents,
        distinct=1 - len(twins) / evidence.n_intents,
    )


def _intents(
    evidence: Evidence, stability: Stability, placement: Placement
) -> tuple[JudgedIntent, ...]:
    def share(marks: np.ndarray, rows: IntArray) -> float:
        return float(marks[rows].mean()) if len(rows) else 0.0

    return tuple(
        JudgedIntent(
            name=evidence.names[i],
            known=evidence.known[i],
            size=len(rows),
            stable=float(stability.intents[i]),
            sure=share(placement.sure, rows),
            far=share(placement.far, rows),
        )
        for i, rows in enumerate(evidence.members())
    )
