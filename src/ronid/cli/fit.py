"""`ronid fit`: from a file of utterances to a run folder, resumable at any moment."""

import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ronid.cli.console import Bars, note, print_json
from ronid.cli.interrupt import UNCHANGED, on_interrupt
from ronid.cli.options import (
    UTTERANCES,
    AsJson,
    Device,
    Encoding,
    Format,
    IdColumn,
    LabelColumn,
    Quiet,
    Seed,
    TextColumn,
    switch,
)
from ronid.cli.tables import (
    count_lines,
    idle_lines,
    intents_table,
    refused_lines,
    run_summary,
    scores_table,
)
from ronid.errors import RonidWarning, UsageError
from ronid.presets import AUTO, WITHOUT_GPU

if TYPE_CHECKING:
    from ronid.config import MethodConfig
    from ronid.methods import Asked
    from ronid.run import Job, RunFolder
    from ronid.types import Corpus


@on_interrupt(UNCHANGED)
def fit(
    source: Annotated[str | None, typer.Argument(metavar="INPUT", help=UTTERANCES)] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Run folder to create. It must be new or empty. Required unless --resume is used."
        ),
    ] = None,
    intents: Annotated[
        str | None,
        typer.Option(
            metavar="N|auto",
            help="Number of intents, known and new together; auto (the default) estimates it. "
            "RoNID also checks N against its estimate: if N is above the estimated range, it makes "
            "the estimated number of intents instead.",
        ),
    ] = None,
    exactly: Annotated[
        bool,
        switch(
            "--exactly",
            help="With --intents N: make N intents without an estimate. If N is too high, some new "
            "intents contain no utterances.",
        ),
    ] = False,
    text: TextColumn = None,
    label: LabelColumn = None,
    truth: Annotated[
        str | None,
        typer.Option(
            help="Column with the true intents. Used to score the result, never for training."
        ),
    ] = None,
    id_column: IdColumn = None,
    dev: Annotated[
        Path | None,
        typer.Option(
            help="File of labeled utterances that decide when training stops. Without it, preset "
            "`paper` sets aside 20 % of the labeled utterances in INPUT. Presets `default` and "
            "`fast` do not need it."
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(help="Discovery method. Default: ronid; `ronid methods` lists all methods."),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            help="Preset: auto, default, fast or paper. If omitted, RoNID uses auto, which picks "
            "the preset named `default` on a GPU and `fast` on a CPU. `paper` has the constants of "
            "the RoNID paper. Other methods have only the preset `published`."
        ),
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            help="Text encoder: a model folder, a Hugging Face model ID, or tfidf. Default: set by "
            "the preset (all-MiniLM-L6-v2 for ronid)."
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help="TOML file with settings that override the preset, for example config.toml of "
            "another run."
        ),
    ] = None,
    seed: Seed = 0,
    device: Device = "auto",
    encoding: Encoding = "utf-8",
    format: Format = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            help="Finish the interrupted fit in this run folder. Only --json and --quiet can be "
            "combined with it."
        ),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Discover the intents in a file of utterances and write a run folder.

    Labeled utterances define the known intents; without labels, every intent is new. The run folder
    contains the model, the intents, the intent of every utterance and an HTML report.
    """
    if resume is not None:
        others: tuple[Any, ...] = (source, out, intents, text, label, truth, id_column, dev)
        others += (method, preset, encoder, config, exactly or None)
        if any(value is not None for value in others):
            raise UsageError(
                "--resume takes only the run's folder; leave out INPUT and every option but "
                "--json and --quiet"
            )
        run = _interrupted(resume)
        work_on(run, quiet)
        with on_interrupt(partial(finished_left, run)):
            _show(run, as_json, quiet)
        return
    if source is None or out is None:
        raise UsageError("say what to read and where to write: ronid fit INPUT --out RUN")

    from ronid.run import Job, check_unused

    check_unused(out)
    wanted = _wanted(intents, exactly)
    asked = _asked(method, preset, config)
    settings = _settings(asked, encoder)  # wrong ones are refused before the input is read
    corpus = read_corpus(
        source, text=text, label=label, truth=truth, id=id_column,
        encoding=encoding, format=format,
    )  # fmt: skip
    held_out = None
    if dev is not None:
        held_out = read_corpus(str(dev), text=text, label=label, encoding=encoding)
    _check_before_work(corpus, wanted, settings)
    if _on_gpu(device):
        settings = _settings(asked, encoder, gpu=True)
    elif not quiet:
        for line in without_gpu(asked, settings.method):
            note(line)
    job = Job(corpus, held_out, wanted, settings, seed, device, exact=exactly)
    run = start(out, job, origin_of(source), quiet)
    with on_interrupt(partial(finished_left, run)):
        _show(run, as_json, quiet)


def _wanted(intents: str | None, exactly: bool) -> int | None:
    """Return the number of intents asked for, None to find out."""
    if intents is None or intents == AUTO:
        if exactly:
            raise UsageError("--exactly needs a number: --intents N --exactly")
        return None
    try:
        return int(intents)
    except ValueError:
        raise UsageError(f"--intents is '{intents}'; give a whole number, or auto") from None


def read_corpus(source: str, **how: Any) -> "Corpus":
    """Read utterances; what was found is for `start` or `tell_reading` to tell."""
    from ronid.data.readers import load

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RonidWarning)  # the report says the same with counts
        return load(source, **how)


def origin_of(source: str) -> str:
    """Return what to call the place that utterances came from; pipes have numbers for names."""
    if source == "-":
        return "standard input"
    return Path(source).name if Path(source).is_file() else "a pipe"


def tell_reading(corpus: "Corpus", text_option: str = "--text") -> None:
    """Say what was guessed of a file, and how many rows had no text and are in no result.

    Args:
        corpus: What was read.
        text_option: How the command calls the option that names the column of text.
    """
    for message in corpus.report.messages:
        note(message.replace("--text", text_option))
    dropped = corpus.report.empties_dropped
    if dropped:
        note(f"{dropped} of {corpus.report.rows_read} rows have no text and were left out")


def start(out: Path, job: "Job", source: str, quiet: bool) -> "RunFolder":
    """Make the folder of a run, say what was read, and do the work."""
    from ronid.data.corpus import format_report
    from ronid.run import RunFolder

    run = RunFolder.create(out, job, source)
    try:
        with on_interrupt(_resume(run)):
            if not quiet:
                for line in format_report(job.corpus.report):
                    note(line)
            work_on(run, quiet)
    except UsageError:
        run.discard()  # such as an unknown encoder: nothing was begun that could be finished
        raise
    return run


def work_on(run: "RunFolder", quiet: bool) -> None:
    """Do what is left to do of a run."""
    if not quiet:
        note("loading the encoder")
    with on_interrupt(_resume(run)):
        from ronid.pipeline import fit_run

        fit_run(run, progress=None if quiet else Bars(), said=(lambda _: None) if quiet else note)


def _resume(run: "RunFolder") -> str:
    return f"nothing is lost, go on with: ronid fit --resume {run.path}"


def finished_left(run: "RunFolder") -> str:
    """Return what an interrupt leaves once a run is finished."""
    return f"but the run is finished; its report is {run.path / 'report.html'}"


def _asked(method: str | None, preset: str | None, config: Path | None) -> "Asked":
    """Return what options and file ask for: method "" and preset `auto` where neither says."""
    from ronid.methods import Asked, read_settings, recipe

    by_file = Asked("", AUTO, {}) if config is None else read_settings(config)
    if method and by_file.method and method != by_file.method:
        raise UsageError(f"--method {method} contradicts method '{by_file.method}' of {config}")
    name = method or by_file.method
    by_option = preset or AUTO
    for each in (by_option, by_file.preset):
        recipe(name or "ronid", each)  # or it is refused
    if AUTO not in {by_option, by_file.preset} and by_option != by_file.preset:
        raise UsageError(f"--preset {preset} contradicts preset '{by_file.preset}' of {config}")
    return Asked(name, by_file.preset if by_option == AUTO else by_option, by_file.changes)


def _settings(asked: "Asked", encoder: str | None, *, gpu: bool = False) -> "MethodConfig":
    """Return the recipe: the preset, a file's changes over it, single options over both."""
    from ronid.config import updated
    from ronid.methods import configured

    chosen = configured(asked, gpu=gpu)
    if encoder is None:
        return chosen
    # A folder is kept in full, so that the run can be used from anywhere.
    place = str(Path(encoder).resolve()) if Path(encoder).is_dir() else encoder
    changed: MethodConfig = updated(chosen, {"encoder": {"name": place}})
    return changed


def _check_before_work(corpus: "Corpus", intents: int | None, settings: "MethodConfig") -> None:
    """Refuse an impossible question before a folder is made or a model loaded."""
    from ronid.data.splits import split_corpus
    from ronid.encode.weights import locate
    from ronid.methods import check_inputs, check_labels

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RonidWarning)  # said again when the work begins
        split = split_corpus(corpus, intents)
    check_inputs(settings, embeddings=corpus.embeddings is not None)
    check_labels(settings.method, corpus.report.labelled, len(split.known), intents)
    locate(settings.encoder.name)


def without_gpu(asked: "Asked", name: str) -> list[str]:
    """Say what a CPU costs: accuracy by the preset it gets, or hours."""
    from ronid.methods import METHODS

    if name == "ronid":
        return [WITHOUT_GPU] if asked.preset == AUTO else []
    if not METHODS[name].wants_gpu or asked.changes:
        return []
    return [
        f"without a GPU method '{name}' may take hours at its published length; a file for "
        "--config can make it shorter, `ronid methods` lists those that are quick"
    ]


def _on_gpu(device: str) -> bool:
    """Whether the work will be done on a GPU; to know that takes torch, which is slow to import."""
    from ronid.train.optim import choose_device

    return choose_device(device).type == "cuda"


def _interrupted(path: Path) -> "RunFolder":
    """Return the unfinished run in `path`."""
    from ronid.run import open_run

    run = open_run(path)
    if run.finished:
        raise UsageError(f"run '{path}' is finished already; its report is {path / 'report.html'}")
    return run


def _show(run: "RunFolder", as_json: bool, quiet: bool) -> None:
    """Print what a run found."""
    from ronid.types import Scores

    # Whoever asked for a number and got another must hear of it, however quiet it is to be.
    told = refused_lines(run) if quiet else [*count_lines(run), *idle_lines(run)]
    if as_json:
        print_json(run_summary(run))
        for line in told:
            note(line)
        return
    intents_table(run)
    scores = run.scores()
    if scores:
        if not quiet:
            note("agreement with the truth given, unlabelled utterances only; in percent")
        scores_table(Scores(**scores))
    for line in told:
        note(line)
    if not quiet:
        note(f"report: {run.path / 'report.html'}")
