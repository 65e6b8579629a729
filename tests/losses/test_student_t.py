"""Soft assignment to centres and its sharpened target, against plain loops."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from ronid.losses.student_t import own_target_loss, self_training_loss, sharpened, student_t

Table = list[list[float]]
seeds = st.integers(0, 1000)
sizes = {"n": st.integers(1, 8), "k": st.integers(1, 5), "seed": seeds}


def noise(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def soft(n: int, k: int, seed: int = 0) -> Tensor:
    return (2 * noise(n, k, seed=seed)).softmax(dim=1)


def naive_student_t(points: Table, centres: Table) -> Table:
    rows = []
    for z in points:
        kernel = [1 / (1 + sum((a - c) ** 2 for a, c in zip(z, mu, strict=True))) for mu in centres]
        rows.append([value / sum(kernel) for value in kernel])
    return rows


def naive_sharpened(q: Table, shares: list[float] | None) -> Table:
    if shares is None:
        shares = [sum(column) for column in zip(*q, strict=True)]
    rows = []
    for row in q:
        weights = [value**2 / share for value, share in zip(row, shares, strict=True)]
        rows.append([weight / sum(weights) for weight in weights])
    return rows


def naive_divergence(q: Table, p: Table) -> float:
    total = 0.0
    for ours, theirs in zip(q, p, strict=True):
        for a, b in zip(ours, theirs, strict=True):
            total += b * math.log(b / a) if b > 0 else 0.0
    return total / len(q)


def close(found: Tensor, expected: Table) -> bool:
    return torch.allclose(found, torch.tensor(expected, dtype=found.dtype))


@given(d=st.integers(1, 4), **sizes)
def test_assignment_equals_a_loop(n: int, k: int, d: int, seed: int) -> None:
    points, centres = 3 * noise(n, d, seed=seed), 3 * noise(k, d, seed=seed + 1)
    expected = naive_student_t(points.tolist(), centres.tolist())
    assert close(student_t(points, centres), expected)


@given(shift=st.floats(-100, 100), **sizes)
def test_assignment_is_blind_to_a_shift_and_highest_at_the_nearest_centre(
    n: int, k: int, seed: int, shift: float
) -> None:
    points, centres = noise(n, 3, seed=seed), noise(k, 3, seed=seed + 1)
    q = student_t(points, centres)
    assert torch.allclose(q.sum(dim=1), torch.ones(n, dtype=q.dtype))
    assert (q > 0).all()
    assert torch.allclose(q, student_t(points + shift, centres + shift))
    assert torch.equal(q.argmax(dim=1), torch.cdist(points, centres).argmin(dim=1))


def test_golden_assignment() -> None:
    centres = torch.tensor([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    q = student_t(torch.tensor([[0.0, 0.0]]), centres)  # kernels 1, 1/2 and 1/3
    assert q[0].tolist() == pytest.approx([6 / 11, 3 / 11, 2 / 11])


def test_assignment_is_exact_far_from_the_origin() -> None:
    # 1e4 squared leaves single precision no room for the 1 of the kernel, 1e4 itself does.
    points, centres = (noise(40, 3) + 1e4).float(), (noise(30, 3, seed=1) + 1e4).float()
    expected = student_t(points.double(), centres.double()).float()
    assert torch.allclose(student_t(points, centres), expected, rtol=1e-5, atol=0)


def test_assignment_of_half_precision_is_computed_in_single() -> None:
    points, centres = noise(40, 8).bfloat16(), noise(30, 8, seed=1).bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        q = student_t(points, centres)
    assert q.dtype == torch.float32
    assert torch.equal(q, student_t(points.float(), centres.float()))


@given(**sizes)
def test_target_equals_a_loop(n: int, k: int, seed: int) -> None:
    q, shares = soft(n, k, seed), noise(k, seed=seed).exp()
    assert close(sharpened(q), naive_sharpened(q.tolist(), None))
    assert close(sharpened(q, shares), naive_sharpened(q.tolist(), shares.tolist()))


@given(factor=st.floats(1e-3, 1e3), **sizes)
def test_target_is_a_distribution_and_surer_where_clusters_are_equal(
    n: int, k: int, seed: int, factor: float
) -> None:
    q = soft(n, k, seed)
    p = sharpened(q)
    assert torch.allclose(p.sum(dim=1), torch.ones(n, dtype=p.dtype))
    assert torch.allclose(p, sharpened(q, factor * q.sum(dim=0)))
    equal = sharpened(q, torch.ones(k))
    assert torch.equal(equal.argmax(dim=1), q.argmax(dim=1))
    assert (equal.max(dim=1).values >= q.max(dim=1).values - 1e-12).all()


@given(cut=st.integers(0, 8), **sizes)
def test_batches_with_the_shares_of_the_set_give_the_targets_of_the_set(
    n: int, k: int, seed: int, cut: int
) -> None:
    q = soft(n, k, seed)
    shares = q.sum(dim=0)
    parts = torch.cat([sharpened(q[:cut], shares), sharpened(q[cut:], shares)])
    assert torch.allclose(parts, sharpened(q))


def test_golden_target() -> None:
    p = sharpened(torch.tensor([[0.8, 0.2], [0.4, 0.6]]))  # column sums 1.2 and 0.8
    assert p[0].tolist() == pytest.approx([32 / 35, 3 / 35])
    assert p[1].tolist() == pytest.approx([8 / 35, 27 / 35])


def test_target_carries_no_gradient() -> None:
    q = soft(4, 3).requires_grad_()
    shares = torch.ones(3, requires_grad=True)
    assert not sharpened(q).requires_grad
    assert not sharpened(q, shares).requires_grad


def test_centres_that_nobody_comes_near_leave_targets_finite() -> None:
    q = torch.tensor([[1.0, 0.0, 1e-30], [1.0, 0.0, 0.0]])
    for shares in (None, torch.tensor([2.0, 0.0, 0.0]), torch.zeros(3)):
        p = sharpened(q, shares)
        assert torch.allclose(p, torch.tensor([[1.0, 0.0, 0.0]] * 2))


def test_shares_of_another_size_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\(2,\), not \(3,\)"):
        sharpened(soft(4, 3), torch.ones(2))


@given(**sizes)
def test_loss_equals_a_loop(n: int, k: int, seed: int) -> None:
    q, p = soft(n, k, seed), soft(n, k, seed + 1)
    expected = naive_divergence(q.tolist(), p.tolist())
    assert float(self_training_loss(q, p)) == pytest.approx(expected, abs=1e-12)


@given(**sizes)
def test_loss_is_smallest_at_its_target(n: int, k: int, seed: int) -> None:
    q = soft(n, k, seed)
    assert float(self_training_loss(q, sharpened(q))) >= -1e-12
    assert float(self_training_loss(q, q)) == pytest.approx(0, abs=1e-12)


def test_golden_loss() -> None:
    q, p = torch.tensor([[0.5, 0.5], [0.25, 0.75]]), torch.tensor([[1.0, 0.0], [0.25, 0.75]])
    assert float(self_training_loss(q, p)) == pytest.approx(math.log(2) / 2)


def test_probabilities_that_vanished_leave_loss_and_gradient_finite() -> None:
    q = torch.tensor([[1.0, 0.0], [1.0, 0.0]], requires_grad=True)
    loss = self_training_loss(q, torch.tensor([[1.0, 0.0], [0.5, 0.5]]))
    loss.backward()
    assert loss.isfinite()
    assert q.grad is not None
    assert q.grad.isfinite().all()
    assert self_training_loss(q, sharpened(q)).item() == 0


def test_loss_gives_no_gradient_to_its_target() -> None:
    q, p = soft(4, 3).requires_grad_(), soft(4, 3, seed=1).requires_grad_()
    self_training_loss(q, p).backward()
    assert p.grad is None
    assert q.grad is not None
    assert torch.allclose(q.grad, -p.detach() / q.detach() / 4)


@given(order=st.permutations(range(6)), centres=st.permutations(range(4)), seed=seeds)
def test_order_of_points_and_centres_does_not_matter(
    order: list[int], centres: list[int], seed: int
) -> None:
    z, mu = noise(6, 3, seed=seed), noise(4, 3, seed=seed + 1)
    q, mixed = student_t(z, mu), student_t(z[order], mu[centres])
    assert torch.allclose(q[order][:, centres], mixed)
    assert torch.allclose(sharpened(q)[order][:, centres], sharpened(mixed))
    loss = self_training_loss(q, sharpened(q))
    assert float(self_training_loss(mixed, sharpened(mixed))) == pytest.approx(float(loss))


def test_gradient_is_that_of_finite_differences() -> None:
    points, centres = noise(5, 3).requires_grad_(), noise(4, 3, seed=1).requires_grad_()
    p = soft(5, 4)
    assert torch.autograd.gradcheck(
        lambda z, mu: self_training_loss(student_t(z, mu), p), (points, centres)
    )


def test_a_step_downhill_moves_points_to_their_centre() -> None:
    points, centres = torch.tensor([[0.4], [2.7]], requires_grad=True), torch.tensor([[0.0], [3.0]])
    q = student_t(points, centres)
    self_training_loss(q, sharpened(q)).backward()
    assert points.grad is not None
    assert points.grad[0] > 0
    assert points.grad[1] < 0


@given(**sizes)
def test_a_target_that_moves_along_has_the_same_value(n: int, k: int, seed: int) -> None:
    q = soft(n, k, seed)
    expected = float(self_training_loss(q, sharpened(q)))
    assert float(own_target_loss(q)) == pytest.approx(expected, abs=1e-12)


def test_gradient_through_the_target_is_that_of_finite_differences() -> None:
    points, centres = noise(5, 3).requires_grad_(), noise(4, 3, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda z, mu: own_target_loss(student_t(z, mu)), (points, centres)
    )


def test_a_target_that_moves_along_flattens_what_a_fixed_one_sharpens() -> None:
    logits = (0.1 * noise(8, 5)).requires_grad_()  # nearly uniform
    q = logits.softmax(dim=1)
    (fixed,) = torch.autograd.grad(self_training_loss(q, sharpened(q)), logits, retain_graph=True)
    (moving,) = torch.autograd.grad(own_target_loss(q), logits)
    assert torch.cosine_similarity(fixed.flatten(), moving.flatten(), dim=0) < -0.9


@pytest.mark.parametrize(
    ("points", "centres"),
    [
        pytest.param(torch.zeros(3, 4), torch.zeros(2, 4), id="zero vectors"),
        pytest.param(torch.ones(3, 4), torch.eye(4), id="identical points"),
        pytest.param(torch.eye(4), torch.eye(4), id="points on centres"),
        pytest.param(torch.full((3, 4), 1e12), torch.eye(4), id="far points"),
        pytest.param(torch.eye(4), torch.eye(4) * 1e15, id="far centres"),
        pytest.param(
            torch.zeros(3, 4),
            torch.cat([torch.zeros(1, 4), torch.full((1, 4), 4e18)]),
            id="one far",
        ),
        pytest.param(noise(3, 4).float() * 1e-20, noise(2, 4).float() * 1e-20, id="tiny gaps"),
        pytest.param(torch.empty(0, 4), torch.eye(4), id="no points"),
    ],
)
def test_values_and_gradients_are_finite(points: Tensor, centres: Tensor) -> None:
    z, mu = points.clone().requires_grad_(), centres.clone().requires_grad_()
    stale = torch.ones(len(z), len(mu)) / len(mu)
    # A target of this step, one that q has moved away from, and one that moves along.
    for loss_of in (
        lambda q: self_training_loss(q, sharpened(q)),
        lambda q: self_training_loss(q, stale),
        own_target_loss,
    ):
        loss = loss_of(student_t(z, mu))
        gradients = torch.autograd.grad(loss, [z, mu])
        assert loss.isfinite()
        assert all(gradient.isfinite().all() for gradient in gradients)


def test_nothing_is_read_back_from_the_device() -> None:
    # A fake tensor has no values: reading one, or picking by a mask, raises.
    with FakeTensorMode():
        points, centres = torch.randn(6, 4, requires_grad=True), torch.randn(3, 4)
        q = student_t(points, centres)
        (self_training_loss(q, sharpened(q, torch.ones(3))) + own_target_loss(q)).backward()
