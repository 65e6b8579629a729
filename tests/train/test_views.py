"""A view with replaced or erased tokens is another view of the same utterance, and needs tokens."""

import itertools

import numpy as np
import pytest
import torch

from ronid.config import EncoderConfig
from ronid.encode.encoder import Encoder, build_encoder
from ronid.encode.rows import TokenBatch
from ronid.encode.transformer import TransformerBackbone
from ronid.errors import UsageError
from ronid.train.views import erased_view, untouchable, view
from tests.helpers.toy_corpus import FAMILIES, TinyEncoder, Toy

CPU = torch.device("cpu")


def build(folder: str, layers: int = 1, width: int = 0) -> Encoder:
    return build_encoder(EncoderConfig(folder, layers, width), CPU, seed=0).train(False)


def test_no_replacement_gives_the_rows_as_they_are(tiny: TinyEncoder, few_utterances: Toy) -> None:
    encoder = build(tiny("bert"))
    rows, index = encoder.prepare(few_utterances.texts), np.arange(5)
    assert torch.equal(view(encoder, rows, index, 0.0), encoder(rows, index))


def test_replacement_changes_vectors_and_follows_the_seed(
    tiny: TinyEncoder, few_utterances: Toy
) -> None:
    encoder = build(tiny("bert"))
    rows, index = encoder.prepare(few_utterances.texts), np.arange(5)
    views = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        views.append(view(encoder, rows, index, 0.5))
    assert torch.equal(views[0], views[1])
    assert not torch.allclose(views[0], views[2])
    assert not torch.allclose(views[0], encoder(rows, index))
    torch.testing.assert_close(views[0].norm(dim=1), torch.ones(5))


def test_special_tokens_and_padding_are_untouchable(tiny: TinyEncoder, few_utterances: Toy) -> None:
    backbone = build(tiny("bert")).backbone
    assert isinstance(backbone, TransformerBackbone)
    batch = backbone.tokenize(few_utterances.texts[:6]).batch(np.arange(6), CPU)
    fixed = untouchable(backbone, batch)
    for row in range(6):
        length = int(batch.mask[row].sum())
        expected = [c in (0, length - 1) or c >= length for c in range(batch.ids.shape[1])]
        assert fixed[row].tolist() == expected


def test_places_outside_of_a_text_are_untouchable_whatever_stands_there(tiny: TinyEncoder) -> None:
    backbone = build(tiny("bert")).backbone
    assert isinstance(backbone, TransformerBackbone)
    words = torch.tensor(backbone.tokenizer.convert_tokens_to_ids(["refund", "money", "[MASK]"]))
    batch = TokenBatch(words[None], torch.tensor([[0, 1, 1]]), None)
    assert untouchable(backbone, batch).tolist() == [[True, False, True]]


@pytest.mark.parametrize("family", FAMILIES)
def test_view_of_picked_rows_is_that_of_their_numbers(
    tiny: TinyEncoder, few_utterances: Toy, family: str
) -> None:
    encoder = build(tiny(family))
    rows, index = encoder.prepare(few_utterances.texts), np.array([3, 3, 0, 9])
    views = []
    for given in (index, rows.pick(index, CPU)):
        torch.manual_seed(0)
        views.append(view(encoder, rows, given, 0.5))
    assert torch.equal(*views)


def test_only_trained_layers_get_a_gradient(tiny: TinyEncoder, few_utterances: Toy) -> None:
    encoder = build(tiny("bert"), layers=1, width=4)
    rows = encoder.prepare(few_utterances.texts)
    weights = torch.rand(3, encoder.dim)
    (view(encoder, rows, np.arange(3), 0.5) * weights).sum().backward()
    backbone = encoder.backbone
    assert isinstance(backbone, TransformerBackbone)
    with_gradient = [
        any(p.grad is not None for p in layer.parameters()) for layer in backbone.layers
    ]
    assert with_gradient == [False] * (len(backbone.layers) - 1) + [True]


def test_vectors_have_no_tokens_to_replace(tiny: TinyEncoder, few_utterances: Toy) -> None:
    encoder = build(tiny("bert"), layers=0, width=4)
    with pytest.raises(UsageError, match="token_replacement"):
        view(encoder, encoder.prepare(few_utterances.texts), np.arange(3), 0.25)


class TestErasedView:
    def test_no_erasure_gives_the_rows_as_they_are(
        self, tiny: TinyEncoder, few_utterances: Toy
    ) -> None:
        encoder = build(tiny("bert"))
        rows, index = encoder.prepare(few_utterances.texts), np.arange(5)
        assert torch.equal(erased_view(encoder, rows, index, 0.0), encoder(rows, index))
        bare = build(tiny("bert"), layers=0, width=4)  # vectors serve where nothing is erased
        assert erased_view(bare, bare.prepare(few_utterances.texts), index, 0.0).shape[0] == 5

    @pytest.mark.parametrize("family", FAMILIES)
    def test_with_all_words_erased_it_is_the_view_of_no_words(
        self, tiny: TinyEncoder, family: str
    ) -> None:
        encoder = build(tiny(family))
        rows, empty = encoder.prepare(["refund money back"]), encoder.prepare([""])
        assert int(empty.lengths[0]) == 2
        seen = erased_view(encoder, rows, np.array([0]), 1.0)
        torch.testing.assert_close(seen, encoder(empty, np.array([0])), rtol=1e-4, atol=1e-5)

    def test_a_part_of_the_words_is_left(self, tiny: TinyEncoder) -> None:
        encoder = build(tiny("bert"))
        words = ["refund", "money", "back"]
        rows = encoder.prepare([" ".join(words)])
        pairs = encoder.prepare([" ".join(pair) for pair in itertools.combinations(words, 2)])
        torch.manual_seed(0)
        seen = erased_view(encoder, rows, np.zeros(20, np.int64), 0.4)  # floor(0.4 * 3) = 1 of 3
        possible = encoder(pairs, np.arange(3))
        gaps = torch.cdist(seen, possible).detach()
        assert float(gaps.min(dim=1).values.max()) < 1e-4
        assert len(set(gaps.argmin(dim=1).tolist())) == 3

    def test_a_row_picked_twice_has_two_views_that_follow_the_seed(
        self, tiny: TinyEncoder, few_utterances: Toy
    ) -> None:
        encoder = build(tiny("bert"))
        rows, index = encoder.prepare(few_utterances.texts), np.tile(np.arange(5), 2)
        views = []
        for seed in (0, 0, 1):
            torch.manual_seed(seed)
            views.append(erased_view(encoder, rows, index, 0.5))
        assert torch.equal(views[0], views[1])
        assert not torch.allclose(views[0], views[2])
        assert not torch.allclose(views[0][:5], views[0][5:])

    def test_vectors_have_no_tokens_to_erase(self, tiny: TinyEncoder, few_utterances: Toy) -> None:
        encoder = build(tiny("bert"), layers=0, width=4)
        with pytest.raises(UsageError, match="token_erasure needs texts"):
            erased_view(encoder, encoder.prepare(few_utterances.texts), np.arange(3), 0.25)
