"""Adaptive clustering by pairs: the sure ones first, ever harder ones from epoch to epoch."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ronid.encode.rows import Rows
from ronid.losses.pairwise import adaptive_pair_loss, given_pair_loss
from ronid.train.batches import shuffled_batches, steps_per_epoch
from ronid.train.loop import Stage, run_epochs
from ronid.train.state import StageState, Training
from ronid.train.step import Picks
from ronid.types import IntArray, Split

NARROWING = 0.1
"""The lower threshold rises by this share of what the upper one falls by."""


@dataclass(frozen=True)
class PairsConfig:
    """Settings of learning from pairs whose similarity is beyond a threshold.

    Args:
        epochs: Upper bound; the stage is over as soon as the upper threshold would fall below the
            lower one, with the published thresholds after 46 epochs. 0 skips the stage.
        upper: Similarity above which a pair shares an intent, at first.
        lower: Similarity below which it does not, at first.
        threshold_step: How much the upper threshold falls per epoch; the lower one rises by a
            tenth of it.
        lr: Learning rate.
        batch: Rows per step; all their pairs are looked at.
    """

    epochs: int = 100
    upper: float = 0.95
    lower: float = 0.455
    threshold_step: float = 0.0099
    lr: float = 2e-5
    batch: int = 256


def thresholds(config: PairsConfig, epoch: int) -> tuple[float, float]:
    """Return the upper and the lower threshold of an epoch, counted from 0."""
    moved = config.threshold_step * epoch
    return config.upper - moved, config.lower + NARROWING * moved


def epochs_to_meet(config: PairsConfig) -> int:
    """Return the epochs, `config.epochs` at most, before the thresholds have passed each other."""
    gap, step = config.upper - config.lower, (1 + NARROWING) * config.threshold_step
    if gap < 0:
        return 0
    # The tiny share counts thresholds that meet, but for rounding, as not yet past each other.
    return min(config.epochs, math.floor(gap / step + 1e-9) + 1) if step else config.epochs


def learn_pairs(
    training: Training,
    split: Split,
    rows: Rows,
    config: PairsConfig,
    *,
    labelled_weight: float | None = None,
) -> None:
    """Turn features into clusters by the pairs that the encoder is sure of.

    Args:
        training: What the stages of this fit share; its encoder is trained.
        split: The problem.
        rows: Its training rows, prepared.
        config: Settings.
        labelled_weight: Weight of the pairs in a pass over the labelled rows before each pass over
            all rows, in which given intents decide about pairs as well. None uses no label.
    """
    epochs = epochs_to_meet(config)
    if "pairs" in training.finished or not epochs:
        return
    encoder = training.encoder
    state = StageState(encoder)
    constrained = labelled_weight is not None
    labelled, none = split.labelled if constrained else split.labelled[:0], split.labelled[:0]
    targets = torch.from_numpy(split.targets).to(encoder.device)
    passes = [len(rows), len(labelled)] if len(labelled) else [len(rows)]
    steps = sum(steps_per_epoch(n, config.batch) for n in passes)
    stage = Stage("pairs", rows, epochs, steps, config.lr)

    def move_thresholds(epoch: int) -> Mapping[str, float]:
        upper, lower = thresholds(config, epoch)
        state.put("upper", torch.tensor(upper))
        state.put("lower", torch.tensor(lower))
        return {"upper": upper, "lower": lower}

    def batches(rng: np.random.Generator) -> Iterator[tuple[IntArray, IntArray]]:
        for batch in shuffled_batches(len(labelled), config.batch, rng):
            yield labelled[batch], none
        for batch in shuffled_batches(len(rows), config.batch, rng):
            yield none, batch

    def step(picks: Picks) -> Mapping[str, Tensor]:
        given, mixed = picks
        if len(given):
            loss = given_pair_loss(encoder.pooled(rows, given), targets[given.index])
            loss = loss * (labelled_weight or 0.0)
            return {"loss": loss, "loss_given": loss}
        known = targets[mixed.index] if constrained else None
        upper, lower = state.tensors["upper"], state.tensors["lower"]
        loss = adaptive_pair_loss(encoder.pooled(rows, mixed), upper, lower, known)
        return {"loss": loss, "loss_pairs": loss}

    run_epochs(training, stage, state, batches, step, before_epoch=move_thresholds)
    training.finish("pairs")
