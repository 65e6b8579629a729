"""The one training loop: steps, schedule, early stop, history, checkpoint and resume live here."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ronid.errors import RonidError
from ronid.seeds import derive
from ronid.train.optim import linear_factor, make_optimiser
from ronid.train.state import StageState, Training
from ronid.train.stopping import AllEpochs, Stopper


@dataclass(frozen=True)
class Stage:
    """One stage of a recipe.

    Args:
        name: Unique within the recipe; part of every sub-seed.
        epochs: Upper bound.
        steps: Steps per epoch.
        lr: Peak learning rate.
        stopper: Ends the stage early.
    """

    name: str
    epochs: int
    steps: int
    lr: float
    stopper: Stopper = AllEpochs()


def run_epochs(
    training: Training,
    stage: Stage,
    state: StageState,
    batches: Callable[[np.random.Generator], Iterable[Any]],
    step: Callable[[Any], Mapping[str, Tensor]],
    *,
    before_epoch: Callable[[int], Mapping[str, Any]] = lambda _: {},
    after_epoch: Callable[[int], Mapping[str, Any]] = lambda _: {},
) -> None:
    """Train until the stage's last epoch or until its stopper says so.

    Args:
        training: What the stages of this fit share.
        stage: Length, learning rate and stopping rule.
        state: What this stage changes; put back first if a checkpoint holds it.
        batches: Given an epoch's generator, yields that epoch's batches.
        step: Turns a batch into named losses; the one called `loss` is minimised.
        before_epoch: Runs before the first step of an epoch (an E-step); returns figures.
        after_epoch: Runs after the last step; returns figures.
    """
    heads = state.heads.values()
    optimiser = make_optimiser([state.encoder, *heads], stage.lr, training.optimiser)
    first = training.begin(stage.name, state, optimiser)
    training.progress.begin(stage.name, stage.epochs)
    training.progress.advance(first)
    done = bool(state.scalars.get("stopped", False))
    for epoch in range(first, stage.epochs):
        if done:
            break
        with seeded(state.encoder.device, training.seed, stage.name, epoch) as rng:
            row: dict[str, Any] = {"stage": stage.name, "epoch": epoch + 1}
            row |= before_epoch(epoch)
            row |= _run_steps(training, stage, state, optimiser, batches(rng), step, epoch)
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
    state: StageState,
    optimiser: torch.optim.Optimizer,
    batches: Iterable[Any],
    step: Callable[[Any], Mapping[str, Tensor]],
    epoch: int,
) -> dict[str, float]:
    """Run one epoch of optimiser steps; return the mean of every loss."""
    modules = [state.encoder, *state.heads.values()]
    for module in modules:
        module.train(True)
    total = stage.epochs * stage.steps
    weights = [p for group in optimiser.param_groups for p in group["params"]]
    sums: dict[str, Tensor] = {}
    count = 0
    for batch in batches:
        factor = linear_factor(epoch * stage.steps + count, total, training.optimiser.warmup_share)
        for group in optimiser.param_groups:
            group["lr"] = stage.lr * factor
        losses = step(batch)
        optimiser.zero_grad(set_to_none=True)
        losses["loss"].backward()
        torch.nn.utils.clip_grad_norm_(weights, training.optimiser.clip_norm)
        optimiser.step()
        for name, loss in losses.items():
            # Summed on the device: reading every loss would stall a GPU.
            sums[name] = sums.get(name, torch.zeros((), device=loss.device)) + loss.detach()
        count += 1
    means = {name: float(value) / max(1, count) for name, value in sums.items()}
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
