"""DeepAligned clustering: a classifier of clusters whose numbers stay the same over the epochs.

Pre-train on the labelled rows; then every epoch cluster the features of all rows by k-means, give
each cluster the number of the old one it continues (Hungarian matching of centroids), and train
the encoder and a K-way head by cross-entropy on these numbers. The known labels take no part after
pre-training. Training stops when the silhouette of the clustering has not risen for a while; the
weights with the best one are kept.

Zhang, Xu, Lin and Lyu, 2021, Discovering New Intents with Deep Aligned Clustering (AAAI).

The moments of Adam are not corrected, as in its code, so that first steps are long; clipping,
epsilon and decay are those of all methods here. Otherwise than there: the vector of an utterance is
the mean over its tokens without padding. Batches are shuffled. The best weights come back even
where patience never ran out, and the weights after the last epoch are a candidate too; in the code
neither is so. The silhouette is that of at most `silhouette_rows` rows, the same ones in every
epoch. Dropout is on in the layers that are trained only, there in all (`encoder.frozen_dropout`).

Without labels there is no pre-training, and the rest is what the paper ablates as such.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor

from ronid.assign.silhouette import silhouette
from ronid.config import EncoderConfig, OptimiserConfig, PretrainConfig, early_bert_adam
from ronid.encode.rows import Rows
from ronid.train.batches import one_pass, steps_per_epoch
from ronid.train.diagnose import label_accuracy
from ronid.train.heads import classifier
from ronid.train.infer import gather_by_kmeans
from ronid.train.loop import Stage, run_epochs
from ronid.train.pretrain import pretrain_layers
from ronid.train.recluster import cluster_loss, recluster
from ronid.train.state import StageState, Training, generator_of, inputs_of
from ronid.train.step import Picks
from ronid.train.stopping import BestEpoch
from ronid.types import Discovery, Split


@dataclass(frozen=True)
class DiscoverConfig:
    """The epochs of clustering and learning.

    Args:
        epochs: Upper bound.
        patience: Epochs without a better silhouette before stopping.
        lr: Learning rate.
        batch: Rows per step.
        restarts: Restarts of every k-means.
        silhouette_rows: Rows that the silhouette is measured on at most.
    """

    epochs: int = 100
    patience: int = 20
    lr: float = 5e-5
    batch: int = 128
    restarts: int = 10
    silhouette_rows: int = 5000


@dataclass(frozen=True)
class Config:
    """Settings of DeepAligned, the same for all benchmarks.

    Args:
        pretrain: Cross-entropy on the labelled rows.
        discover: The epochs of clustering and learning.
    """

    method: str = "deep_aligned"
    preset: str = "published"
    encoder: EncoderConfig = field(
        default_factory=lambda: EncoderConfig(trainable_layers=1, head="tanh", normalise=False)
    )
    optimiser: OptimiserConfig = field(default_factory=early_bert_adam)
    pretrain: PretrainConfig = field(
        # The features have a dropout of their own.
        default_factory=lambda: PretrainConfig(
            language_weight=0.0, labelled_batch=128, head_dropout=0.0
        )
    )
    discover: DiscoverConfig = field(default_factory=DiscoverConfig)

    @property
    def holds_out(self) -> bool:
        """Only pre-training stops by held-out labels."""
        return self.pretrain.holds_out


def fit(split: Split, config: Config, training: Training) -> Discovery:
    """Discover the intents of `split`."""
    pretrain_layers(training, split, config.pretrain, config.encoder.trainable_layers)
    rows = training.encoder.prepare(inputs_of(split), training.progress)
    discover(training, split, rows, config.discover)
    return gather_by_kmeans(training, split, rows, n_init=config.discover.restarts)


def discover(training: Training, split: Split, rows: Rows, config: DiscoverConfig) -> None:
    """Cluster, align and learn, until the silhouette no longer rises."""
    if "discover" in training.finished:
        return
    encoder = training.encoder
    head = classifier(training, "discover head", split.n_intents)
    state = StageState(encoder, {"classes": head})
    stopper = BestEpoch("silhouette", config.patience)
    steps = steps_per_epoch(len(rows), config.batch)
    stage = Stage("discover", rows, config.epochs, steps, config.lr, stopper)

    def cluster(epoch: int) -> dict[str, float]:
        points = encoder.embed_all(rows)
        row = recluster(training, state, points, split.n_intents, epoch, n_init=config.restarts)
        row["silhouette"] = silhouette(
            points,
            state.tensors["labels"],
            generator=generator_of(points.device, training.seed, "silhouette"),
            most=config.silhouette_rows,
        )
        return row | label_accuracy(state.tensors["labels"], split)

    def before_epoch(_: int) -> Mapping[str, float]:
        if "labels" not in state.tensors:
            stopper.stop(cluster(0), state)  # the weights before the first step may be the best
        return {}

    def after_epoch(epoch: int) -> Mapping[str, float]:
        # After the steps, not before the next ones: so the silhouette is that of the weights kept.
        return cluster(epoch + 1)

    def step(picks: Picks) -> Mapping[str, Tensor]:
        return {"loss": cluster_loss(state, rows, picks[0])}

    batches = one_pass(len(rows), config.batch)
    run_epochs(
        training, stage, state, batches, step, before_epoch=before_epoch, after_epoch=after_epoch
    )
    training.finish("discover")
