"""Events in one SQLite file, which travels with the run."""

import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ronid.errors import UsageError
from ronid.review.events import (
    Event,
    Recorded,
)
from ronid.review.store import FORMAT, Admit, check_retry
from ronid.review.wire import action_from_json, action_to_json

BUSY_S = 30.0
"""How long one writer waits for another."""

_SCHEMA = """
CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    who TEXT NOT NULL,
    at TEXT NOT NULL,
    seen INTEGER NOT NULL,
    action TEXT NOT NULL
) STRICT;
CREATE TABLE about (run TEXT NOT NULL) STRICT;
CREATE TRIGGER no_update BEFORE UPDATE ON events
    BEGIN SELECT RAISE(ABORT, 'events are never changed'); END;
CREATE TRIGGER no_delete BEFORE DELETE ON events
    BEGIN SELECT RAISE(ABORT, 'events are never removed'); END;
"""
_COLUMNS = "seq, key, who, at, seen, action"
_Row = tuple[int, str, str, str, int, str]


class SqliteStore:
    """The log of one run in one file.

    Args:
        path: The file; it is made where there is none.
        run: Fingerprint of the run.
    """

    def __init__(self, path: Path, run: str) -> None:
        self.path = path
        self._lock = threading.Lock()
        try:
            self._db = sqlite3.connect(
                path, timeout=BUSY_S, isolation_level=None, check_same_thread=False
            )
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            self._prepare(run)
        except sqlite3.DatabaseError as error:
            raise UsageError(f"the review '{path}' cannot be opened ({error})") from None

    def _prepare(self, run: str) -> None:
        """Make the tables, or check that they are ours."""
        with self._writing():
            version = self._db.execute("PRAGMA user_version").fetchone()[0]
            if version > FORMAT:
                raise UsageError(f"'{self.path}' was written by a newer ronid; upgrade to read it")
            if version == 0:
                for statement in _statements(_SCHEMA):
                    self._db.execute(statement)
                self._db.execute("INSERT INTO about VALUES (?)", (run,))
                self._db.execute(f"PRAGMA user_version = {FORMAT}")
            elif self._db.execute("SELECT run FROM about").fetchone()[0] != run:
                raise UsageError(f"'{self.path}' is the review of another run")

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Hold the one write lock of the file; end with all of it or nothing."""
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    def append(self, event: Event, after: int, admit: Admit) -> Recorded:
        """Append an event, see `Store`."""
        try:
            with self._writing():
                return self._append(event, after, admit)
        except sqlite3.OperationalError as error:
            raise UsageError(f"nothing was written to '{self.path}': {error}") from None

    def _append(self, event: Event, after: int, admit: Admit) -> Recorded:
        query = f"SELECT {_COLUMNS} FROM events WHERE key = ?"
        stored = self._db.execute(query, (event.key,)).fetchone()
        if stored is not None:
            return check_retry(event, _recorded(stored))
        admit(self._since(after))
        seq = self._db.execute("SELECT coalesce(max(seq), 0) + 1 FROM events").fetchone()[0]
        action = json.dumps(action_to_json(event.action), ensure_ascii=False)
        self._db.execute(
            f"INSERT INTO events ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)",
            (seq, event.key, event.who, event.at, event.seen, action),
        )
        return Recorded(seq, event)

    def since(self, after: int) -> list[Recorded]:
        """Return all later events, see `Store`."""
        with self._lock:
            return self._since(after)

    def _since(self, after: int) -> list[Recorded]:
        query = f"SELECT {_COLUMNS} FROM events WHERE seq > ? ORDER BY seq"
        return [_recorded(row) for row in self._db.execute(query, (after,))]

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()


def _statements(script: str) -> list[str]:
    """Return the statements of a script; `executescript` would end the transaction."""
    found, part = [], ""
    for line in script.splitlines(keepends=True):
        part += line
        if sqlite3.complete_statement(part):
            found.append(part)
            part = ""
    return found


def _recorded(row: _Row) -> Recorded:
    seq, key, who, at, seen, action = row
    return Recorded(seq, Event(action_from_json(json.loads(action)), who, key, seen, at))
