"""Limits of a target: which utterances it cannot take, and why."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from ronid.export.catalogue import Row

_STRENGTH = {"person": 0, "given": 1, "model": 2}


@dataclass(frozen=True)
class Line:
    """One utterance as it is written.

    Args:
        row: Where it comes from.
        intent: Id of its intent.
        text: The utterance as the target takes it.
    """

    row: Row
    intent: str
    text: str


@dataclass(frozen=True)
class Limits:
    """What a target takes; None where there is no bound.

    Args:
        longest: UTF-16 code units of one utterance.
        most: Utterances of one intent.
        least: Fewest utterances of one intent.
        intents: Intents in all.
        utterances: Utterances in all.
        letters: UTF-16 code units of all utterances together.
        least_in_all: Fewest utterances in all; fewer are written, and said.
        once: Where an utterance may stand only once: in its intent, or in the whole export.
    """

    longest: int | None = None
    most: int | None = None
    least: int = 1
    intents: int | None = None
    utterances: int | None = None
    letters: int | None = None
    least_in_all: int = 1
    once: Literal["intent", "export"] | None = None


@dataclass(frozen=True)
class LeftOut:
    """An utterance that the target does not take, and why."""

    line: Line
    why: str


@dataclass(frozen=True)
class Trimmed:
    """What is within the limits, in the order it had, and what is not."""

    kept: tuple[Line, ...]
    left_out: tuple[LeftOut, ...]


def trim(lines: Sequence[Line], limits: Limits) -> Trimmed:
    """Leave out what the target does not take.

    Where there is too much, decisions of people stay first, then labels of the user, then
    predictions, surest first; no intent goes before another has lost as much.

    Args:
        lines: What would be written.
        limits: What the target takes.
    """
    kept, left_out = list(lines), []
    for rule in _RULES:
        refused = dict(rule(kept, limits))
        left_out += [LeftOut(kept[i], why) for i, why in sorted(refused.items())]
        kept = [line for i, line in enumerate(kept) if i not in refused]
    return Trimmed(tuple(kept), tuple(left_out))


Refused = Iterator[tuple[int, str]]
"""Positions of lines, and why they cannot be written."""


def _without_text(lines: Sequence[Line], _: Limits) -> Refused:
    return ((i, "without text") for i, line in enumerate(lines) if not line.text.strip())


def _too_long(lines: Sequence[Line], limits: Limits) -> Refused:
    if limits.longest is not None:
        why = f"longer than {limits.longest:,} characters"
        yield from ((i, why) for i, line in enumerate(lines) if units(line.text) > limits.longest)


def _repeated(lines: Sequence[Line], limits: Limits) -> Refused:
    if limits.once is None:
        return
    seen: set[tuple[str, str]] = set()
    for i in _strongest(range(len(lines)), lines):
        line = lines[i]
        key = (line.text, line.intent if limits.once == "intent" else "")
        if key in seen:
            yield i, "repeated"
        seen.add(key)


def _too_many(lines: Sequence[Line], limits: Limits) -> Refused:
    if limits.most is not None:
        why = f"beyond {limits.most:,} per intent"
        for rows in _by_intent(lines).values():
            yield from ((i, why) for i in rows[limits.most :])


def _too_few(lines: Sequence[Line], limits: Limits) -> Refused:
    why = f"in intents of fewer than {limits.least} utterances"
    for rows in _by_intent(lines).values():
        if len(rows) < limits.least:
            yield from ((i, why) for i in rows)


def _too_many_intents(lines: Sequence[Line], limits: Limits) -> Refused:
    if limits.intents is not None:
        why = f"beyond {limits.intents:,} intents"
        largest = sorted(_by_intent(lines).values(), key=len, reverse=True)
        yield from ((i, why) for rows in largest[limits.intents :] for i in rows)


def _too_many_in_all(lines: Sequence[Line], limits: Limits) -> Refused:
    if limits.utterances is not None:
        why = f"beyond {limits.utterances:,} utterances"
        yield from _beyond(lines, lambda _: 1, limits.utterances, why)


def _too_much_text(lines: Sequence[Line], limits: Limits) -> Refused:
    if limits.letters is not None:
        why = f"beyond {limits.letters:,} characters in all"
        yield from _beyond(lines, lambda line: units(line.text), limits.letters, why)


_RULES: tuple[Callable[[Sequence[Line], Limits], Refused], ...] = (
    _without_text,
    _too_long,
    _repeated,
    _too_many,
    _too_few,
    _too_many_intents,
    _too_many_in_all,
    _too_much_text,
)


def _beyond(
    lines: Sequence[Line], cost: Callable[[Line], int], budget: int, why: str
) -> Iterator[tuple[int, str]]:
    """Refuse what costs more than there is: the weakest of every intent in turn."""
    turn = {i: n for rows in _by_intent(lines).values() for n, i in enumerate(rows)}
    for i in sorted(turn, key=lambda i: (turn[i], i)):
        budget -= cost(lines[i])
        if budget < 0:
            yield i, why


def _by_intent(lines: Sequence[Line]) -> dict[str, list[int]]:
    """Return the positions of every intent's lines, strongest first."""
    groups: dict[str, list[int]] = defaultdict(list)
    for i in _strongest(range(len(lines)), lines):
        groups[lines[i].intent].append(i)
    return groups


def _strongest(positions: Iterable[int], lines: Sequence[Line]) -> list[int]:
    def weakness(i: int) -> tuple[int, float, int]:
        row = lines[i].row
        return _STRENGTH[row.by], -(row.confidence or 0.0), i

    return sorted(positions, key=weakness)


def units(text: str) -> int:
    """Return the length of a text as most services count it: in UTF-16 code units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "replace")) // 2


def reasons(left_out: Iterable[LeftOut]) -> dict[str, int]:
    """Return how many utterances were left out for every reason."""
    return dict(Counter(each.why for each in left_out))
