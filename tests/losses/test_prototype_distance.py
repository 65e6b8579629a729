"""Soft distances to prototypes, against plain loops."""

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.functional import normalize

from ronid.losses.prototype_distance import soft_cosine_loss, soft_distance_loss

Table = list[list[float]]
sizes = {"b": st.integers(1, 7), "k": st.integers(1, 5), "seed": st.integers(0, 1000)}
both = pytest.mark.parametrize("loss", [soft_distance_loss, soft_cosine_loss])
Loss = Callable[..., Tensor]


def noise(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def cosine(a: list[float], b: list[float]) -> float:
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    return dot / math.hypot(*a) / math.hypot(*b)


def naive(
    features: Table,
    prototypes: Table,
    temperature: float,
    distance: Callable[[list[float], list[float]], float],
    weights: list[float],
) -> float:
    total = 0.0
    for z, weight in zip(features, weights, strict=True):
        shares = [math.exp(cosine(z, mu) / temperature) for mu in prototypes]
        gaps = [distance(z, mu) for mu in prototypes]
        mean = sum(s * g for s, g in zip(shares, gaps, strict=True)) / sum(shares)
        total += weight * mean
    return total / len(features)


@given(temperature=st.sampled_from([0.07, 0.5, 3.0]), **sizes)
def test_losses_equal_loops(b: int, k: int, seed: int, temperature: float) -> None:
    z, mu, g = noise(b, 3, seed=seed), noise(k, 3, seed=seed + 1), noise(b, seed=seed).abs()
    tables = z.tolist(), mu.tolist(), temperature
    far = naive(*tables, math.dist, [1.0] * b)
    assert float(soft_distance_loss(z, mu, temperature)) == pytest.approx(far)
    wide = naive(*tables, lambda a, c: 1 - cosine(a, c), g.tolist())
    assert float(soft_cosine_loss(z, mu, temperature, g)) == pytest.approx(wide)


@given(factor=st.floats(0.1, 10), **sizes)
def test_one_grows_with_its_space_and_the_other_is_blind_to_length(
    b: int, k: int, seed: int, factor: float
) -> None:
    z, mu = noise(b, 3, seed=seed), noise(k, 3, seed=seed + 1)
    far, wide = soft_distance_loss(z, mu, 0.2), soft_cosine_loss(z, mu, 0.2)
    scaled = soft_distance_loss(factor * z, factor * mu, 0.2)
    assert float(scaled) == pytest.approx(factor * float(far))
    assert float(soft_cosine_loss(factor * z, mu, 0.2)) == pytest.approx(float(wide))
    gaps = torch.cdist(z, mu)
    assert gaps.amin(1).mean() - 1e-12 <= far <= gaps.amax(1).mean() + 1e-12
    assert 0 <= wide <= 2


@both
@given(
    order=st.permutations(range(6)), prototypes=st.permutations(range(4)), seed=st.integers(0, 99)
)
def test_order_and_rotation_do_not_matter(
    loss: Loss, order: list[int], prototypes: list[int], seed: int
) -> None:
    z, mu = noise(6, 3, seed=seed), noise(4, 3, seed=seed + 1)
    turn = torch.linalg.qr(noise(3, 3, seed=seed)).Q
    mixed = loss(z[order] @ turn, mu[prototypes] @ turn, 0.07)
    assert float(mixed) == pytest.approx(float(loss(z, mu, 0.07)))


def test_golden_values() -> None:
    z, mu = torch.tensor([[2.0, 0.0]]), torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    share = 1 / (1 + math.exp(-2))  # of the first, at temperature 1/2
    far = share * 1 + (1 - share) * math.sqrt(5)
    assert float(soft_distance_loss(z, mu, 0.5)) == pytest.approx(far)
    assert float(soft_cosine_loss(z, mu, 0.5)) == pytest.approx(1 - share)


def test_weights_of_zero_count_in_the_mean_only() -> None:
    z, mu = noise(4, 3), noise(2, 3, seed=1)
    some = soft_cosine_loss(z, mu, 0.1, torch.tensor([1.0, 1.0, 0.0, 0.0]))
    assert float(some) == pytest.approx(float(soft_cosine_loss(z[:2], mu, 0.1)) / 2)
    assert soft_cosine_loss(z, mu, 0.1, torch.zeros(4)).item() == 0


def test_weights_of_another_size_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\(3,\), not \(4,\)"):
        soft_cosine_loss(noise(4, 3), noise(2, 3), 0.1, torch.ones(3))


@both
def test_prototypes_get_no_gradient_and_features_the_right_one(loss: Loss) -> None:
    z, mu = noise(5, 3).requires_grad_(), noise(4, 3, seed=1).requires_grad_()
    loss(z, mu, 0.3).backward()
    assert mu.grad is None
    assert torch.autograd.gradcheck(lambda x: loss(x, mu.detach(), 0.3), (z,))


@both
def test_a_step_downhill_leads_to_the_prototype_in_sight(loss: Loss) -> None:
    z = torch.tensor([[0.9, 0.4]], requires_grad=True)
    mu = torch.tensor([[1.0, 0.0], [-1.0, 0.0]])
    loss(z, mu, 0.07).backward()
    assert z.grad is not None
    moved = z.detach() - 0.1 * normalize(z.grad, dim=1)
    assert torch.dist(moved, mu[0]) < torch.dist(z.detach(), mu[0])


@both
@pytest.mark.parametrize(
    ("features", "prototypes"),
    [
        pytest.param(torch.eye(4), torch.eye(4), id="features on prototypes"),
        pytest.param(torch.ones(3, 4), torch.ones(2, 4), id="all the same"),
        pytest.param(torch.zeros(3, 4), torch.zeros(2, 4), id="zero vectors"),
        pytest.param(torch.full((3, 4), 1e4), torch.full((2, 4), 1e4), id="far from the origin"),
        pytest.param(torch.eye(4) * 1e-20, torch.eye(4) * 2e-20, id="tiny gaps"),
        pytest.param(torch.empty(0, 4), torch.eye(4), id="no features"),
    ],
)
def test_values_and_gradients_are_finite(loss: Loss, features: Tensor, prototypes: Tensor) -> None:
    z = features.clone().requires_grad_()
    value = loss(z, prototypes, 0.07)
    (gradient,) = torch.autograd.grad(value, [z])
    assert value.isfinite()
    assert gradient.isfinite().all()


@both
def test_half_precision_is_computed_in_single(loss: Loss) -> None:
    z, mu = noise(40, 8).bfloat16(), noise(30, 8, seed=1).bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value = loss(z, mu, 0.07)
    assert value.dtype == torch.float32
    assert float(value) == pytest.approx(float(loss(z.float(), mu.float(), 0.07)), rel=0.02)


@both
def test_nothing_is_read_back_from_the_device(loss: Loss) -> None:
    # A fake tensor has no values: reading one, or picking by a mask, raises.
    with FakeTensorMode():
        z = torch.randn(6, 4, requires_grad=True)
        loss(z, torch.randn(3, 4), 0.07).backward()
