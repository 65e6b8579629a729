"""The speed benchmark runs at toy size, and both of its loops really train."""

import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from ronid.errors import UsageError
from ronid.presets import preset
from ronid.types import Split
from tests.helpers.benchmark_script import load_benchmark
from tests.helpers.toy_corpus import TinyEncoder, Toy

KEYS = {
    "format_version", "dataset", "rows", "labelled", "k", "length_tokens", "mean_tokens",
    "encoder", "device", "epochs", "published", "ours", "ratio", "matmul_s", "matmul_share",
    "versions",
}  # fmt: skip


@pytest.fixture(scope="module")
def speed() -> ModuleType:
    """The benchmark as a module."""
    return load_benchmark("training_speed")


@pytest.fixture
def task(speed: ModuleType, tiny: TinyEncoder, few_utterances: Toy) -> Any:
    return speed.Task(few_utterances.split(), tiny("bert"), 16, torch.device("cpu"), 2)


def test_row_tells_both_loops_and_both_trained(
    speed: ModuleType,
    tiny: TinyEncoder,
    few_utterances: Toy,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(speed, "read_split", lambda *_: few_utterances.split())
    out = tmp_path / "new" / "speed.jsonl"
    arguments = ["--device", "cpu", "--epochs", "2", "--out", str(out), "--encoder", tiny("bert")]
    speed.main([*arguments, "--dataset", "clinc"])
    (line,) = out.read_text(encoding="utf-8").splitlines()
    row = json.loads(line)
    assert set(row) == KEYS
    assert (row["dataset"], row["rows"], row["k"], row["length_tokens"]) == ("clinc", 60, 6, 30)
    assert row["encoder"] == Path(tiny("bert")).name  # no path of this machine
    for loop in (row["published"], row["ours"]):
        assert len(loop["epochs_s"]) == 2
        assert min(loop["epochs_s"]) > 0
        assert loop["epoch_s"] == pytest.approx(np.mean(loop["epochs_s"]), abs=1e-3)
        assert loop["moved"] > 0
        assert np.isfinite(loop["loss"])
    measured = row["published"]["epoch_s"] / row["ours"]["epoch_s"]
    assert row["ratio"] == pytest.approx(measured, rel=0.02)
    assert 0 < row["matmul_share"] < 1
    assert row["matmul_s"] > 0
    assert "times faster" in capsys.readouterr().out


def test_published_loop_pads_all_rows_and_trains_the_last_layer_only(
    speed: ModuleType, task: Any
) -> None:
    loop = speed.PublishedLoop(task, replace(preset("paper").m_step, lr=1e-2))
    assert loop.rows.tensors[0].shape == (60, 16)
    before = {name: weight.detach().clone() for name, weight in loop.model.named_parameters()}
    losses = [loop.epoch() for _ in range(6)]
    changed = {n for n, weight in loop.model.named_parameters() if not weight.equal(before[n])}
    assert changed
    assert all(".layer.2." in name for name in changed)  # the last of three
    assert losses[-1] < losses[0]


def test_published_pseudo_labels_keep_given_ones_and_put_known_intents_first(
    speed: ModuleType, task: Any, few_utterances: Toy
) -> None:
    loop = speed.PublishedLoop(task, preset("paper").m_step)
    centres = np.eye(6, 8, dtype=np.float32)
    noise = np.random.default_rng(0).normal(size=(60, 8)).astype(np.float32) / 30
    labels, prototypes = loop.pseudo_labels(centres[few_utterances.classes] + noise)
    known = few_utterances.classes < 4
    assert np.array_equal(labels.numpy()[known], few_utterances.classes[known])
    assert set(labels.numpy()[~known]) == {4, 5}
    assert (prototypes @ torch.from_numpy(centres).T).argmax(dim=1)[:4].tolist() == [0, 1, 2, 3]


def test_subsample_keeps_every_known_intent(speed: ModuleType, utterances: Toy) -> None:
    split = utterances.split()
    small = speed.subsample(split, 12)
    assert len(small) == len(small.targets) == 12
    assert set(small.targets) >= {0, 1, 2, 3}
    place = dict(zip(split.texts, split.targets, strict=True))
    assert [place[text] for text in small.texts] == small.targets.tolist()
    whole: Split = speed.subsample(split, 300)
    assert list(whole.texts) == list(split.texts)
    for rows in (7, 301):
        with pytest.raises(UsageError, match=f"--rows is {rows}; give 8 to 300"):
            speed.subsample(split, rows)
