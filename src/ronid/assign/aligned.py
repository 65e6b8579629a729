"""Clusters that keep their names from one clustering to the next."""

from dataclasses import replace

import torch
from torch import Tensor

from ronid.assign.align import match
from ronid.assign.kmeans import KMeansResult, kmeans


@torch.no_grad()
def aligned_kmeans(
    points: Tensor,
    k: int,
    previous: Tensor | None,
    *,
    generator: torch.Generator,
    n_init: int = 10,
    max_iterations: int = 300,
) -> KMeansResult:
    """Cluster points from scratch, each cluster under the number of the old one it continues.

    The new centroids are matched one to one with the old ones so that they moved least in all
    (Hungarian algorithm, Euclidean distance). The clustering itself does not look at the old one.

    Args:
        points: (n, d).
        k: Number of clusters.
        previous: (k, d) centroids of the clustering before, or None for the first.
        generator: Source of the starts.
        n_init: Restarts of k-means.
        max_iterations: Lloyd iterations per restart.

    Returns:
        The clustering in the order of `previous`.

    Raises:
        ValueError: `previous` has another shape, or no clustering is possible.
    """
    if previous is not None and previous.shape != (k, points.shape[1]):
        shape = tuple(previous.shape)
        raise ValueError(f"previous has shape {shape}, not {(k, points.shape[1])}")
    found = kmeans(points, k, generator=generator, n_init=n_init, max_iterations=max_iterations)
    if previous is None:
        return found
    place = match(found.centroids, previous)  # (k,) old number of each new cluster
    centroids = torch.empty_like(found.centroids)
    centroids[place] = found.centroids
    return replace(found, centroids=centroids, labels=place[found.labels])
