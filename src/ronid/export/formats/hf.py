"""A folder that `datasets.load_dataset` reads: a card, and Parquet with labels as classes."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ronid.export.batch import Batch, Options, Target

FOLDER = "dataset"
_CARD = """\
---
language:
- {language}
task_categories:
- text-classification
configs:
- config_name: default
  data_files:
  - split: train
    path: train.parquet
---

# {name}

{utterances:,} utterances of {intents:,} intents. `label` is the intent; `by` says where it came
from: `given` in the user's file, decided by a `person`, or predicted by the `model`.

Contains the utterances themselves: treat it as personal data.
"""


def target(options: Options) -> Target:
    """Return that everything is taken as it is."""
    return Target()


def write(batch: Batch, folder: Path, options: Options) -> None:
    """Write the folder `dataset`."""
    (folder / FOLDER).mkdir()
    names = [batch.names[intent.id] for intent in batch.intents]
    place = {intent.id: i for i, intent in enumerate(batch.intents)}
    source = batch.table()
    strings = {name: source[name] for name in ("id", "text", "by")}
    table = pa.table(
        {name: pa.array(column, pa.string()) for name, column in strings.items()}
        | {"label": pa.array([place[line.intent] for line in batch.lines], pa.int64())}
        | {"confidence": pa.array(source["confidence"], pa.float64())}
    )
    features = {name: {"dtype": "string", "_type": "Value"} for name in strings} | {
        "label": {"names": names, "_type": "ClassLabel"},
        "confidence": {"dtype": "float64", "_type": "Value"},
    }
    told = {"huggingface": json.dumps({"info": {"features": features}}, ensure_ascii=False)}
    pq.write_table(table.replace_schema_metadata(told), folder / FOLDER / "train.parquet")
    card = _CARD.format(
        language=options.language,
        name=options.name,
        utterances=len(batch.lines),
        intents=len(names),
    )
    (folder / FOLDER / "README.md").write_text(card, encoding="utf-8")


def read(folder: Path) -> list[tuple[str, str]]:
    """Return utterances and intents of the folder `dataset`."""
    table = pq.read_table(folder / FOLDER / "train.parquet")
    features = json.loads(table.schema.metadata[b"huggingface"])["info"]["features"]
    names = features["label"]["names"]
    pairs = zip(table["text"].to_pylist(), table["label"].to_pylist(), strict=True)
    return [(text, names[label]) for text, label in pairs]
