"""The state of a review: intents with stable ids, and where every utterance belongs."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ronid.review.base import Base, base_id

OUT = -1
"""Place of an utterance that belongs to no intent."""

STALE = 0.1
"""Share of its utterances that may come or go before the name of an intent is called stale."""

Status = Literal["open", "accepted", "rejected"]


@dataclass(frozen=True)
class ReviewIntent:
    """One intent under review.

    Args:
        id: Never changes and is never used again.
        slot: What `State.places` calls it.
        name: Unique among the intents that there are.
        description: What it is about.
        known: Whether the user had labelled it.
        status: What people decided.
        locked: Whether it may change.
        named_by: `user`, `person:` and who renamed it, or what made the name.
        changed: Utterances that came or went since it was named.
        origin: Ids of the intents it was made of, where a person made it.
    """

    id: str
    slot: int
    name: str
    description: str
    known: bool
    status: Status = "open"
    locked: bool = False
    named_by: str = "keyphrases"
    changed: int = 0
    origin: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class State:
    """Everything that was decided; never changed in place.

    Args:
        intents: Id to intent, those that there are, in order of their slots.
        slots: Id of every slot, those of intents that are gone too.
        places: (n,) slot of every utterance, or `OUT`.
        confirmed: (n,) whether a person said that the utterance is where it belongs.
        gone: Id of every merged intent to the id it went into.
        apart: Pairs of ids that a person keeps apart.
        whole: Ids that a person keeps whole.
    """

    intents: Mapping[str, ReviewIntent]
    slots: tuple[str, ...]
    places: NDArray[np.int32]
    confirmed: NDArray[np.bool_]
    gone: Mapping[str, str]
    apart: frozenset[frozenset[str]] = frozenset()
    whole: frozenset[str] = frozenset()

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """(slots,) utterances of every slot."""
        return np.bincount(self.places[self.places >= 0], minlength=len(self.slots))

    @cached_property
    def names(self) -> Mapping[str, str]:
        """Folded name to id."""
        return {name_key(intent.name): intent.id for intent in self.intents.values()}

    def size(self, id: str) -> int:
        """Return how many utterances an intent has."""
        return int(self.counts[self.intents[id].slot])

    def rows(self, id: str) -> NDArray[np.int64]:
        """Return the utterances of an intent."""
        return np.flatnonzero(self.places == self.intents[id].slot)

    def out_rows(self) -> NDArray[np.int64]:
        """Return the utterances that belong to no intent."""
        return np.flatnonzero(self.places == OUT)

    def of_row(self, row: int) -> str | None:
        """Return the intent of an utterance, None if it belongs to none."""
        slot = int(self.places[row])
        return None if slot == OUT else self.slots[slot]

    def stale(self, id: str) -> bool:
        """Return whether the name was given to rather different utterances."""
        intent = self.intents[id]
        return not intent.known and intent.changed > STALE * max(self.size(id), 1)

    def with_intent(self, *changed: ReviewIntent) -> "State":
        """Return the state with these intents as they are now."""
        return replace(self, intents={**self.intents, **{each.id: each for each in changed}})


def name_key(name: str) -> str:
    """Return what makes two names the same to a reader."""
    return " ".join(name.casefold().split())


def start(base: Base) -> State:
    """Return the state before anything was decided: what was discovered."""
    intents = {
        base_id(i.index): ReviewIntent(
            id=base_id(i.index),
            slot=i.index,
            name=i.name,
            description=i.description,
            known=i.known,
            named_by=i.named_by,
        )
        for i in base.intents
    }
    return State(
        intents=intents,
        slots=tuple(intents),
        places=base.labels.astype(np.int32),
        confirmed=np.zeros(len(base), np.bool_),
        gone={},
    )


def same(one: State, other: State) -> bool:
    """Return whether two states are equal in everything that counts."""
    return (
        dict(one.intents) == dict(other.intents)
        and list(one.intents) == list(other.intents)
        and one.slots == other.slots
        and np.array_equal(one.places, other.places)
        and np.array_equal(one.confirmed, other.confirmed)
        and dict(one.gone) == dict(other.gone)
        and one.apart == other.apart
        and one.whole == other.whole
    )
