"""The stacked auto-encoder: shapes, first weights, learning, and dead units."""

import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from ronid.encode.autoencoder import CodeHead, Decoder, live_units
from ronid.errors import UsageError


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


def widths(module: nn.Module) -> list[tuple[int, int]]:
    return [(m.in_features, m.out_features) for m in module.modules() if isinstance(m, nn.Linear)]


def low_rank(rows: int = 64, dim: int = 20, rank: int = 2) -> Tensor:
    return torch.rand(rows, rank) @ torch.rand(rank, dim)


def test_default_widths_are_the_published_ones() -> None:
    head, decoder = CodeHead(2_000), Decoder(2_000)
    assert widths(head) == [(2_000, 500), (500, 500), (500, 2_000), (2_000, 10)]
    assert widths(decoder) == [(10, 2_000), (2_000, 500), (500, 500), (500, 2_000)]
    assert head.code_dim == 10


@pytest.mark.parametrize("inner", [(3,), (8, 3), (8, 16, 3)])
def test_codes_and_what_is_rebuilt_have_the_widths_asked_for(inner: tuple[int, ...]) -> None:
    head, decoder = CodeHead(20, inner), Decoder(20, inner)
    codes = head(low_rank())
    assert codes.shape == (64, head.code_dim) == (64, 3)
    assert decoder(codes).shape == (64, 20)


def test_networks_equal_their_formula() -> None:
    head, decoder, points = CodeHead(6, (5, 4)), Decoder(6, (5, 4)), torch.randn(9, 6)
    for module in (head, decoder):
        for name, weight in module.named_parameters():
            if name.endswith("bias"):
                nn.init.normal_(weight)
    a, b = (m for m in head.modules() if isinstance(m, nn.Linear))
    c, d = (m for m in decoder.modules() if isinstance(m, nn.Linear))
    hidden = (points @ a.weight.T + a.bias).clamp(min=0)
    codes = (hidden @ b.weight.T + b.bias).clamp(min=0)
    torch.testing.assert_close(head(points), codes)
    rebuilt = (codes @ c.weight.T + c.bias).clamp(min=0) @ d.weight.T + d.bias
    torch.testing.assert_close(decoder(codes), rebuilt)


def test_a_linear_code_is_what_the_other_cuts_at_zero() -> None:
    linear, cut = CodeHead(6, (5, 4), linear=True), CodeHead(6, (5, 4))
    cut.load_state_dict(linear.state_dict())
    codes = linear(torch.randn(50, 6, generator=torch.Generator().manual_seed(3)))
    assert (codes < 0).any()
    assert torch.equal(
        cut(torch.randn(50, 6, generator=torch.Generator().manual_seed(3))), codes.relu()
    )


def test_code_is_never_negative_but_what_is_rebuilt_may_be() -> None:
    codes = CodeHead(20, (30, 10))(torch.randn(200, 20))
    assert codes.min() == 0
    assert codes.max() > 0
    assert Decoder(20, (30, 10))(codes).min() < 0


@pytest.mark.parametrize("make", [CodeHead, Decoder])
def test_first_weights_are_glorot_uniform_and_biases_zero(
    make: type[CodeHead] | type[Decoder],
) -> None:
    for layer in make(400, (300, 100)).layers:
        assert isinstance(layer, nn.Linear)
        bound = math.sqrt(6 / (layer.in_features + layer.out_features))
        weight = layer.weight.detach()
        assert 0.99 * bound < weight.abs().max() <= bound
        assert weight.mean().abs() < 0.02 * bound
        assert weight.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.02)
        assert not layer.bias.any()


def test_first_weights_follow_the_seed() -> None:
    torch.manual_seed(1)
    one = CodeHead(20, (8, 3))
    torch.manual_seed(1)
    same, other = CodeHead(20, (8, 3)), CodeHead(20, (8, 3))
    points = low_rank()
    assert torch.equal(one(points), same(points))
    assert not torch.equal(one(points), other(points))


def test_training_rebuilds_low_rank_vectors_better_than_their_mean() -> None:
    points = low_rank()
    head, decoder = CodeHead(20, (32, 8)), Decoder(20, (32, 8))
    optimiser = torch.optim.Adam([*head.parameters(), *decoder.parameters()], lr=1e-2)
    first = functional.mse_loss(decoder(head(points)), points).item()
    for _ in range(200):
        optimiser.zero_grad()
        loss = functional.mse_loss(decoder(head(points)), points)
        loss.backward()
        optimiser.step()
    assert loss.item() < 0.05 * first
    assert loss.item() < 0.05 * points.var(dim=0, correction=0).mean()
    assert live_units(head(points)) > 0


def test_every_weight_gets_a_gradient() -> None:
    head, decoder = CodeHead(20, (32, 8)), Decoder(20, (32, 8))
    decoder(head(low_rank())).square().sum().backward()
    for weight in [*head.parameters(), *decoder.parameters()]:
        assert weight.grad is not None
        assert weight.grad.any()


def test_units_are_live_if_any_row_uses_them() -> None:
    codes = torch.zeros(5, 4)
    assert live_units(codes) == 0
    codes[3, 1] = 1e-30
    codes[:, 2] = 2.0
    assert live_units(codes) == 2
    assert live_units(codes[:0]) == 0


def test_dead_units_of_a_network_are_seen() -> None:
    head, points = CodeHead(20, (32, 8)), low_rank()
    last = head.layers[-1]
    assert isinstance(last, nn.Linear)
    with torch.no_grad():
        last.bias[:3] = -1e3
        last.bias[3:] = 1e3
    assert live_units(head(points)) == 5


@pytest.mark.parametrize("inner", [(), (8, 0), (-1, 3)])
def test_widths_that_make_no_network_are_refused(inner: tuple[int, ...]) -> None:
    for make in (CodeHead, Decoder):
        with pytest.raises(UsageError, match="widths of at least 1"):
            make(20, inner)


def test_forward_reads_nothing_back_from_the_device() -> None:
    # Values on the meta device do not exist, so asking for one fails.
    head, decoder = CodeHead(20, (8, 3)).to("meta"), Decoder(20, (8, 3)).to("meta")
    loss = decoder(head(torch.empty(4, 20, device="meta"))).square().mean()
    loss.backward()
    assert loss.device.type == "meta"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_a_recorded_pass_equals_a_plain_one() -> None:
    head, decoder = CodeHead(20, (8, 3)).cuda(), Decoder(20, (8, 3)).cuda()
    held, graph = torch.rand(4, 20, device="cuda"), torch.cuda.CUDAGraph()
    with torch.no_grad():
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            decoder(head(held))
        torch.cuda.current_stream().wait_stream(side)
        with torch.cuda.graph(graph):
            out = decoder(head(held))
        held.copy_(torch.rand(4, 20, device="cuda"))
        graph.replay()
        torch.testing.assert_close(out, decoder(head(held)))
