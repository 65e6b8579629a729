"""Dropout by bytes drops the right share, keeps the mean, and follows torch's seed."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ronid.encode.dropout import ByteDropout


@pytest.mark.parametrize("probability", [0.1, 0.25, 0.5])
def test_share_of_zeros_and_mean_are_those_of_dropout(probability: float) -> None:
    torch.manual_seed(0)
    out = ByteDropout(probability)(torch.ones(500, 1000))
    assert float((out == 0).float().mean()) == pytest.approx(probability, abs=0.005)
    assert float(out.mean()) == pytest.approx(1.0, abs=0.005)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=3), st.floats(0, 0.9))
def test_every_unit_is_dropped_or_scaled(shape: list[int], probability: float) -> None:
    values = torch.arange(1.0, 1 + torch.Size(shape).numel()).view(shape)
    layer = ByteDropout(probability)
    out = layer(values)
    scaled = values * 256 / (256 - layer.cut)
    assert out.shape == values.shape
    assert bool(((out == 0) | torch.isclose(out, scaled)).all())


def test_every_place_is_dropped_sometimes() -> None:
    torch.manual_seed(0)
    layer = ByteDropout(0.5)
    dropped = torch.stack([layer(torch.ones(64)) == 0 for _ in range(200)]).float().mean(0)
    assert bool(((dropped > 0.3) & (dropped < 0.7)).all())  # no byte of a drawn word is special


def test_same_seed_same_mask() -> None:
    layer, outs = ByteDropout(0.5), []
    for _ in range(2):
        torch.manual_seed(3)
        outs.append(layer(torch.ones(3, 7)))
    assert torch.equal(*outs)
    assert not torch.equal(outs[0], layer(torch.ones(3, 7)))


def test_nothing_is_dropped_in_evaluation_or_at_probability_zero() -> None:
    values = torch.randn(4, 5)
    assert torch.equal(ByteDropout(0.5).eval()(values), values)
    assert torch.equal(ByteDropout(0.0)(values), values)


def test_gradient_flows_through_kept_units_only() -> None:
    torch.manual_seed(0)
    values = torch.ones(50, requires_grad=True)
    out = ByteDropout(0.5)(values)
    out.sum().backward()
    assert values.grad is not None
    assert torch.equal(values.grad == 0, out == 0)
