"""Masked-language heads: the checkpoint's own, or one tied to the word embeddings."""

import numpy as np
import pytest
import torch
from transformers import AutoModelForMaskedLM

from ronid.encode.cache import FrozenCache
from ronid.encode.language_head import TiedHead, language_head
from ronid.encode.rows import B, TokenRows
from ronid.encode.transformer import TransformerBackbone
from tests.helpers.toy_corpus import FAMILIES, TinyEncoder, Toy

CPU = torch.device("cpu")


@pytest.mark.parametrize("family", FAMILIES)
def test_own_head_gives_the_logits_of_the_whole_model(
    tiny: TinyEncoder, few_utterances: Toy, family: str
) -> None:
    folder = tiny(family, masked_lm=True)
    backbone = TransformerBackbone(folder, 1, 30, CPU)
    head = language_head(backbone)
    assert not isinstance(head, TiedHead)
    rows = backbone.prepare(few_utterances.texts[:6], FrozenCache())
    assert isinstance(rows, TokenRows)
    batch = rows.batch(np.arange(6), CPU)
    first: list[torch.Tensor] = []

    def noted(batch: B) -> B:
        """Change nothing, but see where utterances begin."""
        first.append(batch.ids.flatten() == backbone.tokenizer.cls_token_id)
        return batch.with_ids(batch.ids)

    whole = AutoModelForMaskedLM.from_pretrained(folder).train(False)
    with torch.no_grad():
        expected = whole(input_ids=batch.ids, attention_mask=batch.mask).logits
        states = backbone.states(rows, rows.pick(np.arange(6), CPU), noted)
        logits = head(states[first.pop().roll(1)])
    order = np.argsort(rows.lengths, kind="stable") if backbone.packs else np.arange(6)
    torch.testing.assert_close(logits, expected[order, 1], atol=1e-5, rtol=0)


@pytest.mark.parametrize("family", FAMILIES)
def test_bare_encoder_gets_a_head_that_shares_its_words(tiny: TinyEncoder, family: str) -> None:
    backbone = TransformerBackbone(tiny(family), 1, 30, CPU)
    head = language_head(backbone)
    words = backbone.model.get_input_embeddings().weight
    assert isinstance(head, TiedHead)
    assert head(torch.randn(3, backbone.dim)).shape == (3, len(words))
    assert all(p is not words for p in head.parameters())
    before = head(torch.ones(1, backbone.dim))
    with torch.no_grad():
        words.mul_(2.0)
    torch.testing.assert_close(head(torch.ones(1, backbone.dim)), 2 * before)


@pytest.mark.parametrize("masked_lm", [False, True])  # the generator's own head is not known here
def test_tied_head_fits_words_narrower_than_the_states(tiny: TinyEncoder, masked_lm: bool) -> None:
    backbone = TransformerBackbone(tiny("electra", masked_lm), 1, 30, CPU)
    head = language_head(backbone)
    words = backbone.model.get_input_embeddings().weight
    assert words.shape[1] < backbone.dim
    assert head(torch.randn(3, backbone.dim)).shape == (3, len(words))


def test_tied_head_golden() -> None:
    words = torch.nn.Embedding(2, 2)
    head = TiedHead(words, 2)
    with torch.no_grad():
        words.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 3.0]]))
        head.dense.weight.copy_(torch.eye(2))
        head.dense.bias.zero_()
        head.bias.copy_(torch.tensor([0.0, 0.5]))
    logits = head(torch.tensor([[2.0, -2.0]])).detach()
    # GELU gives (1.9545, -0.0455); the layer norm of two numbers is (1, -1).
    torch.testing.assert_close(logits, torch.tensor([[1.0, -2.5]]), atol=1e-4, rtol=0)
