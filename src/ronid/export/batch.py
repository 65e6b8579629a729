"""From a catalogue to what one target takes: the choice of intents, legal names, limits."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ronid.errors import UsageError
from ronid.export.catalogue import Catalogue, CatalogueIntent
from ronid.export.limits import LeftOut, Limits, Line, trim
from ronid.export.names import NameRule, legal_names
from ronid.plural import counted

OUT_OF_SCOPE = "out_of_scope"
"""Id of what stands for "none of the intents" in an export."""

SYSTEM = "Answer with the name of the intent of the user's message, and nothing else."


@dataclass(frozen=True)
class Choice:
    """Which intents leave; accepted ones always do.

    Args:
        open: Also those that nobody has decided on.
        rejected: Also those that were rejected.
        out_of_scope: Also the utterances that have none of the intents.
    """

    open: bool = False
    rejected: bool = False
    out_of_scope: bool = False


@dataclass(frozen=True)
class Options:
    """What some targets want to know.

    Args:
        language: Of the utterances, as BCP 47 writes it, such as `en` or `pt-BR`.
        name: What to call the bot, agent or project.
        system: What to tell a chat model before every utterance.
    """

    language: str = "en"
    name: str = "ronid"
    system: str = SYSTEM


@dataclass(frozen=True)
class Target:
    """What a target takes.

    Args:
        names: Its rule for names of intents; None if it takes all.
        limits: How much it takes.
        fit: Returns an utterance without what has a meaning of its own there.
        nothing: What it calls "none of the intents"; where that is a reserved name, it is meant.
    """

    names: NameRule | None = None
    limits: Limits = Limits()
    fit: Callable[[str], str] = str
    nothing: str = OUT_OF_SCOPE


@dataclass(frozen=True)
class Batch:
    """What is written.

    Args:
        intents: Those with utterances, in the order of the catalogue.
        names: Legal name of every intent of the catalogue, exported or not.
        lines: The utterances.
        left_out: Utterances that the target does not take.
        empty: Intents that were chosen but have no utterances to write.
        notes: What else the user should know, one line each.
    """

    intents: tuple[CatalogueIntent, ...]
    names: dict[str, str]
    lines: tuple[Line, ...]
    left_out: tuple[LeftOut, ...] = ()
    empty: tuple[CatalogueIntent, ...] = ()
    notes: tuple[str, ...] = ()

    def by_intent(self) -> list[tuple[CatalogueIntent, str, list[Line]]]:
        """Return every intent with its legal name and its utterances."""
        groups: dict[str, list[Line]] = {intent.id: [] for intent in self.intents}
        for line in self.lines:
            groups[line.intent].append(line)
        return [(i, self.names[i.id], groups[i.id]) for i in self.intents]

    @property
    def changed(self) -> list[Line]:
        """Utterances that are written otherwise than they were said."""
        return [line for line in self.lines if line.text != line.row.text]

    @property
    def renamed(self) -> dict[str, str]:
        """Name to legal name of the intents that are written under another one."""
        pairs = ((i.name, self.names[i.id]) for i in self.intents)
        return {name: legal for name, legal in pairs if name != legal}

    def table(self) -> dict[str, list[Any]]:
        """Return the utterances as columns, those of the user's file last."""
        by_id = {intent.id: intent for intent in self.intents}
        rows = [line.row for line in self.lines]
        columns: dict[str, list[Any]] = {
            "id": [row.id for row in rows],
            "text": [line.text for line in self.lines],
            "intent": [self.names[line.intent] for line in self.lines],
            "known": [by_id[line.intent].known for line in self.lines],
            "status": [by_id[line.intent].standing for line in self.lines],
            "by": [row.by for row in rows],
            "who": [row.who for row in rows],
            "when": [row.when for row in rows],
            "confidence": [row.confidence for row in rows],
        }
        for name in dict.fromkeys(name for row in rows for name in row.extra):
            free = name if name not in columns else f"{name}_given"
            columns[free] = [row.extra.get(name) for row in rows]
        return columns


def make_batch(catalogue: Catalogue, target: Target, choice: Choice) -> Batch:
    """Choose what leaves, and make it fit.

    Args:
        catalogue: All that could leave.
        target: What the target takes.
        choice: Which intents leave.

    Raises:
        UsageError: Nothing is left to write.
    """
    nothing = CatalogueIntent(OUT_OF_SCOPE, target.nothing)
    names = legal_names((*catalogue.intents, nothing), target.names)
    if target.names is not None and target.nothing.lower() in target.names.reserved:
        names[nothing.id] = target.nothing
    chosen = [intent for intent in catalogue.intents if _chosen(intent, choice)]
    if choice.out_of_scope:
        chosen.append(nothing)
    ids = {intent.id for intent in chosen}
    lines = [
        Line(row, row.intent or OUT_OF_SCOPE, target.fit(row.text))
        for row in catalogue.rows
        if (row.intent or OUT_OF_SCOPE) in ids
    ]
    trimmed = trim(lines, target.limits)
    used = {line.intent for line in trimmed.kept}
    if not used:
        raise UsageError(_why_nothing(catalogue, chosen))
    return Batch(
        intents=tuple(intent for intent in chosen if intent.id in used),
        names=names,
        lines=trimmed.kept,
        left_out=trimmed.left_out,
        empty=tuple(i for i in chosen if i.id not in used and i.id != OUT_OF_SCOPE),
        notes=tuple(_notes(catalogue, choice, target.limits, len(trimmed.kept))),
    )


def _chosen(intent: CatalogueIntent, choice: Choice) -> bool:
    asked = {"accepted": True, "open": choice.open, "rejected": choice.rejected}
    return asked[intent.standing]


def _why_nothing(catalogue: Catalogue, chosen: list[CatalogueIntent]) -> str:
    if chosen:
        return "none of the intents to export has an utterance that can be written"
    return (
        f"no intent is accepted yet ({len(_open(catalogue)):,} are open): accept some in "
        "`ronid review`, or export the open ones too with --all"
    )


def _open(catalogue: Catalogue) -> list[CatalogueIntent]:
    return [intent for intent in catalogue.intents if intent.standing == "open"]


def _notes(catalogue: Catalogue, choice: Choice, limits: Limits, written: int) -> list[str]:
    notes = []
    waiting = len(_open(catalogue))
    if waiting and not choice.open:
        notes.append(
            f"{counted(waiting, 'new intent')} not accepted yet and left out; "
            "--all exports open intents too"
        )
    if written < limits.least_in_all:
        notes.append(f"only {counted(written, 'utterance')}: {limits.least_in_all} are needed")
    return notes
