"""The desk: the one place where actions come in, whoever wants them, from whatever page."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ronid.errors import UsageError
from ronid.files import read_json
from ronid.review.base import Base, read_base
from ronid.review.events import (
    Action,
    Event,
    Learn,
    Recorded,
    Redo,
    Undo,
    make_event,
)
from ronid.review.state import State, start
from ronid.review.store import Store, store_for
from ronid.review.timeline import Entry, Timeline
from ronid.review.wire import event_from_json
from ronid.run import open_finished
from ronid.versions import version_folder

FILE = "review.sqlite"
LEARNED = "learned.json"
"""What a version that was trained on tells of itself: the event, and what changed."""


@dataclass(frozen=True)
class View:
    """What a person looks at: a state, and the version it is."""

    version: int
    state: State


class Desk:
    """A review in progress; safe to use from many threads, beside other processes.

    Args:
        base: The run.
        store: Its events.
    """

    def __init__(self, base: Base, store: Store) -> None:
        self.base = base
        self._store = store
        self._lock = threading.RLock()
        self._line = Timeline(start(base), base.arrivals)
        self.refresh()

    def act(self, action: Action, who: str, seen: int, key: str | None = None) -> Entry:
        """Do something: append one event.

        Args:
            action: What is done.
            who: Name of the person.
            seen: Version the person looked at.
            key: Key of the client; a retry with the same key changes nothing more.

        Returns:
            What was recorded; it is on disk.

        Raises:
            Conflict: Others acted on the same intents since.
            UsageError: It makes no sense; nothing was changed.
        """
        if isinstance(action, Learn):
            raise UsageError("only training on can say this; start it instead")
        event = make_event(action, who, seen, key)
        with self._lock:
            if isinstance(action, Undo | Redo) and self._is_training(action.target):
                raise UsageError("this was a training; take its version back on the page Learn")
            planned = []

            def admit(newer: list[Recorded]) -> None:
                self._take(newer)
                planned.append(self._line.plan(event))

            recorded = self._store.append(event, self._line.version, admit)
            if recorded.seq <= self._line.version:  # a retry
                return self._line.entries[recorded.seq - 1]
            if not planned:  # a retry of what another process has written
                self.refresh()
                return self._line.entries[recorded.seq - 1]
            return self._line.advance(recorded, planned[0])

    def _is_training(self, seq: int) -> bool:
        entries = self._line.entries
        return 1 <= seq <= len(entries) and isinstance(entries[seq - 1].event.action, Learn)

    def record(self, event: Event) -> Entry:
        """Append what has happened already; acts that it leaves no room for are left out."""
        with self._lock:
            recorded = self._store.append(event, self._line.version, self._take)
            if recorded.seq > self._line.version:  # where another process was first, more came
                self.refresh()
            return self._line.entries[recorded.seq - 1]

    def refresh(self) -> bool:
        """Take in what other processes recorded; return whether there was anything."""
        with self._lock:
            newer = self._store.since(self._line.version)
            self._take(newer)
            return bool(newer)

    def _take(self, newer: list[Recorded]) -> None:
        for recorded in newer:
            self._line.advance(recorded)

    @property
    def version(self) -> int:
        """Number of the last event that is known here."""
        return self._line.version

    def view(self, version: int | None = None) -> View:
        """Return the state now, or at an earlier version.

        Raises:
            NotApplicable: There is no such version.
        """
        with self._lock:
            if version is None:
                return View(self._line.version, self._line.state)
            return View(version, self._line.state_at(version))

    def entries(self, last: int | None = None) -> list[Entry]:
        """Return what happened, oldest first; only the `last` so many where given."""
        with self._lock:
            return self._line.entries[-last:] if last else list(self._line.entries)

    def acts(self) -> tuple[int, list[Entry]]:
        """Return the version of now, and the acts that count in it, in order."""
        with self._lock:
            entries = self._line.entries
            return self._line.version, [entries[seq - 1] for seq in sorted(self._line.counting)]

    def acts_at(self, version: int) -> frozenset[int]:
        """Return the numbers of the acts that counted at a version.

        Raises:
            NotApplicable: There is no such version.
        """
        with self._lock:
            return self._line.counting_at(version)

    @property
    def first(self) -> State:
        """The state before any act."""
        return self._line.first

    def counts(self, seq: int) -> bool:
        """Return whether an event has its effect now."""
        with self._lock:
            return self._line.counts(seq)

    def undoable(self, who: str) -> Entry | None:
        """Return what `Undo` would take back for this person."""
        with self._lock:
            return self._line.undoable(who)

    def redoable(self, who: str) -> Entry | None:
        """Return what `Redo` would do again for this person."""
        with self._lock:
            return self._line.redoable(who)

    def close(self) -> None:
        """Let go of the store."""
        self._store.close()


def catch_up(desk: Desk, run: Path) -> None:
    """Bring the log in line with the version of the run that counts.

    A version that was trained on and is not in the log (the process was killed in between) is
    recorded; one that is in the log and was undone since is taken back.

    Args:
        desk: The review, all events taken in. Versions are made before they are recorded, so what
            the log knows and the run does not is gone.
        run: Folder of the run.
    """
    kept = open_finished(run).facts().get("review", {})
    learned = {each["key"]: each["version"] for each in kept.get("learned", ())}
    entries = desk.entries()
    logged = {entry.event.key for entry in entries}
    for key, version in learned.items():
        if key not in logged:
            told = read_json(version_folder(run, version) / LEARNED)["event"]
            desk.record(event_from_json(told))
    for entry in entries:
        if isinstance(entry.event.action, Learn) and entry.event.key not in learned:
            _forget(desk, entry, entry.event.who)


def forget_training(desk: Desk, version: int, who: str) -> None:
    """Tell the log that a version which was trained is taken back; the run must say so already.

    Args:
        desk: The review, all events taken in.
        version: The version that is gone.
        who: Who took it back.
    """
    for entry in desk.entries():
        action = entry.event.action
        if isinstance(action, Learn) and action.version == version:
            _forget(desk, entry, who)


def _forget(desk: Desk, entry: Entry, who: str) -> None:
    """Take a training back, unless that was done."""
    if not entry.problem and desk.counts(entry.seq):
        key = f"undo-{entry.event.key}"[:64]
        desk.record(make_event(Undo(entry.seq), who, desk.version, key))


def open_desk(
    run: Path, where: str | None = None, said: Callable[[str], None] = lambda _: None
) -> Desk:
    """Open the review of a finished run.

    Args:
        run: Its folder.
        where: Path or postgresql:// URL of the events; `review.sqlite` in the folder when None.
        said: Told in one line where events could not be applied.

    Raises:
        DataError: There is no finished run.
        UsageError: The events cannot be opened.
    """
    base = read_base(run)
    desk = Desk(base, store_for(where or run / FILE, base.run))
    catch_up(desk, run)
    lost = [entry for entry in desk.entries() if entry.problem]
    if lost:
        first = lost[0]
        said(
            f"{len(lost)} recorded action(s) do not fit this version of the run and are left out, "
            f"the first is #{first.seq}, {first.event.who} {first.says}: {first.problem}"
        )
    return desk
