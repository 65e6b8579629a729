"""The studio put together: pages, API and guard in one application, and a server for it."""

import logging
import socket
from collections.abc import Callable
from contextlib import suppress

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

from ronid.errors import MissingExtraError, RonidError, UsageError
from ronid.studio.api import make_api, problem
from ronid.studio.enter import make_door
from ronid.studio.export_api import make_export_api
from ronid.studio.guard import App, Guard, is_loopback
from ronid.studio.hall import Hall
from ronid.studio.learn_api import make_learn_api
from ronid.studio.session import Door


def make_app(hall: Hall, door: Door, acted: Callable[[], None] = lambda: None) -> FastAPI:
    """Return the application without its pages and its guard.

    Args:
        hall: Leads to the review.
        door: What it takes to come in.
        acted: Told after every action.
    """
    app = FastAPI(title="ronid studio", docs_url=None, redoc_url=None, openapi_url=None)
    app.include_router(make_door(door, hall.room.title))
    app.include_router(make_api(hall, acted))
    app.include_router(make_learn_api(hall, acted))
    app.include_router(make_export_api(hall))

    @app.exception_handler(RonidError)
    def cannot(request: Request, error: RonidError) -> JSONResponse:
        return problem(error)

    return app


def make_studio(hall: Hall, door: Door, *, local: bool) -> App:
    """Return the whole studio, guarded; one per process, as NiceGUI keeps its own state.

    Args:
        hall: Leads to the review.
        door: What it takes to come in.
        local: Whether it listens on loopback only.
    """
    from ronid.studio.pages import add_pages

    told: list[Callable[[], None]] = []

    def acted() -> None:
        for tell in told:
            tell()

    app = make_app(hall, door, acted)
    told.append(add_pages(app, hall))
    return Guard(app, door, local=local)  # type: ignore[arg-type]


def check_address(host: str, password: str | None) -> None:
    """Refuse to let others in without a password.

    Raises:
        UsageError: The address can be reached from elsewhere, and there is no password.
    """
    if not is_loopback(host) and not password:
        raise UsageError(
            f"address '{host}' can be reached by others; set a password with RONID_PASSWORD or "
            "--password, or leave --host out"
        )
    if password is not None and len(password) < 8:  # noqa: PLR2004 - shorter ones are guessed
        raise UsageError("the password is too short; give 8 characters or more")


def serve(hall: Hall, door: Door, host: str, listener: socket.socket) -> None:
    """Answer until the process is interrupted.

    Args:
        hall: Leads to the review; it is opened and closed.
        door: What it takes to come in.
        host: Address that `listener` is bound to.
        listener: Socket to accept connections on.

    Raises:
        MissingExtraError: NiceGUI or uvicorn is not installed.
    """
    try:
        import uvicorn
    except ImportError:
        raise MissingExtraError("uvicorn", "studio") from None
    check_address(host, door.password)
    logging.getLogger("nicegui").setLevel(logging.ERROR)
    studio = make_studio(hall, door, local=is_loopback(host))
    hall.open()
    try:
        config = uvicorn.Config(
            studio,  # type: ignore[arg-type]
            log_level="warning",
            access_log=False,  # paths hold what people search for
            ws_max_size=2**20,
            timeout_graceful_shutdown=2,
            server_header=False,
        )
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listener])
    finally:
        hall.close()
