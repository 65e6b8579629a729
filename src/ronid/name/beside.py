"""Names where some are settled: those keep theirs, whatever their place among the prototypes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ronid.name.intents import BY_MODEL, name_intents
from ronid.name.slug import unique
from ronid.types import Discovery, Intent


def name_beside(
    texts: Sequence[str],
    discovery: Discovery,
    known: Mapping[int, str],
    kept: Mapping[int, Intent],
    examples: Sequence[tuple[str, ...]],
) -> tuple[Intent, ...]:
    """Describe intents of which the known ones need not come first.

    Args:
        texts: n utterances.
        discovery: What they were assigned to; its `known` is not looked at.
        known: Names of the known intents, by their index.
        kept: Other intents that keep their names, by their index. Descriptions that a person or a
            language model wrote are kept with them; others are made anew.
        examples: Exemplars of every intent.
    """
    k = discovery.n_intents
    order = np.array([*sorted(known), *(i for i in range(k) if i not in known)], np.int64)
    place = np.argsort(order)
    ordered = replace(
        discovery,
        labels=place[discovery.labels],
        prototypes=discovery.prototypes[order],
        prior=discovery.prior[order],
        known=tuple(known[i] for i in sorted(known)),
    )
    described = name_intents(texts, ordered, [examples[i] for i in order])
    found = [replace(described[place[i]], index=i) for i in range(k)]
    taken = {name.lower() for name in known.values()} | {i.name.lower() for i in kept.values()}
    return tuple(_named(intent, known, kept, taken) for intent in found)


def _named(
    intent: Intent, known: Mapping[int, str], kept: Mapping[int, Intent], taken: set[str]
) -> Intent:
    """Return the intent with the name it keeps, or one that nobody has."""
    if intent.index in kept:
        mine = kept[intent.index]
        written = mine.named_by == "user" or mine.named_by.startswith(BY_MODEL)
        words = (mine.description if written else "") or intent.description
        return replace(intent, name=mine.name, named_by=mine.named_by, description=words)
    if intent.index in known:
        return intent
    name = unique(intent.name, taken)
    taken.add(name.lower())
    return replace(intent, name=name)
