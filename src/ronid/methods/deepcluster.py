"""DeepCluster: cluster the features, learn to tell the clusters apart, begin again.

Every epoch the features of all rows are brought to principal components of equal variance and to
length 1, and clustered by a short k-means from a fresh start; then the encoder and a new linear
head learn the clusters by cross-entropy, rows drawn so that every cluster comes equally often.
Labels take no part: where there are any, they only say which clusters the known intents are.

Caron, Bojanowski, Joulin and Douze, 2018, Deep Clustering for Unsupervised Learning of Visual
Features (ECCV).

It was made for images, and the figures published for text come without code. Guesses, after the
methods of this field that followed: the last layer and a dense layer with tanh are trained by AdamW
at 5e-5, which rises and falls over all epochs, in batches of 128, without pre-training; there are
as many clusters as intents, where for images there were ten times as many; in the end the features
are clustered by k-means. Of the published code: 256 components, 20 iterations, a head drawn anew
with deviation 0.01 and without momentum from before. k-means starts by k-means++, there at random
rows. Dropout is on in the layers that are trained only (`encoder.frozen_dropout`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from torch import Tensor, nn

from ronid.assign.whiten import whitened
from ronid.config import EncoderConfig, OptimiserConfig
from ronid.encode.rows import Rows
from ronid.train.batches import steps_per_epoch, uniform_batches
from ronid.train.diagnose import label_accuracy
from ronid.train.heads import classifier
from ronid.train.infer import gather_by_kmeans
from ronid.train.loop import Stage, run_epochs
from ronid.train.recluster import cluster_loss, recluster
from ronid.train.state import StageState, Training, inputs_of
from ronid.train.step import Picks
from ronid.types import Discovery, IntArray, Split

HEAD_DEVIATION = 0.01


@dataclass(frozen=True)
class DiscoverConfig:
    """The epochs of clustering and learning.

    Args:
        epochs: How many.
        lr: Learning rate.
        batch: Rows per step.
        components: Principal components that are clustered at most; 0 clusters the features.
        iterations: Iterations of the k-means of an epoch, at most.
        restarts: Restarts of the k-means in the end; that of an epoch has one start.
    """

    epochs: int = 100
    lr: float = 5e-5
    batch: int = 128
    components: int = 256
    iterations: int = 20
    restarts: int = 10


@dataclass(frozen=True)
class Config:
    """Settings of DeepCluster.

    Args:
        discover: The epochs of clustering and learning.
    """

    method: str = "deepcluster"
    preset: str = "published"
    encoder: EncoderConfig = field(
        default_factory=lambda: EncoderConfig(trainable_layers=1, head="tanh", normalise=False)
    )
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    discover: DiscoverConfig = field(default_factory=DiscoverConfig)

    holds_out = False


def fit(split: Split, config: Config, training: Training) -> Discovery:
    """Discover the intents of `split`."""
    rows = training.encoder.prepare(inputs_of(split), training.progress)
    discover(training, split, rows, config.discover)
    return gather_by_kmeans(training, split, rows, n_init=config.discover.restarts)


def discover(training: Training, split: Split, rows: Rows, config: DiscoverConfig) -> None:
    """Cluster and learn, every epoch from a new head."""
    if "discover" in training.finished:
        return
    encoder = training.encoder
    head = classifier(training, "discover head", split.n_intents)
    state = StageState(encoder, {"classes": head})
    steps = steps_per_epoch(len(rows), config.batch)
    stage = Stage("discover", rows, config.epochs, steps, config.lr, fresh_heads=("classes",))

    def before_epoch(epoch: int) -> Mapping[str, float]:
        points = encoder.embed_all(rows)
        points = whitened(points, config.components) if config.components else points
        # From the generators that the loop seeds for this epoch.
        nn.init.normal_(head.weight, std=HEAD_DEVIATION)
        nn.init.zeros_(head.bias)
        row = recluster(
            training,
            state,
            points,
            split.n_intents,
            epoch,
            align=False,  # a new head knows no cluster, and components have no names either
            n_init=1,
            max_iterations=config.iterations,
        )
        return row | label_accuracy(state.tensors["labels"], split)

    def batches(rng: np.random.Generator) -> Iterator[tuple[IntArray]]:
        labels = state.tensors["labels"].cpu().numpy()
        return ((pick,) for pick in uniform_batches(labels, config.batch, rng))

    def step(picks: Picks) -> Mapping[str, Tensor]:
        return {"loss": cluster_loss(state, rows, picks[0])}

    run_epochs(training, stage, state, batches, step, before_epoch=before_epoch)
    training.finish("discover")
