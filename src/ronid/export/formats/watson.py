"""watsonx Assistant: intents as CSV without a header, one `example,intent` per line."""

from pathlib import Path

from ronid.export.batch import Batch, Options, Target
from ronid.export.formats.csv_file import read_rows, write_rows
from ronid.export.limits import Limits
from ronid.export.names import NameRule

FILE = "intents.csv"
_NAMES = NameRule(longest=128, prefixes=("sys-",))
_BREAKS = str.maketrans("\r\n\t", "   ")


def target(options: Options) -> Target:
    """Return what the service takes: no line breaks and no tabs in an utterance."""
    limits = Limits(longest=1_024, intents=2_000, utterances=25_000, once="intent")
    return Target(_NAMES, limits, fit=_on_a_line)


def _on_a_line(text: str) -> str:
    return text.replace("\r\n", " ").translate(_BREAKS)


def write(batch: Batch, folder: Path, options: Options) -> None:
    """Write `intents.csv`."""
    rows = [(line.text, name) for _, name, lines in batch.by_intent() for line in lines]
    write_rows(folder / FILE, rows)


def read(folder: Path) -> list[tuple[str, str]]:
    """Return utterances and intents of `intents.csv`."""
    return [(text, intent) for text, intent in read_rows(folder / FILE)]
