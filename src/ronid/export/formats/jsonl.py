"""JSON Lines, one object per utterance; `ronid fit` reads it."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ronid.export.archive import to_json
from ronid.export.batch import Batch, Options, Target

FILE = "utterances.jsonl"


def target(options: Options) -> Target:
    """Return that everything is taken as it is."""
    return Target()


def write(batch: Batch, folder: Path, options: Options) -> None:
    """Write `utterances.jsonl`."""
    table = batch.table()
    rows = zip(*table.values(), strict=True)
    write_lines(folder / FILE, (dict(zip(table, row, strict=True)) for row in rows))


def read(folder: Path) -> list[tuple[str, str]]:
    """Return utterances and intents of `utterances.jsonl`."""
    return [(row["text"], row["intent"]) for row in read_lines(folder / FILE)]


def write_lines(path: Path, objects: Iterable[Any]) -> None:
    """Write objects as JSON, one a line."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(to_json(each, indent=None) for each in objects)


def read_lines(path: Path) -> list[Any]:
    """Return the objects of a file of JSON lines."""
    with path.open(encoding="utf-8", newline="\n") as file:
        return [json.loads(line) for line in file]
