"""A fit stopped after any epoch and taken up again ends with the very same weights."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ronid.config import RoNIDConfig
from ronid.encode.encoder import build_encoder
from ronid.methods import ronid
from ronid.progress import Silent
from ronid.train.checkpoint import Checkpoint
from ronid.train.optim import make_optimiser
from ronid.train.state import StageState, Training
from ronid.types import Discovery, Split
from tests.helpers.toy_corpus import Recipe, TinyEncoder, Toy

CPU = torch.device("cpu")
RECIPES: dict[str, dict[str, dict[str, Any]]] = {
    "paper": {
        "pretrain": {"epochs": 2},
        "contrast": {"epochs": 2, "batch": 16, "refresh_epochs": 2},
        "m_step": {"epochs": 2, "batch": 16},
    },
    "default": {
        "pretrain": {"epochs": 2},
        "contrast": {"epochs": 2, "batch": 16, "refresh_epochs": 2},
        "m_step": {"epochs": 2, "batch": 16},
    },
    "fast": {
        "contrast": {"epochs": 2, "few_labels_epochs": 2},
        "m_step": {"epochs": 2, "batch": 16},
    },
}


class Killed(Exception):
    """The power went out."""


class KillDuring(Silent):
    """Progress that dies when an epoch of a stage is being reported."""

    def __init__(self, stage: str, epoch: int) -> None:
        self.stage, self.epoch = stage, epoch

    def advance(self, steps: int = 1, figures: Mapping[str, Any] | None = None) -> None:
        if figures and (figures["stage"], figures["epoch"]) == (self.stage, self.epoch):
            raise Killed


def begin(config: RoNIDConfig, path: Path, progress: Silent | None = None) -> Training:
    """Start, or go on with, the fit whose checkpoint is at `path`."""
    training = Training(
        build_encoder(config.encoder, CPU, seed=7),
        seed=7,
        progress=progress or Silent(),
        checkpoint=Checkpoint(path, every_s=0.0),
    )
    training.restore()
    return training


def weights(training: Training) -> dict[str, torch.Tensor]:
    return {n: p.detach().clone() for n, p in training.encoder.trained_state().items()}


def assert_same(one: Discovery, two: Discovery) -> None:
    for name in ("labels", "confidence", "embeddings", "prototypes", "prior"):
        assert np.array_equal(getattr(one, name), getattr(two, name)), name
    assert one.history == two.history


@pytest.fixture
def split(few_utterances: Toy) -> Split:
    return few_utterances.split(dev=12)


@pytest.mark.parametrize("masked_lm", [False, True])
@pytest.mark.parametrize("name", list(RECIPES))
def test_fit_killed_in_every_epoch_ends_as_if_it_had_not_been(
    recipe: Recipe, tiny: TinyEncoder, split: Split, tmp_path: Path, name: str, masked_lm: bool
) -> None:
    config = recipe(name, RECIPES[name] | {"encoder": {"name": tiny("bert", masked_lm)}})
    whole = begin(config, tmp_path / "whole.safetensors")
    expected = ronid.fit(split, config, whole)
    stages = [(row["stage"], row["epoch"]) for row in expected.history]
    assert len(stages) == len(set(stages)) >= 4

    # Every epoch dies once, runs again from the one before, and is kept that time.
    path = tmp_path / "killed.safetensors"
    for stage, epoch in stages:
        with pytest.raises(Killed):
            ronid.fit(split, config, begin(config, path, KillDuring(stage, epoch)))
    last = begin(config, path)
    assert_same(ronid.fit(split, config, last), expected)
    resumed, straight = weights(last), weights(whole)
    assert resumed.keys() == straight.keys()
    assert all(torch.equal(resumed[n], straight[n]) for n in straight)


def test_finished_stages_are_not_run_again(recipe: Recipe, split: Split, tmp_path: Path) -> None:
    config = recipe("fast", RECIPES["fast"])
    path = tmp_path / "fit.safetensors"
    ronid.fit(split, config, begin(config, path))
    again = begin(config, path, KillDuring("contrast", 1))
    ronid.fit(split, config, again)
    assert again.finished == ["contrast"]
    assert [row["epoch"] for row in again.history] == [1, 2, 1, 2]


def test_stage_that_stopped_early_stays_stopped(
    recipe: Recipe, split: Split, tmp_path: Path
) -> None:
    changes = RECIPES["fast"] | {"m_step": {"epochs": 9, "stop_change": 2.0, "stop_patience": 1}}
    config = recipe("fast", changes)
    path = tmp_path / "fit.safetensors"
    first = ronid.fit(split, config, begin(config, path))
    assert [row["epoch"] for row in first.history if row["stage"] == "em"] == [1]
    assert_same(ronid.fit(split, config, begin(config, path)), first)


def test_nothing_is_written_before_its_time(recipe: Recipe, split: Split, tmp_path: Path) -> None:
    config = recipe("fast", RECIPES["fast"])
    training = begin(config, tmp_path / "fit.safetensors", KillDuring("contrast", 2))
    training.checkpoint = Checkpoint(tmp_path / "fit.safetensors", every_s=1000.0)
    with pytest.raises(Killed):
        ronid.fit(split, config, training)
    assert list(tmp_path.iterdir()) == []


def test_without_a_checkpoint_nothing_is_restored(recipe: Recipe) -> None:
    config = recipe("fast")
    training = Training(build_encoder(config.encoder, CPU, seed=7))
    training.restore()
    assert (training.history, training.finished) == ([], [])


def test_other_trained_layers_than_at_the_start_are_taken_up(
    recipe: Recipe, split: Split, tmp_path: Path
) -> None:
    changes = RECIPES["paper"] | {"pretrain": {"epochs": 2, "trainable_layers": 2}}
    config = recipe("paper", changes)
    expected = ronid.fit(split, config, begin(config, tmp_path / "a.safetensors"))
    with pytest.raises(Killed):
        ronid.fit(split, config, begin(config, tmp_path / "b.safetensors", KillDuring("em", 2)))
    resumed = begin(config, tmp_path / "b.safetensors")
    assert_same(ronid.fit(split, config, resumed), expected)


def test_what_a_stage_leaves_to_later_ones_is_in_every_checkpoint_after_it(
    recipe: Recipe, tmp_path: Path
) -> None:
    config, path = recipe("fast"), tmp_path / "fit.safetensors"
    training = begin(config, path)
    weight = torch.ones(3)
    training.finish("first", {"guide/weight": weight})
    weight.zero_()  # what was left is a copy
    assert begin(config, path).kept["guide/weight"].tolist() == [1, 1, 1]
    training.finish("second")
    state = StageState(training.encoder)
    training.keep("third", 1, state, make_optimiser([training.encoder], 1.0, training.optimiser))
    resumed = begin(config, path)
    assert resumed.finished == ["first", "second"]
    assert resumed.kept["guide/weight"].tolist() == [1, 1, 1]
