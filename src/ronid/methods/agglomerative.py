"""Agglomerative clustering (Ward's linkage) on the embeddings of a frozen encoder.

The published figures are those of averaged GloVe vectors, and cluster the test rows themselves;
that is the `refit` rule of the benchmark. Here the training rows are clustered, and a new utterance
gets the intent whose centre is nearest. Ward's linkage takes memory by the square of the rows, so
beyond `most_rows` a random sample is clustered.
"""

import warnings
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from ronid.assign.kmeans import class_means, nearest_centroid
from ronid.assign.start import known_first
from ronid.config import EncoderConfig, OptimiserConfig
from ronid.errors import RonidWarning
from ronid.seeds import derive
from ronid.train.infer import gather
from ronid.train.state import Training, inputs_of
from ronid.types import Discovery, FloatArray, IntArray, Split


@dataclass(frozen=True)
class Config:
    """Settings of agglomerative clustering.

    Args:
        most_rows: Rows that are clustered at most; never fewer than there are intents.
    """

    method: str = "agglomerative"
    preset: str = "published"
    encoder: EncoderConfig = field(default_factory=lambda: EncoderConfig(trainable_layers=0))
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    most_rows: int = 20_000

    holds_out = False


def fit(split: Split, config: Config, training: Training) -> Discovery:
    """Discover the intents of `split`."""
    rows = training.encoder.prepare(inputs_of(split), training.progress)
    embeddings = training.encoder.embed_all(rows)
    seed = derive(training.seed, "sample")
    centres, _ = _clustered(embeddings, split.n_intents, config.most_rows, seed)
    return gather(training, split, rows, known_first(centres, embeddings, split))


def refit(
    features: Tensor, discovery: Discovery, config: Config, generator: torch.Generator
) -> IntArray:
    """Return the clusters of the scored rows themselves: the published way of scoring."""
    k, seed = discovery.n_intents, generator.initial_seed()
    centres, labels = _clustered(features, k, config.most_rows, seed)
    if len(labels) < len(features):
        labels = nearest_centroid(features, centres)
    return labels.cpu().numpy()


def _clustered(points: Tensor, k: int, most_rows: int, seed: int) -> tuple[Tensor, Tensor]:
    """Return the (k, d) centres of clusters, and the clusters of the rows that were drawn."""
    chosen = torch.from_numpy(_sample(len(points), max(most_rows, k), seed)).to(points.device)
    points = points[chosen]
    labels = torch.from_numpy(clusters(points.cpu().numpy(), k)).to(points.device)
    return class_means(points, labels, k), labels


def clusters(points: FloatArray, count: int) -> IntArray:
    """Return the (n,) clusters of points by Ward's linkage."""
    from sklearn.cluster import AgglomerativeClustering

    if count == 1:
        return np.zeros(len(points), np.int64)
    return AgglomerativeClustering(count).fit_predict(points).astype(np.int64)


def _sample(count: int, most: int, seed: int) -> IntArray:
    """Return the rows that are clustered, all where they are few enough."""
    if count <= most:
        return np.arange(count)
    warnings.warn(
        f"agglomerative clustering of {count} utterances takes too much memory; a random "
        f"{most} of them are clustered and the others follow",
        RonidWarning,
        stacklevel=4,
    )
    return np.sort(np.random.default_rng(seed).choice(count, most, replace=False))
