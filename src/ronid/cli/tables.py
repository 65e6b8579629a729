"""Results of a run as tables for people and as plain values for programs."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from ronid.plural import counted

if TYPE_CHECKING:
    from ronid.judge import Finding, Judgement
    from ronid.run import RunFolder
    from ronid.types import Scores

FINDINGS = 8
"""Findings of a kind that are printed; JSON has all."""
SHOWN = 2
"""Utterances, or pairs of them, that are printed to show a finding."""
LONGEST_SHOWN = 120
"""Characters of one utterance that are printed beside a finding."""

IDLE_SHOWN = 5
"""Known intents without raw utterances that are named."""

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
        "count": _count(run),
        "intents": [asdict(intent) for intent in run.intents()],
    }


def _count(run: "RunFolder") -> dict[str, Any]:
    """Return how many intents were asked for, what the data said, and what was taken."""
    found, asked = run.count(), run.facts()["n_intents"]
    taken = len(run.intents())
    told = {} if found is None else {"estimate": found["k"]} | found
    return {
        "asked": asked,
        "exactly": asked is not None and found is None,
        **{key: told.get(key) for key in ("estimate", "low", "high")},
        "taken": taken,
        "empty": sum(not intent.size for intent in run.intents()),
        "believed": None if asked is None else asked == told.get("k", taken),
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


SCORES = {
    "strict_acc": "strict accuracy", "known_by_name": "  known by name",
    "strict_novel_acc": "  novel, in a new intent", "acc": "ACC", "known_acc": "  known",
    "novel_acc": "  novel", "h_score": "  H-score", "nmi": "NMI", "ari": "ARI",
}  # fmt: skip
"""Scores to print, in order; indented ones are parts of the score above them."""


def scores_table(scores: "Scores") -> None:
    """Print the agreement with true intents in percent, one score per line."""
    table = Table("score", box=None, padding=(0, 2))
    table.add_column("%", justify="right")
    values = asdict(scores)
    for key, name in SCORES.items():
        table.add_row(name, "-" if math.isnan(values[key]) else f"{values[key]:.2f}")
    Console().print(table)


def count_lines(run: "RunFolder") -> list[str]:
    """Say how many intents were taken and why, in one line."""
    found, asked = run.count(), run.facts()["n_intents"]
    refused = refused_lines(run)
    if found is None or refused:
        return refused or _told_lines(run)
    k, between = _made(run, found)
    if asked is None:
        told = f"{counted(k, 'intent')}, found from the data ({between} possible)"
        return [f"{told}; --intents N sets their number"]
    taken = f"{counted(asked, 'intent')}, as asked for"
    if "low" not in found:
        return [taken]
    if asked < found["low"]:
        return [f"{taken}, but the data show {between}"]
    return [f"{taken} ({between} possible by the data)"]


def _told_lines(run: "RunFolder") -> list[str]:
    """Say that a number was taken as told, in one line, and how many of them stayed empty."""
    told = _count(run)
    if not told["exactly"]:  # a run that does not tell how it was counted
        return []
    line = f"{counted(told['asked'], 'intent')}, as told by --exactly; the data were not asked"
    empty = told["empty"]
    if not empty:
        return [line]
    has = "has" if empty == 1 else "have"
    return [f"{line}, and {empty} {has} no utterance: ask for fewer, or leave out --exactly"]


def idle_lines(run: "RunFolder") -> list[str]:
    """Say which known intents have no utterance but those labelled so, in one line."""
    table = run.assignments()
    pairs = zip(table["index"].to_pylist(), table["given"].to_pylist(), strict=True)
    raw = {index for index, name in pairs if not name}
    idle = [intent.name for intent in run.intents() if intent.known and intent.index not in raw]
    if not idle or not raw:
        return []
    some = ", ".join(idle[:IDLE_SHOWN]) + (", ..." if len(idle) > IDLE_SHOWN else "")
    said = (
        f"{counted(len(idle), 'known intent')} {'has' if len(idle) == 1 else 'have'} no utterance"
    )
    return [f"{said} but those labelled so: {some}"]


def refused_lines(run: "RunFolder") -> list[str]:
    """Say that a number of intents was asked for and not taken, in one line; none where it was."""
    found, asked = run.count(), run.facts()["n_intents"]
    if found is None or asked is None:
        return []
    k, between = _made(run, found)
    if k >= asked:
        return []
    if found["k"] >= asked:  # it was taken, but the method did not fill them
        return [
            f"{counted(asked, 'intent')} asked for, of which {asked - k} got no utterance and "
            f"{'was' if asked - k == 1 else 'were'} left out; --exactly keeps those"
        ]
    return [
        f"{counted(asked, 'intent')} asked for, but the data show {between}: "
        f"{k} {'was' if k == 1 else 'were'} made; "
        "--exactly makes as many as asked for"
    ]


def _made(run: "RunFolder", found: dict[str, Any]) -> tuple[int, str]:
    """Return how many intents were made, and what is possible in words."""
    # Those that stayed empty were dropped; updates may have added some since.
    k = min(found["k"], len(run.intents()))
    return k, _range(found["low"], found["high"]) if "low" in found else f"about {k}"


def _range(low: int, high: int) -> str:
    """Return two bounds in words; one number where they are the same."""
    return str(low) if low == high else f"{low} to {high}"


def judgement_table(judgement: "Judgement", findings: "Sequence[Finding]") -> None:
    """Print what can be said of a run without truth: its figures, then a block per finding."""
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
    _print_findings(findings)


def _print_findings(findings: "Sequence[Finding]") -> None:
    """Print a block per finding; the names in it are whole, however narrow the screen."""
    console = Console()
    if not findings:
        console.print("\nno intent looks wrong")
        return
    printed: Counter[str] = Counter()
    for finding in findings:
        printed[finding.kind] += 1
        if printed[finding.kind] <= FINDINGS:
            block = "\n".join(_finding_lines(finding, console.width))
            # The screen breaks a line that is too long; rich would cut names, also in a pipe.
            console.print(Text(f"\n{block}"), soft_wrap=True)
    more = {kind: count - FINDINGS for kind, count in printed.items() if count > FINDINGS}
    if more:
        listed = ", ".join(f"{count} {kind}" for kind, count in more.items())
        console.print(f"\nand more: {listed}; --json lists all")


def _finding_lines(finding: "Finding", width: int) -> list[str]:
    """Return which intents a finding is about, what it is, what to do, and what shows it."""
    lines = [f"{finding.kind}: {', '.join(finding.intents)}"]
    lines += _indented(f"{finding.says} -> {finding.advice}", 4, width)
    for utterances in finding.shows[:SHOWN]:
        # Those that belong together are joined by a bar: a long one may not hide the other.
        lines += _indented(" | ".join(map(_cut, utterances.split(" | "))), 6, width)
    return lines


def _indented(text: str, by: int, width: int) -> list[str]:
    """Break a text between words; what does not fit the first line hangs below it."""
    room = max(width, LEAST_WIDTH)
    return wrap(text, room, initial_indent=" " * by, subsequent_indent=" " * (by + 2))


def _cut(utterance: str) -> str:
    """Return an utterance, or as much of it as stands beside a finding."""
    line = " ".join(utterance.split())
    return line if len(line) <= LONGEST_SHOWN else f"{line[:LONGEST_SHOWN].rstrip()}\u2026"
