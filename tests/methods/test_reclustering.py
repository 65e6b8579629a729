"""DeepCluster, DeepAligned and LatentEM: what each learns from, and what it leaves behind."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from ronid.config import MethodConfig
from ronid.encode.encoder import build_encoder
from ronid.methods import deep_aligned, fit, latent_em
from ronid.metrics import clustering_accuracy
from ronid.train.batches import steps_per_epoch
from ronid.train.state import Training
from ronid.types import Discovery, Split
from tests.helpers.method_configs import published_short, without_labels
from tests.helpers.toy_corpus import TinyEncoder, Toy

CPU = torch.device("cpu")
NO_PRETRAINING = {"pretrain": {"epochs": 0}}


def begin(split: Split, config: MethodConfig) -> Training:
    dim = None if split.embeddings is None else split.embeddings.shape[1]
    encoder = build_encoder(config.encoder, CPU, seed=0, n_intents=split.n_intents, given_dim=dim)
    return Training(encoder, 0, config.optimiser)


def run(split: Split, config: MethodConfig) -> tuple[Discovery, Training]:
    training = begin(split, config)
    return fit(split, config, training), training


@pytest.mark.parametrize("name", ["deepcluster", "deep_aligned"])
def test_clusters_are_learnt_without_a_look_at_labels(
    tiny: TinyEncoder, few_utterances: Toy, name: str
) -> None:
    changes: dict[str, Any] = {"discover": {"epochs": 2, "lr": 1e-3}}
    if name == "deep_aligned":
        changes |= NO_PRETRAINING
    config, split = published_short(name, tiny, changes), few_utterances.split()
    told, untold = (run(s, config)[0] for s in (split, without_labels(split)))
    assert np.array_equal(told.embeddings, untold.embeddings)


class TestDeepCluster:
    def test_every_epoch_begins_with_a_new_head(
        self, tiny: TinyEncoder, utterances: Toy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from ronid.methods import deepcluster

        first: dict[int, torch.Tensor] = {}

        def watched(state: Any, rows: Any, pick: Any) -> Any:
            first.setdefault(len(first), state.heads["classes"].weight.detach().clone())
            return cluster_loss(state, rows, pick)

        cluster_loss = deepcluster.cluster_loss
        monkeypatch.setattr(deepcluster, "cluster_loss", watched)
        changes = {"discover": {"epochs": 3, "batch": 64, "lr": 1e-3}}
        run(utterances.split(), published_short("deepcluster", tiny, changes))
        steps = steps_per_epoch(300, 64)
        heads = [first[epoch * steps] for epoch in range(3)]
        for head in heads:
            assert float(head.std()) == pytest.approx(0.01, rel=0.2)
        assert not any(heads[0].equal(head) for head in heads[1:])
        assert not first[1].equal(first[0])

    def test_features_can_be_clustered_as_they_are(
        self, tiny: TinyEncoder, few_utterances: Toy
    ) -> None:
        changes = {"discover": {"epochs": 1, "components": 0}}
        run(few_utterances.split(), published_short("deepcluster", tiny, changes))


class TestDeepAligned:
    def test_silhouette_rises_and_the_loss_falls(self, tiny: TinyEncoder, utterances: Toy) -> None:
        changes = NO_PRETRAINING | {"discover": {"epochs": 8, "batch": 32, "lr": 3e-3}}
        _, training = run(utterances.split(), published_short("deep_aligned", tiny, changes))
        first, last = training.history[0], training.history[-1]
        assert last["silhouette"] > first["silhouette"] + 0.1
        assert last["loss"] < 0.8 * first["loss"]
        assert last["changed"] < 0.1

    @pytest.mark.parametrize("best", [0, 2, 4])
    def test_the_weights_kept_are_those_whose_silhouette_was_best(
        self,
        tiny: TinyEncoder,
        few_utterances: Toy,
        monkeypatch: pytest.MonkeyPatch,
        best: int,
    ) -> None:
        seen: list[torch.Tensor] = []

        def judge(points: torch.Tensor, labels: torch.Tensor, **_: Any) -> float:
            seen.append(points.clone())
            return float(len(seen) - 1 == best)

        monkeypatch.setattr(deep_aligned, "silhouette", judge)
        changes = NO_PRETRAINING | {"discover": {"epochs": 4, "lr": 1e-3}}
        config = published_short("deep_aligned", tiny, changes)
        found, _ = run(few_utterances.split(), config)
        assert len(seen) == 5  # before the first epoch and after each
        np.testing.assert_array_equal(found.embeddings, seen[best].numpy())

    def test_patience_ends_it(
        self, tiny: TinyEncoder, few_utterances: Toy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(deep_aligned, "silhouette", lambda *_, **__: 0.5)
        changes = NO_PRETRAINING | {"discover": {"epochs": 9, "patience": 3}}
        config = published_short("deep_aligned", tiny, changes)
        _, training = run(few_utterances.split(), config)
        assert len(training.history) == 3


class TestLatentEM:
    def test_both_losses_fall(self, tiny: TinyEncoder, utterances: Toy) -> None:
        changes = NO_PRETRAINING | {"em": {"epochs": 8, "batch": 64, "lr": 3e-3}}
        _, training = run(utterances.split(), published_short("latent_em", tiny, changes))
        first, last = training.history[0], training.history[-1]
        assert last["loss_ce"] < 0.6 * first["loss_ce"]
        assert last["loss_contrast"] < first["loss_contrast"] - 0.1
        expected = 0.4 * last["loss_contrast"] + 0.6 * last["loss_ce"]
        assert last["loss"] == pytest.approx(expected, rel=1e-5)

    def test_classifier_goes_on_where_pre_training_left_it(
        self, tiny: TinyEncoder, utterances: Toy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        heads: list[torch.Tensor] = []

        def watched(training: Training, split: Split) -> Any:
            made = make(training, split)
            kept = training.kept["classes/1.weight"]
            assert made["classes"][1].weight.equal(kept)
            heads.append(kept)
            return made

        make = latent_em._heads
        monkeypatch.setattr(latent_em, "_heads", watched)
        changes = {"pretrain": {"epochs": 2}, "em": {"epochs": 1, "restarts": 1}}
        run(utterances.split(dev=30), published_short("latent_em", tiny, changes))
        assert len(heads) == 1

    def test_labels_are_lent_as_often_as_asked(self, tiny: TinyEncoder, utterances: Toy) -> None:
        split = utterances.split()
        for count in (0, 1, 3):
            changes = NO_PRETRAINING | {"em": {"epochs": 1, "lent_labels": count, "restarts": 1}}
            _, training = run(split, published_short("latent_em", tiny, changes))
            lent = training.history[-1]["lent"]
            assert lent <= count * len(split.labelled)
            assert (lent > 0) == (count > 0)

    def test_without_labels_the_contrast_remains(
        self, tiny: TinyEncoder, few_utterances: Toy
    ) -> None:
        changes = {"em": {"epochs": 1, "restarts": 1}}
        config = published_short("latent_em", tiny, changes)
        _, training = run(without_labels(few_utterances.split()), config)
        assert [row["stage"] for row in training.history] == ["em"]
        assert "loss_ce" not in training.history[0]

    @pytest.mark.parametrize("epochs", [0, 1])
    def test_lower_layers_learn_only_after_pre_training(
        self, tiny: TinyEncoder, few_utterances: Toy, epochs: int
    ) -> None:
        changes = {"pretrain": {"epochs": 1}, "em": {"epochs": epochs, "restarts": 1}}
        config = published_short("latent_em", tiny, changes)
        training = begin(few_utterances.split(), config)
        layers = training.encoder.backbone.layers
        before = [next(layer.parameters()).detach().clone() for layer in layers]
        fit(few_utterances.split(), config, training)
        moved = [
            not next(layer.parameters()).equal(old)
            for layer, old in zip(layers, before, strict=True)
        ]
        assert moved == [epochs > 0, epochs > 0, True]


@pytest.mark.parametrize("name", ["deepcluster", "deep_aligned", "latent_em"])
def test_given_embeddings_are_learnt_on_when_no_layer_is_asked_for(
    tiny: TinyEncoder, utterances: Toy, name: str
) -> None:
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(8, 12))
    noisy = (centres[utterances.classes] + rng.normal(size=(300, 12)) / 2).astype(np.float32)
    split = replace(utterances.split(), texts=[""] * 300, embeddings=noisy)
    stage = "em" if name == "latent_em" else "discover"
    changes: dict[str, Any] = {"encoder": {"trainable_layers": 0}, stage: {"epochs": 2}}
    if name != "deepcluster":
        changes["pretrain"] = {"epochs": 2, "trainable_layers": 0}
    found, _ = run(split, published_short(name, tiny, changes))
    assert clustering_accuracy(utterances.classes, found.labels) > 80
