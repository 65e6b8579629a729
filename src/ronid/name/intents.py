"""From what a method found to intents people can read: name, description, examples, neighbours."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ronid.name.exemplars import borderline, exemplars
from ronid.name.function_words import choose_languages
from ronid.name.keyphrases import distinct, find_phrases, rank_phrases
from ronid.name.nearest import nearest_known
from ronid.name.slug import is_name, slug
from ronid.name.taken import Taken
from ronid.name.titles import choose_titles
from ronid.name.verbs import find_verbs
from ronid.name.words import ENGLISH
from ronid.types import Discovery, IntArray, Intent

DESCRIBED_BY = 3
"""Keyphrases in a description."""
LONGEST_QUOTE = 90
BY_MODEL = "model:"
"""How `named_by` begins where a language model gave the name; that of the model follows."""
MOST_READ = 300
"""Utterances of an intent at most that its words are taken from; more of them say the same."""


def name_intents(
    texts: Sequence[str],
    discovery: Discovery,
    examples: Sequence[tuple[str, ...]] | None = None,
    kept: Mapping[int, str] | None = None,
) -> tuple[Intent, ...]:
    """Describe every intent of a discovery; the new ones get a name of their own.

    Args:
        texts: n utterances, in the order of `discovery.labels`.
        discovery: What a method found.
        examples: Exemplars of every intent where they are known already; the embeddings of the
            discovery are then not looked at.
        kept: Names that new intents keep, by their index; the others are told apart from them.

    Returns:
        k intents in prototype order. Known intents keep their names untouched.

    Raises:
        ValueError: The number of utterances and of labels differ.
    """
    if len(texts) != len(discovery.labels):
        raise ValueError(
            f"{len(texts)} utterances but {len(discovery.labels)} labels; "
            "pass the utterances the method was fitted on"
        )
    members = [np.flatnonzero(discovery.labels == k) for k in range(discovery.n_intents)]
    read = [[texts[int(row)] for row in _spaced(rows, MOST_READ)] for rows in members]
    languages = choose_languages(read)
    groups = [
        [find_phrases(text, language or ENGLISH) for text in own]
        for own, language in zip(read, languages, strict=True)
    ]
    ranked = rank_phrases(groups, languages)
    phrases = [tuple(phrase.text for phrase in distinct(each)) for each in ranked]
    central = examples or [
        exemplars(texts, rows, discovery.embeddings, prototype)
        for rows, prototype in zip(members, discovery.prototypes, strict=True)
    ]
    nearest = nearest_known(discovery.prototypes, discovery.known, discovery.rule)
    verbs = find_verbs(read)
    settled = dict(enumerate(discovery.known)) | dict(kept or {})
    titles = choose_titles(groups, ranked, settled, verbs)
    names = _complete(titles, central, settled)
    return tuple(
        Intent(
            index=k,
            name=names[k].text,
            known=k < len(discovery.known),
            size=len(rows),
            share=len(rows) / max(len(texts), 1),
            prior=float(discovery.prior[k]),
            confidence=float(discovery.confidence[rows].mean()) if len(rows) else 0.0,
            keyphrases=phrases[k],
            exemplars=central[k],
            description=_describe(phrases[k], central[k]),
            borderline=borderline(texts, rows, discovery.confidence, central[k]),
            nearest=nearest[k],
            named_by=names[k].named_by,
        )
        for k, rows in enumerate(members)
    )


def _spaced(rows: IntArray, most: int) -> IntArray:
    """Return all rows, or so many of them from all parts of the corpus."""
    return rows if len(rows) <= most else rows[np.arange(most) * len(rows) // most]


class _Name(NamedTuple):
    text: str
    named_by: str


def _complete(
    titles: dict[int, str], examples: Sequence[tuple[str, ...]], settled: Mapping[int, str]
) -> list[_Name]:
    """Fall back to the most central utterance, then to the intent's number."""
    names = []
    taken = Taken([*settled.values(), *titles.values()])
    for k in range(len(examples)):
        example = slug(examples[k][0]) if examples[k] else ""
        if k in settled:
            names.append(_Name(settled[k], "user"))
        elif is_name(titles.get(k, "")):
            names.append(_Name(titles[k], "keyphrases"))
        elif is_name(example):
            names.append(_Name(taken.take(example), "utterance"))
        else:
            names.append(_Name(taken.take(f"new_intent_{k}"), "number"))
    return names


def _describe(phrases: Sequence[str], central: Sequence[str]) -> str:
    """Say in one line what an intent is about, in no language but that of its utterances."""
    about = ", ".join(phrases[:DESCRIBED_BY])
    if not central:
        return about
    quote = central[0]
    if len(quote) > LONGEST_QUOTE:
        quote = quote[:LONGEST_QUOTE].rpartition(" ")[0] or quote[:LONGEST_QUOTE]
        quote += "\u2026"
    return f"{about}: \u201c{quote}\u201d" if about else f"\u201c{quote}\u201d"
