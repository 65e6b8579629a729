"""Rasa 3: training data and domain as YAML.

An utterance on its own line is written as `- text`. Where a line cannot hold it, the intent gets
the longer form of the format, a list of `text` entries. Rasa reads `[word](entity)` and its
relatives as annotation and knows no way to escape it: a space is put between the brackets, and
`metadata` keeps the utterance as it was said.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ronid.export.batch import Batch, Options, Target
from ronid.export.limits import Limits, Line
from ronid.export.names import NameRule

_RESERVED = frozenset({"back", "nlu_fallback", "restart", "session_start"})
_ANNOTATION = re.compile(r"\](?=[(\[{])")
_STRIPPED = "\n\r "
"""What Rasa removes around an utterance."""
_PLAIN = re.compile("[A-Za-z][A-Za-z0-9_-]*")
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
"""What YAML takes for a value of its own."""
_ESCAPED = re.compile(
    r'["\\\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]'
)
"""What ends a YAML string or line, cannot be seen, or turns the direction of what follows."""
_VERSION = 'version: "3.1"'


def target(options: Options) -> Target:
    """Return what Rasa takes: training warns below two utterances per intent."""
    names = NameRule(longest=200, marks=True, reserved=_RESERVED, cases=True)
    return Target(names, Limits(least=2, once="intent"), fit=_without_annotation)


def _without_annotation(text: str) -> str:
    plain = _ANNOTATION.sub("] ", text) if "[" in text else text
    return plain.strip(_STRIPPED)


def write(batch: Batch, folder: Path, options: Options) -> None:
    """Write `nlu.yml` and `domain.yml`."""
    nlu = [_VERSION, "", "nlu:"]
    for _, name, lines in batch.by_intent():
        nlu += [f"- intent: {_scalar(name)}", *_examples(lines), ""]
    (folder / "nlu.yml").write_text("\n".join(nlu[:-1]) + "\n", encoding="utf-8")
    names = [f"  - {_scalar(batch.names[intent.id])}" for intent in batch.intents]
    domain = "\n".join([_VERSION, "", "intents:", *names, ""])
    (folder / "domain.yml").write_text(domain, encoding="utf-8")


def _examples(lines: list[Line]) -> Iterator[str]:
    if all(_fits_a_line(line) for line in lines):
        yield "  examples: |"
        yield from (f"    - {line.text}" for line in lines)
        return
    yield "  examples:"
    for line in lines:
        yield f"  - text: {_quoted(line.text)}"
        if line.text != line.row.text:
            yield "    metadata:"
            yield f"      original: {_quoted(line.row.text)}"


def _fits_a_line(line: Line) -> bool:
    harmless = str.maketrans("", "", '"\\\t')  # only inside quotes they would need an escape
    return line.text == line.row.text and not _ESCAPED.search(line.text.translate(harmless))


def _scalar(name: str) -> str:
    plain = _PLAIN.fullmatch(name) and name.lower() not in _WORDS
    return name if plain else _quoted(name)


def _quoted(text: str) -> str:
    """Return a YAML string in double quotes; all that could be misread is escaped."""
    return '"' + _ESCAPED.sub(_escape, text) + '"'


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    if character in '"\\':
        return "\\" + character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def read(folder: Path) -> list[tuple[str, str]]:
    """Return utterances and intents of `nlu.yml`, as they were said."""
    import yaml  # comes with transformers

    content = yaml.safe_load((folder / "nlu.yml").read_text(encoding="utf-8"))
    return [(text, block["intent"]) for block in content["nlu"] for text in _said(block)]


def _said(block: dict[str, Any]) -> list[str]:
    examples = block["examples"]
    if isinstance(examples, str):
        return [line.removeprefix("- ") for line in examples.splitlines()]
    return [each.get("metadata", {}).get("original", each["text"]) for each in examples]
