"""Parquet, one row per utterance; `ronid fit` reads it."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ronid.export.batch import Batch, Options, Target

FILE = "utterances.parquet"


def target(options: Options) -> Target:
    """Return that everything is taken as it is."""
    return Target()


def write(batch: Batch, folder: Path, options: Options) -> None:
    """Write `utterances.parquet`."""
    table = pa.table(batch.table())
    confidence = pa.array(table["confidence"].to_pylist(), pa.float64())
    position = table.column_names.index("confidence")
    pq.write_table(table.set_column(position, "confidence", confidence), folder / FILE)


def read(folder: Path) -> list[tuple[str, str]]:
    """Return utterances and intents of `utterances.parquet`."""
    table = pq.read_table(folder / FILE, columns=["text", "intent"])
    return list(zip(table["text"].to_pylist(), table["intent"].to_pylist(), strict=True))
