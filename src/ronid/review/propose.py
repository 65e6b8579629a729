"""Proposals that are shown before they happen: the parts of a split, and names."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ronid.errors import UsageError
from ronid.review.base import Base
from ronid.review.problems import NotApplicable
from ronid.review.state import State

MOST_PARTS = 8
_NAMED_BY = 400
"""Utterances of a part, or of everything else, that a name is made from."""


@dataclass(frozen=True, eq=False)
class ProposedPart:
    """A part of an intent.

    Args:
        name: What it could be called; the first part keeps the name of the intent.
        rows: (m,) its utterances, the most central first.
    """

    name: str
    rows: NDArray[np.int64]


@dataclass(frozen=True)
class ProposedSplit:
    """How an intent could be split.

    Args:
        intent: Its id.
        parts: Its parts, the largest, which stays, first.
        clear: How clearly the parts lie apart: their mean silhouette, in -1..1.
    """

    intent: str
    parts: tuple[ProposedPart, ...]
    clear: float


def propose_split(base: Base, state: State, id: str, parts: int | None = None) -> ProposedSplit:
    """Find parts of an intent that lie apart.

    Args:
        base: The run.
        state: The state.
        id: The intent.
        parts: How many; None for what lies apart most clearly.

    Raises:
        NotApplicable: It has too few utterances, or the run keeps no vectors.
        UsageError: The number is impossible.
    """
    from ronid.judge.parts import find_parts  # brings torch

    if id not in state.intents:
        raise NotApplicable("this intent does not exist, or does not any more")
    rows, name = state.rows(id), state.intents[id].name
    if base.unit is None:
        raise NotApplicable("this run keeps no vectors, so parts cannot be found; pick utterances")
    if parts is not None and not 2 <= parts <= MOST_PARTS:
        raise UsageError(f"{parts} parts are not possible; give 2 to {MOST_PARTS}")
    if len(rows) < max(4, parts or 0):
        raise NotApplicable(f"'{name}' has {len(rows)} utterances, too few to find parts in")
    points = np.ascontiguousarray(base.unit[rows])
    apart = find_parts(points, parts)
    found = [rows[apart.labels == part] for part in np.unique(apart.labels)]
    found.sort(key=len, reverse=True)
    ordered = [_central(base, part) for part in found]
    names = _names(base, state, ordered)
    named = [name, *names[1:]]
    return ProposedSplit(
        id, tuple(ProposedPart(n, r) for n, r in zip(named, ordered, strict=True)), apart.clear
    )


def _central(base: Base, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return rows, those nearest to their mean first."""
    assert base.unit is not None
    points = base.unit[rows]
    return rows[np.argsort(-(points @ points.mean(axis=0)), kind="stable")]


def _names(base: Base, state: State, parts: list[NDArray[np.int64]]) -> list[str]:
    """Return a name for every part that no intent has, from what tells them apart."""
    from ronid.name import name_intents
    from ronid.name.taken import Taken
    from ronid.types import Discovery

    shown = [part[:_NAMED_BY] for part in parts]
    rows = np.concatenate(shown)
    labels = np.repeat(np.arange(len(shown)), [len(part) for part in shown])
    assert base.unit is not None
    vectors = base.unit[rows]
    prototypes = np.stack([vectors[labels == part].mean(axis=0) for part in range(len(shown))])
    discovery = Discovery(
        labels=labels,
        confidence=np.ones(len(rows), np.float32),
        embeddings=vectors,
        prototypes=prototypes,
        prior=np.full(len(shown), 1 / len(shown)),
        temperature=1.0,
        known=(),
    )
    taken = Taken(intent.name for intent in state.intents.values())
    named = name_intents([base.texts[row] for row in rows], discovery)
    return [taken.take(intent.name) for intent in named]


def propose_name(base: Base, state: State, rows: NDArray[np.int64]) -> str:
    """Return a name for some utterances that tells them from the rest, and that no intent has.

    Args:
        base: The run.
        state: The state.
        rows: The utterances.

    Raises:
        NotApplicable: There are none, or the run keeps no vectors.
    """
    if base.unit is None or not len(rows):
        raise NotApplicable("a name can only be made of utterances that the run keeps vectors of")
    rest = np.setdiff1d(np.arange(len(base)), rows)
    beside = np.random.default_rng(0).permutation(rest)[: 5 * _NAMED_BY]
    groups = [_central(base, rows)]
    if len(beside):
        groups.append(beside)
    return _names(base, state, groups)[0]
