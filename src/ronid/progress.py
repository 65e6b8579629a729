"""How long work tells what it is doing; the command line draws it, the library stays silent."""

from collections.abc import Mapping
from typing import Any, Protocol


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
