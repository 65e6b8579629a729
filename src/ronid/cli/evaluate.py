"""`ronid evaluate`: how well a run agrees with a file of true intents, or with itself."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ronid.cli.console import Bars, note, print_json
from ronid.cli.fit import read_corpus, tell_reading
from ronid.cli.interrupt import UNCHANGED, on_interrupt
from ronid.cli.options import (
    AsJson,
    Device,
    EncoderFolder,
    Encoding,
    Format,
    Quiet,
    Run,
    TextColumn,
)
from ronid.cli.tables import judgement_table, scores_table
from ronid.errors import DataError, UsageError
from ronid.plural import counted

if TYPE_CHECKING:
    from ronid.judge import Evidence
    from ronid.model import IntentModel
    from ronid.run import RunFolder
    from ronid.types import Corpus, IntArray

JUDGEMENT = "judgement.json"


@on_interrupt(UNCHANGED)
def evaluate(
    run: Run,
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="INPUT",
            help="File of utterances with true intents, or - for standard input. Omit it to check "
            "the run without true intents.",
        ),
    ] = None,
    text: TextColumn = None,
    label: Annotated[
        str | None,
        typer.Option(help="Column with the true intents. Default: guessed from the column names."),
    ] = None,
    encoder: EncoderFolder = None,
    device: Device = "auto",
    encoding: Encoding = "utf-8",
    format: Format = None,
    refit_seed: Annotated[
        int | None,
        typer.Option(
            help="Only without INPUT: fit again with this seed and report the agreement of both "
            "fits. It takes as long as the first fit.",
            min=0,
        ),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Score the predictions of a run against true intents, or check its quality without them.

    With INPUT, RoNID predicts every utterance of the file and compares the result with the true
    intents. It prints strict accuracy first. An utterance of a known intent is correct only if
    RoNID predicts that intent. An utterance of a novel intent, one without labels in the run, is
    correct only in the new intent that matches it. Then RoNID prints clustering accuracy (ACC), NMI
    and ARI, which benchmarks report. All scores are in percent, higher is better.

    Without INPUT, RoNID measures how stable and how well separated the intents are, and lists
    likely duplicates, mixed intents and likely label errors. judgement.json in the run folder
    contains the whole result.
    """
    from ronid.run import open_finished

    finished = open_finished(run)
    if source is None:
        if text or label or format:
            raise UsageError("--text, --label and --format tell how to read INPUT; give it too")
        _judge(finished, encoder, device, refit_seed, as_json=as_json, quiet=quiet)
        return
    if refit_seed is not None:
        raise UsageError("--refit-seed is for judging without truth; leave out INPUT, or it")
    corpus = read_corpus(source, text=text, label=label, encoding=encoding, format=format)
    rows = [i for i, name in enumerate(corpus.labels) if name is not None]
    if not rows:
        raise DataError(f"'{source}' has no labels to compare with; name their column by --label")
    from ronid.metrics import renumber_known_first, score
    from ronid.model import load_model

    model = load_model(run, device, encoder)
    known = [intent.name for intent in model.intents if intent.known]
    classes = [*known, *sorted({str(corpus.labels[i]) for i in rows} - set(known))]
    index = {name: i for i, name in enumerate(classes)}
    texts = [corpus.texts[i] for i in rows]
    if not quiet:
        _tell(corpus, texts, finished)
    answer = model.predict(texts, None if quiet else Bars())
    predicted = renumber_known_first(answer.labels, [intent.known for intent in model.intents])
    scores = score([index[str(corpus.labels[i])] for i in rows], predicted, len(known))
    if as_json:
        print_json({"run": str(run), "input": source, "rows": len(rows), "scores": asdict(scores)})
        return
    if not quiet:
        note(f"{counted(len(rows), 'utterance')} with a true intent; higher scores are better")
    scores_table(scores)


def _tell(corpus: "Corpus", texts: Sequence[str], run: "RunFolder") -> None:
    """Say what was guessed and left out of a file, and which texts the run was given labels of."""
    tell_reading(corpus)
    if len(texts) < len(corpus):
        note(_left_out(len(corpus) - len(texts)))
    pairs = zip(run.assignments()["text"].to_pylist(), run.labelled(), strict=True)
    labelled = {text for text, given in pairs if given}
    seen = sum(text in labelled for text in texts)
    if seen:
        were = "was" if seen == 1 else "were"
        note(
            f"{seen:,} of these utterances {were} labelled in the fit; the figures flatter the "
            "run, leave such out for fair ones"
        )


def _left_out(number: int) -> str:
    have = "has no true intent and was" if number == 1 else "have no true intent and were"
    return f"{counted(number, 'utterance')} {have} left out"


def _judge(
    run: "RunFolder",
    encoder: str | None,
    device: str,
    refit_seed: int | None,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    """Judge a run by itself; print the judgement and keep it in the run folder."""
    from ronid.judge import judge, list_findings, read_evidence
    from ronid.model import load_model

    progress = None if quiet else Bars()
    model = load_model(run.path, device, encoder)
    if refit_seed == model.seed:
        raise UsageError(f"--refit-seed {refit_seed} is the seed of the run; give another")
    evidence = read_evidence(run, model, progress)
    second = None
    if refit_seed is not None:
        second = _refit(run, model, evidence, refit_seed, device, progress)
    judgement = judge(evidence, seed=model.seed, refit=second, progress=progress)
    findings = list_findings(judgement)
    values = {**asdict(judgement), "findings": [asdict(finding) for finding in findings]}
    kept = _keep(run.path, values)
    if as_json:
        print_json({"run": str(run.path), **values})
        return
    if not quiet and judgement.judged < judgement.rows:
        note(f"a sample of {judgement.judged:,} of {judgement.rows:,} utterances was judged")
    judgement_table(judgement, findings)
    if not quiet:
        note(f"all of it is in {kept}" if kept else "the run folder cannot be written to")


def _refit(
    run: "RunFolder",
    model: "IntentModel",
    evidence: "Evidence",
    seed: int,
    device: str,
    progress: Bars | None,
) -> "IntArray":
    """Return what a whole second fit finds in the utterances of the run."""
    from ronid.pipeline import discover
    from ronid.types import UNLABELLED, Corpus

    labels = [None if k == UNLABELLED else evidence.names[k] for k in evidence.targets]
    corpus = Corpus(list(evidence.texts), labels, run.data_report())
    k = len(model.intents)
    found = discover(corpus, k, model.config, seed=seed, device=device, progress=progress)
    return found.discovery.labels


def _keep(folder: Path, values: dict[str, object]) -> Path | None:
    """Write the judgement into the run folder, whole or not at all; None where it is read-only."""
    from ronid.files import FORMAT_VERSION, whole, write_json

    path = folder / JUDGEMENT
    try:
        with whole(path) as partial:
            write_json(partial, {"format_version": FORMAT_VERSION, **values})
    except OSError:
        return None
    return path
