"""The E-step: which utterance belongs to which intent. Pure functions of torch tensors."""

from ronid.assign.align import match, order_by_known
from ronid.assign.kmeans import KMeansResult, class_means, kmeans, nearest_centroid
from ronid.assign.prior import uniform_prior, unlabelled_marginal, update_prior
from ronid.assign.semisup_kmeans import semisup_kmeans
from ronid.assign.sinkhorn import Blocks, Plan, cosine_blocks, sinkhorn

__all__ = [
    "Blocks",
    "KMeansResult",
    "Plan",
    "class_means",
    "cosine_blocks",
    "kmeans",
    "match",
    "nearest_centroid",
    "order_by_known",
    "semisup_kmeans",
    "sinkhorn",
    "uniform_prior",
    "unlabelled_marginal",
    "update_prior",
]
