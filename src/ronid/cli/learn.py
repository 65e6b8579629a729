"""`ronid learn`: train a run on from what people decided."""

import signal
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from ronid.cli.console import Bars, note, print_json
from ronid.cli.interrupt import UNCHANGED, on_interrupt, version_left
from ronid.cli.options import AsJson, Device, EncoderFolder, Quiet, ReviewStore, Run
from ronid.errors import UsageError

if TYPE_CHECKING:
    from ronid.learn.record import Learned


@on_interrupt(UNCHANGED)
def learn(
    run: Run,
    store: ReviewStore = None,
    who: Annotated[str, typer.Option(help="Your name, recorded with this training.")] = "ronid",
    encoder: EncoderFolder = None,
    device: Device = "auto",
    job: Annotated[str, typer.Option("--job", hidden=True)] = "",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Retrain a run with the decisions of a review and print what changed.

    Utterances that a reviewer moved or confirmed, and the most typical ones of accepted intents,
    become labeled examples. Renames, merges, splits and rejections are applied. An utterance does
    not return to an intent that a reviewer moved it out of. The result is a new version of the run;
    `ronid undo` deletes it and restores the previous one.
    """
    from ronid.learn.decisions import NothingDecidedError
    from ronid.learn.flow import learn_run
    from ronid.review.desk import FILE
    from ronid.run import open_finished

    open_finished(run)  # refuses what is no run before its review is looked for
    where = store or str(run / FILE)
    _check_there(run, where)
    signal.signal(signal.SIGTERM, _stopped)
    with on_interrupt(version_left(run)):
        try:
            done = learn_run(
                run,
                where=where,
                who=who,
                device=device,
                encoder=encoder,
                progress=None if quiet else Bars(),
                said=(lambda _: None) if quiet else note,
                key=job,
            )
        except NothingDecidedError as reason:
            message = f"{reason} (decisions are read from '{_shown(where)}'); {_advice(run)}"
            raise UsageError(message) from None
        _show(run, done, as_json, quiet)


def _show(run: Path, done: "Learned", as_json: bool, quiet: bool) -> None:
    """Print what training on did."""
    from ronid.run import open_finished

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


def _check_there(run: Path, where: str) -> None:
    """Refuse a file of decisions that is not there; opening it would make it."""
    if "://" not in where and not Path(where).exists():
        raise UsageError(f"nothing was decided: there is no review at '{where}'; {_advice(run)}")


def _advice(run: Path) -> str:
    return f"review the run first: ronid review {run}"


def _shown(where: str) -> str:
    """Return a path, or a URL without what may be a password."""
    if "://" not in where:
        return where
    url = urlsplit(where)
    return f"{url.scheme}://{url.hostname or ''}{url.path}"


def _stopped(*_: Any) -> None:
    """End by an exception, so that nothing half written is left."""
    raise KeyboardInterrupt
