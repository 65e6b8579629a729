"""The next model: trained on from decisions, its intents in the numbers they had."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from ronid.config import RoNIDConfig
from ronid.encode.cache import FrozenCache
from ronid.encode.encoder import VectorBackbone
from ronid.head import Scope, calibrated, closeness
from ronid.learn.lessons import Lessons, numbered
from ronid.learn.train import prepared, settle_only, train_on
from ronid.model import IntentModel
from ronid.progress import Progress, Silent
from ronid.review.base import Base
from ronid.train.state import Training
from ronid.types import Discovery, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Trained:
    """What training on found.

    Args:
        model: The model; its intents are still those of before.
        found: What it says of all n utterances; decisions stand over it.
        ids: Ids of the intents, in the order of its prototypes.
        encoder_changed: Whether the encoder was trained too.
        labels: Utterances that it was trained towards.
    """

    model: IntentModel
    found: Discovery
    ids: tuple[str, ...]
    encoder_changed: bool
    labels: int


def train_model(
    model: IntentModel, base: Base, lessons: Lessons, cache: Path, progress: Progress | None = None
) -> Trained:
    """Train a model on.

    Args:
        model: The model of the current version; its encoder is changed in place.
        base: The run.
        lessons: What decisions teach.
        cache: Folder that keeps what a frozen encoder says of the utterances.
        progress: Told what is going on.
    """
    part = np.flatnonzero(lessons.taking_part)
    reads_text = not isinstance(model.encoder.backbone, VectorBackbone)
    changes = isinstance(model.config, RoNIDConfig) and reads_text and model.rule == "cosine"
    if changes:
        found, features = _trained(model, base, lessons, cache, progress or Silent())
    else:
        features = _features(model, base, progress)
        found = _settled(model, base, lessons, features[part])
    whole, scope = _whole(found, lessons, features, part)
    ids = numbered(base.present, lessons.ids)
    whole = _ordered(whole, [lessons.ids.index(id) for id in ids])
    trained = replace(
        model,
        prototypes=whole.prototypes,
        prior=whole.prior,
        temperature=whole.temperature,
        scope=scope or model.scope,
    )
    return Trained(trained, whole, ids, changes, int((lessons.targets >= 0).sum()))


def _trained(
    model: IntentModel, base: Base, lessons: Lessons, cache: Path, progress: Progress
) -> tuple[Discovery, FloatArray]:
    """Train encoder and prototypes; return what they say of what took part, and all features."""
    assert isinstance(model.config, RoNIDConfig)
    encoder, part = model.encoder, np.flatnonzero(lessons.taking_part)
    training = Training(encoder, model.seed, model.config.optimiser, progress)
    if encoder.backbone.trainable_layers == 0:
        encoder.cache = FrozenCache(cache)
    rows = prepared(encoder, base.texts, training, part)
    start = torch.from_numpy(_start(model, base, lessons))
    split = lessons.split(base.texts)
    found = train_on(split, rows, start, lessons, training, model.config)
    if len(part) == len(base):
        return found, found.embeddings
    everything = prepared(encoder, base.texts, training, np.arange(len(base)))
    return found, encoder.embed_all(everything).cpu().numpy()


def _settled(model: IntentModel, base: Base, lessons: Lessons, features: FloatArray) -> Discovery:
    """Move prototypes alone; return what they say of what took part."""
    split, places = lessons.split(base.texts), lessons.places[lessons.taking_part]
    start = _start(model, base, lessons)
    prototypes, labels = settle_only(split, features, places, start, model.rule)
    counts = np.bincount(labels, minlength=len(prototypes))
    return Discovery(
        labels=labels,
        confidence=np.ones(len(labels), np.float32),
        embeddings=features,
        prototypes=prototypes,
        prior=counts / max(1, counts.sum()),
        temperature=model.temperature,
        known=split.known,
        rule=model.rule,
    )


def _start(model: IntentModel, base: Base, lessons: Lessons) -> FloatArray:
    """Return (k, d) prototypes of now; zeros for intents that the model does not know."""
    at = {id: number for number, id in enumerate(base.present)}
    start = np.zeros((len(lessons.intents), model.prototypes.shape[1]), np.float32)
    for number, id in enumerate(lessons.ids):
        if id in at:
            start[number] = model.prototypes[at[id]]
    return start


def _features(model: IntentModel, base: Base, progress: Progress | None) -> FloatArray:
    """Return the (n, d) features of all utterances as the encoder sees them now."""
    if base.unit is not None:
        return base.unit
    return model.transform(base.texts, progress)


def _whole(
    found: Discovery, lessons: Lessons, features: FloatArray, part: IntArray
) -> tuple[Discovery, Scope | None]:
    """Return the discovery of all rows; decisions stand over it, what took no part is unsure."""
    fixed = lessons.fixed[part]
    kept = replace(found, labels=np.where(fixed >= 0, fixed, found.labels))
    sure, scope = calibrated(kept)
    labels = np.empty(len(features), np.int64)
    confidence = np.zeros(len(features), np.float32)
    labels[part], confidence[part] = sure.labels, sure.confidence
    others = np.flatnonzero(~lessons.taking_part)
    labels[others] = closeness(features[others], sure.prototypes, sure.rule).argmax(1)
    whole = replace(sure, labels=labels, confidence=confidence, embeddings=features)
    return whole, scope


def _ordered(found: Discovery, order: list[int]) -> Discovery:
    """Return a discovery with its intents in another order."""
    place = np.argsort(order)
    return replace(
        found,
        labels=place[found.labels],
        prototypes=np.ascontiguousarray(found.prototypes[order]),
        prior=np.ascontiguousarray(found.prior[order]),
        known=(),
    )
