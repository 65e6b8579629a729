"""The simulated reviewer does what its page says, and its stored rows hold what is claimed."""

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.helpers import ROOT
from tests.helpers.benchmark_script import load_benchmark

pytestmark = pytest.mark.claims

STORED = ROOT / "benchmarks/results/review.jsonl"
ROWS = [json.loads(line) for line in STORED.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    """The benchmark as a module, beside those it borrows from."""
    try:
        return load_benchmark("review")
    finally:
        sys.modules.pop("update", None)


def made_desk(tmp_path: Path) -> Any:
    from ronid.review.desk import Desk
    from ronid.review.store import store_for
    from tests.helpers.review_base import make_base

    return Desk(make_base(rows=80), store_for(tmp_path / "review.sqlite", "made"))


def test_the_reviewer_acts_as_often_as_asked_and_speaks_the_truth(
    bench: ModuleType, tmp_path: Path
) -> None:
    desk = made_desk(tmp_path)
    truth = desk.base.labels.astype(np.int64).copy()
    truth[[1, 5, 9]] = 2  # three of intent 1 belong to intent 2
    reviewer = bench.Reviewer(truth)
    reviewer.work(desk, 6)
    state = desk.view().state
    assert sum(reviewer.done.values()) == desk.version <= 6
    assert reviewer.spoken <= reviewer.read
    for row in reviewer.spoken:
        if state.confirmed[row]:
            assert state.of_row(row) == f"i{truth[row]}"


def test_random_labels_of_unnamed_intents_go_where_most_of_them_are(
    bench: ModuleType, tmp_path: Path
) -> None:
    desk = made_desk(tmp_path)
    truth = np.where(desk.base.labels == 1, 3, np.where(desk.base.labels == 3, 1, 2))
    truth[desk.base.labels == 0] = 0
    known = {0: "i0"}
    bench.label_randomly(desk, truth, known, np.array([1, 5, 3, 2]))
    assert known == {0: "i0", 3: "i1", 1: "i3", 2: "i2"}
    assert desk.view().state.confirmed[[1, 5, 3, 2]].all()


def test_stored_rows_are_of_the_test_file() -> None:
    assert {row["part"] for row in ROWS} == {"test"}
    assert {row["actions"] for row in ROWS} == {50, 100, 200}


def mean_of(dataset: str, actions: int, way: str, key: str) -> float:
    own = [row for row in ROWS if (row["dataset"], row["actions"]) == (dataset, actions)]
    assert sorted(row["seed"] for row in own) == [0, 1, 2]
    return float(np.mean([row[way][key] for row in own]))


@pytest.mark.parametrize(
    ("dataset", "key", "clearly"),
    [
        ("clinc", "acc", 1.0),
        ("banking", "acc", 2.0),
        ("clinc", "pile", 1.5),
        ("banking", "pile", 3.0),
        ("stackoverflow", "pile", 2.0),
    ],
)
def test_a_review_wins_over_random_labels(dataset: str, key: str, clearly: float) -> None:
    for actions in (50, 100, 200):
        for rival in ("random", "random_rows"):
            ours = mean_of(dataset, actions, "review", key)
            assert ours > mean_of(dataset, actions, rival, key)
    gained = mean_of(dataset, 200, "review", key) - mean_of(dataset, 200, "random", key)
    assert gained >= clearly


def test_where_no_label_teaches_much_a_review_does_no_harm() -> None:
    before = mean_of("stackoverflow", 50, "start", "acc")
    for actions in (50, 100, 200):
        found = mean_of("stackoverflow", actions, "review", "acc")
        assert found >= max(before, mean_of("stackoverflow", actions, "random", "acc"))


def test_the_middle_of_a_list_is_read(bench: ModuleType) -> None:
    assert bench.middle(list(range(10)), 4) == [3, 4, 5, 6]
    assert bench.middle(list(range(7)), 4) == [1, 2, 3, 4]
    assert bench.middle([5, 6], 4) == [5, 6]
    assert bench.middle([], 4) == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['dataset']} {row['actions']}")
def test_decisions_hold(row: dict[str, Any]) -> None:
    assert row["review"]["held"] >= 0.9 * (row["review"]["held"] + row["review"]["not_held"])
