"""Cross-entropy of those rows of a batch that have a known intent."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ronid.losses import known_cross_entropy


@given(targets=st.lists(st.integers(-1, 2), min_size=1, max_size=9), seed=st.integers(0, 99))
def test_is_the_mean_of_the_rows_that_have_a_target(targets: list[int], seed: int) -> None:
    logits = torch.randn(len(targets), 3, generator=torch.Generator().manual_seed(seed))
    terms = [
        -float(row.log_softmax(0)[y]) for row, y in zip(logits, targets, strict=True) if y >= 0
    ]
    found = float(known_cross_entropy(logits, torch.tensor(targets)))
    assert found == pytest.approx(sum(terms) / len(terms) if terms else 0.0, rel=1e-5)


def test_golden_value() -> None:
    logits = torch.tensor([[0.0, math.log(3.0)], [9.0, -9.0]])
    found = known_cross_entropy(logits, torch.tensor([1, -1]))
    assert float(found) == pytest.approx(-math.log(0.75))


def test_rows_without_a_target_get_no_gradient() -> None:
    logits = torch.randn(3, 4, requires_grad=True)
    known_cross_entropy(logits, torch.tensor([2, -1, 0])).backward()
    assert logits.grad is not None
    assert logits.grad[1].eq(0).all()
    assert logits.grad[[0, 2]].ne(0).all()
