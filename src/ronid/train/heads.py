"""Heads that a stage trains and leaves behind: classifiers and projections, seeded by the run.

Trained cluster centres are a head as well, the one that inference keeps.
"""

import torch
from torch import Tensor, nn

from ronid.losses.student_t import student_t
from ronid.train.loop import nothing_to_train, seeded
from ronid.train.state import Training


def classifier(training: Training, place: str, outputs: int) -> nn.Linear:
    """Return a new linear layer from the encoder's features to `outputs` classes.

    Args:
        training: The fit it belongs to.
        place: Names it; first weights derive from the run's seed and this.
        outputs: Number of classes.
    """
    with seeded(training.encoder.device, training.seed, place):
        return nn.Linear(training.encoder.dim, outputs).to(training.encoder.device)


def projection(
    training: Training, place: str, outputs: int, *, width: int = 0, dropout: float = 0.0
) -> nn.Module:
    """Return a new network of one hidden layer, the space in which a contrast is made.

    Args:
        training: The fit it belongs to.
        place: Names it; first weights derive from the run's seed and this.
        outputs: Width of the space.
        width: Width of the hidden layer, that of the features when 0.
        dropout: Dropout after the hidden layer.

    Raises:
        UsageError: No weight of the encoder is trained: the network is left behind, so that all it
            learns would be lost.
    """
    if not any(weight.requires_grad for weight in training.encoder.parameters()):
        raise nothing_to_train(place)
    dim = training.encoder.dim
    with seeded(training.encoder.device, training.seed, place):
        layers = [nn.Linear(dim, width or dim), nn.ReLU(), nn.Dropout(dropout)]
        network = nn.Sequential(*layers, nn.Linear(width or dim, outputs))
    return network.to(training.encoder.device)


class Centres(nn.Module):
    """Cluster centres that are trained along with the encoder.

    Args:
        first: (k, d) where they start.
    """

    decays = False
    """They are places, not weights: decay would draw them all to the origin."""

    def __init__(self, first: Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(first.detach().clone())

    def forward(self, points: Tensor) -> Tensor:
        """(b, d) to the (b, k) soft assignment by Student's t-distribution."""
        return student_t(points, self.weight)

    @torch.no_grad()
    def assign_all(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Return the (n,) nearest centres, and the (k,) sums of the soft assignment."""
        q = self(points)
        return q.argmax(dim=1), q.sum(dim=0)
