"""`ronid review`: open a run in the browser, to correct what was found."""

import os
import socket
from pathlib import Path
from typing import Annotated

import typer

from ronid.cli.console import Bars, note
from ronid.cli.options import Quiet, Run

PORT = 8712


def review(
    run: Run,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 for a free one.", min=0, max=65535)] = PORT,
    password: Annotated[
        str | None,
        typer.Option(
            envvar="RONID_PASSWORD",
            help="Password or token; needed on any address but this machine's own.",
        ),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            envvar="RONID_REVIEW_STORE",
            help="Where decisions are kept: a path or a postgresql:// URL; review.sqlite in RUN.",
        ),
    ] = None,
    browser: Annotated[bool, typer.Option(help="Open the browser.")] = True,
    quiet: Quiet = False,
) -> None:
    """Review a run in the browser: rename, merge, split, move, accept; nothing is lost.

    Every decision is written down at once and can be undone. The run itself is not changed.
    """
    from ronid.errors import MissingExtraError, UsageError
    from ronid.run import open_finished

    folder = open_finished(run)
    try:
        from ronid.studio.app import check_address, serve
    except ImportError as missing:
        raise MissingExtraError(missing.name or "nicegui", "studio") from None
    check_address(host, password)
    if port and not _is_free(host, port):
        raise UsageError(f"port {port} of {host} is in use; give another with --port, or 0")
    _keep_vectors(folder.path, quiet)
    from ronid.studio.hall import open_hall
    from ronid.studio.session import Door

    hall = open_hall(run, store, said=note)
    port = port or _free_port(host)
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}/"
    if not quiet:
        note(f"reviewing {run} at {address} (stop with Ctrl+C)")
    if browser and not os.environ.get("CI"):
        _open_later(address)
    serve(hall, Door(hall.room.base.run, password), host, port)


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


def _is_free(host: str, port: int) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def _free_port(host: str) -> int:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def _open_later(address: str) -> None:
    """Open the browser when the server answers."""
    import threading
    import webbrowser

    threading.Timer(1.0, webbrowser.open, (address,)).start()
