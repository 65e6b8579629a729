"""Run the cells of a plan that are not stored yet: resumable, in one process or several."""

import os
import signal
import time
from collections.abc import Callable, Iterator, MutableSequence, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from multiprocessing import parent_process
from pathlib import Path
from typing import Any

from ronid.bench.cell import Bench, Outcome, run_cell, split_of
from ronid.bench.plan import BenchCell, Plan
from ronid.bench.rows import Row, append_row, coordinates, read_rows, repair
from ronid.errors import RonidError


@dataclass(frozen=True)
class Todo:
    """What is stored of a plan and what is not.

    Args:
        pending: Cells to run, in order.
        done: Cells whose row is stored.
        stale: Of the pending ones, those stored with other settings.
    """

    pending: tuple[BenchCell, ...]
    done: tuple[BenchCell, ...]
    stale: tuple[BenchCell, ...]


@dataclass(frozen=True)
class Event:
    """Something to tell while a plan runs.

    Args:
        cell: Which cell.
        kind: `start` or `end`.
        worker: Number of the process.
        row: Its row, at the end.
        warned: Messages of warnings.
    """

    cell: BenchCell
    kind: str
    worker: int = 0
    row: Row | None = None
    warned: tuple[str, ...] = ()


@dataclass
class Summary:
    """How a run of a plan ended.

    Args:
        scored: Cells that got scores.
        skipped: Cells that could not run, with a reason.
        failed: Cells among them that met an error nobody foresaw.
        interrupted: Whether the user stopped it.
    """

    scored: int = 0
    skipped: int = 0
    failed: int = 0
    interrupted: bool = False

    def count(self, row: Row) -> None:
        """Count one more row."""
        reason = row.get("skip")
        self.scored += reason is None
        self.skipped += reason is not None
        self.failed += str(reason).startswith("failed: ")


@dataclass(frozen=True)
class Run:
    """Where and how a plan is run.

    Args:
        plan: The benchmark config.
        out: File of rows.
        device: `auto`, `cpu` or `cuda`.
        jobs: Processes.
        beside: Processes of other runs that share the device.
        deadline: Time (`time.time()`) after which no cell starts, or None.
        progress: Told about every stage, in one process only.
    """

    plan: Plan
    out: Path
    device: str = "auto"
    jobs: int = 1
    beside: int = 0
    deadline: float | None = None
    progress: Any = None

    @property
    def log(self) -> Path:
        """File next to the rows that tracebacks go to."""
        return self.out.with_suffix(".log")


def todo(plan: Plan, out: Path) -> Todo:
    """Compare a plan with the rows that are stored.

    A cell is done when a row with scores has its coordinates, settings and split, and holds what
    the plan wants kept.
    """
    if out.exists():
        repair(out)
    stored: dict[tuple[Any, ...], list[Row]] = {}
    for row in read_rows(out) if out.exists() else []:
        if "scores" in row:
            stored.setdefault(coordinates(row), []).append(row)
    pending, done, stale = [], [], []
    for cell in plan.cells:
        rows = stored.get(cell.coordinates, [])
        if any(_is_of(row, plan, cell) for row in rows):
            done.append(cell)
            continue
        pending.append(cell)
        if rows:
            stale.append(cell)
    return Todo(tuple(pending), tuple(done), tuple(stale))


def _is_of(row: Row, plan: Plan, cell: BenchCell) -> bool:
    """Whether a stored row is what running the cell now would be about."""
    if row.get("config_hash") != plan.config_hash(cell) or not all(k in row for k in plan.keep):
        return False
    try:
        return bool(row.get("split_hash") == split_of(cell).hash)
    except RonidError:
        return True  # the benchmark is not here to compare with: the stored row stands


def run_plan(run: Run, pending: Sequence[BenchCell], tell: Callable[[Event], None]) -> Summary:
    """Run cells and store their rows.

    Args:
        run: Where and how.
        pending: Cells to run; those that share encodings next to each other.
        tell: Receives the start and end of every cell.

    Returns:
        How many cells got scores or not; an interrupt ends it early and is noted there.
    """
    summary = Summary()

    def hear(event: Event) -> None:
        if event.row is not None:
            summary.count(event.row)
        tell(event)

    try:
        if run.jobs == 1 or len(pending) < 2:
            _work(replace(run, jobs=1), pending, [0] * len(pending), nullcontext(), hear)
        else:
            _run_workers(run, pending, hear)
    except KeyboardInterrupt:
        summary.interrupted = True
    return summary


def next_cell(cells: Sequence[BenchCell], taken: Sequence[int], last: int | None) -> int | None:
    """Choose the cell a process goes on with.

    It stays with the dataset and encoder it has, whose encodings it holds; else it takes the
    group with most cells left.

    Args:
        cells: All cells.
        taken: 1 where a process has begun.
        last: The cell it did before, or None.

    Returns:
        Index of a cell, or None when all are taken.
    """
    groups: dict[tuple[str, str], list[int]] = {}
    for index, cell in enumerate(cells):
        if not taken[index]:
            groups.setdefault((cell.dataset, cell.encoder), []).append(index)
    if not groups:
        return None
    if last is not None:
        own = groups.get((cells[last].dataset, cells[last].encoder))
        if own:
            return own[0]
    begun = {(c.dataset, c.encoder) for c, t in zip(cells, taken, strict=True) if t}
    fresh = [group for key, group in groups.items() if key not in begun]
    return fresh[0][0] if fresh else max(groups.values(), key=len)[0]


def _work(
    run: Run,
    cells: Sequence[BenchCell],
    taken: MutableSequence[int],
    lock: Any,
    tell: Callable[[Event], None],
    worker: int = 0,
) -> None:
    """Take cells until none is left, the time is over, or the parent is gone."""
    bench = Bench(run.plan, run.device, run.jobs + run.beside, run.progress)
    parent = parent_process()  # None outside a worker
    last: int | None = None
    while run.deadline is None or time.time() < run.deadline:
        with lock:
            index = next_cell(cells, taken, last)
            if index is None or (parent is not None and not parent.is_alive()):
                return
            taken[index] = 1
        last = index
        tell(Event(cells[index], "start", worker))
        outcome = run_cell(bench, cells[index])
        _store(run, outcome)
        tell(Event(cells[index], "end", worker, outcome.row, outcome.warned))


def _store(run: Run, outcome: Outcome) -> None:
    """Append a row; the same reason for the same cell twice in a row is stored once."""
    row = outcome.row
    if outcome.failure:
        with run.log.open("a", encoding="utf-8") as file:
            file.write(f"{coordinates(row)}\n{outcome.failure}\n")
    if "skip" in row and run.out.exists():
        before = [r for r in read_rows(run.out) if coordinates(r) == coordinates(row)]
        if before and before[-1].get("skip") == row["skip"]:
            return
    append_row(run.out, row)


def _run_workers(run: Run, cells: Sequence[BenchCell], tell: Callable[[Event], None]) -> None:
    """Share the cells among processes and tell what they report."""
    import multiprocessing

    context = multiprocessing.get_context("spawn")  # CUDA does not live through a fork
    jobs = min(run.jobs, len(cells))
    taken = context.Array("b", len(cells), lock=False)
    lock, events = context.Lock(), context.SimpleQueue()
    share = replace(run, progress=None, jobs=jobs)
    threads = max(1, (os.cpu_count() or 1) // jobs)
    workers = [
        context.Process(
            target=_worker, args=(share, cells, taken, lock, events, number, threads), daemon=True
        )
        for number in range(jobs)
    ]
    try:
        for worker in workers:
            worker.start()
        for event in _heard(workers, events):
            tell(event)
    finally:
        for worker in workers:
            if worker.is_alive():
                worker.terminate()
            if worker.pid is not None:
                worker.join()
    codes = [worker.exitcode for worker in workers if worker.exitcode]
    if codes:
        raise RonidError(
            f"{len(codes)} of {jobs} processes ended early (exit {codes[0]}), perhaps for want of "
            "memory; run the same command to go on, with fewer --jobs"
        )


def _heard(workers: Sequence[Any], events: Any) -> Iterator[Event]:
    """Yield events until all workers are gone and nothing is left unread."""
    while True:
        alive = any(worker.is_alive() for worker in workers)
        while not events.empty():
            yield events.get()
        if not alive:
            return
        time.sleep(0.05)


def _worker(  # noqa: PLR0913, PLR0917 - what one process has to be told
    run: Run,
    cells: Sequence[BenchCell],
    taken: Any,
    lock: Any,
    events: Any,
    number: int,
    threads: int,
) -> None:
    """Body of one process; the parent alone answers Ctrl-C and ends the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    import torch

    torch.set_num_threads(threads)
    _work(run, cells, taken, lock, events.put, number)
