"""Optimal transport of utterances to intents: the E-step of RoNID (Eq. 3 and 4).

Every utterance carries 1/n of the mass; intent j must receive the share nu_j of it:

    min_Q  <Q, -S> - eta * H(Q)    with  Q 1 = 1/n  and  Q^T 1 = nu,    S = log P, (n, k)

The paper prints +eta*H, but only the minus sign makes the problem convex and Sinkhorn its
solver. The solution is Q_ij = exp(f_i + S_ij / eta + g_j). Given the class potentials g, the row
condition fixes f: row i is softmax(S_i / eta + g) / n. Hence only g is iterated, k numbers, and
one iteration is one pass over blocks of rows: normalise the rows, sum the columns, and move g by
log(nu) - log(sums), or to where Anderson extrapolation of such moves leads, if that is better.
A constant added to a row of S changes nothing: cosines over a temperature serve as well as log P.

The class condition may be relaxed: instead of Q^T 1 = nu a term rho * KL(Q^T 1 | nu) is paid. With
the slack eta / rho the solution keeps its form, and now the classes receive shares proportional to
nu_j exp(-slack * g_j): less than nu where g had to push mass in, more where it had to hold it back.
Slack 0 is the exact condition; the larger it is, the nearer the plan comes to softmax(S / eta).

exp(S / eta) overflows for a small eta. The pass therefore works on the kernel

    K_ij = exp(S_ij / eta + r_j - max_j' (S_ij' / eta + r_j'))

whose rows all have a largest entry of 1, for reference potentials r near g. Where K fits in
memory it is kept, and an iteration costs two matrix-vector products; where it does not, every
block is made anew in each pass, and memory stays that of a few blocks.
"""

import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from ronid.assign.anderson import Anderson
from ronid.errors import RonidWarning

# exp(-75) is still a normal float32 number. An entry below it is raised to it: the mass this
# invents is nothing beside a marginal, yet no column sum can vanish and throw g to infinity.
_FLOOR = -75.0
# g may leave the reference by a factor exp(10) before the kernel is made anew around it.
_MAX_DRIFT = 10.0


@dataclass(frozen=True)
class Blocks:
    """Scores that are made when asked for, so that the whole matrix never exists.

    Like a tensor it has a `shape` and yields rows by slice.

    Args:
        shape: (n, k).
        read: Function of (start, stop) giving the scores of these rows, (stop - start, k).
    """

    shape: tuple[int, int]
    read: Callable[[int, int], Tensor]

    def __getitem__(self, rows: slice) -> Tensor:
        start, stop, _ = rows.indices(self.shape[0])
        return self.read(start, stop)


Scores = Tensor | Blocks


def cosine_blocks(
    embeddings: Tensor,
    prototypes: Tensor,
    *,
    temperature: float = 1.0,
    rows: Tensor | None = None,
) -> Blocks:
    """Scores of unit embeddings against unit prototypes, made block by block.

    Args:
        embeddings: (n, d) unit vectors.
        prototypes: (k, d) unit vectors.
        temperature: Divides the cosines; 1 gives the kernel exp(cos / eta).
        rows: (m,) rows of `embeddings` to take part, or None for all.

    Returns:
        The (n, k) or (m, k) scores as `Blocks`.
    """
    columns = prototypes.T / temperature  # (d, k)
    if rows is None:
        shape = (len(embeddings), len(prototypes))
        return Blocks(shape, lambda start, stop: embeddings[start:stop] @ columns)
    shape = (len(rows), len(prototypes))
    return Blocks(shape, lambda start, stop: embeddings[rows[start:stop]] @ columns)


def shifted(scores: Blocks, shift: Tensor, columns: slice) -> Blocks:
    """Return scores with a number for every row added in some columns.

    Args:
        scores: (n, k) scores.
        shift: (n,) what to add.
        columns: Where to add it.
    """
    if not shift.any():
        return scores

    def read(start: int, stop: int) -> Tensor:
        block = scores[start:stop]  # made for this call
        block[:, columns] += shift[start:stop, None]
        return block

    return Blocks(scores.shape, read)


@dataclass(frozen=True, eq=False)
class Plan:
    """A transport plan, held as its class potentials; rows are made on request.

    Args:
        scores: The (n, k) scores it was solved for.
        potentials: (k,) float64 class potentials g; -inf for a class without mass.
        eta: Entropy weight.
        iterations: Passes over the rows.
        residual: L1 distance of the column sums from the class marginal.
        converged: Whether the residual is below the tolerance.
        block_rows: Rows handled at once.
    """

    scores: Scores
    potentials: Tensor
    eta: float
    iterations: int
    residual: float
    converged: bool
    block_rows: int

    def rows(self, start: int, stop: int) -> Tensor:
        """Rows [start, stop) of the plan, (stop - start, k) float64; each sums to 1/n."""
        exponents = self.scores[start:stop].double() / self.eta + self.potentials
        return exponents.softmax(dim=1) / self.scores.shape[0]

    def dense(self) -> Tensor:
        """The whole plan, (n, k) float64; its columns sum to the class marginal."""
        return self.rows(0, self.scores.shape[0])

    @torch.no_grad()
    def labels(self, scores: Scores | None = None) -> Tensor:
        """Largest entry of each row, the pseudo-labels Y = argmax Q.

        Args:
            scores: (m, k) scores of other rows to label with the same potentials, or None for
                those the plan was solved for.

        Returns:
            (n,) or (m,) int64 classes.
        """
        scores = self.scores if scores is None else scores
        shift = self.potentials * self.eta
        best = [(block + shift).argmax(dim=1) for block in _row_blocks(scores, self.block_rows)]
        return torch.cat(best)


@torch.no_grad()
def sinkhorn(  # noqa: PLR0913 - the problem, how exactly, and in what room
    scores: Scores,
    class_marginal: Tensor,
    *,
    eta: float,
    tolerance: float = 1e-3,
    slack: float = 0.0,
    max_iterations: int = 1000,
    block_rows: int = 4096,
    kernel_bytes: int = 128 * 2**20,
) -> Plan:
    """Solve entropic optimal transport from n equal rows to k classes (Eq. 4).

    Args:
        scores: (n, k) log-probabilities or scaled cosines, a tensor or `Blocks`; the larger the
            likelier. Everything runs on their device.
        class_marginal: (k,) share of each class; normalised here. A class of share 0 is dead: it
            gets no mass.
        eta: Entropy weight; the smaller, the harder the plan and the slower the convergence.
        tolerance: L1 error of the column sums at which to stop.
        slack: eta / rho where a distance of the column sums from the marginal costs rho times
            their KL divergence; 0 for the marginal itself.
        max_iterations: Passes over the rows at most.
        block_rows: Rows handled at once.
        kernel_bytes: Keep the kernel between iterations if it is no larger than this.

    Returns:
        The plan; its row sums are exactly 1/n, its column sums within `residual` of the class
        marginal, or with slack of the shares that are then asked for.

    Raises:
        ValueError: An argument is out of range or a score is not a number.
    """
    marginal = _checked_marginal(class_marginal, scores, eta, min(max_iterations, block_rows))
    if not (slack >= 0 and math.isfinite(slack)):
        raise ValueError(f"slack is {slack}; it must be 0 or a positive number")
    kernel = _Kernel(scores, eta, block_rows, kernel_bytes)
    plan = _solve(kernel, marginal, slack, tolerance, max_iterations)
    if not plan.converged:
        warnings.warn(
            "the sizes of intents may be off, as often where most utterances are the same or "
            f"intents are too many: Sinkhorn stopped after {plan.iterations} iterations with a "
            f"column error of {plan.residual:.1e}, asked for {tolerance:.0e}; ask for fewer "
            "intents, or raise e_step.max_iterations or e_step.eta in a TOML file for --config",
            RonidWarning,
            stacklevel=3,
        )
    return plan


def _solve(
    kernel: "_Kernel", marginal: Tensor, slack: float, tolerance: float, max_iterations: int
) -> Plan:
    """Iterate the class potentials; the plan of least column error is kept."""
    live = marginal > 0
    share = marginal[live]
    potentials = torch.full_like(marginal, -math.inf)
    trial = plain = best = torch.zeros_like(share)  # potentials of the live classes
    anderson, last = Anderson(share), math.inf
    iterations, residual = 0, math.inf
    while residual >= tolerance and iterations < max_iterations:
        iterations += 1
        potentials[live] = trial
        sums = kernel.column_sums(potentials)[live]
        asked = (share.log() - slack * trial).softmax(dim=0) if slack else share
        error = float((sums - asked).abs().sum())
        if not math.isfinite(error):
            raise ValueError("scores hold NaN or infinity; look for empty texts or zero vectors")
        if error < residual:
            best, residual = trial, error
        if error > last:  # the extrapolation overshot; a plain step never raises the error
            trial, last = plain, math.inf
            anderson.forget()
            continue
        step, last = (asked / sums).log() / (1 + slack), error
        plain = trial + step
        if step.abs().max() > _MAX_DRIFT:  # far off: sums are at the floor, steps not yet linear
            anderson.forget()
            trial = plain
        else:
            trial = anderson.propose(trial, step)
    potentials[live] = best
    converged = residual < tolerance
    return Plan(
        kernel.scores, potentials, kernel.eta, iterations, residual, converged, kernel.block_rows
    )


class _Kernel:
    """The kernel K in blocks of rows: kept while g stays near, or made anew in each pass."""

    def __init__(self, scores: Scores, eta: float, block_rows: int, kernel_bytes: int) -> None:
        self.scores, self.eta, self.block_rows = scores, eta, block_rows
        n, k = scores.shape
        self.keep = n * k * _float_dtype(scores[0:1]).itemsize <= kernel_bytes
        self.reference: Tensor | None = None
        self.kept: list[Tensor] = []

    def column_sums(self, potentials: Tensor) -> Tensor:
        """Column sums (k,) of the plan with these potentials, added up in float64."""
        total = torch.zeros_like(potentials)
        blocks, scale = self._blocks_near(potentials)
        for block in blocks:
            mass = 1 / (block @ scale.to(block.dtype))  # (b,): the row update
            total += mass @ block
        return total * scale / self.scores.shape[0]

    def _blocks_near(self, potentials: Tensor) -> tuple[Iterable[Tensor], Tensor]:
        """Blocks of K, and the (k,) factors exp(g - r) that their columns still lack."""
        live = potentials.isfinite()
        if self.reference is not None:
            drift = (potentials - self.reference).masked_fill_(~live, 0)
            if drift.abs().max() <= _MAX_DRIFT:
                return self.kept, drift.exp() * live
        if not self.keep:
            return self._make(potentials), live.to(potentials.dtype)
        self.reference = potentials.clone()
        self.kept = []  # freed before the new one is made
        self.kept.extend(self._make(potentials))
        return self.kept, live.to(potentials.dtype)

    def _make(self, reference: Tensor) -> Iterator[Tensor]:
        for block in _row_blocks(self.scores, self.block_rows):
            dtype = _float_dtype(block)
            exponents = (block.to(dtype) / self.eta).add_(reference)  # (b, k)
            exponents -= exponents.amax(dim=1, keepdim=True)
            yield exponents.clamp_(min=_FLOOR).exp_()


def _row_blocks(scores: Scores, block_rows: int) -> Iterator[Tensor]:
    n = scores.shape[0]
    for start in range(0, n, block_rows):
        yield scores[start : min(start + block_rows, n)]


def _float_dtype(scores: Tensor) -> torch.dtype:
    """Half precision is too coarse for exponents in the hundreds."""
    return torch.promote_types(scores.dtype, torch.float32)


def _checked_marginal(share: Tensor, scores: Scores, eta: float, least_count: int) -> Tensor:
    """The class marginal as float64 that sums to 1, on the device of the scores."""
    if not (eta > 0 and math.isfinite(eta)):
        raise ValueError(f"eta is {eta}; it must be a positive number")
    if least_count < 1:
        raise ValueError("max_iterations and block_rows must be at least 1")
    if len(scores.shape) != 2 or 0 in scores.shape:
        raise ValueError(f"scores have shape {tuple(scores.shape)}; rows and classes are needed")
    share = torch.as_tensor(share).to(scores[0:1].device, torch.float64)
    if share.shape != (scores.shape[1],):
        raise ValueError(
            f"class_marginal has shape {tuple(share.shape)}, scores have {scores.shape[1]} classes"
        )
    if not share.isfinite().all() or (share < 0).any() or share.sum() <= 0:
        raise ValueError("class_marginal must hold shares >= 0, not all 0 and none NaN")
    return share / share.sum()
