"""The E-step, and what makes its first prototypes good: all of it while the encoder stands still.

Here a `state` holds `prototypes`, (k, d) unit vectors, and `prior`, (k,) shares.
"""

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.functional import normalize

from ronid.assign.aligned import aligned_kmeans
from ronid.assign.breathing import halves
from ronid.assign.forbid import nearest_allowed, without
from ronid.assign.kmeans import class_means, nearest_centroid
from ronid.assign.prior import shrunk_prior, unlabelled_marginal, update_prior, vouched_prior
from ronid.assign.sinkhorn import cosine_blocks, sinkhorn
from ronid.config import EStepConfig, RoNIDConfig
from ronid.train.state import StageState
from ronid.types import Assignment, Split

CANDIDATES = 3
"""Crowded clusters, and idle new ones, that an exchange considers."""

BRIEF = 3
"""Iterations after which an exchange is judged."""


def settle(
    embeddings: Tensor,
    state: StageState,
    split: Split,
    config: EStepConfig,
    iterations: int,
    *,
    estimate: bool = False,
) -> float:
    """Alternate pseudo-labels and class means while the encoder stands still.

    k-means knows nothing of the class prior; this lets the transport correct its clusters before
    any utterance is trained towards them. Where k-means takes the place of transport, these are
    its own iterations.

    Args:
        embeddings: (n, d) unit vectors of the training rows.
        state: Holds `prototypes`, which are moved, and `prior`.
        split: The problem.
        config: Settings of the E-step.
        iterations: Most iterations; it ends when no label changes.
        estimate: Whether a shrunk prior is estimated anew in every iteration.

    Returns:
        Mean cosine between an utterance and the prototype of its pseudo-label; 0 if nothing was
        done.
    """
    previous: Tensor | None = None
    tightness = 0.0
    for _ in range(iterations):
        if estimate:
            estimate_prior(embeddings, state, split, config)
        labels = _labels(embeddings, state, split, config)
        means = class_means(embeddings, labels, split.n_intents)
        found = torch.bincount(labels, minlength=split.n_intents) > 0
        old = state.tensors["prototypes"]
        state.put("prototypes", torch.where(found[:, None], normalize(means, dim=-1), old))
        tightness = float((embeddings * state.tensors["prototypes"][labels]).sum(dim=1).mean())
        if previous is not None and previous.equal(labels):
            break
        previous = labels
    return tightness


def _labels(embeddings: Tensor, state: StageState, split: Split, config: EStepConfig) -> Tensor:
    """Return the (n,) labels of an iteration of `settle`; given ones are kept."""
    if config.pseudo_labels == "kmeans":
        targets = torch.from_numpy(split.targets).to(embeddings.device)
        prototypes = state.tensors["prototypes"]
        nearest = nearest_allowed(embeddings, prototypes, split)
        return torch.where(targets >= 0, targets, nearest)
    found = e_step(embeddings, state, split, config, torch.Generator(embeddings.device))
    return torch.from_numpy(found.labels).to(embeddings.device)


def exchange(
    embeddings: Tensor,
    state: StageState,
    split: Split,
    config: RoNIDConfig,
    generator: torch.Generator,
) -> None:
    """Move prototypes of new intents from idle clusters into crowded ones where that is better.

    Two intents that share a prototype take twice the share that the prior gives it, and a
    prototype to spare takes little. The transport spreads the one and fills the other with
    strangers, but never moves a prototype that far. Here that is tried, and what makes clusters
    tighter under the prior is kept.

    Args:
        embeddings: (n, d) unit vectors of the training rows.
        state: Holds `prototypes`, which are moved, and `prior`.
        split: The problem.
        config: Settings of the start and of the E-step.
        generator: Source of randomness.
    """
    trials, rule = config.start.exchanges, config.e_step
    if not trials or split.n_intents == len(split.known) or rule.pseudo_labels == "kmeans":
        return
    best = settle(embeddings, state, split, rule, BRIEF)
    proposals = _proposals(embeddings, state, split, generator)
    for _ in range(trials):
        prototypes = next(proposals, None)
        if prototypes is None:
            break
        tried = {"prototypes": prototypes, "prior": state.tensors["prior"]}
        trial = StageState(state.encoder, tensors=tried)
        tightness = settle(embeddings, trial, split, rule, BRIEF)
        if tightness > best + 1e-5:
            best = tightness
            state.put("prototypes", trial.tensors["prototypes"])
            proposals = _proposals(embeddings, state, split, generator)
    iterations = max(BRIEF, config.start.settle_iterations)
    settle(embeddings, state, split, rule, iterations, estimate=True)


def _proposals(
    embeddings: Tensor, state: StageState, split: Split, generator: torch.Generator
) -> Iterator[Tensor]:
    """Yield prototypes with a crowded cluster halved and an idle new one gone, best bets first."""
    prototypes, known = state.tensors["prototypes"], len(split.known)
    labels = nearest_centroid(embeddings, prototypes)
    shares = torch.bincount(labels, minlength=len(prototypes)) / len(labels)
    crowd = shares / state.tensors["prior"].to(shares)
    crowded = crowd.argsort(descending=True)[:CANDIDATES].tolist()
    idle = (crowd[known:].argsort()[:CANDIDATES] + known).tolist()
    targets = torch.from_numpy(split.targets).to(embeddings.device)
    stay, leave = halves(embeddings, targets, prototypes, labels, generator=generator)
    pairs = [(i + j, wide, spare) for i, wide in enumerate(crowded) for j, spare in enumerate(idle)]
    whole = (stay.norm(dim=1) > 0) & (leave.norm(dim=1) > 0)  # not so where all rows are one
    for _, wide, spare in sorted(pairs):
        if wide != spare and whole[wide]:
            moved = prototypes.clone()
            moved[wide], moved[spare] = normalize(stay[wide], dim=0), normalize(leave[wide], dim=0)
            yield moved


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
