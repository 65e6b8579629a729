"""Reconstruction: the code keeps what its input can be rebuilt from."""

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

from ronid.config import EncoderConfig, OptimiserConfig
from ronid.encode.autoencoder import CodeHead, live_units
from ronid.encode.encoder import build_encoder
from ronid.encode.heads import Head
from ronid.errors import RonidWarning, UsageError
from ronid.train.checkpoint import Checkpoint
from ronid.train.reconstruct import ReconstructConfig, rebuilding_loss, reconstruct
from ronid.train.state import Training
from tests.helpers.toy_corpus import TinyEncoder, Toy

CPU = torch.device("cpu")
CODE = EncoderConfig(name="tfidf", trainable_layers=0, head="code", normalise=False)
PLAIN = OptimiserConfig(weight_decay=0.0, warmup_share=0.0, clip_norm=1e6)
CONFIG = ReconstructConfig(epochs=12, batch=32)

pytestmark = pytest.mark.filterwarnings("ignore::ronid.errors.RonidWarning")


def points(rows: int = 60, dim: int = 8) -> np.ndarray:
    """Points of two dimensions in a space of more."""
    rng = np.random.default_rng(0)
    return (rng.normal(size=(rows, 2)) @ rng.normal(size=(2, dim))).astype(np.float32)


def start(dim: int = 8, config: EncoderConfig = CODE, checkpoint: Path | None = None) -> Training:
    keeper = Checkpoint(checkpoint, every_s=0.0) if checkpoint else None
    encoder = build_encoder(config, CPU, seed=0, given_dim=dim)
    if config.head == "code":  # narrower than the published one
        torch.manual_seed(0)
        encoder.head = Head(CodeHead(dim, (32, 64, 10)), 10)
    return Training(encoder, 0, PLAIN, checkpoint=keeper)


def test_loss_falls_far_below_what_the_mean_would_give() -> None:
    training, vectors = start(), points()
    reconstruct(training, training.encoder.prepare(vectors), replace(CONFIG, epochs=60))
    losses = [row["loss"] for row in training.history]
    assert len(losses) == 60
    assert losses[-1] < 0.1 * float(vectors.var(axis=0).mean()) < losses[0]
    assert training.finished == ["reconstruct"]
    assert [row for row in training.history if "live_units" in row] == training.history[-1:]


def test_decoder_rebuilds_what_the_backbone_says_from_the_features() -> None:
    training, vectors = start(), points()
    rows = training.encoder.prepare(vectors)
    decoder = reconstruct(training, rows, replace(CONFIG, epochs=60))
    with torch.no_grad():
        codes = training.encoder.embed_all(rows)
        rebuilt = decoder(codes).numpy()
        pick = rows.pick(np.arange(60), CPU)
        loss = rebuilding_loss(training.encoder, decoder, rows, pick, codes)
    error = ((rebuilt - vectors) ** 2).mean()
    assert float(loss) == pytest.approx(error, rel=1e-5)
    assert error < 0.1 * vectors.var(axis=0).mean()


def test_an_epoch_is_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    training = start()
    rows = training.encoder.prepare(points())
    seen: list[np.ndarray] = []
    original = type(rows).pick

    def note(self: object, index: np.ndarray, device: torch.device) -> object:
        seen.append(index)
        return original(self, index, device)

    with monkeypatch.context() as patch:
        patch.setattr(type(rows), "pick", note)
        reconstruct(training, rows, replace(CONFIG, epochs=1, batch=25))
    steps = [index for index in seen if len(index) < 60]
    assert [len(index) for index in steps] == [25, 25, 10]
    assert sorted(np.concatenate(steps)) == list(range(60))


def test_first_step_is_one_of_adam_on_the_mean_squared_error() -> None:
    vectors = points(20)
    expected, training = start(), start()
    rows = expected.encoder.prepare(vectors)
    decoder = reconstruct(expected, rows, replace(CONFIG, epochs=0))
    weights = [*expected.encoder.head.parameters(), *decoder.parameters()]
    optimiser = torch.optim.Adam(weights, lr=1e-3)
    codes = expected.encoder(rows, np.arange(20))
    functional.mse_loss(decoder(codes), torch.from_numpy(vectors)).backward()
    optimiser.step()
    trained = reconstruct(training, rows, replace(CONFIG, epochs=1))
    for one, two in zip(decoder.parameters(), trained.parameters(), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(
        expected.encoder.embed_all(rows), training.encoder.embed_all(rows), rtol=1e-3, atol=1e-5
    )


@pytest.mark.parametrize("name", ["tfidf", "bert"])
def test_texts_serve_by_words_and_by_a_frozen_transformer(
    tiny: TinyEncoder, few_utterances: Toy, name: str
) -> None:
    config = replace(CODE, name=tiny("bert") if name == "bert" else name)
    training = Training(build_encoder(config, CPU, seed=0), 0, PLAIN)
    rows = training.encoder.prepare(few_utterances.texts)
    before = training.encoder.backbone(rows, np.arange(60)).clone()
    decoder = reconstruct(training, rows, replace(CONFIG, epochs=2))
    assert decoder.dim == training.encoder.backbone.dim
    assert training.history[-1]["loss"] < training.history[0]["loss"]
    assert torch.equal(training.encoder.backbone(rows, np.arange(60)), before)


class TestDeadUnits:
    def test_are_counted_in_one_warning_after_the_stage(self) -> None:
        training = start()
        rows = training.encoder.prepare(points())
        last = training.encoder.head.layers.layers[-1]
        with torch.no_grad():
            last.bias[:3] = -1e3
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            reconstruct(training, rows, replace(CONFIG, epochs=2))
        dead = 10 - live_units(training.encoder.embed_all(rows))
        assert dead >= 3
        said = [str(w.message) for w in caught if w.category is RonidWarning]
        assert len(said) == 1
        assert said[0].startswith(f"{dead} of 10 units of the code are 0")

    def test_none_are_passed_over_in_silence(self) -> None:
        training = start()
        rows = training.encoder.prepare(points())
        last = training.encoder.head.layers.layers[-1]
        with torch.no_grad():
            last.bias[:] = 5.0
        with warnings.catch_warnings():
            warnings.simplefilter("error", RonidWarning)
            reconstruct(training, rows, replace(CONFIG, epochs=1))


class TestGoesOn:
    def test_finished_stage_is_not_repeated_and_its_decoder_comes_back(
        self, tmp_path: Path
    ) -> None:
        path, vectors = tmp_path / "kept.safetensors", points()
        one = start(checkpoint=path)
        decoder = reconstruct(one, one.encoder.prepare(vectors), CONFIG)
        two = start(checkpoint=path)
        two.restore()
        with warnings.catch_warnings():
            warnings.simplefilter("error", RonidWarning)  # it was said when the stage was over
            again = reconstruct(two, two.encoder.prepare(vectors), CONFIG)
        assert two.history == one.history
        for a, b in zip(decoder.parameters(), again.parameters(), strict=True):
            assert torch.equal(a, b)

    def test_decoder_left_is_that_of_the_end_of_the_stage(self) -> None:
        training = start()
        decoder = reconstruct(training, training.encoder.prepare(points()), CONFIG)
        kept = [weight.detach().clone() for weight in decoder.parameters()]
        with torch.no_grad():
            for weight in decoder.parameters():  # a later stage trains on
                weight.add_(1.0)
        training.recall("decoder", decoder)
        for weight, old in zip(decoder.parameters(), kept, strict=True):
            assert torch.equal(weight, old)

    def test_no_epochs_leave_everything_as_it_was(self) -> None:
        training = start()
        before = {n: w.clone() for n, w in training.encoder.trained_state().items()}
        reconstruct(training, training.encoder.prepare(points()), replace(CONFIG, epochs=0))
        assert (training.history, training.finished) == ([], [])
        for name, weight in training.encoder.trained_state().items():
            assert torch.equal(weight, before[name])


class TestRefuses:
    def test_an_encoder_without_a_code(self) -> None:
        training = start(config=replace(CODE, head="none"))
        with pytest.raises(UsageError, match=r"set encoder\.head = code"):
            reconstruct(training, training.encoder.prepare(points()), CONFIG)

    def test_an_adapter_below_the_code(self) -> None:
        training = start(config=replace(CODE, adapter_width=4))
        with pytest.raises(UsageError, match=r"encoder\.adapter_width to 0"):
            reconstruct(training, training.encoder.prepare(points()), CONFIG)

    def test_trained_layers(self, tiny: TinyEncoder, few_utterances: Toy) -> None:
        config = replace(CODE, name=tiny("bert"), trainable_layers=1)
        training = Training(build_encoder(config, CPU, seed=0))
        rows = training.encoder.prepare(few_utterances.texts)
        with pytest.raises(UsageError, match=r"set encoder\.trainable_layers"):
            reconstruct(training, rows, CONFIG)
