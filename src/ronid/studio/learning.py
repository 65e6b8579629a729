"""Training on from the studio: one at a time, whoever began it, and whatever restarts meanwhile."""

import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ronid.errors import UsageError
from ronid.learn.decisions import NothingDecidedError, check_decided
from ronid.learn.job import Job, cancel
from ronid.learn.standing import Standing, read_standing
from ronid.review.desk import FILE, Desk

SHOWN = ("key", "phase", "stage", "done", "total", "says", "seconds", "who", "began", "version")


class Learning:
    """The trainings of a run.

    Args:
        run: Its folder.
        where: Path or URL of the events; `review.sqlite` in the folder when None.
    """

    def __init__(self, run: Path, where: str | None = None) -> None:
        self.run, self.where = run, where
        self._lock = threading.Lock()
        self._job: Job | None = None
        self._told = ""  # key of the last training of ours that is on disk

    def standing(self) -> Standing | None:
        """Return how far the last training is, ours or that of another process."""
        told, job = read_standing(self.run), self._job
        if told is not None and job is not None and told.key == job.key:
            self._told = job.key
        if job is None or (told is not None and told.phase == "running"):
            return told
        if self._told == job.key and told is not None and told.key != job.key:
            return told  # somebody else's, after ours
        return job.standing()

    def start(self, desk: Desk, who: str) -> None:
        """Begin to train.

        Args:
            desk: The review.
            who: Who asks for it.

        Raises:
            UsageError: Somebody trains already, or there is nothing to learn.
        """
        with self._lock:
            now = self.standing()
            if now is not None and now.phase == "running":
                raise UsageError(f"{now.who} is training it already; wait for it, or cancel it")
            reason = why_not(desk)
            if reason:
                raise UsageError(reason)
            self._job = Job(self.run, self.where or str(self.run / FILE), who)

    def cancel(self) -> None:
        """Stop what is being trained.

        Raises:
            UsageError: Nothing is, or it cannot be stopped from here.
        """
        with self._lock:
            now, job = self.standing(), self._job
            if now is None or now.phase != "running":
                raise UsageError("nothing is being trained")
            if job is not None and job.key == now.key:
                job.cancel()
            else:
                cancel(now)


def why_not(desk: Desk) -> str:
    """Return in one line why nothing can be learnt, empty if something can.

    Args:
        desk: The review.
    """
    try:
        check_decided(desk)
    except NothingDecidedError as problem:
        return str(problem)
    return ""


def shown(standing: Standing | None) -> dict[str, Any] | None:
    """Return what pages see of a standing."""
    return None if standing is None else {name: asdict(standing)[name] for name in SHOWN}
