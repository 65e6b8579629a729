"""Learning from clusters that are found anew every epoch: DeepCluster and what came of it."""

from torch import Tensor
from torch.nn import functional

from ronid.assign.aligned import aligned_kmeans
from ronid.encode.rows import Pick, Rows
from ronid.metrics import clustering_accuracy
from ronid.train.state import StageState, Training, generator_of


def recluster(  # noqa: PLR0913 - what is clustered, how, and where the outcome goes
    training: Training,
    state: StageState,
    points: Tensor,
    k: int,
    epoch: int,
    *,
    align: bool = True,
    n_init: int = 10,
    max_iterations: int = 300,
) -> dict[str, float]:
    """Cluster all rows by k-means from a fresh start, and put `labels` and `centroids`.

    Args:
        training: The fit.
        state: Gets the clustering; the one that it holds is the one before.
        points: (n, d) features of all training rows.
        k: Number of clusters.
        epoch: Part of the seed.
        align: Whether clusters keep their numbers, by the centroids they continue.
        n_init: Restarts.
        max_iterations: Lloyd iterations per restart.

    Returns:
        `changed`, the share of rows in another cluster than before; nothing the first time.
        Without alignment clusters count as the same by the rows they share.
    """
    generator = generator_of(points.device, training.seed, "clusters", epoch)
    before = state.tensors.get("labels")
    found = aligned_kmeans(
        points,
        k,
        state.tensors.get("centroids") if align else None,
        generator=generator,
        n_init=n_init,
        max_iterations=max_iterations,
    )
    if before is not None and not align:  # then numbers mean nothing from one epoch to the next
        same = clustering_accuracy(before.cpu().numpy(), found.labels.cpu().numpy())
    row = state.put_labels(found.labels)
    state.put("centroids", found.centroids)
    return {"changed": 1 - same / 100} if before is not None and not align else row


def cluster_loss(state: StageState, rows: Rows, pick: Pick) -> Tensor:
    """Return the cross-entropy of `labels` through the head `classes`, for the rows of `pick`."""
    logits: Tensor = state.heads["classes"](state.encoder(rows, pick))
    return functional.cross_entropy(logits.float(), state.tensors["labels"][pick.index])
