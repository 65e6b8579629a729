"""The intents of a model folder, as one JSON file."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ronid.files import FORMAT_VERSION, read_json, write_json
from ronid.types import Intent, Neighbour


def write_intents(folder: Path, intents: Sequence[Intent]) -> None:
    """Write the intents of a model folder."""
    rows = [asdict(intent) for intent in intents]
    write_json(folder / "intents.json", {"format_version": FORMAT_VERSION, "intents": rows})


def read_intents(folder: Path) -> tuple[Intent, ...]:
    """Read what `write_intents` wrote, now or before intents had a description and neighbours."""
    return tuple(_intent(row) for row in read_json(folder / "intents.json")["intents"])


def _intent(row: dict[str, Any]) -> Intent:
    lists = {name: tuple(row.get(name, ())) for name in ("keyphrases", "exemplars", "borderline")}
    nearest = tuple(Neighbour(**near) for near in row.get("nearest", ()))
    named_by = row.get("named_by") or ("user" if row["known"] else "keyphrases")
    return Intent(**{**row, **lists, "nearest": nearest, "named_by": named_by})
