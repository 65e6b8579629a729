"""Heads: seeded by run and place, and centres that follow their loss."""

import torch

from ronid.config import EncoderConfig
from ronid.encode.encoder import build_encoder
from ronid.losses.student_t import self_training_loss, sharpened, student_t
from ronid.train.heads import Centres, classifier, projection
from ronid.train.state import Training


def training(seed: int = 0) -> Training:
    config = EncoderConfig(trainable_layers=0, adapter_width=4)
    return Training(build_encoder(config, torch.device("cpu"), seed=0, given_dim=3), seed)


def weights(head: torch.nn.Module) -> list[list[float]]:
    return [weight.flatten().tolist() for weight in head.parameters()]


def test_first_weights_follow_the_run_and_the_place() -> None:
    for make in (classifier, projection):
        same = [weights(make(training(1), "here", 5)) for _ in range(2)]
        assert same[0] == same[1]
        assert weights(make(training(2), "here", 5)) != same[0]
        assert weights(make(training(1), "there", 5)) != same[0]


def test_projection_has_the_widths_asked_for() -> None:
    head = projection(training(), "here", 5, width=8)
    assert [tuple(w.shape) for w in head.parameters()] == [(8, 3), (8,), (5, 8), (5,)]
    assert head(torch.zeros(2, 3)).shape == (2, 5)


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
