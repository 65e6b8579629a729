"""The adapter may read which words occur, beside what the frozen encoder made of them."""

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize
from transformers import AutoModel, AutoTokenizer

from ronid.config import EncoderConfig
from ronid.encode.encoder import build_encoder
from ronid.errors import UsageError
from tests.helpers.toy_corpus import FAMILIES, TinyEncoder, Toy

CPU = torch.device("cpu")


def config(name: str, **changes: int | bool) -> EncoderConfig:
    values = {"trainable_layers": 0, "adapter_width": 8, "adapter_reads_words": True, **changes}
    return EncoderConfig(name=name, **values)


@pytest.mark.parametrize("family", FAMILIES)
def test_words_are_the_mean_of_the_states_below_the_first_layer(
    family: str, tiny: TinyEncoder, few_utterances: Toy
) -> None:
    folder, texts = tiny(family), few_utterances.texts[:7]
    rows = build_encoder(config(folder), CPU, seed=0).prepare(texts)
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder)
    for row, text in enumerate(texts):
        ids = tokenizer(text, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            states = model.eval()(input_ids=ids, output_hidden_states=True)
        expected = torch.cat([states[0][0].mean(0), states.hidden_states[0][0].mean(0)])
        torch.testing.assert_close(rows.vectors[row], expected, atol=1e-5, rtol=1e-4)


def test_untrained_adapter_with_words_is_the_plain_encoder(
    tiny: TinyEncoder, few_utterances: Toy
) -> None:
    with_words = build_encoder(config(tiny("bert")), CPU, seed=0)
    without = build_encoder(config(tiny("bert"), adapter_reads_words=False), CPU, seed=0)
    vectors = with_words.embed_all(with_words.prepare(few_utterances.texts))
    plain = without.embed_all(without.prepare(few_utterances.texts))
    torch.testing.assert_close(vectors, plain)


def test_words_reach_the_output_with_gradient(tiny: TinyEncoder, few_utterances: Toy) -> None:
    encoder = build_encoder(config(tiny("bert")), CPU, seed=0)
    assert encoder.adapter is not None
    torch.nn.init.normal_(encoder.adapter.outer.weight)
    rows = encoder.prepare(few_utterances.texts)
    encoder(rows, np.arange(4)).square().mul(torch.rand(4, encoder.dim)).sum().backward()
    gradient = encoder.adapter.inner.weight.grad
    assert gradient is not None
    assert gradient.shape[1] == 2 * encoder.dim
    assert gradient[:, encoder.dim :].abs().sum() > 0


def test_words_need_a_frozen_encoder(tiny: TinyEncoder) -> None:
    with pytest.raises(UsageError, match="adapter_reads_words"):
        build_encoder(config(tiny("bert"), trainable_layers=1), CPU, seed=0)


def test_words_refuse_layers_that_are_unfrozen_later(tiny: TinyEncoder) -> None:
    encoder = build_encoder(config(tiny("bert")), CPU, seed=0)
    with pytest.raises(UsageError, match="adapter_reads_words"):
        encoder.backbone.set_trainable(1)  # as pre-training would


def test_words_need_an_adapter(tiny: TinyEncoder) -> None:
    with pytest.raises(UsageError, match="adapter_width"):
        build_encoder(config(tiny("bert"), adapter_width=0), CPU, seed=0)


def test_given_embeddings_have_no_words() -> None:
    encoder = build_encoder(config("unused"), CPU, seed=0, given_dim=5)
    vectors = np.eye(5, dtype=np.float32)
    out = encoder.embed_all(encoder.prepare(vectors))
    torch.testing.assert_close(out, normalize(torch.from_numpy(vectors), dim=-1))
