"""Dialogflow CX: the JSON package of an agent, with a start flow that is empty.

Restoring a package replaces an agent: restore it to a new one, and take the intents from there.
"""

import uuid
from pathlib import Path
from typing import Any

from ronid.export.archive import read_zip, write_zip
from ronid.export.batch import Batch, Options, Target
from ronid.export.limits import Limits, Line
from ronid.export.names import NameRule

ARCHIVE = "agent.zip"
FLOW = "Default Start Flow"
_IDS = uuid.UUID("2b8f5a52-6c3b-5d0e-9d55-0a7f0d5f3c11")
"""Equal intents and phrases get equal ids in every export."""
_RESERVED = frozenset({"default welcome intent", "default negative intent"})
_PRIORITY = 500_000
"""What the service calls normal."""
_NAMES = NameRule(longest=64, symbols="_-. ", marks=True, reserved=_RESERVED)
_LONGEST_DESCRIPTION = 1_000


def target(options: Options) -> Target:
    """Return what Dialogflow CX takes in one agent and one language."""
    limits = Limits(longest=768, most=2_000, intents=10_000, utterances=100_000, once="intent")
    return Target(_NAMES, limits)


def write(batch: Batch, folder: Path, options: Options) -> None:
    """Write `agent.zip`."""
    language = options.language.lower()
    files: dict[str, Any] = {
        "agent.json": {
            "displayName": options.name,
            "defaultLanguageCode": language,
            "timeZone": "Etc/UTC",
            "startFlow": FLOW,
        },
        f"flows/{FLOW}/{FLOW}.json": {
            "name": str(uuid.UUID(int=0)),
            "displayName": FLOW,
            "description": "",
            "transitionRoutes": [],
        },
    }
    for intent, name, lines in batch.by_intent():
        files[f"intents/{name}/{name}.json"] = {
            "name": str(uuid.uuid5(_IDS, intent.id)),
            "displayName": name,
            "priority": _PRIORITY,
            "description": intent.description[:_LONGEST_DESCRIPTION],
            "numTrainingPhrases": len(lines),
        }
        phrases = [_phrase(line, language) for line in lines]
        files[f"intents/{name}/trainingPhrases/{language}.json"] = {"trainingPhrases": phrases}
    write_zip(folder / ARCHIVE, files)


def _phrase(line: Line, language: str) -> dict[str, Any]:
    return {
        "id": str(uuid.uuid5(_IDS, f"{line.intent}\n{line.text}")),
        "parts": [{"text": line.text, "auto": True}],
        "repeatCount": 1,
        "languageCode": language,
    }


def read(folder: Path) -> list[tuple[str, str]]:
    """Return utterances and intents of `agent.zip`."""
    found = []
    for path, content in read_zip(folder / ARCHIVE).items():
        kind, name, *rest = path.split("/")[:3] if path.count("/") > 1 else ("", "", "")
        if kind == "intents" and rest == ["trainingPhrases"]:
            for phrase in content["trainingPhrases"]:
                found.append(("".join(part["text"] for part in phrase["parts"]), name))
    return found
