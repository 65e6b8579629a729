"""Where prototypes and the class prior start, known intents first."""

from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.functional import normalize

from ronid.assign.align import match, order_by_known
from ronid.assign.breathing import breathing_kmeans
from ronid.assign.kmeans import KMeansResult, class_means, kmeans
from ronid.assign.novelty import find_novelty
from ronid.assign.prior import uniform_prior
from ronid.assign.semisup_kmeans import semisup_kmeans
from ronid.assign.whiten import within_whitened
from ronid.config import StartConfig
from ronid.types import UNLABELLED, Split

ANCHORED = 2
"""Labelled utterances per known intent, on average, from which on they say where it lies."""

SPLIT_POWER = 0.25
"""Power of the whitening before new rows are clustered. Full whitening (0.5) loses 6 points on
BANKING with 25 % of the intents known, none at all loses 17 on M-CID, where 4 intents are known."""


def start_intents(
    embeddings: Tensor, split: Split, config: StartConfig, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Return the (k, d) first prototypes, known intents at 0..M-1, and the (k,) first class prior.

    Args:
        embeddings: (n, d) unit vectors.
        split: The problem; its labeled rows say where known intents lie.
        config: How to start. The prior is uniform unless the start is `density`.
        generator: Source of randomness.
    """
    if config.prototypes == "density" and split.known and _has_room(split):
        return density_start(embeddings, split, config, generator)
    prototypes = start_prototypes(embeddings, split, config, generator)
    return prototypes, uniform_prior(split.n_intents)


def density_start(
    embeddings: Tensor, split: Split, config: StartConfig, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Let label density decide which rows are new, and k-means how the new rows split.

    Args:
        embeddings: (n, d) unit vectors.
        split: The problem, with at least one known intent.
        config: Restarts of k-means, and how many exchanges of centroids it tries.
        generator: Source of randomness.

    Returns:
        (k, d) normalized means of the intents, and their (k,) shares of the rows.
    """
    known, k = len(split.known), split.n_intents
    found = find_novelty(embeddings, split.targets, known)
    labels = torch.from_numpy(found.nearest).to(embeddings.device)
    if k > known:
        novel = torch.from_numpy(found.least_dense(k - known)).to(embeddings.device)
        # How people ask varies within known intents; that must not split the new ones.
        space = within_whitened(
            embeddings, labels.masked_fill(novel, UNLABELLED), power=SPLIT_POWER
        )
        clusters = breathing_kmeans(
            space[novel],
            torch.full_like(labels[novel], UNLABELLED),
            k - known,
            generator=generator,
            n_init=config.restarts,
            breaths=config.breaths,
        )
        labels[novel] = known + clusters.labels
    means = class_means(embeddings, labels, k)
    sizes = torch.bincount(labels, minlength=k).double() + 1
    return normalize(means, dim=-1), sizes / sizes.sum()


def start_prototypes(
    embeddings: Tensor, split: Split, config: StartConfig, generator: torch.Generator
) -> Tensor:
    """Return (k, d) first prototypes, known intents at 0..M-1.

    Args:
        embeddings: (n, d) unit vectors.
        split: The problem; its labelled rows say where known intents lie.
        config: Which k-means.
        generator: Source of randomness.
    """
    if config.prototypes in ("breathing", "density") and _has_room(split):
        targets = torch.from_numpy(split.targets).to(embeddings.device)
        # A centroid bound to one utterance, perhaps at the rim of its intent, never leaves it.
        anchored = len(split.labelled) >= ANCHORED * len(split.known)
        found = breathing_kmeans(
            embeddings,
            targets if anchored else torch.full_like(targets, UNLABELLED),
            split.n_intents,
            generator=generator,
            n_init=config.restarts,
            breaths=config.breaths,
        )
        if not anchored:
            found = replace(found, centroids=known_first(found.centroids, embeddings, split))
        return normalize(found.centroids, dim=-1)
    cluster = known_kmeans if config.prototypes == "semisup_kmeans" else ordered_kmeans
    found = cluster(embeddings, split, n_init=config.restarts, generator=generator)
    return normalize(found.centroids, dim=-1)


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
