"""A review in memory: its utterances and intents, made without a run, and random actions."""

from typing import Any

import numpy as np

from ronid.learn.decisions import Said, walk
from ronid.learn.lessons import Lessons, make_lessons
from ronid.review.base import Base, base_id
from ronid.review.events import (
    Accept,
    Action,
    Confirm,
    Describe,
    Gather,
    KeepApart,
    KeepWhole,
    Lock,
    Merge,
    Move,
    OutOfScope,
    Part,
    Recorded,
    Reject,
    Rename,
    Reopen,
    Split,
    Unlock,
    make_event,
)
from ronid.review.state import State, start
from ronid.review.timeline import Entry, Timeline
from ronid.types import Intent


def make_base(rows: int = 24, intents: int = 4, dim: int = 8, seed: int = 0) -> Base:
    """Return `rows` utterances dealt to intents in turn; the first intent is known."""
    rng = np.random.default_rng(seed)
    labels = (np.arange(rows) % intents).astype(np.int32)
    prototypes = rng.normal(size=(intents, dim)).astype(np.float32)
    vectors = prototypes[labels] + 0.2 * rng.normal(size=(rows, dim)).astype(np.float32)
    sizes = np.bincount(labels, minlength=intents)
    return Base(
        run="made",
        title="made.csv",
        texts=[f"utterance {row} of intent {labels[row]}" for row in range(rows)],
        ids=[str(row + 1) for row in range(rows)],
        given=(labels == 0) & (np.arange(rows) % 2 == 0),
        labels=labels,
        confidence=np.linspace(0.3, 0.99, rows).astype(np.float32),
        places=vectors[:, :2].astype(np.float32),
        intents=tuple(
            Intent(k, f"intent {k}", k == 0, int(sizes[k]), 0.0, 0.0, 0.5) for k in range(intents)
        ),
        unit=(vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32),
    )


def random_action(state: State, rng: np.random.Generator, number: int) -> Action:
    """Return an action that may or may not make sense in a state."""
    ids = [*state.intents, "i99"]
    one, two = (str(id) for id in rng.choice(ids, 2))
    n = len(state.places)
    rows = tuple(int(r) for r in rng.choice(n + (rng.random() < 0.05), int(rng.integers(1, 5))))
    own = tuple(int(r) for r in state.rows(one)) if one in state.intents else (0, 1)
    cut = own[: max(1, len(own) // 2)] or (0,)
    made: list[Any] = [
        Accept(one),
        Reject(one),
        Reopen(one),
        Lock(one),
        Unlock(one),
        Rename(one, f"name {rng.integers(6)}"),
        Describe(one, f"about {rng.integers(3)}"),
        Confirm(rows),
        Move(rows, one),
        Move(rows, one),
        OutOfScope(rows),
        Gather(rows, f"n{number}", f"gathered {rng.integers(8)}"),
        Split(one, (Part(f"p{number}", f"part {rng.integers(8)}", cut),)),
        Split(one, (Part(f"p{number}", f"part {rng.integers(8)}", cut),)),
        Merge((one, two), two),
        Merge((one, two), two),
        KeepApart((one, two)),
        KeepWhole(one),
    ]
    action: Action = made[int(rng.integers(len(made)))]
    return action


class Review:
    """A review in memory."""

    def __init__(self, rows: int = 24) -> None:
        self.base = make_base(rows)
        self.line = Timeline(start(self.base))

    def do(self, action: Action) -> None:
        event = make_event(action, "Ann", self.line.version)
        self.line.advance(Recorded(self.line.version + 1, event), self.line.plan(event))

    @property
    def acts(self) -> list[Entry]:
        return [entry for entry in self.line.entries if entry.seq in self.line.counting]

    @property
    def said(self) -> Said:
        return walk(self.line.first, self.acts)

    def lessons(self) -> Lessons:
        return make_lessons(self.base, self.said, present(self.base))


def present(base: Base) -> tuple[str, ...]:
    return tuple(base_id(i.index) for i in base.intents)


def review(*actions: Action) -> Review:
    made = Review()
    for action in actions:
        made.do(action)
    return made
