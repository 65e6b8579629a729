"""Results of a run as tables for people and as plain values for programs."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from ronid.judge import Finding, Judgement
    from ronid.run import RunFolder
    from ronid.types import Scores

FINDINGS = 8
"""Findings of a kind that are printed; JSON has all."""

PARTS = {
    "score": "of 100; ranks runs on the same utterances, is no accuracy",
    "resampling": "agreement with clusters of halves of the utterances",
    "seeds": "agreement with clusters found from other starts",
    "refit": "agreement with a whole second fit",
    "silhouette": "distance to other intents against the spread within, -1 to 1",
    "sure": "of utterances lie among their own kind",
    "far": "of utterances are far from every intent",
    "given": "of given labels lie nearest to their intent",
    "hidden": "of given labels come back when they are hidden",
}
"""What the figures of a judgement mean; shares are printed in percent."""

SHARES = frozenset(("sure", "far", "given", "hidden"))


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


def judgement_table(judgement: "Judgement", findings: "Sequence[Finding]") -> None:
    """Print what can be said of a run without truth: its figures, then a line per finding."""
    values = {
        **asdict(judgement.parts),
        "score": round(judgement.score),
        "refit": judgement.refit,
    }
    figures = Table("figure", "value", "", box=None, padding=(0, 2))
    figures.columns[1].justify = "right"
    for name, meaning in PARTS.items():
        value = values[name]
        if value is None or math.isnan(value):
            continue
        shown = f"{value:.0%}" if name in SHARES else f"{value:.2f}"
        figures.add_row(name, str(value) if name == "score" else shown, meaning)
    Console().print(figures)
    _findings_table(findings)


def _findings_table(findings: "Sequence[Finding]") -> None:
    """Print one line per finding."""
    console = Console()
    if not findings:
        console.print("\nno intent looks wrong")
        return
    table = Table("finding", "intents", "what it is", "shown by", "what to do", box=None)
    for column in table.columns:
        column.no_wrap, column.overflow = True, "ellipsis"
    printed: Counter[str] = Counter()
    for finding in findings:
        printed[finding.kind] += 1
        if printed[finding.kind] <= FINDINGS:
            table.add_row(
                finding.kind,
                escape(", ".join(finding.intents)),
                finding.says,
                escape(finding.shows[0]) if finding.shows else "",
                finding.advice,
            )
    console.print()
    console.print(table)
    more = {kind: count - FINDINGS for kind, count in printed.items() if count > FINDINGS}
    if more:
        listed = ", ".join(f"{count} {kind}" for kind, count in more.items())
        console.print(f"and more: {listed}; --json lists all")
