"""The command line's table of contents."""

from typing import Annotated

import typer

from ronid.cli import bench, data
from ronid.cli.demo import demo
from ronid.cli.evaluate import evaluate
from ronid.cli.export import export
from ronid.cli.fit import fit
from ronid.cli.learn import learn
from ronid.cli.methods import methods
from ronid.cli.name import name
from ronid.cli.options import switch
from ronid.cli.predict import predict
from ronid.cli.report import report
from ronid.cli.review import review
from ronid.cli.update import history, undo, update
from ronid.version import __version__

app = typer.Typer(
    name="ronid",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ronid {__version__}")
        raise typer.Exit


@app.callback()
def _ronid(
    version: Annotated[
        bool,
        switch("--version", callback=_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Discover the intents in a file of utterances.

    Give RoNID a few labeled examples and a pool of unlabeled utterances. It recognizes the intents
    you know, and discovers, counts and names the ones you don't. To try it, run: ronid demo
    """


app.command()(demo)
app.command()(fit)
app.command()(predict)
app.command()(evaluate)
app.command()(update)
app.command()(learn)
app.command()(undo)
app.command()(history)
app.command()(report)
app.command()(review)
app.command()(name)
app.command()(export)
app.command()(methods)
app.add_typer(data.app, name="data")
app.add_typer(bench.app, name="bench")
