"""The log as a line of versions: which acts count at each, and the state they fold to.

At every version a set of acts counts. An act joins it, `Undo` and `Redo` take one out or put it
back, `Return` restores the set of an earlier version; each of these is kept as what it added and
removed, so each can be taken back as well. The state is the fold of the acts that count, in the
order in which they happened. Nothing is ever removed from the log.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from ronid.review.apply import apply, touched
from ronid.review.arrivals import Arrival, check_arrived
from ronid.review.events import Action, Event, Learn, Recorded, Redo, Return, Undo
from ronid.review.problems import Conflict, NotApplicable, Since
from ronid.review.state import State
from ronid.review.words import say

Numbers = frozenset[int]
_NONE: Numbers = frozenset()
_SPACING = 16
_MOST_CHECKPOINTS = 64


@dataclass(frozen=True)
class Entry:
    """One event of the log, understood.

    Args:
        seq: Its number.
        event: What was recorded.
        says: It in words.
        touches: Ids of the intents it is about.
        added: Acts that count since.
        removed: Acts that do not count since.
        problem: Why it changed nothing, empty where it did; only where the run itself changed.
    """

    seq: int
    event: Event
    says: str
    touches: frozenset[str]
    added: Numbers
    removed: Numbers
    problem: str = ""


@dataclass(frozen=True)
class _Next:
    """What an event would do; its own number is not known yet, 0 stands for it."""

    state: State
    says: str
    touches: frozenset[str]
    added: Numbers
    removed: Numbers


class Timeline:
    """All versions of a review.

    Args:
        first: The state before any event.
        arrivals: Updates of the run, oldest first.
    """

    def __init__(self, first: State, arrivals: Sequence[Arrival] = ()) -> None:
        self.first, self.arrivals = first, arrivals
        self.state = first
        self.entries: list[Entry] = []
        self._counting: list[int] = []  # acts that count, ascending
        self._checkpoints: list[tuple[int, State]] = [(0, first)]  # after so many of them
        self._undone: dict[str, list[int]] = {}
        self.state_at = lru_cache(maxsize=8)(self._state_at)

    @property
    def version(self) -> int:
        """Number of the last event."""
        return len(self.entries)

    @property
    def counting(self) -> Numbers:
        """Acts that count now."""
        return frozenset(self._counting)

    def plan(self, event: Event) -> _Next:
        """Return what an event would do now.

        Raises:
            Conflict: Others acted on the same intents since the version that was seen.
            NotApplicable: It makes no sense now.
        """
        if event.seen > self.version:
            raise NotApplicable(f"version {event.seen} does not exist yet; load the page anew")
        # What others did comes first: it is often why the action makes no sense any more.
        self._check_conflict(event, self._touches(event.action))
        return self._work_out(event, strict=True)

    def _touches(self, action: Action) -> frozenset[str]:
        if not isinstance(action, Undo | Redo | Return):
            return touched(self.state, action)
        changed = frozenset().union(*self._delta(action))
        return frozenset().union(*(self.entries[seq - 1].touches for seq in changed))

    def _check_conflict(self, event: Event, touches: frozenset[str]) -> None:
        since = tuple(
            Since(entry.seq, entry.event.who, entry.event.at, entry.says)
            for entry in self.entries[event.seen :]
            if entry.event.who != event.who and entry.touches & touches
        )
        if since:
            raise Conflict(since, self.version)

    def _work_out(self, event: Event, *, strict: bool) -> _Next:
        """Return what an event does; what was admitted once is not looked at as strictly."""
        action = event.action
        if not isinstance(action, Undo | Redo | Return):
            check_arrived(self.arrivals, event)
            state, own = apply(self.state, action, event.who), frozenset((0,))
            return _Next(state, say(self.state, action), self._touches(action), own, _NONE)
        added, removed = self._delta(action)
        if strict and not added and not removed:
            raise NotApplicable("nothing would change")
        state = self._fold(sorted((self.counting | added) - removed), strict=strict)
        return _Next(state, self._say_set(action), self._touches(action), added, removed)

    def _say_set(self, action: Undo | Redo | Return) -> str:
        said = say(self.state, action)
        if isinstance(action, Return):
            return said
        return f"{said}: {self.entries[action.target - 1].says}"

    def _delta(self, action: Undo | Redo | Return) -> tuple[Numbers, Numbers]:
        """Return the acts that would count since, and those that would not any more."""
        counting = self.counting
        if isinstance(action, Return):
            wanted = self.counting_at(action.version)
            return wanted - counting, counting - wanted
        if not 1 <= action.target <= self.version:
            raise NotApplicable(f"there is no event #{action.target}")
        target = self.entries[action.target - 1]
        if isinstance(target.event.action, Undo | Redo):
            raise NotApplicable("choose what was done, not its undoing")
        on = self.counts(target.seq)
        if on != isinstance(action, Undo):
            raise NotApplicable(
                f"#{target.seq} {'counts already' if on else 'does not count any more'}"
            )
        added, removed = target.added, target.removed
        if isinstance(action, Undo):
            added, removed = removed, added
        return added - counting, removed & counting

    def counts(self, seq: int) -> bool:
        """Return whether an event has its effect now."""
        target = self.entries[seq - 1]
        if not isinstance(target.event.action, Return):
            return self._has(seq)
        on = True
        for entry in self.entries[seq:]:
            action = entry.event.action
            if isinstance(action, Undo | Redo) and action.target == seq and not entry.problem:
                on = isinstance(action, Redo)
        return on

    def _has(self, seq: int) -> bool:
        at = bisect_left(self._counting, seq)
        return at < len(self._counting) and self._counting[at] == seq

    def advance(self, recorded: Recorded, planned: _Next | None = None) -> Entry:
        """Take in the next event of the log.

        Args:
            recorded: The event.
            planned: What `plan` said of it, if it was asked and nothing came between.
        """
        assert recorded.seq == self.version + 1, "the log has a gap"
        event = recorded.event
        try:
            done = planned or self._work_out(event, strict=False)
        except NotApplicable as problem:  # the run itself was changed since
            entry = Entry(
                recorded.seq,
                event,
                say(self.state, event.action),
                frozenset(),
                _NONE,
                _NONE,
                str(problem),
            )
            self.entries.append(entry)
            return entry
        own = {0: recorded.seq}
        added = frozenset(own.get(seq, seq) for seq in done.added)
        entry = Entry(recorded.seq, event, done.says, done.touches, added, done.removed)
        self.entries.append(entry)
        self._settle(sorted((self.counting | added) - done.removed), done.state)
        self._remember(entry)
        return entry

    def _remember(self, entry: Entry) -> None:
        """Keep what the person may redo."""
        mine = self._undone.setdefault(entry.event.who, [])
        action = entry.event.action
        if isinstance(action, Undo):
            mine.append(action.target)
        elif isinstance(action, Redo):
            self._undone[entry.event.who] = [seq for seq in mine if seq != action.target]
        else:
            mine.clear()

    def undoable(self, who: str) -> Entry | None:
        """Return the last act of a person that counts; trainings are versions of the run."""
        for entry in reversed(self.entries):
            changes = not isinstance(entry.event.action, Undo | Redo | Learn) and not entry.problem
            if entry.event.who == who and changes and self.counts(entry.seq):
                return entry
        return None

    def redoable(self, who: str) -> Entry | None:
        """Return what a person took back last, and has done nothing new since."""
        for seq in reversed(self._undone.get(who, [])):
            entry = self.entries[seq - 1]
            if not self.counts(seq) and not isinstance(entry.event.action, Learn):
                return entry
        return None

    def counting_at(self, version: int) -> Numbers:
        """Return the acts that counted at a version.

        Raises:
            NotApplicable: There is no such version.
        """
        if not 0 <= version <= self.version:
            raise NotApplicable(f"version {version} does not exist; there are 0 to {self.version}")
        found: set[int] = set()
        for entry in self.entries[:version]:
            found |= entry.added
            found -= entry.removed
        return frozenset(found)

    def _state_at(self, version: int) -> State:
        """Return the state at a version."""
        if version == self.version:
            return self.state
        return self._fold(sorted(self.counting_at(version)), strict=False)

    def _shared(self, acts: list[int]) -> int:
        """Return how many first acts are the same as those that count now."""
        pairs = zip(acts, self._counting, strict=False)
        return next(
            (i for i, (a, b) in enumerate(pairs) if a != b), min(len(acts), len(self._counting))
        )

    def _fold(self, acts: list[int], *, strict: bool) -> State:
        """Fold acts from the last checkpoint they share with the present."""
        shared = self._shared(acts)
        done, state = next(c for c in reversed(self._checkpoints) if c[0] <= shared)
        for seq in acts[done:]:
            state = self._applied(state, seq, strict)
        return state

    def _applied(self, state: State, seq: int, strict: bool) -> State:
        event = self.entries[seq - 1].event
        try:
            return apply(state, event.action, event.who)  # type: ignore[arg-type]
        except NotApplicable as problem:
            if not strict:
                return state
            entry = self.entries[seq - 1]
            raise NotApplicable(
                f"this cannot be: #{seq}, {entry.event.who} {entry.says}, rests on it "
                f"({problem}); take that back first"
            ) from None

    def _settle(self, acts: list[int], state: State) -> None:
        """Make these the acts that count, and keep a checkpoint now and then."""
        shared = self._shared(acts)
        self._checkpoints = [c for c in self._checkpoints if c[0] <= shared]
        self._counting, self.state = acts, state
        if len(acts) - self._checkpoints[-1][0] >= _SPACING:
            self._checkpoints.append((len(acts), state))
        if len(self._checkpoints) > _MOST_CHECKPOINTS:  # the older, the sparser
            half = len(self._checkpoints) // 2
            self._checkpoints = self._checkpoints[:half:2] + self._checkpoints[half:]
