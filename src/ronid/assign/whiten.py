"""Spaces in which no direction counts for more than it should when likeness is measured."""

import torch
from torch import Tensor
from torch.nn.functional import normalize

from ronid.assign.kmeans import class_means

# Components below this share of the largest variance are rounding; whitening would blow them up.
LEAST_VARIANCE = 1e-10


@torch.no_grad()
def whitened(points: Tensor, dims: int) -> Tensor:
    """Leading principal components, each scaled to variance 1, as unit vectors.

    Args:
        points: (n, d).
        dims: Components that are kept at most; fewer where the points span fewer.

    Returns:
        (n, m) unit vectors, m <= dims, largest variance first; zeros where a point is the mean.

    Raises:
        ValueError: `dims` is less than 1, or a point is not finite.
    """
    if dims < 1:
        raise ValueError(f"dims is {dims}; keep at least 1 component")
    if not points.isfinite().all():
        raise ValueError("points hold NaN or infinity; look for empty texts or zero vectors")
    exact = points.double()
    exact = exact - exact.mean(dim=0)
    covariance = exact.T @ exact / max(1, len(exact))  # (d, d)
    variances, axes = (part.flip(-1) for part in torch.linalg.eigh(covariance))
    spanned = int((variances > LEAST_VARIANCE * variances[0]).sum())
    kept = slice(0, max(1, min(dims, spanned)))
    scale = variances[kept].clamp(min=torch.finfo(variances.dtype).tiny).rsqrt()
    return normalize(exact @ axes[:, kept] * scale, dim=1).to(points.dtype)


@torch.no_grad()
def within_whitened(
    points: Tensor, targets: Tensor, shrinkage: float = 1.0, power: float = 0.5
) -> Tensor:
    """Unit vectors in which what differs among utterances of one known intent counts for less.

    How people ask, politely or in a hurry, varies within every intent; what they ask about does
    not. The labelled rows show which directions are which, and new intents profit as well. The
    covariance within known intents is drawn towards an even one, the more the fewer labels there
    are for so many dimensions.

    Args:
        points: (n, d).
        targets: (n,) given classes, -1 where there is none.
        shrinkage: Weight of the even covariance where labels are plenty; above 0.
        power: The inverse of the covariance is raised to this power: 0.5 whitens, 0.25 halves the
            effect, 0 only centers.

    Returns:
        (n, d) unit vectors; those of the points themselves where labels show no difference.

    Raises:
        ValueError: `shrinkage` is not above 0.
    """
    if shrinkage <= 0:
        raise ValueError(f"shrinkage is {shrinkage}; it must be above 0")
    given = targets >= 0
    if not given.any():
        return normalize(points, dim=1)
    exact, own = points.double(), targets[given]
    offsets = exact[given] - class_means(exact[given], own, int(own.max()) + 1)[own]
    freedom = len(offsets) - len(own.unique())
    covariance = offsets.T @ offsets / max(1, freedom)  # (d, d)
    even = covariance.diagonal().mean()
    if not even > 0:
        return normalize(points, dim=1)
    dims = points.shape[1]
    covariance.diagonal().add_(shrinkage * (1 + dims / freedom) * even)
    variances, axes = torch.linalg.eigh(covariance)
    whiten = (axes * variances.pow(-power)) @ axes.T
    return normalize((exact - exact.mean(dim=0)) @ whiten, dim=1).to(points.dtype)
