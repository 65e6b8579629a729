"""`ronid update`, `undo` and `history`: data that keeps coming, and the way back."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ronid.cli.console import Bars, note, print_json
from ronid.cli.fit import origin_of, read_corpus, tell_reading
from ronid.cli.interrupt import UNCHANGED, on_interrupt, version_left
from ronid.cli.options import (
    UTTERANCES,
    AsJson,
    Device,
    EncoderFolder,
    Encoding,
    Format,
    IdColumn,
    LabelColumn,
    Quiet,
    Run,
    TextColumn,
)
from ronid.plural import counted

if TYPE_CHECKING:
    from ronid.update.record import Update


@on_interrupt(UNCHANGED)
def update(
    run: Run,
    source: Annotated[str, typer.Argument(metavar="NEW", help=UTTERANCES)],
    text: TextColumn = None,
    label: LabelColumn = None,
    id_column: IdColumn = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            help="Minimum in-scope score for assigning an utterance to an existing intent, from 0 "
            "(assigns all) to 1. Default: 0.1."
        ),
    ] = None,
    least: Annotated[
        int | None,
        typer.Option(
            help="Minimum number of utterances in a new intent. Default: 35 % of the median size "
            "of existing intents, but at least 5."
        ),
    ] = None,
    encoder: EncoderFolder = None,
    device: Device = "auto",
    encoding: Encoding = "utf-8",
    format: Format = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Add new utterances to a run and discover new intents among them.

    Existing intents keep their names. Labels in the file are kept, and a label that is new to the
    run adds a known intent. Similar utterances that fit no existing intent form a new one. Those
    that form none stay unassigned, and the next update considers them again. The result is a new
    version of the run; `ronid undo` deletes it and restores the previous one.
    """
    from ronid.run import open_finished

    open_finished(run)  # refuses an unfinished run before anything is read
    corpus = read_corpus(
        source, text=text, label=label, id=id_column, encoding=encoding, format=format
    )
    if not quiet:
        tell_reading(corpus)
    with on_interrupt(version_left(run)):
        from ronid.update import update_run

        done = update_run(
            run,
            corpus,
            source=origin_of(source),
            threshold=threshold,
            least=least,
            device=device,
            encoder=encoder,
            progress=None if quiet else Bars(),
            said=(lambda _: None) if quiet else note,
        )
        _show(run, done, as_json, quiet)


def _show(run: Path, done: "Update", as_json: bool, quiet: bool) -> None:
    """Print what an update did."""
    from ronid.run import open_finished

    report = open_finished(run).path / "report.html"
    if as_json:
        print_json({"run": str(run), "report": str(report), **asdict(done)})
        return
    from ronid.export.updates import update_lines

    heading, lines = update_lines(asdict(done))
    for line in (heading, *(f"  {line}" for line in lines)):
        typer.echo(line.encode("utf-8", "replace").decode("utf-8"))
    if not quiet:
        note(f"report: {report}")
        note(f"the version before is back with: ronid undo {run}")


def undo(run: Run, as_json: AsJson = False) -> None:
    """Delete the current version of a run and restore the previous one.

    This reverts the last `ronid update` or `ronid learn`. Repeat it to go back further. The
    original fit and the decisions of a review are never deleted.
    """
    from ronid.run import open_finished
    from ronid.versions import undo as go_back

    open_finished(run)
    with on_interrupt(version_left(run)):
        number = go_back(run)
        row = _versions(run)[-1]
        if as_json:
            print_json({"run": str(run), **row})
            return
        made = "as `ronid fit` made it" if number == 0 else f"of {row['when']}"
        counts = f"{counted(row['utterances'], 'utterance')}, {counted(row['intents'], 'intent')}"
        typer.echo(f"back to version {number}, {made}: {counts}")


def history(run: Run, as_json: AsJson = False) -> None:
    """List the versions of a run, from the first to the current one.

    `ronid update` and `ronid learn` add versions. `new` is the number of intents that a version
    added. `collected` is the number of its unassigned utterances, kept for the next update.
    """
    from ronid.run import open_finished

    open_finished(run)
    rows = _versions(run)
    if as_json:
        print_json(rows)
        return
    table = Table(*rows[0], box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for column in table.columns[:2]:
        column.no_wrap = True
    for row in rows:
        shown = row | {"when": row["when"][:16].replace("T", " ")}
        table.add_row(*(escape(f"{v:,}" if isinstance(v, int) else v) for v in shown.values()))
    Console().print(table)


def _versions(run: Path) -> list[dict[str, Any]]:
    """Return one mapping per version, the current one last."""
    from ronid.run import RunFolder, open_finished

    first, facts = RunFolder(run), open_finished(run).facts()
    rows = [
        {
            "version": 0,
            "when": facts["created"],
            "source": facts["source"],
            "rows": first.data_report().rows_kept,
            "utterances": first.assignments().num_rows,
            "intents": len(first.intents()),
            "new": sum(not intent.known for intent in first.intents()),
            "collected": 0,
        }
    ]
    for each in facts.get("updates", ()):
        rows.append({**{key: each[key] for key in rows[0]}, "new": len(each["new"])})
    return rows
