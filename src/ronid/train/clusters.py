"""k-means over the rows of a fit, known intents first: where centres and prototypes begin."""

from torch import Tensor

from ronid.assign.kmeans import KMeansResult
from ronid.assign.start import ordered_kmeans
from ronid.train.state import Training, generator_of
from ronid.types import Split


def cluster_rows(  # noqa: PLR0913 - what is clustered, how, and where the draws come from
    training: Training,
    split: Split,
    points: Tensor,
    *place: str | int,
    n_init: int,
    init: Tensor | None = None,
) -> KMeansResult:
    """Cluster the rows of `split`; the clusters that hold its known intents are the first.

    Args:
        training: The fit, whose seed the draws derive from.
        split: The problem.
        points: (n, d) features of all rows.
        place: Where in the fit this is, so that draws differ from those of other places.
        n_init: Restarts.
        init: (k, d) centres to start from instead, in any order.
    """
    generator = generator_of(points.device, training.seed, *place)
    return ordered_kmeans(points, split, generator=generator, n_init=n_init, init=init)
