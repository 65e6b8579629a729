"""A chat endpoint on this machine that answers as a test tells it to."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[int, dict[str, Any]], tuple[int, bytes]]
"""`(number of the request, its body) -> (status, body of the answer)`."""


def says(content: Any) -> tuple[int, bytes]:
    """Return a well-formed answer of a chat endpoint."""
    answer = {"choices": [{"message": {"role": "assistant", "content": content}}]}
    return 200, json.dumps(answer).encode()


def names(name: str, description: str = "What people want.") -> tuple[int, bytes]:
    """Return the answer that was asked for."""
    return says(json.dumps({"name": name, "description": description}))


class Chat:
    """What a running endpoint was asked."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.requests: list[tuple[str, dict[str, str], dict[str, Any]]] = []


@contextmanager
def serve(answer: Answer, hang_s: float = 0.0) -> Iterator[Chat]:
    """Run an endpoint for the length of a test."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            body = json.loads(self.rfile.read(length))
            chat.requests.append((self.path, dict(self.headers), body))
            time.sleep(hang_s)
            status, content = answer(len(chat.requests), body)
            self.send_response(status)
            if status == 302:
                self.send_header("Location", "http://127.0.0.1:9/elsewhere")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    chat = Chat(f"http://127.0.0.1:{server.server_port}/v1")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield chat
    finally:
        server.shutdown()
        server.server_close()
