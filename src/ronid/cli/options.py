"""Options that several commands share, and how a switch is declared."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

switch = partial(typer.Option, metavar="")
"""An option without a value; help shows no type for it."""

UTTERANCES = "File of utterances, or - for standard input."
TEXT_COLUMN = "Column with the utterances. Default: guessed from the column names."

TextColumn = Annotated[str | None, typer.Option("--text", help=TEXT_COLUMN)]
LabelColumn = Annotated[
    str | None,
    typer.Option(
        "--label",
        help="Column with the intent labels; empty, null or -1 means unlabeled. Default: guessed "
        'from the column names; "" ignores all labels.',
    ),
]
IdColumn = Annotated[
    str | None,
    typer.Option("--id", help="Column with the utterance IDs. Default: consecutive numbers."),
]
Encoding = Annotated[str, typer.Option(help="Character encoding of a text file.")]
Format = Annotated[
    str | None,
    typer.Option(
        help="File format: csv, tsv, jsonl, json, parquet, xlsx or txt. Default: from the file "
        "extension, or from the content for standard input."
    ),
]
AsJson = Annotated[bool, switch("--json", help="Print the result as JSON.")]
Quiet = Annotated[
    bool, switch("--quiet", "-q", help="Print only results and warnings, no progress.")
]
Seed = Annotated[
    int,
    typer.Option(
        min=0, help="Random seed. The same seed, input, CPU and number of threads repeat a result."
    ),
]
Device = Annotated[
    str,
    typer.Option(
        help="auto, cpu or cuda (cuda:1 for the second GPU). auto uses a GPU if there is one."
    ),
]
Run = Annotated[
    Path, typer.Argument(metavar="RUN", help="Run folder created by `ronid fit --out`.")
]
EncoderFolder = Annotated[
    str | None,
    typer.Option(
        "--encoder", help="New folder of the text encoder, if it was moved after the fit."
    ),
]
ReviewStore = Annotated[
    str | None,
    typer.Option(
        envvar="RONID_REVIEW_STORE",
        help="Where the decisions of the review are stored: a file or a postgresql:// URL. "
        "Default: review.sqlite in the run folder.",
    ),
]
