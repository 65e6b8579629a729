"""What a judgement found wrong, one finding at a time, each with what to do about it."""

from dataclasses import dataclass
from typing import Literal

from ronid.judge.judgement import Judgement

SHAKY = 0.5
"""An intent is called unstable below this overlap, and loose below this share surely placed."""

Kind = Literal["twins", "mixture", "strays", "unstable", "empty"]


@dataclass(frozen=True)
class Finding:
    """Something to look at.

    Args:
        kind: What it is.
        intents: Names of the intents it is about.
        weight: How strongly it shows, in 0..1.
        shows: Utterances that show it; pairs of twins and halves of mixtures joined by a bar.
        says: What was found.
        advice: What to do about it.
    """

    kind: Kind
    intents: tuple[str, ...]
    weight: float
    shows: tuple[str, ...]
    says: str
    advice: str


def list_findings(judgement: Judgement) -> tuple[Finding, ...]:
    """Return all findings, by kind and then the strongest first."""
    return (*_twins(judgement), *_mixtures(judgement), *_strays(judgement), *_shaky(judgement))


def _twins(judgement: Judgement) -> list[Finding]:
    found = []
    for twins in judgement.twins:
        names = tuple(judgement.intents[i].name for i in twins.intents)
        found.append(
            Finding(
                kind="twins",
                intents=names,
                weight=twins.chance,
                shows=tuple(" | ".join(pair) for pair in twins.pairs),
                says="look like one intent",
                advice="merge them, or label some of each",
            )
        )
    return found


def _mixtures(judgement: Judgement) -> list[Finding]:
    found = []
    for mixture in judgement.mixtures:
        larger, smaller = mixture.halves
        found.append(
            Finding(
                kind="mixture",
                intents=(judgement.intents[mixture.intent].name,),
                weight=mixture.chance,
                shows=tuple(" | ".join(pair) for pair in zip(larger, smaller, strict=False)),
                says=f"looks like two, {1 - mixture.share:.0%} and {mixture.share:.0%}",
                advice="label some of both, or ask for more intents",
            )
        )
    return found


def _strays(judgement: Judgement) -> list[Finding]:
    return [
        Finding(
            kind="strays",
            intents=tuple(judgement.intents[i].name for i in (stray.intent, stray.other)),
            weight=stray.count / stray.given,
            shows=stray.texts,
            says=f"{stray.count} of {stray.given} labels of the first lie with the second",
            advice="check these labels",
        )
        for stray in judgement.strays
    ]


def _shaky(judgement: Judgement) -> list[Finding]:
    shaky = [intent for intent in judgement.intents if intent.size and intent.stable < SHAKY]
    found = [
        Finding(
            kind="unstable",
            intents=(intent.name,),
            weight=1 - intent.stable,
            shows=(),
            says=f"{intent.stable:.0%} of it comes back when clusters are found again",
            advice="read it before use, label some of it",
        )
        for intent in sorted(shaky, key=lambda intent: intent.stable)
    ]
    empty = tuple(intent.name for intent in judgement.intents if not intent.size)
    if empty:
        found.append(
            Finding("empty", empty, 1.0, (), "no utterance is of it", "ask for fewer intents")
        )
    return found
