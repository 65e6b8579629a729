"""Train on from where a run stands: its encoder, its intents, and what people said."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from ronid.assign.kmeans import class_means
from ronid.config import RoNIDConfig
from ronid.encode.encoder import Encoder
from ronid.encode.rows import Rows, VectorRows
from ronid.head import closeness
from ronid.learn.lessons import Lessons
from ronid.methods.ronid import alternate, outcome, tempered
from ronid.train.contrast import contrast
from ronid.train.state import Training
from ronid.types import Discovery, FloatArray, IntArray, Rule, Split

CONTRAST_EPOCHS = 4
"""Most epochs of neighbour contrast: the encoder has had its own already."""

_ITERATIONS = 20


def shortened(config: RoNIDConfig) -> RoNIDConfig:
    """Return the recipe of a run for training on, when its encoder has learned already."""
    epochs = min(config.contrast.epochs, CONTRAST_EPOCHS)
    return replace(
        config,
        contrast=replace(config.contrast, epochs=epochs, discount=False),
        pretrain=replace(config.pretrain, epochs=0),
    )


def train_on(split: Split, rows: Rows, start: Tensor, lessons: Lessons, training: Training,
             config: RoNIDConfig) -> Discovery:  # fmt: skip
    """Train the encoder of a run on, with labels and constraints that decisions make.

    Args:
        split: The problem of the rows that take part.
        rows: These rows, prepared.
        start: (k, d) prototypes of now, for intents that have no row.
        lessons: Where every row is now.
        training: Encoder, seed and progress.
        config: The recipe of the run.
    """
    config = tempered(shortened(config), split.n_intents)
    if split.n_intents > 1:
        contrast(training, split, rows, config.contrast)
    state = alternate(training, split, rows, config, first_prototypes(lessons, start))
    return outcome(training, split, rows, state, config)


def first_prototypes(lessons: Lessons, start: Tensor) -> Callable[[Tensor], Tensor]:
    """Return what makes first prototypes of features: the mean of each intent's rows of now.

    Args:
        lessons: Where every row is now.
        start: (k, d) prototypes for intents that have no row.
    """
    places = torch.from_numpy(lessons.places[lessons.taking_part])
    inside = places >= 0
    k = len(lessons.intents)

    def first(features: Tensor) -> Tensor:
        used, at = inside.to(features.device), places.to(features.device)
        means = class_means(features[used], at[used], k)
        filled = torch.bincount(at[used], minlength=k) > 0
        return normalize(torch.where(filled[:, None], means, start.to(features)), dim=-1)

    return first


def prepared(encoder: Encoder, texts: list[str], training: Training, part: IntArray) -> Rows:
    """Return the rows that take part, ready for the encoder.

    Where all of it is frozen, every utterance is embedded once, whatever takes part.

    Args:
        encoder: The encoder.
        texts: All utterances.
        training: Told what is going on.
        part: Rows that take part.
    """
    if len(part) == len(texts) or encoder.backbone.trainable_layers == 0:
        rows = encoder.prepare(texts, training.progress)
        if len(part) == len(texts):
            return rows
        if isinstance(rows, VectorRows):
            return VectorRows(rows.vectors[torch.from_numpy(part).to(rows.vectors.device)])
    return encoder.prepare([texts[row] for row in part], training.progress)


def settle_only(
    split: Split, features: FloatArray, places: IntArray, start: FloatArray, rule: Rule
) -> tuple[FloatArray, IntArray]:
    """Move prototypes to their rows while the encoder stands still, labels and bans kept.

    This is for methods whose training has no prototypes to go on from, and for runs whose
    utterances are not there in words.

    Args:
        split: The problem.
        features: (n, d) features of its rows.
        places: (n,) where the rows are now, UNLABELLED where nowhere.
        start: (k, d) prototypes of now, for intents that have no row.
        rule: What closeness is.

    Returns:
        (k, d) prototypes and (n,) labels.
    """
    labels = np.where(split.targets >= 0, split.targets, places)
    prototypes = start.copy()
    for _ in range(_ITERATIONS):
        for k in range(split.n_intents):
            members = features[labels == k]
            if len(members):
                mean = members.mean(0)
                length = max(float(np.linalg.norm(mean)), 1e-12) if rule == "cosine" else 1.0
                prototypes[k] = mean / length
        close = closeness(features, prototypes, rule)
        close[split.forbidden[:, 0], split.forbidden[:, 1]] = -np.inf
        close[:, list(split.closed)] = -np.inf
        moved = np.where(split.targets >= 0, split.targets, close.argmax(1))
        if np.array_equal(moved, labels):
            break
        labels = moved
    return prototypes, labels
