"""Soft assignment to centres that learns from its own surest part.

One training step runs in this order; the targets of the whole set are renewed now and then:

    q = student_t(embeddings, centres)
    loss = self_training_loss(q, sharpened(q, shares))

The centres are parameters: the loss moves them as well as the embeddings.
"""

import torch
from torch import Tensor
from torch.nn.functional import kl_div


def student_t(points: Tensor, centres: Tensor) -> Tensor:
    """Probability of each centre, by a kernel with heavy tails.

    Purpose: a soft assignment that never gives up on a far point.

    Inputs: points (n, d) and centres (k, d), of any length.

    Equation: q_ij = (1 + |z_i - mu_j|^2)^-1 / sum_l (1 + |z_i - mu_l|^2)^-1, the Student t kernel
    with one degree of freedom (alpha = 1).

    Reference: Xie et al., 2016, Unsupervised Deep Embedding for Clustering Analysis (DEC).

    Relations: differentiable in both; feeds `sharpened` and `self_training_loss`. Its argmax is
    the nearest centre.

    Returns:
        (n, k) probabilities, rows sum to 1, in float32 or better.
    """
    dtype = torch.promote_types(torch.promote_types(points.dtype, centres.dtype), torch.float32)
    # Not by |a|^2 + |b|^2 - 2 ab: far from the origin its rounding exceeds the 1 of the kernel.
    gaps = torch.cdist(
        points.to(dtype), centres.to(dtype), compute_mode="donot_use_mm_for_euclid_dist"
    )
    return (-torch.log1p(gaps.square())).softmax(dim=1)


def sharpened(q: Tensor, shares: Tensor | None = None) -> Tensor:
    """Target that trusts sure assignments more, and large clusters less.

    Purpose: what the soft assignment is trained towards.

    Inputs: q (n, k) probabilities, rows sum to 1; shares (k,) column sums of q over the whole set
    where q is only a batch of it (any multiple of them does), or None for those of q itself.

    Equation: p_ij = (q_ij^2 / f_j) / sum_l (q_il^2 / f_l), f_j = sum_i q_ij.

    Reference: Xie et al., 2016 (DEC).

    Relations: no gradient, a target; goes into `self_training_loss`.

    Returns:
        (n, k) probabilities, rows sum to 1.

    Raises:
        ValueError: `shares` are not (k,).
    """
    q = q.detach()
    if shares is None:
        shares = q.sum(dim=0)
    elif shares.shape != q.shape[1:]:
        raise ValueError(f"shares have shape {tuple(shares.shape)}, not ({q.shape[1]},)")
    # By logarithms: over the share of an empty cluster, q^2 would overflow.
    weights = shares.detach().to(q).clamp(min=torch.finfo(q.dtype).tiny).log()
    return (2 * q.log() - weights).softmax(dim=1)


def self_training_loss(q: Tensor, p: Tensor) -> Tensor:
    """Divergence of a soft assignment from its target.

    Purpose: pull each point to the centre it is surest of.

    Inputs: q (n, k) of `student_t`; p (n, k) of `sharpened`, this step's or one kept for a while.

    Equation: L = mean_i sum_j p_ij log(p_ij / q_ij); a mean over rows only, as one over all
    entries would be k times smaller.

    Reference: Xie et al., 2016 (DEC), who sum over rows.

    Relations: p gets no gradient, whether or not it is detached.

    Returns:
        The loss, a scalar; 0 for an empty batch.
    """
    return kl_div(_logged(q), p.detach().to(q), reduction="sum") / max(1, len(q))


def own_target_loss(q: Tensor) -> Tensor:
    """Divergence of a batch's soft assignment from its own target, which moves along.

    Purpose: self-training as DWGF's published code has it.

    Inputs: q (n, k) of `student_t`, a batch.

    Equation: that of `self_training_loss` with p of `sharpened`, but p is a function of q.

    Reference: Shi et al., 2023, Diffusion Weighted Graph Framework (DWGF), its code.

    Relations: the value of `self_training_loss(q, sharpened(q))`, but not its gradient. Where q is
    nearly uniform they are opposed: a fixed target is met by a surer q, one that moves along is met
    where q and its square agree, in a flatter one.

    Returns:
        The loss, a scalar; 0 for an empty batch.
    """
    log_q = _logged(q)
    shares = q.sum(dim=0).clamp(min=torch.finfo(q.dtype).tiny)
    log_p = (2 * log_q - shares.log()).log_softmax(dim=1)
    return (log_p.exp() * (log_p - log_q)).sum() / max(1, len(q))


def _logged(q: Tensor) -> Tensor:
    """Logarithms; a q of 0, of a centre 1e19 times farther than another, has none."""
    return q.clamp(min=torch.finfo(q.dtype).tiny).log()
