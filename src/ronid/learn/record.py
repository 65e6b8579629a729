"""What training on from decisions did, as plain data that a page, the report or a file can show."""

from dataclasses import dataclass
from typing import Literal

Status = Literal["held", "not held", "overtaken"]
"""Of a decision: it is so now; it is not; or people decided otherwise later."""


@dataclass(frozen=True)
class Verdict:
    """What became of one decision.

    Args:
        seq: Its number in the log.
        who: Whose it was.
        says: It in words.
        status: Whether it is so now.
        why: One line, empty where there is nothing to explain.
    """

    seq: int
    who: str
    says: str
    status: Status
    why: str = ""


@dataclass(frozen=True)
class IntentChange:
    """An intent that grew or shrank.

    Args:
        id: Its id in the review.
        name: Its name.
        before: Utterances when training began, all decisions counted.
        after: Utterances now.
        came: Utterances that it got.
        went: Utterances that it lost.
    """

    id: str
    name: str
    before: int
    after: int
    came: int
    went: int


@dataclass(frozen=True)
class RowChange:
    """An utterance that went elsewhere: its number, its text, and the names of both intents."""

    row: int
    text: str
    source: str
    into: str
    confidence: float


@dataclass(frozen=True)
class NewIntent:
    """An intent that people made and the model has learnt."""

    index: int
    name: str
    size: int
    known: bool


@dataclass(frozen=True)
class Learned:
    """What training on did.

    Args:
        version: Version of the run that it made.
        when: When.
        who: Who asked for it.
        source: What it learnt from, in words.
        seen: Number of the last event that counted in it.
        decisions: How many acts counted.
        labels: Utterances it was trained towards.
        utterances: All utterances.
        intents: All intents now.
        moved: Utterances that went elsewhere.
        held: Decisions that are so now.
        not_held: Decisions that are not.
        new: Intents that people made since the version before.
        gone: Names of the intents that are none any more.
        changes: Intents that grew or shrank, the most changed first.
        examples: Utterances that went elsewhere, the surest first.
        verdicts: Every decision, those that did not hold first.
        seconds: How long it took.
        rows: Utterances that came, as for any version: none.
        collected: Utterances that updates wait with.
        kind: What made the version.
    """

    version: int
    when: str
    who: str
    source: str
    seen: int
    decisions: int
    labels: int
    utterances: int
    intents: int
    moved: int
    held: int
    not_held: int
    new: tuple[NewIntent, ...]
    gone: tuple[str, ...]
    changes: tuple[IntentChange, ...]
    examples: tuple[RowChange, ...]
    verdicts: tuple[Verdict, ...]
    seconds: float = 0.0
    rows: int = 0
    collected: int = 0
    kind: str = "learn"
