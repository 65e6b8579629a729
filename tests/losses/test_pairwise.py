"""Losses of pairs, against plain loops."""

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from ronid.losses.pairwise import (
    adaptive_pair_loss,
    given_pair_loss,
    pair_divergence_loss,
    pair_similarities,
)

LEAST, MOST = 1e-10, 1 - 1e-7
HALFWAY = torch.tensor([[1.0, 0.0], [4.0, 3.0], [0.0, 1.0]])  # cosines 0.8, 0 and 0.6

classes = st.lists(st.integers(-1, 3), min_size=1, max_size=9)
seeds = st.integers(0, 1000)


def noise(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def random_pairs(b: int, seed: int) -> Tensor:
    upper = (noise(b, b, seed=seed) > 0).triu()
    return upper | upper.T


def naive_similarity(a: Tensor, c: Tensor) -> float:
    lengths = math.sqrt(sum(float(x) ** 2 for x in a)) * math.sqrt(sum(float(x) ** 2 for x in c))
    cosine = sum(float(x) * float(y) for x, y in zip(a, c, strict=True)) / lengths
    return min(max(cosine, LEAST), MOST)


def naive_adaptive(logits: Tensor, upper: float, lower: float, labels: list[int]) -> float:
    total, b = 0.0, len(logits)
    for i in range(b):
        for j in range(b):
            s = naive_similarity(logits[i], logits[j])
            positive, negative = s > upper, s < lower
            if labels[i] >= 0 and labels[j] >= 0:
                positive, negative = labels[i] == labels[j], labels[i] != labels[j]
            if positive:
                total -= math.log(s)
            if negative:
                total -= math.log(1 - s)
    return total / b**2


def naive_given(logits: Tensor, labels: list[int]) -> float:
    known = [i for i, label in enumerate(labels) if label >= 0]
    terms = []
    for i in known:
        for j in known:
            s = naive_similarity(logits[i], logits[j])
            terms.append(-math.log(s if labels[i] == labels[j] else 1 - s))
    return sum(terms) / len(terms) if terms else 0.0


def frozen_divergence(
    logits: Tensor, frozen: Tensor, similar: Tensor, margin: float, rows: list[int]
) -> Tensor:
    """The loss in loops, its targets taken from `frozen`; differentiable in `logits`."""
    p, targets, losses = logits.softmax(dim=1), frozen.softmax(dim=1), []
    for i in range(len(logits)):
        for j in range(len(logits)):
            if rows[i] == rows[j]:
                continue
            kl = sum(t * (t.log() - q.log()) for t, q in zip(targets[j], p[i], strict=True))
            losses.append(kl if similar[i, j] else (margin - kl).clamp(min=0))
    return torch.stack(losses).mean() if losses else logits.sum() * 0


def gradient(loss: Callable[[Tensor], Tensor], logits: Tensor) -> Tensor:
    logits = logits.clone().requires_grad_()
    value = loss(logits)
    value.backward()
    assert value.isfinite()
    assert logits.grad is not None
    return logits.grad


LOSSES: dict[str, Callable[[Tensor], Tensor]] = {
    "adaptive": lambda x: adaptive_pair_loss(x, 0.9, 0.5),
    "constrained": lambda x: adaptive_pair_loss(x, 0.9, 0.5, torch.arange(len(x)) % 3 - 1),
    "given": lambda x: given_pair_loss(x, torch.arange(len(x)) % 3 - 1),
    "similar": lambda x: pair_divergence_loss(x, torch.ones(len(x), len(x), dtype=torch.bool)),
    "dissimilar": lambda x: pair_divergence_loss(x, torch.zeros(len(x), len(x), dtype=torch.bool)),
}
every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())


@given(b=st.integers(1, 8), seed=seeds)
def test_similarities_equal_a_loop(b: int, seed: int) -> None:
    logits = noise(b, 3, seed=seed)
    expected = [[naive_similarity(a, c) for c in logits] for a in logits]
    assert torch.allclose(pair_similarities(logits), torch.tensor(expected, dtype=torch.float64))


@given(b=st.integers(1, 8), seed=seeds, stretch=st.floats(1e-3, 1e3))
def test_similarities_are_symmetric_and_blind_to_length(b: int, seed: int, stretch: float) -> None:
    logits = noise(b, 4, seed=seed).float()
    s = pair_similarities(logits)
    assert torch.allclose(s, s.T)
    assert torch.allclose(s, pair_similarities(stretch * logits), atol=1e-5)
    assert (s >= 0).all()
    assert (s < 1).all()


def test_golden_similarities() -> None:
    s = pair_similarities(torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, -1.0]]))
    half = math.sqrt(0.5)
    expected = torch.tensor([[1.0, half, 0.0], [half, 1.0, 0.0], [0.0, 0.0, 1.0]])
    assert torch.allclose(s, expected.clamp(LEAST, MOST), rtol=1e-6, atol=0)


def test_similarities_have_both_logarithms_in_single_precision() -> None:
    s = pair_similarities(torch.tensor([[3.0, 1.0], [3.0, 1.0], [-3.0, -1.0], [0.0, 0.0]]))
    assert s.dtype == torch.float32
    assert s.log().isfinite().all()
    assert (1 - s).log().isfinite().all()


def test_similarities_of_half_precision_are_computed_in_single() -> None:
    logits = noise(5, 8).bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        s = pair_similarities(logits)
    assert s.dtype == torch.float32
    assert torch.equal(s, pair_similarities(logits.float()))


@given(labels=classes, seed=seeds, upper=st.floats(0.3, 0.95), lower=st.floats(0.05, 0.95))
def test_adaptive_loss_equals_a_loop(
    labels: list[int], seed: int, upper: float, lower: float
) -> None:
    logits, unlabelled = noise(len(labels), 3, seed=seed), [-1] * len(labels)
    loss = adaptive_pair_loss(logits, upper, lower)
    assert float(loss) == pytest.approx(naive_adaptive(logits, upper, lower, unlabelled), abs=1e-9)
    loss = adaptive_pair_loss(logits, upper, lower, torch.tensor(labels))
    assert float(loss) == pytest.approx(naive_adaptive(logits, upper, lower, labels), abs=1e-9)


@given(labels=classes, seed=seeds, threshold=st.floats(0.1, 0.9), step=st.floats(0, 0.1))
def test_pairs_in_doubt_cost_nothing(
    labels: list[int], seed: int, threshold: float, step: float
) -> None:
    logits = noise(len(labels), 3, seed=seed)
    wide = adaptive_pair_loss(logits, threshold + step, threshold - step)
    narrow = adaptive_pair_loss(logits, threshold, threshold)
    assert 0 <= float(wide) <= float(narrow) + 1e-12
    unlabelled = torch.full((len(labels),), -1)
    assert float(adaptive_pair_loss(logits, threshold, threshold, unlabelled)) == float(narrow)


@given(b=st.integers(1, 8), seed=seeds)
def test_rotated_logits_cost_the_same(b: int, seed: int) -> None:
    logits, (rotation, _) = noise(b, 4, seed=seed), torch.linalg.qr(noise(4, 4, seed=seed + 1))
    expected = float(adaptive_pair_loss(logits, 0.7, 0.3))
    assert float(adaptive_pair_loss(logits @ rotation, 0.7, 0.3)) == pytest.approx(
        expected, abs=1e-9
    )


def test_golden_adaptive_loss() -> None:
    pairs = 2 * (-math.log(0.8) - math.log(0.4))  # 0.8 attracts, 0.6 repels, 0 is far enough
    assert float(adaptive_pair_loss(HALFWAY, 0.7, 0.65)) == pytest.approx(pairs / 9, rel=1e-5)
    attracted = -2 * math.log(0.8)  # 0.6 is in doubt
    assert float(adaptive_pair_loss(HALFWAY, 0.7, 0.5)) == pytest.approx(attracted / 9, rel=1e-5)


def test_golden_adaptive_loss_with_targets() -> None:
    loss = adaptive_pair_loss(HALFWAY, 0.7, 0.5, torch.tensor([-1, 2, 2]))
    expected = 2 * (-math.log(0.8) - math.log(0.6)) / 9  # what was in doubt is known to attract
    assert float(loss) == pytest.approx(expected, rel=1e-5)


def test_thresholds_may_be_tensors_that_change_in_place() -> None:
    upper, lower = torch.tensor(0.7), torch.tensor(0.5)
    before = adaptive_pair_loss(HALFWAY, upper, lower)
    assert torch.equal(before, adaptive_pair_loss(HALFWAY, 0.7, 0.5))
    lower.fill_(0.65)
    assert torch.equal(
        adaptive_pair_loss(HALFWAY, upper, lower), adaptive_pair_loss(HALFWAY, 0.7, 0.65)
    )


@given(labels=classes, seed=seeds)
def test_given_loss_equals_a_loop(labels: list[int], seed: int) -> None:
    logits = noise(len(labels), 3, seed=seed)
    loss = given_pair_loss(logits, torch.tensor(labels))
    assert float(loss) == pytest.approx(naive_given(logits, labels), abs=1e-9)


@given(labels=classes, seed=seeds)
def test_unlabelled_rows_do_not_change_the_given_loss(labels: list[int], seed: int) -> None:
    logits, targets = noise(len(labels), 3, seed=seed), torch.tensor(labels)
    known = targets >= 0
    alone = given_pair_loss(logits[known], targets[known])
    assert float(given_pair_loss(logits, targets)) == pytest.approx(float(alone))
    constrained = adaptive_pair_loss(logits[known], 0.9, 0.1, targets[known])
    assert float(constrained) == pytest.approx(float(alone))


def test_golden_given_loss() -> None:
    loss = given_pair_loss(HALFWAY, torch.tensor([0, 0, 1]))
    assert float(loss) == pytest.approx(2 * (-math.log(0.8) - math.log(0.4)) / 9, rel=1e-5)
    loss = given_pair_loss(HALFWAY, torch.tensor([-1, 5, 5]))
    assert float(loss) == pytest.approx(-2 * math.log(0.6) / 4, rel=1e-5)


@given(b=st.integers(1, 6), seed=seeds, margin=st.floats(0.1, 3))
def test_divergence_loss_equals_a_loop(b: int, seed: int, margin: float) -> None:
    logits, similar = 2 * noise(b, 3, seed=seed), random_pairs(b, seed)
    loss = pair_divergence_loss(logits, similar, margin)
    expected = frozen_divergence(logits, logits, similar, margin, list(range(b)))
    assert float(loss) == pytest.approx(float(expected), abs=1e-12)


@given(rows=st.lists(st.integers(0, 3), min_size=1, max_size=6), seed=seeds)
def test_gradient_of_divergence_leaves_targets_alone(rows: list[int], seed: int) -> None:
    logits, similar = 2 * noise(len(rows), 3, seed=seed), random_pairs(len(rows), seed)
    found = gradient(
        lambda x: pair_divergence_loss(x, similar, 1.5, rows=torch.tensor(rows)), logits
    )
    expected = gradient(lambda x: frozen_divergence(x, logits, similar, 1.5, rows), logits)
    assert torch.allclose(found, expected)


@given(b=st.integers(2, 8), seed=seeds, shift=st.floats(-50, 50))
def test_divergence_is_blind_to_a_shift_of_logits(b: int, seed: int, shift: float) -> None:
    logits, similar = noise(b, 4, seed=seed), random_pairs(b, seed)
    loss = pair_divergence_loss(logits, similar)
    assert float(loss) >= 0
    assert float(pair_divergence_loss(logits + shift, similar)) == pytest.approx(float(loss))


def test_golden_divergence_loss() -> None:
    logits = torch.tensor([[0.0, 0.0], [math.log(3), 0.0]])  # 1/2 and 1/2; 3/4 and 1/4
    there = 0.75 * math.log(1.5) + 0.25 * math.log(0.5)
    back = 0.5 * math.log(2 / 3) + 0.5 * math.log(2)
    together, apart = torch.ones(2, 2, dtype=torch.bool), torch.zeros(2, 2, dtype=torch.bool)
    mean = (there + back) / 2
    assert float(pair_divergence_loss(logits, together)) == pytest.approx(mean, rel=1e-5)
    assert float(pair_divergence_loss(logits, apart)) == pytest.approx(2 - mean, rel=1e-5)
    assert float(pair_divergence_loss(logits, apart, margin=0.1)) == 0
    one_way = torch.tensor([[True, True], [False, True]])  # row 0 towards target row 1
    expected = (there + 2 - back) / 2
    assert float(pair_divergence_loss(logits, one_way)) == pytest.approx(expected, rel=1e-5)


def test_an_utterance_that_comes_twice_is_no_pair() -> None:
    logits, similar = noise(4, 3), random_pairs(4, 0)
    rows = torch.tensor([7, 2, 7, 7])
    loss = pair_divergence_loss(logits, similar, rows=rows)
    expected = frozen_divergence(logits, logits, similar, 2.0, rows.tolist())
    assert float(loss) == pytest.approx(float(expected))
    assert float(pair_divergence_loss(logits, similar, rows=torch.zeros(4))) == 0


@given(labels=classes, seed=seeds, order=st.randoms(use_true_random=False))
def test_order_of_the_batch_does_not_matter(labels: list[int], seed: int, order: object) -> None:
    b = len(labels)
    logits, targets, similar = noise(b, 3, seed=seed), torch.tensor(labels), random_pairs(b, seed)
    mixed = list(range(b))
    order.shuffle(mixed)  # type: ignore[attr-defined]
    for one, other in (
        (
            adaptive_pair_loss(logits, 0.8, 0.4, targets),
            adaptive_pair_loss(logits[mixed], 0.8, 0.4, targets[mixed]),
        ),
        (given_pair_loss(logits, targets), given_pair_loss(logits[mixed], targets[mixed])),
        (
            pair_divergence_loss(logits, similar),
            pair_divergence_loss(logits[mixed], similar[mixed][:, mixed]),
        ),
    ):
        assert float(one) == pytest.approx(float(other), abs=1e-12)


@every_loss
@pytest.mark.parametrize(
    "logits",
    [
        pytest.param(torch.ones(6, 4), id="identical rows"),
        pytest.param(torch.zeros(6, 4), id="zero vectors"),
        pytest.param(torch.eye(6, 4), id="orthogonal rows and zero vectors"),
        pytest.param(noise(6, 4).sign().float() * 1e4, id="large logits"),
        pytest.param(noise(6, 4).float() * 1e-8, id="small logits"),
        pytest.param(torch.ones(6, 4) + 1e-4 * noise(6, 4).float(), id="almost identical rows"),
        pytest.param(noise(1, 4).float(), id="one row"),
        pytest.param(torch.empty(0, 4), id="no rows"),
    ],
)
def test_values_and_gradients_are_finite(loss: Callable[[Tensor], Tensor], logits: Tensor) -> None:
    assert gradient(loss, logits).isfinite().all()


def test_identical_rows_and_zero_vectors_get_no_gradient() -> None:
    for name, loss in LOSSES.items():
        assert gradient(loss, torch.zeros(5, 3)).abs().max() < 1e-6, name
        assert gradient(loss, torch.full((5, 3), 2.0)).abs().max() < 1e-6, name


@pytest.mark.parametrize(("labels", "sign"), [([0, 0], 1), ([0, 1], -1)])
def test_a_step_downhill_brings_positives_together_and_drives_negatives_apart(
    labels: list[int], sign: int
) -> None:
    before, targets = noise(2, 4, seed=3).abs(), torch.tensor(labels)
    similar = targets[:, None] == targets
    for loss in (
        lambda x: given_pair_loss(x, targets),
        lambda x: adaptive_pair_loss(x, 2.0, -1.0, targets),
        lambda x: pair_divergence_loss(x, similar),
    ):
        after = before - 0.01 * gradient(loss, before)
        gain = pair_similarities(after) - pair_similarities(before)
        assert sign * float(gain[0, 1]) > 0


@pytest.mark.parametrize("name", ["adaptive", "constrained", "given"])
def test_gradient_is_that_of_finite_differences(name: str) -> None:
    assert torch.autograd.gradcheck(LOSSES[name], noise(5, 4, seed=1).abs().requires_grad_())


def test_no_pairs_cost_nothing_but_keep_the_graph() -> None:
    logits, unlabelled = noise(3, 4), torch.full((3,), -1)
    for loss in (
        lambda x: adaptive_pair_loss(x, 2.0, -1.0),
        lambda x: given_pair_loss(x, unlabelled),
        lambda x: pair_divergence_loss(x, torch.ones(3, 3).bool(), rows=torch.zeros(3)),
    ):
        assert float(loss(logits)) == 0
        assert (gradient(loss, logits) == 0).all()


@every_loss
def test_nothing_is_read_back_from_the_device(loss: Callable[[Tensor], Tensor]) -> None:
    # A fake tensor has no values: reading one, or picking by a mask, raises.
    with FakeTensorMode():
        logits = torch.randn(6, 4, requires_grad=True)
        loss(logits).backward()
        adaptive_pair_loss(logits, torch.tensor(0.9), torch.tensor(0.5)).backward()


def test_half_precision_does_not_reach_the_divergence() -> None:
    logits, similar = noise(5, 8).bfloat16(), random_pairs(5, 0)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = pair_divergence_loss(logits, similar)
    assert torch.equal(loss, pair_divergence_loss(logits.float(), similar))


def test_masks_and_targets_of_another_size_are_refused() -> None:
    logits = noise(3, 4)
    with pytest.raises(ValueError, match=r"\(2,\)"):
        adaptive_pair_loss(logits, 0.9, 0.1, torch.zeros(2))
    with pytest.raises(ValueError, match=r"\(3, 1\)"):
        given_pair_loss(logits, torch.zeros(3, 1))
    with pytest.raises(ValueError, match=r"\(3, 2\)"):
        pair_divergence_loss(logits, torch.zeros(3, 2))
    with pytest.raises(ValueError, match=r"\(4,\)"):
        pair_divergence_loss(logits, torch.zeros(3, 3), rows=torch.zeros(4))
