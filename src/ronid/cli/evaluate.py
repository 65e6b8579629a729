"""`ronid evaluate`: how well a run agrees with a file of true intents."""

from dataclasses import asdict
from typing import Annotated

import typer

from ronid.cli.console import Bars, note, print_json
from ronid.cli.fit import read_corpus, tell_dropped
from ronid.cli.options import (
    AsJson,
    Device,
    EncoderFolder,
    Encoding,
    Format,
    LabelColumn,
    Quiet,
    Run,
    TextColumn,
)
from ronid.cli.tables import scores_table
from ronid.errors import DataError


def evaluate(
    run: Run,
    source: Annotated[str, typer.Argument(metavar="INPUT", help="File with true intents.")],
    text: TextColumn = None,
    label: LabelColumn = None,
    encoder: EncoderFolder = None,
    device: Device = "auto",
    encoding: Encoding = "utf-8",
    format: Format = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Compare the run's predictions with true intents: NMI, ARI, ACC, known and novel apart."""
    from ronid.run import open_finished

    open_finished(run)
    corpus = read_corpus(source, text=text, label=label, encoding=encoding, format=format)
    rows = [i for i, name in enumerate(corpus.labels) if name is not None]
    if not rows:
        raise DataError(f"'{source}' has no labels to compare with; name their column by --label")
    from ronid.metrics import score
    from ronid.model import load_model

    model = load_model(run, device, encoder)
    known = [intent.name for intent in model.intents if intent.known]
    classes = [*known, *sorted({str(corpus.labels[i]) for i in rows} - set(known))]
    index = {name: i for i, name in enumerate(classes)}
    answer = model.predict([corpus.texts[i] for i in rows], None if quiet else Bars())
    scores = score([index[str(corpus.labels[i])] for i in rows], answer.labels, len(known))
    if as_json:
        print_json({"run": str(run), "input": source, "rows": len(rows), "scores": asdict(scores)})
        return
    if not quiet:
        tell_dropped(corpus)
        if len(rows) < len(corpus):
            note(f"{len(corpus) - len(rows):,} utterances have no true intent and were left out")
        note(f"{len(rows):,} utterances with a true intent; figures in percent")
    scores_table(scores)
