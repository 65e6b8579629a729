"""One short name per new intent, out of the phrases its utterances share.

The strongest phrase leads. A single word takes the phrase that stands beside it in many of the
same utterances ("twice" becomes "charged twice"). Where people ask for something to be done with
it, the verb comes first ("factory settings" becomes "reset factory settings"). A name that two
intents would share, be it in another form ("bike", "bikes"), takes the phrase that tells the two
apart.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ronid.name.keyphrases import Phrase, Utterance, entangled
from ronid.name.slug import slug
from ronid.name.taken import Taken, name_stems
from ronid.name.verbs import Verbs
from ronid.name.words import stem, unspaced

CANDIDATES = 60
MAX_NAME_WORDS = 4
COMPANY = 0.4
"""Least share of the leading word's utterances that a second phrase must hold."""
SAID = 0.15
"""Least share of their utterances in which two words stand side by side to set their order."""


def choose_titles(
    groups: Sequence[Sequence[Utterance]],
    ranked: Sequence[Sequence[Phrase]],
    settled: Mapping[int, str],
    verbs: Sequence[Verbs],
) -> dict[int, str]:
    """Name the intents that have any phrase and no name yet.

    Args:
        groups: The phrases of each utterance, per intent.
        ranked: The phrases of each intent, strongest first.
        settled: Names that stay, by position of the intent.
        verbs: What is asked for, per intent.

    Returns:
        Name by position of the intent; intents without phrases are left out.
    """
    taken = Taken(settled.values())
    new = [index for index in range(len(ranked)) if index not in settled and ranked[index]]
    heads = {index: _with_verb(_head(groups[index], ranked[index]), verbs[index]) for index in new}
    sharing: dict[frozenset[str], list[int]] = defaultdict(list)
    for index in new:
        sharing[name_stems(heads[index].text)].append(index)

    names: dict[int, str] = {}
    # Names nobody contests come first, so that a contested one never takes them.
    for stems, rivals in sorted(sharing.items(), key=lambda item: (len(item[1]), item[1])):
        near = [groups[other] for other in _holding(stems, settled)]
        for index in rivals:
            title = slug(heads[index].text)
            if len(rivals) > 1 or near or taken.has(title):
                others = [*near, *(groups[other] for other in rivals if other != index)]
                title = _tell_apart(heads[index], groups[index], ranked[index], others, taken)
            names[index] = taken.take(title)
    return names


def _head(group: Sequence[Utterance], ranked: Sequence[Phrase]) -> Phrase:
    """Lead with the strongest phrase, joined to its best companion when it is a single word."""
    head = ranked[0]
    # Beside characters of a script without spaces stand the same ones, shifted.
    if len(head.text.split()) > 1 or unspaced(head.text):
        return head
    beside = _shares_beside(head, group, ranked)
    least = COMPANY * head.coverage
    companions = [phrase for phrase in ranked[1:CANDIDATES] if beside.get(phrase, 0.0) >= least]
    if not companions:
        return head
    best = max(companions, key=lambda phrase: beside[phrase] * _rate(phrase))
    return _as_said(_join(head, best), ranked)


def _with_verb(head: Phrase, verbs: Verbs) -> Phrase:
    """Put the verb of the requests before what they are about."""
    if len(head.text.split()) >= MAX_NAME_WORDS:
        return head
    verb = verbs.lead(head.stems)
    if verb is None:
        return head
    return replace(head, text=f"{verb} {head.text}", stems=(stem(verb), *head.stems), position=0.0)


def _holding(stems: frozenset[str], settled: Mapping[int, str]) -> list[int]:
    """Find the intents whose settled names hold all words of a name: "top up" says too little."""
    return [index for index, name in settled.items() if name_stems(name) >= stems]


def _tell_apart(
    head: Phrase,
    group: Sequence[Utterance],
    ranked: Sequence[Phrase],
    others: Sequence[Sequence[Utterance]],
    taken: Taken,
) -> str:
    """Extend a contested name by the phrase most peculiar to this intent among its rivals."""

    def peculiarity(phrase: Phrase) -> float:
        elsewhere = (_coverage(phrase, other) for other in others)
        return (phrase.coverage - max(elsewhere, default=0.0)) * _rate(phrase)

    fitting = [
        phrase
        for phrase in ranked[:CANDIDATES]
        if not _holds(head, phrase)
        and (_holds(phrase, head) or not entangled(head.text, phrase.text))
        and len(set(phrase.stems) | set(head.stems)) <= MAX_NAME_WORDS
    ]
    for phrase in sorted(fitting, key=peculiarity, reverse=True):
        title = slug(_join(head, phrase).text)
        if not taken.has(title):
            return title
    return slug(head.text)


def _holds(whole: Phrase, part: Phrase) -> bool:
    """Say whether a phrase has all words of another, in scripts without spaces its characters."""
    if set(part.stems) <= set(whole.stems):
        return True
    return entangled(whole.text, part.text) and part.text in whole.text


def _shares_beside(
    head: Phrase, group: Sequence[Utterance], ranked: Sequence[Phrase]
) -> dict[Phrase, float]:
    """Share of an intent's utterances that hold a phrase together with the leading one."""
    together = [utterance for utterance in group if head.stems in utterance]
    return {
        phrase: sum(phrase.stems in utterance for utterance in together) / len(group)
        for phrase in ranked[1:CANDIDATES]
    }


def _coverage(phrase: Phrase, group: Sequence[Utterance]) -> float:
    """Share of utterances that hold a phrase; 0 of a known intent that has none."""
    return sum(phrase.stems in utterance for utterance in group) / max(len(group), 1)


def _rate(phrase: Phrase) -> float:
    """Weight of a phrase per utterance that holds it: how specific it is, not how frequent."""
    return phrase.weight / phrase.coverage


def _as_said(joined: Phrase, ranked: Sequence[Phrase]) -> Phrase:
    """Prefer the same words as people say them: "tire pressure", not "tires pressure"."""
    said = (
        phrase
        for phrase in ranked[:CANDIDATES]
        if sorted(phrase.stems) == sorted(joined.stems)
        and phrase.coverage >= SAID * joined.coverage
    )
    return max(said, key=lambda phrase: phrase.coverage, default=joined)


def _join(head: Phrase, phrase: Phrase) -> Phrase:
    """Put two phrases in the order they are said in; a phrase that holds the other replaces it."""
    if _holds(phrase, head):
        return phrase
    first, second = sorted((head, phrase), key=lambda part: (part.position, part.text))
    words = [word for word in second.text.split() if word not in first.text.split()]
    return Phrase(
        stems=first.stems + second.stems,
        text=" ".join([first.text, *words]),
        coverage=min(first.coverage, second.coverage),
        weight=head.weight,
        position=first.position,
    )
