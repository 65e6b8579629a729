"""Prototype losses against plain loops, and where their gradients go."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import normalize

from ronid.losses.prototype import (
    inter_cluster_loss,
    intra_cluster_loss,
    prototype_cross_entropy,
    temperature_of,
    update_prototypes,
)


def units(rows: int, d: int = 5, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return normalize(torch.randn(rows, d, generator=generator, dtype=torch.float64), dim=1)


def naive_update(mu: Tensor, s: Tensor, labels: list[int], momentum: float) -> Tensor:
    """For each class, momentum once per item on the old prototype, the rest on the mean."""
    rows = []
    for c in range(len(mu)):
        prototype = mu[c]
        items = [s[i] for i, label in enumerate(labels) if label == c]
        if items:
            weight = momentum ** len(items)
            moved = weight * prototype + (1 - weight) * sum(items) / len(items)
            prototype = moved / moved.norm()
        rows.append(prototype)
    return torch.stack(rows)


def naive_intra(s: Tensor, mu: Tensor, labels: list[int], tau: float) -> float:
    total = 0.0
    for vector, label in zip(s, labels, strict=True):
        exponentials = [math.exp(float(vector @ m) / tau) for m in mu]
        total -= math.log(exponentials[label] / sum(exponentials))
    return total / len(s)


def naive_inter(mu: Tensor, tau: float) -> float:
    k, total = len(mu), 0.0
    for i in range(k):
        others = [
            math.exp(float(mu[i] @ mu[j] / mu[i].norm() / mu[j].norm()) / tau)
            for j in range(k)
            if j != i
        ]
        total += math.log(sum(others) / (k - 1))
    return total / k


LABELS = [0, 2, 2, 0, 2, 3]


def test_update_equals_a_loop_over_classes() -> None:
    mu, s = units(5), units(6, seed=1)
    updated = update_prototypes(mu, s, torch.tensor(LABELS), 0.9)
    torch.testing.assert_close(updated, naive_update(mu, s, LABELS, 0.9))


def test_one_item_per_class_is_the_equation_as_printed() -> None:
    mu, s = units(3), units(3, seed=1)
    updated = update_prototypes(mu, s, torch.tensor([2, 0, 1]), 0.99)
    torch.testing.assert_close(updated, normalize(0.99 * mu + 0.01 * s[[1, 2, 0]], dim=1))


def test_equal_items_move_as_far_as_one_by_one() -> None:
    mu, s = units(1), units(1, seed=1)
    at_once = update_prototypes(mu, s.expand(4, -1), torch.zeros(4, dtype=torch.int64), 0.9)
    unnormalised = mu
    for _ in range(4):
        unnormalised = 0.9 * unnormalised + 0.1 * s
    torch.testing.assert_close(at_once, normalize(unnormalised, dim=1))


def test_per_batch_update_takes_one_step() -> None:
    mu, s = units(2), units(3, seed=1)
    updated = update_prototypes(mu, s, torch.tensor([1, 1, 1]), 0.9, per_item=False)
    torch.testing.assert_close(updated[1:], normalize(0.9 * mu[1:] + 0.1 * s.mean(0), dim=1))
    assert updated[0].equal(mu[0])


@given(
    labels=st.lists(st.integers(0, 4), min_size=1, max_size=12),
    momentum=st.floats(0.5, 0.999),
    seed=st.integers(0, 1000),
)
def test_update_ignores_order_and_gives_unit_vectors(
    labels: list[int], momentum: float, seed: int
) -> None:
    mu, s, y = units(5), units(len(labels), seed=seed), torch.tensor(labels)
    order = torch.randperm(len(labels))
    updated = update_prototypes(mu, s, y, momentum)
    torch.testing.assert_close(updated, update_prototypes(mu, s[order], y[order], momentum))
    torch.testing.assert_close(updated.norm(dim=1), torch.ones(5, dtype=torch.float64))
    absent = [c for c in range(5) if c not in labels]
    assert updated[absent].equal(mu[absent])


def test_golden_update() -> None:
    mu = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    updated = update_prototypes(mu, torch.tensor([[0.0, 1.0]]), torch.tensor([0]), 0.6)
    torch.testing.assert_close(updated, torch.tensor([[0.8320503, 0.5547002], [0.0, 1.0]]))


def test_update_keeps_the_dtype_of_the_prototypes() -> None:
    updated = update_prototypes(units(2).float(), units(3).half(), torch.tensor([0, 0, 1]), 0.9)
    assert updated.dtype == torch.float32


def test_empty_batch_leaves_prototypes() -> None:
    mu = units(3)
    assert update_prototypes(mu, mu[:0], torch.empty(0, dtype=torch.int64), 0.9).equal(mu)


def test_update_gradient_reaches_embeddings_only() -> None:
    mu, s = units(5).requires_grad_(), units(6, seed=1).requires_grad_()
    update_prototypes(mu, s, torch.tensor(LABELS), 0.9)[:, 0].sum().backward()
    assert mu.grad is None
    assert s.grad is not None
    assert (s.grad.norm(dim=1) > 0).all()


def test_intra_equals_a_loop() -> None:
    s, mu = units(6), units(4, seed=1)
    loss = intra_cluster_loss(s, mu, torch.tensor(LABELS), 0.3)
    assert float(loss) == pytest.approx(naive_intra(s, mu, LABELS, 0.3))


def test_intra_golden() -> None:
    loss = intra_cluster_loss(torch.eye(2), torch.eye(2), torch.tensor([0, 1]), 0.5)
    assert float(loss) == pytest.approx(math.log(1 + math.exp(-2)))


def test_empty_batches_cost_nothing() -> None:
    s = torch.empty(0, 5, requires_grad=True)
    loss = intra_cluster_loss(s, units(4).float(), torch.empty(0, dtype=torch.int64), 0.07)
    loss.backward()
    assert loss.item() == 0


def test_intra_gives_no_gradient_to_prototypes() -> None:
    s, mu = units(6).requires_grad_(), units(4, seed=1).requires_grad_()
    intra_cluster_loss(s, mu, torch.tensor(LABELS), 0.07).backward()
    assert mu.grad is None
    assert s.grad is not None
    assert s.grad.abs().sum() > 0


def test_inter_equals_a_loop_for_any_length() -> None:
    mu = units(6) * torch.tensor([[1.0], [2.0], [0.5], [1.0], [3.0], [1.0]])
    assert float(inter_cluster_loss(mu, 0.2)) == pytest.approx(naive_inter(mu, 0.2))


def test_inter_golden() -> None:
    assert float(inter_cluster_loss(torch.eye(4), 0.07)) == pytest.approx(0, abs=1e-6)
    opposite = torch.tensor([[1.0, 0.0], [-1.0, 0.0]])
    assert float(inter_cluster_loss(opposite, 0.5)) == pytest.approx(-2)


@given(k=st.integers(2, 8), seed=st.integers(0, 1000))
def test_inter_is_bounded_and_symmetric(k: int, seed: int) -> None:
    mu = units(k, seed=seed)
    loss = float(inter_cluster_loss(mu, 0.07))
    assert -1 / 0.07 <= loss <= 1 / 0.07
    assert loss == pytest.approx(float(inter_cluster_loss(mu[torch.randperm(k)], 0.07)))


def test_one_prototype_has_nothing_to_flee() -> None:
    mu = units(1).requires_grad_()
    loss = inter_cluster_loss(mu, 0.07)
    loss.backward()
    assert loss.item() == 0


def test_inter_gradient_reaches_embeddings_through_the_update() -> None:
    mu, s = units(5), units(6, seed=1).requires_grad_()
    updated = update_prototypes(mu, s, torch.tensor(LABELS), 0.9)
    inter_cluster_loss(updated, 0.07).backward()
    assert s.grad is not None
    assert (s.grad.norm(dim=1) > 0).all()


def test_a_step_down_inter_moves_prototypes_apart() -> None:
    mu, s, labels = units(4), units(6, seed=1), torch.tensor(LABELS)
    s.requires_grad_()
    before = inter_cluster_loss(update_prototypes(mu, s, labels, 0.9), 0.07)
    (gradient,) = torch.autograd.grad(before, s)
    after = inter_cluster_loss(update_prototypes(mu, s - 1e-3 * gradient, labels, 0.9), 0.07)
    assert after < before


def test_half_precision_and_autocast_do_not_overflow() -> None:
    mu = units(20).bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inter = inter_cluster_loss(units(20).float(), 0.07)
        intra = intra_cluster_loss(mu, mu, torch.arange(20), 0.001)
    assert inter.dtype == intra.dtype == torch.float32
    assert float(inter) == pytest.approx(naive_inter(units(20), 0.07), rel=1e-5)
    assert intra.isfinite()


def test_cross_entropy_is_intra_on_true_labels() -> None:
    s, mu = units(6), units(4, seed=1)
    loss = prototype_cross_entropy(s, mu, torch.tensor(LABELS), 0.07)
    assert float(loss) == pytest.approx(naive_intra(s, mu, LABELS, 0.07))


def test_gradients_are_those_of_finite_differences() -> None:
    mu, s, labels = units(4), units(6, seed=1).requires_grad_(), torch.tensor(LABELS)
    check = torch.autograd.gradcheck
    assert check(lambda x: update_prototypes(mu, x, labels, 0.9), s)
    assert check(lambda x: intra_cluster_loss(x, mu, labels, 0.3), s)
    assert check(lambda x: prototype_cross_entropy(x, mu, labels, 0.3), s)
    assert check(lambda x: inter_cluster_loss(x, 0.3), s)
    assert check(lambda x: inter_cluster_loss(update_prototypes(mu, x, labels, 0.9), 0.3), s)


@given(k=st.integers(2, 300), certainty=st.floats(0.6, 0.999))
def test_temperature_gives_the_best_place_its_certainty(k: int, certainty: float) -> None:
    simplex = torch.eye(k, dtype=torch.float64) - 1 / k
    prototypes = normalize(simplex, dim=1)  # as far apart as can be
    logits = prototypes @ prototypes[0] / temperature_of(k, certainty)
    assert float(logits.softmax(0)[0]) == pytest.approx(certainty, rel=1e-6)


def test_temperature_of_a_known_case() -> None:
    assert temperature_of(20, 0.99) == pytest.approx(20 / 19 / math.log(19 * 99))
    assert temperature_of(150, 0.99) < temperature_of(20, 0.99)


@pytest.mark.parametrize(("k", "certainty"), [(1, 0.9), (4, 0.25), (4, 1.0)])
def test_impossible_certainty_is_refused(k: int, certainty: float) -> None:
    with pytest.raises(ValueError, match="certainty"):
        temperature_of(k, certainty)
