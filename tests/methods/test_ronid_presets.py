"""What holds of RoNID's presets beyond the contract of all methods."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from ronid.config import RoNIDConfig
from ronid.encode.encoder import build_encoder
from ronid.errors import UsageError
from ronid.methods import fit
from ronid.train.state import Training
from ronid.types import Discovery, Split
from tests.helpers.toy_corpus import Recipe, Toy

PRESETS = ("fast", "paper")


def run(split: Split, config: RoNIDConfig, seed: int = 0) -> Discovery:
    encoder = build_encoder(config.encoder, torch.device("cpu"), seed=seed)
    return fit(split, config, Training(encoder, seed, config.optimiser))


@pytest.mark.parametrize("preset", PRESETS)
def test_other_seeds_give_other_features(recipe: Recipe, few_utterances: Toy, preset: str) -> None:
    changes: dict[str, Any] = {"m_step": {"epochs": 1}, "contrast": {"epochs": 1}}
    one, other = (run(few_utterances.split(), recipe(preset, changes), seed) for seed in (3, 4))
    assert not np.array_equal(one.embeddings, other.embeddings)


@pytest.mark.parametrize("preset", PRESETS)
def test_no_epochs_leave_the_first_prototypes(
    recipe: Recipe, few_utterances: Toy, preset: str
) -> None:
    nothing: dict[str, Any] = {s: {"epochs": 0} for s in ("pretrain", "contrast", "m_step")}
    assert run(few_utterances.split(), recipe(preset, nothing)).history == ()


def test_truth_is_shown_epoch_by_epoch(recipe: Recipe, few_utterances: Toy) -> None:
    split, config = few_utterances.split(), recipe("fast")
    told = run(replace(split, truth=few_utterances.classes), config)
    assert "accuracy" not in run(split, config).history[-1]
    assert 0 <= told.history[-1]["accuracy"] <= 100


def test_nothing_to_train_is_refused(recipe: Recipe, few_utterances: Toy) -> None:
    config = recipe("paper", {"encoder": {"trainable_layers": 0}})
    with pytest.raises(UsageError, match="nothing to train"):
        run(few_utterances.split(), config)
