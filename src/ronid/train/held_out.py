"""What held-out utterances of known intents say of an encoder: when to stop, and nothing else."""

from ronid.assign.kmeans import kmeans
from ronid.encode.rows import Rows
from ronid.metrics import clustering_accuracy, score
from ronid.train.state import Training, dev_inputs_of, generator_of
from ronid.types import IntArray, Split

RESTARTS = 10


def held_out_rows(training: Training, split: Split) -> Rows | None:
    """Return the held-out rows, prepared, or None where there are none."""
    inputs = dev_inputs_of(split)
    return training.encoder.prepare(inputs) if len(inputs) else None


def clustered_accuracy(training: Training, split: Split, dev_rows: Rows | None) -> dict[str, float]:
    """Return `dev_accuracy`: how well k-means finds the known intents among the held-out rows.

    Empty where there are none, or fewer than known intents.
    """
    if dev_rows is None or len(dev_rows) < max(2, len(split.known)):
        return {}
    features = training.encoder.embed_all(dev_rows)
    generator = generator_of(features.device, training.seed, "held out")
    found = kmeans(features, len(split.known), n_init=RESTARTS, generator=generator)
    labels = found.labels.cpu().numpy()
    return {"dev_accuracy": clustering_accuracy(split.dev_targets, labels)}


def agreement(split: Split, labels: IntArray) -> dict[str, float]:
    """Return `dev_nmi`: agreement of predicted labels of the held-out rows with their intents."""
    return {"dev_nmi": score(split.dev_targets, labels, len(split.known)).nmi}
