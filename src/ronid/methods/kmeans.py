"""K-means on the embeddings of a frozen encoder.

Published figures are those of averaged GloVe vectors, held-out rows among them; here the encoder's
own embeddings are clustered, at length 1. Labels take no part in the clustering: where there are
any, they only say which clusters the known intents are.
"""

from dataclasses import dataclass, field

from ronid.config import EncoderConfig, OptimiserConfig
from ronid.train.infer import gather_by_kmeans
from ronid.train.state import Training, inputs_of
from ronid.types import Discovery, Split


@dataclass(frozen=True)
class Config:
    """Settings of k-means.

    Args:
        restarts: Starts, of which the one of least inertia is kept.
    """

    method: str = "kmeans"
    preset: str = "published"
    encoder: EncoderConfig = field(default_factory=lambda: EncoderConfig(trainable_layers=0))
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    restarts: int = 10

    holds_out = False


def fit(split: Split, config: Config, training: Training) -> Discovery:
    """Discover the intents of `split`."""
    rows = training.encoder.prepare(inputs_of(split), training.progress)
    return gather_by_kmeans(training, split, rows, n_init=config.restarts)
