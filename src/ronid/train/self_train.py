"""Self-training: features and centres move towards their own surest assignments (DEC, IDEC)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ronid.assign.start import known_first
from ronid.encode.autoencoder import Decoder
from ronid.encode.rows import Rows
from ronid.losses.student_t import self_training_loss, sharpened
from ronid.train.batches import Batches, some_steps
from ronid.train.clusters import cluster_rows
from ronid.train.heads import Centres
from ronid.train.loop import Stage, run_epochs
from ronid.train.reconstruct import rebuilding_loss
from ronid.train.state import StageState, Training
from ronid.train.step import Picks
from ronid.train.stopping import SettledLabels
from ronid.types import Split


@dataclass(frozen=True)
class SelfTrainConfig:
    """Self-training of features and centres towards their own surest assignments (DEC).

    Args:
        restarts: Restarts of the k-means that gives the first centres.
        epochs: Most renewals of the targets.
        epoch_steps: Steps between two renewals.
        batch: Rows per step.
        lr: Learning rate.
        stop_change: Stop when a renewal changes a smaller share of the assignments.
        reconstruction_weight: Weight of the reconstruction beside the divergence (IDEC); 0
            leaves it out (DEC).
    """

    restarts: int = 20
    epochs: int = 120
    epoch_steps: int = 100
    batch: int = 256
    lr: float = 1e-5
    stop_change: float = 0.01
    reconstruction_weight: float = 0.0


def self_train(
    training: Training, split: Split, rows: Rows, config: SelfTrainConfig, decoder: Decoder
) -> Tensor:
    """Train encoder and centres, and return the (k, d) centres, known intents first.

    The first centres are those of k-means. Targets of all rows are renewed every
    `config.epoch_steps` steps, which is one epoch of this stage.

    Args:
        training: What the stages of this fit share; its encoder is trained.
        split: The problem; its labels only say which clusters the known intents are.
        rows: Its training rows, prepared.
        config: Settings.
        decoder: Trained too where `config.reconstruction_weight` is not 0, else left alone.
    """
    stopper = SettledLabels(config.stop_change, 1)
    stage = Stage("self_train", rows, config.epochs, config.epoch_steps, config.lr, stopper)
    batches = some_steps(np.arange(len(rows)), config.batch, stage.steps)
    weight = config.reconstruction_weight
    rebuilt = (decoder, weight) if weight else None
    return sharpen(training, split, stage, batches, restarts=config.restarts, rebuilt=rebuilt)


def sharpen(  # noqa: PLR0913 - a stage, and what goes on beside it
    training: Training,
    split: Split,
    stage: Stage,
    batches: Batches,
    *,
    restarts: int,
    rebuilt: tuple[Decoder, float] | None = None,
    look: Callable[[Centres], Mapping[str, float]] = lambda _: {},
) -> Tensor:
    """Train encoder and centres towards their own sharpened assignment; return the centres.

    The first centres are those of k-means; targets are renewed after every epoch.

    Args:
        training: What the stages of this fit share; its encoder is trained.
        split: The problem; its labels only say which clusters the known intents are.
        stage: Length and learning rate; an epoch is what lies between two renewals.
        batches: Given an epoch's generator, yields its batches.
        restarts: Restarts of the k-means.
        rebuilt: A decoder that is trained too, with the weight of what it rebuilds.
        look: Given the centres after an epoch, returns further figures of it.

    Returns:
        (k, d) centres, known intents first.
    """
    encoder, rows = training.encoder, stage.rows
    centres = Centres(torch.zeros(split.n_intents, encoder.dim)).to(encoder.device)
    state = StageState(encoder, {"centres": centres})
    if rebuilt:
        state.heads["decoder"] = rebuilt[0]

    def begin(_: int) -> Mapping[str, float]:
        if "labels" not in state.tensors:
            features = encoder.embed_all(rows)
            found = cluster_rows(training, split, features, "start", n_init=restarts)
            with torch.no_grad():
                centres.weight.copy_(found.centroids)
            renew_targets(state, rows)
        return {}

    def step(picks: Picks) -> Mapping[str, Tensor]:
        (pick,) = picks
        vectors = encoder(rows, pick)
        divergence = self_training_loss(centres(vectors), state.tensors["targets"][pick.index])
        if not rebuilt:
            return {"loss": divergence}
        error = rebuilding_loss(encoder, rebuilt[0], rows, pick, vectors)
        loss = divergence + rebuilt[1] * error
        return {"loss": loss, "loss_divergence": divergence, "loss_rebuilt": error}

    def renew(_: int) -> Mapping[str, float]:
        return {"changed": renew_targets(state, rows), **look(centres)}

    run_epochs(training, stage, state, batches, step, before_epoch=begin, after_epoch=renew)
    begin(0)  # without a single epoch, the first centres are the answer
    # The clusters have moved since k-means named those of the known intents.
    return known_first(centres.weight.detach(), encoder.embed_all(rows), split)


@torch.no_grad()
def renew_targets(state: StageState, rows: Rows) -> float:
    """Put the sharpened assignment of all rows into `targets`, and their centres into `labels`.

    Returns:
        The share of labels that changed, 1 where there were none.
    """
    q = state.heads["centres"](state.encoder.embed_all(rows))  # (n, k)
    state.put("targets", sharpened(q))
    return state.put_labels(q.argmax(dim=1)).get("changed", 1.0)
