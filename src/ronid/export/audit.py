"""The audit of an export: where every label came from, and what became of every utterance."""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ronid.export.batch import Batch
from ronid.export.catalogue import Catalogue
from ronid.export.formats.csv_file import write_rows
from ronid.export.formats.jsonl import write_lines
from ronid.export.limits import Line, reasons
from ronid.files import FORMAT_VERSION
from ronid.version import __version__

AUDIT = "audit.jsonl"
NAMES = "names.csv"


def write_audit(
    folder: Path, batch: Batch, catalogue: Catalogue, asked: Mapping[str, Any]
) -> dict[str, Any]:
    """Write the audit and the list of names beside the files of an export.

    Nothing in them depends on when they are written.

    Args:
        folder: Holds the files of the export, and nothing else.
        batch: What was written.
        catalogue: What could have been written.
        asked: What the user asked for.

    Returns:
        The first object of the audit, which sums it up.
    """
    head = {
        "kind": "export",
        "format_version": FORMAT_VERSION,
        "ronid_version": __version__,
        **catalogue.about,
        **asked,
        "intents": len(batch.intents),
        "utterances": len(batch.lines),
        "renamed": len(batch.renamed),
        "changed": len(batch.changed),
        "left_out": reasons(batch.left_out),
        "empty": [intent.name for intent in batch.empty],
        "sha256": checksums(folder),
    }
    write_lines(folder / AUDIT, [head, *_entries(batch)])
    fields = ("id", "name", "exported_as", "known", "status", "description")
    rows = [
        (i.id, i.name, batch.names[i.id], str(i.known).lower(), i.standing, i.description)
        for i in batch.intents
    ]
    write_rows(folder / NAMES, [fields, *rows])
    return head


def checksums(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file below a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


def _entries(batch: Batch) -> Iterator[dict[str, Any]]:
    for line in batch.lines:
        yield _entry(line, batch.names[line.intent])
    for each in batch.left_out:
        yield _entry(each.line, batch.names[each.line.intent]) | {"left_out": each.why}


def _entry(line: Line, name: str) -> dict[str, Any]:
    """Return what is known of one label; fields without a value are not there."""
    row = line.row
    entry = {
        "kind": "utterance",
        "id": row.id,
        "text": row.text,
        "written": line.text if line.text != row.text else None,
        "intent": name,
        "intent_id": line.intent,
        "by": row.by,
        "who": row.who or None,
        "when": row.when or None,
        "confidence": row.confidence,
    }
    return {key: value for key, value in entry.items() if value is not None}
