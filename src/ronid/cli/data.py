"""`ronid data`: the public benchmarks, their splits, and a look at a file of your own."""

import json
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from ronid.cli.interrupt import on_interrupt
from ronid.cli.options import UTTERANCES, AsJson, Encoding, Format, LabelColumn, TextColumn

app = typer.Typer(
    help="Download, verify and split the public benchmarks; summarize a file of your own.",
    no_args_is_help=True,
)

BENCHMARK = "Name of a benchmark; see `ronid data list`."


@app.command("list")
def list_benchmarks(as_json: AsJson = False) -> None:
    """List the public benchmarks with their sizes and licenses."""
    from ronid.data.benchmarks import BENCHMARKS

    if as_json:
        _print_json({name: asdict(entry) for name, entry in BENCHMARKS.items()})
        return
    table = Table("name", "title", "intents", "train", "dev", "test", "licence")
    table.columns[0].no_wrap = True  # a name is typed as it stands
    table.columns[1].overflow = "fold"
    for name, entry in BENCHMARKS.items():
        rows = (f"{count:,}" for count in entry.rows.values())
        table.add_row(name, entry.title, str(entry.intents), *rows, entry.licence)
    Console().print(table)


@app.command()
def check(
    name: Annotated[
        str | None, typer.Argument(help=f"{BENCHMARK} Default: all benchmarks.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Verify the files of the benchmarks against their published SHA-256 checksums.

    Looks in $RONID_DATA, then in the folder of `ronid data fetch`. The exit code is 1 if a file is
    missing or differs. Without NAME, benchmarks that you did not download count as missing.
    """
    from ronid.data import benchmarks

    names = [name] if name else list(benchmarks.BENCHMARKS)
    states = {each: benchmarks.check(each) for each in names}
    if as_json:
        _print_json(
            {each: {state.part: _state(state) for state in files} for each, files in states.items()}
        )
    else:
        table = Table("benchmark", "part", "status", "file")
        for each, files in states.items():
            for state in files:
                table.add_row(each, state.part, state.status, str(state.path))
        Console().print(table)
    if any(state.status != "ok" for files in states.values() for state in files):
        raise typer.Exit(1)


@app.command()
@on_interrupt("whole files stay, run the same command again")
def fetch(
    name: Annotated[str, typer.Argument(help=f"{BENCHMARK} `all` fetches every benchmark.")],
    as_json: AsJson = False,
) -> None:
    """Download a benchmark and verify its checksums.

    The files go to $RONID_CACHE/data (default: ~/.cache/ronid/data). Files that are already there
    and correct are not downloaded again.
    """
    from ronid.data import benchmarks

    names = list(benchmarks.BENCHMARKS) if name == "all" else [name]
    folders = {each: str(benchmarks.fetch(each)) for each in names}
    if as_json:
        _print_json(folders)
        return
    for each, folder in folders.items():
        typer.echo(f"{each}: {folder}")


@app.command()
@on_interrupt("files may be missing, run the same command again")
def split(
    name: Annotated[str, typer.Argument(help=BENCHMARK)],
    out: Annotated[Path, typer.Option(help="Folder for the files.", file_okay=False)],
    known: Annotated[
        float, typer.Option(help="Share of intents that are known, from 0 (no labels) to 1.")
    ] = 0.75,
    labelled: Annotated[
        float,
        typer.Option(
            help="Share of the training utterances of known intents that are labeled, 0 to 1."
        ),
    ] = 0.1,
    seed: Annotated[int, typer.Option(help="Random seed of the split.")] = 0,
    shots: Annotated[
        int,
        typer.Option(
            help="Number of labeled utterances per known intent, instead of --labelled. 0 uses "
            "--labelled."
        ),
    ] = 0,
    label_noise: Annotated[
        float,
        typer.Option(help="Share of labels that are changed to another known intent, 0 to 1."),
    ] = 0.0,
    absent: Annotated[
        float,
        typer.Option(
            help="Share of known intents that have labeled but no unlabeled utterances, 0 to 1."
        ),
    ] = 0.0,
    tail: Annotated[
        float,
        typer.Option(
            help="Make the training file imbalanced: the largest intent gets this many times the "
            "utterances of the smallest. 1 changes nothing."
        ),
    ] = 1.0,
    chatter: Annotated[
        float,
        typer.Option(
            help="Share of the training file that is out-of-domain text (OOD) from other "
            "benchmarks, 0 or more and below 1."
        ),
    ] = 0.0,
    as_json: AsJson = False,
) -> None:
    """Create a split of a benchmark and write it as CSV files.

    Writes train.csv, dev.csv and test.csv with the columns id, text, intent (empty if
    unlabeled) and truth, and cell.json with the definition of the split. The same seed gives the
    same split on every machine.
    """
    from ronid.data.cell_files import write_problem
    from ronid.data.pile import Pile
    from ronid.data.splits import benchmark_cell

    pile = Pile(shots, label_noise, absent, tail, chatter)
    cell = benchmark_cell(name, known, labelled, seed, pile)
    files = [str(path) for path in write_problem(out, cell)]
    if as_json:
        _print_json(
            {
                "known": len(cell.known),
                "labelled": len(cell.labelled),
                "hash": cell.hash,
                "files": files,
            }
        )
        return
    typer.echo(f"{len(cell.known)} known intents, {len(cell.labelled):,} labelled utterances")
    typer.echo(f"hash {cell.hash}")
    for path in files:
        typer.echo(path)


@app.command()
def report(
    source: Annotated[str, typer.Argument(metavar="INPUT", help=UTTERANCES)],
    text: TextColumn = None,
    label: LabelColumn = None,
    encoding: Encoding = "utf-8",
    format: Format = None,
    as_json: AsJson = False,
) -> None:
    """Summarize what RoNID reads from a file: utterances, labels, duplicates, guessed columns."""
    from ronid.data.corpus import case_warning, differing_in_case, format_report
    from ronid.data.readers import load
    from ronid.errors import RonidWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RonidWarning)  # the report says the same
        found = load(source, text=text, label=label, encoding=encoding, format=format).report
    if as_json:
        more = {"labelled": found.labelled, "used_once": found.used_once}
        more["differing_in_case"] = differing_in_case(found.label_counts)
        _print_json(asdict(found) | more)
        return
    for line in format_report(found):
        typer.echo(line)
    told = case_warning(found.label_counts)  # `ronid fit` warns of it
    if told:
        typer.echo(told)


def _state(state: Any) -> dict[str, str]:
    return {"status": state.status, "path": str(state.path)}


def _print_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=1, ensure_ascii=False))
