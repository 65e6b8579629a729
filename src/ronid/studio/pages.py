"""The pages, shown by NiceGUI: one element that is the whole studio, told of every change."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

import nicegui.elements.plotly  # noqa: F401 - puts the drawing library on the pages' map of imports
from fastapi import FastAPI
from nicegui import app as nicegui_app
from nicegui import ui

from ronid.errors import UsageError
from ronid.studio.room import Room

EVERY_S = 0.5
"""How often other processes' changes are looked for."""

_log = logging.getLogger("ronid.studio")
_PAGE = Path(__file__).parent / "page"


class Studio(ui.element, component="page/studio.js", esm={"ronid-studio": "page"}):
    """All pages in one element; `version` and `suggested` tell it when to ask anew."""

    def __init__(self, room: Room) -> None:
        super().__init__()
        self.tell(room.desk.version, room.suggestions(room.desk.view().state).version)

    def tell(self, version: int, suggested: int) -> None:
        """Say which version there is now, and which one the suggestions are for."""
        now = {"version": version, "suggested": suggested}
        if {name: self._props.get(name) for name in now} != now:
            self._props.update(now)
            self.update()


def add_pages(app: FastAPI, room: Room) -> Callable[[], None]:
    """Put the pages on an application.

    Args:
        app: The application.
        room: The review.

    Returns:
        To be called after every action, from any thread: all pages are told at once.
    """
    shown: set[Studio] = set()
    loop: list[asyncio.AbstractEventLoop] = []
    title = f"{room.title} · ronid studio"
    style = (_PAGE / "style.css").read_text(encoding="utf-8")

    def page() -> None:
        ui.add_head_html(f"<style>{style}</style>")
        ui.query(".nicegui-content").classes("p-0 gap-0")
        studio = Studio(room)
        shown.add(studio)
        ui.context.client.on_delete(lambda: shown.discard(studio))

    def page_of(id: str) -> None:  # the element reads the id from the address itself
        page()

    for path in ("/", "/map", "/history", "/doubts", "/out"):
        ui.page(path, title=title)(page)
    ui.page("/intent/{id}", title=title)(page_of)

    def tell_all() -> None:
        suggested = room.suggestions(room.desk.view().state).version
        for studio in tuple(shown):
            studio.tell(room.desk.version, suggested)

    async def keep_telling() -> None:
        loop.append(asyncio.get_running_loop())
        while True:
            await asyncio.sleep(EVERY_S)
            try:
                await asyncio.to_thread(room.desk.refresh)
            except UsageError as problem:  # a database that is away comes back
                _log.warning("%s", problem)
            tell_all()

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
