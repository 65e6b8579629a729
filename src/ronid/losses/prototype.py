"""Losses against intent prototypes: the M-step of RoNID (Eq. 6 to 10).

Embeddings and prototypes are unit vectors. One training step runs in this order:

    updated = update_prototypes(prototypes, embeddings, labels, momentum)            # Eq. 7
    loss = (
        alpha * intra_cluster_loss(embeddings, updated, labels, temperature)         # Eq. 6
        + (1 - alpha) * inter_cluster_loss(updated, temperature)                     # Eq. 8
        + prototype_cross_entropy(labelled, updated, targets, temperature)           # Eq. 9
    )                                                                                # Eq. 10
    prototypes = updated.detach()

The prototypes are no parameters: they follow the embeddings by a moving average, and only the
inter-cluster loss sends a gradient through them.
"""

import math

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize


def scaled_similarities(a: Tensor, b: Tensor, temperature: float) -> Tensor:
    """Dot products over a temperature, in float32 or better even under autocast.

    Args:
        a: (m, d) unit vectors.
        b: (k, d) unit vectors.
        temperature: tau; a cosine of 1 becomes 1 / tau, too large for half precision.

    Returns:
        (m, k) logits.
    """
    with torch.autocast(a.device.type, enabled=False):
        dtype = torch.promote_types(torch.promote_types(a.dtype, b.dtype), torch.float32)
        return a.to(dtype) @ b.to(dtype).T / temperature


def temperature_of(k: int, certainty: float) -> float:
    """Temperature at which the best place there is has a given probability.

    Purpose: the same softness with 20 intents and with 150, so that one setting suits both.

    Inputs: k >= 2 intents; certainty, a probability above 1 / k and below 1.

    Equation: k prototypes as far apart as can be have cosine -1 / (k - 1); at that distance
    softmax(1 / tau, -1 / ((k - 1) tau), ...) gives certainty p for
    tau = k / (k - 1) / log((k - 1) p / (1 - p)).

    Relations: sets tau of Eq. 6, 8 and 9.
    """
    if k < 2 or not 1 / k < certainty < 1:  # noqa: PLR2004 - of one intent everything is certain
        raise ValueError(f"certainty {certainty} with {k} intents; give more than 1/k, less than 1")
    return k / (k - 1) / math.log((k - 1) * certainty / (1 - certainty))


def update_prototypes(
    prototypes: Tensor,
    embeddings: Tensor,
    labels: Tensor,
    momentum: float,
    *,
    per_item: bool = True,
) -> Tensor:
    """Move each prototype towards its utterances of the batch.

    Purpose: prototypes that follow the encoder smoothly, and let a gradient reach it.

    Inputs: prototypes (k, d) unit vectors; embeddings (b, d) unit vectors; labels (b,) classes;
    momentum lambda_2; per_item False takes one moving-average step per batch instead of one per
    utterance.

    Equation: (7), mu <- normalise(lambda_2 mu + (1 - lambda_2) s) for each utterance in turn. Here
    in a form that does not depend on the order within the batch: for the n_c utterances of class
    c, mu_c <- normalise(w mu_c + (1 - w) mean(s)) with w = lambda_2 ** n_c. Classes absent from
    the batch stay as they are.

    Reference: RoNID, Sec. 3.5; the moving average of CIDER (Ming et al., 2023).

    Relations: differentiable through the batch's mean, the old prototypes are detached; feeds
    `inter_cluster_loss`. Detach the result before keeping it for the next step.

    Returns:
        (k, d) unit vectors in the dtype of `prototypes`.
    """
    old = prototypes.detach()
    k = len(old)
    batch = embeddings.to(old.dtype)
    # Not bincount: it makes the host wait for a GPU.
    counts = old.new_zeros(k).index_add(0, labels, torch.ones_like(batch[:, 0]))[:, None]  # (k, 1)
    means = torch.zeros_like(old).index_add(0, labels, batch) / counts.clamp(min=1)
    steps = counts if per_item else counts.clamp(max=1)
    weight = torch.pow(momentum, steps)
    moved = normalize(weight * old + (1 - weight) * means, dim=1)
    return torch.where(counts > 0, moved, old)


def intra_cluster_loss(
    embeddings: Tensor, prototypes: Tensor, labels: Tensor, temperature: float
) -> Tensor:
    """Pull utterances to the prototype of their pseudo-label, away from the others.

    Purpose: compact clusters.

    Inputs: embeddings (b, d) unit vectors; prototypes (k, d) unit vectors; labels (b,)
    pseudo-labels Y; temperature tau.

    Equation: (6), L_a = -mean_i log softmax_j(s_i . mu_j / tau)[Y_i]; an empty batch gives 0.

    Reference: RoNID, Sec. 3.5; prototypical contrast as the compactness loss of CIDER.

    Relations: gives no gradient to the prototypes (that is `inter_cluster_loss`'s part); the same
    formula on true labels is `prototype_cross_entropy`.

    Returns:
        The loss, a scalar.
    """
    logits = scaled_similarities(embeddings, prototypes.detach(), temperature)
    return cross_entropy(logits, labels, reduction="sum") / max(1, len(labels))


def inter_cluster_loss(prototypes: Tensor, temperature: float) -> Tensor:
    """Push the prototypes apart.

    Purpose: well-separated clusters.

    Inputs: prototypes (k, d), those just updated with the batch; temperature tau.

    Equation: (8), L_r = mean_i log( sum_{j != i} exp(cos(mu_i, mu_j) / tau) / (k - 1) ); 0 for a
    single prototype.

    Reference: RoNID, Sec. 3.5; the dispersion loss of CIDER.

    Relations: the gradient reaches the encoder only through the batch term of
    `update_prototypes`; per utterance it carries the factor (1 - lambda_2), so it is small.

    Returns:
        The loss, a scalar.
    """
    k = len(prototypes)
    if k == 1:
        return prototypes.sum() * 0
    unit = normalize(prototypes, dim=1)
    logits = scaled_similarities(unit, unit, temperature)
    itself = torch.eye(k, dtype=torch.bool, device=logits.device)
    others = logits.masked_fill(itself, -math.inf).logsumexp(dim=1)  # (k,)
    return others.mean() - math.log(k - 1)


def prototype_cross_entropy(
    embeddings: Tensor, prototypes: Tensor, targets: Tensor, temperature: float
) -> Tensor:
    """Cross-entropy of labelled utterances over all prototypes.

    Purpose: keep the known intents where their labels are.

    Inputs: embeddings (b, d) unit vectors of labelled utterances; prototypes (k, d) unit vectors,
    known intents first; targets (b,) true classes; temperature tau.

    Equation: (9), L_ce = -mean_i log p_i[y_i] with p_i = softmax_j(s_i . mu_j / tau).

    Reference: RoNID, Sec. 3.6. The paper does not say what p is; a separate linear head would
    never see a novel intent, so it is the prototype softmax of Eq. 6.

    Relations: `intra_cluster_loss` with true labels; no gradient to the prototypes either.

    Returns:
        The loss, a scalar; 0 for an empty batch.
    """
    return intra_cluster_loss(embeddings, prototypes, targets, temperature)
