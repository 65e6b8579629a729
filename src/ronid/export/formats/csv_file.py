"""CSV with a header, one row per utterance; `ronid fit` reads it."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ronid.export.batch import Batch, Options, Target

FILE = "utterances.csv"


def target(options: Options) -> Target:
    """Return that everything is taken as it is."""
    return Target()


def write(batch: Batch, folder: Path, options: Options) -> None:
    """Write `utterances.csv`."""
    table = batch.table()
    table["known"] = [str(known).lower() for known in table["known"]]
    write_rows(folder / FILE, [tuple(table), *zip(*table.values(), strict=True)])


def read(folder: Path) -> list[tuple[str, str]]:
    """Return utterances and intents of `utterances.csv`."""
    header, *rows = read_rows(folder / FILE)
    text, intent = header.index("text"), header.index("intent")
    return [(row[text], row[intent]) for row in rows]


def write_rows(path: Path, rows: Iterable[Sequence[Any]]) -> None:
    """Write rows as CSV; line breaks inside a field are kept."""
    with path.open("w", encoding="utf-8", newline="") as file:
        # Both characters end a line here, or a lone one in a field would not be quoted.
        csv.writer(file, lineterminator="\r\n").writerows(rows)


def read_rows(path: Path) -> list[list[str]]:
    """Return the rows of a CSV file."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))
