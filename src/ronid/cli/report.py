"""`ronid report`: write the HTML report of a run anew."""

from pathlib import Path
from typing import Annotated

import typer

from ronid.cli.console import print_json
from ronid.cli.interrupt import UNCHANGED, on_interrupt
from ronid.cli.options import AsJson, Run
from ronid.errors import UsageError


@on_interrupt(UNCHANGED)
def report(
    run: Run,
    out: Annotated[
        Path | None,
        typer.Option(
            help="File to write. Default: report.html in the folder of the current version."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Regenerate the HTML report of a run and print its path."""
    from ronid.export.run_report import report_of_run
    from ronid.files import whole
    from ronid.run import open_finished

    finished = open_finished(run)
    if out is not None and not out.parent.is_dir():
        raise UsageError(f"folder '{out.parent}' for --out does not exist; make it first")
    path = out or finished.path / "report.html"
    with whole(path) as partial:
        report_of_run(finished, partial)
    if as_json:
        print_json({"report": str(path)})
    else:
        typer.echo(str(path))
