"""What a judgement looks at: the utterances of a run, their vectors, and where they were put."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ronid.errors import DataError
from ronid.files import read_json
from ronid.model import IntentModel
from ronid.progress import Progress
from ronid.run import RunFolder
from ronid.types import UNLABELLED, FloatArray, IntArray

MOST_ROWS = 20_000
"""Utterances that are judged at most; beyond, a random sample of them is."""


@dataclass(frozen=True)
class Evidence:
    """A run as a judge sees it; nothing in it is truth.

    Args:
        texts: n utterances.
        embeddings: (n, d) vectors of the trained encoder.
        labels: (n,) intent of every utterance.
        targets: (n,) intent of every utterance that the user labelled, or UNLABELLED.
        prototypes: (k, d), known intents first.
        names: k names of the intents.
        known: Whether each of the k intents was labelled by the user.
        rows: Utterances of the run; more than n where a sample was drawn.
    """

    texts: Sequence[str]
    embeddings: FloatArray
    labels: IntArray
    targets: IntArray
    prototypes: FloatArray
    names: tuple[str, ...]
    known: tuple[bool, ...]
    rows: int

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def n_intents(self) -> int:
        """Number of intents, known and new."""
        return len(self.prototypes)

    @property
    def free(self) -> np.ndarray:
        """(n,) whether the user left the intent open."""
        return self.targets == UNLABELLED

    def members(self) -> list[IntArray]:
        """Return the rows of every intent."""
        order = np.argsort(self.labels, kind="stable")
        counts = np.bincount(self.labels, minlength=self.n_intents)
        return np.split(order, counts.cumsum()[:-1])

    def sampled(self, most: int, rng: np.random.Generator) -> "Evidence":
        """Return the same of at most `most` utterances, drawn at random."""
        if len(self) <= most:
            return self
        rows = np.sort(rng.choice(len(self), most, replace=False))
        return replace(
            self,
            texts=[self.texts[row] for row in rows],
            embeddings=self.embeddings[rows],
            labels=self.labels[rows],
            targets=self.targets[rows],
        )


def read_evidence(run: RunFolder, model: IntentModel, progress: Progress | None = None) -> Evidence:
    """Return what a finished run shows; its vectors are made anew.

    Args:
        run: A finished run.
        model: Its model.
        progress: Told about the embedding.

    Raises:
        DataError: The run was made of embeddings, which it does not keep.
    """
    if read_json(run.path / "model.json")["given_dim"] is not None:
        raise DataError(
            f"run '{run.path}' was made of embeddings, which it does not keep; "
            "give a file with true intents as INPUT to evaluate it"
        )
    table = run.assignments()
    texts = table["text"].to_pylist()
    labels = table["index"].to_numpy().astype(np.int64)
    return Evidence(
        texts=texts,
        embeddings=model.transform(texts, progress),
        labels=labels,
        # A label stands over what was found; its intent may have been renamed or merged since.
        targets=np.where(run.labelled(), labels, UNLABELLED),
        prototypes=model.prototypes,
        names=tuple(intent.name for intent in model.intents),
        known=tuple(intent.known for intent in model.intents),
        rows=len(texts),
    )
