"""Masking of tokens and the loss of predicting them."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from ronid.losses.language_model import (
    hidden_tokens,
    language_model_loss,
    mask_tokens,
    replace_tokens,
    tokens_to_erase,
)

MASK_ID, VOCAB = 4, 1000


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def batch(rows: int, length: int) -> tuple[Tensor, Tensor]:
    ids = torch.randint(10, VOCAB, (rows, length), generator=seeded(1))
    special = torch.zeros(rows, length, dtype=torch.bool)
    special[:, 0] = special[:, -2:] = True
    ids[special] = 2
    return ids, special


def test_shares_are_fifteen_percent_and_eighty_ten_ten() -> None:
    ids, special = batch(400, 103)
    masked, labels = mask_tokens(
        ids, special, mask_id=MASK_ID, vocab_size=VOCAB, generator=seeded()
    )
    chosen = labels != -100
    assert float(chosen[~special].float().mean()) == pytest.approx(0.15, abs=0.01)
    assert float((masked[chosen] == MASK_ID).float().mean()) == pytest.approx(0.8, abs=0.02)
    assert float((masked[chosen] == ids[chosen]).float().mean()) == pytest.approx(0.1, abs=0.02)
    other = (masked[chosen] != MASK_ID) & (masked[chosen] != ids[chosen])
    assert float(other.float().mean()) == pytest.approx(0.1, abs=0.02)


@given(seed=st.integers(0, 1000), probability=st.floats(0, 1))
def test_only_chosen_tokens_change_and_special_ones_never(seed: int, probability: float) -> None:
    ids, special = batch(4, 12)
    before = ids.clone()
    masked, labels = mask_tokens(
        ids,
        special,
        mask_id=MASK_ID,
        vocab_size=VOCAB,
        generator=seeded(seed),
        probability=probability,
    )
    chosen = labels != -100
    assert ids.equal(before)
    assert not chosen[special].any()
    assert masked[~chosen].equal(ids[~chosen])
    assert labels[chosen].equal(ids[chosen])
    assert masked.dtype == labels.dtype == ids.dtype


def test_probability_one_chooses_all_and_zero_none() -> None:
    ids, special = batch(3, 9)
    settings_ = {"mask_id": MASK_ID, "vocab_size": VOCAB}
    _, all_labels = mask_tokens(ids, special, generator=seeded(), probability=1, **settings_)
    assert (all_labels != -100).equal(~special)
    masked, none = mask_tokens(ids, special, generator=seeded(), probability=0, **settings_)
    assert (none == -100).all()
    assert masked.equal(ids)


def test_same_seed_gives_the_same_masks() -> None:
    ids, special = batch(3, 30)
    settings_ = {"mask_id": MASK_ID, "vocab_size": VOCAB}
    first, _ = mask_tokens(ids, special, generator=seeded(3), **settings_)
    second, _ = mask_tokens(ids, special, generator=seeded(3), **settings_)
    assert first.equal(second)


def test_without_a_generator_the_draws_follow_the_global_seed() -> None:
    ids, special = batch(3, 30)
    drawn = []
    with torch.random.fork_rng(devices=[]):
        for seed in (3, 3, 4):
            torch.manual_seed(seed)
            masked, _ = mask_tokens(ids, special, mask_id=MASK_ID, vocab_size=VOCAB)
            drawn.append((masked, replace_tokens(ids, special, vocab_size=VOCAB)))
    first, again, other = drawn
    assert all(a.equal(b) for a, b in zip(first, again, strict=True))
    assert not any(a.equal(b) for a, b in zip(first, other, strict=True))


def test_replacement_touches_a_quarter_of_plain_tokens() -> None:
    ids, special = batch(300, 53)
    replaced = replace_tokens(ids, special, vocab_size=VOCAB, generator=seeded())
    assert replaced[special].equal(ids[special])
    share = float((replaced != ids)[~special].float().mean())
    assert share == pytest.approx(0.25, abs=0.01)
    assert int(replaced.max()) < VOCAB


def rows_of(ids: Tensor) -> Tensor:
    return torch.arange(len(ids))[:, None].expand_as(ids)


@given(
    seed=st.integers(0, 1000),
    share=st.floats(0, 1),
    lengths=st.lists(st.integers(0, 9), min_size=1),
)
def test_erasure_takes_its_share_of_the_plain_tokens_of_every_row(
    seed: int, share: float, lengths: list[int]
) -> None:
    special = torch.tensor([[not 1 <= c <= n for c in range(11)] for n in lengths])
    rows = rows_of(special)
    gone = tokens_to_erase(rows, special, generator=seeded(seed), share=share)
    assert gone.shape == special.shape
    assert not (gone & special).any()
    assert gone.sum(1).tolist() == [math.floor(share * n) for n in lengths]
    flat = tokens_to_erase(rows.flatten(), special.flatten(), generator=seeded(seed), share=share)
    assert flat.equal(gone.flatten())


def test_every_token_is_as_likely_to_be_erased() -> None:
    special = torch.zeros(4000, 7, dtype=torch.bool)
    special[:, 0] = special[:, -1] = True
    share = tokens_to_erase(rows_of(special), special, generator=seeded()).float().mean(0)
    assert share.tolist() == pytest.approx([0, 0.4, 0.4, 0.4, 0.4, 0.4, 0], abs=0.04)


def test_erasure_without_a_generator_follows_the_global_seed() -> None:
    ids, special = batch(3, 30)
    drawn = []
    with torch.random.fork_rng(devices=[]):
        for seed in (3, 3, 4):
            torch.manual_seed(seed)
            drawn.append(tokens_to_erase(rows_of(ids), special))
    assert drawn[0].equal(drawn[1])
    assert not drawn[0].equal(drawn[2])


def test_loss_equals_a_loop_over_hidden_tokens() -> None:
    logits = torch.randn(2, 3, 7, generator=seeded(), dtype=torch.float64)
    labels = torch.tensor([[1, -100, 6], [-100, -100, 0]])
    losses = []
    for i in range(2):
        for j in range(3):
            if labels[i, j] != -100:
                exponentials = [math.exp(float(x)) for x in logits[i, j]]
                losses.append(-math.log(exponentials[int(labels[i, j])] / sum(exponentials)))
    expected = sum(losses) / len(losses)
    assert float(language_model_loss(logits, labels)) == pytest.approx(expected)
    flat = language_model_loss(logits.reshape(-1, 7), labels.reshape(-1))
    assert float(flat) == pytest.approx(expected)


def test_golden_loss() -> None:
    loss = language_model_loss(torch.zeros(1, 2, 8), torch.tensor([[3, -100]]))
    assert float(loss) == pytest.approx(math.log(8))


def test_no_hidden_token_costs_nothing() -> None:
    logits = torch.randn(2, 3, 7, requires_grad=True)
    loss = language_model_loss(logits, torch.full((2, 3), -100))
    loss.backward()
    assert loss.item() == 0
    assert logits.grad is not None
    assert (logits.grad == 0).all()


def test_loss_of_half_precision_is_float32() -> None:
    loss = language_model_loss(torch.randn(1, 2, 8).bfloat16(), torch.tensor([[3, 1]]))
    assert loss.dtype == torch.float32


def test_gradient_is_that_of_finite_differences() -> None:
    logits = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    labels = torch.tensor([[1, -100, 3], [-100, 2, 0]])
    assert torch.autograd.gradcheck(lambda x: language_model_loss(x, labels), logits)


@given(
    rows=st.integers(1, 6),
    length=st.integers(1, 12),
    share=st.floats(0, 1),
    seed=st.integers(0, 1000),
)
def test_hidden_tokens_hold_all_there_is_room_for(
    rows: int, length: int, share: float, seed: int
) -> None:
    hidden = torch.rand(rows, length, generator=seeded(seed)) < share
    labels = torch.where(hidden, 7, -100)
    places = hidden_tokens(labels, share)
    n = rows * length
    spread = math.sqrt(n * share * (1 - share))
    room = min(n, math.ceil(n * share + 3 * spread) + 1)
    assert len(places) == room  # whatever was drawn
    assert len(set(places.tolist())) == room
    flat = labels.flatten()
    assert int((flat[places] != -100).sum()) == min(room, int(hidden.sum()))


def test_number_of_hidden_tokens_depends_on_the_shape_only() -> None:
    shapes = [(4, 10), (40,), (2, 20)]
    sizes = {
        len(hidden_tokens(torch.full(shape, label), 0.15))
        for shape in shapes
        for label in (-100, 3)
    }
    assert sizes == {14}  # 6 expected, three deviations of 2.26 more, and one


def test_loss_of_hidden_tokens_is_that_of_all() -> None:
    ids, special = batch(6, 20)
    _, labels = mask_tokens(
        ids, special, mask_id=MASK_ID, vocab_size=VOCAB, generator=seeded(), probability=0.1
    )
    assert 0 < int((labels != -100).sum()) <= 12
    logits = torch.randn(6, 20, VOCAB, generator=seeded(2))
    places = hidden_tokens(labels, 0.1)
    few = language_model_loss(logits.flatten(0, 1)[places], labels.flatten()[places])
    torch.testing.assert_close(few, language_model_loss(logits, labels))
