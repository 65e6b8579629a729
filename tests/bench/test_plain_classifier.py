"""Logistic regression on frozen vectors, the baseline that discovers nothing."""

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from ronid.bench.rows import read_rows
from ronid.data.splits import BenchmarkProblem
from ronid.types import Split
from tests.helpers.benchmark_script import load_benchmark

CONFIG = """
datasets = ["toy"]
presets = ["default", "fast"]
encoders = ["tiny"]
k_rules = ["given", "auto"]
seeds = [0, 1]
"""


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return load_benchmark("plain_classifier")


def test_every_split_gets_three_rows_once(
    script: ModuleType, toy: Path, encoder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config, out = tmp_path / "toy.toml", tmp_path / "rows.jsonl"
    config.write_text(CONFIG)
    for _ in range(2):  # the second run finds all rows stored
        script.main([str(config), "--out", str(out), "--encoder", f"tiny={encoder}"])
    rows = read_rows(out)
    assert [(row["seed"], row["variant"]) for row in rows] == [
        (seed, variant) for seed in (0, 1) for variant in script.VARIANTS
    ]
    assert {row["method"] for row in rows} == {"logistic_regression"}
    assert len(capsys.readouterr().out.splitlines()) == 2
    for new, never, ceiling in (rows[:3], rows[3:]):
        named = [row["scores"]["argmax"]["known_by_name"] for row in (new, never)]
        assert named[0] <= named[1]
        assert never["scores"]["argmax"]["strict_novel_acc"] == 0
        assert ceiling["scores"]["argmax"]["acc"] > never["scores"]["argmax"]["acc"]
    assert (toy / "toy").is_dir()


def blobs(classes: np.ndarray, noise: float, seed: int) -> np.ndarray:
    centers = np.eye(8)[classes]
    rng = np.random.default_rng(seed)
    return (centers + noise * rng.standard_normal(centers.shape)).astype(np.float32)


def test_as_many_answers_are_new_as_there_are_novel_rows(script: ModuleType) -> None:
    truth = np.repeat(np.arange(4), 20)
    targets = np.where((truth < 3) & (np.arange(80) % 2 == 0), truth, -1)
    names = ("a", "b", "c")
    split = Split([""] * 80, targets, names, 4, truth=truth)
    problem = BenchmarkProblem(split, (), np.zeros(0, np.int64), (*names, "d"))
    scored_truth = np.repeat(np.arange(4), 5)
    scored = blobs(scored_truth, 0.1, 1)
    answers = script.answers(problem, blobs(truth, 0.1, 0), scored, scored_truth)
    found = {variant: labels for variant, (labels, _) in answers.items()}
    np.testing.assert_array_equal(found[""], scored_truth)  # the least sure are the novel ones
    assert (found["-New"] < 3).all()
    np.testing.assert_array_equal(found["+AllLabels"], scored_truth)
