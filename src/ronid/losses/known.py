"""Cross-entropy of the rows of a mixed batch that have a known intent."""

from torch import Tensor
from torch.nn import functional


def known_cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Classify the labelled rows of a batch, and leave the others alone.

    Purpose: given intents in batches drawn from all rows.

    Inputs: logits (b, m); targets (b,) classes, -1 where there is none.

    Equation: L = mean over i with y_i >= 0 of -log softmax(logits_i)[y_i]; 0 where none has one.

    Relations: over a batch that is labelled throughout it is the cross-entropy.

    Returns:
        The loss, a scalar.
    """
    # Summed and divided, so that a GPU is never asked how many rows count.
    total = functional.cross_entropy(logits.float(), targets, ignore_index=-1, reduction="sum")
    return total / (targets >= 0).sum().clamp(min=1)
