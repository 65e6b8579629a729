"""Stored rows, and what the pages of tables share."""

import json
from collections.abc import Iterable
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from export_source import COMMIT

from ronid.bench.render import to_markdown
from ronid.bench.rows import current_or_earlier, latest, read_all, version_of
from ronid.bench.table import make_table

Row = dict[str, Any]

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
DATASETS = {"clinc": "CLINC", "banking": "BANKING", "stackoverflow": "StackOverflow"}
FIRST_DEV_SEED = 100
"""Seeds from here on chose settings; figures come from those below."""


def read_rows(name: str) -> list[Row]:
    """Return the rows of a file that a script wrote: current ones, or earlier ones if none."""
    lines = (RESULTS / name).read_text(encoding="utf-8").splitlines()
    return current_or_earlier(map(json.loads, lines))


def harness_rows(*names: str, version: str | None = None) -> list[Row]:
    """Return the last row of every cell, of those files of the harness that exist.

    Args:
        names: Names of the files without the ending.
        version: Version of the rows to return: "" or "before". By default, rows of settings that
            have no current rows are earlier ones.
    """
    files = [RESULTS / f"{name}.jsonl" for name in names]
    return latest(read_all([file for file in files if file.exists()]), version)


def by_dataset(name: str) -> list[tuple[str, list[Row]]]:
    """Return the rows of a file by the title of their dataset."""
    titles = DATASETS | {"clinc_oos": "CLINC, its own queries"}
    rows = read_rows(name)
    found = [(title, [r for r in rows if r["dataset"] == key]) for key, title in titles.items()]
    return [(title, own) for title, own in found if own]


def with_note(table: str, rows: Iterable[Row]) -> str:
    """Return a table, with a sentence below it if it shows rows of the earlier version."""
    shown = {(row.get("preset"), version_of(row)) for row in rows if "skip" not in row}
    earlier = sorted(preset for preset, version in shown if version)
    if not earlier:
        return table
    share = "Some" if any((preset, "") in shown for preset in earlier) else "The"
    presets = "presets" if len(earlier) > 1 else "preset"
    names = " and ".join(f"`{preset}`" for preset in earlier)
    return (
        f"{table.rstrip()}\n\n{share} rows of {presets} {names} were measured with the code of "
        f"commit {COMMIT} or earlier, before the initialization of RoNID changed."
    )


def setting_table(rows: list[Row], **options: Any) -> str:
    """Return what `make_table` makes of rows of both versions, as if they were of one."""
    alike = [row | {"version": ""} for row in rows]
    return with_note(to_markdown(make_table(alike, **options)), rows)


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
