"""`ronid review`: open a run in the browser, to correct what was found."""

import os
import socket
from pathlib import Path
from typing import Annotated

import typer

from ronid.cli.console import Bars, note
from ronid.cli.options import Quiet, ReviewStore, Run, switch

PORT = 8712


def review(
    run: Run,
    host: Annotated[
        str, typer.Option(help="Address to listen on; 127.0.0.1 is this machine only.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="Port to listen on; 0 picks a free port.", min=0, max=65535)
    ] = PORT,
    password: Annotated[
        str | None,
        typer.Option(
            envvar="RONID_PASSWORD",
            help="Password to sign in, 8 characters or more; programs send it as a bearer token. "
            "Required if other machines can reach --host.",
        ),
    ] = None,
    store: ReviewStore = None,
    browser: Annotated[bool, switch(help="Open the page in the browser.")] = True,
    quiet: Quiet = False,
) -> None:
    r"""Review intents in the browser: accept, reject, rename, merge, split, and move utterances.

    Every decision is saved immediately and can be undone. `ronid export` applies every decision.
    The run itself does not change until it is retrained, in the browser or with `ronid learn`.

    To use this command, first run: pip install ".\[studio]"
    """
    from ronid.errors import MissingExtraError
    from ronid.run import open_finished

    folder = open_finished(run)
    try:
        from ronid.studio.app import check_address, serve
    except ImportError as missing:
        raise MissingExtraError(missing.name or "nicegui", "studio") from None
    check_address(host, password)
    listener = _bind(host, port)
    _keep_vectors(folder.path, quiet)
    from ronid.studio.hall import open_hall
    from ronid.studio.session import Door

    hall = open_hall(run, store, said=note)
    port = listener.getsockname()[1]
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}/"
    if not quiet:
        note(f"reviewing {run} at {address} (stop with Ctrl+C)")
    if browser and not os.environ.get("CI"):
        _open_later(address)
    serve(hall, Door(hall.room.base.run, password), host, listener)


def _keep_vectors(folder: Path, quiet: bool) -> None:
    """Make the vectors of a run that was written before they were kept; once."""
    from ronid.files import read_json
    from ronid.run import RunFolder
    from ronid.vectors import FILE, write_vectors

    if (folder / FILE).exists():
        return
    about = read_json(folder / "model.json")
    if about.get("given_dim") is not None or "encoder" not in about:
        note("this run keeps no vectors: nothing can be suggested, all else works")
        return
    from ronid.model import load_model

    texts = RunFolder(folder).assignments()["text"].to_pylist()
    model = load_model(folder)
    write_vectors(folder, model.transform(texts, None if quiet else Bars()))


def _bind(host: str, port: int) -> socket.socket:
    """Take the port now, so that no other program gets it before the server starts."""
    from ronid.errors import UsageError

    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError:
        listener.close()
        raise UsageError(
            f"port {port} of {host} is in use; give another with --port, or 0"
        ) from None
    return listener


def _open_later(address: str) -> None:
    """Open the browser when the server answers."""
    import threading
    import webbrowser

    threading.Timer(1.0, webbrowser.open, (address,)).start()
