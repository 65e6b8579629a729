"""Where intents can go: one module per target, imported when it is asked for.

Each has `target(options)`, which says what the target takes; `write(batch, folder, options)`; and
`read(folder)`, which returns the pairs of utterance and intent that `write` wrote.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from ronid.errors import UsageError
from ronid.export.batch import Batch, Options, Target


class Module(Protocol):
    """What a module of this package offers."""

    def target(self, options: Options) -> Target:
        """Return what the target takes."""

    def write(self, batch: Batch, folder: Path, options: Options) -> None:
        """Write the files of the target into a folder."""

    def read(self, folder: Path) -> Sequence[tuple[str, str]]:
        """Return utterances and their intents, as they were written."""


@dataclass(frozen=True)
class Format:
    """One target.

    Args:
        title: What it is called.
        files: What is written.
        module: Which module of this package knows how.
    """

    title: str
    files: tuple[str, ...]
    module: str


FORMATS = {
    "rasa": Format("Rasa 3", ("nlu.yml", "domain.yml"), "rasa"),
    "dialogflow-cx": Format("Dialogflow CX", ("agent.zip",), "dialogflow_cx"),
    "lex": Format("Amazon Lex V2", ("bot.zip",), "lex"),
    "watson": Format("watsonx Assistant", ("intents.csv",), "watson"),
    "clu": Format("Azure CLU", ("project.json",), "clu"),
    "csv": Format("CSV", ("utterances.csv",), "csv_file"),
    "jsonl": Format("JSON Lines", ("utterances.jsonl",), "jsonl"),
    "parquet": Format("Parquet", ("utterances.parquet",), "parquet"),
    "hf": Format("Hugging Face dataset", ("dataset/README.md", "dataset/train.parquet"), "hf"),
    "openai-jsonl": Format("OpenAI fine-tuning", ("training.jsonl",), "openai_jsonl"),
}


def load_format(to: str) -> Module:
    """Return the module of a target.

    Raises:
        UsageError: There is no such target.
    """
    if to not in FORMATS:
        raise UsageError(f"'{to}' is no target of an export; there are: {', '.join(FORMATS)}")
    return cast("Module", import_module(f"{__name__}.{FORMATS[to].module}"))
