"""Extrapolation of a linear iteration, whose solution is known."""

import torch
from torch import Tensor

from ronid.assign.anderson import Anderson

RATES = torch.tensor([0.99, 0.9, 0.5, 0.1], dtype=torch.float64)
SOLUTION = torch.tensor([1.0, -2.0, 3.0, 4.0], dtype=torch.float64)


def step(point: Tensor) -> Tensor:
    """Shrinks each coordinate's error by its rate."""
    return (RATES - 1) * (point - SOLUTION)


def test_a_linear_iteration_is_solved_while_the_plain_one_has_hardly_begun() -> None:
    anderson = Anderson(torch.ones(4, dtype=torch.float64))
    point = plain = torch.zeros(4, dtype=torch.float64)
    for _ in range(8):
        point = anderson.propose(point, step(point))
        plain = plain + step(plain)
    torch.testing.assert_close(point, SOLUTION, atol=1e-3, rtol=0)
    assert (plain - SOLUTION).abs().max() > 0.9


def test_the_first_step_and_that_after_forgetting_are_plain() -> None:
    anderson, point = Anderson(torch.ones(4, dtype=torch.float64)), torch.zeros(4).double()
    assert anderson.propose(point, step(point)).equal(point + step(point))
    anderson.propose(SOLUTION / 2, step(SOLUTION / 2))
    anderson.forget()
    assert anderson.propose(point, step(point)).equal(point + step(point))


def test_a_solved_iteration_stays_finite() -> None:
    anderson = Anderson(torch.ones(4, dtype=torch.float64))
    for _ in range(3):
        assert anderson.propose(SOLUTION, step(SOLUTION)).equal(SOLUTION)
