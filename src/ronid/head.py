"""The answer: features of utterances in; intents, probabilities and in-scope scores out.

Every prediction, in training, fit, update, evaluation and export, is made here, each utterance by
itself. Confidences and scores are calibrated on the training utterances alone, without a label of
what is out of scope:

- A new utterance belongs as well as the training utterances do: `belonging` is the share of them
  that lie as far as it does from their nearest other utterance, or farther. That is a conformal
  p-value: a threshold of 0.1 rejects about a tenth of what does belong, whatever else comes in.
- Probabilities follow what neighbors say: the temperature is the one under which the intents of an
  utterance's nearest others are most probable.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax, softmax

from ronid.types import Discovery, FloatArray, IntArray, Rule

Floats = NDArray[np.float64]

THRESHOLD = 0.1
"""Least belonging that is accepted, where the user names none."""

NEAREST = 0.75
"""Share of an intent's size that counts as an utterance's neighbours: what lies farther is at the
border of the intent, where an error of the clusters shows."""

KEPT = 20_000
"""Training utterances that are kept to compare with; more cost space and change little."""
_ASKED = 4_000
"""Of these, how many are asked for their own neighbours."""
_BLOCK = 256
_ROWS = 8_192
"""Utterances that are answered at a time."""
_ALIKE = 2.0**-20
"""Squared distance over squared length up to which two vectors are one: half precision rounds each
number by up to 2**-11 of itself, up or down. A text that came before may else be farther from its
own vector than any of its repeats are from each other."""
_FACTOR = 32.0
"""How far the temperature may move."""


@dataclass(frozen=True, eq=False)
class Prediction:
    """Intents of utterances.

    Args:
        labels: (n,) most probable intent.
        probabilities: (n, k).
    """

    labels: IntArray
    probabilities: Floats


@dataclass(frozen=True)
class Scope:
    """Tells utterances of the intents found from all others.

    Args:
        vectors: (m, d) features of training utterances over `scale`, in half precision.
        scale: Their largest number.
        usual: (a,) ascending squared distances of training utterances to their nearest other one.
        threshold: Least belonging that is accepted.
    """

    vectors: NDArray[np.float16]
    scale: float
    usual: Floats
    threshold: float = THRESHOLD

    def belonging(self, vectors: FloatArray) -> Floats:
        """Return (n,) how well utterances belong: a share in (0, 1], of the training utterances.

        Args:
            vectors: (n, d) features of utterances.
        """
        others = self.vectors.astype(np.float64)
        parts = [
            _distances(vectors[a : a + _BLOCK] / self.scale, others).min(1)
            for a in range(0, len(vectors), _BLOCK)
        ]
        return p_values(self.usual, np.concatenate(parts) if parts else np.empty(0))


def squared_distances(points: ArrayLike, others: ArrayLike) -> Floats:
    """Return the (n, m) squared Euclidean distances of (n, d) points to (m, d) others."""
    a, b = np.asarray(points, np.float64), np.asarray(others, np.float64)
    return np.maximum((a**2).sum(1)[:, None] + (b**2).sum(1) - 2 * a @ b.T, 0)


def _distances(points: ArrayLike, others: ArrayLike) -> Floats:
    """Return the (n, m) squared distances; 0 where half precision cannot tell two vectors apart."""
    a = np.asarray(points, np.float64)
    distances = squared_distances(a, others)
    distances[distances <= _ALIKE * (a**2).sum(1)[:, None]] = 0
    return distances


def closeness(vectors: ArrayLike, prototypes: ArrayLike, rule: Rule) -> Floats:
    """Return (n, k) how near (n, d) utterances are to (k, d) prototypes, as `Rule` says."""
    if rule == "cosine":
        return np.asarray(vectors, np.float64) @ np.asarray(prototypes, np.float64).T
    return -np.log1p(squared_distances(vectors, prototypes))


def predict(
    vectors: ArrayLike, prototypes: ArrayLike, temperature: float, rule: Rule = "cosine"
) -> Prediction:
    """Return the most probable intents of utterances, and the softmax of closeness.

    Args:
        vectors: (n, d) features; unit vectors if the rule is `cosine`.
        prototypes: (k, d), likewise.
        temperature: Divides closeness.
        rule: What closeness is.
    """
    points = np.asarray(vectors)
    probabilities = np.empty((len(points), len(np.asarray(prototypes))))
    for start in range(0, len(points), _ROWS):
        block = slice(start, start + _ROWS)
        close = closeness(points[block], prototypes, rule)
        probabilities[block] = softmax(close / temperature, axis=1)
    return Prediction(probabilities.argmax(1), probabilities)


def p_values(usual: Floats, found: Floats) -> Floats:
    """Return (n,) the share of usual distances that are at least as large as those found.

    The utterance itself is counted among the usual ones, so no share is 0.

    Args:
        usual: (a,) ascending distances of utterances that belong.
        found: (n,) distances of utterances to judge.
    """
    larger = len(usual) - np.searchsorted(usual, found, "left")
    return (1 + larger) / (1 + len(usual))


def calibrated(discovery: Discovery) -> tuple[Discovery, Scope | None]:
    """Return what a method found with confidences that mean something, and its scope.

    No label changes. There is no scope where there are not two utterances to compare.

    Args:
        discovery: What a method found.
    """
    n = len(discovery.labels)
    if n < 2:
        return discovery, None
    kept, asked = _sampled(n, _ASKED)
    vectors, scale = _scaled(discovery.embeddings[kept])
    usual, shares = neighbourhood(vectors, discovery.labels[kept], asked, discovery.n_intents)

    prototypes, rule = discovery.prototypes, discovery.rule
    close = closeness(discovery.embeddings[kept[asked]], prototypes, rule)
    temperature = fit_temperature(close, shares, discovery.temperature)
    answer = predict(discovery.embeddings, prototypes, temperature, rule)
    confidence = answer.probabilities[np.arange(n), discovery.labels].astype(np.float32)
    found = replace(discovery, temperature=temperature, confidence=confidence)
    return found, Scope(vectors, scale, np.sort(usual))


def scope_of(vectors: FloatArray, *, scale: float | None = None, asked: int = 1_000) -> Scope:
    """Return the scope of utterances.

    Args:
        vectors: (n, d) features of two utterances or more.
        scale: What they are divided by; their largest number when None.
        asked: How many of them are asked for their nearest other one.
    """
    kept, rows = _sampled(len(vectors), asked)
    scaled, scale = _scaled(vectors[kept], scale)
    usual = np.concatenate([distances.min(1) for distances in _to_others(scaled, rows)])
    return Scope(scaled, scale, np.sort(usual))


def _sampled(n: int, asked: int) -> tuple[IntArray, IntArray]:
    """Return which of n utterances are kept, and which of these are asked."""
    rng = np.random.default_rng(0)
    kept = np.sort(rng.permutation(n)[:KEPT])
    return kept, np.sort(rng.permutation(len(kept))[:asked])


def _scaled(vectors: FloatArray, scale: float | None = None) -> tuple[NDArray[np.float16], float]:
    """Return vectors over their largest number, or over another, and that."""
    scale = scale or float(np.abs(vectors).max()) or 1.0
    return (vectors / scale).astype(np.float16), scale


def _to_others(vectors: ArrayLike, rows: IntArray) -> Iterator[Floats]:
    """Return the (a, n) squared distances of some vectors to all, a few at a time.

    None is its own neighbour.
    """
    points = np.asarray(vectors, np.float64)
    for start in range(0, len(rows), _BLOCK):
        some = rows[start : start + _BLOCK]
        distances = _distances(points[some], points)
        distances[np.arange(len(some)), some] = np.inf
        yield distances


def neighbourhood(
    vectors: ArrayLike, labels: IntArray, asked: IntArray, n_intents: int
) -> tuple[Floats, Floats]:
    """Look at the nearest other utterances of some.

    Args:
        vectors: (m, d) features of utterances.
        labels: (m,) their intents.
        asked: (a,) rows whose neighbours are wanted.
        n_intents: k.

    Returns:
        (a,) squared distance to the nearest other utterance, and (a, k) shares of the intents
        among the nearest others: as many as `NEAREST` of the others of its own intent, or one.
    """
    sizes = np.bincount(labels, minlength=n_intents)
    counts = np.maximum(1, np.ceil(NEAREST * (sizes[labels[asked]] - 1)).astype(np.int64))
    nearest, shares = np.empty(len(asked)), np.empty((len(asked), n_intents))
    rows = (row for distances in _to_others(vectors, asked) for row in distances)
    for i, row in enumerate(rows):
        nearest[i] = row.min()
        others = np.argpartition(row, counts[i] - 1)[: counts[i]]
        shares[i] = np.bincount(labels[others], minlength=n_intents) / counts[i]
    return nearest, shares


def fit_temperature(close: Floats, shares: Floats, start: float) -> float:
    """Return the temperature under which intents are most probable: the least cross-entropy.

    Args:
        close: (n, k) closeness of utterances to prototypes.
        shares: (n, k) how much each intent is theirs; rows sum to 1.
        start: Temperature of the fit; the answer lies within a factor of 32 of it.
    """
    from scipy.optimize import minimize_scalar  # slow to load, and no prediction needs it

    if close.shape[1] < 2:
        return start

    def surprise(log_factor: float) -> float:
        return -float((shares * log_softmax(close / (start * np.exp(log_factor)), axis=1)).sum())

    most = float(np.log(_FACTOR))
    return start * float(np.exp(minimize_scalar(surprise, bounds=(-most, most)).x))
