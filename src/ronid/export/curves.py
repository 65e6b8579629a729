"""Which curves over epochs a report shows; drawing is the page's business."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

STAGES = {
    "pretrain": "Pre-training",
    "contrast": "Contrastive learning",
    "em": "EM rounds",
    "pairs": "Learning from pairs",
    "similarity": "Which pairs are alike",
    "reconstruct": "Auto-encoder",
    "self_train": "Self-training",
}

LOSSES = {
    "loss": "total",
    "loss_intra": "intra-cluster",
    "loss_inter": "inter-cluster",
    "loss_ce": "labelled",
    "loss_mlm": "masked words",
}
HELD_OUT = {"dev_accuracy": "accuracy", "dev_nmi": "NMI", "dev_precision": "precision of pairs"}
ACCURACIES = {
    "accuracy": "all",
    "known_accuracy": "known",
    "novel_accuracy": "novel",
}


COUNTS = ("rough_count", "count")
"""Stages that found a number of intents; their rows have curves of their own."""


@dataclass(frozen=True)
class Series:
    """One curve: a name and points (epoch or whatever the chart is over, value)."""

    name: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Chart:
    """Curves that share axes, with what to look for in one line.

    Args:
        title: Heading.
        note: What to look for.
        unit: Of the values, such as "%".
        series: The curves.
        over: What the curves go over.
        band: The stretch of it that is possible, or None.
        mark: The place on it that was taken, or None; without one the ends of curves are marked.
    """

    title: str
    note: str
    unit: str
    series: tuple[Series, ...]
    over: str = "epoch"
    band: tuple[float, float] | None = None
    mark: float | None = None


def curves(history: Sequence[Mapping[str, Any]], *, updated: bool = False) -> tuple[Chart, ...]:
    """Choose the charts for a training history.

    Args:
        history: One flat mapping per epoch: "stage", "epoch" and numbers. Unknown keys, and
            values that are missing or not finite, are left out.
        updated: Whether the run has changed since, so that the number of intents is an old one.

    Returns:
        Charts with at least one point each, in the order of the stages.
    """
    stages = list(dict.fromkeys(str(row.get("stage", "")) for row in history))
    charts = []
    for stage in stages:
        if stage in COUNTS:
            continue
        rows = [row for row in history if str(row.get("stage", "")) == stage]
        title = STAGES.get(stage, stage.replace("_", " ").capitalize() or "Training")
        charts += [
            Chart(f"{title}: loss", "Lower is better.", "", _series(rows, _losses(rows))),
            Chart(
                f"{title}: pseudo-labels changed",
                "Falls as the assignment settles.",
                "%",
                _series(rows, {"changed": "changed"}, scale=100),
            ),
            Chart(
                f"{title}: entropy of the class prior",
                "Falls as sizes part; a collapse would fall to zero.",
                "",
                _series(rows, {"prior_entropy": "entropy"}),
            ),
            Chart(
                f"{title}: accuracy",
                "Higher is better; for diagnosis, never used in training.",
                "%",
                _series(rows, ACCURACIES),
            ),
            Chart(
                f"{title}: held-out accuracy",
                "Higher is better; of known intents only.",
                "%",
                _series(rows, HELD_OUT),
            ),
            Chart(
                f"{title}: silhouette",
                "Higher is better: clusters that lie apart.",
                "",
                _series(rows, {"silhouette": "silhouette"}),
            ),
        ]
    row = next((row for row in history if row.get("stage") == "count"), {})
    charts += _counting(row, "for version 0: " if updated else "")
    return tuple(chart for chart in charts if chart.series)


def _counting(row: Mapping[str, Any], whose: str) -> list[Chart]:
    """Return the evidence for the number of intents: its curves over that number."""
    numbers = row.get("numbers", ())
    said = f"{row.get('estimate')} estimated, {row.get('low')} to {row.get('high')} possible."
    if row.get("start"):
        taken = "taken" if row.get("k") == row["start"] else "not believed"
        said += f" {row['start']} asked for, and {taken}."
    if row.get("leftover"):
        said += f" Not counted: {row['leftover']} of utterances that lie between all intents."
    if not row.get("rise"):
        return []
    chart = Chart(
        "Number of intents: rise of the cost of joining",
        f"Steepest where intents part; {whose}{said}",
        "",
        (Series("rise", tuple(zip(numbers, row["rise"], strict=True))),),
        over="intents",
        band=(row["low"], row["high"]),
        mark=row["k"],
    )
    return [chart]


def _losses(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the losses of a stage with their names; those of other methods by their own words."""
    keys = dict.fromkeys(key for row in rows for key in row if key.startswith("loss_"))
    others = {key: key.removeprefix("loss_").replace("_", " ") for key in keys}
    return LOSSES | {key: name for key, name in others.items() if key not in LOSSES}


def _series(
    rows: Sequence[Mapping[str, Any]], names: Mapping[str, str], scale: float = 1.0
) -> tuple[Series, ...]:
    found = []
    for key, name in names.items():
        points = tuple(
            (_number(row.get("epoch", position)), round(_number(row[key]) * scale, 5))
            for position, row in enumerate(rows)
            if math.isfinite(_number(row.get(key)))
        )
        if points:
            found.append(Series(name, points))
    # A total that is its only part would be drawn twice over.
    if len(found) == 2 and found[0].name == "total" and found[0].points == found[1].points:
        found.pop(0)
    return tuple(found)


def _number(value: object) -> float:
    """Read a finite number, or NaN."""
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return math.nan
