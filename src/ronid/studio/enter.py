"""The door: people say who they are, and the password where there is one."""

import getpass
from html import escape
from pathlib import Path
from urllib.parse import parse_qs

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from ronid.errors import UsageError
from ronid.review.events import clean_who
from ronid.studio.session import LASTS_S, Door

_PAGE = Path(__file__).parent / "page" / "enter.html"


def make_door(door: Door, title: str) -> APIRouter:
    """Return the routes of the door.

    Args:
        door: What it takes to come in.
        title: What the review is called.
    """
    routes = APIRouter()

    def page(problem: str, name: str, after: str, status: int = 200) -> HTMLResponse:
        secret = '<label for="password">Password</label><input id="password" name="password" '
        secret += 'type="password" autocomplete="current-password" required>'
        filled = {
            "{{title}}": escape(title),
            "{{problem}}": escape(problem),
            "{{name}}": escape(name, quote=True),
            "{{next}}": escape(after, quote=True),
            "{{password}}": secret if door.password is not None else "",
        }
        text = _PAGE.read_text(encoding="utf-8")
        for mark, value in filled.items():
            text = text.replace(mark, value)
        return HTMLResponse(text, status)

    @routes.get("/enter")
    def ask(request: Request) -> Response:
        after = local_path(request.query_params.get("next", "/"))
        return page("", request.scope.get("ronid_who") or _user(), after)

    @routes.post("/enter")
    async def answer(request: Request) -> Response:
        form = parse_qs((await request.body()).decode("utf-8", "replace"))
        name, after = form.get("name", [""])[0], local_path(form.get("next", ["/"])[0])
        if door.too_many_tries():
            return page("Too many wrong passwords; wait a minute.", name, after, 429)
        if not door.opens_to(form.get("password", [""])[0]):
            door.tried()
            return page("This is not the password.", name, after, 403)
        try:
            who = clean_who(name)
        except UsageError as problem:
            return page(f"{str(problem).capitalize()}.", "", after, 400)
        come_in = RedirectResponse(after, 303)
        come_in.set_cookie(
            door.cookie,
            door.issue(who),
            max_age=LASTS_S,
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return come_in

    return routes


def local_path(wanted: str) -> str:
    """Return a path on this server; anything that leads elsewhere is the first page."""
    inside = wanted.startswith("/") and not wanted.startswith(("//", "/\\", "/enter"))
    return wanted if inside and "\\" not in wanted and wanted.isprintable() else "/"


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
