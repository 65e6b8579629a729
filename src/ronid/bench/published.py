"""Figures of other people's papers, as printed, to stand beside ours."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from ronid.methods import METHODS

DATASETS = {"clinc": "CLINC", "banking": "BANKING", "stackoverflow": "StackOverflow"}


@dataclass(frozen=True)
class Published:
    """One printed row.

    Args:
        method: Name in the literature.
        variant: Name of an ablation, "" for the whole method.
        group: `unsupervised` or `semi-supervised`.
        encoder: Encoder, where the source says it.
        known_ratio: Share of intents that were known.
        labelled_ratio: Share of their utterances that were labelled.
        source: Where it is printed.
        note: What makes it hard to compare.
        scores: Percent by dataset and measure.
    """

    method: str
    variant: str
    group: str
    encoder: str
    known_ratio: float
    labelled_ratio: float
    source: str
    note: str
    scores: Mapping[str, Mapping[str, float]]


@cache
def published() -> tuple[Published, ...]:
    """Return every printed row, in the order of `published.toml`."""
    text = files("ronid.bench").joinpath("published.toml").read_text(encoding="utf-8")
    return tuple(_entry(values) for values in tomllib.loads(text)["published"])


def _entry(values: Mapping[str, object]) -> Published:
    plain = {k: v for k, v in values.items() if k not in DATASETS}
    optional = {"variant": "", "encoder": "", "note": ""}
    scores = {k: v for k, v in values.items() if k in DATASETS}
    return Published(**{**optional, **plain}, scores=scores)  # type: ignore[arg-type]


def matching(method: str, variant: str, known: float, labelled: float) -> Iterable[Published]:
    """Return the printed rows of one of our methods under the same protocol."""
    title = METHODS[method].title if method in METHODS else method
    return [
        entry
        for entry in published()
        if (entry.method, entry.variant) == (title, variant)
        and (entry.known_ratio, entry.labelled_ratio) == (known, labelled)
    ]
