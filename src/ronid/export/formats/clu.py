"""Azure Conversational Language Understanding: the file of a project."""

import json
from pathlib import Path

from ronid.export.archive import to_json
from ronid.export.batch import Batch, Options, Target
from ronid.export.limits import Limits
from ronid.export.names import NameRule, legal_name

FILE = "project.json"
NONE = "None"
"""The intent of utterances that have none; no other may be called so."""
_NAMES = NameRule(longest=50, ascii=True, reserved=frozenset({NONE.lower()}))
_KIND = "Conversation"


def target(options: Options) -> Target:
    """Return what the service takes in one project."""
    limits = Limits(longest=500, intents=500, utterances=50_000, once="export")
    return Target(_NAMES, limits, nothing=NONE)


def write(batch: Batch, folder: Path, options: Options) -> None:
    """Write `project.json`."""
    language = options.language.lower()
    names = [batch.names[intent.id] for intent in batch.intents]
    project = {
        "projectFileVersion": "2023-04-01",
        "stringIndexType": "Utf16CodeUnit",
        "metadata": {
            "projectKind": _KIND,
            "projectName": legal_name(options.name, _NAMES, "project"),
            "multilingual": False,
            "description": "",
            "language": language,
            "settings": {"confidenceThreshold": 0},
        },
        "assets": {
            "projectKind": _KIND,
            "intents": [{"category": name} for name in dict.fromkeys([*names, NONE])],
            "entities": [],
            "utterances": [
                {
                    "text": line.text,
                    "intent": batch.names[line.intent],
                    "language": language,
                    "dataset": "Train",
                    "entities": [],
                }
                for line in batch.lines
            ],
        },
    }
    (folder / FILE).write_text(to_json(project), encoding="utf-8")


def read(folder: Path) -> list[tuple[str, str]]:
    """Return utterances and intents of `project.json`."""
    project = json.loads((folder / FILE).read_text(encoding="utf-8"))
    return [(each["text"], each["intent"]) for each in project["assets"]["utterances"]]
