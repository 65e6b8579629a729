"""The one training loop: steps, schedule, early stop, history, checkpoint and resume live here."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from ronid.encode.rows import Rows
from ronid.errors import RonidError, UsageError
from ronid.seeds import derive
from ronid.train.optim import forget, make_optimiser, peak_rate, rate_factor, set_rate
from ronid.train.state import StageState, Training
from ronid.train.step import Step, Stepper, own_stream
from ronid.train.stopping import AllEpochs, Stopper
from ronid.types import IntArray


@dataclass(frozen=True)
class Stage:
    """One stage of a recipe.

    Args:
        name: Unique within the recipe; part of every sub-seed.
        rows: The prepared rows that batches are made of.
        epochs: Upper bound.
        steps: Steps per epoch.
        lr: Peak learning rate.
        stopper: Ends the stage early.
        fresh_heads: Heads that `before_epoch` draws anew; the optimiser then forgets what it knew
            of their gradients.
        schedule_epochs: Epochs that the schedule of the learning rate is made for where they are
            more than `epochs`: the stage then ends in the middle of it.
        head_rate: Learning rate of the heads, as a multiple of the encoder's.
    """

    name: str
    rows: Rows
    epochs: int
    steps: int
    lr: float
    stopper: Stopper = AllEpochs()
    fresh_heads: tuple[str, ...] = ()
    schedule_epochs: int = 0
    head_rate: float = 1.0


def nothing_to_train(stage: str) -> UsageError:
    """Return what to raise where a stage has no weight that it could train."""
    return UsageError(
        f"nothing to train in stage '{stage}': set encoder.trainable_layers (which needs texts) or "
        "encoder.adapter_width"
    )


def run_epochs(
    training: Training,
    stage: Stage,
    state: StageState,
    batches: Callable[[np.random.Generator], Iterable[tuple[IntArray, ...]]],
    step: Step,
    *,
    before_epoch: Callable[[int], Mapping[str, Any]] = lambda _: {},
    after_epoch: Callable[[int], Mapping[str, Any]] = lambda _: {},
) -> None:
    """Train until the stage's last epoch or until its stopper says so.

    Args:
        training: What the stages of this fit share.
        stage: Length, learning rate and stopping rule.
        state: What this stage changes; put back first if a checkpoint holds it.
        batches: Given an epoch's generator, yields that epoch's batches as groups of row numbers.
        step: Turns the picked groups into named losses; the one called `loss` is minimised. It
            may read nothing from a GPU, and changes tensors of `state` in place only.
        before_epoch: Runs before the first step of an epoch (an E-step); returns figures.
        after_epoch: Runs after the last step; returns figures.

    Raises:
        UsageError: There is no weight to train.
    """
    modules = [state.encoder, *state.heads.values()]
    stage = replace(stage, lr=peak_rate(stage.lr, state.encoder.size, training.optimiser))
    rates = [1.0, *(stage.head_rate for _ in state.heads)]
    optimiser = make_optimiser(modules, stage.lr, training.optimiser, rates)
    if stage.epochs and not any(group["params"] for group in optimiser.param_groups):
        raise nothing_to_train(stage.name)
    first = training.begin(stage.name, state, optimiser)
    training.progress.begin(stage.name, stage.epochs)
    training.progress.advance(first)
    done = bool(state.scalars.get("stopped", False))
    clip_norm, device = training.optimiser.clip_norm, state.encoder.device
    stepper = Stepper(step, optimiser, clip_norm, stage.rows, device)
    with own_stream(state.encoder.device):
        for epoch in range(first, stage.epochs):
            if done:
                break
            with seeded(state.encoder.device, training.seed, stage.name, epoch) as rng:
                row: dict[str, Any] = {"stage": stage.name, "epoch": epoch + 1}
                row |= before_epoch(epoch)
                forget(optimiser, (state.heads[name] for name in stage.fresh_heads))
                for module in modules:
                    module.train(True)
                row |= _run_steps(training, stage, stepper, batches(rng), epoch)
                row |= after_epoch(epoch)
            training.history.append(row)
            training.progress.advance(1, row)
            done = state.scalars["stopped"] = stage.stopper.stop(row, state)
            if training.checkpoint is not None and training.checkpoint.due:
                training.keep(stage.name, epoch + 1, state, optimiser)
    stage.stopper.finish(state)
    training.progress.end()


def _run_steps(
    training: Training,
    stage: Stage,
    stepper: Stepper,
    batches: Iterable[tuple[IntArray, ...]],
    epoch: int,
) -> dict[str, float]:
    """Run one epoch of optimiser steps; return the mean of every loss."""
    total = max(stage.epochs, stage.schedule_epochs) * stage.steps
    for count, batch in enumerate(batches):
        number = epoch * stage.steps + count
        set_rate(stepper.optimiser, stage.lr * rate_factor(number, total, training.optimiser))
        stepper(batch)
    means = stepper.means()
    if not all(map(math.isfinite, means.values())):
        raise RonidError(
            f"a loss stopped being a number in stage '{stage.name}', epoch {epoch + 1}; "
            f"lower the learning rate ({stage.lr:g}) or look for broken embeddings"
        )
    return means


@contextmanager
def seeded(
    device: torch.device, seed: int, *coordinates: str | int
) -> Iterator[np.random.Generator]:
    """Seed torch's global generators for this place of the run, and put them back afterwards.

    Dropout can draw from nothing else; everything else draws from the generator handed out.
    """
    sub_seed = derive(seed, *coordinates)
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(sub_seed)
        yield np.random.default_rng(sub_seed)
