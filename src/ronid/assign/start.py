"""Where prototypes start: k-means over all rows, told which centroids are the known intents."""

import torch
from torch import Tensor
from torch.nn.functional import normalize

from ronid.assign.align import order_by_known
from ronid.assign.breathing import breathing_kmeans
from ronid.assign.kmeans import class_means, kmeans
from ronid.assign.semisup_kmeans import semisup_kmeans
from ronid.config import StartConfig
from ronid.types import Split


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
    targets = torch.from_numpy(split.targets).to(embeddings.device)
    room = len(split.unlabelled) >= split.n_intents - len(split.known)  # for the new centroids
    if config.prototypes == "breathing" and room:
        found = breathing_kmeans(
            embeddings,
            targets,
            split.n_intents,
            generator=generator,
            n_init=config.restarts,
            breaths=config.breaths,
        )
        return normalize(found.centroids, dim=-1)
    if config.prototypes == "semisup_kmeans" and split.known and room:
        found = semisup_kmeans(
            embeddings, targets, split.n_intents, n_init=config.restarts, generator=generator
        )
        return normalize(found.centroids, dim=-1)
    found = kmeans(embeddings, split.n_intents, n_init=config.restarts, generator=generator)
    centroids = found.centroids
    if split.known:
        given = targets >= 0
        means = class_means(embeddings[given], targets[given], len(split.known))
        centroids = order_by_known(centroids, means)
    return normalize(centroids, dim=-1)
