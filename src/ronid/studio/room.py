"""The room of a review: its desk, and what is worked out beside it while people read."""

import logging
import threading
import time
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ronid.review.desk import Desk, View
from ronid.review.nearness import Centres, Members, Near, members, nearest
from ronid.review.propose import ProposedSplit, propose_name, propose_split
from ronid.review.search import Index
from ronid.review.state import State
from ronid.review.suggest import Suggestions, still_stands, suggest
from ronid.types import FloatArray

SETTLED_S = 1.0
"""How long nothing must have happened before suggestions are made anew."""

_log = logging.getLogger("ronid.studio")


class Room:
    """A review that people work on.

    Args:
        desk: The review.
        title: What to call it.
        like: The room before, of another version of the run; its search is used where it can be.
    """

    def __init__(self, desk: Desk, title: str, like: "Room | None" = None) -> None:
        self.desk, self.title = desk, title
        self.base = desk.base
        if like is not None and like.base.texts == self.base.texts:
            self.index = like.index
        self._centres = None if self.base.unit is None else Centres(self.base)
        self._worker_centres = None if self.base.unit is None else Centres(self.base)
        self._lock = threading.Lock()
        self._suggestions = Suggestions(-1, (), None)
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def open(self) -> None:
        """Start what works in the background."""
        for work in (lambda: self.index, self._keep_suggesting):
            thread = threading.Thread(target=work, daemon=True)
            thread.start()
            self._threads.append(thread)

    def rest(self) -> None:
        """Stop it; those who are in the room can still act."""
        self._stop.set()

    def close(self) -> None:
        """Stop it, and let go of the store."""
        self.rest()
        for thread in self._threads:
            thread.join(timeout=5)
        self.desk.close()

    @cached_property
    def index(self) -> Index:
        """Search over all utterances."""
        return Index(self.base.texts)

    @property
    def has_vectors(self) -> bool:
        """Whether nearness can be told."""
        return self._centres is not None

    def centres(self, state: State) -> FloatArray | None:
        """Return the centres of all intents, None where the run keeps no vectors."""
        if self._centres is None:
            return None
        with self._lock:
            return self._centres.of(state)

    def members(self, state: State, id: str) -> Members:
        """Return the utterances of an intent by how well they belong."""
        return members(self.base, state, id, self.centres(state))

    def nearest(self, state: State, id: str) -> list[Near]:
        """Return the intents most like one."""
        centres = self.centres(state)
        if centres is None or not state.counts[state.intents[id].slot]:
            return []
        return nearest(state, id, centres)

    def split(self, id: str, parts: int | None) -> ProposedSplit:
        """Propose a split of an intent as it is now."""
        return propose_split(self.base, self.desk.view().state, id, parts)

    def name(self, rows: NDArray[np.int64]) -> str:
        """Propose a name for some utterances."""
        return propose_name(self.base, self.desk.view().state, rows)

    def suggestions(self, state: State) -> Suggestions:
        """Return the latest suggestions, less those that this state has overtaken."""
        latest = self._suggestions
        found = tuple(each for each in latest.found if still_stands(each, state))
        return replace(latest, found=found)

    def _keep_suggesting(self) -> None:
        """Make suggestions anew whenever people have stopped for a moment."""
        seen, since = -1, 0.0
        while not self._stop.wait(0.2):
            version = self.desk.version
            if version != seen:
                seen, since = version, time.monotonic()
            first = self._suggestions.version < 0
            settled = first or time.monotonic() - since >= SETTLED_S
            if self._suggestions.version != version and settled:
                self._make(self.desk.view())

    def _make(self, view: View) -> None:
        try:
            made = suggest(self.base, view.state, view.version, self._worker_centres)
        except Exception:  # suggestions are a help; the review goes on without them
            _log.exception("suggestions could not be made")
            made = Suggestions(view.version, (), None)
        self._suggestions = made
