"""Chat fine-tuning as OpenAI and others take it: one conversation per line."""

from pathlib import Path

from ronid.export.batch import Batch, Options, Target
from ronid.export.formats.jsonl import read_lines, write_lines
from ronid.export.limits import Limits

FILE = "training.jsonl"


def target(options: Options) -> Target:
    """Return what a fine-tuning job takes: ten conversations at least."""
    return Target(limits=Limits(least_in_all=10))


def write(batch: Batch, folder: Path, options: Options) -> None:
    """Write `training.jsonl`."""
    said = ((line.text, batch.names[line.intent]) for line in batch.lines)
    write_lines(folder / FILE, ({"messages": _messages(options.system, *one)} for one in said))


def _messages(system: str, text: str, intent: str) -> list[dict[str, str]]:
    told = [{"role": "system", "content": system}] if system else []
    return [*told, {"role": "user", "content": text}, {"role": "assistant", "content": intent}]


def read(folder: Path) -> list[tuple[str, str]]:
    """Return utterances and intents of `training.jsonl`."""
    talks = [[each["content"] for each in row["messages"]] for row in read_lines(folder / FILE)]
    return [(text, intent) for *_, text, intent in talks]
