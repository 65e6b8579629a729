"""Where events are kept: append-only, numbered without gaps, written by many at once.

    store_for(where)    a path: SQLite, see `sqlite_store` ; a postgresql:// URL: `postgres_store`

An `append` that has returned is on disk: killing the process afterwards does not lose it.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from ronid.errors import UsageError
from ronid.review.events import Event, Recorded

Admit = Callable[[list[Recorded]], None]
"""Told what others appended; raises to refuse. Nobody can append while it is being asked."""

FORMAT = 1


class Store(Protocol):
    """A log of events of one run."""

    def append(self, event: Event, after: int, admit: Admit) -> Recorded:
        """Append an event, or return what is recorded under its key already.

        Args:
            event: What happened.
            after: The last event that the caller knows.
            admit: Asked with all events since, before anything is written.

        Raises:
            UsageError: The key was used for something else.
        """
        ...

    def since(self, after: int) -> list[Recorded]:
        """Return all events with a greater number, in order."""
        ...

    def close(self) -> None:
        """Let go of the connection."""
        ...


def store_for(where: str | Path, run: str) -> Store:
    """Open the store of a run.

    Args:
        where: Path of an SQLite file, or a URL that begins with postgresql://.
        run: Fingerprint of the run.

    Raises:
        UsageError: It cannot be opened, or belongs to another run.
        MissingExtraError: psycopg is not installed.
    """
    text = str(where)
    if text.startswith(("postgresql://", "postgres://")):
        from ronid.review.postgres_store import PostgresStore

        return PostgresStore(text, run)
    if "://" in text:
        scheme = text.partition("://")[0]
        raise UsageError(f"'{scheme}' is no store; give a path or a postgresql:// URL")
    from ronid.review.sqlite_store import SqliteStore

    return SqliteStore(Path(where), run)


def check_retry(event: Event, stored: Recorded) -> Recorded:
    """Return what is recorded under the event's key, if it is the same.

    Raises:
        UsageError: The key was used for something else.
    """
    if (stored.event.who, stored.event.action) != (event.who, event.action):
        raise UsageError("the key of this event was used for another one; make a new key")
    return stored
