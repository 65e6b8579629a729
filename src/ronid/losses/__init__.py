"""The M-step: what a batch is trained towards. Pure functions of torch tensors."""

from ronid.losses.contrastive import neighbour_mask, supervised_contrastive_loss
from ronid.losses.language_model import language_model_loss, mask_tokens, replace_tokens
from ronid.losses.prototype import (
    inter_cluster_loss,
    intra_cluster_loss,
    prototype_cross_entropy,
    update_prototypes,
)

__all__ = [
    "inter_cluster_loss",
    "intra_cluster_loss",
    "language_model_loss",
    "mask_tokens",
    "neighbour_mask",
    "prototype_cross_entropy",
    "replace_tokens",
    "supervised_contrastive_loss",
    "update_prototypes",
]
