"""Ctrl-C: one line that says what is left and what to do next, and exit code 130."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ronid.errors import RonidError

UNCHANGED = "nothing was changed, run the same command again"


class StoppedError(RonidError):
    """The user interrupted a command.

    Args:
        left: What is left, and what to do next.
    """

    exit_code = 130

    def __init__(self, left: str) -> None:
        super().__init__(f"interrupted; {left}")


@contextmanager
def on_interrupt(left: str | Callable[[], str]) -> Iterator[None]:
    """Say what an interrupt leaves, around a block or, as a decorator, a whole verb.

    The option parser would end such a verb without a word. Where blocks lie within each other the
    inner one speaks.

    Args:
        left: What is left and what to do next, or a function that looks for it.

    Raises:
        StoppedError: The block was interrupted.
    """
    try:
        yield
    except KeyboardInterrupt:
        raise StoppedError(left if isinstance(left, str) else left()) from None


def version_left(run: Path) -> Callable[[], str]:
    """Return a function that says whether a run has another version than now, or is as it was.

    Args:
        run: Folder of a finished run.
    """
    from ronid.versions import current_number

    before = current_number(run)

    def left() -> str:
        now = current_number(run)
        if now == before:
            return UNCHANGED
        back = f"take it back with: ronid undo {run}" if now > before else "it is back"
        return f"but version {now} counts already; {back}"

    return left
