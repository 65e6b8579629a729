"""Contrast within a batch, against plain loops."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import normalize

from ronid.losses.contrastive import neighbour_mask, supervised_contrastive_loss


def units(rows: int, d: int = 5, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return normalize(torch.randn(rows, d, generator=generator, dtype=torch.float64), dim=1)


def naive_loss(s: Tensor, positives: list[list[bool]], tau: float) -> float:
    losses, b = [], len(s)
    for i in range(b):
        total = sum(math.exp(float(s[i] @ s[a]) / tau) for a in range(b) if a != i)
        terms = [
            math.log(math.exp(float(s[i] @ s[p]) / tau) / total)
            for p in range(b)
            if p != i and positives[i][p]
        ]
        if terms:
            losses.append(-sum(terms) / len(terms))
    return sum(losses) / len(losses) if losses else 0.0


@given(labels=st.lists(st.integers(-1, 3), min_size=1, max_size=10), seed=st.integers(0, 1000))
def test_loss_of_labels_equals_a_loop(labels: list[int], seed: int) -> None:
    s = units(len(labels), seed=seed)
    positives = [[a == b and a >= 0 for b in labels] for a in labels]
    loss = supervised_contrastive_loss(s, torch.tensor(labels), 0.3)
    assert float(loss) == pytest.approx(naive_loss(s, positives, 0.3))
    assert float(loss) >= 0


@given(b=st.integers(1, 8), seed=st.integers(0, 1000))
def test_loss_of_a_mask_equals_a_loop(b: int, seed: int) -> None:
    s = units(b, seed=seed)
    mask = torch.rand(b, b, generator=torch.Generator().manual_seed(seed)) < 0.4
    loss = supervised_contrastive_loss(s, mask, 0.07)
    assert float(loss) == pytest.approx(naive_loss(s, mask.tolist(), 0.07))


@given(labels=st.lists(st.integers(-1, 3), min_size=1, max_size=10), seed=st.integers(0, 1000))
def test_loss_per_pair_equals_a_loop(labels: list[int], seed: int) -> None:
    s, tau = units(len(labels), seed=seed), 0.3
    terms = []
    for i, one in enumerate(labels):
        total = sum(math.exp(float(s[i] @ a) / tau) for j, a in enumerate(s) if j != i)
        terms += [
            math.log(total) - float(s[i] @ s[j]) / tau
            for j, other in enumerate(labels)
            if j != i and one == other >= 0
        ]
    loss = supervised_contrastive_loss(s, torch.tensor(labels), tau, per_pair=True)
    assert float(loss) == pytest.approx(sum(terms) / len(terms) if terms else 0.0)


def test_golden_loss_per_pair() -> None:
    s = torch.tensor([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    labels = torch.tensor([0, 0, 0, 1, 1])
    one, two = math.log(2 + 2 * math.exp(-2)), math.log(1 + 3 * math.exp(-2))
    loss = supervised_contrastive_loss(s, labels, 0.5, per_pair=True)
    assert float(loss) == pytest.approx((6 * one + 2 * two) / 8)
    per_anchor = supervised_contrastive_loss(s, labels, 0.5)
    assert float(per_anchor) == pytest.approx((3 * one + 2 * two) / 5)


def test_golden_loss() -> None:
    s = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    loss = supervised_contrastive_loss(s, torch.tensor([0, 0, 1]), 0.5)
    assert float(loss) == pytest.approx(math.log(1 + math.exp(-2)))


def test_no_positives_cost_nothing_but_keep_the_graph() -> None:
    s = units(3).requires_grad_()
    loss = supervised_contrastive_loss(s, torch.tensor([-1, -1, 0]), 0.07)
    loss.backward()
    assert loss.item() == 0
    assert s.grad is not None
    assert (s.grad == 0).all()
    empty = torch.empty(0, 5, requires_grad=True)
    assert supervised_contrastive_loss(empty, torch.empty(0, 0), 0.07).item() == 0


def test_a_mask_of_another_size_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\(3, 2\)"):
        supervised_contrastive_loss(units(3), torch.zeros(3, 2), 0.07)


def test_gradient_is_that_of_finite_differences() -> None:
    s, mask = units(5).requires_grad_(), torch.eye(5).roll(1, 0).bool()
    assert torch.autograd.gradcheck(lambda x: supervised_contrastive_loss(x, mask, 0.3), s)
    labels = torch.tensor([0, 0, 1, -1, 1])
    assert torch.autograd.gradcheck(lambda x: supervised_contrastive_loss(x, labels, 0.3), s)


def test_gradients_stay_finite_at_small_temperature() -> None:
    s = units(6).float().requires_grad_()
    supervised_contrastive_loss(s, torch.tensor([0, 0, 1, 1, 2, 2]), 0.005).backward()
    assert s.grad is not None
    assert s.grad.isfinite().all()


@given(seed=st.integers(0, 10_000), b=st.integers(1, 12), m=st.integers(1, 5))
def test_neighbour_mask_equals_a_loop(seed: int, b: int, m: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    n = 15
    rows = torch.randint(n, (b,), generator=generator)  # with repeats
    neighbours = torch.randint(n, (n, m), generator=generator)
    targets = torch.randint(-1, 3, (n,), generator=generator)
    mask = neighbour_mask(rows, neighbours, targets)
    for i in range(b):
        for j in range(b):
            a, c = int(rows[i]), int(rows[j])
            same_class = targets[a] == targets[c] and targets[a] >= 0
            assert bool(mask[i, j]) == (a == c or c in neighbours[a].tolist() or bool(same_class))


@given(
    rows=st.lists(st.sampled_from([0, 2, 3, 7]), min_size=1, max_size=12),
    near=st.lists(st.lists(st.integers(0, 7), min_size=3, max_size=3), min_size=8, max_size=8),
)
def test_rows_that_come_often_are_positives_wherever_they_stand(
    rows: list[int], near: list[list[int]]
) -> None:
    mask = neighbour_mask(torch.tensor(rows), torch.tensor(near), torch.full((8,), -1))
    assert mask.tolist() == [[a == c or c in near[a] for c in rows] for a in rows]


def test_mask_of_no_rows_is_empty() -> None:
    mask = neighbour_mask(
        torch.empty(0, dtype=torch.int64), torch.zeros(4, 2).long(), torch.zeros(4)
    )
    assert mask.shape == (0, 0)


def test_golden_mask() -> None:
    neighbours = torch.tensor([[1], [2], [0], [1]])
    mask = neighbour_mask(torch.tensor([0, 1, 3]), neighbours, torch.tensor([0, -1, -1, 0]))
    assert mask.tolist() == [[True, True, True], [False, True, False], [True, True, True]]
