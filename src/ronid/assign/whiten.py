"""Principal components of equal variance: the space in which DeepCluster looks for clusters."""

import torch
from torch import Tensor
from torch.nn.functional import normalize

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
