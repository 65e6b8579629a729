"""The stored rows on names say what the documentation claims, and the measure is what it says."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.benchmark_script import load_benchmark
from tests.helpers.finished_run import SHOP, make_run

pytestmark = pytest.mark.claims


def rows(dataset: str) -> list[dict[str, Any]]:
    found = load_benchmark("table_rows").read_rows("names.jsonl")
    return [row for row in found if row["dataset"] == dataset]


@pytest.mark.parametrize(("dataset", "least"), [("clinc", 75), ("banking", 70)])
def test_three_seeds_of_names_reach_their_mark_and_beat_the_keyphrase(
    dataset: str, least: float
) -> None:
    stored = rows(dataset)
    assert sorted(row["seed"] for row in stored) == [0, 1, 2]
    name, keyphrase = (
        np.mean([row["scores"][kind]["all"]["top1"] for row in stored])
        for kind in ("name", "keyphrase")
    )
    assert name >= least
    assert name > keyphrase


@pytest.mark.parametrize("dataset", ["clinc", "banking"])
def test_stored_scores_follow_from_the_stored_ranks(dataset: str) -> None:
    for row in rows(dataset):
        names = [each["name"] for each in row["names"]]
        assert len({name.lower() for name in names}) == len(names)
        pure = [each for each in row["names"] if each["purity"] >= 0.5]
        for part, entries in (("all", row["names"]), ("pure", pure)):
            for kind in ("name", "keyphrase"):
                score = row["scores"][kind][part]
                ranks = np.array([each[f"{kind}_rank"] for each in entries])
                assert score["intents"] == len(entries)
                assert score["top1"] == pytest.approx(100 * (ranks == 1).mean(), abs=0.01)
                assert score["top3"] == pytest.approx(100 * (ranks <= 3).mean(), abs=0.01)


def test_rank_counts_the_labels_that_are_nearer() -> None:
    targets = np.eye(3, dtype=np.float32)
    names = np.array([[0.9, 0.3, 0.1], [0.5, 0.4, 0.6]], np.float32)
    assert load_benchmark("names").rank_of(names, targets, np.array([0, 1])).tolist() == [0, 2]
    assert load_benchmark("names").words("report_lost_card") == "report lost card"


def test_measure_takes_the_label_most_utterances_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    run = make_run(tmp_path / "run", SHOP)
    table = run.assignments()
    truth = ["track_order"] * 4 + ["lost_card"] * 3 + ["gift_card"] * 5 + ["pause_plan"] * 3
    pq.write_table(table.append_column("truth", pa.array(truth)), run.path / "assignments.parquet")
    module = load_benchmark("names")
    monkeypatch.setattr(module, "embed", letters)
    found = module.measure(run)
    assert [entry["truth"] for entry in found["names"]] == ["lost_card", "gift_card", "pause_plan"]
    assert [entry["purity"] for entry in found["names"]] == [0.75, 1.0, 1.0]
    assert found["labels"] == 4
    assert found["scores"]["name"]["all"]["intents"] == 3
    assert found["scores"]["name"]["all"]["top3"] > 0


def letters(texts: list[str]) -> np.ndarray:
    """Stand in for the encoder: which letters a text has."""
    counts = np.array([[text.count(c) for c in "abcdefghijklmnopqrstuvwxyz"] for text in texts])
    return (counts / np.linalg.norm(counts, axis=1, keepdims=True)).astype(np.float32)
