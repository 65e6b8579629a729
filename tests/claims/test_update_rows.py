"""The stream of the update benchmark is what it says, and its stored rows hold what is claimed."""

import json
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from ronid.data.splits import BenchmarkProblem
from ronid.types import Split
from tests.helpers import ROOT
from tests.helpers.benchmark_script import load_benchmark

pytestmark = pytest.mark.claims

ROWS = [
    json.loads(line)
    for line in (ROOT / "benchmarks/results/update.jsonl").read_text(encoding="utf-8").splitlines()
]


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    """The benchmark as a module, beside the one it borrows from."""
    return load_benchmark("update")


def made_problem(k: int = 20, known: int = 15, each: int = 10) -> BenchmarkProblem:
    truth = np.repeat(np.arange(k), each)
    targets = np.where((truth < known) & (np.arange(len(truth)) % each == 0), truth, -1)
    names = tuple(f"intent {i}" for i in range(k))
    texts = [f"utterance {i}" for i in range(len(truth))]
    split = Split(texts, targets, names[:known], k, truth=truth)
    return BenchmarkProblem(
        split=split, classes=names, test_texts=[], test_targets=np.empty(0, np.int64)
    )


def test_intents_and_utterances_arrive_as_told(bench: ModuleType) -> None:
    problem = made_problem()
    stream = bench.make_stream(problem, seed=3)
    assert np.bincount(stream.arrives).tolist() == [12, 2, 2, 2, 2]
    assert (stream.arrives[:15] == 0).sum() == 9
    truth = problem.split.truth
    assert truth is not None
    assert (stream.when >= stream.arrives[truth]).all()
    first = np.bincount(truth[stream.when == stream.arrives[truth]])
    assert set(first[stream.arrives < 4]) == {8}
    assert set(first[stream.arrives == 4]) == {10}


def test_labels_of_intents_that_come_later_are_not_told(bench: ModuleType) -> None:
    stream = bench.make_stream(made_problem(), seed=3)
    corpus = stream.corpus(np.arange(200))
    early = {f"intent {i}" for i in range(15) if stream.arrives[i] == 0}
    assert set(corpus.known) == early


def test_stored_rows_are_of_the_test_file() -> None:
    assert {row["part"] for row in ROWS} == {"test"}


@pytest.mark.parametrize("dataset", ["clinc", "banking", "stackoverflow"])
@pytest.mark.parametrize("turn", [2, 3, 4, 5])
def test_updates_are_within_three_points_of_a_whole_fit(dataset: str, turn: int) -> None:
    own = [row for row in ROWS if (row["dataset"], row["round"]) == (dataset, turn)]
    assert {row["seed"] for row in own} == {0, 1, 2}
    assert np.mean([row["at_once"]["acc"] - row["update"]["acc"] for row in own]) <= 3


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['dataset']}, {row['round']}")
def test_updates_take_a_quarter_of_the_time_of_a_fit(row: dict[str, Any]) -> None:
    assert row["update"]["seconds"] <= row["at_once"]["seconds"] / 4
