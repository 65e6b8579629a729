"""`ronid bench`: run benchmark cells, and make tables, comparisons and figures of their rows."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ronid.cli.console import Bars, note, print_json
from ronid.cli.interrupt import StoppedError, on_interrupt
from ronid.cli.options import AsJson, Device, Quiet
from ronid.errors import UsageError

if TYPE_CHECKING:
    from ronid.bench.compare import Comparison
    from ronid.bench.plan import Plan
    from ronid.bench.runner import Event, Run, Summary, Todo

app = typer.Typer(
    help="Run the public benchmarks; tables, comparisons and figures from stored rows.",
    no_args_is_help=True,
)

RowFiles = Annotated[
    list[Path], typer.Argument(metavar="ROWS...", help="Files that `ronid bench run` wrote.")
]


@app.command("run")
def run_command(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="TOML file of cells.")],
    out: Annotated[
        Path | None,
        typer.Option(help="File of rows; benchmarks/results/<name of CONFIG>.jsonl by default."),
    ] = None,
    encoder: Annotated[
        list[str] | None,
        typer.Option("--encoder", metavar="TITLE=FOLDER", help="Where the weights of one lie."),
    ] = None,
    device: Device = "auto",
    minutes: Annotated[
        float | None, typer.Option(min=0, help="Start no cell after so many minutes.")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Processes that share the cells.")] = 1,
    beside: Annotated[
        int, typer.Option(min=0, help="Processes of other commands on the same device, noted.")
    ] = 0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the cells only.")] = False,
    quiet: Quiet = False,
) -> None:
    """Run every cell of CONFIG that is not stored yet; stop and go on as you like."""
    from ronid.bench.plan import read_encoders, read_plan
    from ronid.bench.runner import Run, run_plan, todo

    started = time.time()
    plan = read_plan(config, read_encoders(encoder or ()))
    rows = out or Path("benchmarks") / "results" / f"{config.stem}.jsonl"
    left = todo(plan, rows)
    if dry_run:
        _list_cells(plan, left)
        return
    _check_device(device)
    if not quiet:
        for line in _first_lines(plan, left, rows):
            note(line)
    teller = _Teller(len(plan.cells), len(left.done), quiet)
    deadline = None if minutes is None else started + 60 * minutes
    bars = Bars() if jobs == 1 and not quiet and teller.on_terminal else None
    rows.parent.mkdir(parents=True, exist_ok=True)
    run = Run(plan, rows, device, jobs, beside, deadline, bars)
    summary = run_plan(run, left.pending, teller.tell)
    _finish(run, left, summary, minutes, quiet)


def _finish(
    run: "Run", left: "Todo", summary: "Summary", minutes: float | None, quiet: bool
) -> None:
    """Say how a run ended, with the exit code that goes with it."""
    total, done = len(run.plan.cells), len(left.done) + summary.scored
    if summary.interrupted:
        from ronid.bench.runner import todo

        # Counted anew: the interrupt may have come between storing a row and counting it.
        done = len(todo(run.plan, run.out).done)
        raise StoppedError(f"{done} of {total} cells done; run the same command to go on")
    if not quiet:
        skipped = f", {summary.skipped} could not run" if summary.skipped else ""
        note(f"{done} of {total} cells done{skipped}; rows: {run.out}")
    remain = len(left.pending) - summary.scored - summary.skipped
    if remain and minutes is not None:
        note(f"{remain} cells remain after {minutes:g} minutes; run the same command to go on")
    if summary.failed:
        note(f"{summary.failed} cells failed unexpectedly; see {run.log}")
        raise typer.Exit(1)


@app.command("table")
def table_command(
    rows: RowFiles,
    format: Annotated[str, typer.Option(help="markdown, csv or html.")] = "markdown",
    rule: Annotated[str, typer.Option(help="argmax, refit or both.")] = "argmax",
    by: Annotated[
        str, typer.Option(help="Leading columns, with commas; what differs is added.")
    ] = "method,variant,encoder,preset,known_ratio",
    measures: Annotated[
        str, typer.Option(help="nmi, ari, acc, known_acc, novel_acc, h_score; with commas.")
    ] = "nmi,ari,acc",
    published: Annotated[
        str, typer.Option(help="Published lines: all, own (of the same methods) or none.")
    ] = "all",
    out: Annotated[Path | None, typer.Option(help="File to write instead of printing.")] = None,
) -> None:
    """Show mean and deviation over seeds, with published figures beside ours."""
    from ronid.bench.render import FORMATS, write_table
    from ronid.bench.rows import read_all
    from ronid.bench.table import make_table

    if format not in FORMATS:
        raise UsageError(f"no format '{format}'; choose from: {', '.join(FORMATS)}")
    if out is not None and not out.parent.is_dir():
        raise UsageError(f"folder '{out.parent}' for --out does not exist; make it first")
    table = make_table(
        read_all(rows), rule=rule, by=_words(by), measures=_words(measures), beside=published
    )
    for text in table.warnings:
        note(f"warning: {text}")
    written = FORMATS[format](table)
    if out is None:
        typer.echo(written, nl=False)
    else:
        write_table(out, written)
        typer.echo(str(out))


@app.command("compare")
def compare_command(
    rows: RowFiles,
    a: Annotated[str, typer.Option("--a", help='Such as "preset=fast,variant=".')],
    b: Annotated[
        str | None, typer.Option("--b", help="Likewise; without it, the published figures.")
    ] = None,
    measures: Annotated[str, typer.Option(help="Scores to compare, with commas.")] = "acc",
    rule: Annotated[str, typer.Option(help="argmax or refit.")] = "argmax",
    as_json: AsJson = False,
) -> None:
    """Test whether A is better than B on the same splits, or than what was published."""
    from dataclasses import asdict

    from ronid.bench.compare import compare, compare_published, read_selector, select
    from ronid.bench.rows import read_all
    from ronid.bench.table import MEASURES, RULES

    for name in _words(measures):
        if name not in MEASURES:
            raise UsageError(f"no measure '{name}'; choose from: {', '.join(MEASURES)}")
    if rule not in RULES:
        raise UsageError(f"no rule '{rule}'; choose from: {', '.join(RULES)}")
    found = read_all(rows)
    ours = select(found, read_selector(a))
    theirs = None if b is None else select(found, read_selector(b))
    results = [
        result
        for name in _words(measures)
        for result in (
            compare_published(ours, name, rule)
            if theirs is None
            else compare(ours, theirs, name, rule)
        )
    ]
    if as_json:
        print_json([asdict(result) for result in results])
        return
    typer.echo(
        "one-sample tests of A against a published figure, whose own spread is unknown"
        if theirs is None
        else "A - B, paired by split and seed"
    )
    for result in results:
        typer.echo(_comparison_text(result))


@app.command("figures")
@on_interrupt("what is drawn stays, run the same command again")
def figures_command(
    rows: RowFiles,
    out: Annotated[Path, typer.Option(help="Folder for SVG files.", file_okay=False)],
) -> None:
    """Draw what the stored rows allow: pseudo-labels per epoch, maps, known ratios."""
    from ronid.bench.figures import draw_all
    from ronid.bench.rows import read_all

    drawn = draw_all(read_all(rows), out)
    for path in drawn.files:
        typer.echo(str(path))
    for text in drawn.missing:
        note(f"not drawn: {text}")
    if not drawn.files:
        raise typer.Exit(1)


def _comparison_text(result: "Comparison") -> str:
    group = result.group
    where = (
        f"{group['dataset']} known {group['known_ratio']:g} labelled {group['labelled_ratio']:g}"
    )
    where += "" if group["k_rule"] == "given" else f" K {group['k_rule']}"
    where += "" if group["scored_on"] == "test" else f" on {group['scored_on']}"
    against = "" if result.against == "paired" else f" against {result.against}"
    spread = "-" if result.std is None else f"{result.std:.2f}"
    return (
        f"{where} {result.measure.upper()}{against}: {result.mean:+.2f} (std {spread}, "
        f"n={result.n}), 95% interval {result.low:+.2f} to {result.high:+.2f}, "
        f"t-test p {_p(result.t_p)}, Wilcoxon p {_p(result.wilcoxon_p)}"
    )


def _p(value: float | None) -> str:
    return "-" if value is None else f"{value:.2g}"


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


class _Teller:
    """One line per cell, with how far the whole is."""

    def __init__(self, total: int, done: int, quiet: bool) -> None:
        import sys

        self.total, self.done, self.quiet = total, done, quiet
        self.on_terminal = sys.stderr.isatty()

    def tell(self, event: "Event") -> None:
        """Say how a cell ended; on a terminal also that it starts."""
        if event.row is None:
            if self.on_terminal and not self.quiet:
                note(f"  {event.cell} ...")
            return
        self.done += 1
        for message in event.warned:
            note(f"warning: {event.cell}: {message}")
        if not self.quiet:
            note(f"[{self.done}/{self.total}] {event.cell}: {_outcome(event.row)}")


def _outcome(row: dict[str, Any]) -> str:
    if "skip" in row:
        return f"skipped: {row['skip']}"
    argmax, refit = row["scores"]["argmax"], row["scores"]["refit"]
    figures = " ".join(f"{name.upper()} {argmax[name]:.2f}" for name in ("nmi", "ari", "acc"))
    return f"{figures} (refit ACC {refit['acc']:.2f}), {row['wall_s']:.1f} s"


def _first_lines(plan: "Plan", left: "Todo", rows: Path) -> list[str]:
    lines = [f"{len(plan.cells)} cells, {len(left.done)} stored in {rows}"]
    if left.stale:
        lines.append(
            f"{len(left.stale)} cells are stored with other settings, or without what is to be "
            f"kept, and run anew: {left.stale[0]}" + (", ..." if len(left.stale) > 1 else "")
        )
    return lines


def _list_cells(plan: "Plan", left: "Todo") -> None:
    done, stale = set(left.done), set(left.stale)
    for cell in plan.cells:
        state = "done" if cell in done else "stale" if cell in stale else "to run"
        typer.echo(f"{state:7} {cell}")
    typer.echo(f"{len(left.done)} of {len(plan.cells)} cells done")


def _check_device(name: str) -> None:
    """Refuse a device that is not here before the first cell."""
    from ronid.train.optim import choose_device

    choose_device(name)
