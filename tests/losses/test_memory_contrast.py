"""Contrast with a memory, against a plain loop."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.functional import normalize

from ronid.losses.memory_contrast import memory_contrast_loss

sizes = {"b": st.integers(1, 6), "n": st.integers(1, 9), "seed": st.integers(0, 1000)}


def units(n: int, d: int = 3, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return normalize(torch.randn(n, d, generator=generator, dtype=torch.float64), dim=1)


def some_weights(b: int, n: int, seed: int = 0) -> Tensor:
    """Weights of which about a third are 0."""
    generator = torch.Generator().manual_seed(seed)
    return (torch.rand(b, n, generator=generator, dtype=torch.float64) * 1.5 - 0.5).clamp(0, 1)


def naive(z: list[list[float]], m: list[list[float]], w: list[list[float]], tau: float) -> float:
    losses = []
    for query, row in zip(z, w, strict=True):
        if max(row) <= 0:
            continue
        kernel = [math.exp(sum(a * b for a, b in zip(query, k, strict=True)) / tau) for k in m]
        joined = sum(weight * value for weight, value in zip(row, kernel, strict=True))
        losses.append(-math.log(joined / sum(kernel)))
    return sum(losses) / max(1, len(losses))


@given(tau=st.sampled_from([0.07, 0.2, 1.0]), **sizes)
def test_loss_equals_a_loop(b: int, n: int, seed: int, tau: float) -> None:
    z, m, w = units(b, seed=seed), units(n, seed=seed + 1), some_weights(b, n, seed)
    expected = naive(z.tolist(), m.tolist(), w.tolist(), tau)
    assert float(memory_contrast_loss(z, m, w, tau)) == pytest.approx(expected, abs=1e-12)


@given(order=st.permutations(range(7)), seed=st.integers(0, 99))
def test_order_of_the_memory_does_not_matter(order: list[int], seed: int) -> None:
    z, m, w = units(4, seed=seed), units(7, seed=seed + 1), some_weights(4, 7, seed)
    mixed = memory_contrast_loss(z, m[order], w[:, order], 0.2)
    assert float(mixed) == pytest.approx(float(memory_contrast_loss(z, m, w, 0.2)))


@given(more=st.floats(0, 1), **sizes)
def test_loss_is_never_negative_and_falls_with_every_weight(
    b: int, n: int, seed: int, more: float
) -> None:
    z, m = units(b, seed=seed), units(n, seed=seed + 1)
    w = some_weights(b, n, seed).clamp(min=1e-3)
    heavier = w + more * (1 - w)
    loss, lower = (float(memory_contrast_loss(z, m, x, 0.2)) for x in (w, heavier))
    assert loss + 1e-12 >= lower >= -1e-12
    assert float(memory_contrast_loss(z, m, torch.ones(b, n), 0.2)) == pytest.approx(0, abs=1e-12)


def test_golden_value() -> None:
    z, m = torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    w = torch.tensor([[1.0, 0.5, 0.0]])
    expected = -math.log((math.e + 0.5) / (math.e + 1 + 1 / math.e))
    assert float(memory_contrast_loss(z, m, w, 1.0)) == pytest.approx(expected)


def test_utterances_that_are_joined_with_nothing_are_left_out() -> None:
    z, m, w = units(3), units(5, seed=1), some_weights(3, 5)
    w[1] = 0
    z.requires_grad_()
    loss = memory_contrast_loss(z, m, w, 0.2)
    loss.backward()
    assert z.grad is not None
    assert z.grad.isfinite().all()
    assert (z.grad[1] == 0).all()
    others = memory_contrast_loss(z.detach()[::2], m, w[::2], 0.2)
    assert loss.item() == pytest.approx(float(others))
    assert memory_contrast_loss(z, m, torch.zeros(3, 5), 0.2).item() == 0


def test_only_the_queries_get_a_gradient() -> None:
    z, m, w = units(4).requires_grad_(), units(5, seed=1).requires_grad_(), some_weights(4, 5)
    memory_contrast_loss(z, m, w.requires_grad_(), 0.2).backward()
    assert m.grad is None
    assert w.grad is None
    fixed = w.detach()
    assert torch.autograd.gradcheck(lambda x: memory_contrast_loss(x, m.detach(), fixed, 0.2), (z,))


def test_small_temperatures_and_weights_stay_finite() -> None:
    z = torch.tensor([[1.0, 0.0]], requires_grad=True)
    m = torch.tensor([[1.0, 0.0], [-1.0, 0.0]])
    loss = memory_contrast_loss(z, m, torch.tensor([[0.0, 1e-30]]), 1e-3)
    loss.backward()
    assert loss.item() == pytest.approx(2000 + 30 * math.log(10))
    assert z.grad is not None
    assert z.grad.isfinite().all()


def test_weights_of_another_shape_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\(4, 4\), not \(4, 5\)"):
        memory_contrast_loss(units(4), units(5), torch.ones(4, 4), 0.2)


def test_nothing_is_read_back_from_the_device() -> None:
    # A fake tensor has no values: reading one, or picking by a mask, raises.
    with FakeTensorMode():
        z = torch.randn(6, 4, requires_grad=True)
        memory_contrast_loss(z, torch.randn(9, 4), torch.rand(6, 9), 0.2).backward()
