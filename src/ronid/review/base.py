"""What a review starts from: the discovery of a run, read once and never changed."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ronid.run import RunFolder, open_finished
from ronid.types import FloatArray, Intent
from ronid.vectors import read_vectors


@dataclass(frozen=True, eq=False)
class Base:
    """A finished run as a review sees it.

    Args:
        run: Fingerprint of the run, the same for all its versions and copies.
        title: What the utterances came from.
        texts: n utterances.
        ids: n identifiers of the source.
        given: (n,) whether the user had labelled the utterance.
        labels: (n,) index of the intent found.
        confidence: (n,) its probability.
        places: (n, 2) where it lies on the map.
        intents: The k intents found.
        unit: (n, d) features of length one, or None where the run keeps none.
    """

    run: str
    title: str
    texts: list[str]
    ids: list[str]
    given: NDArray[np.bool_]
    labels: NDArray[np.int32]
    confidence: FloatArray
    places: FloatArray
    intents: tuple[Intent, ...]
    unit: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.texts)


def base_id(index: int) -> str:
    """Return the id of an intent that was discovered; updates of a run keep its index."""
    return f"i{index}"


def read_base(path: Path) -> Base:
    """Read the current version of a finished run.

    Raises:
        DataError: There is none.
    """
    run = open_finished(path)
    table = run.assignments()
    places = np.stack([table["x"].to_numpy(), table["y"].to_numpy()], axis=1)
    return Base(
        run=fingerprint(RunFolder(path)),
        title=str(run.facts()["source"]),
        texts=table["text"].to_pylist(),
        ids=table["id"].to_pylist(),
        given=np.array([label is not None for label in table["given"].to_pylist()], np.bool_),
        labels=table["index"].to_numpy().astype(np.int32),
        confidence=table["confidence"].to_numpy().astype(np.float32),
        places=places.astype(np.float32),
        intents=run.intents(),
        unit=_unit(read_vectors(run.path, len(table))),
    )


def _unit(vectors: FloatArray | None) -> FloatArray | None:
    """Bring vectors to length one, in place: there may be many."""
    if vectors is not None:
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return vectors


def fingerprint(run: RunFolder) -> str:
    """Return what tells a run from all others, in a database that many runs share."""
    facts = run.facts()
    told = [facts.get(name) for name in ("created", "source", "seed", "method")]
    report = facts.get("data_report", {})
    told += [report.get("rows_read"), report.get("rows_kept")]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:24]
