"""USNID, semi-supervised: k-means that goes on from its own centroids, and contrast of clusters.

Zhang et al., A Clustering Framework for Unsupervised and Semi-supervised New Intent Discovery
(TKDE 2023). The last layer is pre-trained by cross-entropy of labelled rows and contrast of
dropout views of all rows. Then all layers are trained; an epoch is

    1.  k-means over all features, from the centroids of the epoch before: clusters keep their
        numbers, and hence a classifier its outputs, without any matching
    2.  a pass over all rows: contrast of two views with 40 % of the tokens erased, positives being
        the same cluster, and cross-entropy of both views with their clusters
    3.  a pass over the labelled rows: contrast of dropout views, positives being the same intent

Deviations. The published epoch begins with the pass over labelled rows, and so with one more of
them before the first k-means; here it ends with it, which is the same circle entered one place
later, right after a pre-training that contrasted the same rows. Both passes share one optimiser and
one schedule; the published code has two. Training ends after the epoch, not before the passes, in
which k-means changed fewer than `stop_change` of the labels. Erased tokens fall out, as published;
but each view is read with an attention mask of its own, where the published code reads the second
with that of the first. Gradients are clipped by norm, as for all methods here, not by value, and
the moments of Adam are corrected, there not (`optimiser.bias_correction`). Features are the masked
mean and a dense layer; the published code computes a tanh above it and overwrites the result, so
the layer is linear. Pre-training has dropout in the last layer only, and its raw rows are all rows,
labelled ones among them. Labelled rows keep the clusters that k-means gives them during training,
as published. Without any label it is contrast of views and then the same circle without its third
part; the unsupervised variant of the paper, which pre-trains otherwise, is not that.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from ronid.assign.kmeans import kmeans
from ronid.config import ALL_LAYERS, EncoderConfig, OptimiserConfig, PretrainConfig
from ronid.encode.rows import Rows
from ronid.losses.contrastive import supervised_contrastive_loss
from ronid.train.batches import cycled_batches, shuffled_batches, steps_per_epoch
from ronid.train.clusters import cluster_rows
from ronid.train.diagnose import label_accuracy
from ronid.train.heads import classifier
from ronid.train.infer import gather_by_kmeans
from ronid.train.loop import Stage, run_epochs
from ronid.train.pretrain import pretrain_layers
from ronid.train.state import StageState, Training, inputs_of
from ronid.train.step import Picks
from ronid.train.stopping import SettledLabels
from ronid.train.views import erased_view
from ronid.types import Discovery, IntArray, Split


def _encoder() -> EncoderConfig:
    """All layers are trained, and a dense layer above them."""
    return EncoderConfig(trainable_layers=ALL_LAYERS, head="linear", normalise=False)


def _pretrain() -> PretrainConfig:
    """The pre-training of this method: contrast in place of masked language."""
    return PretrainConfig(
        patience=10,
        labelled_batch=128,
        language_weight=0.0,
        head_dropout=0.0,  # the dense layer has it already
        epoch_rows="all",
        contrast_weight=1.0,
    )


@dataclass(frozen=True)
class Config:
    """Settings of USNID.

    Args:
        pretrain: The stage before clustering.
        epochs: Upper bound on rounds of clustering.
        stop_change: Share of changed labels below which the last round has come.
        lr: Learning rate of clustering.
        batch: Rows per step; each comes in two views.
        temperature: Temperature of both contrasts of clustering.
        token_erasure: Share of the tokens of an utterance that fall out of a view.
        restarts: Starts of the first k-means; later ones have one, the last centroids.
    """

    method: str = "usnid"
    preset: str = "published"
    encoder: EncoderConfig = field(default_factory=_encoder)
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    pretrain: PretrainConfig = field(default_factory=_pretrain)
    epochs: int = 100
    stop_change: float = 5e-4
    lr: float = 1e-5
    batch: int = 128
    temperature: float = 0.05
    token_erasure: float = 0.4
    restarts: int = 10

    @property
    def holds_out(self) -> bool:
        """Only pre-training stops by held-out labels."""
        return self.pretrain.holds_out


PUBLISHED: dict[str, dict[str, Any]] = {
    "clinc": {"lr": 1e-5, "temperature": 0.1},
    "banking": {"lr": 1e-5, "temperature": 0.05},
    "stackoverflow": {"lr": 2e-5, "temperature": 0.05},
}
"""Constants by benchmark."""


def fit(split: Split, config: Config, training: Training) -> Discovery:
    """Discover the intents of `split`."""
    pretrain_layers(training, split, config.pretrain, config.encoder.trainable_layers)
    rows = training.encoder.prepare(inputs_of(split), training.progress)
    state = cluster(training, split, rows, config)
    centroids = state.tensors.get("centroids")
    return gather_by_kmeans(training, split, rows, n_init=config.restarts, init=centroids)


def refit(
    features: Tensor, discovery: Discovery, config: Config, generator: torch.Generator
) -> IntArray:
    """Return the clusters of the scored rows, by k-means from the centroids of the training rows.

    That is the published way of scoring.
    """
    centroids = torch.from_numpy(discovery.prototypes).to(features)
    found = kmeans(features, discovery.n_intents, generator=generator, init=centroids)
    return found.labels.cpu().numpy()


def cluster(training: Training, split: Split, rows: Rows, config: Config) -> StageState:
    """Alternate k-means and both passes; the state returned holds `centroids`."""
    encoder, known = training.encoder, split.labelled
    heads: dict[str, nn.Module] = {
        name: classifier(training, f"usnid {name}", split.n_intents)
        for name in ("classes", "contrast")
    }
    state = StageState(encoder, heads)
    given_steps = steps_per_epoch(len(known), config.batch) if len(known) else 0
    stage = Stage(
        name="cluster",
        rows=rows,
        epochs=config.epochs,
        steps=steps_per_epoch(len(rows), config.batch) + given_steps,
        lr=config.lr,
        stopper=SettledLabels(config.stop_change, 1),
    )
    targets = torch.from_numpy(split.targets).to(encoder.device)

    def assign(epoch: int) -> Mapping[str, Any]:
        features = encoder.embed_all(rows)
        init, place = state.tensors.get("centroids"), ("k-means", epoch)
        found = cluster_rows(training, split, features, *place, n_init=config.restarts, init=init)
        state.put("centroids", found.centroids)
        return state.put_labels(found.labels) | label_accuracy(found.labels, split)

    def batches(rng: np.random.Generator) -> Iterator[tuple[IntArray, IntArray]]:
        for mixed in shuffled_batches(len(rows), config.batch, rng):
            yield known[:0], np.tile(mixed, 2)
        for given in islice(cycled_batches(known, config.batch, rng), given_steps):
            yield np.tile(given, 2), known[:0]

    def step(picks: Picks) -> Mapping[str, Tensor]:
        given, mixed = picks  # two views of each row, of one group at a time
        if len(given):
            loss = _contrast(state, encoder(rows, given), targets[given.index], config.temperature)
            return {"loss": loss, "loss_labelled": loss}
        features = erased_view(encoder, rows, mixed, config.token_erasure)
        labels = state.tensors["labels"][mixed.index]
        contrast = _contrast(state, features, labels, config.temperature)
        cross_entropy = functional.cross_entropy(state.heads["classes"](features), labels)
        loss = contrast + cross_entropy
        return {"loss": loss, "loss_contrast": contrast, "loss_ce": cross_entropy}

    run_epochs(training, stage, state, batches, step, before_epoch=assign)
    return state


def _contrast(state: StageState, features: Tensor, labels: Tensor, temperature: float) -> Tensor:
    """Return the contrast between views, in the space of the stage's own head."""
    vectors = functional.normalize(state.heads["contrast"](features), dim=-1)
    return supervised_contrastive_loss(vectors, labels, temperature)
