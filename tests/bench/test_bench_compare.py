import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

from ronid.bench.compare import (
    bootstrap_interval,
    compare,
    compare_published,
    read_selector,
    select,
)
from ronid.bench.rows import append_row
from ronid.cli.app import app
from ronid.errors import RonidWarning, UsageError
from tests.helpers.benchmark_rows import made_row, skipped_row

A = [90.1, 91.2, 89.3, 92.4, 90.0, 91.9, 90.7]
B = [89.0, 90.9, 89.9, 90.1, 88.2, 91.5, 89.8]
ROWS = [
    *(made_row(acc, seed) for seed, acc in enumerate(A)),
    *(made_row(acc, seed, variant="-OT") for seed, acc in enumerate(B)),
]


def both() -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    return select(ROWS, {"variant": ""}), select(ROWS, {"variant": "-OT"})


def test_paired_tests_are_those_of_scipy() -> None:
    (found,) = compare(*both())
    assert found.n == 7
    assert found.mean == pytest.approx(np.mean(A) - np.mean(B))
    assert found.t_p == pytest.approx(stats.ttest_rel(A, B).pvalue)
    assert found.wilcoxon_p == pytest.approx(stats.wilcoxon(A, B).pvalue)


def test_paired_tests_by_hand() -> None:
    gaps = [a - b for a, b in zip(A, B, strict=True)]
    (found,) = compare(*both())
    mean = sum(gaps) / 7
    deviation = (sum((gap - mean) ** 2 for gap in gaps) / 6) ** 0.5
    assert found.std == pytest.approx(deviation)
    # Wilcoxon: the share of all 2^7 sign patterns whose rank sum is at most as likely.
    order = sorted(range(7), key=lambda i: abs(gaps[i]))
    ranks = {i: rank for rank, i in enumerate(order, 1)}
    lower = min(
        sum(ranks[i] for i in range(7) if gaps[i] > 0),
        sum(ranks[i] for i in range(7) if gaps[i] < 0),
    )
    sums = [
        sum(rank for rank, sign in zip(range(1, 8), signs, strict=True) if sign)
        for signs in itertools.product((0, 1), repeat=7)
    ]
    expected = min(1.0, 2 * sum(total <= lower for total in sums) / len(sums))
    assert found.wilcoxon_p == pytest.approx(expected)


def test_bootstrap_interval_is_repeatable_and_near_the_normal_one() -> None:
    values = np.random.default_rng(0).normal(1.0, 2.0, 400).tolist()
    low, high = bootstrap_interval(values)
    assert (low, high) == bootstrap_interval(values)
    half = 1.96 * np.std(values) / 20
    assert low == pytest.approx(np.mean(values) - half, abs=0.03)
    assert high == pytest.approx(np.mean(values) + half, abs=0.03)


def test_other_rule_and_measure_are_compared() -> None:
    a, b = both()
    a[0]["scores"]["refit"]["nmi"] += 7  # type: ignore[index]
    try:
        (found,) = compare(a, b, "nmi", "refit")
        assert found.mean == pytest.approx(np.mean(A) - np.mean(B) + 1)
    finally:
        a[0]["scores"]["refit"]["nmi"] -= 7  # type: ignore[index]


def test_rows_of_other_splits_are_not_paired() -> None:
    a = [made_row(90, seed) for seed in range(6)]
    b = [made_row(89, seed, variant="-OT") for seed in range(6)]
    b[5]["split_hash"] = "another"
    with pytest.warns(RonidWarning, match="2 rows have no partner"):
        (found,) = compare(a, b)
    assert found.n == 5
    with (
        pytest.warns(RonidWarning, match="no partner"),
        pytest.raises(UsageError, match="share split and seed"),
    ):
        compare(a[:1], b[1:2])


def test_protocols_are_never_pooled() -> None:
    rows = [
        made_row(80 + gap, seed, variant=variant, known_ratio=known, split_hash=f"{known}-{seed}")
        for known in (0.25, 0.75)
        for seed in range(5)
        for variant, gap in (("", known), ("-OT", 0.0))
    ]
    found = compare(select(rows, {"variant": ""}), select(rows, {"variant": "-OT"}))
    assert [(one.group["known_ratio"], one.n) for one in found] == [(0.25, 5), (0.75, 5)]
    assert [one.mean for one in found] == pytest.approx([0.25, 0.75])


def test_few_seeds_and_equal_rows_are_handled() -> None:
    with pytest.warns(RonidWarning, match="clinc: 1 seed only"):
        (one,) = compare([made_row(90)], [made_row(89)])
    assert (one.std, one.t_p, one.wilcoxon_p) == (None, None, None)
    same = [made_row(90, seed) for seed in range(5)]
    (none,) = compare(same, same)
    assert (none.mean, none.t_p, none.wilcoxon_p, none.low, none.high) == (0, 1, 1, 0, 0)


def test_without_b_the_published_figure_is_tested_against() -> None:
    (found,) = compare_published(select(ROWS, {"variant": ""}))
    assert found.mean == pytest.approx(np.mean(A) - 95.20)
    assert found.t_p == pytest.approx(stats.ttest_1samp(A, 95.20).pvalue)
    assert "Table 2" in found.against
    with pytest.raises(UsageError, match="no published acc for these rows"):
        compare_published([made_row(90, known_ratio=0.3)])


def test_selector_errors_help() -> None:
    assert read_selector("preset=fast, variant=") == {"preset": "fast", "variant": ""}
    with pytest.raises(UsageError, match="did you mean 'preset'"):
        read_selector("presett=fast")
    with pytest.raises(UsageError, match="write NAME=VALUE"):
        read_selector("fast")
    with pytest.raises(UsageError, match="no scored row fits 'preset=none'"):
        select(ROWS, {"preset": "none"})
    with pytest.raises(UsageError, match="no scored row fits"):
        select([skipped_row("why")], {"preset": "fast"})
    with pytest.raises(UsageError, match="--a fits several rows.*differ in variant"):
        compare(select(ROWS, {"preset": "fast"}), select(ROWS, {"variant": ""}))
    assert len(select(ROWS, {"known_ratio": "0.75", "seed": "3"})) == 2


def test_command_prints_a_line_per_dataset(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    for row in ROWS:
        append_row(path, row)
    command = ["bench", "compare", str(path), "--a", "variant="]
    done = CliRunner().invoke(app, [*command, "--b", "variant=-OT", "--json"])
    (found,) = json.loads(done.stdout)
    assert found["n"] == 7
    done = CliRunner().invoke(app, [*command, "--b", "variant=-OT", "--measures", "acc,nmi"])
    assert done.stdout.count("clinc known 0.75") == 2
    done = CliRunner().invoke(app, command)
    assert "one-sample tests" in done.stdout
    assert "against 95.20, RoNID" in done.stdout
