"""LatentEM: intents as latent variables, found by k-means (E) and learnt by contrast (M).

Pre-train on the labelled rows. Then every epoch

    E-step  cluster the features of all rows by k-means; clusters keep their numbers by Hungarian
            matching of centroids; each labelled row lends its label to the most similar unlabelled
            row of its cluster
    M-step  contrast in which rows of one cluster are positives, and cross-entropy of the rows that
            have a label, given or lent, through the classifier of pre-training:
            L = (1 - beta) L_contrast + beta L_ce

Zhou, Quan and Qiu, 2023, A Probabilistic Framework for Discovering New Intents (ACL).

The published code has settings for BANKING only; they serve for all. The moments of Adam are not
corrected, as there, so that first steps are long; clipping, epsilon and decay are those of all
methods here. Otherwise than there: the dropout of the features is that of the encoder's head; no
epoch is picked by test labels, the last one counts; the first unlabelled row can get a label too; a
row that is offered several labels takes that of the most similar giver, on which the paper is
silent. Six layers learn in the EM loop; of an encoder with no more than six all, word embeddings
included. In pre-training dropout is on in the layer that is trained only
(`encoder.frozen_dropout`).

Without labels there is neither pre-training nor cross-entropy, and the contrast remains.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn import functional

from ronid.assign.donate import donated_labels
from ronid.config import EncoderConfig, OptimiserConfig, PretrainConfig, early_bert_adam
from ronid.encode.rows import Pick, Rows
from ronid.losses.contrastive import supervised_contrastive_loss
from ronid.losses.known import known_cross_entropy
from ronid.train.batches import one_pass, steps_per_epoch
from ronid.train.diagnose import label_accuracy
from ronid.train.heads import classifier, projection
from ronid.train.infer import gather_by_kmeans
from ronid.train.loop import Stage, run_epochs
from ronid.train.pretrain import pretrain_layers
from ronid.train.recluster import recluster
from ronid.train.state import StageState, Training, inputs_of
from ronid.train.step import Picks
from ronid.types import Discovery, Split

PROJECTION_DROPOUT = 0.1


@dataclass(frozen=True)
class EMConfig:
    """The EM loop.

    Args:
        epochs: How many.
        lr: Learning rate.
        batch: Rows per step.
        temperature: Temperature of the contrast.
        cross_entropy_share: beta, the weight of the cross-entropy; the contrast has the rest.
        lent_labels: Rows that each labelled row lends its label to, every epoch; 0 for none.
        restarts: Restarts of every k-means.
    """

    epochs: int = 100
    lr: float = 5e-5
    batch: int = 512
    temperature: float = 0.1
    cross_entropy_share: float = 0.6
    lent_labels: int = 1
    restarts: int = 10


@dataclass(frozen=True)
class Config:
    """Settings of LatentEM.

    Args:
        encoder: Its trainable layers are those of the EM loop.
        pretrain: Cross-entropy on the labelled rows.
        em: The EM loop.
    """

    method: str = "latent_em"
    preset: str = "published"
    encoder: EncoderConfig = field(
        default_factory=lambda: EncoderConfig(trainable_layers=6, head="tanh", normalise=False)
    )
    optimiser: OptimiserConfig = field(default_factory=early_bert_adam)
    pretrain: PretrainConfig = field(
        # The features have a dropout of their own.
        default_factory=lambda: PretrainConfig(
            language_weight=0.0, labelled_batch=512, head_dropout=0.0
        )
    )
    em: EMConfig = field(default_factory=EMConfig)

    @property
    def holds_out(self) -> bool:
        """Only pre-training stops by held-out labels."""
        return self.pretrain.holds_out


def fit(split: Split, config: Config, training: Training) -> Discovery:
    """Discover the intents of `split`."""
    layers = config.encoder.trainable_layers
    pretrain_layers(training, split, config.pretrain, layers, keep_classes=True)
    rows = training.encoder.prepare(inputs_of(split), training.progress)
    alternate(training, split, rows, config.em)
    return gather_by_kmeans(training, split, rows, n_init=config.em.restarts)


def alternate(training: Training, split: Split, rows: Rows, config: EMConfig) -> None:
    """Run the EM loop."""
    if "em" in training.finished:
        return
    encoder = training.encoder
    state = StageState(encoder, _heads(training, split))
    targets = torch.from_numpy(split.targets).to(encoder.device)
    steps = steps_per_epoch(len(rows), config.batch)
    stage = Stage("em", rows, config.epochs, steps, config.lr)

    def e_step(epoch: int) -> Mapping[str, float]:
        points = encoder.embed_all(rows)
        row = recluster(training, state, points, split.n_intents, epoch, n_init=config.restarts)
        labels = donated_labels(points, targets, state.tensors["labels"], config.lent_labels)
        state.put("targets", labels)
        row |= {"lent": int(((labels >= 0) & (targets < 0)).sum())}
        return row | label_accuracy(state.tensors["labels"], split)

    def step(picks: Picks) -> Mapping[str, Tensor]:
        return m_step(picks[0], state, rows, config)

    batches = one_pass(len(rows), config.batch)
    run_epochs(training, stage, state, batches, step, before_epoch=e_step)
    training.finish("em")


def _heads(training: Training, split: Split) -> dict[str, nn.Module]:
    """Return the projection of the contrast and, where there are labels, their classifier."""
    dim = training.encoder.dim
    layers = projection(training, "em projection", dim, width=2 * dim, dropout=PROJECTION_DROPOUT)
    heads: dict[str, nn.Module] = {
        "projection": nn.Sequential(layers, nn.ReLU(), nn.Dropout(PROJECTION_DROPOUT))
    }
    if split.known:
        linear = classifier(training, "em classes", len(split.known))
        heads["classes"] = nn.Sequential(nn.Identity(), linear)  # named as in pre-training
        training.recall("classes", heads["classes"])
    return heads


def m_step(pick: Pick, state: StageState, rows: Rows, config: EMConfig) -> dict[str, Tensor]:
    """Return the losses of one batch.

    Args:
        pick: Rows of the whole training set.
        state: Holds this epoch's `labels` (clusters) and `targets` (known intents, -1 for none).
        rows: The training rows, prepared.
        config: Weights and temperature.
    """
    features = state.encoder(rows, pick)
    projected = functional.normalize(state.heads["projection"](features), dim=-1)
    labels = state.tensors["labels"][pick.index]
    near = supervised_contrastive_loss(projected, labels, config.temperature, per_pair=True)
    share = config.cross_entropy_share
    if "classes" not in state.heads:
        return {"loss": (1 - share) * near, "loss_contrast": near}
    known = known_cross_entropy(
        state.heads["classes"](features), state.tensors["targets"][pick.index]
    )
    loss = (1 - share) * near + share * known
    return {"loss": loss, "loss_contrast": near, "loss_ce": known}
