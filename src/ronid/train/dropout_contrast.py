"""Contrast between two dropout views: of every utterance, and of those of one given intent."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from ronid.encode.rows import Rows
from ronid.losses.contrastive import supervised_contrastive_loss
from ronid.train.batches import cycled_batches, steps_per_epoch
from ronid.train.held_out import clustered_accuracy, held_out_rows
from ronid.train.loop import Stage, run_epochs
from ronid.train.state import StageState, Training
from ronid.train.step import Picks
from ronid.train.stopping import BestEpoch
from ronid.types import IntArray, Split


@dataclass(frozen=True)
class DropoutContrastConfig:
    """Settings of the contrast between dropout views.

    Args:
        epochs: Upper bound; 0 skips the stage. An epoch is as many rows as there are, half of them
            labelled; where the supervised part is all there is, one pass over the labelled rows.
        patience: Epochs to wait until k-means finds the known intents better among held-out rows.
        lr: Learning rate.
        batch: Rows per step, each in two views; half of them are labelled, or all labelled
            rows where they are fewer.
        temperature: Temperature of both parts.
        supervised_share: Weight w of the supervised part, 1 - w that of the instances; at 1 no
            unlabelled row is looked at.
    """

    epochs: int = 100
    patience: int = 20
    lr: float = 5e-5
    batch: int = 128
    temperature: float = 0.07
    supervised_share: float = 0.5


def dropout_contrast(
    training: Training,
    split: Split,
    rows: Rows,
    config: DropoutContrastConfig,
    *,
    name: str = "contrast",
    head: nn.Module | None = None,
) -> None:
    """Tell utterances apart, and bring those of the same given intent together.

    Held-out rows say which epoch was best; without any, all epochs are run.

    Args:
        training: What the stages of this fit share; its encoder is trained.
        split: The problem.
        rows: Its training rows, prepared.
        config: Settings.
        name: Name of the stage.
        head: Space in which the contrast is made, trained along; None for the features' own.
    """
    known, free = batch_parts(split, config)
    if name in training.finished or config.epochs == 0 or known + free == 0:
        return
    encoder, share = training.encoder, config.supervised_share
    state = StageState(encoder, {} if head is None else {"projection": head})
    targets = torch.from_numpy(split.targets).to(encoder.device)
    dev_rows = held_out_rows(training, split)
    steps = steps_per_epoch(len(rows) if free else len(split.labelled), config.batch)
    stopper = BestEpoch("dev_accuracy", config.patience)
    stage = Stage(name, rows, config.epochs, steps, config.lr, stopper)

    def batches(rng: np.random.Generator) -> Iterator[tuple[IntArray]]:
        labelled = cycled_batches(split.labelled, known, rng)
        others = cycled_batches(split.unlabelled, free, rng)
        for _ in range(steps):
            yield (np.concatenate([np.tile(next(part), 2) for part in (labelled, others)]),)

    def step(picks: Picks) -> Mapping[str, Tensor]:
        (pick,) = picks
        vectors = encoder.pooled(rows, pick)
        vectors = normalize(vectors if head is None else head(vectors), dim=-1)
        losses: dict[str, Tensor] = {}
        loss = vectors.sum() * 0.0
        if known:
            given = targets[pick.index[: 2 * known]]
            same = supervised_contrastive_loss(vectors[: 2 * known], given, config.temperature)
            losses["loss_supervised"], loss = same, share * same
        if share < 1:
            instance = supervised_contrastive_loss(vectors, pick.index, config.temperature)
            losses["loss_instance"], loss = instance, loss + (1 - share) * instance
        return {"loss": loss, **losses}

    def look(_: int) -> Mapping[str, float]:
        return clustered_accuracy(training, split, dev_rows)

    run_epochs(training, stage, state, batches, step, after_epoch=look)
    training.finish(name)


def batch_parts(split: Split, config: DropoutContrastConfig) -> tuple[int, int]:
    """Return how many labelled and how many unlabelled rows one batch holds.

    Half and half; where labelled rows are short or missing, unlabelled ones fill the batch, and
    where there are no unlabelled ones, labelled ones do. No row comes twice in a batch.
    """
    labelled, unlabelled = len(split.labelled), len(split.unlabelled)
    if config.supervised_share == 1:
        return min(config.batch, labelled), 0
    half = config.batch // 2 if unlabelled else config.batch
    known = min(half, labelled)
    return known, min(config.batch - known, unlabelled)
