"""The studio over HTTP: one call per page, and one call per action."""

from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from ronid.errors import RonidError
from ronid.review.problems import Conflict, NotApplicable
from ronid.review.wire import action_from_json
from ronid.studio import views
from ronid.studio.hall import Hall

LONGEST_QUERY = 500
Id = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]


class Wanted(BaseModel):
    """An action that a person wants: what, from which version, under which key."""

    model_config = ConfigDict(extra="forbid", strict=True)

    action: dict[str, Any]
    seen: int = Field(ge=0)
    key: str = Field(min_length=8, max_length=64)


class Rows(BaseModel):
    """Some utterances."""

    model_config = ConfigDict(extra="forbid", strict=True)

    rows: list[int] = Field(max_length=1_000_000)


def problem(error: RonidError) -> JSONResponse:
    """Return the answer to what cannot be done."""
    if isinstance(error, Conflict):
        since = [vars(each) for each in error.since]
        return JSONResponse(
            {"problem": str(error), "conflict": since, "version": error.version}, 409
        )
    return JSONResponse({"problem": str(error)}, 422)


def make_api(hall: Hall, acted: Callable[[], None] = lambda: None) -> APIRouter:
    """Return the routes of a review.

    Args:
        hall: Leads to the review.
        acted: Told after every action, so that others are told.
    """
    api = APIRouter(prefix="/api")

    @api.get("/state")
    def state(request: Request, version: int | None = None) -> JSONResponse:
        room = hall.room
        return JSONResponse(views.overview(room, room.desk.view(version), who_asks(request)))

    @api.get("/intent/{id}")
    def intent(id: Id, version: int | None = None, order: str = "central") -> JSONResponse:
        room = hall.room
        return JSONResponse(views.intent_page(room, room.desk.view(version), id, order=order))

    @api.get("/intent/{id}/rows")
    def rows_of(
        id: Id, start: int = 0, version: int | None = None, order: str = "central"
    ) -> JSONResponse:
        room = hall.room
        view = room.desk.view(version)
        if id != "out" and id not in view.state.intents:
            raise NotApplicable("there is no such intent, or there is none any more")
        return JSONResponse(views.utterances(room, view, id, order=order, start=max(start, 0)))

    @api.get("/intent/{id}/all")
    def all_of(id: Id) -> JSONResponse:
        view = hall.room.desk.view()
        if id != "out" and id not in view.state.intents:
            raise NotApplicable("there is no such intent, or there is none any more")
        rows = view.state.out_rows() if id == "out" else view.state.rows(id)
        return JSONResponse({"version": view.version, "rows": rows.tolist()})

    @api.get("/intent/{id}/split")
    def split(id: Id, parts: int | None = None) -> JSONResponse:
        room = hall.room
        version = room.desk.version
        return JSONResponse(views.split_page(room, room.split(id, parts), version))

    @api.get("/intent/{id}/name")
    def name(id: Id) -> JSONResponse:
        room = hall.room
        view = room.desk.view()
        if id not in view.state.intents:
            raise NotApplicable("there is no such intent, or there is none any more")
        return JSONResponse({"name": room.name(view.state.rows(id))})

    @api.post("/name")
    def name_rows(wanted: Rows) -> JSONResponse:
        room = hall.room
        rows = np.array([row for row in wanted.rows if 0 <= row < len(room.base)], np.int64)
        return JSONResponse({"name": room.name(rows)})

    @api.post("/rows")
    def rows(wanted: Rows) -> JSONResponse:
        room = hall.room
        return JSONResponse(views.rows_page(room, room.desk.view(), wanted.rows))

    @api.get("/search")
    def search(q: Annotated[str, Query(max_length=LONGEST_QUERY)]) -> JSONResponse:
        room = hall.room
        return JSONResponse(views.search_page(room, room.desk.view(), q))

    @api.get("/doubts")
    def doubts() -> JSONResponse:
        room = hall.room
        return JSONResponse(views.doubts_page(room, room.desk.view()))

    @api.get("/history")
    def history(before: int | None = None) -> JSONResponse:
        return JSONResponse(views.history_page(hall.room, before))

    @api.get("/points")
    def points() -> Response:
        """(n, 2) little-endian float32: where every utterance lies on the map."""
        body = np.ascontiguousarray(hall.room.base.places, "<f4").tobytes()
        return Response(body, media_type="application/octet-stream")

    @api.get("/places")
    def places(version: int | None = None) -> Response:
        """(n,) little-endian int32: the slot of every utterance, -1 out of scope."""
        view = hall.room.desk.view(version)
        body = np.ascontiguousarray(view.state.places, "<i4").tobytes()
        headers = {"x-ronid-version": str(view.version)}
        return Response(body, media_type="application/octet-stream", headers=headers)

    @api.post("/act")
    def act(request: Request, wanted: Wanted) -> JSONResponse:
        action = action_from_json(wanted.action)
        desk = hall.room.desk
        entry = desk.act(action, who_asks(request), wanted.seen, wanted.key)
        acted()
        return JSONResponse({"seq": entry.seq, "says": entry.says, "version": desk.version})

    return api


def who_asks(request: Request) -> str:
    """Return who sends a request, as the guard found out."""
    return str(request.scope.get("ronid_who") or "")
