"""`ronid bench`: run benchmark cells, and make tables, comparisons and figures of their rows."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ronid.cli.console import Bars, note, print_json
from ronid.cli.interrupt import StoppedError, on_interrupt
from ronid.cli.options import AsJson, Device, Quiet, switch
from ronid.errors import UsageError

if TYPE_CHECKING:
    from ronid.bench.compare import Comparison
    from ronid.bench.order import Task
    from ronid.bench.runner import Ending, Event, Run, Todo
    from ronid.bench.sheets import Sheet

app = typer.Typer(
    help="Run the public benchmarks and show the results in tables, comparisons and figures.",
    no_args_is_help=True,
)

RowFiles = Annotated[
    list[Path],
    typer.Argument(metavar="ROWS...", help="Result files (.jsonl) written by `ronid bench run`."),
]

ConfigFiles = Annotated[
    list[Path],
    typer.Argument(
        metavar="CONFIG",
        help="TOML files that define benchmark jobs. Jobs of the first file run first.",
    ),
]
RowsFolder = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Folder for the result files, each named after its CONFIG. Default: "
        "benchmarks/results.",
    ),
]
METRICS = (
    "Metrics, comma-separated: nmi, ari, acc, known_acc, novel_acc, h_score, macro_acc, tail_acc, "
    "strict_acc, known_by_name, strict_novel_acc. All are in percent, higher is better."
)
ARGMAX = "argmax (inductive: nearest intent, one utterance at a time)"
REFIT = "refit (transductive: clusters the test set)"


@app.command("run")
def run_command(
    configs: ConfigFiles,
    out: Annotated[
        Path | None, typer.Option(help="Result file (.jsonl), only with a single CONFIG.")
    ] = None,
    rows: RowsFolder = None,
    encoder: Annotated[
        list[str] | None,
        typer.Option(
            "--encoder",
            metavar="TITLE=FOLDER",
            help="Model folder of the encoder that the CONFIGs call TITLE. Repeat the option for "
            "several.",
        ),
    ] = None,
    device: Device = "auto",
    minutes: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Time limit in minutes. RoNID does not start a job that would probably end after "
            "it. Default: no limit.",
        ),
    ] = None,
    jobs: Annotated[
        int, typer.Option(min=1, help="Number of processes that run benchmark jobs in parallel.")
    ] = 1,
    beside: Annotated[
        int,
        typer.Option(
            min=0,
            help="Number of other processes that use the same device. Stored with the results and "
            "used to estimate run times.",
        ),
    ] = 0,
    dry_run: Annotated[
        bool, switch("--dry-run", help="List the benchmark jobs without running them.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Run the benchmark jobs of one or more config files and store the results.

    A benchmark job is one method with one preset, encoder and seed on one dataset. Jobs whose
    results are already stored with the same settings are skipped: after an interruption, run the
    same command again.
    """
    from ronid.bench.plan import read_encoders
    from ronid.bench.runner import Run, run_tasks, todo
    from ronid.bench.sheets import read_sheets

    started = time.time()
    sheets = read_sheets(configs, out, rows, read_encoders(encoder or ()))
    found = [todo(sheet.plan, sheet.out) for sheet in sheets]
    if dry_run:
        _list_cells(sheets, found)
        return
    kind = _check_device(device)
    if not quiet:
        for line in (*_first_lines(sheets, found), *_mps_lines(kind, jobs)):
            note(line)
    teller = _Teller(sheets, found, quiet)
    deadline = None if minutes is None else started + 60 * minutes
    bars = Bars() if jobs == 1 and not quiet and teller.on_terminal else None
    sheets[0].out.parent.mkdir(parents=True, exist_ok=True)  # one folder for all
    run = Run(sheets, device, jobs, beside, deadline, bars)
    tasks = _tasks(sheets, found, rows, kind, jobs + beside)
    ending = run_tasks(run, tasks, teller.tell)
    _finish(run, found, ending, minutes, time.time() - started, quiet)


def _tasks(
    sheets: "Sequence[Sheet]", found: "Sequence[Todo]", folder: Path | None, kind: str, jobs: int
) -> "list[Task]":
    """Put the cells in order, by what cells took in all files of rows at hand."""
    from ronid.bench.order import make_tasks, read_seconds
    from ronid.bench.sheets import RESULTS

    files = {sheet.out for sheet in sheets}
    files |= {path for each in (RESULTS, folder or RESULTS) for path in each.glob("*.jsonl")}
    seconds = read_seconds(files, "cuda" if kind == "cuda" else "rss", jobs)
    return make_tasks(sheets, [each.pending for each in found], seconds)


def _finish(
    run: "Run",
    found: "Sequence[Todo]",
    ending: "Ending",
    minutes: float | None,
    wall_s: float,
    quiet: bool,
) -> None:
    """Say how a run ended, with the exit code that goes with it."""
    if ending.interrupted:
        from ronid.bench.runner import todo

        # Counted anew: the interrupt may have come between storing a row and counting it.
        counts = [
            f"{_name(run.sheets, sheet)}{len(todo(sheet.plan, sheet.out).done)} of "
            f"{len(sheet.plan.cells)}"
            for sheet in run.sheets
        ]
        raise StoppedError(f"{', '.join(counts)} cells done; run the same command to go on")
    if not quiet:
        for sheet, before, summary in zip(run.sheets, found, ending.summaries, strict=True):
            done = len(before.done) + summary.scored
            skipped = f", {summary.skipped} could not run" if summary.skipped else ""
            note(f"{done} of {len(sheet.plan.cells)} cells done{skipped}; rows: {sheet.out}")
    if ending.left and minutes is not None:
        count = len(ending.left)
        note(f"{count} cells remain after {minutes:g} minutes; run the same command to go on")
        for line in () if quiet else _left_lines(run, ending.left, minutes):
            note(line)
    if not quiet:
        note(f"{wall_s / 60:.1f} minutes in all")
    failed = [(s, each.failed) for s, each in zip(run.sheets, ending.summaries, strict=True)]
    for sheet, count in failed:
        if count:
            note(f"{count} cells failed unexpectedly; see {sheet.log}")
    if any(count for _, count in failed):
        raise typer.Exit(1)


def _left_lines(run: "Run", left: "Sequence[Task]", minutes: float) -> list[str]:
    """Say which cells remain and why, those that are alike together."""
    counts: dict[str, int] = {}
    for task in left:
        cell, spent = task.cell, task.expected_s
        if spent is None:
            reason = "the time was over"
        elif spent > 60 * minutes:
            reason = f"about {spent:.0f} s each, more than --minutes allows"
        else:
            reason = f"about {spent:.0f} s each, more than was left"
        name = f"{cell.dataset} {cell.method}{cell.variant} {cell.preset} {cell.encoder}"
        line = f"{_name(run.sheets, run.sheets[task.sheet])}{name}: {reason}"
        counts[line] = counts.get(line, 0) + 1
    return [f"  {count} of {line}" for line, count in counts.items()]


def _name(sheets: "Sequence[Sheet]", sheet: "Sheet") -> str:
    """Return what tells the lines of one config from those of the others, if there are any."""
    return f"{sheet.name}: " if len(sheets) > 1 else ""


@app.command("table")
def table_command(
    rows: RowFiles,
    format: Annotated[str, typer.Option(help="Output format: markdown, csv or html.")] = "markdown",
    rule: Annotated[str, typer.Option(help=f"Evaluation: {ARGMAX}, {REFIT} or both.")] = "argmax",
    by: Annotated[
        str,
        typer.Option(
            help="Leading columns, comma-separated. RoNID adds the settings that differ between "
            "the results."
        ),
    ] = "method,variant,encoder,preset,known_ratio",
    measures: Annotated[str, typer.Option(help=METRICS)] = "nmi,ari,acc",
    published: Annotated[
        str,
        typer.Option(
            help="Published results to add: all, own (only of the methods in ROWS) or none."
        ),
    ] = "all",
    version: Annotated[
        str,
        typer.Option(
            help="Pass `before` to show the results of commit 8ba84b5. Default: the results of "
            "later code."
        ),
    ] = "",
    out: Annotated[
        Path | None, typer.Option(help="File to write. Default: print the table.")
    ] = None,
) -> None:
    """Print the mean and standard deviation over seeds, next to published results."""
    from ronid.bench.render import FORMATS, write_table
    from ronid.bench.rows import read_all
    from ronid.bench.table import make_table

    if format not in FORMATS:
        raise UsageError(f"no format '{format}'; choose from: {', '.join(FORMATS)}")
    if out is not None and not out.parent.is_dir():
        raise UsageError(f"folder '{out.parent}' for --out does not exist; make it first")
    table = make_table(
        read_all(rows),
        rule=rule,
        by=_words(by),
        measures=_words(measures),
        beside=published,
        version=version,
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
    a: Annotated[
        str,
        typer.Option(
            "--a",
            help="Results of A, as comma-separated NAME=VALUE pairs, for example "
            '"preset=fast,variant=" (no variant).',
        ),
    ],
    b: Annotated[
        str | None,
        typer.Option(
            "--b",
            help="Results of B, in the same form. Default: the published results of A's method.",
        ),
    ] = None,
    measures: Annotated[str, typer.Option(help=METRICS)] = "acc",
    rule: Annotated[str, typer.Option(help=f"Evaluation: {ARGMAX} or {REFIT}.")] = "argmax",
    as_json: AsJson = False,
) -> None:
    """Test whether two settings differ in accuracy, or one setting and published results.

    Prints the mean difference A - B in percentage points (positive: A is better), its 95 %
    bootstrap interval, and the p-values of a t-test and a Wilcoxon signed-rank test. Results of A
    and B are paired by split and seed. NAME in --a and --b is a field of the result files, for
    example dataset, method, variant, preset or seed.
    """
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
    out: Annotated[Path, typer.Option(help="Folder for the SVG files.", file_okay=False)],
) -> None:
    """Draw SVG figures: pseudo-label accuracy, t-SNE maps, accuracy by share of known intents.

    Figures that the stored results do not support are skipped, with a message. To use this
    command, run first: pip install ".[bench]"
    """
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
    where += "" if group["split"] == "drawn" else f", {group['split']} split"
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

    def __init__(self, sheets: "Sequence[Sheet]", found: "Sequence[Todo]", quiet: bool) -> None:
        import sys

        self.total = sum(len(sheet.plan.cells) for sheet in sheets)
        self.done = sum(len(each.done) for each in found)
        self.names = [_name(sheets, sheet) for sheet in sheets]
        self.quiet = quiet
        self.on_terminal = sys.stderr.isatty()

    def tell(self, event: "Event") -> None:
        """Say how a cell ended; on a terminal also that it starts."""
        cell = f"{self.names[event.task.sheet]}{event.task.cell}"
        if event.row is None:
            if self.on_terminal and not self.quiet:
                note(f"  {cell} ...")
            return
        self.done += 1
        for message in event.warned:
            note(f"warning: {cell}: {message}")
        if not self.quiet:
            note(f"[{self.done}/{self.total}] {cell}: {_outcome(event.row)}")


def _outcome(row: dict[str, Any]) -> str:
    if "skip" in row:
        return f"skipped: {row['skip']}"
    argmax, refit = row["scores"]["argmax"], row["scores"]["refit"]
    figures = " ".join(f"{name.upper()} {argmax[name]:.2f}" for name in ("nmi", "ari", "acc"))
    return f"{figures} (refit ACC {refit['acc']:.2f}), {row['wall_s']:.1f} s"


def _first_lines(sheets: "Sequence[Sheet]", found: "Sequence[Todo]") -> list[str]:
    lines = []
    for sheet, left in zip(sheets, found, strict=True):
        lines.append(f"{len(sheet.plan.cells)} cells, {len(left.done)} stored in {sheet.out}")
        if left.stale:
            lines.append(
                f"{len(left.stale)} cells are stored with other settings, or without what is to be "
                f"kept, and run anew: {left.stale[0]}" + (", ..." if len(left.stale) > 1 else "")
            )
    return lines


def _mps_lines(kind: str, jobs: int) -> list[str]:
    """Say how several processes could have more of one GPU, where that is not done already."""
    import shutil

    if kind != "cuda" or jobs < 2 or shutil.which("nvidia-cuda-mps-control") is None:
        return []
    if _mps_runs():
        return []
    return [
        "processes take turns on the GPU; after `nvidia-cuda-mps-control -d` their small kernels "
        "overlap (on an H200: 1.7 times the throughput with 12 processes, 1.9 times with 4)"
    ]


def _mps_runs(processes: Path = Path("/proc")) -> bool:
    """Whether a daemon of CUDA's Multi-Process Service runs; names are cut to 15 letters here."""
    for name in processes.glob("[0-9]*/comm"):
        try:
            if name.read_text().startswith("nvidia-cuda-mps"):
                return True
        except OSError:  # it ended meanwhile
            continue
    return False


def _list_cells(sheets: "Sequence[Sheet]", found: "Sequence[Todo]") -> None:
    for sheet, left in zip(sheets, found, strict=True):
        done, stale = set(left.done), set(left.stale)
        for cell in sheet.plan.cells:
            state = "done" if cell in done else "stale" if cell in stale else "to run"
            typer.echo(f"{state:7} {cell}")
        done_of_all = f"{len(left.done)} of {len(sheet.plan.cells)} cells done"
        typer.echo(f"{_name(sheets, sheet)}{done_of_all}")


def _check_device(name: str) -> str:
    """Refuse a device that is not here before the first cell; return its kind."""
    from ronid.train.optim import choose_device

    return choose_device(name).type
