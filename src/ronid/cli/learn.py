"""`ronid learn`: train a run on from what people decided."""

import os
import signal
from dataclasses import asdict
from typing import Annotated, Any

import typer

from ronid.cli.console import Bars, note, print_json
from ronid.cli.options import AsJson, Device, EncoderFolder, Quiet, Run


def learn(
    run: Run,
    store: Annotated[
        str | None,
        typer.Option(help="Where the decisions are: a file, or a postgresql:// URL."),
    ] = None,
    who: Annotated[str, typer.Option(help="Your name, for the history.")] = "ronid",
    encoder: EncoderFolder = None,
    device: Device = "auto",
    job: Annotated[str, typer.Option("--job", hidden=True)] = "",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Learn from a review: train on with what was decided, and show what changed.

    Accepted, moved and confirmed utterances become labels; merged intents are one, split ones
    their own; what was moved does not return. The run before is kept: see `ronid undo`.
    """
    from ronid.learn.flow import learn_run
    from ronid.run import open_finished

    signal.signal(signal.SIGTERM, _stopped)
    done = learn_run(
        run,
        where=store or os.environ.get("RONID_REVIEW"),
        who=who,
        device=device,
        encoder=encoder,
        progress=None if quiet else Bars(),
        said=(lambda _: None) if quiet else note,
        key=job,
    )
    report = open_finished(run).path / "report.html"
    result = {"run": str(run), "report": str(report), **asdict(done)}
    if as_json:
        print_json(result)
        return
    from ronid.export.updates import update_lines

    heading, rows = update_lines(asdict(done))
    for line in (heading, *(f"  {row}" for row in rows)):
        typer.echo(line.encode("utf-8", "replace").decode("utf-8"))
    if not quiet:
        note(f"report: {report}")
        note(f"the version before is back with: ronid undo {run}")


def _stopped(*_: Any) -> None:
    """End by an exception, so that nothing half written is left."""
    raise KeyboardInterrupt
