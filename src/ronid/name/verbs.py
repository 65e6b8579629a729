"""What people ask to be done: the verbs of requests, found by the words before them.

"How do I cancel ...", "can you cancel ...", "I want to cancel ..." show that "cancel" is a verb
without any grammar; a word seen there often enough is then also one at the start of "cancel my
order". English only: in other languages no verb is found, and names are made of phrases alone.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ronid.name.words import clauses, is_content, stem, summed

_WORDS = {
    "people": "i you we u one",
    "modals": """can could would will should shall may might must do does did cannot can't couldn't
        don't didn't won't""",
    "before to": """want wants wanted need needs needed like love how trying try tried able have
        going wish hoping looking where ready supposed me you ways way possible allowed""",
    "openings": "please pls plz kindly wanna gonna gotta let's lets lemme",
    "skipped": "just also even now then ever actually quickly",
    # "I want to ask ..." asks for something else.
    "empty": "ask not",
    # Stop words in a phrase, but verbs of their own in "make a call" and "find my phone"; before
    # more than one word they say little.
    "light": "make find take give tell use get",
}
_KINDS = {kind: frozenset(words.split()) for kind, words in _WORDS.items()}
_LIGHT = frozenset(map(stem, _KINDS["light"]))

LEAST_SEEN = 3
LEAST_RATE = 0.2
"""Least share of a word's uses as a possible verb in which a request comes before it."""
SHARE = 0.05
"""Least share of an intent's utterances that ask for the verb of its name."""
FEW = 0.02
"""The same share where the name would be a bare noun: "delete" is in many utterances, of which
few say "account"."""
LEAST_TOGETHER = 2
OWN = 0.1
"""Least part of a verb's use, summed over intents, that falls to the intent named by it."""


class Request(NamedTuple):
    """A verb as it is said, its stem, and the stems of the content words after it.

    Where nothing but "I" comes before the verb it may be told, not asked: "I bought ...".
    """

    verb: str
    key: str
    about: frozenset[str]
    told: bool


@dataclass(frozen=True)
class Verbs:
    """The verbs of one intent.

    Args:
        requests: Those of every utterance.
        shares: By stem, the share of the utterances that ask for it.
        totals: By stem, the sum of its shares over all intents.
    """

    requests: Sequence[Sequence[Request]]
    shares: dict[str, float]
    totals: dict[str, float]

    def lead(self, phrase: Collection[str]) -> str | None:
        """Return the verb people put before a phrase when they ask for something.

        Args:
            phrase: The stems of the phrase.

        Returns:
            The verb as it is mostly said, or None where none is frequent enough, where it belongs
            to many intents ("get"), or where the phrase has a verb already.
        """
        if any(self.shares.get(word, 0.0) >= SHARE and self._own(word) for word in phrase):
            return None
        counts: Counter[str] = Counter()
        asked: Counter[str] = Counter()
        forms: dict[str, Counter[str]] = defaultdict(Counter)
        for requests in self.requests:
            fitting = [each for each in requests if not each.about.isdisjoint(phrase)]
            counts.update({each.key for each in fitting})
            asked.update({each.key for each in fitting if not each.told})
            for each in fitting:
                forms[each.key][each.verb] += 1
        frequent = {key for key in counts if counts[key] >= SHARE * len(self.requests)}
        if len(phrase) == 1:
            frequent |= {key for key in counts if self._few_ask(key, asked[key])}
        else:
            frequent -= _LIGHT
        able = [key for key in frequent if self._own(key)]
        if not able:
            return None
        best = max(able, key=lambda key: (counts[key] * self._specificity(key), key))
        return min(forms[best], key=lambda form: (-forms[best][form], form))

    def _few_ask(self, key: str, count: int) -> bool:
        """Say whether a verb of the intent is asked for with the phrase, if only now and then."""
        least = max(LEAST_TOGETHER, FEW * len(self.requests))
        return self.shares[key] >= SHARE and count >= least

    def _own(self, key: str) -> bool:
        return self.shares[key] >= OWN * self.totals[key]

    def _specificity(self, key: str) -> float:
        return math.log(1 + 3 / (self.totals[key] + 0.5))


def find_verbs(groups: Iterable[Sequence[str]]) -> list[Verbs]:
    """Find the verbs of every intent.

    Args:
        groups: The utterances of each intent.
    """
    found = [[_candidates(text) for text in group] for group in groups]
    asked = Counter(each.key for group in found for sure, _ in group for each in sure)
    first = Counter(each.key for group in found for _, open_ in group for each in open_)
    verbs = {
        key
        for key, count in asked.items()
        if count >= LEAST_SEEN and count >= LEAST_RATE * (count + first[key])
    }
    requests = [
        [[each for each in (*sure, *open_) if each.key in verbs] for sure, open_ in group]
        for group in found
    ]
    shares = [_shares(group) for group in requests]
    totals = summed(shares)
    return [Verbs(group, share, totals) for group, share in zip(requests, shares, strict=True)]


def _shares(group: Sequence[Sequence[Request]]) -> dict[str, float]:
    counts = Counter(key for requests in group for key in {each.key for each in requests})
    return {key: count / len(group) for key, count in counts.items()}


def _candidates(text: str) -> tuple[list[Request], list[Request]]:
    """Return the words after the opening of a request, and the first words of clauses."""
    sure: list[Request] = []
    first: list[Request] = []
    for clause in clauses(text):
        words = [word for word in clause if word not in _KINDS["skipped"]]
        for place, word in enumerate(words):
            opened = _opened(words, place)
            if (place and not opened) or not _may_be_verb(word):
                continue
            about = frozenset(stem(other) for other in words[place + 1 :] if is_content(other))
            if about:
                told = place > 0 and words[place - 1] == "i" and not _modal_before(words, place)
                (sure if opened else first).append(Request(word, stem(word), about, told))
    return sure, first


def _modal_before(words: Sequence[str], place: int) -> bool:
    """Say whether "can", "do" and the like come before the person: "can I ..."."""
    return place > 1 and words[place - 2] in _KINDS["modals"]


def _may_be_verb(word: str) -> bool:
    plain = word.isascii() and word.isalpha() and word not in _KINDS["empty"]
    return word in _KINDS["light"] or (plain and is_content(word))


def _opened(words: Sequence[str], place: int) -> bool:
    """Say whether the words before a place open a request, as "can you" and "I want to" do."""
    before = words[place - 1] if place else ""
    ahead = words[place - 2] if place > 1 else ""
    if before == "to":
        return ahead in _KINDS["before to"]
    if before == "me":
        return ahead in {"help", "let"}
    return (
        before in _KINDS["openings"]
        or before == "i"
        or (before in _KINDS["people"] and _modal_before(words, place))
    )
