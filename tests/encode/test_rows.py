"""Token rows and length-sorted batches."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from ronid.encode.rows import TokenRows, VectorRows, batches_by_length

CPU = torch.device("cpu")
LENGTHS = st.lists(st.integers(1, 40), max_size=60).map(lambda x: np.array(x, np.int64))


@given(lengths=LENGTHS, budget=st.integers(1, 200))
def test_batches_hold_every_row_once_within_the_budget(lengths: np.ndarray, budget: int) -> None:
    batches = list(batches_by_length(lengths, budget))
    assert sorted(row for batch in batches for row in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * lengths[batch].max() <= budget


@given(lengths=LENGTHS, budget=st.integers(1, 200))
def test_no_batch_could_have_taken_the_next_row(lengths: np.ndarray, budget: int) -> None:
    batches = list(batches_by_length(lengths, budget))
    for batch, following in zip(batches, batches[1:], strict=False):
        assert (len(batch) + 1) * lengths[following[0]] > budget


def test_golden_batches() -> None:
    batches = list(batches_by_length(np.array([5, 1, 9, 2, 2]), 6))
    assert [batch.tolist() for batch in batches] == [[1, 3, 4], [0], [2]]


def test_batch_pads_to_its_longest_row_and_brings_the_kept_states() -> None:
    hidden = torch.arange(12.0).view(6, 2)
    rows = TokenRows(torch.tensor([7, 8, 9, 5, 6, 4]), np.array([0, 3, 5, 6]), 1, hidden)
    batch = rows.batch(np.array([2, 1]), CPU)
    assert batch.ids.tolist() == [[4, 1], [5, 6]]
    assert batch.mask.tolist() == [[1, 0], [1, 1]]
    assert batch.hidden is not None
    assert torch.equal(batch.hidden[1], hidden[3:5])
    assert torch.equal(batch.hidden[0, 0], hidden[5])
    assert rows.lengths.tolist() == [3, 2, 1]
    assert len(rows) == 3


def test_vectors_have_length_one_each() -> None:
    rows = VectorRows(torch.zeros(4, 2))
    assert len(rows) == 4
    assert rows.lengths.tolist() == [1, 1, 1, 1]
