"""What an update did, as the run remembers it."""

from dataclasses import dataclass

from ronid.update.drift import Drift


@dataclass(frozen=True)
class NewIntent:
    """An intent that an update made; `known` where the user's labels named it."""

    index: int
    name: str
    size: int
    known: bool


@dataclass(frozen=True)
class Update:
    """What an update did.

    Args:
        version: Number of the version it made.
        when: When.
        source: Where the utterances came from.
        rows: Utterances that came.
        labelled: Of these, how many had a label.
        fitted: Of these, how many went to intents that were there.
        waited: Utterances that earlier updates collected and that have an intent now.
        collected: Utterances that fit nowhere so far, of earlier updates too.
        new: Intents it made.
        drift: Old intents that changed.
        old: Utterances that were there.
        elsewhere: Of these, how many are nearest to another intent than theirs, by the model as it
            is now; they keep theirs. None where their features are not known.
        utterances: All utterances that have an intent now.
        intents: All intents now.
        seconds: How long it took.
        aside: Of the utterances that came, how many fit nowhere so far; None in older records.
    """

    version: int
    when: str
    source: str
    rows: int
    labelled: int
    fitted: int
    waited: int
    collected: int
    new: tuple[NewIntent, ...]
    drift: tuple[Drift, ...]
    old: int
    elsewhere: int | None
    utterances: int
    intents: int
    seconds: float
    aside: int | None = None
