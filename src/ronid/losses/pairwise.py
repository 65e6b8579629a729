"""Losses of pairs: which two utterances of a batch share an intent."""

import torch
from torch import Tensor
from torch.nn.functional import normalize

from ronid.losses.prototype import scaled_similarities

# Both logarithms of a similarity must exist in float32, whose last step below 1 is 6e-8.
LEAST, MOST = 1e-10, 1 - 1e-7


def pair_similarities(logits: Tensor) -> Tensor:
    """Cosines of all pairs of a batch, as probabilities that a pair shares an intent.

    Purpose: similarities whose log S and log(1 - S) are finite, with finite gradients.

    Inputs: logits (b, k), one vector per utterance; a zero vector is similar to nothing.

    Equation: S_ij = cos(z_i, z_j) clamped to [1e-10, 1 - 1e-7], in float32 or better.

    Reference: Chang et al., 2017, Deep Adaptive Image Clustering, on softmax outputs; on logits,
    where a cosine can be negative, Lin et al., 2020 (CDAC+), with S in [1e-10, 1]. Here 1 - S is
    kept from 0 as well.

    Relations: a clamped pair, so each utterance with itself and every pair of negative cosine,
    sends no gradient.

    Returns:
        (b, b) similarities.
    """
    dtype = torch.promote_types(logits.dtype, torch.float32)
    unit = normalize(logits.to(dtype), dim=1)
    return scaled_similarities(unit, unit, 1.0).clamp(LEAST, MOST)


def adaptive_pair_loss(
    logits: Tensor, upper: float | Tensor, lower: float | Tensor, targets: Tensor | None = None
) -> Tensor:
    """Make similar pairs more similar, dissimilar ones less; leave doubtful ones alone.

    Purpose: one direction of the logits per cluster, out of the pairs that the model is sure of.

    Inputs: logits (b, k); upper u and lower l thresholds, numbers or 0-dim tensors on the device
    of the logits (a recorded step then reads the value of the day); targets (b,) known classes, -1
    where unlabelled, or None.

    Equation: L = (1 / b^2) ( sum_{S_ij > u} -log S_ij + sum_{S_ij < l} -log(1 - S_ij) ), S of
    `pair_similarities`, both orders of a pair and the diagonal counted. For a pair of two labelled
    utterances their classes decide in place of the thresholds. The published term u - l is left
    out: it is the same for all weights and has no gradient.

    Reference: Chang et al., 2017, DAC; with targets Lin et al., 2020, Discovering New Intents via
    Constrained Deep Adaptive Clustering (CDAC+).

    Relations: lower u and raise l from epoch to epoch until they meet, and more and more pairs
    take part; of a batch that is labelled throughout it is `given_pair_loss`. Outputs of a softmax,
    never below 0, would become one-hot; logits may be rotated at no cost, so that nothing makes the
    direction of a cluster a column.

    Returns:
        The loss, a scalar; 0 for an empty batch.

    Raises:
        ValueError: `targets` are not (b,).
    """
    similarities = pair_similarities(logits)
    positive, negative = similarities > upper, similarities < lower
    if targets is not None:
        given, same = _given_pairs(targets, len(logits))
        positive = torch.where(given, same, positive)
        negative = torch.where(given, ~same, negative)
    return _summed_entropies(similarities, positive, negative) / max(1, similarities.numel())


def given_pair_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Binary cross-entropy of the pairs whose classes are known.

    Purpose: teach what a pair of one intent is like before pairs are guessed.

    Inputs: logits (b, k); targets (b,) known classes, -1 where unlabelled.

    Equation: L = -mean_{i, j labelled} ( [y_i = y_j] log S_ij + [y_i != y_j] log(1 - S_ij) ), S of
    `pair_similarities`, both orders of a pair and the diagonal counted.

    Reference: Lin et al., 2020 (CDAC+), its pass over the labelled utterances.

    Relations: unlabelled utterances change nothing, not even the mean; of a labelled batch it is
    `adaptive_pair_loss` with these targets, whatever the thresholds.

    Returns:
        The loss, a scalar; 0 where nothing is labelled.

    Raises:
        ValueError: `targets` are not (b,).
    """
    given, same = _given_pairs(targets, len(logits))
    total = _summed_entropies(pair_similarities(logits), given & same, given & ~same)
    return total / given.sum().clamp(min=1)


def pair_divergence_loss(
    logits: Tensor, similar: Tensor, margin: float = 2.0, rows: Tensor | None = None
) -> Tensor:
    """Equal class distributions for similar pairs, different ones for the others.

    Purpose: a classifier learnt from pairs, by whatever told them apart.

    Inputs: logits (b, k); similar (b, b) boolean, True where a pair shares an intent; margin, the
    divergence from which a dissimilar pair is left alone; rows (b,) positions of the batch in the
    training set, so that an utterance that comes twice is no pair with itself, or None where none
    does.

    Equation: L = mean_{i != j} ( KL(p_j || p_i) if similar, max(0, margin - KL(p_j || p_i)) if
    not ), p = softmax(logits), ordered pairs; p_j is a target, without gradient.

    Reference: Hsu et al., 2018, Learning to Cluster in Order to Transfer across Domains and Tasks
    (KCL).

    Relations: as both orders are counted, either side of a pair is moved towards the other, or
    away. Where two distributions are equal the gradient is 0, dissimilar or not.

    Returns:
        The loss, a scalar; 0 where there is no pair.

    Raises:
        ValueError: `similar` is not (b, b), or `rows` are not (b,).
    """
    b = len(logits)
    if similar.shape != (b, b):
        raise ValueError(f"similar has shape {tuple(similar.shape)}, not ({b}, {b})")
    if rows is None:
        rows = torch.arange(b, device=logits.device)
    elif rows.shape != (b,):
        raise ValueError(f"rows have shape {tuple(rows.shape)}, not ({b},)")
    dtype = torch.promote_types(logits.dtype, torch.float32)
    log_p = logits.log_softmax(dim=1, dtype=dtype)
    target = log_p.detach().exp()
    negentropy = (target * log_p.detach()).sum(dim=1)  # (b,)
    # A difference of two sums, not a sum of differences: no (b, b, k) tensor.
    divergence = negentropy - scaled_similarities(log_p, target, 1.0)  # (b, b), row i, target j
    losses = torch.where(similar.bool(), divergence, (margin - divergence).relu())
    pairs = rows[:, None] != rows
    return torch.where(pairs, losses, 0).sum() / pairs.sum().clamp(min=1)


def _given_pairs(targets: Tensor, b: int) -> tuple[Tensor, Tensor]:
    """Which pairs are labelled on both sides, and which have equal targets; (b, b) booleans."""
    if targets.shape != (b,):
        raise ValueError(f"targets have shape {tuple(targets.shape)}, not ({b},)")
    known = targets >= 0
    return known[:, None] & known, targets[:, None] == targets


def _summed_entropies(similarities: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
    """Sum of -log S over the positive pairs and of -log(1 - S) over the negative ones."""
    # Pairs are not picked out by their mask: a GPU would have to be asked how many there are.
    attracted = torch.where(positive, similarities.log(), 0)
    repelled = torch.where(negative, torch.log1p(-similarities), 0)
    return -(attracted + repelled).sum()
