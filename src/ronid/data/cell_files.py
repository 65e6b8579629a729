"""Drawn benchmark splits as files: cells to read back, and utterances for other programs."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np

from ronid.data.pile import Pile
from ronid.data.splits import Cell, benchmark_problem
from ronid.errors import DataError
from ronid.types import UNLABELLED

FORMAT_VERSION = 1


def cell_path(folder: str | Path, cell: Cell) -> Path:
    """File of a cell in a folder of cells."""
    name = (
        f"{cell.dataset}-known{cell.known_ratio:g}-labelled{cell.labelled_ratio:g}-seed{cell.seed}"
    )
    name += "".join(f"-{key}{value:g}" for key, value in cell.pile.changes.items())
    name += "" if cell.split == "drawn" else f"-{cell.split}"
    return Path(folder) / f"{name}.json"


def write_cell(path: str | Path, cell: Cell) -> Path:
    """Write a cell as JSON, with its hash; folders on the way are made."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"format_version": FORMAT_VERSION, **cell.content, "hash": cell.hash}
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return path


def read_cell(path: str | Path) -> Cell:
    """Read a cell and verify its hash.

    Args:
        path: File written by `write_cell`.

    Returns:
        The cell.

    Raises:
        DataError: The file is missing, is no cell, or was changed.
    """
    try:
        content: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
        version, expected = content.pop("format_version"), content.pop("hash")
        lists = ("known", "labelled", "kept", "given")
        content |= {key: tuple(content[key]) for key in lists if key in content}
        content["pile"] = Pile(**content.get("pile", {}))
        content["chatter"] = tuple((name, row) for name, row in content.get("chatter", ()))
        cell = Cell(**content)
    except FileNotFoundError:
        raise DataError(f"{path} does not exist; write it with: ronid data split") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path} is no benchmark cell ({error}); write it again") from None
    if version != FORMAT_VERSION:
        raise DataError(f"{path} has format {version}, this release reads {FORMAT_VERSION}")
    if cell.hash != expected:
        raise DataError(
            f"{path} was changed: its hash is {cell.hash}, not {expected}; write it again"
        )
    return cell


def write_problem(folder: str | Path, cell: Cell) -> list[Path]:
    """Write a cell and its utterances as CSV files, for other programs.

    Args:
        folder: Where `cell.json`, `train.csv`, `dev.csv` and `test.csv` go.
        cell: A drawn split.

    Returns:
        The files. Columns are id (row), text, intent (empty when hidden) and truth (empty for
        chatter).
    """
    problem = benchmark_problem(cell)
    split, names = problem.split, problem.classes
    train_truth = split.truth if split.truth is not None else split.targets
    hidden = np.full(len(problem.test_targets), UNLABELLED, np.int64)
    folder = Path(folder)
    parts = {
        "train": (split.texts, split.targets, train_truth),
        "dev": (split.dev_texts, split.dev_targets, split.dev_targets),
        "test": (problem.test_texts, hidden, problem.test_targets),
    }
    files = [write_cell(folder / "cell.json", cell)]
    for part, (texts, targets, truth) in parts.items():
        path = folder / f"{part}.csv"
        with path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(("id", "text", "intent", "truth"))
            for row, (text, target, true) in enumerate(zip(texts, targets, truth, strict=True)):
                writer.writerow((row, text, *(names[i] if i >= 0 else "" for i in (target, true))))
        files.append(path)
    return files
