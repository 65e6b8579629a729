"""`ronid predict`: the intent of one sentence, or of every row of a file."""

import csv
import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ronid.cli.console import Bars, note, print_json
from ronid.cli.fit import read_corpus, tell_reading
from ronid.cli.interrupt import UNCHANGED, on_interrupt
from ronid.cli.options import (
    TEXT_COLUMN,
    UTTERANCES,
    AsJson,
    Device,
    EncoderFolder,
    Encoding,
    Format,
    Quiet,
    Run,
)
from ronid.errors import DataError, UsageError


@on_interrupt(UNCHANGED)
def predict(
    run: Run,
    source: Annotated[str | None, typer.Argument(metavar="INPUT", help=UTTERANCES)] = None,
    text: Annotated[
        list[str] | None,
        typer.Option(
            "--text",
            help="An utterance (not a column) to classify instead of INPUT. Repeat the option for "
            "several.",
        ),
    ] = None,
    column: Annotated[str | None, typer.Option(help=TEXT_COLUMN)] = None,
    id_column: Annotated[
        str | None,
        typer.Option(
            "--id", help="Column with the utterance IDs, copied to the first column of the output."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="New file (.csv, .jsonl or .parquet) to write instead of printing."),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            help="Minimum in-scope score (`belonging`), from 0 to 1. At the default, 0.1, about "
            "10 % of in-scope utterances are wrongly rejected. A higher value rejects more, 0 none."
        ),
    ] = None,
    encoder: EncoderFolder = None,
    device: Device = "auto",
    encoding: Encoding = "utf-8",
    format: Format = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Predict the intent of single utterances or of every row of a file.

    `intent` is the most similar intent and `confidence` its calibrated probability (0 to 1).
    `belonging` is the in-scope score (0 to 1). It is low if the most similar training utterance is
    less similar than usual. `accepted` is false if `belonging` is below --threshold: the utterance
    is out of scope. The decisions of a review do not change `accepted`.
    """
    _check(source, text, out)
    from ronid.run import open_finished

    open_finished(run)  # refuses an unfinished run before anything is loaded
    utterances, ids = list(text or ()), None
    if source is not None:
        try:
            corpus = read_corpus(
                source, text=column, label="", id=id_column, encoding=encoding, format=format
            )
        except DataError as problem:
            raise DataError(str(problem).replace("--text", "--column")) from None
        utterances, ids = corpus.texts, corpus.ids
        if not quiet:
            tell_reading(corpus, "--column")
    from ronid.encode.language import warn_of_language
    from ronid.model import load_model

    model = load_model(run, device, encoder)
    warn_of_language(utterances, model.encoder.backbone)
    silent = quiet or source is None
    answer = model.predict(utterances, None if silent else Bars(), threshold=threshold)
    if model.scope is None and not quiet:
        note("this model cannot tell what is out of scope: every utterance is accepted")
    elif not silent and not answer.accepted.all():
        rejected = (~answer.accepted).sum()
        note(f"{rejected:,} of {len(utterances):,} utterances are of none of the intents")
    rows = [
        {
            "text": utterances[i],
            "intent": str(answer.names[i]),
            "confidence": round(float(answer.confidence[i]), 6),
            "known": model.intents[answer.labels[i]].known,
            "belonging": round(float(answer.belonging[i]), 6),
            "accepted": bool(answer.accepted[i]),
        }
        for i in range(len(utterances))
    ]
    if ids is not None:
        rows = [{"id": key, **row} for key, row in zip(ids, rows, strict=True)]
    if out is not None:
        from ronid.files import whole

        with whole(out) as partial:
            _WRITERS[out.suffix](partial, rows)
    elif as_json:
        print_json(rows)
    else:
        _write_csv(sys.stdout, rows)


def _check(source: str | None, text: list[str] | None, out: Path | None) -> None:
    """Refuse what cannot be asked, or answered to where it is wanted."""
    if (source is None) == (not text):
        raise UsageError('give INPUT or --text "...", one of the two')
    if out is not None and out.suffix not in _WRITERS:
        raise UsageError(f"--out '{out}' must end in {', '.join(_WRITERS)}")
    if out is not None and out.exists():
        raise UsageError(f"--out '{out}' exists already; give another name, or remove it first")
    if any(not one.strip() for one in text or ()):
        raise UsageError('--text is empty; give an utterance, such as --text "where is my card"')
    if out is not None and not out.parent.is_dir():
        raise UsageError(f"folder '{out.parent}' for --out does not exist; make it first")


def _write_csv(file: Any, rows: list[dict[str, Any]]) -> None:
    names = ["id", *_COLUMNS] if rows and "id" in rows[0] else _COLUMNS
    plain, quoted = (
        csv.DictWriter(file, names, quoting=rule, lineterminator="\n")
        for rule in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL)
    )
    plain.writeheader()
    flags = ("known", "accepted")
    for row in rows:
        # Older Pythons leave a lone \r without quotes here, and readers take it for a new row.
        broken = any(isinstance(value, str) and "\r" in value for value in row.values())
        writer = quoted if broken else plain
        writer.writerow(row | {flag: str(row[flag]).lower() for flag in flags})


def _save_csv(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        _write_csv(file, rows)


def _save_jsonl(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _save_parquet(path: Path, rows: list[dict[str, Any]]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(rows), path)


_COLUMNS = ("text", "intent", "confidence", "known", "belonging", "accepted")
_WRITERS = {".csv": _save_csv, ".jsonl": _save_jsonl, ".parquet": _save_parquet}
