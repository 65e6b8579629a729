"""Rows of results in a JSON-lines file that several processes append to and a kill cannot spoil."""

import fcntl
import json
import os
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ronid.bench.plan import COORDINATES, FORMAT_VERSION, UNSAID
from ronid.errors import DataError, RonidWarning
from ronid.files import without_nan

Row = dict[str, Any]
EPOCHS_KEPT = 200
"""Epochs of one stage that the history of a row holds."""


def coordinates(row: Row) -> tuple[Any, ...]:
    """Return what tells the cell of a row from another; old rows do not say what was usual."""
    return tuple(row.get(name, UNSAID.get(name)) for name in COORDINATES)


def read_rows(path: Path) -> list[Row]:
    """Read all rows; a last line that a kill cut short is left out, with a warning.

    Raises:
        DataError: No such file, a line that is no row, or a newer format.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise DataError(f"'{path}' does not exist; make it with: ronid bench run") from None
    lines = data.split(b"\n")
    if _is_cut(lines[-1]):
        _warn_cut(path)
        lines.pop()
    return [_parsed(path, number, line) for number, line in enumerate(lines, 1) if line.strip()]


def read_all(paths: Iterable[Path]) -> list[Row]:
    """Read the rows of several files, in the order of the files."""
    return [row for path in paths for row in read_rows(path)]


def latest(rows: Iterable[Row], version: str | None = "") -> list[Row]:
    """Return the last row of every cell of one version, in the order in which the cells first came.

    Args:
        rows: Stored rows.
        version: Version of the rows to return, see `BenchCell`; all others are left out. None
            returns `current_or_earlier` rows, where cells that differ only in seed are a group.
    """
    found = {coordinates(row): row for row in rows if version in (None, version_of(row))}
    kept = list(found.values())
    return current_or_earlier(kept, _without_seed) if version is None else kept


def current_or_earlier(
    rows: Iterable[Row], group: Callable[[Row], Hashable] = lambda _: None
) -> list[Row]:
    """Leave out rows of an earlier version whose group has current rows.

    Args:
        rows: Stored rows.
        group: Returns the group of a row. By default, all rows are one group.
    """
    rows = list(rows)
    current = {group(row) for row in rows if not version_of(row)}
    return [row for row in rows if not version_of(row) or group(row) not in current]


def _without_seed(row: Row) -> tuple[Any, ...]:
    """Return the coordinates of a row except its seed and version."""
    named = zip(COORDINATES, coordinates(row), strict=True)
    return tuple(value for name, value in named if name not in ("seed", "version"))


def version_of(row: Row) -> str:
    """Return the version of a row; older rows do not have the field."""
    return str(row.get("version", ""))


def thinned(history: Sequence[Mapping[str, Any]], most: int = EPOCHS_KEPT) -> list[Row]:
    """Return the epochs of a fit, of a long stage `most`, evenly, the first and last among them.

    Args:
        history: Epochs in order, each with its `stage`.
        most: At least 2. Thousands of epochs of one stage would be megabytes that nobody reads.
    """
    stages: dict[Any, list[int]] = {}
    for place, epoch in enumerate(history):
        stages.setdefault(epoch.get("stage"), []).append(place)
    kept: list[int] = []
    for places in stages.values():
        last, count = len(places) - 1, min(most, len(places))
        kept += [places[round(n * last / max(1, count - 1))] for n in range(count)]
    return [dict(history[place]) for place in sorted(kept)]


def append_row(path: Path, row: Row) -> None:
    """Append one row whole: one write under a lock, on the disk when this returns.

    Args:
        path: File of rows; it and its folder are made where missing.
        row: Plain values; NaN is written as null.
    """
    line = json.dumps(without_nan(row), ensure_ascii=False, allow_nan=False).encode() + b"\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    with _locked(path) as descriptor:
        end = _repaired_size(path, descriptor)
        try:
            written = os.write(descriptor, line)
            if written < len(line):
                raise OSError(28, "no space left on the disk", str(path))
            os.fsync(descriptor)
        except OSError:
            os.ftruncate(descriptor, end)
            raise


def repair(path: Path) -> None:
    """Cut off a last line that a kill left unfinished, with a warning."""
    if path.exists():
        with _locked(path) as descriptor:
            _repaired_size(path, descriptor)


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    """Open a file for appending and hold its lock."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)  # gives the lock back


def _repaired_size(path: Path, descriptor: int) -> int:
    """Return where the next row goes, after ending or cutting off an unfinished line."""
    size = os.fstat(descriptor).st_size
    if not size or os.pread(descriptor, 1, size - 1) == b"\n":
        return size
    tail = path.read_bytes().rpartition(b"\n")[2]
    if not _is_cut(tail):
        os.write(descriptor, b"\n")
        return size + 1
    _warn_cut(path)
    os.ftruncate(descriptor, size - len(tail))
    return size - len(tail)


def _is_cut(tail: bytes) -> bool:
    """Whether the bytes after the last line end are a part of a row only."""
    try:
        return bool(tail.strip()) and not isinstance(json.loads(tail), dict)
    except ValueError:
        return True


def _warn_cut(path: Path) -> None:
    warnings.warn(
        f"the last line of '{path.name}' was cut short and is dropped; its cell runs again",
        RonidWarning,
        stacklevel=4,
    )


def _parsed(path: Path, number: int, line: bytes) -> Row:
    try:
        row = json.loads(line)
    except ValueError:
        row = None
    if not isinstance(row, dict) or "dataset" not in row:
        raise DataError(f"'{path}', line {number} is no row of results; remove that line")
    if row.get("format_version", FORMAT_VERSION) > FORMAT_VERSION:
        raise DataError(f"'{path}', line {number} was written by a newer ronid; upgrade to read it")
    return row
