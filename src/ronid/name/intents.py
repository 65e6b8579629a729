"""From what a method found to intents people can read: name, keyphrases, exemplars, size."""

from collections.abc import Sequence

import numpy as np

from ronid.name.exemplars import exemplars
from ronid.name.keyphrases import distinct, find_phrases, rank_phrases
from ronid.name.slug import slug, unique
from ronid.name.titles import choose_titles
from ronid.types import Discovery, Intent


def name_intents(texts: Sequence[str], discovery: Discovery) -> tuple[Intent, ...]:
    """Describe every intent of a discovery; the new ones get a name of their own.

    Args:
        texts: n utterances, in the order of `discovery.labels`.
        discovery: What a method found.

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
    groups = [[find_phrases(texts[int(row)]) for row in rows] for rows in members]
    ranked = rank_phrases(groups)
    titles = choose_titles(groups, ranked, discovery.known)
    examples = [
        exemplars(texts, rows, discovery.embeddings, prototype)
        for rows, prototype in zip(members, discovery.prototypes, strict=True)
    ]
    names = _complete(titles, examples, discovery.known)
    return tuple(
        Intent(
            index=k,
            name=names[k],
            known=k < len(discovery.known),
            size=len(rows),
            share=len(rows) / max(len(texts), 1),
            prior=float(discovery.prior[k]),
            confidence=float(discovery.confidence[rows].mean()) if len(rows) else 0.0,
            keyphrases=tuple(phrase.text for phrase in distinct(ranked[k])),
            exemplars=examples[k],
        )
        for k, rows in enumerate(members)
    )


def _complete(
    titles: dict[int, str], examples: Sequence[tuple[str, ...]], known: Sequence[str]
) -> list[str]:
    """Fall back to the most central utterance, then to the intent's number."""
    names = list(known)
    taken = {name.lower() for name in [*known, *titles.values()]}
    for k in range(len(known), len(examples)):
        if k in titles:
            names.append(titles[k])
            continue
        example = slug(examples[k][0]) if examples[k] else ""
        names.append(unique(example or f"new_intent_{k}", taken))
        taken.add(names[-1].lower())
    return names
