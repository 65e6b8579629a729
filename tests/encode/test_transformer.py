"""The cut model says what the whole one says, for every family and every cut."""

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize
from transformers import AutoModel, AutoTokenizer

from ronid.config import ALL_LAYERS
from ronid.encode.cache import FrozenCache
from ronid.encode.encoder import Encoder
from ronid.encode.rows import B, TokenRows, VectorRows
from ronid.encode.transformer import TransformerBackbone, masked_mean
from ronid.errors import RonidWarning, UsageError
from tests.helpers.toy_corpus import FAMILIES, TinyEncoder, Toy

CPU = torch.device("cpu")
CUTS = (0, 1, 2, ALL_LAYERS)


def build(name: str, cut: int = 1, length: int = 30) -> TransformerBackbone:
    return TransformerBackbone(name, cut, length, CPU)


def everything(rows: TokenRows | VectorRows) -> np.ndarray:
    return np.arange(len(rows))


@torch.no_grad()
def reference(folder: str, texts: list[str]) -> Tensor:
    """Embed each text alone with the library's own model: masked mean, unit length."""
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder)
    model.train(False)
    states = [model(**_inputs(tokenizer, text))[0][0].mean(0) for text in texts]
    return normalize(torch.stack(states), dim=-1)


def _inputs(tokenizer: AutoTokenizer, text: str) -> dict[str, Tensor]:
    return dict(tokenizer(text, return_tensors="pt", return_token_type_ids=False))


class Calls:
    """Counts how often each layer runs, and whether with gradient."""

    def __init__(self, backbone: TransformerBackbone) -> None:
        self.count = [0] * len(backbone.layers)
        self.gradient = [False] * len(backbone.layers)
        for i, layer in enumerate(backbone.layers):
            layer.register_forward_hook(self._note(i))

    def _note(self, i: int):  # type: ignore[no-untyped-def]
        def hook(_module: nn.Module, _inputs: object, output: Tensor | tuple[Tensor]) -> None:
            states = output[0] if isinstance(output, tuple) else output
            self.count[i] += 1
            self.gradient[i] |= states.requires_grad

        return hook


@pytest.mark.parametrize("masked_lm", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_cut_gives_the_vectors_of_the_whole_model(
    tiny: TinyEncoder, few_utterances: Toy, family: str, masked_lm: bool
) -> None:
    folder, texts = tiny(family, masked_lm), few_utterances.texts[:20]
    expected = reference(folder, texts)
    for cut in CUTS:
        encoder = Encoder(build(folder, cut), None)
        rows = encoder.prepare(texts)
        torch.testing.assert_close(encoder.embed_all(rows), expected, atol=1e-5, rtol=0)
        with torch.no_grad():
            vectors = encoder(rows, everything(rows))
        torch.testing.assert_close(vectors, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("family", FAMILIES)
def test_altered_tokens_run_all_layers_and_agree_with_the_whole_model(
    tiny: TinyEncoder, few_utterances: Toy, family: str
) -> None:
    backbone = build(tiny(family), 1)
    rows = backbone.prepare(few_utterances.texts[:5], FrozenCache())
    assert isinstance(rows, TokenRows)
    shown: list[Tensor] = []

    def alter(batch: B) -> B:
        shown.append(~batch.outside.flatten())
        return batch.with_ids(second_masked(batch.ids))

    def second_masked(ids: Tensor) -> Tensor:
        """Put the mask token behind every first token."""
        first = ids.flatten() == backbone.tokenizer.cls_token_id
        mask = first.roll(1).view(ids.shape)
        return torch.where(mask, backbone.tokenizer.mask_token_id, ids)

    batch = rows.batch(np.arange(5), CPU)
    altered = second_masked(batch.ids)
    assert (altered[:, 1] == backbone.tokenizer.mask_token_id).all()
    assert int((altered != batch.ids).sum()) == 5
    model = AutoModel.from_pretrained(tiny(family)).train(False)
    with torch.no_grad():
        expected = model(input_ids=altered, attention_mask=batch.mask)[0]
        states = backbone.states(rows, rows.pick(np.arange(5), CPU), alter)
        pooled = backbone(rows, np.arange(5), alter)
    # The places come in the order in which they were shown: packed rows go by their length.
    order = np.argsort(rows.lengths, kind="stable") if backbone.packs else np.arange(5)
    inside = batch.mask.bool()[order]
    torch.testing.assert_close(states[shown[0]], expected[order][inside], atol=1e-5, rtol=0)
    torch.testing.assert_close(pooled, masked_mean(expected, batch.mask), atol=1e-5, rtol=0)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("cut", CUTS)
def test_padding_never_changes_a_vector(
    tiny: TinyEncoder, few_utterances: Toy, family: str, cut: int
) -> None:
    encoder = Encoder(build(tiny(family), cut), None)
    texts = ["refund", "please " * 20, *few_utterances.texts[:6]]
    together = encoder.embed_all(encoder.prepare(texts))
    padded = encoder(encoder.prepare(texts), np.arange(len(texts))).detach()
    torch.testing.assert_close(padded, together, atol=1e-5, rtol=0)
    for i, text in enumerate(texts):
        alone = encoder.embed_all(encoder.prepare([text]))[0]
        torch.testing.assert_close(alone, together[i], atol=1e-5, rtol=0)


@pytest.mark.parametrize("family", FAMILIES)
def test_frozen_layers_run_once(tiny: TinyEncoder, few_utterances: Toy, family: str) -> None:
    backbone, cache = build(tiny(family), 1), FrozenCache()
    calls = Calls(backbone)
    rows = backbone.prepare(few_utterances.texts, cache)
    frozen = calls.count[:-1]
    assert min(frozen) > 0
    assert calls.count[-1] == 0
    for _ in range(3):
        backbone(rows, everything(rows))
    assert calls.count[:-1] == frozen
    assert calls.count[-1] == 3
    backbone.prepare(few_utterances.texts, cache)
    assert calls.count[:-1] == frozen
    assert cache.hits == 1


def test_cache_on_disk_serves_a_new_backbone(
    tiny: TinyEncoder, few_utterances: Toy, tmp_path: Path
) -> None:
    first = build(tiny("bert"), 1)
    kept = first(first.prepare(few_utterances.texts, FrozenCache(tmp_path)), np.arange(60))
    second, cache = build(tiny("bert"), 1), FrozenCache(tmp_path)
    calls = Calls(second)
    again = second(second.prepare(few_utterances.texts, cache), np.arange(60))
    assert cache.hits == 1
    assert calls.count == [0, 0, 1]
    assert torch.equal(kept, again)


def test_other_texts_weights_or_cuts_miss_the_cache(tiny: TinyEncoder, few_utterances: Toy) -> None:
    backbone, cache, texts = build(tiny("bert"), 1), FrozenCache(), few_utterances.texts
    before = backbone.prepare(texts, cache)
    backbone.prepare([*texts[:-1], "something else"], cache)
    backbone.prepare(texts[::-1], cache)
    with torch.no_grad():
        next(backbone.layers[0].parameters()).add_(0.5)
    after = backbone.prepare(texts, cache)
    backbone.set_trainable(2)
    backbone.prepare(texts, cache)
    assert cache.hits == 0
    assert isinstance(before, TokenRows)
    assert isinstance(after, TokenRows)
    assert not torch.equal(before.hidden, after.hidden)  # type: ignore[arg-type]


def test_trained_upper_layers_still_hit_the_cache(tiny: TinyEncoder, few_utterances: Toy) -> None:
    backbone, cache = build(tiny("bert"), 1), FrozenCache()
    backbone.prepare(few_utterances.texts, cache)
    with torch.no_grad():
        next(backbone.layers[-1].parameters()).add_(0.5)
    backbone.prepare(few_utterances.texts, cache)
    assert cache.hits == 1


@pytest.mark.parametrize("masked_lm", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_only_the_last_layers_learn(
    tiny: TinyEncoder, few_utterances: Toy, family: str, masked_lm: bool
) -> None:
    for cut in (1, 2, ALL_LAYERS):
        backbone = build(tiny(family, masked_lm), cut)
        before = {n: p.detach().clone() for n, p in backbone.model.named_parameters()}
        rows = backbone.prepare(few_utterances.texts, FrozenCache())
        optimiser = torch.optim.SGD([p for p in backbone.parameters() if p.requires_grad], lr=1.0)
        backbone.train(True)
        backbone(rows, np.arange(8)).square().sum().backward()
        optimiser.step()
        changed = {n for n, p in backbone.model.named_parameters() if not p.equal(before[n])}
        upper = {id(p) for layer in backbone._upper for p in layer.parameters()}
        allowed = {
            n for n, p in backbone.model.named_parameters() if cut == ALL_LAYERS or id(p) in upper
        }
        assert changed <= allowed
        for layer in backbone._upper:
            assert any(p.grad is not None and p.grad.any() for p in layer.parameters())
        if cut == ALL_LAYERS:
            words = backbone.model.get_input_embeddings().weight
            assert words.grad is not None
            assert words.grad.any()
        assert set(backbone.trained_state()) == allowed


@pytest.mark.parametrize("family", FAMILIES)
def test_altered_tokens_have_gradient_in_the_trained_layers_only(
    tiny: TinyEncoder, few_utterances: Toy, family: str
) -> None:
    backbone = build(tiny(family), 1)
    rows = backbone.prepare(few_utterances.texts[:5], FrozenCache())
    assert isinstance(rows, TokenRows)
    calls = Calls(backbone)
    backbone.states(rows, rows.pick(np.arange(5), CPU), lambda batch: batch.with_ids(batch.ids))
    assert min(calls.count) == 1
    assert max(calls.count) == 1
    assert calls.gradient == [False] * (len(backbone.layers) - 1) + [True]


def test_dropout_is_on_in_trained_layers_only(tiny: TinyEncoder) -> None:
    backbone = build(tiny("bert"), 1)
    backbone.train(True)
    assert [layer.training for layer in backbone.layers] == [False, False, True]
    assert not backbone.model.embeddings.training
    backbone.train(False)
    assert not backbone.layers[-1].training
    backbone.set_trainable(ALL_LAYERS)
    backbone.train(True)
    assert backbone.model.embeddings.training


@pytest.mark.parametrize("family", FAMILIES[:-1])  # ModernBERT has no dropout
def test_dropout_in_frozen_layers_changes_what_is_trained_on_and_not_what_is_read(
    tiny: TinyEncoder, few_utterances: Toy, family: str
) -> None:
    plain = build(tiny(family), 1)
    noisy = TransformerBackbone(tiny(family), 1, 30, CPU, frozen_dropout=True)
    for layer in (*plain.layers[-1:], *noisy.layers[-1:]):
        for module in layer.modules():
            module.p = 0.0  # so that all noise comes from below
    found: dict[bool, list[Tensor]] = {}
    for backbone in (plain, noisy):
        rows = backbone.prepare(few_utterances.texts, FrozenCache())
        for mode in (False, True):
            backbone.train(mode)
            found.setdefault(mode, []).append(backbone(rows, everything(rows)).detach())
    torch.testing.assert_close(*found[False], atol=1e-5, rtol=0)
    torch.testing.assert_close(found[True][0], found[False][0], atol=1e-5, rtol=0)
    assert (found[True][1] - found[False][1]).abs().max() > 1e-3
    noisy(rows, everything(rows)).sum().backward()
    assert all(p.grad is None for layer in noisy.layers[:-1] for p in layer.parameters())


def test_all_layers_by_number_means_all(tiny: TinyEncoder) -> None:
    backbone = build(tiny("bert"), 3)
    assert backbone.trainable_layers == ALL_LAYERS
    assert backbone.frozen_layers == 0


def test_impossible_number_of_layers_is_refused(tiny: TinyEncoder) -> None:
    with pytest.raises(UsageError, match="trainable_layers is -2; give 0 to 3 or -1"):
        build(tiny("bert"), -2)


def test_long_texts_are_cut_with_a_warning_that_counts_them(tiny: TinyEncoder) -> None:
    backbone = build(tiny("bert"), 0, length=8)
    texts = ["please " * 30, "refund", "money " * 7]
    with pytest.warns(RonidWarning, match="2 of 3 utterances are longer than 8 tokens"):
        rows = backbone.tokenize(texts)
    assert rows.lengths.tolist() == [8, 3, 8]
    ends = rows.ids[torch.from_numpy(rows.starts[1:] - 1)]
    assert set(ends.tolist()) == {backbone.tokenizer.sep_token_id}


def test_short_texts_pass_without_a_warning(tiny: TinyEncoder) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        build(tiny("bert"), 0).tokenize(["refund please"])


@pytest.mark.parametrize("family", FAMILIES)
def test_texts_are_cut_where_the_model_has_no_more_positions(
    tiny: TinyEncoder, family: str
) -> None:
    encoder = Encoder(build(tiny(family), 0, length=512), None)
    with pytest.warns(RonidWarning, match="were cut"):
        rows = encoder.prepare(["please " * 600, "refund"])
    assert torch.isfinite(encoder.embed_all(rows)).all()


def test_model_without_a_list_of_layers_is_refused(tiny: TinyEncoder) -> None:
    from ronid.encode.running import _find_layers

    model = nn.Linear(2, 2)
    model.config = AutoModel.from_pretrained(tiny("bert")).config  # type: ignore[assignment]
    with pytest.raises(UsageError, match="'Linear' has no list of 3 layers"):
        _find_layers(model)


def test_masked_mean_equals_a_loop_and_ignores_padding() -> None:
    hidden = torch.randn(3, 4, 2, generator=torch.Generator().manual_seed(0))
    mask = torch.tensor([[1, 1, 0, 0], [1, 1, 1, 1], [1, 0, 0, 0]])
    expected = torch.stack([hidden[i, : int(mask[i].sum())].mean(0) for i in range(3)])
    torch.testing.assert_close(masked_mean(hidden, mask), expected)
    noisy = hidden + 100 * (1 - mask)[..., None]
    torch.testing.assert_close(masked_mean(noisy, mask), expected)
    assert masked_mean(torch.tensor([[[2.0], [4.0]]]), torch.ones(1, 2)).tolist() == [[3.0]]
    assert masked_mean(torch.ones(1, 2, 3), torch.zeros(1, 2)).tolist() == [[0.0, 0.0, 0.0]]
