"""Train the adapter on, so that it tells new intents apart.

An encoder that was trained on some intents has unlearnt what tells others apart. Where all but
its adapter is frozen, what the frozen part says is kept, and the adapter learns in seconds: what
came is drawn to its prototype, old or new, while utterances of the old intents, some that came and
some that were there, are held to the features that they have. Old prototypes stand still.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from ronid.config import RoNIDConfig
from ronid.encode.rows import VectorRows
from ronid.head import scope_of
from ronid.losses.prototype import update_prototypes
from ronid.methods.ronid import tempered
from ronid.model import IntentModel
from ronid.progress import Progress
from ronid.train.batches import one_pass, steps_per_epoch
from ronid.train.loop import Stage, run_epochs
from ronid.train.state import StageState, Training
from ronid.train.step import Picks
from ronid.types import FloatArray, IntArray
from ronid.update.grow import Flags, Learnt, means_of

EPOCHS = 5

REHEARSED, LEAST_REHEARSED = 1_500, 5
"""Old utterances that are trained on again, and at least so many of an intent that has them."""

HOLD = 15.0
"""Weight of being held to old features."""

MOMENTUM = 0.9
"""Share of itself that the prototype of a new intent keeps in a step."""


@dataclass(frozen=True)
class Frozen:
    """What the frozen part of an encoder says.

    Args:
        old: (m, w) of the utterances that were there.
        labels: (m,) their intents.
        came: (n, w) of those that came.
    """

    old: Tensor
    labels: IntArray
    came: Tensor


def can_adapt(model: IntentModel) -> bool:
    """Return whether nothing but an adapter was trained, towards prototypes."""
    encoder = model.encoder
    return (
        isinstance(model.config, RoNIDConfig)
        and encoder.adapter is not None
        and encoder.backbone.trainable_layers == 0
        and model.rule == "cosine"
    )


def adapt(
    model: IntentModel, frozen: Frozen, labels: IntArray, certain: Flags, progress: Progress
) -> Learnt:
    """Train the adapter of a model on, in place.

    Args:
        model: The model.
        frozen: What the frozen part says of all utterances.
        labels: (n,) first intents of what came, new ones numbered after the old ones.
        certain: (n,) those that keep their intent and their features.
        progress: Told what is going on.
    """
    assert isinstance(model.config, RoNIDConfig)
    encoder, k = model.encoder, len(model.prototypes)
    learn = tempered(model.config, int(labels.max()) + 1).m_step
    again = rehearsed(frozen.labels, k, np.random.default_rng(model.seed))
    rows = VectorRows(torch.cat([frozen.came, frozen.old[torch.from_numpy(again)]]))
    features = encoder.embed_all(rows)
    device = features.device
    state = StageState(encoder)
    state.put("labels", torch.from_numpy(np.concatenate([labels, frozen.labels[again]])))
    held = torch.from_numpy(np.concatenate([certain, np.ones(len(again), bool)])).to(device)
    old = torch.from_numpy(model.prototypes).to(device)
    first = means_of(features[: len(labels)].cpu().numpy(), labels - k, model.rule)
    state.put("prototypes", torch.cat([old, torch.from_numpy(first).to(old)]))

    def before_epoch(epoch: int) -> Mapping[str, float]:
        if epoch == 0:
            return {}
        nearest = (encoder.embed_all(rows) @ state.tensors["prototypes"].T).argmax(1)
        return state.put_labels(torch.where(held, state.tensors["labels"], nearest))

    def step(picks: Picks) -> Mapping[str, Tensor]:
        (pick,) = picks
        vectors = encoder(rows, pick)
        targets, prototypes = state.tensors["labels"][pick.index], state.tensors["prototypes"]
        before = prototypes.clone()  # the gradient needs them as they were
        told = cross_entropy(vectors @ before.T / learn.temperature, targets)
        moved = 1 - (vectors * features[pick.index]).sum(1)
        away = (moved * held[pick.index]).mean()
        follow = update_prototypes(before, vectors.detach(), targets, MOMENTUM, per_item=False)
        prototypes[k:].copy_(follow[k:])
        return {"loss": told + HOLD * away, "loss_told": told, "loss_away": away}

    training = Training(encoder, model.seed, model.config.optimiser, progress)
    steps = steps_per_epoch(len(rows), learn.batch)
    stage = Stage("adapt", rows, EPOCHS, steps, learn.lr)
    batches = one_pass(len(rows), learn.batch)
    run_epochs(training, stage, state, batches, step, before_epoch=before_epoch)
    new = state.tensors["prototypes"][k:].cpu().numpy()
    before = embedded(model, frozen.old)
    return Learnt(embedded(model, frozen.came), new, scope_of(before), before)


def embedded(model: IntentModel, vectors: Tensor) -> FloatArray:
    """Return the (n, d) features of what the frozen part said."""
    return model.encoder.embed_all(VectorRows(vectors)).cpu().numpy()


def rehearsed(labels: IntArray, k: int, rng: np.random.Generator) -> IntArray:
    """Return rows of old utterances, as many of each of k intents as there are and may be.

    Args:
        labels: (m,) their intents.
        k: Number of intents.
        rng: Draws them.
    """
    most = max(LEAST_REHEARSED, REHEARSED // k)
    order = rng.permutation(len(labels))
    parts = [order[labels[order] == intent][:most] for intent in range(k)]
    return np.sort(np.concatenate(parts))
