"""Stands before everything: who comes in, from which page, and how much they may send.

NiceGUI's socket answers any page of any site that the browser has open; this is what keeps other
sites out: a request that changes something, or opens a socket, must come from our own pages.
"""

import ipaddress
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import quote, urlsplit

from ronid.studio.session import Door

MOST_BYTES = 4 * 2**20
"""Largest body; moving every one of 500,000 utterances fits."""

OPEN_PATHS = ("/enter", "/favicon.ico")

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),  # none at all would hide our own origin from us
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (
        b"content-security-policy",
        # Vue compiles templates in the browser, hence eval; nothing may come from elsewhere.
        b"default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; "
        b"style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
        b"connect-src 'self' ws: wss:; worker-src 'self' blob:; object-src 'none'; "
        b"base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    ),
]


class TooLarge(Exception):  # noqa: N818 - it ends a request, and is answered
    """A body went over the limit while it was being read."""


def is_loopback(host: str) -> bool:
    """Return whether an address can only be reached from this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class Guard:
    """ASGI middleware.

    Args:
        app: What it stands before.
        door: What it takes to come in.
        local: Whether the server listens on loopback only; then no other host name is answered,
            so that no name server can turn a foreign page into one of ours.
        most: Largest body in bytes.
    """

    def __init__(self, app: App, door: Door, *, local: bool, most: int = MOST_BYTES) -> None:
        self.app, self.door, self.local, self.most = app, door, local, most

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): v.decode("latin-1") for name, v in scope["headers"]}
        refused = self._refuses(scope, headers)
        if refused is not None:
            await _answer(scope, send, *refused)
            return
        who = self._who(headers)
        if who is None and scope["path"] not in OPEN_PATHS:
            await self._send_to_door(scope, send)
            return
        scope["ronid_who"] = who
        await self._pass_on(scope, receive, send)

    def _refuses(
        self, scope: MutableMapping[str, Any], headers: dict[str, str]
    ) -> tuple[int, str] | None:
        """Return why a request is refused, whoever it comes from."""
        host = headers.get("host", "")
        if self.local and not is_loopback(_host_name(host)):
            return 421, "this server answers to localhost only"
        if scope["type"] == "http" and scope["method"] not in ("GET", "HEAD", "POST"):
            return 405, "this cannot be done"
        changes = scope["type"] == "websocket" or scope["method"] == "POST"
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            return 403, "requests of other sites are not answered"
        if (changes or scope["path"].startswith("/api")) and site not in (
            None,
            "same-origin",
            "none",
        ):
            return 403, "requests of other sites are not answered"
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > self.most:
            return 413, f"more than {self.most} bytes cannot be sent at once"
        return None

    def _who(self, headers: dict[str, str]) -> str | None:
        """Return who sends a request: a person by cookie, or a program by token."""
        kind, _, token = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and self.door.password is not None:
            if self.door.too_many_tries():
                return None
            if self.door.opens_to(token.strip()):
                return headers.get("x-ronid-name", "a program")[:80]
            self.door.tried()
            return None
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(self.door.cookie)
        except CookieError:
            return None
        return self.door.who(cookie.value if cookie else None)

    async def _send_to_door(self, scope: MutableMapping[str, Any], send: Send) -> None:
        if scope["type"] == "websocket" or scope["path"].startswith(("/api", "/_nicegui")):
            await _answer(scope, send, 401, "come in first")
            return
        query = scope["query_string"].decode("latin-1")
        wanted = quote(scope["path"] + (f"?{query}" if query else ""), safe="")
        place = [(b"location", f"/enter?next={wanted}".encode())]
        await send({"type": "http.response.start", "status": 303, "headers": place})
        await send({"type": "http.response.body", "body": b""})

    async def _pass_on(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        read, started = 0, False

        async def counted() -> Message:
            nonlocal read
            message = await receive()
            if message["type"] == "http.request":
                read += len(message.get("body", b""))
                if read > self.most:
                    raise TooLarge
            return message

        async def dressed(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                if read > self.most:  # whoever read it may have answered in its own way
                    message = {**message, "status": 413}
                message = {**message, "headers": [*message.get("headers", []), *_HEADERS]}
            await send(message)

        try:
            await self.app(scope, counted, dressed)
        except TooLarge:
            if not started:
                await _answer(scope, send, 413, f"more than {self.most} bytes cannot be sent")


def _host_name(host: str) -> str:
    """Return a Host header without its port."""
    return urlsplit(f"//{host}").hostname or ""


async def _answer(scope: MutableMapping[str, Any], send: Send, status: int, words: str) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": words})
        return
    kind = [(b"content-type", b"text/plain; charset=utf-8"), *_HEADERS]
    await send({"type": "http.response.start", "status": status, "headers": kind})
    await send({"type": "http.response.body", "body": words.encode()})
