"""Does an encoder know the language of utterances? Its vocabulary tells, without any label."""

import warnings
from collections.abc import Sequence
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


def warn_of_language(texts: Sequence[str], backbone: Any) -> None:
    """Warn where an encoder has no words for many of the utterances.

    Args:
        texts: Utterances; of many a sample is looked at.
        backbone: What reads them; one without a tokenizer of its own knows every language.
    """
    tokenizer = getattr(backbone, "tokenizer", None)
    share = 0.0 if tokenizer is None else badly_read(texts, tokenizer)
    if share > BADLY:
        warnings.warn(
            f"{share:.0%} of the utterances are in a language that the encoder hardly knows: their "
            "words fall to single letters or are unknown, so intents may be wrong; fit with one "
            "that knows it: --encoder",
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
    if not tokenizer.is_fast:
        return 0.0
    step = -(-len(texts) // LOOKED_AT) or 1
    seen = [text[:LONGEST_CHARACTERS] for text in texts[::step]]
    if not seen:
        return 0.0
    found = tokenizer(seen, add_special_tokens=False, return_offsets_mapping=True)
    bad = with_letters = letters_of_bad = 0
    for text, ids, spans in zip(seen, found["input_ids"], found["offset_mapping"], strict=True):
        letters = [character.isalpha() for character in text]
        total = sum(letters)
        if not total:
            continue
        unknown, alone = set(), set()
        for id, (start, stop) in zip(ids, spans, strict=True):
            covered = [i for i in range(start, stop) if letters[i]]
            if id == tokenizer.unk_token_id:
                unknown.update(covered)
            elif len(covered) == 1 and _in_a_word(text, covered[0]):
                alone.update(covered)
        with_letters += 1
        if len(unknown) > UNKNOWN * total or len(unknown | alone) > ALONE * total:
            bad, letters_of_bad = bad + 1, letters_of_bad + total
    return bad / with_letters if letters_of_bad >= FEWEST_LETTERS else 0.0


def _in_a_word(text: str, at: int) -> bool:
    """Whether a letter is part of a longer word, and no word or syllable by itself.

    Chinese and Japanese are written without spaces, and a token of one character is usual there.
    """
    if "\u3040" <= text[at] <= "\u9fff" or "\U00020000" <= text[at] <= "\U0003ffff":
        return False
    beside = text[max(0, at - 1) : at] + text[at + 1 : at + 2]
    return any(category(each)[0] in "LM" for each in beside)  # vowels of some scripts are marks
