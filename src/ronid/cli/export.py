"""`ronid export`: intents and utterances for other systems."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ronid.cli.console import note, print_json
from ronid.cli.interrupt import UNCHANGED, on_interrupt
from ronid.cli.options import AsJson, Quiet, ReviewStore, Run, switch

if TYPE_CHECKING:
    from ronid.export.batch import Batch

TARGETS = "rasa, dialogflow-cx, lex, watson, clu, csv, jsonl, parquet, hf or openai-jsonl"
SEE_AUDIT = "; audit.jsonl lists them"


@on_interrupt(UNCHANGED)
def export(
    run: Run,
    to: Annotated[str, typer.Option(help=f"Target format: {TARGETS}.")],
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder to create. Default: export-TO in the current folder, for example "
            "export-rasa."
        ),
    ] = None,
    everything: Annotated[
        bool, switch("--all", help="Also export new intents that nobody has accepted yet.")
    ] = False,
    rejected: Annotated[bool, switch("--rejected", help="Also export rejected intents.")] = False,
    out_of_scope: Annotated[
        bool,
        switch(
            "--out-of-scope",
            help="Also export out-of-scope and unassigned utterances, as an intent named "
            "out_of_scope (in clu: an intent named None).",
        ),
    ] = False,
    language: Annotated[
        str,
        typer.Option(
            help="Language code of the utterances, for example en or pt-BR. Used by "
            "dialogflow-cx, lex, clu and hf."
        ),
    ] = "en",
    name: Annotated[
        str,
        typer.Option(
            help="Name of the bot, agent, project or dataset. Used by dialogflow-cx, lex, clu and "
            "hf."
        ),
    ] = "ronid",
    store: ReviewStore = None,
    system: Annotated[
        str | None,
        typer.Option(
            help="System message in every openai-jsonl conversation. Default: an instruction to "
            'answer with the name of the intent; "" for none.'
        ),
    ] = None,
    force: Annotated[
        bool, switch("--force", help="Replace an existing export; never overwrite other files.")
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Export the accepted intents of a run for a chatbot platform or as a dataset.

    Known intents count as accepted unless a reviewer rejected them. Every decision of the review is
    applied, also before `ronid learn`. The command writes a folder and sends nothing. Besides the
    export, the folder contains names.csv (each intent's name in the run and in the export) and
    audit.jsonl (the source of every label, and what was changed or left out).
    """
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
