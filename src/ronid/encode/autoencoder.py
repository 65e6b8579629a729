"""A stacked auto-encoder: vectors to a short code, and back."""

import itertools
from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn import functional

from ronid.errors import UsageError

CODE_WIDTHS = (500, 500, 2_000, 10)
"""Widths of the published network after its input; the last is that of the code."""


class CodeHead(nn.Module):
    """The half that makes the code; no unit is ever below 0, nor is the code unless it is linear.

    Args:
        dim: Width of the input.
        widths: Width of every layer after it, the code's last.
        linear: Whether the code itself may be of either sign.
    """

    def __init__(
        self, dim: int, widths: Sequence[int] = CODE_WIDTHS, *, linear: bool = False
    ) -> None:
        super().__init__()
        self.dim = dim
        self.linear = linear
        self.widths = tuple(widths)
        self.layers = _stack([dim, *widths])
        self.code_dim = widths[-1]

    def forward(self, vectors: Tensor) -> Tensor:
        """(b, d) to (b, c) codes."""
        *inner, last = self.layers
        for layer in inner:
            vectors = functional.relu(layer(vectors))
        code: Tensor = last(vectors)
        return code if self.linear else functional.relu(code)


class Decoder(nn.Module):
    """The half that rebuilds the input from the code: the mirror of `CodeHead`, linear at its end.

    Args:
        dim: Width of what is rebuilt.
        widths: Widths of the `CodeHead` it mirrors, in that one's order.
    """

    def __init__(self, dim: int, widths: Sequence[int] = CODE_WIDTHS) -> None:
        super().__init__()
        self.dim = dim
        self.layers = _stack([*reversed(widths), dim])

    def forward(self, codes: Tensor) -> Tensor:
        """(b, c) codes to (b, d)."""
        *inner, last = self.layers
        for layer in inner:
            codes = functional.relu(layer(codes))
        rebuilt: Tensor = last(codes)
        return rebuilt


def _stack(widths: Sequence[int]) -> nn.ModuleList:
    """Return linear layers from each width to the next: Glorot-uniform weights, zero biases."""
    if len(widths) < 2 or min(widths) < 1:
        raise UsageError(f"an auto-encoder needs widths of at least 1, got {list(widths)}")
    layers = [nn.Linear(a, b) for a, b in itertools.pairwise(widths)]
    for layer in layers:
        nn.init.xavier_uniform_(layer.weight)
        nn.init.zeros_(layer.bias)
    return nn.ModuleList(layers)


def live_units(codes: Tensor) -> int:
    """Return how many units of the (n, c) codes are not zero for every row.

    A unit that is zero for all rows gets no gradient and never comes back to life.
    """
    return int(codes.ne(0).any(dim=0).sum())
