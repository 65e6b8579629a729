"""KCL and USNID: what they promise beyond the contract of all methods."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from ronid.encode.encoder import build_encoder
from ronid.errors import UsageError
from ronid.methods import dac, fit, kcl, usnid
from ronid.metrics import clustering_accuracy
from ronid.progress import Silent
from ronid.train.checkpoint import Checkpoint
from ronid.train.state import Training, generator_of
from ronid.types import Discovery, IntArray, Split
from tests.helpers.method_configs import QUICK, published_short
from tests.helpers.toy_corpus import TinyEncoder, Toy

CPU = torch.device("cpu")


def config_of(name: str, tiny: TinyEncoder, **changes: Any) -> Any:
    return published_short(name, tiny, {**QUICK[name], **changes})


def begin(split: Split, config: Any, **how: Any) -> Training:
    dim = None if split.embeddings is None else split.embeddings.shape[1]
    encoder = build_encoder(config.encoder, CPU, seed=0, n_intents=split.n_intents, given_dim=dim)
    training = Training(encoder, 0, config.optimiser, **how)
    training.restore()
    return training


def weights(training: Training) -> dict[str, Tensor]:
    return {n: w.detach().clone() for n, w in training.encoder.trained_state().items()}


def given(toy: Toy) -> Split:
    """Return the problem as embeddings that lie around their intents."""
    rng = np.random.default_rng(0)
    centres = 2 * rng.normal(size=(len(toy.names), 16))
    noisy = centres[toy.classes] + rng.normal(size=(len(toy.texts), 16)) / 2
    split = toy.split()
    return replace(split, texts=[""] * len(toy.texts), embeddings=noisy.astype(np.float32))


class TestUSNID:
    def test_scored_rows_are_clustered_from_the_centroids_of_training(self) -> None:
        centres = torch.eye(4) * 5
        moved = centres + 0.5  # where the scored rows lie
        features = moved.repeat(3, 1) + 0.1 * torch.randn(12, 4, generator=generator_of(CPU, 0))
        found = Discovery(
            labels=np.zeros(1, np.int64),
            confidence=np.ones(1, np.float32),
            embeddings=np.zeros((1, 4), np.float32),
            prototypes=centres.numpy(),
            prior=np.full(4, 0.25),
            temperature=1.0,
            known=(),
        )
        labels = usnid.refit(features, found, usnid.Config(), generator_of(CPU, 0))
        assert labels.tolist() == [0, 1, 2, 3] * 3

    def test_all_rows_come_in_two_views_and_then_the_labelled_ones(
        self, tiny: TinyEncoder, few_utterances: Toy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        split = few_utterances.split()
        config = config_of("usnid", tiny, batch=8, pretrain={"epochs": 0})
        seen: list[list[tuple[IntArray, ...]]] = []

        def run_epochs(training: Any, stage: Any, state: Any, batches: Any, *_: Any, **__: Any):
            seen.append(list(batches(np.random.default_rng(0))))
            assert len(seen[-1]) == stage.steps

        monkeypatch.setattr(usnid, "run_epochs", run_epochs)
        usnid.fit(split, config, begin(split, config))
        mixed = [pair for pair in seen[0] if len(pair[1])]
        labelled = [pair for pair in seen[0] if len(pair[0])]
        assert seen[0] == mixed + labelled
        for group in [pair[1] for pair in mixed] + [pair[0] for pair in labelled]:
            half = len(group) // 2
            assert np.array_equal(group[:half], group[half:])
        rows = np.concatenate([pair[1] for pair in mixed])
        assert sorted(rows) == sorted(np.tile(np.arange(60), 2))
        known = np.concatenate([pair[0] for pair in labelled])
        assert set(known) == set(split.labelled)

    def test_training_ends_when_clusters_settle(
        self, tiny: TinyEncoder, few_utterances: Toy
    ) -> None:
        split = few_utterances.split()
        config = config_of("usnid", tiny, epochs=9, lr=0.0)  # then nothing ever changes
        found = usnid.fit(split, config, begin(split, config))
        rows = [row for row in found.history if row["stage"] == "cluster"]
        assert [row.get("changed") for row in rows] == [None, 0.0]

    def test_clusters_keep_their_numbers_from_epoch_to_epoch(
        self, tiny: TinyEncoder, few_utterances: Toy
    ) -> None:
        split = few_utterances.split()
        config = config_of("usnid", tiny, epochs=4, lr=1e-4)
        found = usnid.fit(split, config, begin(split, config))
        changed = [row["changed"] for row in found.history if "changed" in row]
        assert changed
        assert max(changed) < 0.5  # new numbers would change five in six

    def test_given_embeddings_serve_with_views_by_dropout(self, utterances: Toy) -> None:
        config = usnid.Config(epochs=3, lr=1e-3, token_erasure=0.0)
        encoder = replace(config.encoder, trainable_layers=0)
        early = replace(config.pretrain, epochs=2, lr=1e-3, trainable_layers=0)
        config = replace(config, encoder=encoder, pretrain=early)
        split = given(utterances)
        found = usnid.fit(split, config, begin(split, config))
        assert clustering_accuracy(utterances.classes, found.labels) > 80


class TestKCL:
    def test_similarity_network_leaves_the_other_encoder_alone(
        self, tiny: TinyEncoder, few_utterances: Toy
    ) -> None:
        split, config = few_utterances.split(), config_of("kcl", tiny)
        training = begin(split, config)
        before = weights(training)
        rows = training.encoder.prepare(split.texts)
        network = kcl.learn_similarity(training, split, rows, None, config)
        assert all(torch.equal(weight, before[n]) for n, weight in weights(training).items())
        assert training.finished == ["similarity"]
        learnt = {n: w.detach().clone() for n, w in network.trained().items()}
        kcl.learn_clusters(training, split, rows, None, network, config)
        assert all(torch.equal(w, learnt[n]) for n, w in network.trained().items())
        assert not any(module.training for module in network.modules())
        moved = [not torch.equal(w, before[n]) for n, w in weights(training).items()]
        assert all(moved)

    def test_network_tells_pairs_apart_after_its_stage(
        self, tiny: TinyEncoder, utterances: Toy
    ) -> None:
        split = utterances.split(dev=30)
        config = config_of("kcl", tiny, epochs=8, lr=3e-3, batch=32)
        training = begin(split, config)
        rows, dev_rows = map(training.encoder.prepare, (split.texts, split.dev_texts))
        kcl.learn_similarity(training, split, rows, dev_rows, config)
        figures = [row["dev_precision"] for row in training.history]
        assert max(figures) > 2 * figures[0]
        assert max(figures) > 70

    def test_outputs_of_known_intents_come_first(self, utterances: Toy) -> None:
        config = kcl.Config(epochs_without_dev=15, lr=3e-3)
        config = replace(config, encoder=replace(config.encoder, trainable_layers=0))
        split = given(utterances)
        found = kcl.fit(split, config, begin(split, config))
        assert np.array_equal(np.sort(found.prototypes.argmax(1)), np.arange(8))
        assert np.array_equal(found.prototypes.sum(1), np.ones(8))
        hidden = split.unlabelled[utterances.classes[split.unlabelled] < 4]
        right = found.labels[hidden] == utterances.classes[hidden]
        assert right.mean() > 0.8

    def test_labels_of_one_intent_teach_no_pair_that_is_unlike(
        self, tiny: TinyEncoder, few_utterances: Toy
    ) -> None:
        split, config = few_utterances.split(known=1), config_of("kcl", tiny)
        with pytest.raises(UsageError, match="all labels here are of one intent; label some"):
            fit(split, config, begin(split, config))

    @pytest.mark.parametrize("change", [{"head": "tanh"}, {"head": "none"}, {"normalise": False}])
    def test_encoder_without_an_output_for_every_intent_is_refused_before_training(
        self, tiny: TinyEncoder, few_utterances: Toy, change: dict[str, Any]
    ) -> None:
        split = few_utterances.split()
        for name, method in (("kcl", kcl), ("dac", dac)):
            config = config_of(name, tiny, encoder=change)
            training = begin(split, config)
            with pytest.raises(UsageError, match=r"set encoder\.head to tanh_logits or"):
                method.fit(split, config, training)
            assert not training.history

    def test_killed_fit_takes_up_its_network_from_a_masked_language_checkpoint(
        self, tiny: TinyEncoder, few_utterances: Toy, tmp_path: Path
    ) -> None:
        config = config_of("kcl", tiny, encoder={"name": tiny("bert", True)})
        split, path = few_utterances.split(dev=12), tmp_path / "kcl.safetensors"
        whole = kcl.fit(split, config, begin(split, config))
        for epoch in (1, 2):
            how = {"progress": _Dies(epoch), "checkpoint": Checkpoint(path, every_s=0.0)}
            training = begin(split, config, **how)
            with pytest.raises(_Killed):
                kcl.fit(split, config, training)
        training = begin(split, config, checkpoint=Checkpoint(path, every_s=0.0))
        assert training.kept
        assert training.finished == ["similarity"]
        found = kcl.fit(split, config, training)
        assert np.array_equal(found.embeddings, whole.embeddings)
        assert found.history == whole.history


class _Killed(Exception):
    """The power went out."""


class _Dies(Silent):
    """Progress that dies in an epoch of the second stage."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch

    def advance(self, steps: int = 1, figures: Any = None) -> None:
        if figures and (figures["stage"], figures["epoch"]) == ("clusters", self.epoch):
            raise _Killed
