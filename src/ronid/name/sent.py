"""What was sent to a language model, word for word: a file of the run to which lines are added."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

SENT = "sent.jsonl"


def keep_sent(file: Path, to: str, body: Mapping[str, Any]) -> None:
    """Add one request to the file; headers, and so the key, are no part of it.

    Args:
        file: The file; made where it is missing.
        to: The address.
        body: What goes there.
    """
    row = {"when": datetime.now(UTC).isoformat(timespec="seconds"), "to": to, "body": body}
    # Half a surrogate pair is no UTF-8; what takes its place is how JSON spells it.
    line = json.dumps(row, ensure_ascii=False).encode("utf-8", "backslashreplace")
    with file.open("ab") as lines:
        lines.write(line + b"\n")
