"""A network that follows the trained one by a moving average: a momentum encoder.

It has no modules of its own: the trained network runs on other weights. These are tensors of the
stage's state, so a checkpoint holds them, no optimiser moves them, and a recorded step finds them.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from ronid.train.state import StageState


class Follower:
    """Runs a network on the moving average of its weights.

    Args:
        state: The stage that trains the network; holds the average as `follower/...`.
        network: Made of the encoder and the heads of that stage.
        keep: Share of the old average that a step keeps.
    """

    def __init__(self, state: StageState, network: nn.Module, keep: float) -> None:
        self.keep = keep
        self._state = state
        self._network = network
        trained = {id(weight) for weight in state.weights().values()}
        self._weights: dict[str, Tensor] = {
            name: weight
            for name, weight in network.named_parameters()
            if weight.requires_grad and id(weight) in trained
        }

    @property
    def _averages(self) -> dict[str, Tensor]:
        # Asked for anew each time: a checkpoint brings tensors of its own.
        return {name: self._state.tensors[f"follower/{name}"] for name in self._weights}

    def start(self) -> None:
        """Take the weights as they are."""
        for name, weight in self._weights.items():
            self._state.put(f"follower/{name}", weight)

    @torch.no_grad()
    def step(self) -> None:
        """Follow the weights."""
        if self._weights:
            averages, weights = list(self._averages.values()), list(self._weights.values())
            torch._foreach_lerp_(averages, weights, 1 - self.keep)

    @torch.no_grad()
    def __call__(self, *inputs: Any) -> Any:
        """Return what the network says on the average of its weights; no gradient."""
        return functional_call(self._network, self._averages, inputs)
