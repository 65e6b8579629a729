"""One HTML file that shows a discovery: map, table of intents, curves, data and settings.

The file works offline: style and script are inlined, a content security policy forbids every
request, and only the page's own script, known by its hash, may run. Utterances are strangers'
text; they enter as JSON and reach the page as text nodes.
"""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ronid.export.curves import curves
from ronid.plural import counted
from ronid.types import UNLABELLED, DataReport, FloatArray, IntArray, Intent, Scores

MAX_POINTS = 50_000
"""Utterances the map holds; more would make the page slow to load and to pan."""

SCRIPTS = ("state.js", "map.js", "pointing.js", "table.js", "charts.js", "page.js")


@dataclass(frozen=True)
class ReportData:
    """All a report shows.

    Args:
        title: Heading of the page.
        texts: n utterances.
        labels: (n,) intent of every utterance.
        intents: k intents, in the order `labels` counts them.
        coordinates: (n, 2) places on the map, such as `project` gives.
        confidence: (n,) probability of each utterance's intent, or None.
        given: (n,) intent the user had given, UNLABELLED where none, or None.
        history: One flat mapping per epoch.
        summary: Settings of the run, by name.
        scores: Agreement with the truth where it is known, or None.
        data_report: What reading the data found, or None.
        created: Date on the page; today when None.
        prior: Whether the shares of the intents were estimated apart from their sizes.
        updates: A heading and lines for every update, newest first.
        version: Of the run; what was counted and trained is of version 0.
        collected: Utterances that updates found to fit no intent so far; None without updates.
        added: Version that added an intent, by its index; those of the fit are not in it.
    """

    title: str
    texts: Sequence[str]
    labels: IntArray
    intents: Sequence[Intent]
    coordinates: FloatArray
    confidence: FloatArray | None = None
    given: IntArray | None = None
    history: Sequence[Mapping[str, Any]] = ()
    summary: Mapping[str, str] = field(default_factory=dict)
    scores: Scores | None = None
    data_report: DataReport | None = None
    created: date | None = None
    prior: bool = True
    updates: Sequence[tuple[str, Sequence[str]]] = ()
    version: int = 0
    collected: int | None = None
    added: Mapping[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        sizes = {
            "texts": len(self.texts),
            "labels": len(self.labels),
            "coordinates": len(self.coordinates),
        }
        sizes |= {"confidence": len(self.confidence)} if self.confidence is not None else {}
        sizes |= {"given": len(self.given)} if self.given is not None else {}
        if len(set(sizes.values())) > 1:
            raise ValueError(f"a report needs one row per utterance everywhere, got {sizes}")
        if len(self.labels) and not 0 <= self.labels.min() <= self.labels.max() < len(self.intents):
            raise ValueError(
                f"labels reach from {self.labels.min()} to {self.labels.max()}, but there are "
                f"{len(self.intents)} intents; pass all intents of the discovery"
            )


def write_report(path: str | Path, report: ReportData) -> Path:
    """Write the report as one HTML file.

    Args:
        path: Where to write; folders are made.
        report: What to show.

    Returns:
        The path written.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(render_report(report), encoding="utf-8")
    return target


def render_report(report: ReportData) -> str:
    """Return the HTML of a report.

    Args:
        report: What to show.

    Returns:
        The whole page.
    """
    page = files("ronid.export") / "report_page"
    style = (page / "style.css").read_text(encoding="utf-8")
    parts = [(page / name).read_text(encoding="utf-8") for name in SCRIPTS]
    script = '"use strict";\n' + "\n".join(parts)
    pieces = {
        "style_hash": _hash(style),
        "script_hash": _hash(script),
        "style": style,
        "script": script,
        "data": _json(_payload(report)),
    }
    html = (page / "page.html").read_text(encoding="utf-8")
    # Cut first, then join: an utterance that reads like a placeholder must stay what it is.
    head, *rest = html.split("{{")
    filled = [head]
    for piece in rest:
        name, after = piece.split("}}", 1)
        filled += [pieces[name], after]
    return "".join(filled)


def _payload(report: ReportData) -> dict[str, Any]:
    known = sum(intent.known for intent in report.intents)
    return {
        "title": report.title,
        "date": (report.created or date.today()).isoformat(),
        "counts": {
            "utterances": len(report.texts),
            "known": known,
            "new": len(report.intents) - known,
            "labelled": _labelled(report),
            "collected": report.collected,
        },
        "prior": report.prior,
        "scores": _scores(report.scores),
        "intents": [
            _intent(intent) | {"added": report.added.get(place, 0)}
            for place, intent in enumerate(report.intents)
        ],
        "points": _points(report),
        "charts": [asdict(chart) for chart in curves(report.history, updated=report.version > 0)],
        "data": _data_lines(report.data_report),
        "updates": [[heading, list(lines)] for heading, lines in report.updates],
        "settings": [[str(key), str(value)] for key, value in report.summary.items()],
    }


def _labelled(report: ReportData) -> int:
    if report.given is not None:
        return int((np.asarray(report.given) != UNLABELLED).sum())
    return report.data_report.labelled if report.data_report else 0


def _intent(intent: Intent) -> dict[str, Any]:
    rounded = {"share": round(intent.share, 6), "prior": round(intent.prior, 6)}
    return asdict(intent) | rounded | {"confidence": round(intent.confidence, 4)}


def _points(report: ReportData) -> dict[str, Any]:
    rows = shown_rows(report.labels)
    flat = np.nan_to_num(np.asarray(report.coordinates, dtype=np.float64)[rows])
    points: dict[str, Any] = {
        "text": [report.texts[row] for row in rows],
        "intent": np.asarray(report.labels)[rows].tolist(),
        "x": flat[:, 0].round(4).tolist(),
        "y": flat[:, 1].round(4).tolist(),
    }
    if report.confidence is not None:
        points["confidence"] = np.asarray(report.confidence, np.float64)[rows].round(3).tolist()
    if report.given is not None:
        points["given"] = (np.asarray(report.given)[rows] != UNLABELLED).astype(int).tolist()
    return points


def shown_rows(labels: IntArray, most: int = MAX_POINTS) -> NDArray[np.int64]:
    """Choose the utterances the map holds: all, or as many spread evenly over the intents.

    Args:
        labels: (n,) intent of every utterance.
        most: How many rows at most.

    Returns:
        Rows in rising order.
    """
    if len(labels) <= most:
        return np.arange(len(labels))
    by_intent = np.argsort(labels, kind="stable")
    return np.sort(by_intent[np.linspace(0, len(labels) - 1, most).astype(np.int64)])


def _scores(scores: Scores | None) -> list[list[str]]:
    if scores is None:
        return []
    named = {
        "Strict accuracy": scores.strict_acc,
        "Known by name": scores.known_by_name,
        "Novel, in a new intent": scores.strict_novel_acc,
        "Clustering accuracy": scores.acc,
        "NMI": scores.nmi,
        "ARI": scores.ari,
    }
    return [[name, f"{value:.1f}"] for name, value in named.items() if np.isfinite(value)]


def _data_lines(report: DataReport | None) -> list[str]:
    if report is None:
        return []
    found = [
        (report.empties_dropped, "row", "without text left out"),
        (report.duplicates, "utterance", "said before in the same words, kept"),
        (report.over_long, "utterance", f"of more than {report.over_long_words} words"),
        (len(report.used_once), "label", "carried by one utterance only"),
    ]
    lines = [f"{report.rows_kept:,} of {report.rows_read:,} rows read became utterances"]
    lines += [f"{counted(count, noun)} {what}" for count, noun, what in found if count]
    if report.label_counts:
        lines.append(f"{report.labelled:,} labelled, with {len(report.label_counts):,} intents")
    return lines + list(report.messages)


def _json(payload: Mapping[str, Any]) -> str:
    """Write JSON that cannot end the script element it stands in."""
    text = json.dumps(payload, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    # A lone surrogate cannot be written as UTF-8.
    return text.encode("utf-8", "replace").decode("utf-8")


def _hash(source: str) -> str:
    digest = hashlib.sha256(source.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"
