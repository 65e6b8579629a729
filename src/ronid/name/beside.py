"""Names where some are settled: those keep theirs, whatever their place among the prototypes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ronid.name.intents import BY_MODEL, name_intents
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
    settled = {int(place[i]): intent.name for i, intent in kept.items()}
    described = name_intents(texts, ordered, [examples[i] for i in order], settled)
    found = [replace(described[place[i]], index=i) for i in range(k)]
    return tuple(_as_kept(intent, kept.get(intent.index)) for intent in found)


def _as_kept(intent: Intent, mine: Intent | None) -> Intent:
    """Return the intent as it was called before, with words that were written for it."""
    if mine is None:
        return intent
    written = mine.named_by == "user" or mine.named_by.startswith(BY_MODEL)
    words = (mine.description if written else "") or intent.description
    return replace(intent, name=mine.name, named_by=mine.named_by, description=words)
