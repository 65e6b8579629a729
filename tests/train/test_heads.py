"""Heads of one stage: seeded by the run and its place, nothing else."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from ronid.config import EncoderConfig
from ronid.encode.encoder import build_encoder
from ronid.losses.student_t import self_training_loss, sharpened, student_t
from ronid.train.heads import Centres, classifier, projection
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


def test_centres_assign_as_student_s_t_says_and_keep_what_they_were_given() -> None:
    first, points = torch.eye(3), torch.randn(9, 3)
    centres = Centres(first)
    assert torch.equal(centres(points), student_t(points, first))
    labels, sums = centres.assign_all(points)
    assert torch.equal(labels, torch.cdist(points, first).argmin(dim=1))
    torch.testing.assert_close(sums, student_t(points, first).sum(dim=0))
    assert not sums.requires_grad
    with torch.no_grad():
        centres.weight.zero_()
    assert torch.equal(first, torch.eye(3))


def test_centres_learn() -> None:
    centres, points = Centres(torch.eye(3)), torch.randn(9, 3)
    q = centres(points)
    self_training_loss(q, sharpened(q)).backward()
    assert centres.weight.grad is not None
    assert centres.weight.grad.abs().sum() > 0
