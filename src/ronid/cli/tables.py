"""Results of a run as tables for people and as plain values for programs."""

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from ronid.run import RunFolder
    from ronid.types import Scores


NUMBERS_WIDTH = 28
"""Columns of a table of intents that neither names nor keyphrases can have."""
LEAST_WIDTH = 18
"""Columns that keyphrases always have; longer names are folded."""


def run_summary(run: "RunFolder") -> dict[str, Any]:
    """Return what a run found as plain values."""
    return {
        "run": str(run.path),
        "report": str(run.path / "report.html"),
        "scores": run.scores(),
        "intents": [asdict(intent) for intent in run.intents()],
    }


def intents_table(run: "RunFolder") -> None:
    """Print the intents, new ones first; a name is folded if it must be, keyphrases are cut."""
    intents = sorted(run.intents(), key=lambda i: (i.known, -i.size))
    console = Console()
    longest = max((cell_len(intent.name) for intent in intents), default=0)
    room = max(console.width - NUMBERS_WIDTH, 2 * LEAST_WIDTH)
    name_width = max(min(longest, room - LEAST_WIDTH), len("intent"))
    table = Table(box=None, padding=(0, 1), pad_edge=False)
    table.add_column("intent", overflow="fold", width=name_width)
    table.add_column("", no_wrap=True)
    table.add_column("size", no_wrap=True, justify="right")
    table.add_column("confidence", no_wrap=True, justify="right")
    table.add_column("keyphrases", no_wrap=True, width=room - name_width)
    for intent in intents:
        phrases = Text(", ".join(intent.keyphrases[:4]))
        phrases.truncate(room - name_width, overflow="ellipsis")
        kind, size = "known" if intent.known else "new", f"{intent.size:,}"
        table.add_row(escape(intent.name), kind, size, f"{intent.confidence:.2f}", phrases)
    console.print(table)


def scores_table(scores: "Scores") -> None:
    """Print agreement with the truth."""
    names = {"acc": "ACC", "known_acc": "known", "novel_acc": "novel", "nmi": "NMI", "ari": "ARI"}
    table = Table(*names.values(), "H-score", box=None, padding=(0, 2))
    values = asdict(scores)
    figures = [values[key] for key in (*names, "h_score")]
    table.add_row(*("-" if math.isnan(value) else f"{value:.2f}" for value in figures))
    Console().print(table)


def count_lines(run: "RunFolder") -> list[str]:
    """Say how the number of intents was found, in one line; none where it was given."""
    found = run.count()
    if found is None:
        return []
    k, asked = found["k"], run.facts()["n_intents"]
    between = f"{found['low']} to {found['high']}" if "low" in found else f"about {k}"
    if asked is None:
        return [f"{k} intents, found from the data ({between} possible); --intents N sets them"]
    if k < asked:
        return [
            f"{asked} intents asked for, but the data show {between}: {k} were made; "
            "--exactly makes as many as asked for"
        ]
    return []
