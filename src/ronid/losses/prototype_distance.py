"""Soft distance to prototypes that stand still: the two prototype losses of DPN.

An utterance is drawn to all prototypes, most to those in whose direction it lies already. The
prototypes are given: they get no gradient.
"""

import torch
from torch import Tensor
from torch.nn.functional import normalize

from ronid.losses.prototype import scaled_similarities


def soft_distance_loss(features: Tensor, prototypes: Tensor, temperature: float) -> Tensor:
    """Expected Euclidean distance between utterances and the prototypes they lean towards.

    Purpose: compact clusters around prototypes, without a hard assignment.

    Inputs: features (b, d) and prototypes (k, d), of any length; temperature tau.

    Equation: L = mean_i sum_k w_ik |z_i - mu_k|, w_ik = softmax_k(cos(z_i, mu_k) / tau).

    Reference: An et al., 2023, Generalized Category Discovery with Decoupled Prototypical Network
    (DPN), the term of the unlabelled prototypes.

    Relations: `soft_cosine_loss` measures by the cosine alone. The gradient also passes through w;
    where an utterance lies on a prototype, that distance has the gradient 0.

    Returns:
        The loss, a scalar; 0 for an empty batch.
    """
    fixed = prototypes.detach()
    dtype = torch.promote_types(torch.promote_types(features.dtype, fixed.dtype), torch.float32)
    # Not by |a|^2 + |b|^2 - 2 ab: its rounding can be negative, and a root at 0 has no gradient.
    gaps = torch.cdist(
        features.to(dtype), fixed.to(dtype), compute_mode="donot_use_mm_for_euclid_dist"
    )  # (b, k)
    weights = (_cosines(features, fixed) / temperature).softmax(dim=1)
    return (weights * gaps).sum() / max(1, len(features))


def soft_cosine_loss(
    features: Tensor, prototypes: Tensor, temperature: float, weights: Tensor | None = None
) -> Tensor:
    """Expected cosine distance between utterances and the prototypes they lean towards.

    Purpose: let what is known of some intents shape the utterances that seem to have them.

    Inputs: features (b, d) and prototypes (m, d), of any length; temperature tau; weights (b,) of
    the utterances, such as 1 for those taken for a known intent and 0 for others, or None for 1.

    Equation: L = mean_i g_i sum_m w_im (1 - cos(z_i, mu_m)), w_im = softmax_m(cos(z_i, mu_m) /
    tau), g the weights. The mean is over all utterances, those of weight 0 included.

    Reference: An et al., 2023 (DPN), the term of the labelled prototypes.

    Relations: `soft_distance_loss` with another distance; blind to the length of its inputs.

    Returns:
        The loss, a scalar; 0 for an empty batch.

    Raises:
        ValueError: `weights` are not (b,).
    """
    if weights is not None and weights.shape != features.shape[:1]:
        raise ValueError(f"weights have shape {tuple(weights.shape)}, not ({len(features)},)")
    cosines = _cosines(features, prototypes.detach())  # (b, m)
    losses = ((cosines / temperature).softmax(dim=1) * (1 - cosines)).sum(dim=1)  # (b,)
    weighted = losses if weights is None else losses * weights.to(losses)
    return weighted.sum() / max(1, len(features))


def _cosines(features: Tensor, prototypes: Tensor) -> Tensor:
    """(b, k) cosines; 0 for a vector of length 0."""
    return scaled_similarities(normalize(features, dim=1), normalize(prototypes, dim=1), 1.0)
