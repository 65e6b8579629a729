"""Words and phrases typical of an intent: class-based TF-IDF over phrases of one to three words."""

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ronid.name.words import (
    ENGLISH,
    NEGATIONS,
    PARTICLES,
    Language,
    spans,
    stem,
    summed,
    unspaced,
)

Stems = tuple[str, ...]

MAX_WORDS = 3
MAX_CHARACTERS = 10
MIN_UTTERANCES = 2
CUT = 0.8
"""Characters beside which another one stands in so large a part of their uses are cut off it."""
EVEN = 3.0
"""What most intents hold tells of one that has it so many times as often as the median intent."""

# Constants of the weight, chosen by reading the names of 227 true intents of two public corpora.
# SMOOTHING keeps a phrase seen twice in one intent from looking perfectly specific.
SPECIFICITY = 3.0
SMOOTHING = 0.5
LENGTH_BONUS = (1.0, 1.6, 1.9, 2.0, 2.0)


@dataclass(frozen=True)
class Phrase:
    """A phrase of one intent.

    Args:
        stems: Its words without inflection; what makes two phrases the same.
        text: Its most frequent spelling in the intent.
        coverage: Share of the intent's utterances that hold it.
        weight: Class-based TF-IDF.
        position: Mean index of its first word among the utterance's content words.
    """

    stems: Stems
    text: str
    coverage: float
    weight: float
    position: float


@dataclass(frozen=True)
class Found:
    """A phrase where it stands in one utterance."""

    text: str
    position: int


Utterance = dict[Stems, Found]
"""The phrases of one utterance, each at its first place."""


def find_phrases(text: str, language: Language = ENGLISH) -> Utterance:
    """Find the phrases of one utterance.

    Args:
        text: The utterance.
        language: What it is written in, for the words that name nothing.

    Returns:
        Phrases of up to three words; of up to eleven characters in scripts without spaces, where
        the longest only show what the others are cut off.
    """
    found: Utterance = {}
    position = 0
    for span in spans(text, language):
        for start in range(len(span)):
            for words in _phrases_at(span, start, language):
                joined = Found(" ".join(words), position + start)
                found.setdefault(tuple(map(stem, words)), joined)
        position += len(span)
    return found


def rank_phrases(
    groups: Sequence[Sequence[Utterance]], languages: Sequence[Language | None] | None = None
) -> list[list[Phrase]]:
    r"""Rank the phrases of every intent by class-based TF-IDF, strongest first.

    With $p(t|c)$ the share of the utterances of intent c that hold phrase t, the weight is
    $p(t|c) \log(1 + A / (\sum_c p(t|c) + s))$; that of a phrase is averaged with its words' and
    grows a little with its length, because "pause membership" says more than "membership".

    Args:
        groups: The phrases of each utterance, per intent.
        languages: What each intent is written in; English unless told. The stop words of English
            are many; in other languages, phrases that most intents hold alike are left out, too.

    Returns:
        One list per intent, empty for an intent without words.
    """
    coverages = [_coverage(group) for group in groups]
    totals = summed(coverages)
    cut, shared = _cut(totals), _shared(coverages)
    ranked = []
    for place, (group, share) in enumerate(zip(groups, coverages, strict=True)):
        english = languages is None or languages[place] == ENGLISH
        even = () if english else [each for each in shared if share.get(each, 0) < shared[each]]
        without = cut.union(even)
        telling = {key: value for key, value in share.items() if key not in without}
        # Where nothing else is left, what all share says more than nothing.
        ranked.append(_rank(group, telling, totals) or _rank(group, share, totals))
    return ranked


def _cut(totals: dict[Stems, float]) -> set[Stems]:
    """Find the characters that are nearly always part of the same longer ones.

    Args:
        totals: The sum of the shares of every phrase over the intents.
    """
    runs = {key: total for key, total in totals.items() if unspaced(key[0])}
    longer: dict[Stems, float] = defaultdict(float)
    for (characters,), total in runs.items():
        for part in (characters[:-1], characters[1:]):
            longer[part,] = max(longer[part,], total)
    return {
        key
        for key, total in runs.items()
        if longer[key] >= CUT * total or len(key[0]) > MAX_CHARACTERS
    }


def _shared(coverages: Sequence[dict[Stems, float]]) -> dict[Stems, float]:
    """Return the least share at which a phrase that most intents hold tells of one of them."""
    counts = Counter(key for share in coverages for key in share)
    most = [key for key, count in counts.items() if count > max(len(coverages) / 2, 2)]
    return {
        key: EVEN * statistics.median(share.get(key, 0.0) for share in coverages) for key in most
    }


def distinct(ranked: Iterable[Phrase], top: int = 8) -> list[Phrase]:
    """Keep the strongest phrases that each add something to those before.

    Args:
        ranked: Phrases of one intent, strongest first.
        top: How many to keep at most.

    Returns:
        Phrases of which none is part of a stronger one or a mere mixture of their words.
    """
    kept: list[Phrase] = []
    words: set[str] = set()
    for phrase in ranked:
        if len(kept) == top:
            break
        if set(phrase.stems) <= words or any(entangled(phrase.text, other.text) for other in kept):
            continue
        kept.append(phrase)
        words.update(phrase.stems)
    return kept


def entangled(one: str, other: str) -> bool:
    """Say whether phrases of a script without spaces share characters, so that both say them.

    Args:
        one: A phrase.
        other: Another one. Words of other scripts are compared whole, so they never are.
    """
    if not unspaced(one) or not unspaced(other):
        return False
    pairs = {one[at : at + 2] for at in range(len(one) - 1)}
    shifted = one[-1] == other[0] or other[-1] == one[0]
    return shifted or any(other[at : at + 2] in pairs for at in range(len(other) - 1))


def _phrases_at(span: Sequence[str], start: int, language: Language) -> Iterable[Sequence[str]]:
    """Yield the well-formed phrases that begin with one word of a span."""
    first = span[start]
    if unspaced(first):
        for begin in range(len(first)):
            for end in range(begin + 2, min(begin + MAX_CHARACTERS + 1, len(first)) + 1):
                yield (first[begin:end],)
        return
    if first in PARTICLES or first in language.links:
        return
    for length in range(1, min(MAX_WORDS, len(span) - start) + 1):
        words = span[start : start + length]
        alone = length == 1 and (first in language.negations or len(first) == 1)
        ends = words[-1] not in NEGATIONS and words[-1] not in language.links
        if not alone and ends and len(set(words)) == length:
            yield words


def _coverage(group: Sequence[Utterance]) -> dict[Stems, float]:
    counts = Counter(stems for utterance in group for stems in utterance)
    return {stems: count / len(group) for stems, count in counts.items()}


def _rank(
    group: Sequence[Utterance], coverage: dict[Stems, float], totals: dict[Stems, float]
) -> list[Phrase]:
    least = (MIN_UTTERANCES if len(group) > 2 * MIN_UTTERANCES else 1) / max(len(group), 1)
    weights = {
        stems: share * _specificity(stems, totals) * _length_bonus(stems)
        for stems, share in coverage.items()
        if share >= least
    }
    order = sorted(weights, key=lambda stems: (-weights[stems], stems))
    spellings: dict[Stems, Counter[str]] = defaultdict(Counter)
    positions: dict[Stems, list[int]] = defaultdict(list)
    for utterance in group:
        for stems, found in utterance.items():
            spellings[stems][found.text] += 1
            positions[stems].append(found.position)
    return [
        Phrase(
            stems=stems,
            text=min(spellings[stems], key=lambda text: (-spellings[stems][text], len(text), text)),
            coverage=coverage[stems],
            weight=weights[stems],
            position=sum(positions[stems]) / len(positions[stems]),
        )
        for stems in order
    ]


def _specificity(stems: Stems, totals: dict[Stems, float]) -> float:
    def inverse(phrase: Stems) -> float:
        return math.log(1 + SPECIFICITY / (totals.get(phrase, 1.0) + SMOOTHING))

    words = sum(inverse((word,)) for word in stems) / len(stems)
    return math.sqrt(inverse(stems) * words)


def _length_bonus(stems: Stems) -> float:
    # A character n-gram is one "word"; two characters of it stand for one.
    length = len(stems[0]) - 1 if unspaced(stems[0]) else len(stems)
    return LENGTH_BONUS[min(length, len(LENGTH_BONUS)) - 1]
