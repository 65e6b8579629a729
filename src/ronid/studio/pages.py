"""The pages, shown by NiceGUI: one element that is the whole studio, told of every change."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nicegui.elements.plotly  # noqa: F401 - puts the drawing library on the pages' map of imports
from fastapi import FastAPI
from nicegui import app as nicegui_app
from nicegui import ui

from ronid.errors import RonidError
from ronid.studio.hall import Hall
from ronid.studio.learning import shown

EVERY_S = 0.5
"""How often other processes' changes are looked for."""

_log = logging.getLogger("ronid.studio")
_PAGE = Path(__file__).parent / "page"


class Studio(ui.element, component="page/studio.js", esm={"ronid-studio": "page"}):
    """All pages in one element; what it is told says when to ask anew."""

    def __init__(self, now: dict[str, Any]) -> None:
        super().__init__()
        self.tell(now)

    def tell(self, now: dict[str, Any]) -> None:
        """Say how things are now, see `now_of`."""
        if {name: self._props.get(name) for name in now} != now:
            self._props.update(now)
            self.update()


def now_of(hall: Hall) -> dict[str, Any]:
    """Return what pages are told at once.

    Args:
        hall: Leads to the review.

    Returns:
        The version of the review, the one that the suggestions are for, the version of the run, and
        how far a training is; without its seconds, which a page counts itself.
    """
    room = hall.room
    standing = shown(hall.learning.standing())
    return {
        "version": room.desk.version,
        "suggested": room.suggestions(room.desk.view().state).version,
        "run": hall.version,
        "learning": standing and {k: v for k, v in standing.items() if k != "seconds"},
    }


def add_pages(app: FastAPI, hall: Hall) -> Callable[[], None]:
    """Put the pages on an application.

    Args:
        app: The application.
        hall: Leads to the review.

    Returns:
        To be called after every action, from any thread: all pages are told at once.
    """
    open_pages: set[Studio] = set()
    loop: list[asyncio.AbstractEventLoop] = []
    title = f"{hall.room.title} · ronid studio"
    style = (_PAGE / "style.css").read_text(encoding="utf-8")

    def page() -> None:
        ui.add_head_html(f"<style>{style}</style>")
        ui.query(".nicegui-content").classes("p-0 gap-0")
        studio = Studio(now_of(hall))
        open_pages.add(studio)
        ui.context.client.on_delete(lambda: open_pages.discard(studio))

    def page_of(id: str) -> None:  # the element reads the id from the address itself
        page()

    for path in ("/", "/map", "/history", "/doubts", "/out", "/learn", "/export"):
        ui.page(path, title=title)(page)
    ui.page("/intent/{id}", title=title)(page_of)

    def tell_all() -> None:
        now = now_of(hall)
        for studio in tuple(open_pages):
            studio.tell(now)

    async def keep_telling() -> None:
        loop.append(asyncio.get_running_loop())
        while True:
            await asyncio.sleep(EVERY_S)
            try:
                await asyncio.to_thread(hall.refresh)
                tell_all()
            except (RonidError, OSError) as problem:  # a database that is away comes back
                _log.warning("%s", problem)

    nicegui_app.on_startup(keep_telling)
    ui.run_with(
        app,
        title="ronid studio",
        dark=None,
        language="en-US",
        show_welcome_message=False,
        tailwind=False,
        reconnect_timeout=5.0,
    )

    def acted() -> None:
        if loop:
            loop[0].call_soon_threadsafe(tell_all)

    return acted
