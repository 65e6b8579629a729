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

app = typer.Typer(
    help="List, fetch, check and split the benchmarks; report on a file.", no_args_is_help=True
)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


@app.command("list")
def list_benchmarks(as_json: AsJson = False) -> None:
    """List the public benchmarks."""
    from ronid.data.benchmarks import BENCHMARKS

    if as_json:
        _print_json({name: asdict(entry) for name, entry in BENCHMARKS.items()})
        return
    table = Table("name", "title", "intents", "train", "dev", "test", "licence")
    table.columns[0].no_wrap = True  # a name is typed as it stands
    for name, entry in BENCHMARKS.items():
        rows = (f"{count:,}" for count in entry.rows.values())
        table.add_row(name, entry.title, str(entry.intents), *rows, entry.licence)
    Console().print(table)


@app.command()
def check(
    name: Annotated[str | None, typer.Argument(help="Benchmark; all when not given.")] = None,
    as_json: AsJson = False,
) -> None:
    """Compare benchmark files with their published SHA-256; exit 1 when one is not right."""
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
    name: Annotated[str, typer.Argument(help="Benchmark, or all.")], as_json: AsJson = False
) -> None:
    """Download a benchmark into the cache and verify it."""
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
    name: Annotated[str, typer.Argument(help="Benchmark.")],
    out: Annotated[Path, typer.Option(help="Folder to write.", file_okay=False)],
    known: Annotated[
        float, typer.Option(help="Share of intents that are known; 0: no labels.")
    ] = 0.75,
    labelled: Annotated[float, typer.Option(help="Share of their utterances labelled.")] = 0.1,
    seed: Annotated[int, typer.Option(help="Seed of the draw.")] = 0,
    shots: Annotated[
        int, typer.Option(help="Label so many of every known intent instead of a share.")
    ] = 0,
    label_noise: Annotated[float, typer.Option(help="Share of labels made wrong.")] = 0.0,
    absent: Annotated[
        float, typer.Option(help="Share of known intents with labelled utterances only.")
    ] = 0.0,
    tail: Annotated[float, typer.Option(help="Thin to sizes so many times apart.")] = 1.0,
    chatter: Annotated[
        float, typer.Option(help="Share of the pile that belongs to no intent.")
    ] = 0.0,
    as_json: AsJson = False,
) -> None:
    """Draw a benchmark split and write it as cell.json, train.csv, dev.csv and test.csv."""
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
    source: Annotated[str, typer.Argument(metavar="INPUT", help="File, or - for stdin.")],
    text: Annotated[str | None, typer.Option(help="Column of the utterances.")] = None,
    label: Annotated[str | None, typer.Option(help='Column of the intents, "" for none.')] = None,
    encoding: Annotated[str, typer.Option(help="Encoding of a text file.")] = "utf-8",
    format: Annotated[
        str | None, typer.Option(help="csv, tsv, jsonl, json, parquet, xlsx or txt.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say what reading a file finds: utterances, intents, duplicates, guessed columns."""
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
