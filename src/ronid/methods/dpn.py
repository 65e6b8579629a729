"""DPN (An et al., AAAI 2023): prototypes of labelled and of all utterances, kept apart.

Pre-training teaches the encoder by cross-entropy and masked words. Then k-means over all
utterances gives the prototypes of all intents, and the means of the labelled ones those of the
known intents; a Hungarian matching says which clusters are known. Every utterance is drawn softly
to the first; one in a cluster that passes for known is drawn to the second as well; labelled ones
have a cross-entropy over all intents. The prototypes of all intents stand still, those of known
intents follow their labelled utterances by a moving average, once an epoch.

Without labels only the pull to fixed clusters would be left, which teaches nothing: DPN needs some.

Deviations and guesses:
- Features are the masked mean of the tokens, then dense and tanh; published is [CLS].
- Masked words are read with a right attention mask, which the published code mixes up.
- A sentence encoder brings no head for masked words, as BERT does: a new one learns along with
  pre-training.
- The second stage trains the last three layers, as published: a quarter of those of BERT, but half
  of the six of the embedded encoder.
- In the second stage dropout is on in the layers that are trained only (`encoder.frozen_dropout`).
- Batches are shuffled; the published order is that of the file, labelled utterances first.
- Whether the weights of the soft pull carry a gradient is not known; here they do, as the equation
  has it. The labelled batch of the second stage is that of the first.
- AdamW for the Adam of early BERT code, which does not correct its moments
  (`optimiser.bias_correction`).
- Published inference is k-means over the scored utterances (`refit` of the benchmark); one new
  utterance gets the nearest centre of k-means over the training utterances.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from ronid.assign.kmeans import class_means
from ronid.config import ALL_LAYERS, EncoderConfig, OptimiserConfig, PretrainConfig
from ronid.encode.rows import Rows
from ronid.losses.prototype_distance import soft_cosine_loss, soft_distance_loss
from ronid.train.batches import one_pass_with_labelled, steps_per_epoch
from ronid.train.clusters import cluster_rows
from ronid.train.heads import classifier
from ronid.train.infer import gather_by_kmeans
from ronid.train.loop import Stage, run_epochs
from ronid.train.pretrain import pretrain_layers
from ronid.train.state import StageState, Training, inputs_of
from ronid.train.step import Picks
from ronid.types import Discovery, Split

STAGE = "discovery"

PUBLISHED: dict[str, dict[str, Any]] = {
    "clinc": {"discovery": {"epochs": 80, "known_weight": 10.0}},
    "banking": {"discovery": {"epochs": 60, "known_weight": 10.0}},
    "stackoverflow": {"discovery": {"epochs": 10, "known_weight": 90.0}},
}


@dataclass(frozen=True)
class DiscoveryConfig:
    """The stage in which utterances are drawn to prototypes.

    Args:
        epochs: Passes over all utterances; published per benchmark, here BANKING's.
        schedule_epochs: Epochs that the learning rate's rise and fall are made for.
        lr: Learning rate.
        batch: Utterances per step.
        labelled_batch: Labelled utterances beside them for the cross-entropy.
        temperature: tau of the soft assignment to prototypes.
        known_weight: gamma, weight of the pull to prototypes of known intents; published per
            benchmark, here BANKING's.
        prototype_momentum: Share that the prototypes of known intents keep of themselves in an
            epoch.
        restarts: k-means restarts, in training and in the end.
    """

    epochs: int = 60
    schedule_epochs: int = 100
    lr: float = 1e-5
    batch: int = 256
    labelled_batch: int = 32
    temperature: float = 0.07
    known_weight: float = 10.0
    prototype_momentum: float = 0.9
    restarts: int = 20


@dataclass(frozen=True)
class Config:
    """Settings of DPN; its sections are its stages.

    Args:
        pretrain: Cross-entropy and masked words; an epoch is a pass over all utterances.
        discovery: The pull to prototypes.
    """

    method: str = "dpn"
    preset: str = "published"
    encoder: EncoderConfig = field(
        default_factory=lambda: EncoderConfig(trainable_layers=3, head="tanh", normalise=False)
    )
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    pretrain: PretrainConfig = field(
        default_factory=lambda: PretrainConfig(
            lr=1e-5,
            labelled_batch=32,
            language_batch=32,
            trainable_layers=ALL_LAYERS,
            head_dropout=0.0,  # the features have their own
            epoch_rows="all",
        )
    )
    discovery: DiscoveryConfig = field(default_factory=DiscoveryConfig)

    @property
    def holds_out(self) -> bool:
        """Pre-training stops by held-out labels."""
        return self.pretrain.holds_out


def fit(split: Split, config: Config, training: Training) -> Discovery:
    """Discover the intents of `split`."""
    pretrain_layers(training, split, config.pretrain, config.encoder.trainable_layers)
    rows = training.encoder.prepare(inputs_of(split), training.progress)
    learn(training, split, rows, config.discovery)
    return gather_by_kmeans(training, split, rows, n_init=config.discovery.restarts)


def learn(training: Training, split: Split, rows: Rows, config: DiscoveryConfig) -> None:
    """Draw all utterances to the prototypes.

    Args:
        training: What the stages of this fit share; its encoder is trained.
        split: The problem.
        rows: Its training rows, prepared.
        config: Settings.
    """
    if STAGE in training.finished:
        return
    encoder, known = training.encoder, len(split.known)
    targets = torch.from_numpy(split.targets).to(encoder.device)
    state = StageState(encoder, {"classes": classifier(training, "classes", split.n_intents)})
    steps = steps_per_epoch(len(rows), config.batch)
    stage = Stage(
        STAGE, rows, config.epochs, steps, config.lr, schedule_epochs=config.schedule_epochs
    )

    inputs, labelled = inputs_of(split), split.labelled
    chosen = inputs[labelled] if isinstance(inputs, np.ndarray) else [inputs[i] for i in labelled]
    labelled_rows = encoder.prepare(chosen)  # all that the epochs after the first look at

    def before_epoch(_: int) -> Mapping[str, float]:
        means = class_means(encoder.embed_all(labelled_rows), targets[labelled], known)
        if "prototypes" not in state.tensors:
            points = encoder.embed_all(rows)
            found = cluster_rows(training, split, points, "prototypes", n_init=config.restarts)
            state.put("prototypes", found.centroids)
            state.put("passes_for_known", (found.labels < known).float())
            state.put("known_prototypes", means)
        kept = config.prototype_momentum
        state.put("known_prototypes", kept * state.tensors["known_prototypes"] + (1 - kept) * means)
        return {}

    given = min(config.labelled_batch, len(split.labelled))
    batches = one_pass_with_labelled(split.labelled, given, len(rows), config.batch)

    def step(picks: Picks) -> Mapping[str, Tensor]:
        (pick,) = picks
        features = encoder(rows, pick)
        return losses(features, pick.index, given, state, targets, config)

    run_epochs(training, stage, state, batches, step, before_epoch=before_epoch)
    training.finish(STAGE)


def losses(  # noqa: PLR0917 - what one step is made of
    features: Tensor,
    index: Tensor,
    given: int,
    state: StageState,
    targets: Tensor,
    config: DiscoveryConfig,
) -> dict[str, Tensor]:
    """Return the losses of one batch.

    Args:
        features: (b, d) of labelled rows, and behind them of rows of the whole training set.
        index: (b,) their numbers.
        given: How many of them are the labelled rows.
        state: Holds the prototypes, and which rows pass for known.
        targets: (n,) given intents, -1 where there is none.
        config: Settings.
    """
    mixed, tensors = features[given:], state.tensors
    near = soft_distance_loss(mixed, tensors["prototypes"], config.temperature)
    passes = tensors["passes_for_known"][index[given:]]
    known = soft_cosine_loss(mixed, tensors["known_prototypes"], config.temperature, passes)
    logits = state.heads["classes"](features[:given])
    classified = cross_entropy(logits, targets[index[:given]])
    loss = near + config.known_weight * known + classified
    return {"loss": loss, "loss_all": near, "loss_known": known, "loss_ce": classified}
