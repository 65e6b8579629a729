"""When to stop a stage; counters live in the stage's state, so that a resumed run agrees."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from ronid.train.state import StageState


class Stopper(Protocol):
    """Looks at each finished epoch and says whether it was the last."""

    def stop(self, row: Mapping[str, Any], state: StageState) -> bool:
        """Return True to end the stage after this epoch."""

    def finish(self, state: StageState) -> None:
        """The stage is over."""


@dataclass(frozen=True)
class BestEpoch:
    """Stop when a figure has not risen for a while, and go back to the weights of the best epoch.

    Args:
        figure: Key of the epoch's row; an epoch without it counts as neither.
        patience: Epochs to wait for a better one.
    """

    figure: str
    patience: int

    def stop(self, row: Mapping[str, Any], state: StageState) -> bool:
        """Keep the weights of a better epoch, or count the wait."""
        if self.figure not in row:
            return False
        if row[self.figure] > state.scalars.get("best", float("-inf")):
            state.scalars |= {"best": float(row[self.figure]), "wait": 0}
            for name, weight in state.weights().items():
                state.tensors[f"best/{name}"] = weight.detach().clone()
            return False
        state.scalars["wait"] = state.scalars.get("wait", 0) + 1
        return bool(state.scalars["wait"] >= self.patience)

    @torch.no_grad()
    def finish(self, state: StageState) -> None:
        """Restore the best weights, whether or not the wait ran out."""
        for name, weight in state.weights().items():
            best = state.tensors.get(f"best/{name}")
            if best is not None:
                weight.copy_(best)


@dataclass(frozen=True)
class SettledLabels:
    """Stop when hardly any pseudo-label changes any more.

    Args:
        change: Share of changed pseudo-labels below which an epoch counts as settled.
        patience: Settled epochs in a row that end the stage.
        after: Epochs that never count as settled: little changes while the learning rate rises.
    """

    change: float
    patience: int
    after: float = 0.0

    def stop(self, row: Mapping[str, Any], state: StageState) -> bool:
        """Count settled epochs."""
        settled = row.get("changed", 1.0) < self.change and row.get("epoch", 1) > self.after
        state.scalars["settled"] = state.scalars.get("settled", 0) + 1 if settled else 0
        return bool(state.scalars["settled"] >= self.patience)

    def finish(self, state: StageState) -> None:
        """Nothing to put back."""


@dataclass(frozen=True)
class FirstOf:
    """Stop as soon as one of several rules says so; all of them see every epoch.

    Args:
        stoppers: The rules, each of a kind of its own: two of one kind would share counters.
    """

    stoppers: tuple[Stopper, ...]

    def stop(self, row: Mapping[str, Any], state: StageState) -> bool:
        """Ask all of them."""
        votes = [stopper.stop(row, state) for stopper in self.stoppers]
        return any(votes)

    def finish(self, state: StageState) -> None:
        """Let each of them put back what it wants to."""
        for stopper in self.stoppers:
            stopper.finish(state)


@dataclass(frozen=True)
class AllEpochs:
    """Never stop early."""

    def stop(self, row: Mapping[str, Any], state: StageState) -> bool:
        """Go on."""
        return False

    def finish(self, state: StageState) -> None:
        """Nothing to put back."""


def by_held_out(
    figure: str, has_dev: bool, *, epochs: int, patience: int, without: int
) -> tuple[int, Stopper]:
    """Return how many epochs a stage has at most, and what may end it before.

    Args:
        figure: Key of the epoch's row that held-out rows give.
        has_dev: Whether there are any.
        epochs: Most epochs.
        patience: Epochs to wait for a better one.
        without: Most epochs where no rows are held out.
    """
    return (epochs, BestEpoch(figure, patience)) if has_dev else (min(epochs, without), AllEpochs())
