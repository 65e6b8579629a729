"""What the history says of pseudo-labels, where the user gave the truth."""

from torch import Tensor

from ronid.metrics import score
from ronid.types import IntArray, Split


def label_accuracy(labels: Tensor | IntArray, split: Split) -> dict[str, float]:
    """Return the accuracy, in percent, of the labels of rows that were not labelled.

    For show alone, nothing may be decided by it; empty where there is no truth.

    Args:
        labels: (n,) intents of all training rows.
        split: The problem.
    """
    if split.truth is None:
        return {}
    free = split.unlabelled
    found = labels.cpu().numpy() if isinstance(labels, Tensor) else labels
    scores = score(split.truth[free], found[free], len(split.known))
    return {
        "accuracy": scores.acc,
        "known_accuracy": scores.known_acc,
        "novel_accuracy": scores.novel_acc,
    }
