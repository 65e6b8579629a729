"""Token rows: picked, packed, padded, and sorted by length."""

import itertools

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from ronid.encode.rows import BOX_ROWS, Pick, TokenRows, VectorRows, batches_by_length

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


def token_rows(lengths: list[int], pad_id: int = 0, width: int = 0) -> TokenRows:
    """Return rows of tokens 100, 101, ..., with states that tell their token where wanted."""
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    ids = torch.arange(100, 100 + int(starts[-1]), dtype=torch.int32)
    hidden = ids.float()[:, None] + torch.arange(width) if width else None
    return TokenRows(ids, starts, pad_id, hidden)


@st.composite
def picked_rows(draw: st.DrawFn) -> tuple[TokenRows, Pick, np.ndarray]:
    """Rows and a pick of them with repeats, filling and widths beyond the longest."""
    lengths = draw(st.lists(st.integers(1, 9), min_size=1, max_size=8))
    rows = token_rows(lengths, width=2)
    count = draw(st.sampled_from([1, 2, 9, 4 * BOX_ROWS - 1, 4 * BOX_ROWS, 5 * BOX_ROWS + 3]))
    index = np.random.default_rng(draw(st.integers(0, 99))).integers(0, len(rows), count)
    pick = rows.pick(index, CPU)
    filling, more = draw(st.integers(0, 5)), draw(st.integers(0, 5))
    boxes = tuple((number, width + more) for number, width in pick.boxes)
    return rows, Pick(pick.index, pick.tokens + filling, boxes), index


@given(
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=20),
    count=st.integers(0, 6 * BOX_ROWS),
    seed=st.integers(0, 99),
)
def test_pick_knows_its_tokens_and_boxes_that_hold_its_rows(
    lengths: list[int], count: int, seed: int
) -> None:
    rows = token_rows(lengths)
    index = np.random.default_rng(seed).integers(0, len(lengths), count)
    pick = rows.pick(index, CPU)
    picked = sorted(lengths[i] for i in index)
    assert pick.index.tolist() == index.tolist()
    assert (len(pick), pick.tokens, pick.width) == (count, sum(picked), max(picked, default=1))
    assert pick.shape == (count, pick.tokens, pick.boxes)
    assert len(pick.boxes) == (2 if count >= 4 * BOX_ROWS else 1)
    assert sum(number for number, _ in pick.boxes) == count
    for number, width in pick.boxes:  # shortest rows first, each box as wide as it must be
        inside, picked = picked[:number], picked[number:]
        assert width == max(inside, default=1)


def test_boxes_save_padding() -> None:
    rows = token_rows([2] * 60 + [30] * 4)
    pick = rows.pick(np.arange(64), CPU)
    assert pick.boxes == ((48, 2), (16, 30))


@given(picked_rows())
def test_packed_rows_stand_end_to_end_by_length_and_filling_behind(
    case: tuple[TokenRows, Pick, np.ndarray],
) -> None:
    rows, pick, index = case
    batch = rows.pack(pick)
    layout, count = batch.layout, int(rows.lengths[index].sum())
    order = np.argsort(rows.lengths[index], kind="stable")
    assert layout.order.tolist() == order.tolist()
    by_length = index[order]
    expected = [t for i in by_length for t in range(rows.starts[i], rows.starts[i + 1])]
    tokens = rows.ids[torch.tensor(expected)]
    assert batch.ids.tolist() == tokens.tolist() + [rows.pad_id] * (pick.tokens - count)
    assert batch.ids.dtype == torch.int64
    assert layout.valid.tolist() == [t < count for t in range(pick.tokens)]
    assert layout.column[:count].tolist() == [c for i in by_length for c in range(rows.lengths[i])]
    assert batch.hidden is not None
    assert torch.equal(batch.hidden[:count, 0], tokens.float())
    # Filling too must be a place that can be read.
    assert batch.hidden.shape == (pick.tokens, 2)
    assert layout.place.shape == (pick.tokens,)
    assert 0 <= int(layout.place.min()) <= int(layout.place.max()) < len(layout.mask)
    assert bool((layout.column[count:] == 0).all())


@given(picked_rows())
def test_packed_and_padded_batches_hold_the_same_tokens(
    case: tuple[TokenRows, Pick, np.ndarray],
) -> None:
    rows, pick, _ = case
    batch, padded = rows.pack(pick), rows.batch(pick.index, CPU, pick.width)
    layout = batch.layout
    assert layout.boxes == pick.boxes
    assert len(layout.slot) == len(layout.mask) == sum(n * w for n, w in pick.boxes)
    done = 0
    for ids, mask in zip(
        layout.split(batch.ids[layout.slot]), layout.split(layout.mask), strict=True
    ):
        for row in range(len(ids)):
            same = int(layout.order[done])
            assert ids[row][mask[row]].tolist() == padded.ids[same][padded.mask[same] == 1].tolist()
            done += 1
    assert done == len(pick)
    assert torch.equal(layout.slot[layout.mask], torch.arange(pick.tokens)[layout.valid])
    assert torch.equal(
        layout.slot[layout.place[layout.valid]], torch.arange(int(layout.valid.sum()))
    )


def test_golden_pack() -> None:
    rows = TokenRows(torch.tensor([7, 8, 9, 5, 6, 4]), np.array([0, 3, 5, 6]), 1)
    batch = rows.pack(Pick(torch.tensor([0, 2]), 5, ((1, 2), (1, 4))))
    assert batch.ids.tolist() == [4, 7, 8, 9, 1]
    assert batch.hidden is None
    layout = batch.layout
    assert layout.order.tolist() == [1, 0]
    assert layout.column.tolist() == [0, 0, 1, 2, 0]
    assert layout.valid.tolist() == [True, True, True, True, False]
    assert layout.mask.tolist() == [True, False, True, True, True, False]
    assert layout.slot.tolist() == [0, 0, 1, 2, 3, 0]
    assert layout.place.tolist() == [0, 2, 3, 4, 2]


@given(picked_rows(), st.integers(0, 99))
def test_packed_and_padded_rows_lose_the_same_tokens(
    case: tuple[TokenRows, Pick, np.ndarray], seed: int
) -> None:
    rows, pick, index = case
    gone = set(np.random.default_rng(seed).permutation(len(rows.ids))[: len(rows.ids) // 2])
    texts = [[t for t in range(rows.starts[i], rows.starts[i + 1]) if t not in gone] for i in index]
    # As ids count up from 0, they say which token they are.
    numbered = TokenRows(torch.arange(len(rows.ids)), rows.starts, -1)
    lost = torch.tensor(sorted(gone), dtype=torch.long)
    batch = numbered.pack(pick)
    batch = batch.without(torch.isin(batch.ids, lost))
    assert batch.hidden is None
    ends = batch.layout.bounds.tolist()
    found = [batch.ids[a:b].tolist() for a, b in itertools.pairwise(ends)]
    assert [found[i] for i in batch.layout.order.argsort()] == texts
    assert int(batch.layout.valid.sum()) == sum(map(len, texts)) == ends[-1]
    assert (batch.ids.shape, batch.layout.boxes) == ((pick.tokens,), pick.boxes)
    padded = numbered.batch(pick.index, CPU, pick.width)
    padded = padded.without(torch.isin(padded.ids, lost))
    assert padded.ids.shape == (len(index), pick.width)
    for ids, mask, text in zip(padded.ids, padded.mask, texts, strict=True):
        assert mask.tolist() == [1] * len(text) + [0] * (pick.width - len(text))
        assert ids[: len(text)].tolist() == text


def test_golden_loss_of_tokens() -> None:
    rows = TokenRows(torch.tensor([7, 8, 9, 5, 6, 4]), np.array([0, 3, 5, 6]), 1)
    batch = rows.pack(Pick(torch.tensor([0, 1]), 6, ((1, 2), (1, 4))))
    assert batch.ids.tolist() == [5, 6, 7, 8, 9, 1]
    assert batch.row.tolist() == [0, 0, 1, 1, 1, 1]
    shorter = batch.without(torch.tensor([True, False, False, True, False, False]))
    assert shorter.ids[:3].tolist() == [6, 7, 9]
    assert shorter.layout.column.tolist() == [0, 0, 1, 0, 0, 0]
    assert shorter.layout.bounds.tolist() == [0, 1, 3]
    assert shorter.outside.tolist() == [False] * 3 + [True] * 3


def test_batch_of_a_given_width_is_padded_to_it() -> None:
    rows = token_rows([3, 2], pad_id=1)
    for index in (np.array([1]), torch.tensor([1])):
        batch = rows.batch(index, CPU, 4)
        assert batch.ids.tolist() == [[103, 104, 1, 1]]
        assert batch.mask.tolist() == [[1, 1, 0, 0]]


def test_vectors_are_picked_as_tokens_of_their_own() -> None:
    pick = VectorRows(torch.zeros(4, 2)).pick(np.array([3, 3, 0]), CPU)
    assert pick.index.tolist() == [3, 3, 0]
    assert pick.shape == (3, 3, ((3, 1),))
    assert (len(pick), pick.width) == (3, 1)


def test_vectors_have_length_one_each() -> None:
    rows = VectorRows(torch.zeros(4, 2))
    assert len(rows) == 4
    assert rows.lengths.tolist() == [1, 1, 1, 1]
