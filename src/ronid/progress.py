"""How long work tells what it is doing; the command line draws it, the library stays silent."""

import time
from collections.abc import Mapping
from typing import Any, Protocol

STAGES = {
    "encode": "embedding utterances",
    "pretrain": "pre-training",
    "contrast": "contrastive learning",
    "em": "discovering (EM)",
    "pairs": "learning from pairs",
    "similarity": "learning which pairs are alike",
    "reconstruct": "training the auto-encoder",
}
"""Stages of training in the words of people."""


class Progress(Protocol):
    """Receiver of progress: stages one after another, each with a number of steps."""

    def begin(self, stage: str, total: int) -> None:
        """A stage of `total` steps starts."""

    def advance(self, steps: int = 1, figures: Mapping[str, Any] | None = None) -> None:
        """`steps` more are done; `figures` are the newest losses and diagnostics."""

    def end(self) -> None:
        """The stage is over, possibly before its last step."""


class Silent:
    """Progress that goes nowhere."""

    def begin(self, stage: str, total: int) -> None:
        """Ignore."""

    def advance(self, steps: int = 1, figures: Mapping[str, Any] | None = None) -> None:
        """Ignore."""

    def end(self) -> None:
        """Ignore."""


class Stopwatch:
    """Progress that passes everything on and notes the seconds of every stage.

    Args:
        inner: Where progress goes.
    """

    def __init__(self, inner: Progress | None = None) -> None:
        self.inner = inner or Silent()
        self.seconds: dict[str, float] = {}
        self._stage, self._started = "", 0.0

    def begin(self, stage: str, total: int) -> None:
        """Start the clock of a stage."""
        self._stage, self._started = stage, time.perf_counter()
        self.inner.begin(stage, total)

    def advance(self, steps: int = 1, figures: Mapping[str, Any] | None = None) -> None:
        """Pass on."""
        self.inner.advance(steps, figures)

    def end(self) -> None:
        """Add the stage's seconds; a stage may run in several parts."""
        spent = time.perf_counter() - self._started
        self.seconds[self._stage] = self.seconds.get(self._stage, 0.0) + spent
        self.inner.end()
