"""Events in PostgreSQL, for teams that share a server; many runs share the tables."""

import json
import threading
from typing import Any

from ronid.errors import MissingExtraError, UsageError
from ronid.review.events import (
    Event,
    Recorded,
)
from ronid.review.store import FORMAT, Admit, check_retry
from ronid.review.wire import action_from_json, action_to_json

_SCHEMA = """
CREATE TABLE IF NOT EXISTS ronid_runs (
    run text PRIMARY KEY,
    format integer NOT NULL,
    last bigint NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS ronid_events (
    run text NOT NULL REFERENCES ronid_runs,
    seq bigint NOT NULL,
    key text NOT NULL,
    who text NOT NULL,
    at text NOT NULL,
    seen bigint NOT NULL,
    action text NOT NULL,
    PRIMARY KEY (run, seq),
    UNIQUE (run, key)
);
CREATE OR REPLACE FUNCTION ronid_events_stay() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'events are never changed or removed'; END $$;
CREATE OR REPLACE TRIGGER ronid_events_stay BEFORE UPDATE OR DELETE ON ronid_events
    FOR EACH ROW EXECUTE FUNCTION ronid_events_stay();
"""
_MAKING = 7_306_401
"""Advisory lock that keeps two processes from making the tables at once."""

_COLUMNS = "seq, key, who, at, seen, action"


class PostgresStore:
    """The log of one run in a database.

    Args:
        url: Where the server is; its password is never shown.
        run: Fingerprint of the run.
    """

    def __init__(self, url: str, run: str) -> None:
        try:
            import psycopg
        except ImportError:
            raise MissingExtraError("psycopg", "postgres") from None
        self._psycopg: Any = psycopg
        self._url, self._run = url, run
        self._lock = threading.Lock()
        self._db: Any = None
        with self._lock:
            self._prepare(self._connected())

    def _connected(self) -> Any:
        """Return a living connection; a server that was restarted is found again."""
        if self._db is not None and not self._db.closed:
            return self._db
        try:
            self._db = self._psycopg.connect(self._url, autocommit=True, connect_timeout=10)
            # A confirmed event is on disk, whatever the server's own setting.
            self._db.execute("SET synchronous_commit = on")
        except self._psycopg.Error as error:
            said = " ".join(str(error).split())
            raise UsageError(f"the review's database cannot be reached: {said}") from None
        return self._db

    def _prepare(self, db: Any) -> None:
        with db.transaction():
            db.execute("SELECT pg_advisory_xact_lock(%s)", (_MAKING,))
            db.execute(_SCHEMA)
            db.execute(
                "INSERT INTO ronid_runs (run, format) VALUES (%s, %s) ON CONFLICT DO NOTHING",
                (self._run, FORMAT),
            )
            query = "SELECT format FROM ronid_runs WHERE run = %s"
            if db.execute(query, (self._run,)).fetchone()[0] > FORMAT:
                raise UsageError("this review was written by a newer ronid; upgrade to read it")

    def append(self, event: Event, after: int, admit: Admit) -> Recorded:
        """Append an event, see `Store`."""
        with self._lock:
            return self._again(lambda db: self._append(db, event, after, admit))

    def _again(self, work: Any) -> Any:
        """Do some work, a second time if the connection was lost; keys make that harmless."""
        for last in (False, True):
            db = self._connected()
            try:
                return work(db)
            except self._psycopg.OperationalError as error:
                if last or not db.closed:
                    said = " ".join(str(error).split())
                    raise UsageError(f"nothing was written: {said}") from None
        raise AssertionError

    def _append(self, db: Any, event: Event, after: int, admit: Admit) -> Recorded:
        with db.transaction():
            # The row of the run is the write lock, so numbers have no gaps.
            query = "SELECT last + 1 FROM ronid_runs WHERE run = %s FOR UPDATE"
            seq = db.execute(query, (self._run,)).fetchone()[0]
            query = f"SELECT {_COLUMNS} FROM ronid_events WHERE run = %s AND key = %s"
            stored = db.execute(query, (self._run, event.key)).fetchone()
            if stored is not None:
                return check_retry(event, _recorded(stored))
            admit(self._since(db, after))
            action = json.dumps(action_to_json(event.action), ensure_ascii=False)
            db.execute(
                f"INSERT INTO ronid_events (run, {_COLUMNS}) VALUES (%s, %s, %s, %s, %s, %s, %s)",
                (self._run, seq, event.key, event.who, event.at, event.seen, action),
            )
            db.execute("UPDATE ronid_runs SET last = %s WHERE run = %s", (seq, self._run))
            return Recorded(seq, event)

    def since(self, after: int) -> list[Recorded]:
        """Return all later events, see `Store`."""
        with self._lock:
            found: list[Recorded] = self._again(lambda db: self._since(db, after))
            return found

    def _since(self, db: Any, after: int) -> list[Recorded]:
        query = f"SELECT {_COLUMNS} FROM ronid_events WHERE run = %s AND seq > %s ORDER BY seq"
        return [_recorded(row) for row in db.execute(query, (self._run, after))]

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            if self._db is not None:
                self._db.close()


def _recorded(row: tuple[Any, ...]) -> Recorded:
    seq, key, who, at, seen, action = row
    return Recorded(seq, Event(action_from_json(json.loads(action)), who, key, seen, at))
