"""Pictures of stored rows as SVG; the same rows give the same bytes."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ronid.bench.plan import COORDINATES
from ronid.bench.published import DATASETS, published
from ronid.bench.rows import Row, coordinates, latest
from ronid.bench.table import figure
from ronid.data.pile import PILE_KEYS, Pile
from ronid.errors import MissingExtraError
from ronid.methods import METHODS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CURVES = {"": "optimal transport", "-OT": "k-means (-OT)"}
MAPS = {"-Intra": "without the intra-cluster loss", "-Inter": "without the inter-cluster loss"}
MAPS |= {"": "full"}
LINES = ("USNID", "MTP-CLNN", "DeepAligned")
LINES_SOURCE = "TEXTOIR"
_COLOURS = ("#0b6bcb", "#c2410c", "#15803d", "#7c3aed")
_STYLES = ("-", "--", "-.", ":")
_MARKERS = ("o", "s", "^", "D")
_FIXED: dict[Any, Any] = {"svg.hashsalt": "ronid", "svg.fonttype": "none", "font.size": 10}
_FIXED |= {"axes.spines.top": False, "axes.spines.right": False}
_SETTING = (
    "method", "preset", "encoder", "labelled_ratio", "k_rule", "scored_on", "split", *PILE_KEYS,
)  # fmt: skip


@dataclass(frozen=True)
class Drawn:
    """What was drawn and what could not be.

    Args:
        files: Pictures written.
        missing: For each kind that has no rows, which ones are needed and how to make them.
    """

    files: tuple[Path, ...]
    missing: tuple[str, ...]


def draw_all(rows: Iterable[Row], folder: Path) -> Drawn:
    """Draw every picture that the rows allow.

    Args:
        rows: Stored rows; of every cell the last counts that has what the picture shows.
        folder: Where the SVG files go; made where missing.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    _need_matplotlib()
    folder.mkdir(parents=True, exist_ok=True)
    rows = list(rows)
    files, missing = [], []
    for kind, (draw, shown) in _KINDS.items():
        drawn = []
        for setting, own in _by_setting(row for row in rows if shown in row).items():
            # Settings never share a picture; those that are as usual are left out of its name.
            method, preset, encoder, labelled, k_rule, scored_on, split, *pile = setting
            changes = Pile(*pile).changes
            unusual = [f"labelled{labelled:g}"] if labelled != 0.1 else []
            usual = ("given", "test", "drawn")
            unusual += [text for text in (k_rule, scored_on, split) if text not in usual]
            unusual += [f"{key}{value:g}" for key, value in changes.items()]
            stem = "-".join([kind, method, preset, encoder.replace("/", "-"), *unusual])
            drawn += draw(own, folder / stem, f"{_title(method)} {preset}, {encoder}")
        files += drawn
        if not drawn:
            missing.append(f"{kind}: {_NEEDS[kind]}")
    return Drawn(tuple(files), tuple(missing))


def _by_setting(rows: Iterable[Row]) -> dict[tuple[Any, ...], list[Row]]:
    """Return the last row of every cell, in groups that a picture may show together.

    Rows of an earlier version are used where there are no current ones.
    """
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in latest(rows, None):
        named = dict(zip(COORDINATES, coordinates(row), strict=True))
        groups.setdefault(tuple(named[name] for name in _SETTING), []).append(row)
    return groups


def draw_pseudo_labels(rows: Sequence[Row], path: Path, title: str) -> list[Path]:
    """Draw the accuracy of pseudo-labels per epoch, transport against k-means."""
    known = {row["known_ratio"] for row in rows if row["variant"] == "-OT" and _curve(row)}
    rows = [row for row in rows if row["known_ratio"] == max(known, default=None)]
    curves: dict[str, dict[str, list[list[float]]]] = {}
    for row in rows:
        if row["variant"] in CURVES and _curve(row):
            own = curves.setdefault(row["dataset"], {})
            own.setdefault(row["variant"], []).append(_curve(row))
    panels = _ordered(d for d, own in curves.items() if len(own) == len(CURVES))
    if not panels:
        return []
    from matplotlib.ticker import MaxNLocator

    picture, axes = _panels(len(panels), f"Accuracy of pseudo-labels, {title}")
    for axis, dataset in zip(axes, panels, strict=True):
        for i, (variant, label) in enumerate(CURVES.items()):
            found = curves[dataset][variant]
            # A run that stopped early keeps its last labels, so its curve goes on level.
            longest = max(map(len, found))
            grid = np.array([[*c, *[c[-1]] * (longest - len(c))] for c in found])  # (seeds, e)
            mean = grid.mean(axis=0)
            spread = grid.std(axis=0, ddof=1) if len(grid) > 1 else np.zeros(longest)
            epochs = np.arange(1, longest + 1)
            name = f"{label}, n={len(grid)}"
            axis.plot(epochs, mean, _STYLES[i], color=_COLOURS[i], label=name)
            axis.fill_between(epochs, mean - spread, mean + spread, color=_COLOURS[i], alpha=0.18)
        axis.set_title(DATASETS.get(dataset, dataset))
        axis.set_xlabel("epoch")
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        axis.legend(frameon=False)
    axes[0].set_ylabel("accuracy of pseudo-labels, %")
    _caption(
        picture,
        "Unlabelled training rows; their true labels are used for this picture only. "
        "Mean over seeds, band: one standard deviation.",
    )
    return [_save(picture, path)]


def draw_maps(rows: Sequence[Row], path: Path, title: str) -> list[Path]:
    """Draw the scored rows as t-SNE places them, one panel per ablation, one file per dataset."""
    files = []
    for dataset in _ordered({row["dataset"] for row in rows if "map" in row}):
        own: dict[tuple[float, int], dict[str, Row]] = {}
        for row in rows:
            if row["dataset"] == dataset and "map" in row and row["variant"] in MAPS:
                own.setdefault((row["known_ratio"], row["seed"]), {})[row["variant"]] = row
        whole = [key for key, found in own.items() if len(found) == len(MAPS)]
        if not whole:
            continue
        known, seed = min(whole, key=lambda key: (-key[0], key[1]))
        where = DATASETS.get(dataset, dataset)
        picture, axes = _panels(len(MAPS), f"{where} by t-SNE, {title}")
        for axis, (variant, label) in zip(axes, MAPS.items(), strict=True):
            row = own[known, seed][variant]
            flat = row["map"]
            axis.scatter(
                flat["x"], flat["y"], c=np.asarray(flat["truth"]) % 20, cmap="tab20", s=4,
                linewidths=0, vmin=0, vmax=19,
            )  # fmt: skip
            axis.set_title(f"{label}: ACC {row['scores']['argmax']['acc']:.1f}")
            axis.set_xticks([])
            axis.set_yticks([])
            axis.set_aspect("equal", adjustable="datalim")
            axis.spines[["left", "bottom"]].set_visible(False)
        classes = len(set(own[known, seed][""]["map"]["truth"]))
        more = "" if classes <= 20 else " Colours repeat after 20."
        _caption(
            picture,
            f"One point per scored utterance, colour by true intent ({classes} intents); "
            f"{100 * known:g}% of the intents known, seed {seed}.{more}",
        )
        files.append(_save(picture, path.with_name(f"{path.name}-{dataset}")))
    return files


def draw_known_ratios(rows: Sequence[Row], path: Path, title: str) -> list[Path]:
    """Draw accuracy against the share of known intents, with published lines."""
    scores: dict[str, dict[float, list[float]]] = {}
    for row in rows:
        if row["variant"] == "":
            own = scores.setdefault(row["dataset"], {})
            own.setdefault(row["known_ratio"], []).append(row["scores"]["argmax"]["acc"])
    panels = _ordered(dataset for dataset, own in scores.items() if len(own) > 1)
    if not panels:
        return []
    picture, axes = _panels(len(panels), f"Accuracy by share of known intents, {title}")
    for axis, dataset in zip(axes, panels, strict=True):
        ratios = sorted(scores[dataset])
        ours = [figure(scores[dataset][ratio]) for ratio in ratios]
        axis.errorbar(
            [100 * ratio for ratio in ratios],
            [one.mean for one in ours],
            yerr=[one.std or 0.0 for one in ours],
            color=_COLOURS[0], marker=_MARKERS[0], capsize=3, label="ours",
        )  # fmt: skip
        labelled = rows[0]["labelled_ratio"]
        for i, name in enumerate(LINES, 1):
            points = _published_points(name, dataset, labelled)
            if points:
                x, y = zip(*points, strict=True)
                axis.plot(x, y, _STYLES[i], color=_COLOURS[i], marker=_MARKERS[i], label=name)
        axis.set_title(DATASETS.get(dataset, dataset))
        axis.set_xlabel("known intents, %")
        axis.set_xticks(sorted({100 * ratio for ratio in ratios} | {25, 50, 75}))
        axis.legend(frameon=False)
    axes[0].set_ylabel("ACC, %")
    counts = sorted({len(v) for dataset in panels for v in scores[dataset].values()})
    seeds = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    _caption(
        picture,
        f"Ours: mean and standard deviation over {seeds} seeds. Published lines as printed by "
        f"{LINES_SOURCE}, with BERT, and on another StackOverflow test set (6,000 rows).",
    )
    return [_save(picture, path)]


_KINDS = {
    "pseudo-labels": (draw_pseudo_labels, "history"),
    "map": (draw_maps, "map"),
    "known-ratio": (draw_known_ratios, "scores"),
}
"""Kinds of picture: who draws it, and what a row must have to be in it."""
_NEEDS = {
    "pseudo-labels": 'needs rows of variants "" and "-OT" with history; '
    "run: ronid bench run benchmarks/configs/ablation-default.toml",
    "map": 'needs rows of variants "", "-Intra" and "-Inter" with map, of one seed; '
    "run: ronid bench run benchmarks/configs/figures.toml",
    "known-ratio": "needs rows of two or more known ratios; run: ronid bench run "
    "benchmarks/configs/known-ratio.toml, and main-minilm.toml beside it",
}


def _need_matplotlib() -> None:
    try:
        import matplotlib  # noqa: F401 - only whether it is there
    except ImportError:
        raise MissingExtraError("matplotlib", "bench") from None


def _title(method: str) -> str:
    return METHODS[method].title if method in METHODS else method


def _curve(row: Row) -> list[float]:
    """Return the pseudo-label accuracy of every epoch of the EM loop."""
    history = row.get("history", ())
    return [
        float(epoch["accuracy"])
        for epoch in history
        if epoch.get("stage") == "em" and epoch.get("accuracy") is not None
    ]


def _published_points(name: str, dataset: str, labelled: float) -> list[tuple[float, float]]:
    """Return (known percent, ACC) of one method from the one source that has all ratios."""
    return sorted(
        (100 * entry.known_ratio, entry.scores[dataset]["acc"])
        for entry in published()
        if entry.method == name
        and entry.source.startswith(LINES_SOURCE)
        and entry.labelled_ratio == labelled
        and "acc" in entry.scores.get(dataset, {})
    )


def _ordered(datasets: Iterable[str]) -> list[str]:
    known = list(DATASETS)
    return sorted(datasets, key=lambda d: (known.index(d) if d in known else len(known), d))


def _panels(count: int, title: str) -> "tuple[Figure, Sequence[Axes]]":
    """Return a picture with `count` panels side by side."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_FIXED):
        picture = Figure(figsize=(max(6.4, 4.2 * count), 4.2), layout="constrained")
        axes = picture.subplots(1, count, squeeze=False)[0]
        picture.suptitle(title, fontsize=11)
    return picture, list(axes)


def _caption(picture: "Figure", text: str) -> None:
    picture.supxlabel(text, fontsize=8, wrap=True)


def _save(picture: "Figure", path: Path) -> Path:
    """Write a picture whole, without a date in it."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    target = path.with_name(f"{path.name}.svg")
    partial = target.with_suffix(f".{os.getpid()}.partial")
    try:
        with matplotlib.rc_context(_FIXED):
            metadata = {"Date": None, "Creator": None}
            FigureCanvasSVG(picture).print_svg(str(partial), metadata=metadata)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    return target
