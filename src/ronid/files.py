"""Small JSON files of run and model folders: one format version, one way to read and write."""

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ronid.errors import DataError

FORMAT_VERSION = 1


def read_json(path: Path) -> dict[str, Any]:
    """Read one of a folder's JSON files.

    Raises:
        DataError: It is not there, damaged, or of a newer format.
    """
    try:
        values: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if not path.parent.is_dir():
            raise DataError(f"folder '{path.parent}' does not exist; check the path") from None
        raise DataError(
            f"'{path.parent}' is not a finished run: it has no {path.name}; "
            "give the folder that `ronid fit --out` made"
        ) from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"'{path}' is damaged: {error}") from None
    if values.get("format_version", 0) > FORMAT_VERSION:
        raise DataError(f"'{path}' was written by a newer ronid; upgrade to read it")
    return values


def write_json(path: Path, values: Any) -> None:
    """Write JSON for people and programs: indented, Unicode as it is."""
    text = json.dumps(without_nan(values), indent=2, ensure_ascii=False, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Hand out a place beside a file; when the block ends well, what was written takes its place.

    Args:
        path: The file; it stays as it is, or is not there, where the block is ended by an error.
            A pipe or a device is written to as it is.
    """
    if path.exists() and not path.is_file():
        yield path
        return
    partial = path.with_name(f"{path.name}.partial")
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def without_nan(values: Any) -> Any:
    """Return nested plain values with null for what is not a number: JSON has no NaN."""
    if isinstance(values, float) and not math.isfinite(values):
        return None
    if isinstance(values, dict):
        return {key: without_nan(value) for key, value in values.items()}
    if isinstance(values, list | tuple):
        return [without_nan(value) for value in values]
    return values
