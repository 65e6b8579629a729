"""`ronid export`: intents and utterances for other systems."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ronid.cli.console import note, print_json
from ronid.cli.interrupt import UNCHANGED, on_interrupt
from ronid.cli.options import AsJson, Quiet, Run

if TYPE_CHECKING:
    from ronid.export.batch import Batch

TARGETS = "rasa, dialogflow-cx, lex, watson, clu, csv, jsonl, parquet, hf or openai-jsonl"
SEE_AUDIT = "; audit.jsonl lists them"


@on_interrupt(UNCHANGED)
def export(
    run: Run,
    to: Annotated[str, typer.Option(help=f"{TARGETS}.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder to make; export-TO here by default.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Also the intents that nobody has accepted yet.")
    ] = False,
    rejected: Annotated[
        bool, typer.Option("--rejected", help="Also the intents that were rejected.")
    ] = False,
    out_of_scope: Annotated[
        bool, typer.Option("--out-of-scope", help="Also the utterances of none of the intents.")
    ] = False,
    language: Annotated[
        str, typer.Option(help="Language of the utterances, such as en or pt-BR.")
    ] = "en",
    name: Annotated[str, typer.Option(help="Name of the bot, agent or project.")] = "ronid",
    store: Annotated[
        str | None,
        typer.Option(
            envvar="RONID_REVIEW_STORE",
            help="Where the decisions are: a path or a postgresql:// URL; review.sqlite in RUN.",
        ),
    ] = None,
    system: Annotated[
        str | None, typer.Option(help="What openai-jsonl tells the model before every utterance.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an older export.")] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write the accepted intents of a run in the format of another system, with an audit."""
    from ronid.export.batch import SYSTEM, Choice, Options
    from ronid.export.formats import load_format
    from ronid.export.reviewed import catalogue_of
    from ronid.export.write import export_catalogue

    load_format(to)  # refuses an unknown target before anything is read
    choice = Choice(everything, rejected, out_of_scope)
    options = Options(language, name, SYSTEM if system is None else system)
    place = out or Path(f"export-{to}")
    done = export_catalogue(catalogue_of(run, store, note), to, place, choice, options, force)
    if not quiet:
        for line in notes(done.batch):
            note(line)
    if as_json:
        print_json({"export": str(place), **done.summary, "notes": list(done.batch.notes)})
        return
    for path in done.files:
        typer.echo(str(path))


def notes(batch: "Batch") -> list[str]:
    """Say what was written, what was changed and what was left out, a line each."""
    from ronid.export.limits import reasons
    from ronid.plural import counted

    written = counted(len(batch.intents), "intent"), counted(len(batch.lines), "utterance")
    lines = [", ".join(written), *batch.notes]
    if batch.left_out:
        listed = ", ".join(f"{count:,} {why}" for why, count in reasons(batch.left_out).items())
        lines.append(f"left out: {counted(len(batch.left_out), 'utterance')} ({listed}){SEE_AUDIT}")
    if batch.empty:
        lines.append(f"left out, without utterances: {', '.join(i.name for i in batch.empty)}")
    if batch.changed:
        lines.append(f"changed: {counted(len(batch.changed), 'utterance')}{SEE_AUDIT}")
    if batch.renamed:
        lines.append(f"renamed: {counted(len(batch.renamed), 'intent')}; names.csv lists them")
    return lines
