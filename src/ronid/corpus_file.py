"""Utterances as a Parquet file, the way a run keeps them."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ronid.files import FORMAT_VERSION
from ronid.types import Corpus, DataReport

NUMBERED = "numbered"
"""Column that says whether ronid made the id up, as the number of the row: a file's are others."""


def write_corpus(path: Path, corpus: Corpus, made_up: list[bool] | None = None) -> None:
    """Write a corpus as Parquet; embeddings travel as a fixed-size list column.

    Args:
        path: The file.
        corpus: What to write.
        made_up: Which of its ids ronid made up, where it has such ids, see `numbered`.
    """
    columns: dict[str, Any] = {"text": corpus.texts, "label": pa.array(corpus.labels, pa.string())}
    if corpus.ids is not None:
        columns["id"] = corpus.ids
    if made_up is not None:
        columns[NUMBERED] = made_up
    if corpus.truth is not None:
        columns["truth"] = pa.array(corpus.truth, pa.string())
    if corpus.embeddings is not None:
        flat = pa.array(np.ascontiguousarray(corpus.embeddings, np.float32).ravel())
        columns["embedding"] = pa.FixedSizeListArray.from_arrays(flat, corpus.embeddings.shape[1])
    pq.write_table(stamped(pa.table(columns)), path)


def read_corpus(path: Path, report: DataReport) -> Corpus:
    """Read what `write_corpus` wrote.

    Args:
        path: The file.
        report: What reading the utterances once found.
    """
    table = pq.read_table(path)
    names = table.column_names

    def optional(name: str) -> list[Any] | None:
        return table[name].to_pylist() if name in names else None

    embeddings = None
    if "embedding" in names:
        column = table["embedding"].combine_chunks()
        flat = column.flatten().to_numpy(zero_copy_only=False)
        embeddings = flat.reshape(len(table), -1).astype(np.float32)
    return Corpus(
        texts=table["text"].to_pylist(),
        labels=table["label"].to_pylist(),
        report=report,
        ids=optional("id"),
        truth=optional("truth"),
        embeddings=embeddings,
    )


def stamped(table: pa.Table) -> pa.Table:
    """Return the table with the format version in its metadata."""
    return table.replace_schema_metadata({"format_version": str(FORMAT_VERSION)})


def numbered(table: pa.Table) -> list[bool]:
    """Return which ids ronid made up; they say nothing about any file.

    Args:
        table: Utterances with a column `id`.
    """
    if NUMBERED in table.column_names:
        flags: list[bool] = table[NUMBERED].to_pylist()
        return flags
    # A run of an older version does not say: whole numbers may be ours.
    return [id.isdecimal() for id in table["id"].to_pylist()]
