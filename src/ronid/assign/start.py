"""Where the EM loop starts: prototypes, known intents first, and which rows are new."""

from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.functional import normalize

from ronid.assign.align import match, order_by_known
from ronid.assign.breathing import breathing_kmeans
from ronid.assign.kmeans import KMeansResult, class_means, kmeans
from ronid.assign.novelty import Novelty, find_novelty
from ronid.assign.semisup_kmeans import semisup_kmeans
from ronid.assign.whiten import within_whitened
from ronid.config import StartConfig
from ronid.types import UNLABELLED, Split

SPLIT_POWER = 0.25
"""Power of the whitening before new rows are clustered. Full whitening (0.5) loses 6 points on
BANKING with 25 % of the intents known, none at all loses 17 on M-CID, where 4 intents are known."""


def start_prototypes(
    embeddings: Tensor, split: Split, config: StartConfig, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Return the first prototypes, and for every row the log odds that its intent is new.

    Args:
        embeddings: (n, d) unit vectors.
        split: The problem; its labeled rows say where known intents lie.
        config: How to start.
        generator: Source of randomness.

    Returns:
        (k, d) unit vectors, known intents at 0..M-1, and (n,) log odds; 0 for all rows if label
        density says nothing.
    """
    known, k = len(split.known), split.n_intents
    odds = embeddings.new_zeros(len(embeddings))
    if config.prototypes == "density" and _has_room(split):
        novelty = find_novelty(embeddings, split.targets, known)
        # Copies of labeled rows are never new, so too few rows may be left for the new intents.
        if novelty is None or novelty.least_dense(k - known).sum() < k - known:
            found = _clusters(embeddings, k, config, generator)
            centroids = known_first(found.centroids, embeddings, split)
        else:
            centroids = density_means(embeddings, split, novelty, config, generator)
            odds = torch.from_numpy(novelty.log_odds()).to(embeddings)
    else:
        cluster = known_kmeans if config.prototypes == "semisup_kmeans" else ordered_kmeans
        n_init = config.restarts
        centroids = cluster(embeddings, split, n_init=n_init, generator=generator).centroids
    return normalize(centroids, dim=-1), odds


def density_means(
    embeddings: Tensor,
    split: Split,
    novelty: Novelty,
    config: StartConfig,
    generator: torch.Generator,
) -> Tensor:
    """Return means of the known intents and of clusters of the new rows.

    Args:
        embeddings: (n, d) unit vectors.
        split: The problem, with at least as many unlabeled rows as new intents.
        novelty: What label density says about the rows.
        config: Restarts of k-means, and how many centroid swaps it tries.
        generator: Source of randomness.

    Returns:
        (k, d) means of the intents.
    """
    known, k = len(split.known), split.n_intents
    labels = torch.from_numpy(novelty.nearest).to(embeddings.device)
    if k > known:
        novel = torch.from_numpy(novelty.least_dense(k - known)).to(embeddings.device)
        # How people ask varies within known intents; that must not split the new ones.
        assigned = labels.masked_fill(novel, UNLABELLED)
        space = within_whitened(embeddings, assigned, power=SPLIT_POWER)
        labels[novel] = known + _clusters(space[novel], k - known, config, generator).labels
    return class_means(embeddings, labels, k)


def _clusters(
    points: Tensor, k: int, config: StartConfig, generator: torch.Generator
) -> KMeansResult:
    """Cluster rows by k-means with centroid swaps."""
    return breathing_kmeans(
        points,
        torch.full((len(points),), UNLABELLED, device=points.device),
        k,
        generator=generator,
        n_init=config.restarts,
        breaths=config.breaths,
    )


def known_kmeans(
    embeddings: Tensor, split: Split, *, generator: torch.Generator, n_init: int = 10
) -> KMeansResult:
    """Cluster all rows by semi-supervised k-means, the known intents first.

    By `ordered_kmeans` where no intent is known, or too few rows are unlabelled for the new ones.

    Args:
        embeddings: (n, d) features.
        split: The problem.
        generator: Source of randomness.
        n_init: Restarts.
    """
    if not split.known or not _has_room(split):
        return ordered_kmeans(embeddings, split, n_init=n_init, generator=generator)
    targets = torch.from_numpy(split.targets).to(embeddings.device)
    return semisup_kmeans(embeddings, targets, split.n_intents, n_init=n_init, generator=generator)


def _has_room(split: Split) -> bool:
    """Whether there are as many unlabelled rows as new intents, each to be a first centroid."""
    return len(split.unlabelled) >= split.n_intents - len(split.known)


def ordered_kmeans(
    embeddings: Tensor,
    split: Split,
    *,
    generator: torch.Generator,
    n_init: int = 10,
    init: Tensor | None = None,
) -> KMeansResult:
    """Cluster all rows by k-means, the clusters of known intents first.

    Args:
        embeddings: (n, d) features.
        split: The problem.
        generator: Source of randomness.
        n_init: Restarts.
        init: (k, d) centroids to start from instead, in the order that is kept.
    """
    found = kmeans(embeddings, split.n_intents, n_init=n_init, generator=generator, init=init)
    if init is not None:
        return found
    centroids = known_first(found.centroids, embeddings, split)
    place = match(found.centroids, centroids)  # (k,) where each centroid went
    return replace(found, centroids=centroids, labels=place[found.labels])


def known_first(centroids: Tensor, embeddings: Tensor, split: Split) -> Tensor:
    """Return the (k, d) centroids, those nearest to the labelled class means first."""
    if not split.known:
        return centroids
    targets = torch.from_numpy(split.targets).to(embeddings.device)
    given = targets >= 0
    means = class_means(embeddings[given], targets[given], len(split.known))
    return order_by_known(centroids, means)
