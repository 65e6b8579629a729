"""Commands and a studio that run in processes of their own, and people in a real browser."""

import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LISTENING = (  # to Ctrl-C, also where the tests themselves run in the background of a shell
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from ronid.cli import main; main()"
)
CHROMIUM = shutil.which("chromium")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-unsafe-swiftshader",  # the map is drawn by WebGL, here without a graphics card
]
QUIET = ("ReadPixels", "WebGL", "Failed to load resource")
"""What software rendering says of itself, and what is told with its address elsewhere."""


@dataclass
class Server:
    """A studio on a port of this machine."""

    process: "subprocess.Popen[bytes]"
    port: int

    @property
    def url(self) -> str:
        return f"http://localhost:{self.port}"


def start(run: Path, *options: str) -> Server:
    """Start a studio on a free port and wait until it answers."""
    command = [sys.executable, "-m", "ronid", "review", str(run), "--port", "0", "--no-browser"]
    process = subprocess.Popen(
        [*command, *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line.decode())
        if address := re.search(r"http://[^/]+:(\d+)/", lines[-1]):
            break
    else:
        raise AssertionError("".join(lines))
    port = int(address[1])
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://localhost:{port}/enter", timeout=5):
                return Server(process, port)
        except OSError:
            time.sleep(0.1)
    process.kill()
    raise AssertionError(f"the studio does not answer: {process.stderr.read().decode()}")


def stop(server: Server) -> None:
    server.process.terminate()
    try:
        server.process.wait(10)
    except subprocess.TimeoutExpired:
        server.process.kill()
        server.process.wait()
    if server.process.stderr is not None:
        server.process.stderr.close()


@contextmanager
def serving(run: Path, *options: str) -> Iterator[Server]:
    """Serve a run for the length of a block."""
    server = start(run, *options)
    try:
        yield server
    finally:
        stop(server)


@dataclass
class Trouble:
    """What should not happen on a page: dialogs, errors, requests to elsewhere."""

    said: list[str] = field(default_factory=list)

    def watch(self, page: Any, home: str) -> None:
        page.on("dialog", lambda dialog: (self.said.append(dialog.message), dialog.dismiss()))
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("console", self._console)
        page.on("response", self._response)
        page.on("request", lambda request: self._request(request.url, home))

    def _console(self, message: Any) -> None:
        if not any(word in message.text for word in QUIET):
            self.said.append(message.text)

    def _response(self, response: Any) -> None:
        if response.status >= 400:
            self.said.append(f"{response.status} {response.url}")

    def _request(self, url: str, home: str) -> None:
        if not url.startswith((home, home.replace("http", "ws"), "data:", "blob:")):
            self.said.append(url)


def come_in(context: Any, server: Server, name: str, path: str = "/") -> Any:
    """Open the studio as somebody; returns the page."""
    page = context.new_page()
    page.goto(f"{server.url}/enter?next={path}")
    page.get_by_label("Your name").fill(name)
    page.get_by_role("button", name="Come in").click()
    page.locator(".studio main .page, .studio .map").first.wait_for()
    return page
