"""Text of real logs that benchmarks lack: entities across intents, small talk, fragments."""

from collections.abc import Sequence

import numpy as np

PLACES = (
    "Berlin", "Lagos", "Lima", "Osaka", "Denver", "Mumbai", "Oslo", "Cairo", "Perth", "Porto",
    "Nairobi", "Seoul", "Dublin", "Quito", "Hanoi", "Boston", "Zurich", "Accra", "Leeds", "Turin",
)  # fmt: skip
NAMES = (
    "Anna Schmidt", "Kofi Mensah", "Maria Lopez", "James Carter", "Yuki Tanaka", "Priya Nair",
    "Omar Haddad", "Chloe Martin", "Ivan Petrov", "Grace Kim", "Tom Becker", "Sara Lindgren",
)  # fmt: skip
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip

OPENERS = ("", "um", "okay", "so", "uh", "well", "alright", "yeah", "oh", "hmm")
SMALL_TALK = (
    "thank you", "thanks so much", "hold on a second", "are you there", "can you hear me",
    "how are you today", "I'm good and you", "one moment please", "let me check", "yes please",
    "no that's fine", "sure", "that's right", "sounds good", "I see", "never mind",
    "what was that", "say that again", "sorry about that", "good morning", "hello", "hi there",
    "have a nice day", "bye", "you too", "no problem", "great", "just a minute", "I don't know",
    "maybe", "exactly", "of course", "nice to meet you", "is anybody there", "wait",
    "give me a second", "that is all", "nothing else", "I appreciate it", "good afternoon",
)  # fmt: skip
FRAGMENTS = (
    "the one on the", "because I was", "and then they", "for the other", "it was like",
    "I mean the", "what I wanted", "so basically", "on my", "from the last", "you know the",
    "but it", "when I", "or maybe the", "with that", "about the thing", "in the", "they said that",
    "I was going to", "if you could", "the first one", "that one", "at least", "not the",
)  # fmt: skip


def with_entities(texts: Sequence[str], share: float, rng: np.random.Generator) -> tuple[str, ...]:
    """Add a random place, date, amount, name or number to a share of the utterances.

    Args:
        texts: n utterances.
        share: Probability that an utterance is changed.
        rng: Decides which utterances change, and what is added.

    Returns:
        n utterances in the same order.
    """
    chosen = rng.random(len(texts)) < share
    return tuple(
        _with_entity(text, rng) if change else text
        for text, change in zip(texts, chosen, strict=True)
    )


def _with_entity(text: str, rng: np.random.Generator) -> str:
    kind = int(rng.integers(5))
    phrase = (
        f"in {rng.choice(PLACES)}",
        f"on {rng.choice(MONTHS)} {rng.integers(1, 29)}",
        f"for ${rng.integers(1, 900)}.{rng.integers(10, 100)}",
        f"for {rng.choice(NAMES)}",
        f"with number {rng.integers(10_000, 99_999)}",
    )[kind]
    if rng.random() < 0.5:
        return f"{phrase}, {text}"
    return f"{text.rstrip(' ?.!')} {phrase}"


def small_talk(count: int, rng: np.random.Generator) -> tuple[str, ...]:
    """Return utterances that state no intent: small talk and fragments of sentences, half each.

    Args:
        count: Number of utterances.
        rng: Decides which.
    """
    found = []
    for _ in range(count):
        source = SMALL_TALK if rng.random() < 0.5 else FRAGMENTS
        found.append(f"{rng.choice(OPENERS)} {rng.choice(source)}".strip())
    return tuple(found)
