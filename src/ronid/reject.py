"""What a confidence is worth, and when the answer is "none of these".

Nobody has labels for what is out of scope, so a fitted model makes its own: every intent in turn is
hidden, and its utterances are then out of the scope of all others. What separates the two kinds is
learnt from these, and kept as a handful of numbers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_softmax, softmax

from ronid.types import Discovery, FloatArray, IntArray, Rule

Floats = NDArray[np.float64]

THRESHOLD = 0.5
"""Least belonging that is accepted, where the user names none."""

_ROWS = 20_000
"""Utterances that are looked at; more would change no digit shown."""
_BLOCK = 8_192
_STEPS = 50
_RIDGE = 1e-3
_WIDER = 32.0
"""How far the calibrated temperature may lie from the one of the fit, as a factor."""


@dataclass(frozen=True)
class Scope:
    """Tells utterances of the intents found from all others.

    Args:
        weights: (2,) weights of `evidence`.
        offset: What they are compared with.
        threshold: Least belonging that is accepted.
    """

    weights: tuple[float, ...]
    offset: float
    threshold: float = THRESHOLD

    def belonging(self, vectors: FloatArray, prototypes: FloatArray, rule: Rule) -> Floats:
        """Return (n,) how probable it is, in 0..1, that an utterance is of any intent found.

        Args:
            vectors: (n, d) features of utterances.
            prototypes: (k, d) of the model.
            rule: What closeness is.
        """
        weights = np.array(self.weights)
        parts = [
            expit(
                evidence(closeness(vectors[a : a + _BLOCK], prototypes, rule)) @ weights
                - self.offset
            )
            for a in range(0, len(vectors), _BLOCK)
        ]
        return np.concatenate(parts) if parts else np.empty(0)


def scope_from(saved: Mapping[str, Any] | None) -> Scope | None:
    """Return the scope that `asdict` wrote to JSON; None for a model that has none."""
    return None if saved is None else Scope(**{**saved, "weights": tuple(saved["weights"])})


def closeness(vectors: FloatArray, prototypes: FloatArray, rule: Rule) -> Floats:
    """Return (n, k) how near utterances are to prototypes, as `Rule` says.

    Args:
        vectors: (n, d) features of utterances.
        prototypes: (k, d).
        rule: What closeness is.
    """
    points, centres = np.asarray(vectors, np.float64), np.asarray(prototypes, np.float64)
    products = points @ centres.T
    if rule == "cosine":
        return products
    squared = (points**2).sum(1)[:, None] + (centres**2).sum(1) - 2 * products
    return -np.log1p(np.maximum(squared, 0))


def evidence(close: Floats) -> Floats:
    """Return (n, 2): closeness to the nearest prototype, and its lead over the second.

    Args:
        close: (n, k) closeness; minus infinity where a prototype does not count.
    """
    if close.shape[1] == 1:
        return np.column_stack([close[:, 0], np.zeros(len(close))])
    top = -np.partition(-close, 1, axis=1)[:, :2]
    lead = np.where(np.isfinite(top[:, 1]), top[:, 0] - top[:, 1], 0.0)
    return np.column_stack([top[:, 0], lead])


def fit_scope(close: Floats, labels: IntArray) -> Scope | None:
    """Learn what separates utterances whose intent is there from those whose intent is hidden.

    Args:
        close: (n, k) closeness of training utterances.
        labels: (n,) their intents.

    Returns:
        The scope, or None where there are fewer than three intents: one hidden, two left.
    """
    if close.shape[1] < 3 or len(close) == 0:
        return None
    hidden = close.copy()
    hidden[np.arange(len(close)), labels] = -np.inf
    inside, outside = evidence(close), evidence(hidden)
    features = np.concatenate([inside, outside])
    target = np.repeat([1.0, 0.0], len(close))
    weights, offset = _logistic(features, target)
    return Scope(tuple(map(float, weights)), float(offset))


def calibrated(discovery: Discovery, given: NDArray[np.bool_]) -> tuple[Discovery, Scope | None]:
    """Return what a method found with confidences that mean something, and its scope.

    Args:
        discovery: What a method found; no label changes.
        given: (n,) rows whose label is the user's.
    """
    close = closeness(discovery.embeddings, discovery.prototypes, discovery.rule)
    labels = discovery.labels
    temperature = fit_temperature(close[given], labels[given], discovery.temperature)
    sure = softmax(close / temperature, axis=1)[np.arange(len(close)), labels]
    found = replace(discovery, temperature=temperature, confidence=sure.astype(np.float32))
    return found, fit_scope(close, labels)


def fit_temperature(close: Floats, labels: IntArray, start: float) -> float:
    """Return the temperature under which given labels are most probable.

    Args:
        close: (n, k) closeness of utterances.
        labels: (n,) their intents.
        start: Temperature of the fit, kept where there is nothing to learn from; the answer lies
            within a factor of 32 of it.
    """
    if len(close) == 0:
        return start
    rows = np.arange(len(close))

    def surprise(log_temperature: float) -> float:
        sure = log_softmax(close / np.exp(log_temperature), axis=1)
        return -float(sure[rows, labels].mean())

    low, high = np.log(start / _WIDER), np.log(start * _WIDER)
    found = minimize_scalar(surprise, bounds=(low, high), method="bounded")
    return float(np.exp(found.x))


def _logistic(features: Floats, target: Floats) -> tuple[Floats, float]:
    """Return weights and offset of a logistic regression, by Newton's method with a slight ridge.

    Args:
        features: (n, f).
        target: (n,) of 0 and 1.
    """
    mean, scale = features.mean(0), features.std(0)
    scale = np.where(scale > 0, scale, 1.0)
    inputs = np.column_stack([(features - mean) / scale, np.ones(len(features))])
    ridge = _RIDGE * np.eye(inputs.shape[1])
    weights = np.zeros(inputs.shape[1])
    for _ in range(_STEPS):
        share = expit(inputs @ weights)
        slope = inputs.T @ (share - target) / len(inputs) + ridge @ weights
        bend = (inputs * (share * (1 - share))[:, None]).T @ inputs / len(inputs) + ridge
        step = np.linalg.solve(bend, slope)
        weights = weights - step
        if np.abs(step).max() < 1e-9:
            break
    own = weights[:-1] / scale
    return own, float(own @ mean - weights[-1])
