"""DAC, DeepCluster and GCD: whether they train the way that was published."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from ronid.config import MethodConfig
from ronid.encode.encoder import Encoder, build_encoder
from ronid.methods import deepcluster, fit, gcd, recipe
from ronid.train.state import Training
from ronid.types import Discovery, FloatArray, IntArray, Split
from tests.helpers.method_configs import QUICK, published_short, without_labels
from tests.helpers.toy_corpus import TinyEncoder, Toy

CPU = torch.device("cpu")


def begin(split: Split, config: MethodConfig) -> Training:
    encoder = build_encoder(config.encoder, CPU, seed=0, n_intents=split.n_intents)
    return Training(encoder, 0, config.optimiser)


def run(split: Split, config: MethodConfig) -> Discovery:
    return fit(split, config, begin(split, config))


def watch_training(monkeypatch: pytest.MonkeyPatch) -> list[tuple[IntArray, FloatArray]]:
    """Return a list that gets the rows of every training step, and what the encoder said."""
    seen: list[tuple[IntArray, FloatArray]] = []

    def watched(self: Encoder, rows: Any, pick: Any, *rest: Any) -> Tensor:
        vectors = plain(self, rows, pick, *rest)
        if self.training:
            seen.append((pick.index.numpy().copy(), vectors.detach().double().numpy().copy()))
        return vectors

    plain = Encoder.pooled
    monkeypatch.setattr(Encoder, "pooled", watched)
    return seen


def cosines(vectors: FloatArray) -> FloatArray:
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    similar: FloatArray = unit @ unit.T
    return similar


@pytest.mark.parametrize(
    ("name", "part", "expected"),
    [
        ("dac", "pairs", {"lr": 2e-5, "batch": 256}),
        ("deepcluster", "discover", {"components": 256, "iterations": 20}),
        ("gcd", "contrast", {"epochs": 100, "patience": 20, "lr": 5e-5, "batch": 128}),
        ("gcd", "", {"projection_width": 256, "restarts": 100}),
    ],
)
def test_constants_are_those_published(name: str, part: str, expected: dict[str, float]) -> None:
    config: Any = recipe(name)
    settings = getattr(config, part) if part else config
    assert {key: getattr(settings, key) for key in expected} == expected


@pytest.mark.parametrize("name", ["dac", "deepcluster", "gcd"])
def test_only_the_last_layer_and_what_lies_above_it_learn(
    name: str, tiny: TinyEncoder, few_utterances: Toy
) -> None:
    split, config = few_utterances.split(), published_short(name, tiny, QUICK[name])
    training = begin(split, config)
    before = {n: w.detach().clone() for n, w in training.encoder.named_parameters()}
    fit(split, config, training)
    after = dict(training.encoder.named_parameters())
    moved = {n.rpartition(".")[0] for n in before if not after[n].equal(before[n])}
    upper = {n.rpartition(".")[0] for n in before if ".layer.2." in n or n.startswith("head.")}
    assert moved == upper


class TestDAC:
    def loss(self, similar: FloatArray, alike: FloatArray, unlike: FloatArray) -> float:
        """Return the mean over all pairs of what those alike and those unlike cost."""
        total = 0.0
        finite = similar.clip(1e-10, 1 - 1e-7)
        for s, positive, negative in zip(finite.flat, alike.flat, unlike.flat, strict=True):
            total -= math.log(s) if positive else math.log(1 - s) if negative else 0.0
        return total / similar.size

    def test_every_epoch_learns_from_the_pairs_beyond_thresholds_that_close_in_until_they_cross(
        self, tiny: TinyEncoder, few_utterances: Toy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        seen = watch_training(monkeypatch)
        config = published_short("dac", tiny, {"pairs": {"lr": 1e-3}})
        found = run(few_utterances.split(), config)
        eta, losses, counts = 0.0, [], np.zeros(3, int)
        while (upper := 0.95 - eta) >= (lower := 0.455 + 0.1 * eta):
            similar = cosines(seen[len(losses)][1])  # one step an epoch
            alike, unlike = similar > upper, similar < lower
            losses.append(self.loss(similar, alike, unlike))
            counts += [alike.sum() - 60, unlike.sum(), (~alike & ~unlike).sum()]
            eta += 0.0099
        assert len(seen) == len(losses) == 46
        assert [row["loss"] for row in found.history] == pytest.approx(losses, rel=1e-2)
        assert (counts > 1000).all()  # pairs of all three kinds were met

    def test_steps_lower_the_loss_of_the_pairs(
        self, tiny: TinyEncoder, few_utterances: Toy
    ) -> None:
        split, still = few_utterances.split(), {"upper": 0.9, "lower": 0.7, "threshold_step": 0.0}
        config = published_short("dac", tiny, {"pairs": still | {"epochs": 3, "lr": 3e-4}})
        training = begin(split, config)
        before = cosines(training.encoder.embed_all(training.encoder.prepare(split.texts)).numpy())
        after = cosines(fit(split, config, training).embeddings)
        first, last = (self.loss(found, before > 0.9, before < 0.7) for found in (before, after))
        assert last < 0.9 * first


class TestDeepCluster:
    def watched(
        self, tiny: TinyEncoder, split: Split, monkeypatch: pytest.MonkeyPatch, **changes: Any
    ) -> list[list[dict[str, Any]]]:
        """Return what each of five steps began with, for each of three epochs."""
        steps: list[dict[str, Any]] = []

        def watched(state: Any, rows: Any, pick: Any) -> Tensor:
            step = {"rows": pick.index.numpy().copy()}
            step["labels"] = state.tensors["labels"].numpy().copy()
            step["bias"] = state.heads["classes"].bias.detach().clone()
            step["features"] = state.encoder.embed_all(rows).double().numpy()
            state.encoder.train(True)
            steps.append(step)
            return plain(state, rows, pick)

        plain = deepcluster.cluster_loss
        monkeypatch.setattr(deepcluster, "cluster_loss", watched)
        discover = {"epochs": 3, "batch": 12, "lr": 1e-2, **changes}
        run(split, published_short("deepcluster", tiny, {"discover": discover}))
        assert len(steps) == 15
        return [steps[:5], steps[5:10], steps[10:]]

    def test_clusters_are_those_of_the_whitened_features_as_every_epoch_finds_them(
        self, tiny: TinyEncoder, few_utterances: Toy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        split = few_utterances.split()
        for epoch in self.watched(tiny, split, monkeypatch, components=5):
            features, labels = epoch[0]["features"], epoch[0]["labels"]
            left, _, _ = np.linalg.svd(features - features.mean(axis=0), full_matrices=False)
            points = left[:, :5] / np.linalg.norm(left[:, :5], axis=1, keepdims=True)
            means = np.stack([points[labels == k].mean(axis=0) for k in range(6)])
            gaps = np.linalg.norm(points[:, None] - means, axis=2)
            assert (labels == gaps.argmin(axis=1)).mean() > 0.95  # k-means has nothing to mend
            assert all(np.array_equal(step["labels"], labels) for step in epoch)

    def test_kmeans_starts_elsewhere_in_every_epoch(
        self, tiny: TinyEncoder, few_utterances: Toy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first, *others = self.watched(tiny, few_utterances.split(), monkeypatch, lr=0.0)
        for other in others:
            assert np.array_equal(other[0]["features"], first[0]["features"])
            assert not np.array_equal(other[0]["labels"], first[0]["labels"])

    def test_a_small_cluster_is_drawn_as_often_as_a_large_one(
        self, tiny: TinyEncoder, few_utterances: Toy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        texts = few_utterances.texts[:1] * 35 + few_utterances.texts[35:]
        split = replace(few_utterances.split(), texts=texts)
        for epoch in self.watched(tiny, split, monkeypatch):
            labels = epoch[0]["labels"]
            assert np.bincount(labels).max() >= 35
            drawn = np.concatenate([step["rows"] for step in epoch])
            assert np.bincount(labels[drawn]).tolist() == [10] * 6

    def test_a_new_head_has_no_bias_and_no_momentum(
        self, tiny: TinyEncoder, few_utterances: Toy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for epoch in self.watched(tiny, few_utterances.split(), monkeypatch):
            assert not epoch[0]["bias"].any()
            # The first step of AdamW is as long for one gradient as for another.
            moved = epoch[1]["bias"].abs()
            torch.testing.assert_close(moved, moved.mean().expand(6), rtol=1e-3, atol=0)

    def test_clusters_are_learnt(self, tiny: TinyEncoder, utterances: Toy) -> None:
        changes = {"discover": {"epochs": 3, "batch": 12, "lr": 1e-2}}
        found = run(utterances.split(), published_short("deepcluster", tiny, changes))
        assert max(row["loss"] for row in found.history) < 0.95 * math.log(8)


class TestGCD:
    def contrasted(
        self, tiny: TinyEncoder, split: Split, monkeypatch: pytest.MonkeyPatch
    ) -> tuple[float, list[IntArray], list[FloatArray]]:
        """Return the loss of an epoch, the rows of every step and their projections."""
        outputs: list[FloatArray] = []

        def watched(*args: Any, **how: Any) -> nn.Module:
            head = plain(*args, **how)
            head.register_forward_hook(lambda _, __, out: outputs.append(out.detach().numpy()))
            return head

        plain = gcd.projection
        monkeypatch.setattr(gcd, "projection", watched)
        steps = watch_training(monkeypatch)
        changes = {"contrast": {"epochs": 1, "batch": 16, "lr": 1e-3}, "restarts": 2}
        found = run(split, published_short("gcd", tiny, changes))
        return found.history[0]["loss"], [rows for rows, _ in steps], outputs

    def contrast(self, vectors: FloatArray, classes: IntArray) -> float:
        """Return the mean over anchors and their positives of -log p at temperature 0.07."""
        powers = np.exp(cosines(vectors.astype(float)) / 0.07)
        losses = []
        for i, own in enumerate(classes):
            others = [j for j in range(len(classes)) if j != i]
            total = sum(powers[i, j] for j in others)
            positives = [j for j in others if classes[j] == own]
            losses.append(np.mean([-math.log(powers[i, j] / total) for j in positives]))
        return float(np.mean(losses))

    def test_loss_is_half_contrast_of_instances_and_half_of_given_intents(
        self, tiny: TinyEncoder, few_utterances: Toy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        split = few_utterances.split()
        found, steps, outputs = self.contrasted(tiny, split, monkeypatch)
        losses = []
        for rows, vectors in zip(steps, outputs, strict=True):
            given = split.targets[rows] >= 0
            same = self.contrast(vectors[given], split.targets[rows][given])
            losses.append(0.5 * self.contrast(vectors, rows) + 0.5 * same)
        assert found == pytest.approx(np.mean(losses), rel=1e-4)

    def test_without_labels_the_contrast_of_instances_remains(
        self, tiny: TinyEncoder, few_utterances: Toy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        split = without_labels(few_utterances.split())
        found, steps, outputs = self.contrasted(tiny, split, monkeypatch)
        losses = [self.contrast(*step) for step in zip(outputs, steps, strict=True)]
        assert found == pytest.approx(0.5 * np.mean(losses), rel=1e-4)

    def test_half_of_every_batch_is_labelled_though_few_rows_are(
        self, tiny: TinyEncoder, few_utterances: Toy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        split = few_utterances.split(every=5)  # 8 of 60 rows are labelled
        _, steps, _ = self.contrasted(tiny, split, monkeypatch)
        assert len(steps) == 4  # of 16 rows: as many as there are
        for rows in steps:
            assert (np.bincount(rows)[rows] == 2).all()  # two views
            assert (split.targets[rows] >= 0).mean() == 0.5

    def test_projection_learns_along(
        self, tiny: TinyEncoder, few_utterances: Toy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        heads: list[nn.Module] = []

        def watched(*args: Any, **how: Any) -> nn.Module:
            heads.extend([plain(*args, **how), plain(*args, **how)])
            return heads[0]

        plain = gcd.projection
        monkeypatch.setattr(gcd, "projection", watched)
        run(few_utterances.split(), published_short("gcd", tiny, QUICK["gcd"]))
        trained, untrained = (list(head.parameters()) for head in heads)
        assert not any(a.equal(b) for a, b in zip(trained, untrained, strict=True))

    def test_labelled_rows_pull_the_centroid_of_their_class_wherever_they_lie(
        self, tiny: TinyEncoder, utterances: Toy
    ) -> None:
        split = utterances.split()
        targets = split.targets.copy()
        targets[split.labelled] = np.roll(targets[split.labelled], 3)  # most are now wrong
        split = replace(split, targets=targets)
        found = run(split, published_short("gcd", tiny, QUICK["gcd"]))
        means = [found.embeddings[found.labels == k].mean(axis=0) for k in range(8)]
        np.testing.assert_allclose(found.prototypes, means, atol=1e-3)
