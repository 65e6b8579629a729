"""Learn from decisions: train a run on, as its next version.

    run + events -> what was said -> lessons -> train on -> new version -> before and after

The version before stays current until the new one is whole, see `ronid.versions`; then the log of
the review is told, so that everyone sees utterances where the model sees them now.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import numpy as np

from ronid.corpus_file import read_corpus
from ronid.learn.changes import intent_changes, row_changes, shifts_of, verdicts_of
from ronid.learn.decisions import check_decided, walk
from ronid.learn.lessons import make_lessons
from ronid.learn.model import Trained, train_model
from ronid.learn.record import Learned, NewIntent
from ronid.learn.standing import telling
from ronid.learn.version import write_rest, write_version
from ronid.model import load_model
from ronid.plural import counted
from ronid.progress import Progress
from ronid.review.apply import apply
from ronid.review.desk import Desk, open_desk
from ronid.review.events import Event, Learn, make_event
from ronid.review.state import State
from ronid.run import COLLECTED, open_finished
from ronid.types import DataReport, FloatArray, Intent
from ronid.versions import current_number, forget_caches, frozen_cache, next_version

TRAINER = "ronid"
"""Who trained, where nobody says."""


@dataclass(frozen=True)
class _Asked:
    """What `learn_run` was asked."""

    path: Path
    who: str
    device: str
    encoder: str | None
    progress: Progress
    said: Callable[[str], None]


def learn_run(  # noqa: PLR0913 - which review, who asks, and how
    path: Path,
    *,
    where: str | None = None,
    who: str = TRAINER,
    device: str = "auto",
    encoder: str | None = None,
    progress: Progress | None = None,
    said: Callable[[str], None] = lambda _: None,
    key: str = "",
) -> Learned:
    """Train a finished run on from what people decided; the outcome is its next version.

    Args:
        path: Folder of the run.
        where: Path or postgresql:// URL of the events; `review.sqlite` in the folder when None.
        who: Who asks for it.
        device: Where it is trained.
        encoder: Folder of the base encoder, if it has moved.
        progress: Told what is going on; what it raises ends the training, and nothing is changed.
        said: Receives one line per step that has no progress of its own.
        key: Tells this training from all others, see `standing`; made up where it is empty.

    Raises:
        DataError: The run is not finished.
        UsageError: Nothing was decided, another process changes the run, or no intent is left.
    """
    open_finished(path)
    number = current_number(path)
    desk = open_desk(path, where, said)
    try:
        check_decided(desk)
        with telling(path, who, key or uuid4().hex, progress) as teller:
            asked = _Asked(path, who, device, encoder, teller, _both(said, teller.say))
            with next_version(path) as folder:
                if current_number(path) != number:  # another version came before we had the lock
                    desk.close()
                    desk = open_desk(path, where, said)
                    check_decided(desk)
                done, event = _learn(asked, folder, desk)
            desk.record(event)
            forget_caches(path, done.utterances)
    finally:
        desk.close()
    return done


def _both(one: Callable[[str], None], other: Callable[[str], None]) -> Callable[[str], None]:
    def say(line: str) -> None:
        one(line)
        other(line)

    return say


def _learn(asked: _Asked, folder: Path, desk: Desk) -> tuple[Learned, Event]:
    """Fill the folder of the next version."""
    path, who, started = asked.path, asked.who, time.perf_counter()
    run, base, acts = open_finished(path), desk.base, desk.acts()[1]
    seen = desk.version
    heard = walk(desk.first, acts)
    lessons = make_lessons(base, heard, base.present)
    model = load_model(path, asked.device, asked.encoder)
    trained = train_model(model, base, lessons, frozen_cache(path, len(base)), asked.progress)
    asked.said("naming and writing")
    slots = np.array([heard.state.intents[id].slot for id in trained.ids])[trained.found.labels]
    shifts = shifts_of(heard.state, slots)
    version = current_number(path) + 1
    event = make_event(Learn(version, shifts), who, seen, f"learn-{uuid4().hex}")
    after = apply(heard.state, Learn(version, shifts), who)
    model = write_version(run, folder, trained, base, heard.state)
    done = _summary(desk, heard.state, after, trained, model.intents, trained.found.confidence)
    waiting = run.path / COLLECTED
    done = replace(
        done,
        version=version,
        who=who,
        seen=seen,
        collected=len(read_corpus(waiting, DataReport(0, 0))) if waiting.exists() else 0,
        seconds=round(time.perf_counter() - started, 3),
    )
    write_rest(run, folder, trained, base, heard.state, done, event)
    return done, event


def _summary(
    desk: Desk,
    before: State,
    after: State,
    trained: Trained,
    intents: tuple[Intent, ...],
    confidence: FloatArray,
) -> Learned:
    """Say what changed and which decisions held."""
    base = desk.base
    acts = [entry for entry in desk.acts()[1] if not isinstance(entry.event.action, Learn)]
    verdicts = verdicts_of(acts, before, after)
    people = sorted({entry.event.who for entry in acts})
    return Learned(
        version=0,
        when=datetime.now(UTC).isoformat(timespec="seconds"),
        who="",
        source=f"{counted(len(acts), 'decision')} of {', '.join(people)}",
        seen=0,
        decisions=len(acts),
        labels=trained.labels,
        utterances=len(base),
        intents=len(intents),
        moved=int((before.places != after.places).sum()),
        held=sum(v.status == "held" for v in verdicts),
        not_held=sum(v.status == "not held" for v in verdicts),
        new=tuple(
            NewIntent(i.index, i.name, i.size, i.known)
            for id, i in zip(trained.ids, intents, strict=True)
            if id not in base.present
        ),
        gone=tuple(
            i.name
            for id, i in zip(base.present, trained.model.intents, strict=True)
            if id not in trained.ids
        ),
        changes=intent_changes(before, after),
        examples=row_changes(before, after, base.texts, confidence),
        verdicts=verdicts,
    )
