"""Dropout that is cheap on a CPU, where drawing the random numbers is most of its cost."""

import torch
from torch import Tensor, nn
from torch.nn import functional


class ByteDropout(nn.Module):
    """Dropout whose masks cost one random byte per unit instead of one random float.

    The probability is rounded to 1/256. On a GPU it is ordinary dropout.

    Args:
        probability: Share of units set to 0 while training.
    """

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.cut = round(256 * probability)

    def forward(self, values: Tensor) -> Tensor:
        """Drop units and scale the others up, so that the mean stays; drawn from torch's seed."""
        if not self.training or self.cut == 0:
            return values
        if values.device.type != "cpu":
            return functional.dropout(values, self.cut / 256)
        count = values.numel()
        words = torch.empty(-(-count // 8), dtype=torch.int64).random_(-(2**63), None)
        kept = words.view(torch.uint8)[:count].view(values.shape) >= self.cut
        return values * kept * (256 / (256 - self.cut))
