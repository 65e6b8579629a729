"""The encoder a method trains: adapter, given vectors, saved weights, fingerprint."""

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import gelu, normalize

from ronid.config import ALL_LAYERS, EncoderConfig
from ronid.encode.encoder import Adapter, Encoder, VectorBackbone, build_encoder
from ronid.errors import UsageError
from tests.helpers.toy_corpus import TinyEncoder, Toy

CPU = torch.device("cpu")


def build(name: str, layers: int = 1, adapter: int = 0, seed: int = 0) -> Encoder:
    config = EncoderConfig(name=name, trainable_layers=layers, adapter_width=adapter)
    return build_encoder(config, CPU, seed=seed)


def given_vectors(dim: int = 5) -> Encoder:
    config = EncoderConfig(trainable_layers=0, adapter_width=8)
    return build_encoder(config, CPU, seed=0, given_dim=dim)


def vectors(n: int, dim: int = 5, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, dim)).astype(np.float32)


def test_new_adapter_changes_nothing() -> None:
    points = torch.from_numpy(vectors(6))
    adapter = Adapter(5, 16, dropout=0.5)
    torch.testing.assert_close(adapter(points), normalize(points, dim=-1))


def test_adapter_equals_its_formula_and_ignores_scale() -> None:
    adapter = Adapter(5, 16, dropout=0.5).train(False)
    with torch.no_grad():
        adapter.outer.weight.normal_(generator=torch.Generator().manual_seed(0))
    points = torch.from_numpy(vectors(6))
    unit = normalize(points, dim=-1)
    hidden = gelu(unit @ adapter.inner.weight.T + adapter.inner.bias)
    expected = unit + hidden @ adapter.outer.weight.T + adapter.outer.bias
    torch.testing.assert_close(adapter(points), expected)
    torch.testing.assert_close(adapter(100 * points), expected, atol=1e-5, rtol=1e-5)


def test_first_adapter_follows_the_seed_alone(tiny: TinyEncoder) -> None:
    torch.manual_seed(1)
    one = build(tiny("bert"), 0, adapter=8, seed=3)
    state = torch.get_rng_state()
    two = build(tiny("bert"), 0, adapter=8, seed=3)
    other = build(tiny("bert"), 0, adapter=8, seed=4)
    assert one.adapter is not None
    assert two.adapter is not None
    assert other.adapter is not None
    assert torch.equal(one.adapter.inner.weight, two.adapter.inner.weight)
    assert not torch.equal(one.adapter.inner.weight, other.adapter.inner.weight)
    assert torch.equal(torch.get_rng_state(), state)


def test_vectors_have_length_one(tiny: TinyEncoder, few_utterances: Toy) -> None:
    for encoder in (build(tiny("bert")), build(tiny("bert"), 0, adapter=8)):
        rows = encoder.prepare(few_utterances.texts)
        lengths = encoder.embed_all(rows).norm(dim=1)
        torch.testing.assert_close(lengths, torch.ones(60))
        assert encoder.dim == 32


class TestHead:
    def build(self, tiny: TinyEncoder, head: str, seed: int = 0, **more: Any) -> Encoder:
        config = EncoderConfig(name=tiny("bert"), head=head, **more)  # type: ignore[arg-type]
        return build_encoder(config, torch.device("cpu"), seed=seed, n_intents=5)

    @pytest.mark.parametrize(
        ("head", "dim"), [("tanh", 32), ("linear", 32), ("tanh_logits", 5), ("relu_logits", 5)]
    )
    def test_gives_features_of_its_width(
        self, tiny: TinyEncoder, few_utterances: Toy, head: str, dim: int
    ) -> None:
        encoder = self.build(tiny, head, normalise=False)
        found = encoder.embed_all(encoder.prepare(few_utterances.texts))
        assert encoder.dim == dim
        assert found.shape == (60, dim)
        assert not torch.allclose(found.norm(dim=1), torch.ones(60), atol=0.05)

    def test_tanh_is_a_dense_layer_over_the_pooled_vector(
        self, tiny: TinyEncoder, few_utterances: Toy
    ) -> None:
        encoder = self.build(tiny, "tanh", normalise=False)
        rows = encoder.prepare(few_utterances.texts)
        plain = encoder.backbone(rows, np.arange(60))
        weights = encoder.trained_state()
        expected = torch.tanh(
            plain @ weights["head.layers.0.weight"].T + weights["head.layers.0.bias"]
        )
        torch.testing.assert_close(encoder.embed_all(rows), expected.detach())

    def test_is_saved_and_put_back(self, tiny: TinyEncoder, few_utterances: Toy) -> None:
        one, other = self.build(tiny, "tanh_logits", 1), self.build(tiny, "tanh_logits", 2)
        before = one.embed_all(one.prepare(few_utterances.texts))
        assert not before.equal(other.embed_all(other.prepare(few_utterances.texts)))
        other.load_trained({n: p.detach().clone() for n, p in one.trained_state().items()})
        assert before.equal(other.embed_all(other.prepare(few_utterances.texts)))

    def test_logits_need_the_number_of_intents(self, tiny: TinyEncoder) -> None:
        config = EncoderConfig(name=tiny("bert"), head="tanh_logits")
        with pytest.raises(UsageError, match="needs the number of intents"):
            build_encoder(config, torch.device("cpu"), seed=0)


def test_given_vectors_pass_through_the_adapter() -> None:
    encoder, points = given_vectors(), vectors(7)
    rows = encoder.prepare(points)
    expected = normalize(torch.from_numpy(points), dim=-1)
    torch.testing.assert_close(encoder.embed_all(rows), expected)
    torch.testing.assert_close(encoder(rows, np.array([3])).detach(), expected[3:4])
    assert set(encoder.trained_state()) == {
        "adapter.inner.weight",
        "adapter.inner.bias",
        "adapter.outer.weight",
        "adapter.outer.bias",
    }


@pytest.mark.parametrize("points", [vectors(3, 4), np.zeros((2, 3, 5), np.float32)])
def test_given_vectors_of_another_width_are_refused(points: np.ndarray) -> None:
    with pytest.raises(UsageError, match=r"expected \(rows, 5\) as in fit"):
        given_vectors().prepare(points)


def test_given_vectors_have_no_layer_to_train() -> None:
    with pytest.raises(UsageError, match="given embeddings leave no layer to train"):
        VectorBackbone(5, CPU).set_trainable(1)


def test_texts_and_vectors_are_not_confused(tiny: TinyEncoder) -> None:
    with pytest.raises(UsageError, match="give embeddings, not texts"):
        given_vectors().prepare(["refund please"])
    with pytest.raises(UsageError, match="give texts, not embeddings"):
        build(tiny("bert")).prepare(vectors(3))


@pytest.mark.parametrize(("layers", "adapter"), [(1, 0), (2, 8), (ALL_LAYERS, 0), (0, 8)])
def test_trained_weights_can_be_put_into_a_fresh_encoder(
    tiny: TinyEncoder, few_utterances: Toy, layers: int, adapter: int
) -> None:
    trained = build(tiny("bert"), layers, adapter)
    with torch.no_grad():
        for weight in trained.trained_state().values():
            weight.add_(0.1 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(1)))
    fresh = build(tiny("bert"), layers, adapter)
    fresh.load_trained({n: p.detach().clone() for n, p in trained.trained_state().items()})
    texts = few_utterances.texts
    one = trained.embed_all(trained.prepare(texts))
    assert torch.equal(one, fresh.embed_all(fresh.prepare(texts)))


def test_layers_trained_once_stay_among_the_trained_weights(tiny: TinyEncoder) -> None:
    encoder = build(tiny("bert"), 2)
    encoder.backbone.set_trainable(1)
    saved = {n: p.detach().clone() for n, p in encoder.trained_state().items()}
    loaded = build(tiny("bert"), 1)
    assert set(loaded.trained_state()) < set(saved)
    loaded.load_trained(saved)
    assert set(loaded.trained_state()) == set(saved)


def test_weights_of_another_encoder_are_refused(tiny: TinyEncoder) -> None:
    encoder = build(tiny("bert"), 0, adapter=8)
    state = dict(build(tiny("bert"), 0, adapter=16).trained_state())
    with pytest.raises(UsageError, match=r"'adapter\.inner\.weight' does not fit encoder"):
        encoder.load_trained(state)
    with pytest.raises(UsageError, match="'backbone.no.such' does not fit"):
        encoder.load_trained({"backbone.no.such": torch.zeros(1)})


def test_fingerprint_names_the_weights_before_training(tiny: TinyEncoder) -> None:
    encoder = build(tiny("bert"), ALL_LAYERS)
    before = encoder.fingerprint()
    with torch.no_grad():
        for weight in encoder.trained_state().values():
            weight.add_(0.1)
    assert encoder.fingerprint() == before == build(tiny("bert")).fingerprint()


def test_fingerprint_tells_encoders_apart(tiny: TinyEncoder) -> None:
    changed = build(tiny("bert", seed=1)).fingerprint()
    prints = [build(tiny(family)).fingerprint() for family in ("bert", "mpnet", "roberta")]
    prints += [changed, given_vectors(5).fingerprint(), given_vectors(6).fingerprint()]
    assert len(set(prints)) == len(prints)
    assert given_vectors(5).fingerprint() == prints[-2]
