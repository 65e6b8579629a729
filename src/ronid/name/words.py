"""The words of an utterance: cut at punctuation and stop words, in any script.

An utterance becomes spans of words that may form a phrase together. Stop words end a span;
determiners are skipped, so that "pause my membership" holds the phrase "pause membership".
Scripts written without spaces yield their character n-grams instead of words.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)

# Vowel signs and accents of non-Latin scripts are marks, which \w leaves out; the ranges put
# them back, without the Indic full stop (U+0964, U+0965).
_MARKS = (
    "\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0963\u0966-\u0dff"
    "\u0e31-\u0eff\u1000-\u109f\u1780-\u17d3"
)
_WORD = re.compile(rf"(?:[^\W_]|[{_MARKS}])+(?:'[^\W_]+)?")
_BREAK = re.compile(r"[^\w\s'\-/&$#@" + _MARKS + r"]+|\n")
_NO_SPACES = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff"
    "\uf900-\ufaff\U00020000-\U0003ffff]+"
)

_DETERMINERS = "a an the my your our their his her its this these those some any own"
_SKIPPED = frozenset(_DETERMINERS.split())

PARTICLES = frozenset({"up", "ups", "off", "out", "down", "back"})
"""Words that end a phrase ("top up") but never stand alone."""

NEGATIONS = frozenset({"not", "no"})
"""Words that begin a phrase ("not working") but never stand alone."""

_ENGLISH = """
    i me myself we us ourselves you u yourself he him she it they them themselves who whom whose
    which what when where why how that there here am is are was were be been being do does did
    doing done have has had having can could will would shall should may might must ought need needs
    needed want wants wanted wanna like liked love let lets get gets got getting gotten go goes
    going gonna went gone make makes made making take takes took taken taking give gives gave given
    giving put puts say says said saying tell tells told know knows knew see sees saw seen seem
    seems try tries tried trying keep keeps kept happen happens happened happening come comes came
    coming use uses used using think thought thing things something anything everything nothing
    someone anyone everyone somebody anybody way ways lot lots bit kind sort stuff
    and or but if then than so because as of at by in on for with about against between into through
    during before after above below to from over under again further once until while within
    without via per too very really actually just also only even still already yet ever never
    always maybe perhaps quite almost rather now right well soon later today please pls plz
    thanks thank hi hello hey ok okay yes yeah sure sorry help helps possible able available
    im ive id dont doesnt didnt cant wont isnt arent wasnt whats hows theres
    all each every both few more most other others another such same much many else
    since though although however whether either neither nor instead apparently
    long immediately quickly one two first good great best explain understand wondering wonder
    exactly different new looking look looks hear find found figure mean means supposed
"""
STOP_WORDS = frozenset(_ENGLISH.split())
"""English words that name no intent; they end a phrase."""


@dataclass(frozen=True)
class Language:
    """The words of a language that name no intent.

    Args:
        determiners: Skipped, so that the words around them form a phrase.
        links: Inside a phrase ("mot de passe"), never at its ends.
        stops: They end a phrase.
        negations: No phrase of their own.
    """

    determiners: frozenset[str]
    links: frozenset[str]
    stops: frozenset[str]
    negations: frozenset[str]

    def is_function_word(self, word: str) -> bool:
        """Say whether a word shows that a text is in this language."""
        groups = (self.stops, self.determiners, self.links, self.negations)
        return any(word in group for group in groups)


ENGLISH = Language(_SKIPPED, frozenset(), STOP_WORDS, NEGATIONS)

_SUFFIX = re.compile(r"(?<=...)(?:ing|ed|es|e)$|(?<=..)s$")
_DOUBLED = re.compile(r"([bdfglmnprt])\1$")
_ELISION_LETTERS = 2


@lru_cache(maxsize=100_000)
def stem(word: str) -> str:
    """Return the key that "cancel", "cancels", "cancelled" and "cancelling" share; never shown."""
    if not word.isascii():
        return word
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    return _DOUBLED.sub(r"\1", _SUFFIX.sub("", word))


def clauses(text: str) -> list[list[str]]:
    """Cut an utterance at punctuation into clauses of lower-case words, stop words included."""
    plain = unicodedata.normalize("NFKC", text).lower().replace("\u2019", "'")
    return [_WORD.findall(clause) for clause in _BREAK.split(plain)]


def is_content(word: str) -> bool:
    """Say whether a word is neither a stop word nor a determiner nor a number."""
    return word not in STOP_WORDS and word not in _SKIPPED and not word.isdigit()


def tokens(text: str) -> list[str]:
    """Return all words of an utterance in lower case, short forms as `spans` reads them."""
    return [_expand(word) for clause in clauses(text) for word in clause]


def spans(text: str, language: Language = ENGLISH) -> list[list[str]]:
    """Cut an utterance into spans of lower-case content words.

    Args:
        text: One utterance.
        language: Whose stop words and determiners to look for.

    Returns:
        The spans, in order; the words within one may form a phrase.
    """
    found: list[list[str]] = []
    for clause in clauses(text):
        span: list[str] = []
        for word in map(_expand, clause):
            if word in language.stops or word.isdigit():
                found.append(span)
                span = []
            elif word not in language.determiners:
                span.append(word)
        found.append(span)
    return [span for span in found if span]


def unspaced(word: str) -> bool:
    """Say whether a word comes from a script that does not put spaces between words."""
    return not word.isascii() and _NO_SPACES.search(word) is not None


def summed(shares: Iterable[Mapping[Key, float]]) -> defaultdict[Key, float]:
    """Return the sum of the shares that each key has in the intents, 0 for one in none."""
    totals: defaultdict[Key, float] = defaultdict(float)
    for each in shares:
        for key, share in each.items():
            totals[key] += share
    return totals


def _expand(word: str) -> str:
    """Read "doesn't" as "not", "it's" as "it" and the French "l'argent" as "argent"."""
    if word.endswith("n't"):
        return "not"
    before, _, after = word.partition("'")
    return after if len(before) <= _ELISION_LETTERS < len(after) else before
