"""What the tool suggests: intents to merge, intents to split, utterances to look at.

This is where the judge of runs is asked, which needs torch; it is imported when it is needed.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ronid.review.base import Base
from ronid.review.nearness import Centres, Doubts, find_doubts
from ronid.review.state import State
from ronid.review.words import count_rows
from ronid.types import UNLABELLED

POSSIBLE = 0.3
"""Chance from which on a merge or a split is suggested; people decide, so it is below one half."""

MOST_ROWS = 8_000
"""Utterances that are compared at most; beyond, a random sample of every intent is."""

_LEAST = 12

Kind = Literal["merge", "split"]


@dataclass(frozen=True)
class Suggestion:
    """Something to decide.

    Args:
        kind: What is suggested.
        intents: Ids of the intents it is about.
        chance: How strongly it shows, in 0..1.
        reason: Why, in one line.
        shows: Pairs of utterances that show it: one of each intent, or of each part.
    """

    kind: Kind
    intents: tuple[str, ...]
    chance: float
    reason: str
    shows: tuple[tuple[str, str], ...]


@dataclass(frozen=True, eq=False)
class Suggestions:
    """All suggestions for one state.

    Args:
        version: The version they were made for.
        found: Merges and splits, the strongest first.
        doubts: Utterances that lie nearer to another intent; None where the run has no vectors.
    """

    version: int
    found: tuple[Suggestion, ...]
    doubts: Doubts | None

    def of(self, id: str) -> tuple[Suggestion, ...]:
        """Return those about one intent."""
        return tuple(each for each in self.found if id in each.intents)


def still_stands(suggestion: Suggestion, state: State) -> bool:
    """Return whether a suggestion, made for an earlier state, can be followed in this one."""
    intents = [state.intents.get(id) for id in suggestion.intents]
    if any(i is None or i.locked or i.status == "rejected" for i in intents):
        return False
    if suggestion.kind == "split":
        return suggestion.intents[0] not in state.whole
    return frozenset(suggestion.intents) not in state.apart


def suggest(base: Base, state: State, version: int, centres: Centres | None) -> Suggestions:
    """Look at the whole review as it stands.

    Args:
        base: The run.
        state: The state.
        version: Its version.
        centres: Keeper of the centres; None where the run keeps no vectors.
    """
    if centres is None or len(base) < _LEAST:
        return Suggestions(version, (), None)
    at = centres.of(state)
    doubts = find_doubts(base, state, at)
    found = [each for each in _compare(base, state, at) if still_stands(each, state)]
    return Suggestions(version, tuple(sorted(found, key=lambda each: -each.chance)), doubts)


def _compare(base: Base, state: State, centres: np.ndarray) -> list[Suggestion]:
    """Ask the judge of runs which intents look like one, and which like two."""
    from ronid.judge.evidence import Evidence
    from ronid.judge.parts import find_likeness

    assert base.unit is not None
    live = [i for i in state.intents.values() if state.counts[i.slot] and i.status != "rejected"]
    number = np.full(len(state.slots) + 1, -1, np.int64)
    number[[i.slot for i in live]] = np.arange(len(live))
    labels = number[state.places]  # (n,), -1 also for what is out of scope: the last number
    rows = _sample(labels, len(live))
    if len(rows) < _LEAST or len(live) < 2:
        return []
    points = np.ascontiguousarray(base.unit[rows])
    evidence = Evidence(
        texts=[base.texts[row] for row in rows],
        embeddings=points,
        labels=labels[rows],
        targets=np.where(base.given[rows], labels[rows], UNLABELLED),
        prototypes=np.ascontiguousarray(centres[[i.slot for i in live]]),
        names=tuple(i.name for i in live),
        known=tuple(i.known for i in live),
        rows=len(base),
    )
    found = find_likeness(evidence)
    merges = [
        Suggestion(
            "merge",
            tuple(live[i].id for i in twins.intents),
            twins.chance,
            f"{_percent(twins.chance)} chance that they are one intent: nearest neighbours cross "
            f"between them {_percent(min(twins.gap.mixing, 1))} as often as inside one",
            twins.pairs,
        )
        for twins in found.twins
        if twins.chance >= POSSIBLE
    ]
    splits = [
        Suggestion(
            "split",
            (live[mixture.intent].id,),
            mixture.chance,
            f"{_percent(mixture.chance)} chance that it is two intents, of about "
            f"{_percent(1 - mixture.share)} and {_percent(mixture.share)} of "
            f"{count_rows(state.size(live[mixture.intent].id))}",
            tuple(zip(*mixture.halves, strict=False)),
        )
        for mixture in found.mixtures
        if mixture.chance >= POSSIBLE
    ]
    return merges + splits


def _sample(labels: np.ndarray, intents: int) -> np.ndarray:
    """Return rows of all intents; of large ones a random part where there are too many rows."""
    rows = np.flatnonzero(labels >= 0)
    if len(rows) <= MOST_ROWS or not intents:
        return rows
    rng = np.random.default_rng(0)
    share = max(MOST_ROWS // intents, 8)
    mixed = rng.permutation(rows)
    order = mixed[np.argsort(labels[mixed], kind="stable")]
    counts = np.bincount(labels[order], minlength=intents)
    starts = np.repeat(counts.cumsum() - counts, counts)
    return np.sort(order[np.arange(len(order)) - starts < share])


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%"
