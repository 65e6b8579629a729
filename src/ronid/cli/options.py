"""Options that several verbs share, written once."""

from pathlib import Path
from typing import Annotated

import typer

TextColumn = Annotated[str | None, typer.Option("--text", help="Column of the utterances.")]
LabelColumn = Annotated[
    str | None,
    typer.Option("--label", help="Column of the intents; empty, null or -1 means unlabelled."),
]
Encoding = Annotated[str, typer.Option(help="Encoding of a text file.")]
Format = Annotated[
    str | None,
    typer.Option(help="csv, tsv, jsonl, json, parquet, xlsx or txt; guessed when not given."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, results only.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
Run = Annotated[Path, typer.Argument(help="Folder that `ronid fit --out` made.")]
EncoderFolder = Annotated[
    str | None, typer.Option("--encoder", help="Folder of the base encoder, if it has moved.")
]
