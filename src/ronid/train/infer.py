"""Inference by prototype: the intent of an utterance is its nearest prototype."""

import numpy as np
import torch
from torch import Tensor

from ronid.assign.start import known_first
from ronid.encode.encoder import Encoder
from ronid.encode.rows import Rows
from ronid.errors import UsageError
from ronid.head import Prediction, predict
from ronid.train.clusters import cluster_rows
from ronid.train.state import Training
from ronid.types import Discovery, IntArray, Rule, Split

TEMPERATURE = 0.1
"""Spreads closeness into probabilities where a method has no temperature of its own: an utterance
half as far from its prototype as from all others is almost sure. It changes no label."""


def _allowed(prediction: Prediction, split: Split) -> IntArray:
    """Return the most probable intents among those that the rows may have."""
    if not len(split.forbidden) and not split.closed:
        return prediction.labels
    shares = prediction.probabilities.copy()
    shares[:, list(split.closed)] = -1
    shares[split.forbidden[:, 0], split.forbidden[:, 1]] = -1
    return shares.argmax(-1)


def gather_by_kmeans(
    training: Training, split: Split, rows: Rows, *, n_init: int = 10, init: Tensor | None = None
) -> Discovery:
    """Gather what a method found whose published inference is k-means over its features.

    The training rows are clustered, and a new utterance gets the intent whose centre is nearest.

    Args:
        training: The fit that is over.
        split: The problem.
        rows: Its training rows, prepared.
        n_init: Restarts of k-means.
        init: (k, d) centres to start from instead, in any order.
    """
    embeddings = training.encoder.embed_all(rows)
    found = cluster_rows(training, split, embeddings, "gather", n_init=n_init, init=init)
    # Clusters that moved while they were trained may have passed each other.
    centres = found.centroids if init is None else known_first(found.centroids, embeddings, split)
    return gather(training, split, rows, centres)


def check_outputs(encoder: Encoder, split: Split) -> None:
    """Refuse an encoder whose outputs are not one for every intent, before any training.

    Raises:
        UsageError: It is so.
    """
    if encoder.head is None or encoder.dim != split.n_intents or not encoder.normalise:
        raise UsageError(
            "every output of this method is an intent; set encoder.head to tanh_logits or "
            "relu_logits, and leave encoder.normalise on"
        )


def gather_by_output(training: Training, split: Split, rows: Rows) -> Discovery:
    """Gather what a method found whose every output is an intent: its prototypes are the axes.

    Args:
        training: The fit that is over; `check_outputs` has seen its encoder.
        split: The problem; labelled rows say which outputs the known intents are.
        rows: Its training rows, prepared.
    """
    encoder = training.encoder
    axes = torch.eye(split.n_intents, device=encoder.device)
    prototypes = known_first(axes, encoder.embed_all(rows), split)
    return gather(training, split, rows, prototypes, rule="cosine")


def gather(  # noqa: PLR0913 - what a discovery is made of
    training: Training,
    split: Split,
    rows: Rows,
    prototypes: Tensor,
    *,
    prior: Tensor | None = None,
    temperature: float = TEMPERATURE,
    rule: Rule = "distance",
) -> Discovery:
    """Gather what a method found; given labels stay what the user said.

    Args:
        training: The fit that is over; its encoder is trained.
        split: The problem.
        rows: Its training rows, prepared.
        prototypes: (k, d), known intents first.
        prior: (k,) shares of the intents; those of the labels found when None.
        temperature: Turns closeness into probabilities.
        rule: What closeness is.
    """
    embeddings = training.encoder.embed_all(rows).cpu().numpy()
    means = prototypes.float().cpu().numpy()
    prediction = predict(embeddings, means, temperature, rule)
    allowed = _allowed(prediction, split)
    labels = np.where(split.targets >= 0, split.targets, allowed)
    confidence = prediction.probabilities[np.arange(len(labels)), labels]
    counts = np.bincount(labels, minlength=len(prototypes))
    return Discovery(
        labels=labels,
        confidence=confidence.astype(np.float32),
        embeddings=embeddings,
        prototypes=means,
        prior=counts / max(1, counts.sum()) if prior is None else prior.cpu().numpy(),
        temperature=temperature,
        known=split.known,
        history=tuple(training.history),
        rule=rule,
    )
