"""The Learn page over HTTP: what would be taught, one training at a time, what it changed."""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from ronid.errors import UsageError
from ronid.learn.decisions import fresh_decisions, walk
from ronid.learn.job import read_learned
from ronid.learn.lessons import Lessons, make_lessons
from ronid.review.desk import forget_training
from ronid.run import open_finished
from ronid.studio.api import who_asks
from ronid.studio.hall import Hall
from ronid.studio.learning import shown, why_not
from ronid.studio.room import Room
from ronid.types import UNLABELLED
from ronid.versions import current_number
from ronid.versions import undo as go_back

MOST_SHOWN = 200
"""Intents and decisions of a training that are sent at most."""

Values = dict[str, Any]


class Nothing(BaseModel):
    """No more than the wish itself; as JSON, which a form of another site cannot send."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Gone(BaseModel):
    """The version that is to be taken back."""

    model_config = ConfigDict(extra="forbid", strict=True)

    version: int = Field(ge=1)


def make_learn_api(hall: Hall, acted: Callable[[], None] = lambda: None) -> APIRouter:
    """Return the routes of the Learn page.

    Args:
        hall: Leads to the review.
        acted: Told after every action, so that others are told.
    """
    api = APIRouter(prefix="/api/learn")
    taught = Taught()

    @api.get("")
    def page() -> JSONResponse:
        room = hall.room
        return JSONResponse(
            {
                "version": room.desk.version,
                "run": hall.version,
                "standing": shown(hall.learning.standing()),
                "why_not": why_not(room.desk),
                "taught": taught.of(room),
                "last": last_training(hall),
            }
        )

    @api.post("")
    def start(request: Request, wanted: Nothing) -> JSONResponse:
        hall.learning.start(hall.room.desk, who_asks(request))
        acted()
        return JSONResponse({"standing": shown(hall.learning.standing())})

    @api.post("/cancel")
    def stop(wanted: Nothing) -> JSONResponse:
        hall.learning.cancel()
        acted()
        return JSONResponse({"standing": shown(hall.learning.standing())})

    @api.post("/undo")
    def undo(request: Request, wanted: Gone) -> JSONResponse:
        take_back(hall, wanted.version, who_asks(request))
        acted()
        return JSONResponse({"run": hall.version, "version": hall.room.desk.version})

    return api


def take_back(hall: Hall, version: int, who: str) -> None:
    """Go back to the version before a training; no decision is lost.

    Args:
        hall: Leads to the review.
        version: The version that the training made.
        who: Who takes it back.

    Raises:
        UsageError: It is not the last version, was not trained, or the run is being changed.
    """
    if read_learned(hall.run, version) is None:
        raise UsageError(f"version {version} is not the last one, or no training made it")
    hall.refresh()
    go_back(hall.run, expected=version)
    with suppress(UsageError):  # another process has seen it, and told the log under its own name
        forget_training(hall.room.desk, version, who)
    hall.refresh()


class Taught:
    """What would be taught, worked out once per version of the review."""

    def __init__(self) -> None:
        self._of: tuple[Room | None, int] = (None, -1)
        self._values: Values = {}

    def of(self, room: Room) -> Values:
        """Return counts of labels and constraints."""
        version = room.desk.version
        if self._of[0] is not room or self._of[1] != version:
            self._values, self._of = _taught(room), (room, version)
        return self._values


def _taught(room: Room) -> Values:
    desk, base = room.desk, room.base
    fresh = fresh_decisions(desk)
    values = {
        "decisions": len(fresh.decided),
        "fresh": len(fresh.new),
        "taken_back": fresh.taken_back,
        "kinds": dict(Counter(each.event.action.kind for each in fresh.new).most_common()),
        "people": sorted({each.event.who for each in fresh.decided}),
        "utterances": len(base),
    }
    try:
        lessons = make_lessons(base, walk(desk.first, desk.acts()[1]), base.present)
    except UsageError as problem:
        return values | {"problem": str(problem)}
    return values | _counts(room, lessons)


def _counts(room: Room, lessons: Lessons) -> Values:
    labels = lessons.targets != UNLABELLED
    ids = set(lessons.ids)
    return {
        "problem": "",
        "labels": int(labels.sum()),
        "given": int((labels & room.base.given).sum()),
        "stay": int((lessons.fixed != UNLABELLED).sum()),
        "banned": len(lessons.forbidden),
        "out": int((~lessons.taking_part).sum()),
        "locked": len(lessons.closed),
        "sizes": int((~np.isnan(lessons.shares)).sum()),
        "intents": len(ids),
        "new": len(ids - set(room.base.present)),
        "gone": len(set(room.base.present) - ids),
    }


def last_training(hall: Hall) -> Values | None:
    """Return what the last training of the run did, None if there was none.

    Args:
        hall: Leads to the review.
    """
    learned = open_finished(hall.run).facts().get("review", {}).get("learned", ())
    version = learned[-1]["version"] if learned else 0
    done = read_learned(hall.run, version)
    if done is None:
        return None
    many = ("changes", "verdicts")
    return {
        **done,
        **{name: done[name][:MOST_SHOWN] for name in many},
        **{f"{name}_in_all": len(done[name]) for name in many},
        "overtaken": sum(each["status"] == "overtaken" for each in done["verdicts"]),
        "current": current_number(hall.run) == version,
    }
