"""Neighbour contrast: utterances are pulled to their nearest neighbours before any clustering."""

from collections.abc import Iterator, Mapping

import numpy as np
import torch
from torch import Tensor

from ronid.assign.neighbours import nearest_neighbours
from ronid.config import ContrastConfig
from ronid.encode.rows import Rows
from ronid.losses.contrastive import neighbour_mask, supervised_contrastive_loss
from ronid.train.batches import cycled_batches, shuffled_batches, steps_per_epoch
from ronid.train.loop import Stage, run_epochs
from ronid.train.state import StageState, Training
from ronid.types import IntArray, Split

Batch = tuple[IntArray, IntArray]
"""Anchors with one neighbour each, and labelled rows."""


def contrast(training: Training, split: Split, rows: Rows, config: ContrastConfig) -> None:
    """Bring neighbours and rows of the same given intent together.

    Args:
        training: What the stages of this fit share; its encoder is trained.
        split: The problem.
        rows: Its training rows, prepared.
        config: Settings.
    """
    if "contrast" in training.finished or config.epochs == 0 or len(rows) < 3:
        return
    encoder = training.encoder
    state = StageState(encoder)
    targets = torch.from_numpy(split.targets).to(encoder.device)
    count = config.neighbours or max(
        1, round(config.neighbour_share * len(split) / split.n_intents)
    )
    stage = Stage("contrast", config.epochs, steps_per_epoch(len(rows), config.batch), config.lr)

    def refresh(epoch: int) -> Mapping[str, float]:
        if epoch % config.refresh_epochs == 0 or "neighbours" not in state.tensors:
            state.tensors["neighbours"] = nearest_neighbours(encoder.embed_all(rows), count)
        return {}

    def batches(rng: np.random.Generator) -> Iterator[Batch]:
        neighbours = state.tensors["neighbours"].cpu().numpy()
        labelled = cycled_batches(split.labelled, config.labelled_batch, rng)
        for anchors in shuffled_batches(rows.lengths, config.batch, rng):
            drawn = neighbours[anchors, rng.integers(neighbours.shape[1], size=len(anchors))]
            yield np.concatenate([anchors, drawn]), next(labelled)

    def step(batch: Batch) -> Mapping[str, Tensor]:
        pairs, labelled = batch
        vectors = encoder(rows, np.concatenate([pairs, labelled]))
        index = torch.from_numpy(pairs).to(encoder.device)
        positive = neighbour_mask(index, state.tensors["neighbours"], targets)
        near = supervised_contrastive_loss(vectors[: len(pairs)], positive, config.temperature)
        if len(labelled) == 0:
            return {"loss": near, "loss_neighbour": near}
        given = targets[torch.from_numpy(labelled).to(encoder.device)]
        same = given[:, None] == given[None, :]
        known = supervised_contrastive_loss(vectors[len(pairs) :], same, config.temperature)
        loss = near + config.supervised_weight * known
        return {"loss": loss, "loss_neighbour": near, "loss_supervised": known}

    run_epochs(training, stage, state, batches, step, before_epoch=refresh)
    training.finish("contrast")
