"""Archives and JSON with the same bytes for the same content, whenever and wherever made."""

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_WHEN = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip file can hold."""
_MODE = 0o644 << 16
_UNIX = 3


def to_json(value: Any, indent: int | None = 2) -> str:
    """Return JSON that people can read; Unicode as it is."""
    return json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False) + "\n"


def write_zip(path: Path, files: Mapping[str, Any]) -> None:
    """Write a zip file of JSON documents, sorted by name.

    Args:
        path: The file.
        files: Name inside the archive to content.
    """
    with zipfile.ZipFile(path, "w") as archive:
        for name in sorted(files):
            _add(archive, name, to_json(files[name]).encode("utf-8"))


def zip_folder(path: Path, folder: Path) -> None:
    """Write a zip file of all files below a folder, under the folder's own name.

    Args:
        path: The file; not inside the folder.
        folder: What is packed.
    """
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(file for file in folder.rglob("*") if file.is_file()):
            _add(archive, file.relative_to(folder.parent).as_posix(), file.read_bytes())


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, _WHEN)
    entry.create_system, entry.external_attr = _UNIX, _MODE
    archive.writestr(entry, content, zipfile.ZIP_DEFLATED, compresslevel=6)


def read_zip(path: Path) -> dict[str, Any]:
    """Return the JSON documents of a zip file by their names."""
    with zipfile.ZipFile(path) as archive:
        return {name: json.loads(archive.read(name)) for name in archive.namelist()}
