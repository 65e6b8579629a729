"""`ronid fit`: from a file of utterances to a run folder, resumable at any moment."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ronid.cli.console import Bars, error, note, print_json
from ronid.cli.options import AsJson, Device, Encoding, Format, LabelColumn, Quiet, TextColumn
from ronid.cli.tables import intents_table, run_summary
from ronid.errors import RonidWarning, UsageError
from ronid.presets import AUTO, WITHOUT_GPU

if TYPE_CHECKING:
    from ronid.config import RoNIDConfig
    from ronid.run import Job, RunFolder
    from ronid.types import Corpus


def fit(
    source: Annotated[
        str | None, typer.Argument(metavar="INPUT", help="File of utterances, or - for stdin.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the run; must be unused.")] = None,
    intents: Annotated[
        int | None, typer.Option(help="How many intents there are, known and new together.")
    ] = None,
    text: TextColumn = None,
    label: LabelColumn = None,
    truth: Annotated[
        str | None, typer.Option(help="Column of true intents, for diagnostics only.")
    ] = None,
    id_column: Annotated[str | None, typer.Option("--id", help="Column of identifiers.")] = None,
    dev: Annotated[
        Path | None, typer.Option(help="File of held-out labelled utterances, for early stopping.")
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(help="auto (the default), default (GPU), fast (CPU) or paper (as published)."),
    ] = None,
    encoder: Annotated[
        str | None, typer.Option(help="Model folder or hub id; an embedded MiniLM by default.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="TOML file of settings.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same result (on CPU).")] = 0,
    device: Device = "auto",
    encoding: Encoding = "utf-8",
    format: Format = None,
    resume: Annotated[
        Path | None, typer.Option(help="Finish an interrupted run; takes no other input.")
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Discover the intents of INPUT and write a run folder with report and model."""
    if resume is not None:
        others = (source, out, intents, text, label, truth, id_column, dev, preset, encoder, config)
        if any(value is not None for value in others):
            raise UsageError(
                "--resume takes only the run's folder; leave out INPUT and every option but "
                "--json and --quiet"
            )
        run = _interrupted(resume)
        work_on(run, quiet)
        _show(run, as_json, quiet)
        return
    if source is None or out is None:
        raise UsageError("say what to read and where to write: ronid fit INPUT --out RUN")

    from ronid.run import Job, check_unused

    check_unused(out)
    settings = _settings(config, preset, encoder, device)
    corpus = read_corpus(
        source, text=text, label=label, truth=truth, id=id_column,
        encoding=encoding, format=format,
    )  # fmt: skip
    held_out = None
    if dev is not None:
        held_out = read_corpus(str(dev), text=text, label=label, encoding=encoding)
    if intents is None:
        raise UsageError(
            f"say how many intents there are, known and new together: --intents N "
            f"(the labels name {len(corpus.known)})"
        )
    job = Job(corpus, held_out, intents, settings, seed, device)
    _check_before_work(job)
    if not quiet and settings.preset == "fast" and _automatic(preset, config):
        note(WITHOUT_GPU)
    name = "standard input" if source == "-" else Path(source).name
    _show(start(out, job, name, quiet), as_json, quiet)


def read_corpus(source: str, **how: Any) -> "Corpus":
    """Read utterances; what was found is for `start` to tell."""
    from ronid.data.readers import load

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RonidWarning)  # the report says the same with counts
        return load(source, **how)


def tell_dropped(corpus: "Corpus") -> None:
    """Say how many rows had no text, so that nobody misses them in the results."""
    dropped = corpus.report.empties_dropped
    if dropped:
        note(f"{dropped} of {corpus.report.rows_read} rows have no text and were left out")


def start(out: Path, job: "Job", source: str, quiet: bool) -> "RunFolder":
    """Make the folder of a run, say what was read, and do the work."""
    from ronid.data.corpus import format_report
    from ronid.run import RunFolder

    run = RunFolder.create(out, job, source)
    if not quiet:
        for line in format_report(job.corpus.report):
            note(line)
    try:
        work_on(run, quiet)
    except UsageError:
        run.discard()  # such as an unknown encoder: nothing was begun that could be finished
        raise
    return run


def work_on(run: "RunFolder", quiet: bool) -> None:
    """Do what is left to do of a run."""
    if not quiet:
        note("loading the encoder")
    try:
        from ronid.pipeline import fit_run

        fit_run(run, progress=None if quiet else Bars(), said=(lambda _: None) if quiet else note)
    except KeyboardInterrupt:
        error(f"interrupted; nothing is lost, go on with: ronid fit --resume {run.path}")
        raise typer.Exit(130) from None


def _settings(
    config: Path | None, preset: str | None, encoder: str | None, device: str
) -> "RoNIDConfig":
    """Return the recipe: the preset, a file over it, single options over both."""
    from ronid.config import updated
    from ronid.presets import from_toml
    from ronid.presets import preset as named
    from ronid.train.optim import choose_device

    automatic = preset in {None, AUTO}
    gpu = automatic and choose_device(device).type == "cuda"
    chosen = named(preset or AUTO, gpu=gpu)
    if config is not None:
        chosen = from_toml(config, chosen)
        if not automatic and chosen.preset != preset:
            raise UsageError(f"--preset {preset} contradicts preset '{chosen.preset}' of {config}")
    if encoder is None:
        return chosen
    # A folder is kept in full, so that the run can be used from anywhere.
    name = str(Path(encoder).resolve()) if Path(encoder).is_dir() else encoder
    changed: RoNIDConfig = updated(chosen, {"encoder": {"name": name}})
    return changed


def _automatic(preset: str | None, config: Path | None) -> bool:
    """Whether nobody named a preset, neither the option nor the file."""
    from ronid.config import read_toml

    named = AUTO if config is None else read_toml(config).get("preset", AUTO)
    return preset in {None, AUTO} and named == AUTO


def _check_before_work(job: "Job") -> None:
    """Refuse an impossible question before a folder is made or a model loaded."""
    from ronid.data.splits import split_corpus

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RonidWarning)  # said again when the work begins
        split_corpus(job.corpus, job.n_intents)
    from ronid.encode.weights import locate
    from ronid.train.optim import choose_device

    locate(job.config.encoder.name)
    choose_device(job.device)


def _interrupted(path: Path) -> "RunFolder":
    """Return the unfinished run in `path`."""
    from ronid.run import open_run

    run = open_run(path)
    if run.finished:
        raise UsageError(f"run '{path}' is finished already; its report is {path / 'report.html'}")
    return run


def _show(run: "RunFolder", as_json: bool, quiet: bool) -> None:
    """Print what a run found."""
    if as_json:
        print_json(run_summary(run))
        return
    intents_table(run)
    if not quiet:
        note(f"report: {run.path / 'report.html'}")
