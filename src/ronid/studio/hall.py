"""The hall: leads to the room of the run's current version, and on to the next one."""

import logging
import threading
from collections.abc import Callable
from pathlib import Path

from ronid.errors import RonidError
from ronid.review.desk import open_desk
from ronid.studio.learning import Learning
from ronid.studio.room import Room
from ronid.versions import current_number, version_folder

LINGER_S = 30.0
"""How long a room stays usable for those who are still in it when another takes its place."""

_log = logging.getLogger("ronid.studio")
Sign = tuple[int, int]


class Hall:
    """Everything that a studio serves; whoever comes in asks for the room anew.

    A training, an update or an undo, by whomever, gives the run another version: its review is
    opened beside the old one, which serves until then.

    Args:
        room: The review, opened after `sign` was taken.
        run: Folder of the run.
        where: Path or URL of the events; `review.sqlite` in the folder when None.
        sign: Tells the version that was there before the review was opened.
    """

    def __init__(self, room: Room, run: Path, where: str | None, sign: Sign) -> None:
        self.room, self.run, self.where = room, run, where
        self.learning = Learning(run, where)
        self._lock = threading.Lock()
        self._sign = sign

    @property
    def version(self) -> int:
        """Version of the run that is shown."""
        return self._sign[0]

    def open(self) -> None:
        """Start what works in the background."""
        self.room.open()

    def close(self) -> None:
        """Stop it, and let go of the store."""
        self.room.close()

    def refresh(self) -> None:
        """Take in what others recorded, and go on to another version of the run if there is one.

        Raises:
            RonidError: The events or the run cannot be read now.
        """
        self.room.desk.refresh()
        with self._lock:
            sign = sign_of(self.run)
            if sign == self._sign:
                return
            try:
                self._move_on()
            except RonidError as problem:
                _log.warning("the studio stays with the version it has: %s", problem)
            # Taken before the run was read: what came meanwhile is noticed the next time.
            self._sign = sign

    def _move_on(self) -> None:
        old = self.room
        room = Room(open_desk(self.run, self.where, _log.warning), old.title, like=old)
        room.open()
        self.room = room
        old.rest()
        timer = threading.Timer(LINGER_S, old.close)
        timer.daemon = True
        timer.start()


def open_hall(
    run: Path,
    where: str | None = None,
    title: str | None = None,
    said: Callable[[str], None] = lambda _: None,
) -> Hall:
    """Open a finished run for review.

    Args:
        run: Its folder.
        where: Path or URL of the events; `review.sqlite` in the folder when None.
        title: What to call it; what its utterances came from when None.
        said: Told in one line where events could not be applied.

    Raises:
        DataError: There is no finished run.
        UsageError: The events cannot be opened.
    """
    sign = sign_of(run)
    desk = open_desk(run, where, said)
    return Hall(Room(desk, title or desk.base.title), run, where, sign)


def sign_of(run: Path) -> Sign:
    """Return what tells a version from all others, also from one of the same number.

    Raises:
        DataError: The run is damaged.
    """
    number = current_number(run)
    try:
        return number, (version_folder(run, number) / "run.json").stat().st_mtime_ns
    except OSError:
        return number, 0
