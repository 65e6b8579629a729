"""Contrast of a batch with a memory of the whole training set."""

import math

import torch
from torch import Tensor

from ronid.losses.prototype import scaled_similarities


def memory_contrast_loss(
    features: Tensor, memory: Tensor, weights: Tensor, temperature: float
) -> Tensor:
    """Pull utterances to those of the memory that a graph joins them with, by the joint weight.

    Purpose: neighbours of neighbours as soft positives, every other training row as a negative.

    Inputs: features (b, d) unit vectors; memory (n, d) unit vectors, one per training row; weights
    (b, n) in [0, 1], from each utterance to each training row; temperature tau.

    Equation: L = -mean_i log( sum_j W_ij exp(z_i . m_j / tau) / sum_j exp(z_i . m_j / tau) ). An
    utterance without any weight is left out; with none left the loss is 0.

    Reference: Shi et al., 2023, A Diffusion Weighted Graph Framework for New Intent Discovery
    (DWGF).

    Relations: `DiffusionGraph.rows` gives the weights. With weights 0 or 1 it is the log of the
    share of the positives, not the mean of their logs as `supervised_contrastive_loss` has it: one
    near positive is enough. The memory gets no gradient.

    Returns:
        The loss, a scalar.

    Raises:
        ValueError: `weights` are not (b, n).
    """
    if weights.shape != (len(features), len(memory)):
        raise ValueError(
            f"weights have shape {tuple(weights.shape)}, not ({len(features)}, {len(memory)})"
        )
    logits = scaled_similarities(features, memory.detach(), temperature)  # (b, n)
    weights = weights.detach().to(logits)
    joined = weights > 0
    some = joined.any(dim=1)
    # By logarithms: a small temperature would let all that an utterance is joined with underflow.
    logged = torch.where(joined, weights, 1).log()
    # A row of -inf has no gradient, so a row without any weight keeps its logits and is left out.
    positives = (logits + logged).masked_fill(~joined & some[:, None], -math.inf)
    losses = torch.where(some, logits.logsumexp(dim=1) - positives.logsumexp(dim=1), 0)
    return losses.sum() / some.sum().clamp(min=1)
