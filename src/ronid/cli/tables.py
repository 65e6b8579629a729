"""Results of a run as tables for people and as plain values for programs."""

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from ronid.run import RunFolder
    from ronid.types import Scores


def run_summary(run: "RunFolder") -> dict[str, Any]:
    """Return what a run found as plain values."""
    return {
        "run": str(run.path),
        "report": str(run.path / "report.html"),
        "scores": run.scores(),
        "intents": [asdict(intent) for intent in run.intents()],
    }


def intents_table(run: "RunFolder") -> None:
    """Print the intents, new ones first."""
    table = Table("intent", "", "utterances", "confidence", "keyphrases", box=None, padding=(0, 2))
    table.columns[0].no_wrap = True  # a name is typed as it stands
    table.columns[2].justify = table.columns[3].justify = "right"
    for intent in sorted(run.intents(), key=lambda i: (i.known, -i.size)):
        table.add_row(
            escape(intent.name),
            "known" if intent.known else "new",
            f"{intent.size:,}",
            f"{intent.confidence:.2f}",
            escape(", ".join(intent.keyphrases[:4])),
        )
    Console().print(table)


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
