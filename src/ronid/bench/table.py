"""Rows to a table: mean and deviation over seeds, one line per setting, published lines below.

Lines never mix what can be compared only with care: every coordinate but dataset and seed is the
same within a line, whether it is shown or not.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ronid.bench.plan import COORDINATES
from ronid.bench.published import DATASETS, Published, published
from ronid.bench.rows import Row, coordinates, latest, version_of
from ronid.bench.variants import VARIANTS
from ronid.data.pile import PUBLISHED as AS_PUBLISHED
from ronid.errors import UsageError
from ronid.methods import METHODS, PUBLISHED

BY = ("method", "variant", "encoder", "preset", "known_ratio")
MEASURES = {
    "nmi": "NMI", "ari": "ARI", "acc": "ACC", "known_acc": "known", "novel_acc": "novel",
    "h_score": "H-score", "macro_acc": "macro", "tail_acc": "smallest third",
    "strict_acc": "strict", "known_by_name": "known by name", "strict_novel_acc": "novel, strict",
}  # fmt: skip
RULES = ("argmax", "refit")
_UNMENTIONED = {**AS_PUBLISHED, "split": "drawn"}
"""Values that a caption leaves out."""
_SHARES = (
    "known_ratio", "labelled_ratio", "label_noise", "absent_ratio", "chatter_ratio", "dominant",
    "entities", "small_talk",
)  # fmt: skip
_SETTING = tuple(name for name in COORDINATES if name not in ("dataset", "seed"))


@dataclass(frozen=True)
class Figure:
    """A score over seeds.

    Args:
        mean: Their mean, in percent.
        std: Their sample standard deviation; None for one seed.
        n: How many.
    """

    mean: float
    std: float | None
    n: int

    def __str__(self) -> str:
        return f"{self.mean:.2f}" if self.std is None else f"{self.mean:.2f} ± {self.std:.2f}"


@dataclass(frozen=True)
class Line:
    """One line of a table.

    Args:
        lead: Text of every leading column.
        figures: By dataset and measure.
        seeds: Seeds behind the figures, by dataset; empty for a published line.
        skips: Why a dataset has no figure.
        source: Where a published line is printed, "" for ours.
        note: What makes it hard to compare.
    """

    lead: Mapping[str, str]
    figures: Mapping[tuple[str, str], Figure]
    seeds: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    skips: Mapping[str, str] = field(default_factory=dict)
    source: str = ""
    note: str = ""


@dataclass(frozen=True)
class Table:
    """A table before it is written in any format.

    Args:
        by: Names of the leading columns.
        datasets: Datasets with a column group, in order.
        measures: Measures of each dataset.
        lines: Ours, then the published ones.
        caption: What is the same in all of our lines.
        warnings: What a reader should know before comparing lines.
    """

    by: tuple[str, ...]
    datasets: tuple[str, ...]
    measures: tuple[str, ...]
    lines: tuple[Line, ...]
    caption: str = ""
    warnings: tuple[str, ...] = ()


def make_table(
    rows: Iterable[Row],
    *,
    rule: str = "argmax",
    by: Sequence[str] = BY,
    measures: Sequence[str] = ("nmi", "ari", "acc"),
    beside: str = "all",
    version: str = "",
) -> Table:
    """Gather stored rows into a table.

    Args:
        rows: Stored rows; the last one of every cell counts.
        rule: `argmax` (nearest prototype), `refit` (k-means on the scored rows), or `both`.
        by: Leading columns; a coordinate that differs between lines is added.
        measures: Keys of `MEASURES`.
        beside: Published lines: `all`, `own` (of the methods in the rows) or `none`.
        version: Version of the rows to show; all others are left out.

    Raises:
        UsageError: An unknown rule, coordinate or measure, or no rows.
    """
    rows = list(rows)
    kept = latest(rows, version)
    if rows and not kept and not version:
        earlier = version_of(rows[0])
        raise UsageError(
            f"all rows have version '{earlier}'; to show them, pass --version {earlier}"
        )
    _check(kept, rule, by, measures, beside)
    settings: dict[tuple[Any, ...], list[Row]] = {}
    for row in kept:
        settings.setdefault(_setting(row), []).append(row)
    settings = {setting: settings[setting] for setting in _arranged(settings)}
    shown = [n for n in _SETTING if n in by or len({s[_at(n)] for s in settings}) > 1]
    names = (*shown, "rule") if rule == "both" else tuple(shown)
    datasets = _ordered({row["dataset"] for row in kept})
    lines = [
        _line(setting, group, one, names, measures)
        for setting, group in settings.items()
        for one in (RULES if rule == "both" else (rule,))
    ]
    printed = _published_lines(kept, beside, names, datasets, measures)
    return Table(
        by=names,
        datasets=datasets,
        measures=tuple(measures),
        lines=(*lines, *printed),
        caption=_caption(next(iter(settings)), shown, rule),
        warnings=tuple(_warnings(settings)),
    )


def figure(values: Sequence[float]) -> Figure:
    """Return mean and sample standard deviation of scores."""
    std = statistics.stdev(values) if len(values) > 1 else None
    return Figure(statistics.fmean(values), std, len(values))


def seeds_text(seeds: Iterable[int]) -> str:
    """Write seeds briefly: `0-3, 7`."""
    parts: list[list[int]] = []
    for seed in sorted(seeds):
        if parts and seed == parts[-1][1] + 1:
            parts[-1][1] = seed
        else:
            parts.append([seed, seed])
    return ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in parts)


def _check(
    rows: Sequence[Row], rule: str, by: Sequence[str], measures: Sequence[str], beside: str
) -> None:
    if not rows:
        raise UsageError("there are no rows to show; run: ronid bench run CONFIG")
    for value, known, what in (
        ((rule,), (*RULES, "both"), "rule"),
        (by, _SETTING, "coordinate"),
        (measures, tuple(MEASURES), "measure"),
        ((beside,), ("all", "own", "none"), "choice of published lines"),
    ):
        for name in value:
            if name not in known:
                raise UsageError(f"no {what} '{name}'; choose from: {', '.join(known)}")


def _setting(row: Row) -> tuple[Any, ...]:
    named = dict(zip(COORDINATES, coordinates(row), strict=True))
    return tuple(named[name] for name in _SETTING)


def _arranged(settings: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Put the variants of a setting together: as it is, then `VARIANTS`, then the user's own.

    All else, and the user's own variants among themselves, stays in the order in which it came.
    """
    variant, known = _at("variant"), ["", *VARIANTS]
    groups: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for setting in settings:
        groups.setdefault(setting[:variant] + setting[variant + 1 :], []).append(setting)

    def rank(setting: tuple[Any, ...]) -> int:
        name = setting[variant]
        return known.index(name) if name in known else len(known)

    return [setting for group in groups.values() for setting in sorted(group, key=rank)]


def _at(name: str) -> int:
    return _SETTING.index(name)


def _ordered(datasets: Iterable[str]) -> tuple[str, ...]:
    known = list(DATASETS)
    return tuple(sorted(datasets, key=lambda d: (known.index(d) if d in known else len(known), d)))


def _line(
    setting: tuple[Any, ...],
    rows: Sequence[Row],
    rule: str,
    names: Sequence[str],
    measures: Sequence[str],
) -> Line:
    """Return the line of the rows that differ in dataset and seed only."""
    lead = {name: rule if name == "rule" else _text(name, setting[_at(name)]) for name in names}
    spec = METHODS.get(setting[_at("method")])
    if "method" in lead and spec is not None:
        lead["method"] = spec.table_title
    figures: dict[tuple[str, str], Figure] = {}
    seeds, skips = {}, {}
    for dataset in _ordered({row["dataset"] for row in rows}):
        own = [row for row in rows if row["dataset"] == dataset]
        scored = [row for row in own if rule in row.get("scores", {})]
        for measure in measures:
            values = [row["scores"][rule].get(measure) for row in scored]
            known = [value for value in values if value is not None]
            if known:
                figures[dataset, measure] = figure(known)
        if scored:
            seeds[dataset] = tuple(sorted(row["seed"] for row in scored))
        else:
            skips[dataset] = next((r["skip"] for r in own if "skip" in r), f"no {rule} scores")
    return Line(lead, figures, seeds, skips)


def _text(name: str, value: Any) -> str:
    """Write one coordinate for people."""
    if name == "method" and value in METHODS:
        return METHODS[value].title
    if name in _SHARES:
        return f"{100 * value:g}%"
    return f"{value:g}" if name == "tail" else str(value)


def _published_lines(
    rows: Sequence[Row],
    beside: str,
    names: Sequence[str],
    datasets: Sequence[str],
    measures: Sequence[str],
) -> list[Line]:
    """Return the printed lines of the protocols, variants and datasets that the rows have."""
    if beside == "none":
        return []
    usual = [row for row in rows if all(row.get(k, v) == v for k, v in AS_PUBLISHED.items())]
    protocols = {(row["known_ratio"], row["labelled_ratio"]) for row in usual}
    variants = {row["variant"] for row in rows} | {""}
    titles = {_text("method", row["method"]) for row in rows}
    lines = []
    for entry in published():
        wanted = (entry.known_ratio, entry.labelled_ratio) in protocols
        if not wanted or entry.variant not in variants:
            continue
        if beside == "own" and entry.method not in titles:
            continue
        figures = {
            (dataset, measure): Figure(entry.scores[dataset][measure], None, 0)
            for dataset in datasets
            for measure in measures
            if measure in entry.scores.get(dataset, {})
        }
        if figures:
            lead = _published_lead(entry, names)
            lines.append(Line(lead, figures, source=entry.source, note=entry.note))
    return lines


def _published_lead(entry: Published, names: Sequence[str]) -> dict[str, str]:
    lead = {name: _text(name, v) if (v := getattr(entry, name, "")) else "" for name in names}
    if entry.group == "unsupervised":  # it was shown no known intent
        lead |= {name: "" for name in ("known_ratio", "labelled_ratio") if name in lead}
    return lead


def _caption(setting: tuple[Any, ...], shown: Sequence[str], rule: str) -> str:
    """Say in words what no column says."""
    hidden = {name: setting[_at(name)] for name in _SETTING if name not in shown}
    said = {
        "argmax": "an utterance gets the intent of its nearest prototype (argmax)",
        "refit": "intents are those of k-means on the scored rows (refit)",
        "both": "argmax: nearest prototype; refit: k-means on the scored rows",
    }
    parts = [
        f"{name.replace('_', ' ')}: {_text(name, value)}"
        for name, value in hidden.items()
        if value != _UNMENTIONED.get(name, "")
    ]
    return "; ".join([*parts, said[rule], "mean ± sample standard deviation over seeds"])


def _has_mixed_settings(rows: Sequence[Row], *, by_dataset: bool) -> bool:
    """Return whether rows were made with different constants; those of a dataset, or of all."""
    hashes: dict[str, set[str]] = {}
    for row in rows:
        if "scores" in row:
            hashes.setdefault(row["dataset"] if by_dataset else "", set()).add(
                row.get("config_hash", "")
            )
    return any(len(own) > 1 for own in hashes.values())


def _warnings(settings: Mapping[tuple[Any, ...], Sequence[Row]]) -> Iterable[str]:
    """Yield what makes lines of this table hard to compare."""
    sets: dict[str, set[tuple[int, ...]]] = {}
    for setting, rows in settings.items():
        named = dict(zip(_SETTING, setting, strict=True))
        name = f"{named['method']}{named['variant']} {named['preset']} {named['encoder']}"
        if _has_mixed_settings(rows, by_dataset=named["preset"] == PUBLISHED):
            yield f"{name}: rows come from different settings; run them anew"
        for dataset in _ordered({row["dataset"] for row in rows}):
            own = [row for row in rows if row["dataset"] == dataset]
            scored = [row for row in own if "scores" in row]
            if scored:
                seeds = tuple(sorted(row["seed"] for row in scored))
                sets.setdefault(dataset, set()).add(seeds)
            if scored and len(scored) < len(own):
                left = next(row["skip"] for row in own if "skip" in row)
                count = f"{len(own) - len(scored)} of {len(own)}"
                yield f"{name}, {dataset}: {count} seeds left out: {left}"
    for dataset, found in sets.items():
        if len(found) > 1:
            texts = "; ".join(seeds_text(seeds) for seeds in sorted(found))
            yield f"lines of {dataset} have different seeds: {texts}"
    if len({s for found in sets.values() for s in found}) > 1 and all(
        len(found) == 1 for found in sets.values()
    ):
        yield "datasets have different seeds"
