"""Is A better than B? Rows of the same split and seed are paired and their differences tested."""

import difflib
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ronid.bench.plan import COORDINATES
from ronid.bench.published import matching
from ronid.bench.rows import Row, coordinates, latest, version_of
from ronid.data.pile import PILE_KEYS
from ronid.errors import RonidWarning, UsageError

FEW = 5
_GROUP = ("dataset", "known_ratio", "labelled_ratio", "k_rule", "scored_on", "split", *PILE_KEYS)
_RESAMPLES = 10_000

Selector = Mapping[str, str]


@dataclass(frozen=True)
class Comparison:
    """Differences A - B of one measure on one dataset.

    Args:
        group: Dataset and protocol.
        measure: Which score.
        n: Number of differences.
        mean: Their mean, in points.
        std: Their sample standard deviation; None for one.
        t_p: p of the t-test of mean 0; None where it says nothing.
        wilcoxon_p: p of the signed-rank test; None where it says nothing.
        low: Lower end of the bootstrap 95% interval of the mean.
        high: Its upper end.
        against: What B is.
    """

    group: Mapping[str, Any]
    measure: str
    n: int
    mean: float
    std: float | None
    t_p: float | None
    wilcoxon_p: float | None
    low: float
    high: float
    against: str


def read_selector(text: str) -> Selector:
    """Return coordinates and values of `preset=fast,variant=`.

    Raises:
        UsageError: A part is not NAME=VALUE, or the name is no coordinate.
    """
    found = {}
    for part in text.split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise UsageError(f"selector '{text}' has '{part}'; write NAME=VALUE,NAME=VALUE")
        if name not in COORDINATES:
            near = difflib.get_close_matches(name, COORDINATES, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"there are: {', '.join(COORDINATES)}"
            raise UsageError(f"selector '{text}' has no coordinate '{name}'; {hint}")
        found[name] = value
    return found


def select(rows: Iterable[Row], selector: Selector) -> list[Row]:
    """Return the last scored row of every cell that fits.

    Args:
        rows: Stored rows.
        selector: Coordinates and their values. Rows of an earlier version fit only if `version`
            names it.

    Raises:
        UsageError: None fits.
    """
    rows = list(rows)

    def fitting(version: str | None) -> list[Row]:
        kept = latest(rows, version)
        return [row for row in kept if "scores" in row and _fits(row, selector)]

    found = fitting(selector.get("version", ""))
    if not found:
        asked = ",".join(f"{name}={value}" for name, value in selector.items())
        hint = "see the rows with: ronid bench table"
        if others := fitting(None):
            earlier = version_of(others[0])
            hint = f"rows with version '{earlier}' do; add version={earlier} to select them"
        raise UsageError(f"no scored row fits '{asked}'; {hint}")
    return found


def compare(
    a: Sequence[Row], b: Sequence[Row], measure: str = "acc", rule: str = "argmax"
) -> list[Comparison]:
    """Compare the rows `a` with the rows `b`, paired by protocol, split and seed.

    Warns of fewer than five pairs and of rows without a partner.

    Raises:
        UsageError: Nothing can be paired, or a selector leaves several rows for one split.
    """
    left, right = _by_pair(a, "--a"), _by_pair(b, "--b")
    pairs = [key for key in left if key in right]
    alone = len(left) + len(right) - 2 * len(pairs)
    if alone:
        _warn(f"{alone} rows have no partner of the same split and seed and are left out")
    if not pairs:
        raise UsageError("no rows of --a and --b share split and seed; run both on the same seeds")
    groups: dict[tuple[Any, ...], list[float]] = {}
    for key in pairs:
        gap = _score(left[key], rule, measure) - _score(right[key], rule, measure)
        groups.setdefault(_group(left[key]), []).append(gap)
    return [
        _tested(dict(zip(_GROUP, group, strict=True)), measure, gaps, "paired")
        for group, gaps in groups.items()
    ]


def compare_published(
    rows: Sequence[Row], measure: str = "acc", rule: str = "argmax"
) -> list[Comparison]:
    """Compare rows with the published figures of their method: one-sample tests.

    Raises:
        UsageError: Nothing was published for them, or they differ in more than split and seed.
    """
    _by_pair(rows, "--a")
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(_group(row), []).append(row)
    found = []
    for group, own in groups.items():
        first = own[0]
        for entry in matching(
            first["method"], first["variant"], first["known_ratio"], first["labelled_ratio"]
        ):
            printed = entry.scores.get(first["dataset"], {}).get(measure)
            if printed is not None:
                gaps = [_score(row, rule, measure) - printed for row in own]
                against = f"{printed:.2f}, {entry.source}"
                named = dict(zip(_GROUP, group, strict=True))
                found.append(_tested(named, measure, gaps, against))
    if not found:
        raise UsageError(f"no published {measure} for these rows; give --b to compare with others")
    return found


def bootstrap_interval(values: Sequence[float], seed: int = 0) -> tuple[float, float]:
    """Return the 95% percentile interval of the mean under resampling with replacement."""
    rng = np.random.default_rng(seed)
    array = np.asarray(values, np.float64)
    means = rng.choice(array, (_RESAMPLES, len(array))).mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)


def _tested(
    group: Mapping[str, Any], measure: str, gaps: Sequence[float], against: str
) -> Comparison:
    """Test differences against 0."""
    if len(gaps) < FEW:
        count = "1 seed" if len(gaps) == 1 else f"{len(gaps)} seeds"
        _warn(f"{group['dataset']}: {count} only; p values and intervals say little")
    array = np.asarray(gaps, np.float64)
    low, high = bootstrap_interval(gaps)
    return Comparison(
        group=group,
        measure=measure,
        n=len(gaps),
        mean=float(array.mean()),
        std=float(array.std(ddof=1)) if len(gaps) > 1 else None,
        t_p=_t_p(array),
        wilcoxon_p=_wilcoxon_p(array),
        low=low,
        high=high,
        against=against,
    )


def _t_p(gaps: np.ndarray) -> float | None:
    from scipy.stats import ttest_1samp

    if not gaps.any():
        return 1.0
    if len(gaps) < 2 or np.ptp(gaps) == 0:
        return None
    # The paired test is the one-sample test of the differences.
    return float(ttest_1samp(gaps, 0.0).pvalue)


def _wilcoxon_p(gaps: np.ndarray) -> float | None:
    from scipy.stats import wilcoxon

    if not gaps.any():
        return 1.0
    return float(wilcoxon(gaps).pvalue) if len(gaps) > 1 else None


def _fits(row: Row, selector: Selector) -> bool:
    named = dict(zip(COORDINATES, coordinates(row), strict=True))
    return all(_same(named[name], value) for name, value in selector.items())


def _same(value: Any, text: str) -> bool:
    if isinstance(value, int | float):
        try:
            return float(text) == value
        except ValueError:
            return False
    return str(value) == text


def _group(row: Row) -> tuple[Any, ...]:
    named = dict(zip(COORDINATES, coordinates(row), strict=True))
    return tuple(named[name] for name in _GROUP)


def _by_pair(rows: Sequence[Row], option: str) -> dict[tuple[Any, ...], Row]:
    """Return rows by what must be equal in a pair."""
    found: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        key = (*_group(row), row["split_hash"], row["seed"])
        if key in found:
            differ = [
                name
                for name, x, y in zip(
                    COORDINATES, coordinates(row), coordinates(found[key]), strict=True
                )
                if x != y
            ]
            raise UsageError(
                f"{option} fits several rows of one split, which differ in "
                f"{', '.join(differ)}; add that to the selector"
            )
        found[key] = row
    return found


def _score(row: Row, rule: str, measure: str) -> float:
    value = row["scores"].get(rule, {}).get(measure)
    if value is None:
        raise UsageError(f"a row of {row['dataset']} has no {rule} {measure}; choose another")
    return float(value)


def _warn(message: str) -> None:
    warnings.warn(message, RonidWarning, stacklevel=4)
