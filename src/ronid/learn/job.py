"""Train on in the background: a process of its own, which a page can follow and stop.

The page stays quick while it runs, a kill of either leaves the old version or the new one, and
what was trained is there even if nobody waits for it.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, Any, Literal

STORE = "RONID_REVIEW"
"""Variable that names the store: a URL may hold a password, which a command line would show."""

Phase = Literal["running", "done", "failed", "cancelled"]


@dataclass(frozen=True)
class Standing:
    """How far a job is.

    Args:
        phase: What it is doing.
        stage: Stage of the work, such as `encode`, `contrast` or `em`; empty before the first.
        done: Steps of the stage that are done.
        total: Steps of the stage.
        says: One line for people: the step, or why it failed.
        seconds: Since it began.
    """

    phase: Phase
    stage: str = ""
    done: int = 0
    total: int = 0
    says: str = ""
    seconds: float = 0.0


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
        self._lock = threading.Lock()
        self._standing = Standing("running", says="starting")
        self._began = time.monotonic()
        self.result: dict[str, Any] | None = None
        self._cancelled = False
        command = [sys.executable, "-m", "ronid", "learn", str(run), "--stream"]
        command += [f"--who={who}", f"--device={device}"]
        command += [f"--encoder={encoder}"] if encoder else []
        environment = {**os.environ, **({STORE: where} if where else {})}
        self._process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            env=environment,
            text=True,
            encoding="utf-8",
        )
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def standing(self) -> Standing:
        """Return how far it is."""
        with self._lock:
            if self._standing.phase != "running":
                return self._standing
            return replace(self._standing, seconds=round(time.monotonic() - self._began, 1))

    def poll(self) -> dict[str, Any]:
        """Return how far it is as plain values, with what it did once it is done."""
        found = asdict(self.standing())
        return found | {"result": self.result if found["phase"] == "done" else None}

    def cancel(self) -> None:
        """Stop it, unless it is over; nothing of the run changes."""
        with self._lock:
            if self._standing.phase != "running":
                return
            self._cancelled = True
        self._process.terminate()

    def wait(self, timeout: float | None = None) -> Standing:
        """Wait until it is over, or so many seconds; return how far it is."""
        self._thread.join(timeout)
        return self.standing()

    def _follow(self) -> None:
        """Read what the process tells until it ends."""
        out, errors = self._process.stdout, self._process.stderr
        assert out is not None
        assert errors is not None
        last: list[str] = []
        drain = threading.Thread(target=_keep_last, args=(errors, last), daemon=True)
        drain.start()
        for line in out:
            try:
                self._take(json.loads(line))
            except json.JSONDecodeError:
                continue
        code = self._process.wait()
        drain.join(timeout=5)
        with self._lock:
            self._standing = self._ended(code, last)

    def _take(self, told: Mapping[str, Any]) -> None:
        with self._lock:
            if "result" in told:
                self.result = dict(told["result"])
            else:
                self._standing = replace(self._standing, **told)

    def _ended(self, code: int, last: list[str]) -> Standing:
        """Return the last standing; whoever cancels too late has a new version all the same."""
        now = replace(self._standing, seconds=round(time.monotonic() - self._began, 1))
        if self.result is not None:
            return replace(now, phase="done", says="")
        if self._cancelled:
            return replace(now, phase="cancelled", says="cancelled; nothing was changed")
        says = last[-1].removeprefix("ronid: ") if last else f"it was stopped ({code})"
        return replace(now, phase="failed", says=says)


def _keep_last(stream: IO[str], last: list[str]) -> None:
    for line in stream:
        if line.strip():
            last[:] = [line.strip()]
