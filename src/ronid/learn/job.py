"""Train on in the background: a process of its own, which a page can follow and stop.

The page stays quick while it runs, a kill of either leaves the old version or the new one, and
what was trained is there even if nobody waits for it. How far it is lies on disk, see `standing`.
"""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from ronid.errors import UsageError
from ronid.files import read_json
from ronid.learn.standing import Standing, read_standing
from ronid.review.desk import LEARNED
from ronid.versions import version_folder

STORE = "RONID_REVIEW_STORE"
"""Variable that names the store: a URL may hold a password, which a command line would show."""


class Job:
    """A training in the background.

    Args:
        run: Folder of the run.
        where: Path or URL of the events; `review.sqlite` in the folder when None.
        who: Who asks for it.
        device: Where it is trained.
        encoder: Folder of the base encoder, if it has moved.
    """

    def __init__(
        self,
        run: Path,
        where: str | None = None,
        who: str = "ronid",
        device: str = "auto",
        encoder: str | None = None,
    ) -> None:
        self.run, self.who, self.key = run, who, uuid4().hex
        self._began = time.monotonic()
        self._ended: float | None = None
        self._cancelled = False
        self._lock = threading.Lock()
        command = [sys.executable, "-m", "ronid", "learn", str(run), "--quiet"]
        command += [f"--job={self.key}", f"--who={who}", f"--device={device}"]
        command += [f"--encoder={encoder}"] if encoder else []
        environment = {name: value for name, value in os.environ.items() if name != STORE}
        environment |= {STORE: where} if where else {}
        # A file: a pipe would break with the one who reads it.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process
        self._process = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            stdin=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,  # whoever stops the page does not stop the training
        )

    def standing(self) -> Standing:
        """Return how far it is."""
        with self._lock:
            code = self._process.poll()  # before the file: what it wrote last is there then
            if code is not None and self._ended is None:
                self._ended = time.monotonic()
            told = read_standing(self.run)
            mine = told if told is not None and told.key == self.key else None
            if code is None:
                return mine or self._own("running", "starting")
            if mine is not None and mine.phase == "failed" and self._cancelled:
                mine = replace(mine, phase="cancelled", says="cancelled; nothing was changed")
            if mine is not None and mine.phase != "running":
                return mine
            if self._cancelled:
                return self._own("cancelled", "cancelled; nothing was changed")
            return self._own("failed", self._last_line() or f"it was stopped ({code})")

    def _own(self, phase: Any, says: str) -> Standing:
        """Return how far it is where the process itself has not told anything."""
        seconds = round((self._ended or time.monotonic()) - self._began, 1)
        return Standing(phase, says=says, seconds=seconds, key=self.key, who=self.who)

    def _last_line(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "replace").split("\n")
        told = [line.strip() for line in lines if line.strip()]
        return told[-1].removeprefix("ronid: ") if told else ""

    @property
    def result(self) -> dict[str, Any] | None:
        """What it did, once it is done: see `Learned`."""
        now = self.standing()
        return read_learned(self.run, now.version) if now.phase == "done" else None

    def poll(self) -> dict[str, Any]:
        """Return how far it is as plain values, with what it did once it is done."""
        return asdict(self.standing()) | {"result": self.result}

    def cancel(self) -> None:
        """Stop it, unless it is over; nothing of the run changes."""
        if self.standing().phase == "running":
            self._cancelled = True
            self._process.terminate()

    def wait(self, timeout: float | None = None) -> Standing:
        """Wait until it is over, or so many seconds; return how far it is."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout)
        return self.standing()


def cancel(standing: Standing) -> None:
    """Stop a training that any process of this machine has begun.

    Args:
        standing: How far it is.

    Raises:
        UsageError: It runs elsewhere.
    """
    if standing.host != socket.gethostname():
        raise UsageError(f"it trains on the machine '{standing.host}'; cancel it there")
    try:
        os.kill(standing.pid, signal.SIGTERM)
    except ProcessLookupError:  # over by now
        return
    except PermissionError:
        raise UsageError("it was begun by another user of this machine; cancel it there") from None


def read_learned(run: Path, version: int) -> dict[str, Any] | None:
    """Return what the training that made a version did, None if none did or it is gone.

    Args:
        run: Folder of the run.
        version: A version of it.
    """
    file = version_folder(run, version) / LEARNED
    if not version or not file.is_file():
        return None
    done: dict[str, Any] = read_json(file)["done"]
    return done
