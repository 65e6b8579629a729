"""Contrast between the utterances of one batch."""

import math

import torch
from torch import Tensor

from ronid.losses.prototype import scaled_similarities


def supervised_contrastive_loss(
    features: Tensor, positives: Tensor, temperature: float, *, per_pair: bool = False
) -> Tensor:
    """Pull utterances that belong together closer than all others of the batch.

    Purpose: representations in which same-intent utterances are neighbours.

    Inputs: features (b, d) unit vectors; positives, either a (b, b) boolean mask whose row i marks
    the positives of anchor i, or (b,) labels of which equal ones >= 0 are positives; temperature
    tau; per_pair, whether all pairs count alike instead of all anchors.

    Equation: L = -mean_i mean_{p in P(i)} log( exp(s_i . s_p / tau) / sum_{a != i} exp(s_i . s_a /
    tau) ). An utterance is never its own positive; anchors without positives are skipped; with
    none left the loss is 0. With per_pair it is the mean over all pairs (i, p), so that an anchor
    weighs by its number of positives.

    Reference: Khosla et al., 2020, Supervised Contrastive Learning, L_out.

    Relations: with two views per utterance and their row numbers as labels it is InfoNCE; with
    `neighbour_mask` it is the neighbour contrast of CLNN (Zhang et al., 2022); per pair of equal
    pseudo-labels it is that of LatentEM (Zhou et al., 2023).

    Returns:
        The loss, a scalar.

    Raises:
        ValueError: `positives` is neither (b,) nor (b, b).
    """
    b = len(features)
    if positives.shape == (b,):
        positives = (positives[:, None] == positives) & (positives >= 0)
    elif positives.shape != (b, b):
        raise ValueError(f"positives have shape {tuple(positives.shape)}, not ({b},) or ({b}, {b})")
    itself = torch.eye(b, dtype=torch.bool, device=features.device)
    positives = positives.bool() & ~itself
    counts = positives.sum(dim=1)  # (b,)
    logits = scaled_similarities(features, features, temperature)
    logits = logits.masked_fill(itself, -math.inf)
    log_shares = logits - logits.logsumexp(dim=1, keepdim=True)
    # where, not times: -inf on the diagonal times 0 would be NaN.
    summed = torch.where(positives, log_shares, 0).sum(dim=1)
    if per_pair:
        return -summed.sum() / counts.sum().clamp(min=1)
    # Anchors are not picked out by their mask: a GPU would have to be asked how many there are.
    means = summed / counts.clamp(min=1)
    return -means.sum() / (counts > 0).sum().clamp(min=1)


def neighbour_mask(rows: Tensor, neighbours: Tensor, targets: Tensor) -> Tensor:
    """Which utterances of a batch count as positives of which.

    Purpose: the `positives` of `supervised_contrastive_loss` for neighbour contrast.

    Inputs: rows (b,) positions of the batch in the training set, repeats allowed (two views);
    neighbours (n, m) nearest neighbours of every training row; targets (n,) known classes, -1
    where unlabelled.

    Equation: mask[i, j] = rows_i == rows_j, or rows_j in neighbours[rows_i], or both carry the
    same known class.

    Reference: Zhang et al., 2022, New Intent Discovery with Pre-training and Contrastive Learning;
    its code leaves out known class 0, here every class >= 0 counts.

    Relations: not symmetric, as being a neighbour is not.

    Returns:
        (b, b) boolean mask.
    """
    b = len(rows)
    present = rows.sort().values  # (b,) repeats and all
    position = torch.searchsorted(present, rows)  # (b,) the first of equal rows
    listed = neighbours[rows]  # (b, m)
    slot = torch.searchsorted(present, listed).clamp(max=b - 1)
    found = present[slot] == listed  # neighbours that are in the batch
    table = torch.zeros(b, b + 1, dtype=torch.bool, device=rows.device)
    # Absent neighbours all write to one spare column, dropped by the gather below.
    table.scatter_(1, torch.where(found, slot, b), value=True)
    classes = targets[rows]
    same_class = (classes[:, None] == classes) & (classes >= 0)
    return table[:, position] | same_class | (rows[:, None] == rows)
