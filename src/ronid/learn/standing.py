"""How far a training is, kept on disk: every page, process and restart reads the same.

`RUN/versions/learning.json` tells of the last one: who, since when, how far, how it ended;
`learning.lock` beside it is held while it trains, and a kill frees it.
"""

import json
import os
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Literal

from ronid.errors import RonidError, UsageError
from ronid.files import FORMAT_VERSION
from ronid.progress import STAGES, Progress, Silent
from ronid.versions import FOLDER, current_number

FILE, LOCK = "learning.json", "learning.lock"
EVERY_S = 0.2
"""How often progress is written at most."""
PATIENCE_S = 1.0
"""Whoever looks whether somebody trains holds the lock for a moment."""
SILENT_S = 600.0
"""Where there are no locks, a training that told nothing for so long is taken for dead."""

Phase = Literal["running", "done", "failed", "cancelled"]


@dataclass(frozen=True)
class Standing:
    """How far a training is.

    Args:
        phase: What it is doing.
        stage: Stage of the work, such as `encode`, `contrast` or `em`; empty before the first.
        done: Steps of the stage that are done.
        total: Steps of the stage.
        says: One line for people: the step, or why it failed.
        seconds: Since it began.
        key: Tells it from all others.
        who: Who asked for it.
        began: When, in ISO 8601.
        before: Version of the run that it goes on from.
        version: Version of the run that it made, 0 before it is done.
        pid: Its process.
        host: The machine of that process.
    """

    phase: Phase
    stage: str = ""
    done: int = 0
    total: int = 0
    says: str = ""
    seconds: float = 0.0
    key: str = ""
    who: str = ""
    began: str = ""
    before: int = 0
    version: int = 0
    pid: int = 0
    host: str = ""


class Teller:
    """Progress that is written down, and passed on.

    Args:
        run: Folder of the run.
        standing: How it begins.
        inner: Where progress goes besides.
    """

    def __init__(self, run: Path, standing: Standing, inner: Progress | None = None) -> None:
        self.inner = inner or Silent()
        self._file = run / FOLDER / FILE
        self._now = standing
        self._started = time.monotonic()
        self._written = 0.0
        self.tell()

    def tell(self, **values: Any) -> None:
        """Change and write the standing."""
        self._now = replace(self._now, **values, seconds=self._seconds())
        self._written = time.monotonic()
        partial = self._file.with_suffix(f".{os.getpid()}.partial")
        told = {"format_version": FORMAT_VERSION, **asdict(self._now)}
        partial.write_text(json.dumps(told, ensure_ascii=False) + "\n", encoding="utf-8")
        partial.replace(self._file)

    def _seconds(self) -> float:
        return round(time.monotonic() - self._started, 1)

    def say(self, line: str) -> None:
        """Tell a step that has no progress of its own."""
        self.tell(stage="write", done=0, total=0, says=line)

    def begin(self, stage: str, total: int) -> None:
        """Tell that a stage begins."""
        says = STAGES.get(stage, stage.replace("_", " "))
        self.tell(stage=stage, done=0, total=total, says=says)
        self.inner.begin(stage, total)

    def advance(self, steps: int = 1, figures: Mapping[str, Any] | None = None) -> None:
        """Tell how far the stage is, now and then."""
        self._now = replace(self._now, done=self._now.done + steps)
        if time.monotonic() - self._written >= EVERY_S:
            self.tell()
        self.inner.advance(steps, figures)

    def end(self) -> None:
        """Nothing to tell: the next stage follows."""
        self.inner.end()


@contextmanager
def telling(run: Path, who: str, key: str, inner: Progress | None = None) -> Iterator[Teller]:
    """Write down how far a training is, from its beginning to its end.

    Args:
        run: Folder of a finished run.
        who: Who asked for it.
        key: Tells it from all others.
        inner: Where progress goes besides.

    Raises:
        UsageError: Somebody trains it already.
    """
    (run / FOLDER).mkdir(exist_ok=True)
    with (run / FOLDER / LOCK).open("a") as lock:
        if not _locked(lock):
            raise UsageError(f"run '{run}' is being updated by another process; wait for it")
        before = current_number(run)
        began = datetime.now(UTC).isoformat(timespec="milliseconds")
        standing = Standing("running", says="starting", key=key, who=who, began=began)
        here = replace(standing, before=before, pid=os.getpid(), host=socket.gethostname())
        teller = Teller(run, here, inner)
        try:
            yield teller
        except BaseException as problem:
            version = current_number(run)
            if version > before:  # too late: the new version counts already
                teller.tell(phase="done", says="", version=version)
            elif isinstance(problem, KeyboardInterrupt):
                teller.tell(phase="cancelled", says="cancelled; nothing was changed")
            else:
                teller.tell(phase="failed", says=_line(problem))
            raise
        teller.tell(phase="done", says="", version=current_number(run))


def read_standing(run: Path) -> Standing | None:
    """Return how far the last training of a run is or how it ended, None if there was none.

    Args:
        run: Folder of the run.
    """
    file = run / FOLDER / FILE
    found = _read(file)
    if found is None or found.phase != "running":
        return found
    if _is_held(run, file):
        began = datetime.fromisoformat(found.began).timestamp()
        return replace(found, seconds=round(max(0.0, time.time() - began), 1))
    again = _read(file)  # it may have ended well between the two looks
    if again is not None and again.phase != "running":
        return again
    version = current_number(run)
    if version > found.before:
        return replace(found, phase="done", says="", version=version)
    return replace(found, phase="failed", says="it was stopped before its end; nothing was changed")


def _read(file: Path) -> Standing | None:
    try:
        told = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # never trained, or damaged: it only ever tells of the past
        return None
    known = {each.name for each in fields(Standing)}
    try:
        return Standing(**{name: value for name, value in told.items() if name in known})
    except (TypeError, AttributeError):
        return None


def _line(problem: BaseException) -> str:
    """Return a problem in one line."""
    text = " ".join(str(problem).split())
    if isinstance(problem, RonidError) and text:
        return text
    return f"it broke off: {type(problem).__name__}{f': {text}' if text else ''}"


def _locked(file: IO[str]) -> bool:
    """Take the lock until the file is closed; return whether that was possible."""
    try:
        import fcntl
    except ImportError:  # no such locks here; `next_version` has the same trouble
        return True
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                return False
            time.sleep(0.02)
        else:
            return True


def _is_held(run: Path, file: Path) -> bool:
    """Return whether somebody trains now."""
    try:
        import fcntl
    except ImportError:
        return time.time() - file.stat().st_mtime < SILENT_S
    try:
        with (run / FOLDER / LOCK).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
