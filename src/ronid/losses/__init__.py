"""The M-step: what a batch is trained towards. Pure functions of torch tensors."""

from ronid.losses.contrastive import neighbour_mask, supervised_contrastive_loss
from ronid.losses.known import known_cross_entropy
from ronid.losses.language_model import language_model_loss, mask_tokens, replace_tokens
from ronid.losses.pairwise import (
    adaptive_pair_loss,
    given_pair_loss,
    pair_divergence_loss,
    pair_similarities,
)
from ronid.losses.prototype import (
    inter_cluster_loss,
    intra_cluster_loss,
    prototype_cross_entropy,
    update_prototypes,
)
from ronid.losses.student_t import self_training_loss, sharpened, student_t

__all__ = [
    "adaptive_pair_loss",
    "given_pair_loss",
    "inter_cluster_loss",
    "intra_cluster_loss",
    "known_cross_entropy",
    "language_model_loss",
    "mask_tokens",
    "neighbour_mask",
    "pair_divergence_loss",
    "pair_similarities",
    "prototype_cross_entropy",
    "replace_tokens",
    "self_training_loss",
    "sharpened",
    "student_t",
    "supervised_contrastive_loss",
    "update_prototypes",
]
