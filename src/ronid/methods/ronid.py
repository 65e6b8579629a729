"""RoNID (DASFAA 2024): pre-train, then alternate pseudo-labels and representation.

    E-step  pseudo-labels by optimal transport with a moving class prior   (Eq. 3 to 5)
    M-step  intra- and inter-cluster prototype contrast, cross-entropy     (Eq. 6 to 10)

The paper leaves several choices open; each is a field of `ronid.config` whose docstring says so.
P, the model's prediction, is the softmax over prototypes: no pseudo-label loss of the paper would
ever train a linear head on the new intents.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ronid.assign.prior import uniform_prior
from ronid.assign.start import start_prototypes
from ronid.config import ContrastConfig, MStepConfig, RoNIDConfig
from ronid.encode.rows import Pick, Rows
from ronid.errors import ConfigError, UsageError
from ronid.losses.prototype import (
    inter_cluster_loss,
    intra_cluster_loss,
    prototype_cross_entropy,
    temperature_of,
    update_prototypes,
)
from ronid.methods.pseudo_labels import e_step, estimate_prior
from ronid.metrics import normalised_entropy
from ronid.train.batches import one_pass_with_labelled, steps_per_epoch
from ronid.train.contrast import contrast
from ronid.train.count import count_intents, rather_too_many
from ronid.train.diagnose import label_accuracy
from ronid.train.infer import gather
from ronid.train.loop import Stage, run_epochs
from ronid.train.pretrain import pretrain_layers
from ronid.train.state import StageState, Training, generator_of, inputs_of
from ronid.train.step import Picks
from ronid.train.stopping import SettledLabels
from ronid.train.views import view
from ronid.types import Assignment, Discovery, Split


def fit(split: Split, config: RoNIDConfig, training: Training) -> Discovery:
    """Discover the intents of `split`.

    Args:
        split: The problem.
        config: The recipe.
        training: Encoder, seed, progress and checkpoint of this fit.
    """
    if split.count_rule == "given":
        tempered(config, split.n_intents)  # a wrong setting is refused before the work
    encoder = training.encoder
    if config.encoder.trainable_layers == 0 and not config.encoder.adapter_width:
        raise UsageError("nothing to train: set encoder.trainable_layers or encoder.adapter_width")
    pretrain_layers(training, split, config.pretrain, config.encoder.trainable_layers)
    rows = encoder.prepare(inputs_of(split), training.progress)
    rough = count_intents(training, split, rows, "rough_count")  # how many neighbours are alike
    judged_at = 0 if split.count_rule == "given" else rather_too_many(rough.n_intents)
    contrast(training, rough, rows, lengthened(config.contrast, split), judged_at=judged_at)
    split = count_intents(training, split, rows)
    config = tempered(config, split.n_intents)
    state = alternate(training, split, rows, config)
    return outcome(training, split, rows, state, config)


def outcome(
    training: Training, split: Split, rows: Rows, state: StageState, config: RoNIDConfig
) -> Discovery:
    """Return what the EM loop found.

    Args:
        training: What the stages of this fit share.
        split: The problem.
        rows: Its training rows, prepared.
        state: What `alternate` returned.
        config: The recipe that it followed.
    """
    return gather(
        training,
        split,
        rows,
        state.tensors["prototypes"],
        prior=state.tensors["prior"],
        temperature=config.m_step.temperature,
        rule="cosine",
    )


def lengthened(config: ContrastConfig, split: Split) -> ContrastConfig:
    """Return the settings of the neighbour contrast for as few or many labels as there are.

    Args:
        config: Those of the recipe; a contrast that it leaves out stays out.
        split: The problem.
    """
    few = len(split.labelled) <= config.few_labels * len(split.known)
    if not few or not config.epochs:
        return config
    return replace(config, epochs=max(config.epochs, config.few_labels_epochs))


def tempered(config: RoNIDConfig, n_intents: int) -> RoNIDConfig:
    """Return the recipe with the temperature of the M-step that suits the number of intents.

    Args:
        config: The recipe.
        n_intents: How many intents there are.

    Raises:
        ConfigError: Its certainty is impossible for so many.
    """
    learn = config.m_step
    if not learn.certainty or n_intents == 1:
        return config
    if not 1 / n_intents < learn.certainty < 1:
        raise ConfigError(
            f"m_step.certainty is {learn.certainty}; with {n_intents} intents give a number "
            f"between {1 / n_intents:.2g} and 1, or 0 to set the temperature yourself"
        )
    suited = temperature_of(n_intents, learn.certainty)
    return replace(config, m_step=replace(learn, temperature=suited))


def alternate(
    training: Training,
    split: Split,
    rows: Rows,
    config: RoNIDConfig,
    first: Callable[[Tensor], Tensor] | None = None,
) -> StageState:
    """Run the EM loop; the state returned holds `prototypes` and `prior`.

    Args:
        training: What the stages of this fit share.
        split: The problem.
        rows: Its training rows, prepared.
        config: The recipe.
        first: Given the (n, d) features of all rows, returns the (k, d) prototypes to begin with,
            each of which stays the intent that it is; those of `config.start` when None.
    """
    encoder, learn = training.encoder, config.m_step
    state = StageState(encoder)
    stage = Stage(
        name="em",
        rows=rows,
        epochs=learn.epochs,
        steps=steps_per_epoch(len(rows), learn.batch),
        lr=learn.lr,
        stopper=SettledLabels(learn.stop_change, learn.stop_patience),
    )

    targets = torch.from_numpy(split.targets).to(encoder.device)

    def before_epoch(epoch: int) -> Mapping[str, Any]:
        embeddings = encoder.embed_all(rows)
        generator = generator_of(embeddings.device, training.seed, "e-step", epoch)
        if "prototypes" not in state.tensors:
            if first:
                start, odds = first(embeddings), embeddings.new_zeros(len(embeddings))
            else:
                start, odds = start_prototypes(embeddings, split, config.start, generator)
            state.put("prototypes", start)
            state.put("new_odds", odds)
            state.put("prior", uniform_prior(split.n_intents))
            estimate_prior(embeddings, state, split, config.e_step)
        assignment = e_step(embeddings, state, split, config.e_step, generator)
        row = _diagnose(assignment, state.tensors.get("labels"), split)
        state.put("labels", torch.from_numpy(assignment.labels))
        state.put("prior", torch.from_numpy(assignment.prior))
        return row

    known = min(learn.labelled_batch, len(split.labelled)) if learn.cross_entropy else 0
    batches = one_pass_with_labelled(split.labelled, known, len(rows), learn.batch)

    def step(picks: Picks) -> Mapping[str, Tensor]:
        return m_step(picks[0], known, state, targets, rows, learn)

    run_epochs(training, stage, state, batches, step, before_epoch=before_epoch)
    if not learn.epochs:  # then the first prototypes are the answer
        before_epoch(0)
    return state


def m_step(
    pick: Pick, known: int, state: StageState, targets: Tensor, rows: Rows, config: MStepConfig
) -> dict[str, Tensor]:
    """Move the prototypes and return the losses of one batch (Eq. 6 to 10).

    Args:
        pick: Labelled rows, and behind them rows of the whole training set.
        known: How many of them are the labelled rows.
        state: Holds `prototypes`, moved in place, and this epoch's `labels`.
        targets: (n,) given intents, -1 where there is none.
        rows: The training rows, prepared.
        config: Weights and switches.
    """
    vectors = view(state.encoder, rows, pick, config.token_replacement)
    index, mixed = pick.index[known:], vectors[known:]
    labels = state.tensors["labels"][index]
    prototypes = update_prototypes(
        state.tensors["prototypes"],
        mixed,
        labels,
        config.prototype_momentum,
        per_item=config.prototype_update == "item",
    )
    state.put("prototypes", prototypes)
    zero = vectors.sum() * 0.0
    intra = inter = cross_entropy = zero
    if config.intra:
        intra = intra_cluster_loss(mixed, prototypes, labels, config.temperature)
    if config.inter:
        inter = inter_cluster_loss(prototypes, config.temperature)
    if known:
        given = targets[pick.index[:known]]
        cross_entropy = prototype_cross_entropy(
            vectors[:known], prototypes, given, config.temperature
        )
    losses = {"loss_intra": intra, "loss_inter": inter, "loss_ce": cross_entropy}
    loss = config.alpha * intra + (1 - config.alpha) * inter + cross_entropy
    return {"loss": loss, **losses}


def _diagnose(assignment: Assignment, previous: Tensor | None, split: Split) -> dict[str, Any]:
    """Describe an E-step."""
    row: dict[str, Any] = {
        "sinkhorn_iterations": assignment.iterations,
        "sinkhorn_residual": assignment.residual,
        "prior_entropy": normalised_entropy(assignment.prior),
    }
    if previous is not None:
        row["changed"] = float((assignment.labels != previous.cpu().numpy()).mean())
    return row | label_accuracy(assignment.labels, split)
