"""The stored rows of difficult piles hold what the page says of them."""

from statistics import mean
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.helpers.benchmark_script import load_benchmark

pytestmark = pytest.mark.claims

rows_of = load_benchmark("table_rows").harness_rows


def mean_of(rows: list[dict[str, Any]], measure: str, **cell: Any) -> float:
    own = [row for row in rows if all(row[key] == value for key, value in cell.items())]
    assert sorted(row["seed"] for row in own) == [0, 1, 2]
    return mean(row["scores"]["argmax"][measure] for row in own)


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    """The benchmark of chatter as a module."""
    return load_benchmark("chatter")


def test_clusters_of_chatter_are_those_of_which_most_is(bench: ModuleType) -> None:
    labels = np.array([0, 0, 0, 1, 1, 1, 2, 2])
    truth = np.array([0, 0, -1, -1, -1, 1, 2, -1])
    assert bench.chatter_clusters(labels, truth, k=4, known=1) == {
        "chatter": 4,
        "chatter_clusters": 1,
        "chatter_in_them": 50.0,
        "chatter_in_known": 25.0,
    }


def test_without_chatter_there_are_no_such_clusters(bench: ModuleType) -> None:
    found = bench.chatter_clusters(np.array([0, 1]), np.array([1, 0]), k=2, known=0)
    assert set(found.values()) == {0}


@pytest.mark.parametrize(
    "name",
    ["none", "none-default", "shots", "noise", "absent", "tail", "tail-default", "kmeans"],
)
def test_every_cell_was_scored_on_the_test_file(name: str) -> None:
    rows = rows_of(f"pile-{name}")
    assert all("scores" in row and row["scored_on"] == "test" for row in rows)
    settings = {(row["method"], row["variant"], row["config_hash"]) for row in rows}
    assert len(settings) == len({found[:2] for found in settings})


@pytest.mark.parametrize(
    ("dataset", "preset", "least"),
    [
        ("clinc", "fast", 8),
        ("stackoverflow", "fast", 8),
        ("banking", "fast", 5),
        ("clinc", "default", 8),
        ("banking", "default", 8),
        ("stackoverflow", "default", 8),
    ],
)
def test_without_labels_it_beats_kmeans(dataset: str, preset: str, least: float) -> None:
    rows = [*rows_of("pile-none"), *rows_of("pile-none-default")]
    ours = mean_of(rows, "acc", dataset=dataset, method="ronid", preset=preset)
    assert ours >= mean_of(rows, "acc", dataset=dataset, method="kmeans") + least


@pytest.mark.parametrize(
    ("dataset", "most"), [("clinc", 3), ("banking", 2), ("stackoverflow", 4.5)]
)
def test_without_labels_finding_the_number_costs_what_the_page_says(
    dataset: str, most: float
) -> None:
    given = mean_of(rows_of("pile-none"), "acc", dataset=dataset, method="ronid", preset="fast")
    assert mean_of(rows_of("pile-none-auto"), "acc", dataset=dataset) >= given - most


@pytest.mark.parametrize("dataset", ["clinc", "banking", "stackoverflow"])
def test_with_one_label_of_each_intent_finding_the_number_costs_little(dataset: str) -> None:
    given = mean_of(rows_of("pile-shots"), "acc", dataset=dataset, shots=1)
    assert mean_of(rows_of("pile-shots-auto"), "acc", dataset=dataset, shots=1) >= given - 2.5


@pytest.mark.parametrize("dataset", ["clinc", "stackoverflow"])
@pytest.mark.parametrize("tail", [10, 50])
@pytest.mark.parametrize("name", ["pile-tail", "pile-tail-default"])
def test_small_intents_are_no_worse_than_with_kmeans(dataset: str, tail: float, name: str) -> None:
    cell = {"dataset": dataset, "tail": tail, "variant": ""}
    for measure in ("macro_acc", "tail_acc"):
        ours = mean_of(rows_of(name), measure, **cell)
        assert ours >= mean_of(rows_of("pile-kmeans"), measure, **cell)
