"""The E-step: pseudo-labels and the class prior, while the encoder stands still.

Here a `state` holds `prototypes`, (k, d) unit vectors, `prior`, (k,) shares, and `new_odds`, (n,)
log odds that a row belongs to no known intent.
"""

from dataclasses import replace

import torch
from torch import Tensor

from ronid.assign.aligned import aligned_kmeans
from ronid.assign.forbid import nearest_allowed, without
from ronid.assign.kmeans import nearest_centroid
from ronid.assign.prior import shrunk_prior, unlabelled_marginal, update_prior, vouched_prior
from ronid.assign.sinkhorn import cosine_blocks, shifted, sinkhorn
from ronid.config import EStepConfig
from ronid.train.state import StageState
from ronid.types import Assignment, Split


def estimate_prior(
    embeddings: Tensor, state: StageState, split: Split, config: EStepConfig
) -> None:
    """Set the shrunk prior; training then keeps it: small intents would lose ever more to large.

    Shares that somebody vouches for are believed, whatever the prior.
    """
    if config.prior == "shrunk":
        predicted = nearest_centroid(embeddings, state.tensors["prototypes"])
        known = len(split.known)
        shrunk = shrunk_prior(predicted, split.n_intents, known, floor=config.prior_floor)
        state.put("prior", shrunk)
    if split.shares is not None:
        shares = torch.from_numpy(split.shares)
        state.put("prior", vouched_prior(state.tensors["prior"], shares, config.prior_floor))


def e_step(
    embeddings: Tensor,
    state: StageState,
    split: Split,
    config: EStepConfig,
    generator: torch.Generator,
) -> Assignment:
    """Return pseudo-labels of all rows and the moved class prior (Eq. 4 and 5).

    Args:
        embeddings: (n, d) unit vectors of the training rows.
        state: Holds `prototypes` and `prior`.
        split: The problem; labelled rows keep their intents.
        config: Settings.
        generator: Source of randomness, used by the k-means ablation.
    """
    prototypes, prior = state.tensors["prototypes"], state.tensors["prior"]
    targets = torch.from_numpy(split.targets).to(embeddings.device)
    moved = prior
    if config.prior == "moving":
        # Between unit vectors the nearest prototype is the one of largest cosine: argmax P.
        predicted = nearest_centroid(embeddings, prototypes)
        moved = update_prior(prior, predicted, config.prior_momentum, config.prior_floor)
    if config.pseudo_labels == "kmeans":
        labels = _kmeans_labels(embeddings, prototypes, generator)
        return _assignment(_corrected(labels, embeddings, prototypes, split), targets, moved)
    marginal, free = prior, torch.arange(len(targets), device=targets.device)
    if config.rows == "unlabelled":
        free = free[targets < 0]
        given = torch.bincount(targets[targets >= 0], minlength=split.n_intents)
        marginal = unlabelled_marginal(prior, given, len(targets))
    if len(free) == 0:
        return _assignment(targets, targets, moved)
    if split.closed:  # an intent without mass gets no row
        marginal = marginal.clone()
        marginal[list(split.closed)] = 0
    scores = cosine_blocks(embeddings, prototypes, temperature=config.score_temperature, rows=free)
    shift = config.eta * state.tensors["new_odds"][free]  # the kernel is exp(score / eta)
    scores = shifted(scores, shift, slice(len(split.known), None))
    plan = sinkhorn(
        without(scores, split.forbidden, free),
        marginal,
        eta=config.eta,
        slack=config.slack,
        tolerance=config.tolerance,
        max_iterations=config.max_iterations,
    )
    labels = targets.clone()
    labels[free] = plan.labels()
    solved = _assignment(labels, targets, moved)
    return replace(
        solved, iterations=plan.iterations, residual=plan.residual, converged=plan.converged
    )


def _corrected(labels: Tensor, embeddings: Tensor, prototypes: Tensor, split: Split) -> Tensor:
    """Return labels of which those that a row must not have are replaced by the next best."""
    pairs = torch.from_numpy(split.forbidden).to(labels.device)
    closed = torch.tensor(split.closed, dtype=labels.dtype, device=labels.device)
    wrong = torch.isin(labels, closed)
    wrong[pairs[labels[pairs[:, 0]] == pairs[:, 1], 0]] = True
    if not wrong.any():
        return labels
    return torch.where(wrong, nearest_allowed(embeddings, prototypes, split), labels)


def _assignment(labels: Tensor, targets: Tensor, prior: Tensor) -> Assignment:
    """Return an E-step's outcome; the user's own intents are written over the pseudo-labels."""
    kept = torch.where(targets >= 0, targets, labels)
    return Assignment(kept.cpu().numpy(), prior.cpu().numpy())


def _kmeans_labels(embeddings: Tensor, prototypes: Tensor, generator: torch.Generator) -> Tensor:
    """Pseudo-labels of the ablation -OT: k-means, numbered like the prototypes they match."""
    k = len(prototypes)
    return aligned_kmeans(embeddings, k, prototypes, n_init=1, generator=generator).labels
