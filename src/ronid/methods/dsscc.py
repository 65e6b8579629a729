"""DSSCC (Kumar et al., NAACL 2022), reconstructed: centres and encoder are trained as one.

    phase 1    supervised contrast of the labelled rows, between dropout views
    phase 2    supervised contrast of the labelled rows
               + instance contrast of all rows, between views with words replaced
               + self-training: soft assignment to trained centres towards its own surest part
    inference  the nearest centre

No code was published and of the paper only the abstract was at hand: an encoder and its cluster
centres that learn jointly from supervised and self-supervised losses, with no alignment of
clusters between epochs. The phases and the three losses follow what is known of it at second hand.
All the rest is guessed, most of it by way of SCCL, the unsupervised method of the same kind:

- every constant: temperatures, weights, learning rates and their ratio, batches, epochs;
- the views: random words for a quarter of the words, where the paper is said to substitute words
  by a language model;
- the supervised contrast is made on the features themselves, the instance contrast in the space of
  a projection that is left behind;
- features are the masked mean and keep their length, centres start from k-means over all rows, and
  the target of self-training weighs clusters by their share of all rows, taken once per epoch;
- the whole encoder is trained;
- held-out labels stop phase 1; phase 2 stops when hardly any assignment changes;
- the soft assignment gives the intent of new utterances.

Figures of this method are those of a reconstruction and cannot be held against the paper's.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from ronid.assign.start import known_first
from ronid.config import ALL_LAYERS, EncoderConfig, OptimiserConfig
from ronid.encode.rows import Rows
from ronid.losses.contrastive import supervised_contrastive_loss
from ronid.losses.student_t import self_training_loss, sharpened
from ronid.train.batches import beside_labelled, steps_per_epoch
from ronid.train.clusters import cluster_rows
from ronid.train.diagnose import label_accuracy
from ronid.train.dropout_contrast import DropoutContrastConfig, dropout_contrast
from ronid.train.heads import Centres, projection
from ronid.train.infer import gather
from ronid.train.loop import Stage, run_epochs
from ronid.train.optim import warmup_epochs
from ronid.train.state import StageState, Training, inputs_of
from ronid.train.step import Picks
from ronid.train.stopping import SettledLabels
from ronid.train.views import view
from ronid.types import Discovery, IntArray, Split


@dataclass(frozen=True)
class JointConfig:
    """Settings of phase 2.

    Args:
        epochs: Upper bound; 0 leaves the first centres.
        stop_change: Stop when fewer assignments than this share change ...
        stop_patience: ... for so many epochs in a row.
        lr: Learning rate of the encoder.
        head_rate: That of projection and centres, as a multiple of it.
        batch: Rows per step, of all training rows.
        labelled_batch: Labelled rows beside them for the supervised contrast.
        temperature: Temperature of the supervised contrast.
        contrast_temperature: That of the instance contrast.
        contrast_weight: Weight of the instance contrast.
        token_replacement: Chance of a token to become a random one in the views of an instance.
        projection_width: Width of the space in which the instance contrast is made.
    """

    epochs: int = 100
    stop_change: float = 1e-3
    stop_patience: int = 3
    lr: float = 1e-5
    head_rate: float = 100.0
    batch: int = 128
    labelled_batch: int = 128
    temperature: float = 0.07
    contrast_temperature: float = 0.5
    contrast_weight: float = 10.0
    token_replacement: float = 0.25
    projection_width: int = 128


@dataclass(frozen=True)
class Config:
    """Settings of DSSCC.

    Args:
        supervised: Phase 1.
        joint: Phase 2.
        restarts: Starts of the k-means that the centres begin with.
    """

    method: str = "dsscc"
    preset: str = "published"
    encoder: EncoderConfig = field(
        default_factory=lambda: EncoderConfig(trainable_layers=ALL_LAYERS, normalise=False)
    )
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    supervised: DropoutContrastConfig = field(
        default_factory=lambda: DropoutContrastConfig(supervised_share=1.0)
    )
    joint: JointConfig = field(default_factory=JointConfig)
    restarts: int = 20

    holds_out = True


def fit(split: Split, config: Config, training: Training) -> Discovery:
    """Discover the intents of `split`."""
    encoder = training.encoder
    rows = encoder.prepare(inputs_of(split), training.progress)
    dropout_contrast(training, split, rows, config.supervised, name="supervised")
    points = encoder.embed_all(rows)
    first = cluster_rows(training, split, points, "centres", n_init=config.restarts)
    centres = Centres(first.centroids)
    learn_jointly(training, split, rows, config.joint, centres)
    ordered = known_first(centres.weight.detach(), encoder.embed_all(rows), split)
    return gather(training, split, rows, ordered)


def learn_jointly(
    training: Training, split: Split, rows: Rows, config: JointConfig, centres: Centres
) -> None:
    """Train encoder and centres by the three losses of phase 2.

    Args:
        training: What the stages of this fit share; its encoder is trained.
        split: The problem.
        rows: Its training rows, prepared.
        config: Settings.
        centres: Trained in place.
    """
    encoder = training.encoder
    head = projection(training, "joint", config.projection_width)
    state = StageState(encoder, {"projection": head, "centres": centres})
    targets = torch.from_numpy(split.targets).to(encoder.device)
    known = min(config.labelled_batch, len(split.labelled))
    stage = Stage(
        name="joint",
        rows=rows,
        epochs=config.epochs,
        steps=steps_per_epoch(len(rows), config.batch),
        lr=config.lr,
        stopper=SettledLabels(
            config.stop_change,
            config.stop_patience,
            after=warmup_epochs(config.epochs, training.optimiser),
        ),
        head_rate=config.head_rate,
    )

    def assign(_: int) -> Mapping[str, float]:
        labels, shares = centres.assign_all(encoder.embed_all(rows))
        state.put("shares", shares)
        return state.put_labels(labels) | label_accuracy(labels, split)

    def batches(rng: np.random.Generator) -> Iterator[tuple[IntArray, IntArray]]:
        for given, mixed in beside_labelled(split.labelled, known, len(rows), config.batch, rng):
            yield np.concatenate([np.tile(given, 2), mixed]), np.tile(mixed, 2)

    def step(picks: Picks) -> Mapping[str, Tensor]:
        plain, altered = picks
        vectors = encoder(rows, plain)
        q = centres(vectors[2 * known :])
        cluster = self_training_loss(q, sharpened(q, state.tensors["shares"]))
        views = normalize(head(view(encoder, rows, altered, config.token_replacement)), dim=-1)
        instance = supervised_contrastive_loss(views, altered.index, config.contrast_temperature)
        loss = cluster + config.contrast_weight * instance
        losses = {"loss_cluster": cluster, "loss_instance": instance}
        if known:
            losses["loss_supervised"] = supervised_contrastive_loss(
                normalize(vectors[: 2 * known], dim=-1),
                targets[plain.index[: 2 * known]],
                config.temperature,
            )
            loss = loss + losses["loss_supervised"]
        return {"loss": loss, **losses}

    run_epochs(training, stage, state, batches, step, before_epoch=assign)
