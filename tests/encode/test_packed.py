"""Batches without padding give what padded ones give, in vectors and in gradients."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from ronid.config import ALL_LAYERS
from ronid.encode import packed
from ronid.encode.cache import FrozenCache
from ronid.encode.packed import Layout
from ronid.encode.rows import BOX_ROWS, B, Pick, TokenRows
from ronid.encode.running import _Copies
from ronid.encode.transformer import TransformerBackbone
from tests.helpers.toy_corpus import FAMILIES, TinyEncoder, Toy

CPU = torch.device("cpu")
PACKED = ("bert", "roberta", "mpnet")
LENGTHS = st.lists(st.integers(1, 7), min_size=1, max_size=8).map(sorted)


def build(name: str, cut: int = ALL_LAYERS) -> TransformerBackbone:
    return TransformerBackbone(name, cut, 30, CPU).train(False)


def prepare(backbone: TransformerBackbone, texts: list[str]) -> TokenRows:
    rows = backbone.prepare(texts, FrozenCache())
    assert isinstance(rows, TokenRows)
    return rows


def layout_of(lengths: list[int], filling: int = 0, more: int = 0) -> Layout:
    """Return the layout of rows of these lengths, shortest first, in two boxes if it can be."""
    assert lengths == sorted(lengths)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    rows = TokenRows(torch.zeros(int(starts[-1]), dtype=torch.int32), starts, 0)
    half = len(lengths) // 2
    parts = [part for part in (lengths[:half], lengths[half:]) if part]
    boxes = tuple((len(part), part[-1] + more) for part in parts)
    return rows.pack(Pick(torch.arange(len(lengths)), sum(lengths) + filling, boxes)).layout


def gradients(
    backbone: TransformerBackbone, rows: TokenRows, pick: Pick
) -> tuple[Tensor, dict[str, Tensor]]:
    """Return the vectors of a batch, and what one loss of them asks of every weight."""
    backbone.zero_grad(set_to_none=True)
    vectors = backbone(rows, pick)
    factors = torch.randn(vectors.shape, generator=torch.Generator().manual_seed(0))
    (vectors * factors).sum().backward()
    found = {n: p.grad for n, p in backbone.model.named_parameters() if p.grad is not None}
    return vectors.detach(), found


def assert_same_work(backbone: TransformerBackbone, rows: TokenRows, picks: list[Pick]) -> None:
    """Assert that `picks` of the same rows run packed as the first of them runs padded."""
    assert backbone.packs
    backbone.packs = False
    expected, asked = gradients(backbone, rows, picks[0])
    backbone.packs = True
    assert asked
    for pick in picks:
        vectors, found = gradients(backbone, rows, pick)
        torch.testing.assert_close(vectors, expected, atol=1e-5, rtol=1e-5)
        assert found.keys() == asked.keys()
        for name, gradient in asked.items():
            assert torch.allclose(found[name], gradient, atol=1e-4, rtol=1e-3), name


def widened(pick: Pick, filling: int = 13, more: int = 5) -> Pick:
    boxes = tuple((number, width + more) for number, width in pick.boxes)
    return replace(pick, tokens=pick.tokens + filling, boxes=boxes)


@pytest.mark.parametrize("count", [30, 4 * BOX_ROWS])
@pytest.mark.parametrize("cut", [1, 2, ALL_LAYERS])
@pytest.mark.parametrize("family", PACKED)
def test_packed_vectors_and_gradients_are_those_of_padded_batches(
    tiny: TinyEncoder, few_utterances: Toy, family: str, cut: int, count: int
) -> None:
    backbone = build(tiny(family, masked_lm=count == 30), cut)
    rows = prepare(backbone, ["refund", "please " * 20, *few_utterances.texts[:20]])
    assert (rows.hidden is None) == (cut == ALL_LAYERS)
    # Rows in no order, some twice, together longer than the model has positions.
    index = np.random.default_rng(0).integers(0, len(rows), count)
    pick = rows.pick(np.append(index, [0, 1]), CPU)
    assert pick.tokens > 40
    assert len(pick.boxes) == (1 if count < 4 * BOX_ROWS else 2)
    assert_same_work(
        backbone, rows, [pick, widened(pick), widened(pick, 0, 3), widened(pick, 64, 0)]
    )


@pytest.mark.parametrize("family", PACKED)
def test_rows_of_any_lengths_agree(tiny: TinyEncoder, family: str) -> None:
    backbone = build(tiny(family), 1)
    longest = prepare(backbone, ["please " * 12]).lengths[0] - 2

    @given(
        lengths=st.lists(st.integers(1, int(longest)), min_size=1, max_size=6),
        times=st.sampled_from([1, 4 * BOX_ROWS]),
        filling=st.integers(0, 20),
        more=st.integers(0, 10),
    )
    def check(lengths: list[int], times: int, filling: int, more: int) -> None:
        rows = prepare(backbone, ["please " * n for n in lengths])
        index = np.random.default_rng(0).permutation(np.arange(len(rows)).repeat(times))
        pick = rows.pick(index, CPU)
        assert_same_work(backbone, rows, [pick, widened(pick, filling, more)])

    check()


@pytest.mark.parametrize("family", PACKED)
def test_altered_tokens_agree_and_filling_is_shown_as_outside(
    tiny: TinyEncoder, few_utterances: Toy, family: str
) -> None:
    backbone = build(tiny(family), 1)
    rows = prepare(backbone, few_utterances.texts[:6])
    pick = widened(rows.pick(np.arange(6), CPU))
    shown: list[Tensor] = []

    def alter(batch: B) -> B:
        shown.append(batch.outside)
        # Words only: a padded RoBERTa would take a padding token in the text for padding.
        words = (batch.ids > 4) & ~batch.outside
        others = 5 + (batch.ids - 4) % (len(backbone.tokenizer) - 5)
        return batch.with_ids(torch.where(words, others, batch.ids))

    with torch.no_grad():
        states = backbone.states(rows, pick, alter)
        pooled = backbone(rows, pick, alter)
        backbone.packs = False
        padded = backbone.states(rows, pick, alter)
        expected = backbone(rows, pick, alter)
    torch.testing.assert_close(pooled, expected, atol=1e-5, rtol=1e-5)
    assert len(states) == pick.tokens
    assert int(shown[0].sum()) == 13
    assert shown[0][-13:].all()
    order = np.argsort(rows.lengths, kind="stable")  # packed rows go by their length
    inside = ~shown[2][order]
    in_order = padded.unflatten(0, shown[2].shape)[order][inside]
    torch.testing.assert_close(states[~shown[0]], in_order, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("family", PACKED)
def test_rows_without_some_tokens_are_those_of_the_shorter_texts(
    tiny: TinyEncoder, few_utterances: Toy, family: str
) -> None:
    backbone = build(tiny(family), 1)
    rows = prepare(backbone, few_utterances.texts[:6])
    pick = widened(rows.pick(np.arange(6), CPU))

    def drop(batch: B) -> B:
        return batch.without((batch.ids > 4) & (batch.ids % 2 == 0))

    texts = [rows.ids[a:b] for a, b in itertools.pairwise(rows.starts)]
    kept = [text[(text <= 4) | (text % 2 == 1)] for text in texts]
    starts = np.cumsum([0, *map(len, kept)])
    shorter = TokenRows(torch.cat(kept), starts, rows.pad_id)
    assert all(len(text) >= 2 for text in kept)
    assert len(shorter.ids) < len(rows.ids)
    with torch.no_grad():
        dropped = backbone(rows, pick, drop)
        expected = backbone(shorter, np.arange(6))
        backbone.packs = False
        padded = backbone(rows, pick, drop)
    torch.testing.assert_close(dropped, expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(padded, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("family", PACKED)
def test_rows_beside_each_other_do_not_see_each_other(
    tiny: TinyEncoder, few_utterances: Toy, family: str
) -> None:
    backbone = build(tiny(family), ALL_LAYERS)
    rows = prepare(backbone, few_utterances.texts[:4])
    with torch.no_grad():
        together = backbone(rows, np.arange(4))
        for row in range(4):
            alone = backbone(rows, np.array([row]))[0]
            torch.testing.assert_close(together[row], alone, atol=1e-5, rtol=1e-5)
        other = replace(rows, ids=rows.ids.clone())
        other.ids[: int(rows.starts[1])] = 9  # other words in the first row only
        changed = backbone(other, np.arange(4))
    torch.testing.assert_close(changed[1:], together[1:], atol=1e-6, rtol=1e-6)
    assert not torch.allclose(changed[0], together[0])


@pytest.mark.parametrize("family", PACKED)
def test_attention_weights_are_dropped_in_training_only(
    tiny: TinyEncoder, few_utterances: Toy, family: str
) -> None:
    backbone = build(tiny(family))
    rows = prepare(backbone, few_utterances.texts[:6])
    for module in backbone.model.modules():  # leaves dropout to the attention
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    with torch.no_grad():
        still = backbone(rows, np.arange(6))
        torch.testing.assert_close(backbone.train(True)(rows, np.arange(6)), still)
        for layer in backbone.layers:
            attention = layer.attention.attn if family == "mpnet" else layer.attention.self
            attention.dropout.p = 0.5
        assert not torch.allclose(backbone(rows, np.arange(6)), still, atol=1e-3)
        torch.testing.assert_close(backbone.train(False)(rows, np.arange(6)), still)


@pytest.mark.parametrize("family", FAMILIES)
def test_other_families_fall_back_to_padding(
    tiny: TinyEncoder, few_utterances: Toy, monkeypatch: pytest.MonkeyPatch, family: str
) -> None:
    backbone = build(tiny(family), 1)
    assert backbone.packs == (family in PACKED)
    rows = prepare(backbone, few_utterances.texts[:6])
    ran: list[str] = []

    def noting(name: str) -> Callable[..., Any]:
        own = getattr(backbone, name)

        def run(*given: Any) -> Any:
            ran.append(name)
            return own(*given)

        return run

    for name in ("_packed", "_padded"):
        monkeypatch.setattr(backbone, name, noting(name))
    pick = rows.pick(np.arange(6), CPU)
    plain = backbone(rows, pick)
    torch.testing.assert_close(backbone(rows, widened(pick)), plain, atol=1e-5, rtol=1e-5)
    assert len(backbone.states(rows, pick)) == (
        pick.tokens if backbone.packs else len(pick) * pick.width
    )
    assert set(ran) == {"_packed" if family in PACKED else "_padded"}


@pytest.mark.parametrize("family", PACKED)
def test_model_is_its_own_again_after_a_packed_batch(
    tiny: TinyEncoder, few_utterances: Toy, family: str
) -> None:
    backbone = build(tiny(family))
    rows = prepare(backbone, few_utterances.texts[:3])
    before = backbone.model.config._attn_implementation
    batch = rows.batch(np.arange(3), CPU)
    with torch.no_grad():
        plain = backbone.model(input_ids=batch.ids, attention_mask=batch.mask)[0]
        backbone(rows, np.arange(3))
        again = backbone.model(input_ids=batch.ids, attention_mask=batch.mask)[0]
    assert torch.equal(plain, again)

    def fail(*_: Any) -> None:
        raise KeyboardInterrupt

    backbone.layers[1].register_forward_hook(fail)
    with pytest.raises(KeyboardInterrupt):
        backbone(rows, np.arange(3))
    assert backbone.model.config._attn_implementation == before
    assert packed._layout.get() is None


@given(lengths=LENGTHS, filling=st.integers(0, 5), more=st.integers(0, 4))
def test_pad_and_unpad_are_inverse(lengths: list[int], filling: int, more: int) -> None:
    layout = layout_of(lengths, filling, more)
    count = sum(lengths)
    tokens = torch.arange(2.0 * (count + filling)).view(-1, 2)
    padded = layout.pad(tokens)
    assert padded.shape == (sum(rows * width for rows, width in layout.boxes), 2)
    assert torch.equal(layout.unpad(padded)[:count], tokens[:count])
    there = layout.pad(layout.unpad(padded))
    assert torch.equal(there[layout.mask], padded[layout.mask])


@given(lengths=LENGTHS, filling=st.integers(0, 5), more=st.integers(0, 4))
def test_every_row_stands_at_the_left_of_its_line_of_its_box(
    lengths: list[int], filling: int, more: int
) -> None:
    layout = layout_of(lengths, filling, more)
    tokens = torch.arange(2.0 * (sum(lengths) + filling)).view(-1, 2)
    boxes = layout.split(layout.pad(tokens))
    assert [tuple(box.shape) for box in boxes] == [(*box, 2) for box in layout.boxes]
    lines = [line for box in boxes for line in box]
    parts = tokens[: sum(lengths)].split(lengths)
    for line, part in zip(lines, parts, strict=True):
        assert torch.equal(line[: len(part)], part)


@given(lengths=LENGTHS, filling=st.integers(1, 5), more=st.integers(1, 4))
def test_gradient_goes_back_to_where_values_came_from_and_never_to_filling(
    lengths: list[int], filling: int, more: int
) -> None:
    layout = layout_of(lengths, filling, more)
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randn(len(layout.valid), 3, generator=generator).requires_grad_()
    factors = torch.randn(len(layout.mask), 3, generator=generator)
    layout.pad(tokens).mul(factors).sum().backward()
    assert tokens.grad is not None
    assert torch.equal(tokens.grad[layout.valid], factors[layout.mask])
    assert not tokens.grad[~layout.valid].any()

    padded = torch.randn(len(layout.mask), 3, generator=generator).requires_grad_()
    factors = torch.randn(len(layout.valid), 3, generator=generator)
    layout.unpad(padded).mul(factors).sum().backward()
    assert padded.grad is not None
    assert torch.equal(padded.grad[layout.mask], factors[layout.valid])
    assert not padded.grad[~layout.mask].any()


def test_gradients_are_those_of_finite_differences() -> None:
    layout = layout_of([1, 2, 3])  # without filling: outside of the mask nothing is promised
    tokens = torch.randn(6, 2, dtype=torch.float64, requires_grad=True)
    weights = layout.mask.unsqueeze(-1)
    assert torch.autograd.gradcheck(lambda x: layout.pad(x) * weights, tokens)
    assert torch.autograd.gradcheck(lambda x: layout.unpad(layout.pad(x)), tokens)


@given(
    lengths=st.lists(st.integers(1, 7), min_size=1, max_size=8),
    times=st.sampled_from([1, 4 * BOX_ROWS]),
    filling=st.integers(0, 5),
    more=st.integers(0, 4),
)
def test_means_equal_a_loop_in_the_order_of_the_batch_and_ignore_filling(
    lengths: list[int], times: int, filling: int, more: int
) -> None:
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    values = torch.randn(int(starts[-1]), 3, generator=torch.Generator().manual_seed(0))
    rows = TokenRows(torch.zeros(len(values), dtype=torch.int32), starts, 0, values)
    index = np.random.default_rng(0).permutation(np.arange(len(lengths)).repeat(times))
    batch = rows.pack(widened(rows.pick(index, CPU), filling, more))
    assert batch.hidden is not None
    own = [part.mean(0) for part in values.split(lengths)]
    expected = torch.stack([own[i] for i in index])
    torch.testing.assert_close(batch.layout.means(batch.hidden), expected)
    noisy = torch.where(batch.layout.valid[:, None], batch.hidden, 1e6)
    torch.testing.assert_close(batch.layout.means(noisy), expected)
    assert batch.layout.means(noisy.bfloat16()).dtype == torch.float32


def test_copies_of_frozen_weights_ask_for_no_gradient() -> None:
    trained = torch.randn(3, 2, requires_grad=True)
    frozen = torch.randn(4, 2)
    one, two = _Copies.apply(trained, frozen)
    assert (one.dtype, two.dtype) == (torch.bfloat16, torch.bfloat16)
    assert (one.requires_grad, two.requires_grad) == (True, False)
    (one.float().sum() + two.float().sum()).backward()
    assert trained.grad is not None
    torch.testing.assert_close(trained.grad, torch.ones(3, 2))
