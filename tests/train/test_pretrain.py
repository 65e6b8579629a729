"""Pre-training: what it learns, what it may touch, and what it does without labels or head."""

from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch

from ronid.config import ALL_LAYERS, EncoderConfig, PretrainConfig
from ronid.encode.encoder import build_encoder
from ronid.errors import UsageError
from ronid.train.checkpoint import Checkpoint
from ronid.train.pretrain import learn_language_head, pretrain, pretrain_layers
from ronid.train.state import Training
from ronid.types import Split
from tests.helpers.toy_corpus import FAMILIES, TinyEncoder, Toy

CPU = torch.device("cpu")
SHORT = PretrainConfig(epochs=2, lr=1e-3)


def start(name: str, layers: int = 1, adapter: int = 0) -> Training:
    config = EncoderConfig(name=name, trainable_layers=layers, adapter_width=adapter)
    return Training(build_encoder(config, CPU, seed=0))


def run(training: Training, split: Split, config: PretrainConfig = SHORT) -> None:
    encoder = training.encoder
    dev = encoder.prepare(split.dev_texts) if len(split.dev_texts) else None
    pretrain(training, split, encoder.prepare(split.texts), dev, config)


def test_both_losses_fall(tiny: TinyEncoder, utterances: Toy) -> None:
    training = start(tiny("bert", masked_lm=True))
    run(training, utterances.split(), replace(SHORT, epochs=12, lr=5e-3, labelled_batch=16))
    first, last = training.history[0], training.history[-1]
    assert last["loss_ce"] < 0.8 * first["loss_ce"]
    assert last["loss_mlm"] < 0.98 * first["loss_mlm"]
    assert last["loss"] == pytest.approx(last["loss_ce"] + last["loss_mlm"], rel=1e-5)
    assert training.finished == ["pretrain"]


@pytest.mark.parametrize("masked_lm", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_only_the_trained_layers_change(
    tiny: TinyEncoder, few_utterances: Toy, family: str, masked_lm: bool
) -> None:
    training = start(tiny(family, masked_lm))
    model = training.encoder.backbone.model
    before = {n: p.detach().clone() for n, p in model.named_parameters()}
    run(training, few_utterances.split(), replace(SHORT, epochs=1))
    changed = {n for n, p in model.named_parameters() if not p.equal(before[n])}
    assert changed
    assert changed <= set(training.encoder.backbone.trained_state())


def test_whole_encoder_learns_when_asked(tiny: TinyEncoder, few_utterances: Toy) -> None:
    training = start(tiny("bert", masked_lm=True), ALL_LAYERS)
    words = training.encoder.backbone.model.get_input_embeddings().weight
    before = words.detach().clone()
    run(training, few_utterances.split(), replace(SHORT, epochs=1))
    assert not torch.equal(words, before)


def test_held_out_accuracy_picks_the_epoch(tiny: TinyEncoder, few_utterances: Toy) -> None:
    training = start(tiny("bert"))
    run(training, few_utterances.split(dev=20), replace(SHORT, epochs=6, patience=1, lr=1e-2))
    accuracies = [row["dev_accuracy"] for row in training.history]
    assert all(0 <= a <= 100 for a in accuracies)
    assert len(accuracies) <= 6
    best = int(np.argmax(accuracies))
    assert len(accuracies) == min(6, best + 2)


def test_without_held_out_rows_it_runs_its_own_number_of_epochs(
    tiny: TinyEncoder, few_utterances: Toy
) -> None:
    training = start(tiny("bert"))
    run(training, few_utterances.split(), replace(SHORT, epochs=9, epochs_without_dev=2))
    assert len(training.history) == 2
    assert "dev_accuracy" not in training.history[0]


def test_without_labels_only_the_language_is_learnt(tiny: TinyEncoder, few_utterances: Toy) -> None:
    training = start(tiny("bert"))
    run(training, few_utterances.split(known=0), replace(SHORT, epochs=1))
    assert "loss_mlm" in training.history[0]
    assert "loss_ce" not in training.history[0]


def test_without_language_only_the_classes_are_learnt(
    tiny: TinyEncoder, few_utterances: Toy
) -> None:
    training = start(tiny("bert"))
    run(training, few_utterances.split(), replace(SHORT, language_weight=0.0))
    assert "loss_mlm" not in training.history[0]


def test_nothing_to_learn_from_is_no_error(tiny: TinyEncoder, few_utterances: Toy) -> None:
    training = start(tiny("bert"))
    run(training, few_utterances.split(known=0), replace(SHORT, language_weight=0.0))
    assert training.history == []


def test_adapter_alone_learns_the_classes(tiny: TinyEncoder, few_utterances: Toy) -> None:
    training = start(tiny("bert"), layers=0, adapter=16)
    run(training, few_utterances.split(), replace(SHORT, epochs=1))
    assert set(training.history[0]) == {"stage", "epoch", "loss", "loss_ce"}


def test_language_weight_scales_its_loss(tiny: TinyEncoder, few_utterances: Toy) -> None:
    losses = []
    for weight in (1.0, 0.5):
        training = start(tiny("bert"))
        config = replace(SHORT, epochs=1, lr=0.0, language_weight=weight)
        run(training, few_utterances.split(known=0), config)
        losses.append(training.history[0]["loss_mlm"])
    assert losses[1] == pytest.approx(losses[0] / 2)


def test_tokenizer_without_a_mask_is_refused(tiny: TinyEncoder, few_utterances: Toy) -> None:
    training = start(tiny("bert"))
    training.encoder.backbone.tokenizer.mask_token = None
    with pytest.raises(UsageError, match=r"no mask token; set pretrain\.language_weight to 0"):
        run(training, few_utterances.split())


def test_no_epochs_skip_the_stage(tiny: TinyEncoder, few_utterances: Toy) -> None:
    training = start(tiny("bert"))
    run(training, few_utterances.split(), PretrainConfig(epochs=0))
    assert (training.history, training.finished) == ([], [])


@pytest.mark.parametrize(("passes", "steps"), [("labelled", 3), ("all", 10)])
def test_an_epoch_is_one_pass_over_labelled_rows_or_over_all(
    tiny: TinyEncoder, utterances: Toy, passes: Literal["labelled", "all"], steps: int
) -> None:
    training, split = start(tiny("bert")), utterances.split()
    config = replace(SHORT, epochs=1, labelled_batch=25, language_batch=30, language_weight=0.0)
    counted: list[int] = []
    training.encoder.backbone.register_forward_hook(lambda *_: counted.append(1))
    run(training, split, replace(config, epoch_rows=passes))
    assert len(split.labelled) == 52  # three batches of 25; 300 rows are ten of 30
    assert len(counted) == steps


class TestContrast:
    config = replace(SHORT, contrast_weight=1.0, language_weight=0.0)

    def test_falls_and_adds_to_the_cross_entropy(self, tiny: TinyEncoder, utterances: Toy) -> None:
        training = start(tiny("bert"))
        run(training, utterances.split(), replace(self.config, epochs=10, lr=5e-3))
        first, last = training.history[0], training.history[-1]
        assert last["loss_contrast"] < 0.9 * first["loss_contrast"]
        assert last["loss"] == pytest.approx(last["loss_ce"] + last["loss_contrast"], rel=1e-5)

    def test_serves_where_nothing_is_labelled(self, tiny: TinyEncoder, few_utterances: Toy) -> None:
        training = start(tiny("bert"))
        run(training, few_utterances.split(known=0), self.config)
        assert set(training.history[-1]) >= {"loss", "loss_contrast"}
        assert "loss_ce" not in training.history[-1]


def test_classifier_is_kept_for_a_later_stage_when_asked(
    tiny: TinyEncoder, few_utterances: Toy, tmp_path: Path
) -> None:
    split = few_utterances.split(dev=12)
    path = tmp_path / "fit.safetensors"
    training = start(tiny("bert"))
    training.checkpoint = Checkpoint(path, every_s=0.0)
    pretrain_layers(training, split, SHORT, 1, keep_classes=True)
    head = torch.nn.Sequential(torch.nn.Dropout(), torch.nn.Linear(training.encoder.dim, 4))
    before = head[1].weight.detach().clone()
    training.recall("other", head)
    assert head[1].weight.equal(before)
    training.recall("classes", head)
    assert not head[1].weight.equal(before)

    resumed = start(tiny("bert"))
    resumed.checkpoint = Checkpoint(path, every_s=0.0)
    resumed.restore()
    again = torch.nn.Sequential(torch.nn.Dropout(), torch.nn.Linear(training.encoder.dim, 4))
    resumed.recall("classes", again)
    assert again[1].weight.equal(head[1].weight)
    assert again[1].bias.equal(head[1].bias)


def test_classifier_is_not_kept_unless_asked(tiny: TinyEncoder, few_utterances: Toy) -> None:
    training = start(tiny("bert"))
    pretrain_layers(training, few_utterances.split(), SHORT, 1)
    assert training.kept == {}


class TestLanguageHead:
    CONFIG = replace(SHORT, trainable_layers=ALL_LAYERS, language_batch=16)

    def learn(self, training: Training, split: Split, epochs: int) -> None:
        rows = training.encoder.prepare(split.texts)
        learn_language_head(training, rows, self.CONFIG, epochs)

    def test_a_new_head_learns_while_the_encoder_stands_still(
        self, tiny: TinyEncoder, utterances: Toy
    ) -> None:
        training = start(tiny("bert"), ALL_LAYERS)
        model = training.encoder.backbone.model
        before = [p.detach().clone() for p in model.parameters()]
        self.learn(training, utterances.split(), 6)
        losses = [row["loss"] for row in training.history if row["stage"] == "language_head"]
        assert len(losses) == 6
        assert losses[-1] < 0.95 * losses[0]
        assert all(map(torch.equal, before, model.parameters()))
        assert training.encoder.backbone.trainable_layers == ALL_LAYERS
        self.learn(training, utterances.split(), 6)  # over is over
        assert len(training.history) == 6

    def test_pre_training_goes_on_with_it(self, tiny: TinyEncoder, utterances: Toy) -> None:
        first = []
        for epochs in (0, 12):
            training = start(tiny("bert"), ALL_LAYERS)
            short = replace(self.CONFIG, epochs=1, lr=0.0)
            pretrain_layers(training, utterances.split(), short, 1, language_head_epochs=epochs)
            first.append(training.history[-1]["loss_mlm"])
        assert first[1] < 0.95 * first[0]

    def test_a_head_of_the_checkpoint_is_left_as_it_is(
        self, tiny: TinyEncoder, few_utterances: Toy
    ) -> None:
        training = start(tiny("bert", masked_lm=True), ALL_LAYERS)
        self.learn(training, few_utterances.split(), 3)
        assert training.history == []

    def test_without_masked_words_there_is_nothing_to_learn(
        self, tiny: TinyEncoder, few_utterances: Toy
    ) -> None:
        training = start(tiny("bert"), ALL_LAYERS)
        rows = training.encoder.prepare(few_utterances.texts)
        learn_language_head(training, rows, replace(self.CONFIG, language_weight=0.0), 3)
        assert training.history == []
        assert training.finished == []
