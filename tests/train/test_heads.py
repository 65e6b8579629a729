"""Heads of one stage: seeded by the run and its place, nothing else."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from ronid.config import EncoderConfig
from ronid.encode.encoder import build_encoder
from ronid.train.heads import classifier, projection
from ronid.train.state import Training

Make = Callable[[Training, str], nn.Module]
MAKERS: list[Make] = [
    lambda training, place: classifier(training, place, 3),
    lambda training, place: projection(training, place, 3, width=7, dropout=0.5),
]


def training_of(seed: int) -> Training:
    config = EncoderConfig(trainable_layers=0, adapter_width=4)
    return Training(build_encoder(config, torch.device("cpu"), seed=seed, given_dim=5), seed)


def weights(module: nn.Module) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in module.parameters()])


@pytest.mark.parametrize("make", MAKERS)
def test_first_weights_follow_seed_and_place(make: Make) -> None:
    torch.manual_seed(1)
    state = torch.get_rng_state()
    one = weights(make(training_of(0), "stage"))
    torch.rand(9)
    assert weights(make(training_of(0), "stage")).equal(one)
    assert not weights(make(training_of(1), "stage")).equal(one)
    assert not weights(make(training_of(0), "other")).equal(one)
    torch.manual_seed(1)
    make(training_of(0), "stage")
    assert torch.get_rng_state().equal(state)


def test_shapes() -> None:
    training = training_of(0)
    assert classifier(training, "a", 3)(torch.rand(2, 5)).shape == (2, 3)
    assert projection(training, "a", 4)(torch.rand(2, 5)).shape == (2, 4)
    assert projection(training, "a", 4, width=9)[0].out_features == 9  # type: ignore[index]
