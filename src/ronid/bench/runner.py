"""Run the cells of plans that are not stored yet: resumable, in one process or several."""

import math
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
from ronid.bench.order import Task, next_task
from ronid.bench.plan import BenchCell, Plan
from ronid.bench.rows import Row, append_row, coordinates, read_rows, repair
from ronid.bench.sheets import Sheet
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
    """Something to tell while plans run.

    Args:
        task: Which cell.
        kind: `start` or `end`.
        worker: Number of the process.
        row: Its row, at the end.
        warned: Messages of warnings.
    """

    task: Task
    kind: str
    worker: int = 0
    row: Row | None = None
    warned: tuple[str, ...] = ()


@dataclass
class Summary:
    """How the cells of one plan ended.

    Args:
        scored: Cells that got scores.
        skipped: Cells that could not run, with a reason.
        failed: Cells among them that met an error nobody foresaw.
    """

    scored: int = 0
    skipped: int = 0
    failed: int = 0

    def count(self, row: Row) -> None:
        """Count one more row."""
        reason = row.get("skip")
        self.scored += reason is None
        self.skipped += reason is not None
        self.failed += str(reason).startswith("failed: ")


@dataclass(frozen=True)
class Ending:
    """How a run ended.

    Args:
        summaries: One for each plan.
        left: Cells that no process began.
        interrupted: Whether the user stopped it.
    """

    summaries: tuple[Summary, ...]
    left: tuple[Task, ...]
    interrupted: bool


@dataclass(frozen=True)
class Run:
    """Where and how plans are run.

    Args:
        sheets: Plans with their files of rows.
        device: `auto`, `cpu` or `cuda`.
        jobs: Processes.
        beside: Processes of other runs that share the device.
        deadline: Time (`time.time()`) after which no cell starts, nor ends as far as it is known
            what cells take; or None.
        progress: Told about every stage, in one process only.
    """

    sheets: tuple[Sheet, ...]
    device: str = "auto"
    jobs: int = 1
    beside: int = 0
    deadline: float | None = None
    progress: Any = None

    @property
    def left_s(self) -> float:
        """Seconds until the deadline."""
        return math.inf if self.deadline is None else self.deadline - time.time()


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


def run_tasks(run: Run, tasks: Sequence[Task], tell: Callable[[Event], None]) -> Ending:
    """Run cells and store their rows.

    Args:
        run: Where and how.
        tasks: Cells to run, in the order of `make_tasks`.
        tell: Receives the start and end of every cell.

    Returns:
        How many cells got scores or not; an interrupt ends it early and is noted there.
    """
    summaries = tuple(Summary() for _ in run.sheets)
    begun: set[Task] = set()

    def hear(event: Event) -> None:
        begun.add(event.task)
        if event.row is not None:
            summaries[event.task.sheet].count(event.row)
        tell(event)

    jobs = min(run.jobs, len({task.unit for task in tasks}))
    interrupted = False
    try:
        if jobs > 1:
            _run_workers(replace(run, progress=None, jobs=jobs), tasks, hear)
        else:
            _work(replace(run, jobs=1), tasks, [0] * len(tasks), nullcontext(), hear)
    except KeyboardInterrupt:
        interrupted = True
    return Ending(summaries, tuple(task for task in tasks if task not in begun), interrupted)


def _work(
    run: Run,
    tasks: Sequence[Task],
    taken: MutableSequence[int],
    lock: Any,
    tell: Callable[[Event], None],
    worker: int = 0,
) -> None:
    """Take cells until there is none for this process, the time is over, or the parent is gone."""
    parent = parent_process()  # None outside a worker
    bench: Bench | None = None
    last: int | None = None
    while (left_s := run.left_s) > 0:
        with lock:
            index = next_task(tasks, taken, worker, last, left_s)
            if index is None or (parent is not None and not parent.is_alive()):
                return
            taken[index] = worker + 1
        task, last = tasks[index], index
        sheet = run.sheets[task.sheet]
        bench = _bench(run, sheet, bench)
        tell(Event(task, "start", worker))
        outcome = run_cell(bench, task.cell)
        _store(sheet, outcome)
        tell(Event(task, "end", worker, outcome.row, outcome.warned))


def _bench(run: Run, sheet: Sheet, before: Bench | None) -> Bench:
    """Return what the cells of a plan share; of another plan only the encodings are of use."""
    if before is not None and before.plan is sheet.plan:
        return before
    cache = None if before is None else before.cache
    return Bench(sheet.plan, run.device, run.jobs + run.beside, run.progress, cache)


def _store(sheet: Sheet, outcome: Outcome) -> None:
    """Append a row; the same reason for the same cell twice in a row is stored once."""
    row = outcome.row
    if outcome.failure:
        with sheet.log.open("a", encoding="utf-8") as file:
            file.write(f"{coordinates(row)}\n{outcome.failure}\n")
    if "skip" in row and sheet.out.exists():
        before = [r for r in read_rows(sheet.out) if coordinates(r) == coordinates(row)]
        if before and before[-1].get("skip") == row["skip"]:
            return
    append_row(sheet.out, row)


def _run_workers(run: Run, tasks: Sequence[Task], tell: Callable[[Event], None]) -> None:
    """Share the cells among processes and tell what they report."""
    import multiprocessing

    context = multiprocessing.get_context("spawn")  # CUDA does not live through a fork
    taken = context.Array("i", len(tasks), lock=False)
    lock, events = context.Lock(), context.SimpleQueue()
    threads = max(1, (os.cpu_count() or 1) // run.jobs)
    workers = [
        context.Process(
            target=_worker, args=(run, tasks, taken, lock, events, number, threads), daemon=True
        )
        for number in range(run.jobs)
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
            f"{len(codes)} of {run.jobs} processes ended early (exit {codes[0]}), perhaps for want "
            "of memory; run the same command to go on, with fewer --jobs"
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
    tasks: Sequence[Task],
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
    _work(run, tasks, taken, lock, events.put, number)
