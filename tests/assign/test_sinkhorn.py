"""The transport plan against POT, the linear program, and its own invariants."""

import os
import re
import subprocess
import sys
import warnings
from dataclasses import fields
from pathlib import Path

import numpy as np
import ot
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from torch import Tensor

from ronid.assign.sinkhorn import Blocks, cosine_blocks, shifted, sinkhorn
from ronid.config import EStepConfig
from ronid.errors import RonidWarning


def problem(n: int, k: int, seed: int = 0, spread: float = 1.0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    scores = spread * torch.randn(n, k, generator=generator, dtype=torch.float64)
    marginal = torch.rand(k, generator=generator, dtype=torch.float64) + 0.1
    return scores, marginal / marginal.sum()


def clustered(n: int, k: int, temperature: float, d: int = 32) -> tuple[Tensor, Tensor]:
    """Cosines of noisy unit vectors with their prototypes, and a prior that does not fit them."""
    generator = torch.Generator().manual_seed(1)
    prototypes = torch.nn.functional.normalize(torch.randn(k, d, generator=generator), dim=1)
    noise = torch.randn(n, d, generator=generator) / d**0.5
    owner = torch.randint(k, (n,), generator=generator)
    embeddings = torch.nn.functional.normalize(prototypes[owner] + noise, dim=1)
    return embeddings @ prototypes.T / temperature, torch.linspace(1, 5, k)


def naive_plan(scores: Tensor, marginal: Tensor, eta: float, iterations: int) -> np.ndarray:
    """Sinkhorn as in the textbook: scale rows, scale columns."""
    plan = np.exp(scores.double().numpy() / eta)
    nu = marginal.numpy() / marginal.numpy().sum()
    for _ in range(iterations):
        plan *= nu / plan.sum(axis=0)
        plan *= (1 / len(plan)) / plan.sum(axis=1, keepdims=True)
    return plan


def test_plan_equals_textbook_scaling() -> None:
    scores, marginal = problem(30, 5)
    plan = sinkhorn(scores, marginal, eta=0.5, tolerance=1e-12)
    np.testing.assert_allclose(plan.dense(), naive_plan(scores, marginal, 0.5, 500), atol=1e-12)


@pytest.mark.parametrize("eta", [0.05, 0.5, 5.0])
def test_plan_equals_pot(eta: float) -> None:
    scores, marginal = problem(40, 7)
    plan = sinkhorn(scores, marginal, eta=eta, tolerance=1e-9, max_iterations=20_000)
    oracle = ot.bregman.sinkhorn_log(
        np.full(40, 1 / 40), marginal.numpy(), -scores.numpy(), eta, numItermax=20_000, stopThr=1e-9
    )
    np.testing.assert_allclose(plan.dense(), oracle, atol=1e-7)
    assert (plan.labels().numpy() == oracle.argmax(axis=1)).all()


def test_plan_equals_pot_plain_solver_on_float32_cosines() -> None:
    scores, marginal = clustered(500, 12, temperature=1.0)
    marginal = marginal.double() / marginal.sum()
    plan = sinkhorn(scores, marginal, eta=0.05, tolerance=1e-5)
    oracle = ot.sinkhorn(
        np.full(500, 1 / 500), marginal.numpy(), -scores.double().numpy(), 0.05, stopThr=1e-7
    )
    np.testing.assert_allclose(plan.dense() * 500, oracle * 500, atol=1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_small_eta_reaches_the_linear_program(seed: int) -> None:
    n, k = 12, 4
    scores, marginal = problem(n, k, seed)
    sums_to = np.concatenate([np.full(n, 1 / n), marginal.numpy()])
    rows = np.kron(np.eye(n), np.ones(k))
    columns = np.kron(np.ones(n), np.eye(k))
    exact = linprog(-scores.numpy().ravel(), A_eq=np.vstack([rows, columns]), b_eq=sums_to)
    plan = sinkhorn(scores, marginal, eta=0.005, tolerance=1e-6, max_iterations=100_000)
    assert -(plan.dense() * scores).sum() == pytest.approx(exact.fun, abs=0.005)
    assert -(plan.dense() * scores).sum() >= exact.fun - 1e-5


@given(
    n=st.integers(1, 25),
    k=st.integers(1, 8),
    seed=st.integers(0, 1000),
    eta=st.sampled_from([0.2, 1.0]),
    dead=st.integers(0, 3),
    single=st.booleans(),
)
def test_marginals_are_met(n: int, k: int, seed: int, eta: float, dead: int, single: bool) -> None:
    scores, marginal = problem(n, k, seed)
    marginal = marginal**3  # far from balanced
    marginal[: min(dead, k - 1)] = 0
    scores = scores.float() if single else scores
    tolerance = 1e-4 if single else 1e-7
    plan = sinkhorn(scores, marginal, eta=eta, tolerance=tolerance, max_iterations=50_000)
    dense = plan.dense()
    assert plan.converged
    assert dense.sum(dim=1) == pytest.approx(np.full(n, 1 / n))
    assert (dense.sum(dim=0) - marginal / marginal.sum()).abs().sum() <= 2 * tolerance
    assert (dense[:, marginal == 0] == 0).all()
    assert (marginal[plan.labels()] > 0).all()


def naive_relaxed_plan(scores: Tensor, marginal: Tensor, eta: float, rho: float) -> np.ndarray:
    """Unbalanced Sinkhorn as in the textbook: the column scaling is damped by rho / (rho + eta)."""
    kernel = np.exp(scores.double().numpy() / eta)
    nu = marginal.numpy() / marginal.numpy().sum()
    columns = np.ones(kernel.shape[1])
    for _ in range(3000):
        rows = (1 / len(kernel)) / (kernel @ columns)
        columns = (nu / (kernel.T @ rows)) ** (rho / (rho + eta))
    return rows[:, None] * kernel * columns


@pytest.mark.filterwarnings("ignore:If reg_type = entropy")
@pytest.mark.parametrize("rho", [0.05, 0.5, 5.0])
def test_relaxed_plan_equals_textbook_scaling_and_pot(rho: float) -> None:
    scores, marginal = problem(40, 7)
    plan = sinkhorn(
        scores, marginal, eta=0.5, slack=0.5 / rho, tolerance=1e-12, max_iterations=20_000
    )
    expected = naive_relaxed_plan(scores, marginal, 0.5, rho)
    np.testing.assert_allclose(plan.dense(), expected / expected.sum(), atol=1e-10)
    oracle = ot.unbalanced.sinkhorn_unbalanced(
        np.full(40, 1 / 40), marginal.numpy(), -scores.numpy(), 0.5, (float("inf"), rho),
        reg_type="entropy", numItermax=20_000, stopThr=1e-12,
    )  # fmt: skip
    np.testing.assert_allclose(plan.dense(), oracle, atol=1e-8)


@given(
    seed=st.integers(0, 1000), k=st.integers(1, 6), slack=st.floats(0.001, 20), dead=st.booleans()
)
def test_relaxed_plan_is_the_least_cost_among_its_likes(
    seed: int, k: int, slack: float, dead: bool
) -> None:
    scores, marginal = problem(15, k, seed)
    marginal[0] = 0 if dead and k > 1 else marginal[0]
    nu = marginal / marginal.sum()
    plan = sinkhorn(scores, marginal, eta=0.5, slack=slack, tolerance=1e-9, max_iterations=20_000)
    assert plan.converged
    assert plan.dense().sum(dim=1) == pytest.approx(np.full(15, 1 / 15))

    def cost(dense: Tensor) -> float:
        sums = dense.sum(dim=0)
        divergence = (torch.xlogy(sums, sums) - torch.xlogy(sums, nu)).sum()
        entropy = -torch.xlogy(dense, dense).sum()
        return float(-(dense * scores).sum() - 0.5 * entropy + 0.5 / slack * divergence)

    best = cost(plan.dense())
    for shift in torch.randn(8, k, dtype=torch.float64) * 0.3:
        other = ((scores / 0.5 + plan.potentials + shift).softmax(dim=1)) / 15
        assert cost(other) >= best - 1e-9


def test_slack_leads_from_the_prior_to_the_prediction() -> None:
    scores, marginal = clustered(400, 10, temperature=1.0)
    nu = marginal / marginal.sum()
    free = (scores / 0.05).softmax(dim=1).mean(dim=0)
    gaps = [
        float((sinkhorn(scores, marginal, eta=0.05, slack=s).dense().sum(dim=0) - nu).abs().sum())
        for s in (0.0, 0.1, 1.0, 10.0, 1000.0)
    ]
    assert gaps == sorted(gaps)
    assert gaps[0] < 2e-3
    assert gaps[-1] == pytest.approx(float((free - nu).abs().sum()), abs=5e-3)


@given(seed=st.integers(0, 1000))
def test_permuting_rows_and_classes_permutes_the_plan(seed: int) -> None:
    scores, marginal = problem(20, 6, seed)
    row_order, class_order = torch.randperm(20), torch.randperm(6)
    plan = sinkhorn(scores, marginal, eta=0.3, tolerance=1e-10, max_iterations=20_000)
    permuted = sinkhorn(
        scores[row_order][:, class_order],
        marginal[class_order],
        eta=0.3,
        tolerance=1e-10,
        max_iterations=20_000,
    )
    expected = plan.dense()[row_order][:, class_order]
    torch.testing.assert_close(permuted.dense(), expected, atol=1e-9, rtol=0)


@given(seed=st.integers(0, 1000), size=st.floats(-500, 500))
def test_a_row_constant_changes_nothing(seed: int, size: float) -> None:
    scores, marginal = problem(15, 4, seed)
    plan = sinkhorn(scores, marginal, eta=0.3)
    shifted = sinkhorn(scores + size * torch.randn(15, 1), marginal, eta=0.3)
    torch.testing.assert_close(shifted.dense(), plan.dense(), atol=1e-9, rtol=0)
    log_p = sinkhorn(scores.log_softmax(dim=1), marginal, eta=0.3)
    torch.testing.assert_close(log_p.dense(), plan.dense(), atol=1e-9, rtol=0)


@pytest.mark.parametrize("block_rows", [1, 7, 64, 100, 1000])
@pytest.mark.parametrize("kernel_bytes", [0, 2**20])
def test_blocks_give_the_plan_of_the_whole(block_rows: int, kernel_bytes: int) -> None:
    scores, marginal = problem(100, 9)
    whole = sinkhorn(scores, marginal, eta=0.1, tolerance=1e-8, max_iterations=10_000)
    blocks = sinkhorn(
        Blocks((100, 9), lambda start, stop: scores[start:stop]),
        marginal,
        eta=0.1,
        tolerance=1e-8,
        max_iterations=10_000,
        block_rows=block_rows,
        kernel_bytes=kernel_bytes,
    )
    torch.testing.assert_close(blocks.dense(), whole.dense(), atol=1e-8, rtol=0)
    assert blocks.labels().equal(whole.labels())
    torch.testing.assert_close(blocks.rows(3, 8), blocks.dense()[3:8])


@pytest.mark.parametrize("kernel_bytes", [0, 2**30])
def test_small_temperature_stays_finite_and_meets_the_marginal(kernel_bytes: int) -> None:
    scores, marginal = clustered(500, 20, temperature=0.07)
    assert (scores.max() - scores.min()) / 0.05 > 300
    plan = sinkhorn(
        scores,
        marginal,
        eta=0.05,
        tolerance=1e-2,
        max_iterations=5000,
        kernel_bytes=kernel_bytes,
    )
    dense = plan.dense()
    assert plan.converged
    assert dense.isfinite().all()
    assert (dense.sum(dim=0) - marginal / marginal.sum()).abs().sum() < 2e-2


def test_a_class_far_below_all_others_still_gets_its_share() -> None:
    scores, _ = problem(200, 3)
    scores = scores.float()
    scores[:, 2] -= 900  # exp(-900) is 0 in float64 too
    plan = sinkhorn(scores, torch.tensor([0.3, 0.3, 0.4]), eta=1.0)
    assert plan.converged
    assert plan.dense()[:, 2].sum() == pytest.approx(0.4, abs=2e-3)


def test_shares_of_many_sizes_are_met() -> None:
    scores, _ = problem(300, 4)
    plan = sinkhorn(scores, torch.tensor([1.0, 1e-3, 1e-6, 1e-9]), eta=0.5, tolerance=1e-12)
    share = plan.dense().sum(dim=0)
    np.testing.assert_allclose(share, np.array([1, 1e-3, 1e-6, 1e-9]) / 1.001001001, rtol=1e-2)


def test_one_class_takes_everything() -> None:
    plan = sinkhorn(torch.randn(5, 1), torch.tensor([3.0]), eta=0.05)
    assert plan.iterations == 1
    assert plan.labels().tolist() == [0] * 5
    torch.testing.assert_close(plan.dense(), torch.full((5, 1), 0.2, dtype=torch.float64))


def test_one_row_takes_the_marginal() -> None:
    plan = sinkhorn(torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor([0.5, 0.2, 0.3]), eta=0.05)
    np.testing.assert_allclose(plan.dense(), [[0.5, 0.2, 0.3]], atol=1e-3)


def test_cosine_blocks_are_scaled_dot_products() -> None:
    embeddings, prototypes = torch.randn(10, 4), torch.randn(3, 4)
    blocks = cosine_blocks(embeddings, prototypes, temperature=0.5)
    assert blocks.shape == (10, 3)
    torch.testing.assert_close(blocks[2:5], (embeddings @ prototypes.T / 0.5)[2:5])
    assert blocks[8:20].shape == (2, 3)


@given(
    n=st.integers(1, 20),
    k=st.integers(1, 6),
    bounds=st.tuples(st.integers(0, 6), st.integers(0, 6)),
    block=st.integers(1, 20),
    seed=st.integers(0, 1000),
)
def test_shifted_scores_equal_the_dense_sum(
    n: int, k: int, bounds: tuple[int, int], block: int, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    embeddings, prototypes = (torch.randn(m, 4, generator=generator) for m in (n, k))
    scores = cosine_blocks(embeddings, prototypes)
    shift, columns = torch.randn(n, generator=generator), slice(*bounds)
    moved = shifted(scores, shift, columns)
    dense = embeddings @ prototypes.T
    for row in range(n):
        for column in range(k)[columns]:
            dense[row, column] += shift[row]
    assert moved.shape == (n, k)
    found = torch.cat([moved[start : start + block] for start in range(0, n, block)])
    torch.testing.assert_close(found, dense)
    torch.testing.assert_close(moved[:], dense)  # a second pass adds the shift only once
    torch.testing.assert_close(scores[:], embeddings @ prototypes.T)


def test_shift_of_zero_returns_the_same_scores() -> None:
    scores = cosine_blocks(torch.randn(5, 4), torch.randn(3, 4))
    assert shifted(scores, torch.zeros(5), slice(1, None)) is scores


def test_half_precision_scores_are_solved_in_float32() -> None:
    scores, marginal = clustered(400, 6, temperature=1.0)
    half = sinkhorn(scores.half(), marginal, eta=0.05)
    single = sinkhorn(scores.half().float(), marginal, eta=0.05)
    torch.testing.assert_close(half.dense(), single.dense(), atol=1e-6, rtol=1e-3)


def test_potentials_label_new_rows() -> None:
    scores, marginal = problem(50, 4)
    plan = sinkhorn(scores, marginal, eta=0.2)
    assert plan.labels(scores[10:20]).equal(plan.labels()[10:20])


def test_golden_plan() -> None:
    scores = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.5, 0.0]], dtype=torch.float64)
    plan = sinkhorn(scores, torch.tensor([0.25, 0.75]), eta=0.5, tolerance=1e-12)
    # By hand: with odds a = exp(2, -2, 1) the first column is t a / (t a + 1) / 3; solve for t.
    expected = [[0.15997741, 0.17335592], [0.00554041, 0.32779293], [0.08448218, 0.24885115]]
    np.testing.assert_allclose(plan.dense(), expected, atol=1e-8)


def test_gradients_do_not_pass() -> None:
    scores, marginal = problem(10, 3)
    plan = sinkhorn(scores.requires_grad_(), marginal, eta=0.5)
    assert not plan.potentials.requires_grad
    assert not plan.labels().requires_grad


def test_stopping_early_warns_with_iterations_and_residual() -> None:
    scores, marginal = problem(100, 9)
    with pytest.warns(RonidWarning, match=r"3 iterations with a column error of \d") as caught:
        plan = sinkhorn(scores, marginal, eta=0.05, tolerance=1e-9, max_iterations=3)
    assert not plan.converged
    assert plan.iterations == 3
    measured = float((plan.dense().sum(dim=0) - marginal).abs().sum())
    assert plan.residual == pytest.approx(measured)
    assert Path(caught[0].filename) == Path(__file__)


def test_stopping_early_says_what_it_means_and_which_settings_change_it() -> None:
    scores, marginal = problem(100, 9)
    with pytest.warns(RonidWarning, match="sizes of intents may be off") as caught:
        sinkhorn(scores, marginal, eta=0.05, tolerance=1e-9, max_iterations=3)
    named = set(re.findall(r"e_step\.(\w+)", str(caught[0].message)))
    assert named == {"max_iterations", "eta"}
    assert named <= {field.name for field in fields(EStepConfig)}


def test_near_hard_plans_converge_within_the_default_iterations() -> None:
    # Plain Sinkhorn needs 5 times as many, see benchmarks/estep.py.
    scores, marginal = clustered(1000, 20, temperature=0.07)
    assert sinkhorn(scores, marginal, eta=0.05).converged


def test_residual_is_the_best_met() -> None:
    scores, marginal = clustered(300, 20, temperature=0.07)
    residuals = []
    for iterations in range(1, 40):
        with pytest.warns(RonidWarning):
            plan = sinkhorn(scores, marginal, eta=0.05, tolerance=0, max_iterations=iterations)
        residuals.append(plan.residual)
    assert residuals == sorted(residuals, reverse=True)


def test_converging_does_not_warn() -> None:
    scores, marginal = problem(100, 9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sinkhorn(scores, marginal, eta=1.0).residual < 1e-3


@pytest.mark.parametrize(
    "marginal",
    [[0.5, -0.1, 0.6], [0.5, 0.5], [0.5, float("nan"), 0.5], [0.0, 0.0, 0.0], [[1.0, 1.0, 1.0]]],
)
def test_impossible_marginals_are_refused(marginal: list[float]) -> None:
    with pytest.raises(ValueError, match="class_marginal"):
        sinkhorn(torch.zeros(4, 3), torch.tensor(marginal), eta=0.05)


@pytest.mark.parametrize("eta", [0.0, -1.0, float("nan"), float("inf")])
def test_impossible_eta_is_refused(eta: float) -> None:
    with pytest.raises(ValueError, match="eta"):
        sinkhorn(torch.zeros(4, 3), torch.ones(3), eta=eta)


def test_impossible_counts_and_scores_are_refused() -> None:
    with pytest.raises(ValueError, match="max_iterations"):
        sinkhorn(torch.zeros(4, 3), torch.ones(3), eta=1, max_iterations=0)
    with pytest.raises(ValueError, match="shape"):
        sinkhorn(torch.zeros(0, 3), torch.ones(3), eta=1)
    with pytest.raises(ValueError, match="NaN"):
        sinkhorn(torch.full((4, 3), float("nan")), torch.ones(3), eta=1)


MEMORY_PROBE = """
import resource, warnings
import torch
from ronid.assign.sinkhorn import Blocks, sinkhorn

warnings.simplefilter("ignore")
centres = torch.linspace(-1, 1, 150)

def read(start, stop):
    return -(torch.linspace(-1, 1, stop - start)[:, None] - centres).abs()

def peak_after(n):
    scores = Blocks((n, 150), read)
    sinkhorn(scores, torch.ones(150), eta=0.5, tolerance=0, max_iterations=3, block_rows=8192,
             kernel_bytes=100 * 2**20)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

print(-peak_after(8192) + peak_after(300_000))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in kB on Linux only")
def test_memory_is_that_of_a_few_blocks_however_many_rows() -> None:
    # A fixed threshold makes malloc give blocks back at once, so that the peak counts live ones.
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "1000000"}
    probe = [sys.executable, "-c", MEMORY_PROBE]
    done = subprocess.run(probe, env=environment, capture_output=True, text=True, check=True)
    block_bytes = 8192 * 150 * 4  # 4.9 MB; the matrix is 180 MB
    assert int(done.stdout) < 3 * block_bytes


def test_cosine_blocks_of_chosen_rows_equal_the_rows_of_the_whole() -> None:
    generator = torch.Generator().manual_seed(3)
    points = torch.nn.functional.normalize(torch.randn(20, 5, generator=generator), dim=1)
    prototypes = torch.nn.functional.normalize(torch.randn(4, 5, generator=generator), dim=1)
    rows = torch.tensor([3, 0, 17, 9])
    chosen = cosine_blocks(points, prototypes, temperature=0.5, rows=rows)
    assert chosen.shape == (4, 4)
    torch.testing.assert_close(chosen[1:4], (points[rows] @ prototypes.T / 0.5)[1:4])


def test_negative_slack_is_refused() -> None:
    with pytest.raises(ValueError, match="slack is -1"):
        sinkhorn(*problem(4, 2), eta=0.5, slack=-1)
