"""What can leave a run: intents, their utterances, and where every label came from.

`catalogue_of_run` reads a run as it was found, `reviewed.catalogue_of` also what people decided;
`build_catalogue` takes plain lists and mappings.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from ronid.corpus_file import NUMBERED
from ronid.data.corpus import shortened
from ronid.errors import DataError
from ronid.run import COLLECTED, OUT_OF_SCOPE, RunFolder, open_finished
from ronid.versions import current_number

Status = Literal["open", "accepted", "rejected"]
Origin = Literal["given", "person", "model"]
"""Who said that an utterance has its intent: the file of the user, a reviewer, or the model."""

_NOTHING: Mapping[str, Any] = MappingProxyType({})
_ROLES = ("text", "intent", "id", "by", "who", "when", "confidence")
_OWN = frozenset(
    {"id", "text", "given", "intent", "index", "confidence", "x", "y", "truth", "start"}
    | {OUT_OF_SCOPE, NUMBERED}
)
"""Columns that ronid itself makes of a run; what else is there came with the user's file."""


@dataclass(frozen=True)
class CatalogueIntent:
    """One intent.

    Args:
        id: Stays the same whatever the intent is called.
        name: What people call it.
        known: Whether the user had labelled it.
        status: What reviewers decided.
        description: What it is about, in one line.
    """

    id: str
    name: str
    known: bool = False
    status: Status = "open"
    description: str = ""

    @property
    def accepted(self) -> bool:
        """Whether somebody stands behind it: a reviewer, or the user who labelled it."""
        return self.standing == "accepted"

    @property
    def standing(self) -> Status:
        """The status, where to have labelled an intent is to have accepted it."""
        return "accepted" if self.known and self.status == "open" else self.status


@dataclass(frozen=True)
class Row:
    """One utterance and its label.

    Args:
        text: The utterance.
        intent: Id of its intent; None if it has none of them.
        id: Identifier in the user's file.
        by: Where the label came from.
        who: The person, where one decided.
        when: When they did, in ISO 8601.
        confidence: Probability, where the model decided.
        extra: Other columns of the user's file.
    """

    text: str
    intent: str | None
    id: str = ""
    by: Origin = "model"
    who: str = ""
    when: str = ""
    confidence: float | None = None
    extra: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)


@dataclass(frozen=True)
class Catalogue:
    """All that could be exported.

    Args:
        intents: Old ones first: names made for a target depend on those before.
        rows: The utterances, in the order of the source.
        about: Where all this came from, for the audit.
    """

    intents: tuple[CatalogueIntent, ...]
    rows: tuple[Row, ...]
    about: Mapping[str, Any] = field(default_factory=dict)


def build_catalogue(
    intents: Iterable[Mapping[str, Any]],
    rows: Mapping[str, Sequence[Any]],
    about: Mapping[str, Any] = _NOTHING,
) -> Catalogue:
    """Make a catalogue of plain values.

    Args:
        intents: The fields of `CatalogueIntent`; `id` and `name` at least.
        rows: Columns of equal length: `text`, `intent` (ids, None for none of them), and any of
            `id`, `by`, `who`, `when` and `confidence`. Other columns are kept as they are.
        about: Where all this came from, for the audit.

    Raises:
        DataError: Columns differ in length, or ids are unknown or used twice.
    """
    made = tuple(CatalogueIntent(**intent) for intent in intents)
    known = {intent.id for intent in made}
    if len(known) != len(made):
        raise DataError(f"{len(made)} intents share {len(known)} ids; give each its own")
    missing = {"text", "intent"} - set(rows)
    if missing:
        raise DataError(f"rows have no column {' and no '.join(sorted(missing))}")
    n = len(rows["text"])
    uneven = [name for name, column in rows.items() if len(column) != n]
    if uneven:
        raise DataError(f"columns {shortened(uneven)} are not as long as 'text', {n} rows")
    strange = sorted({str(i) for i in rows["intent"] if i is not None} - known)
    if strange:
        raise DataError(f"rows have intents that are not listed: {shortened(strange)}")
    return Catalogue(made, tuple(_row(rows, i) for i in range(n)), dict(about))


def catalogue_of_run(path: Path) -> Catalogue:
    """Read what a finished run found, in its current version.

    Known intents count as accepted, new ones are open. Utterances that fit none of the intents,
    as an update collects them, have none.

    Args:
        path: Folder of the run.

    Raises:
        DataError: There is no finished run, or it was made of embeddings without texts.
    """
    run = open_finished(path)
    table = run.assignments().to_pydict()
    check_spoken(path, table["text"])
    given = run.labelled().tolist()
    confidence = zip(table["confidence"], given, strict=True)
    rows: dict[str, list[Any]] = {
        "text": table["text"],
        "intent": [_id(index) for index in table["index"]],
        "id": table["id"],
        "by": ["given" if labelled else "model" for labelled in given],
        "confidence": [None if labelled else value for value, labelled in confidence],
    }
    intents = [
        {"id": _id(i.index), "name": i.name, "known": i.known, "description": i.description}
        for i in run.intents()
    ]
    return build_catalogue(intents, completed(run, table, rows), about_run(path, run))


def check_spoken(path: Path, texts: Sequence[str]) -> None:
    """Refuse a run that has no utterances.

    Raises:
        DataError: It was made of embeddings.
    """
    if not any(texts):
        raise DataError(f"run '{path}' was made of embeddings: it has no utterances to export")


def completed(
    run: RunFolder, table: Mapping[str, list[Any]], rows: Mapping[str, list[Any]]
) -> dict[str, list[Any]]:
    """Return the rows of a catalogue with the user's own columns, and what updates collected.

    Args:
        run: The current version.
        table: Its utterances.
        rows: What is told of each of them.
    """
    every = {**rows, **{name: column for name, column in table.items() if name not in _OWN}}
    collected = _collected(run)
    return {
        name: [*column, *(row.get(name) for row in collected)] for name, column in every.items()
    }


def _id(index: int) -> str:
    """Return the id of an intent that was discovered; updates of a run keep its index."""
    return f"i{index}"


def _collected(run: RunFolder) -> list[dict[str, Any]]:
    """Return the utterances that fit none of the intents."""
    import pyarrow.parquet as pq

    path = run.path / COLLECTED
    if not path.exists():
        return []
    read: list[dict[str, Any]] = pq.read_table(path, columns=["id", "text"]).to_pylist()
    return [row | {"by": "model"} for row in read]


def about_run(path: Path, run: RunFolder) -> dict[str, Any]:
    """Return where an export came from, for the audit.

    Args:
        path: Folder of the run.
        run: Its current version.
    """
    facts = run.facts()
    names = {"source": "source", "created": "run_created", "ronid_version": "run_made_by"}
    return {new: facts.get(old) for old, new in names.items()} | {
        "run_version": current_number(path)
    }


def _row(columns: Mapping[str, Sequence[Any]], i: int) -> Row:
    values = {name: columns[name][i] for name in _ROLES if name in columns}
    extra = {name: columns[name][i] for name in columns if name not in _ROLES}
    confidence = values.get("confidence")
    return Row(
        text=_writable(values["text"]),
        intent=values["intent"],
        id=str(values.get("id", i + 1)),
        by=values.get("by") or "model",
        who=values.get("who") or "",
        when=values.get("when") or "",
        confidence=None if confidence is None else round(float(confidence), 6),
        extra=extra or _NOTHING,
    )


def _writable(text: str) -> str:
    """Return text that a file can hold: half a surrogate pair becomes U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
