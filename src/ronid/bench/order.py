"""Which cell a process takes next: first configs first, what shares together, longest first."""

import math
import warnings
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from ronid.bench.plan import BenchCell
from ronid.bench.rows import read_rows
from ronid.bench.sheets import Sheet
from ronid.bench.stages import first_stage
from ronid.errors import DataError

Seconds = Mapping[tuple[str, ...], float]
"""What a cell takes, by the first 3, 4 or 5 of `_ALIKE`."""

_ALIKE = ("method", "dataset", "encoder", "preset", "variant")


@dataclass(frozen=True)
class Task:
    """A cell to run.

    Args:
        sheet: Number of its config.
        cell: The cell.
        unit: The same for cells of a config that share early stages, which one process runs.
        expected_s: Seconds that it may take, or None where nothing like it is stored.
    """

    sheet: int
    cell: BenchCell
    unit: tuple[int, str]
    expected_s: float | None

    @property
    def group(self) -> tuple[str, str]:
        """Cells of one group share encodings."""
        return self.cell.dataset, self.cell.encoder


def read_seconds(files: Iterable[Path], kind: str, jobs: int = 1) -> Seconds:
    """Return what cells take by themselves: the median of stored rows that are alike.

    Args:
        files: Files that may hold rows; those that do not are passed over, as this is only a guess.
        kind: `memory_kind` of the rows that count: a CPU says nothing about a GPU.
        jobs: Processes that share the device now. Those on one GPU take turns, so that a cell
            takes as many times as long; a CPU has several cores, and rows count as they are.
    """
    spent: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for path in files:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                rows = read_rows(path)
        except DataError:
            continue
        for row in rows:
            if row.get("memory_kind") == kind and "wall_s" in row:
                key = tuple(str(row.get(name, "")) for name in _ALIKE)
                turns = jobs / row.get("jobs", 1) if kind == "cuda" else 1.0
                for length in (3, 4, 5):
                    spent[key[:length]].append(turns * (row["wall_s"] - row.get("shared_s", 0.0)))
    return {key: median(values) for key, values in spent.items()}


def expected_s(cell: BenchCell, seconds: Seconds) -> float | None:
    """Return the seconds of the stored rows that are most alike, or None."""
    key = tuple(getattr(cell, name) for name in _ALIKE)
    return next((seconds[key[:n]] for n in (5, 4, 3) if key[:n] in seconds), None)


def make_tasks(
    sheets: Sequence[Sheet], pending: Sequence[Sequence[BenchCell]], seconds: Seconds
) -> list[Task]:
    """Return the cells in the order in which they are wanted.

    Cells that share stages keep the order of their config and stay next to each other; what takes
    longest comes first, so that the last process is not left alone with it.

    Args:
        sheets: Configs, those that come first first.
        pending: Cells of each to run.
        seconds: What cells may take.
    """
    tasks: list[Task] = []
    for number, (sheet, cells) in enumerate(zip(sheets, pending, strict=True)):
        units: dict[tuple[int, str], list[Task]] = defaultdict(list)
        for cell in cells:
            unit = (number, first_stage(sheet.plan, cell) or str(cell.coordinates))
            units[unit].append(Task(number, cell, unit, expected_s(cell, seconds)))
        longest_first = sorted(units.values(), key=lambda unit: -sum(map(_length, unit)))
        tasks += (task for unit in longest_first for task in unit)
    return tasks


def next_task(
    tasks: Sequence[Task],
    taken: Sequence[int],
    worker: int,
    last: int | None,
    left_s: float = math.inf,
) -> int | None:
    """Choose the cell a process goes on with.

    It ends what it has begun of cells that share stages. Then it takes one of the first config
    that has any: of the dataset and encoder it has, whose encodings it holds; else of those nobody
    has begun; else of those with the longest cell, or most cells.

    Args:
        tasks: All cells, in the order of `make_tasks`.
        taken: 1 + number of the process that has begun it, or 0.
        worker: Number of the process.
        last: The cell it did before, or None.
        left_s: Seconds that are left; a cell that may take longer is left out.

    Returns:
        Index of a cell, or None where there is none for this process.
    """
    free = _free(tasks, taken, worker, left_s)
    if not free:
        return None
    if last is not None:
        begun = [index for index in free if tasks[index].unit == tasks[last].unit]
        if begun:
            return begun[0]
    sheet = tasks[free[0]].sheet
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for index in free:
        if tasks[index].sheet == sheet:
            groups[tasks[index].group].append(index)
    if last is not None and tasks[last].group in groups:
        return groups[tasks[last].group][0]
    old = {t.group for t, by in zip(tasks, taken, strict=True) if by and t.sheet == sheet}
    fresh = [group for key, group in groups.items() if key not in old]
    if fresh:
        return fresh[0][0]
    return max(groups.values(), key=lambda group: (_length(tasks[group[0]]), len(group)))[0]


def _free(tasks: Sequence[Task], taken: Sequence[int], worker: int, left_s: float) -> list[int]:
    """Return the cells that a process may begin, in order."""
    owner = {task.unit: by for task, by in zip(tasks, taken, strict=True) if by}
    return [
        index
        for index, task in enumerate(tasks)
        if not taken[index]
        and owner.get(task.unit, worker + 1) == worker + 1
        and (task.expected_s or 0.0) <= left_s
    ]


def _length(task: Task) -> float:
    """Seconds to sort by: a cell nobody knows may be the longest of all."""
    return math.inf if task.expected_s is None else task.expected_s
