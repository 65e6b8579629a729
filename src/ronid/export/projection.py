"""A flat map of the utterances: t-SNE of a sample, everything else placed beside its neighbours."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ronid.types import FloatArray, IntArray

PCA_DIMENSIONS = 50
PERPLEXITY = 30.0
NEIGHBOURS = 5
BLOCK_ROWS = 2048


def project(
    embeddings: ArrayLike,
    *,
    labels: IntArray | None = None,
    seed: int = 0,
    max_fitted: int = 4000,
) -> FloatArray:
    """Place utterances on a plane so that neighbours stay neighbours.

    Args:
        embeddings: (n, d) vectors.
        labels: (n,) intents; with them every intent gets its share of the fitted sample.
        seed: Seed of the sample and of t-SNE.
        max_fitted: Rows that t-SNE sees; the others are placed between their nearest five.

    Returns:
        (n, 2) coordinates centred on zero, the farthest at distance 1.

    Raises:
        ValueError: The embeddings are not a finite matrix.
    """
    points = np.asarray(embeddings, dtype=np.float32)
    if points.ndim != 2 or not np.isfinite(points).all():
        raise ValueError(
            f"embeddings must be a finite (n, d) matrix, got shape {points.shape}; "
            "check the encoder's output"
        )
    if not len(points):
        return np.zeros((0, 2), dtype=np.float32)
    rng = np.random.default_rng(seed)
    fitted = _sample(len(points), labels, max_fitted, rng)
    flat = np.zeros((len(points), 2), dtype=np.float32)
    flat[fitted] = _embed(_reduce(points[fitted]), seed)
    others = np.setdiff1d(np.arange(len(points)), fitted)
    flat[others] = place(points[others], points[fitted], flat[fitted])
    return _fit_unit_disc(flat)


def _sample(
    count: int, labels: IntArray | None, size: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw rows without replacement, so that every intent has at least one where labels tell."""
    if count <= size:
        return np.arange(count)
    order = rng.permutation(count)
    if labels is None:
        return np.sort(order[:size])
    # Rank of each row inside its intent, as a fraction of the intent: taking the smallest takes
    # the same share of every intent, and rank 0 comes first, so that no intent is left out.
    grouped = order[np.argsort(np.asarray(labels)[order], kind="stable")]
    _, starts, sizes = np.unique(np.asarray(labels)[grouped], return_index=True, return_counts=True)
    ranks = np.arange(count) - np.repeat(starts, sizes)  # (n,)
    fraction = ranks / np.repeat(sizes, sizes)
    return np.sort(grouped[np.argsort(fraction, kind="stable")[:size]])


def _reduce(points: FloatArray) -> NDArray[np.float64]:
    """Project onto the leading principal components, each with a fixed sign."""
    centred = points.astype(np.float64) - points.mean(axis=0, dtype=np.float64)
    _, vectors = np.linalg.eigh(centred.T @ centred)  # ascending order
    axes = vectors[:, ::-1][:, :PCA_DIMENSIONS]  # (d, <= 50)
    largest = np.abs(axes).argmax(axis=0)
    return centred @ (axes * np.sign(axes[largest, np.arange(axes.shape[1])]))


def _embed(reduced: NDArray[np.float64], seed: int) -> FloatArray:
    """Run t-SNE, or show the first two components where there are too few distinct points."""
    count = len(reduced)
    distinct = len(np.unique(reduced.round(9), axis=0))
    start = np.zeros((count, 2))
    start[:, : min(2, reduced.shape[1])] = reduced[:, :2]
    if distinct < 5:
        return start.astype(np.float32)
    from sklearn.manifold import TSNE

    spread = start[:, 0].std() or 1.0
    return (
        TSNE(
            perplexity=min(PERPLEXITY, (count - 1) / 3),
            init=(start / spread * 1e-4).astype(np.float32),
            random_state=seed,
            max_iter=500,
        )
        .fit_transform(reduced.astype(np.float32))
        .astype(np.float32)
    )


def place(points: FloatArray, fitted: FloatArray, flat: FloatArray) -> FloatArray:
    """Put each point at the mean of its nearest fitted neighbours, weighted by similarity.

    Args:
        points: (n, d) vectors to place.
        fitted: (m, d) vectors that have a place, at least one.
        flat: (m, 2) their places.
    """
    placed = np.zeros((len(points), 2), dtype=np.float32)
    anchors = _unit(fitted)
    nearest_count = min(NEIGHBOURS, len(fitted))
    for start in range(0, len(points), BLOCK_ROWS):
        cosines = _unit(points[start : start + BLOCK_ROWS]) @ anchors.T  # (block, fitted)
        nearest = np.argpartition(-cosines, nearest_count - 1, axis=1)[:, :nearest_count]
        best = np.take_along_axis(cosines, nearest, axis=1)
        # A sharp weight: the mean of far-apart anchors would fall into the empty space between.
        weights = np.exp((best - best.max(axis=1, keepdims=True)) * 20)
        weights /= weights.sum(axis=1, keepdims=True)
        placed[start : start + BLOCK_ROWS] = np.einsum("bk,bkc->bc", weights, flat[nearest])
    return placed


def _unit(points: FloatArray) -> FloatArray:
    return points / np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-12)


def _fit_unit_disc(flat: FloatArray) -> FloatArray:
    centred = flat - (flat.max(axis=0) + flat.min(axis=0)) / 2
    return (centred / max(float(np.linalg.norm(centred, axis=1).max()), 1e-12)).astype(np.float32)
