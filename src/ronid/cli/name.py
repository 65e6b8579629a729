"""`ronid name`: name the new intents of a run anew, by a language model where one is given."""

import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ronid.cli.console import Bars, note, print_json
from ronid.cli.interrupt import UNCHANGED, on_interrupt
from ronid.cli.options import AsJson, Quiet, Run, switch
from ronid.errors import UsageError

if TYPE_CHECKING:
    from ronid.export.rename import Renamed
    from ronid.name.llm import Namer
    from ronid.run import RunFolder

KEY = "RONID_NAMER_KEY"


@on_interrupt(UNCHANGED)
def name(
    run: Run,
    namer: Annotated[
        str | None,
        typer.Option(
            help="URL of an OpenAI-compatible chat API, for example http://localhost:8000/v1. "
            "Receives sample utterances, keyphrases and intent names. Set the API key in "
            f"{KEY}."
        ),
    ] = None,
    namer_model: Annotated[
        str | None, typer.Option(help="Model name at that API. Required with --namer.")
    ] = None,
    namer_timeout: Annotated[
        float, typer.Option(min=0.1, help="Seconds to wait for each answer.")
    ] = 60.0,
    show_prompt: Annotated[
        bool, switch("--show-prompt", help="Print the requests without sending them.")
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Regenerate the names of the new intents, from keyphrases or with a language model.

    Without --namer, the names come from the utterances and nothing leaves this machine. With
    --namer, RoNID sends requests to that URL and stores each one, without the API key, in
    sent.jsonl in the run folder. To see all requests without sending any, use --show-prompt. Names
    given by a user never change.

    If the model gives no usable answer for an intent, the intent keeps the name that a model gave
    it before, or gets one from its utterances. The exit code is then 1.
    """
    from ronid.export.rename import rename_run
    from ronid.run import open_finished

    asked = _namer(namer, namer_model, namer_timeout)
    finished = open_finished(run)
    if show_prompt:
        _show_prompts(finished, asked, as_json)
        return
    with on_interrupt(_left(finished)):
        progress = None if quiet or asked is None else Bars()
        done = rename_run(run, asked, progress, said=(lambda _: None) if quiet else note)
        _show(run, done, as_json)
    if done.unanswered:  # all is written, but it is not what was asked for
        raise typer.Exit(1)


def _left(run: "RunFolder") -> Callable[[], str]:
    """Return a function that says whether the names of a run are others than now."""
    from ronid.together import finish

    before = run.intents()

    def left() -> str:
        finish(run.path)
        if run.intents() == before:
            return UNCHANGED
        return "but the names are written already; the report has them"

    return left


def _show(run: Path, done: "Renamed", as_json: bool) -> None:
    """Print the names, and what the namer had no answer for."""
    if done.message:
        note(done.message)
    if as_json:
        changes = [{"old": old, "new": new} for old, new in done.changes]
        intents = [asdict(intent) for intent in done.after]
        told = {"note": done.message, "unanswered": done.unanswered}
        print_json({"run": str(run), "changes": changes, **told, "intents": intents})
    else:
        _table(done)


def _namer(url: str | None, model: str | None, timeout_s: float) -> "Namer | None":
    """Return whom to ask, or None."""
    from ronid.name.llm import Namer

    if url is None:
        if model is not None:
            raise UsageError("--namer-model needs --namer, the address of the endpoint")
        return None
    if model is None:
        raise UsageError("--namer needs --namer-model, the name of the model at that endpoint")
    return Namer(url, model, key=os.environ.get(KEY) or None, timeout_s=timeout_s)


def _show_prompts(run: "RunFolder", namer: "Namer | None", as_json: bool) -> None:
    """Print every request; the model's own names join the taken ones on the way."""
    from ronid.export.rename import named_anew
    from ronid.name.llm import prompt, request_body, spell_out, to_name

    intents = named_anew(run, keep_models=True)
    if not as_json:
        for text in spell_out(intents):
            typer.echo(_printable(text))
        return
    to, model = (None, None) if namer is None else (namer.address, namer.model)
    bodies = [request_body(model, _printable(prompt(each, intents))) for each in to_name(intents)]
    print_json({"run": str(run.path), "requests": [{"to": to, "body": each} for each in bodies]})


def _printable(text: str) -> str:
    """Return a text that can be written; half a surrogate pair cannot."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _table(done: "Renamed") -> None:
    """Print old and new names."""
    new = [(old, now) for old, now in zip(done.before, done.after, strict=True) if not now.known]
    table = Table("old name", "new name", "named by", box=None, padding=(0, 2))
    for column in table.columns:
        column.overflow = "fold"
    for old, now in sorted(new, key=lambda pair: -pair[1].size):
        table.add_row(escape(old.name), escape(now.name), escape(now.named_by))
    Console().print(table)
