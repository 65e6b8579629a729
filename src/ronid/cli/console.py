"""What the command line shows: results on stdout; progress, warnings and errors on stderr."""

import json
import sys
import time
import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, TextIO

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from ronid.errors import RonidWarning
from ronid.files import without_nan
from ronid.progress import STAGES


def error(message: str) -> None:
    """Print one line of error; an open bar is closed, which else hides the cursor for good."""
    if Bars.shown is not None:
        Bars.shown.end()
    print(f"ronid: {' '.join(message.split())}", file=sys.stderr)


def note(message: str) -> None:
    """Print one line about what is going on."""
    print(message, file=sys.stderr, flush=True)


def print_json(value: Any) -> None:
    """Print a result for programs."""
    print(json.dumps(without_nan(value), indent=2, ensure_ascii=False))


def show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print our own warnings as one line; other libraries' stay out of the user's way."""
    if issubclass(category, RonidWarning):
        note(f"warning: {message}")
    elif sys.warnoptions:
        note(warnings.formatwarning(message, category, filename, lineno, line))


class Bars:
    """Progress bars with time left on a terminal, plain lines elsewhere.

    Attributes:
        shown: Whose bar is on the terminal, if any.
    """

    shown: "ClassVar[Bars | None]" = None

    def __init__(self) -> None:
        self.console = Console(stderr=True)
        self._bars: Progress | None = None
        self._task: TaskID | None = None
        self._stage, self._total, self._done = "", 0, 0
        self._started = self._said = 0.0

    def begin(self, stage: str, total: int) -> None:
        """Open a bar, or say that a stage starts."""
        self._stage, self._total, self._done = STAGES.get(stage, stage.replace("_", " ")), total, 0
        self._started = self._said = time.monotonic()
        if not self.console.is_terminal:
            note(f"{self._stage} ...")
            return
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[figures]}"),
            console=self.console,
        )
        self._bars.start()
        Bars.shown = self
        self._task = self._bars.add_task(self._stage, total=total, figures="")

    def advance(self, steps: int = 1, figures: Mapping[str, Any] | None = None) -> None:
        """Move the bar, or say every ten seconds how far it is and how long it may take."""
        self._done += steps
        shown = _figures(figures or {})
        if self._bars is not None and self._task is not None:
            if shown:
                self._bars.update(self._task, figures=shown)
            self._bars.update(self._task, advance=steps)
            return
        now = time.monotonic()
        if now - self._said >= 10 and self._done:
            self._said = now
            left = (now - self._started) * (self._total - self._done) / self._done
            tail = f"  {shown}" if shown else ""
            note(f"{self._stage}: {self._done}/{self._total}, about {left:.0f} s left{tail}")

    def end(self) -> None:
        """Close the bar."""
        if self._bars is not None:
            self._bars.stop()
            self._bars = self._task = Bars.shown = None
        elif self._stage:
            note(f"{self._stage}: done in {time.monotonic() - self._started:.1f} s")


def _figures(row: Mapping[str, Any]) -> str:
    """Return the few figures worth a glance."""
    parts = []
    if "loss" in row:
        parts.append(f"loss {row['loss']:.3f}")
    if "dev_accuracy" in row:
        parts.append(f"dev {row['dev_accuracy']:.1f}%")
    if "changed" in row:
        parts.append(f"changed {100 * row['changed']:.1f}%")
    return "  ".join(parts)
