"""`ronid learn`: train a run on from what people decided."""

import json
import os
import signal
import sys
from collections.abc import Mapping
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
    stream: Annotated[bool, typer.Option("--stream", hidden=True)] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Learn from a review: train on with what was decided, and show what changed.

    Accepted, moved and confirmed utterances become labels; merged intents are one, split ones
    their own; what was moved does not return. The run before is kept: see `ronid undo`.
    """
    from ronid.learn.flow import learn_run
    from ronid.run import open_finished

    lines = _Lines() if stream else None
    if lines is not None:
        signal.signal(signal.SIGTERM, _stopped)
    silent = quiet or stream
    done = learn_run(
        run,
        where=store or os.environ.get("RONID_REVIEW"),
        who=who,
        device=device,
        encoder=encoder,
        progress=lines or (None if quiet else Bars()),
        said=lines.say if lines else (lambda _: None) if silent else note,
    )
    report = open_finished(run).path / "report.html"
    result = {"run": str(run), "report": str(report), **asdict(done)}
    if lines is not None:
        lines.tell({"result": result})
        return
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


class _Lines:
    """Progress as one JSON object per line, for a program that follows."""

    def __init__(self) -> None:
        self.done = 0

    def tell(self, values: Mapping[str, Any]) -> None:
        """Write a line; whoever does not read any more does not stop the work."""
        try:
            sys.stdout.write(json.dumps(values) + "\n")
            sys.stdout.flush()
        except BrokenPipeError:
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - for the rest of the process

    def say(self, line: str) -> None:
        """Tell a step that has no progress of its own."""
        self.tell({"stage": "write", "done": 0, "total": 0, "says": line})

    def begin(self, stage: str, total: int) -> None:
        """Tell that a stage begins."""
        from ronid.cli.console import STAGES

        self.done, self.total = 0, total
        says = STAGES.get(stage, stage.replace("_", " "))
        self.tell({"stage": stage, "done": 0, "total": total, "says": says})

    def advance(self, steps: int = 1, figures: Mapping[str, Any] | None = None) -> None:
        """Tell how far the stage is."""
        self.done += steps
        self.tell({"done": self.done})

    def end(self) -> None:
        """Nothing to tell: the next stage follows."""
