"""Stored rows, and what the pages of tables share."""

import json
from collections.abc import Iterable
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from ronid.bench.rows import latest, read_all, version_of

Row = dict[str, Any]

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
DATASETS = {"clinc": "CLINC", "banking": "BANKING", "stackoverflow": "StackOverflow"}
FIRST_DEV_SEED = 100
"""Seeds from here on chose settings; figures come from those below."""


def read_rows(name: str, version: str = "") -> list[Row]:
    """Return the rows of a file of any form.

    Args:
        name: Name of the file.
        version: Version of the rows to return: "" or "before".
    """
    lines = (RESULTS / name).read_text(encoding="utf-8").splitlines()
    return [row for row in map(json.loads, lines) if version_of(row) == version]


def stored_rows(*names: str) -> list[Row]:
    """Return the rows, of whatever form, of those files that exist."""
    files = [f"{name}.jsonl" for name in names if (RESULTS / f"{name}.jsonl").exists()]
    return [row for file in files for row in read_rows(file)]


def harness_rows(*names: str, version: str = "") -> list[Row]:
    """Return the last row of every cell, of those files of the harness that exist.

    Args:
        names: Names of the files without the ending.
        version: Version of the rows to return: "" or "before".
    """
    files = [RESULTS / f"{name}.jsonl" for name in names]
    return latest(read_all([file for file in files if file.exists()]), version)


def by_dataset(name: str) -> list[tuple[str, list[Row]]]:
    """Return the rows of a file by the title of their dataset."""
    titles = DATASETS | {"clinc_oos": "CLINC, its own queries"}
    rows = read_rows(name)
    found = [(title, [r for r in rows if r["dataset"] == key]) for key, title in titles.items()]
    return [(title, own) for title, own in found if own]


def line(*cells: str) -> str:
    """Return one line of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def spread(values: Iterable[float | None], digits: int = 1) -> str:
    """Return mean and deviation over seeds; nothing where there is nothing to score."""
    found = [value for value in values if value is not None]
    if not found:
        return ""
    deviation = f" ± {stdev(found):.{digits}f}" if len(found) > 1 else ""
    return f"{mean(found):.{digits}f}{deviation}"


def over_seeds(rows: list[Row], key: str, digits: int = 1) -> str:
    """Return mean and deviation of one figure of rows."""
    return spread((row[key] for row in rows), digits)
