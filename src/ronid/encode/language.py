"""Does an encoder know the language of utterances? Its vocabulary tells, without any label."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from unicodedata import category

from ronid.errors import RonidWarning

LOOKED_AT = 1_000
"""Utterances that are looked at, at most."""
LONGEST_CHARACTERS = 200
"""Of each of them, at most."""
FEWEST_LETTERS = 20
"""Badly read utterances of fewer letters together say nothing: one may be `zzz`."""
UNKNOWN, ALONE = 0.1, 0.5
"""An utterance is badly read if more of its letters are unknown, or unknown or read one by one. In
English, German or Turkish at most 0.2 are, in what the embedded encoder has no words for 0.8."""
BADLY = 0.1
"""Share of badly read utterances that is worth a warning."""
UNREAD, FEWEST_UNREAD = 0.02, 5
"""Share and number of utterances with nothing known but punctuation that are worth a warning: to
the encoder they are all alike, and an intent is often no larger."""


@dataclass(frozen=True)
class _Read:
    """How one utterance is read: its letters, whether badly, and whether nothing in it is known."""

    letters: int
    badly: bool
    unread: bool


def warn_of_language(texts: Sequence[str], backbone: Any) -> None:
    """Warn where an encoder has no words for many of the utterances, or knows nothing in them.

    Args:
        texts: Utterances; of many a sample is looked at.
        backbone: What reads them; one without a tokenizer of its own knows every language.
    """
    tokenizer = getattr(backbone, "tokenizer", None)
    read = [] if tokenizer is None else _sample_read(texts, tokenizer)
    share = _share_badly(read)
    if share > BADLY:
        warnings.warn(
            f"{share:.0%} of the utterances are in a language that the encoder hardly knows: their "
            "words fall to single letters or are unknown, so intents may be wrong; fit with one "
            "that knows it: --encoder",
            RonidWarning,
            stacklevel=2,
        )
    # Those with letters have been told then.
    unread = sum(each.unread and not (share > BADLY and each.letters) for each in read)
    if unread >= FEWEST_UNREAD and unread > UNREAD * len(read):
        number = round(unread * len(texts) / len(read))
        about = "" if len(read) == len(texts) else "about "
        warnings.warn(
            f"{about}{number:,} of {len(texts):,} utterances hold nothing that the encoder knows, "
            "such as emoji or symbols alone: to it they are all alike, so their intents mean "
            "nothing; leave them out, or fit with one that knows them: --encoder",
            RonidWarning,
            stacklevel=2,
        )


def badly_read(texts: Sequence[str], tokenizer: Any) -> float:
    """Return the share of utterances whose words a tokenizer does not know.

    Letters count, nothing else: digits, punctuation and emoji belong to no language. A letter is
    lost if it is in an unknown token, or in a token of its own though it has neighbours. The latter
    is usual where one character is a syllable or a word, so there only unknown ones are lost.

    Args:
        texts: Utterances.
        tokenizer: Of the encoder. One that does not say which token covers what is not judged.

    Returns:
        0 to 1, of the utterances with letters; 0 where too few letters are badly read to tell.
    """
    return _share_badly(_sample_read(texts, tokenizer))


def _share_badly(read: Sequence[_Read]) -> float:
    """Return the share of utterances with letters that are badly read, see `badly_read`."""
    with_letters = sum(each.letters > 0 for each in read)
    bad = [each.letters for each in read if each.badly]
    return len(bad) / with_letters if sum(bad) >= FEWEST_LETTERS else 0.0


def _sample_read(texts: Sequence[str], tokenizer: Any) -> list[_Read]:
    """Return how utterances, or a sample of many, are read; none where the tokenizer cannot say."""
    step = -(-len(texts) // LOOKED_AT) or 1
    seen = [text[:LONGEST_CHARACTERS] for text in texts[::step]]
    if not tokenizer.is_fast or not seen:
        return []
    found = tokenizer(seen, add_special_tokens=False, return_offsets_mapping=True)
    rows = zip(seen, found["input_ids"], found["offset_mapping"], strict=True)
    return [_read(text, ids, spans, tokenizer.unk_token_id) for text, ids, spans in rows]


def _read(
    text: str, ids: Sequence[int], spans: Sequence[tuple[int, int]], unknown_id: int | None
) -> _Read:
    """Say how an utterance is read, given its tokens and what each of them covers."""
    letters = [character.isalpha() for character in text]
    total, unknown, alone = sum(letters), set(), set()
    for id, (start, stop) in zip(ids, spans, strict=True):
        covered = [i for i in range(start, stop) if letters[i]]
        if id == unknown_id:
            unknown.update(covered)
        elif len(covered) == 1 and _in_a_word(text, covered[0]):
            alone.update(covered)
    return _Read(
        letters=total,
        badly=len(unknown) > UNKNOWN * total or len(unknown | alone) > ALONE * total,
        unread=unknown_id in ids and not _says(text, ids, spans, unknown_id),
    )


def _says(
    text: str, ids: Sequence[int], spans: Sequence[tuple[int, int]], unknown_id: int | None
) -> bool:
    """Whether any known token is more than punctuation, which says nothing by itself."""
    known = (
        text[start:stop] for id, (start, stop) in zip(ids, spans, strict=True) if id != unknown_id
    )
    return any(category(each)[0] not in "PZ" for part in known for each in part)


def _in_a_word(text: str, at: int) -> bool:
    """Whether a letter is part of a longer word, and no word or syllable by itself.

    Chinese and Japanese are written without spaces, and a token of one character is usual there.
    """
    if "\u3040" <= text[at] <= "\u9fff" or "\U00020000" <= text[at] <= "\U0003ffff":
        return False
    beside = text[max(0, at - 1) : at] + text[at + 1 : at + 2]
    return any(category(each)[0] in "LM" for each in beside)  # vowels of some scripts are marks
