"""What a review starts from: the discovery of a run, read once and never changed."""

import hashlib
import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ronid.review.arrivals import Arrival, arrivals_of
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
        present: Ids of the intents that the model has now, in its order; training on changes that.
        arrivals: Updates that brought utterances, oldest first.
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
    present: tuple[str, ...] = ()
    arrivals: tuple[Arrival, ...] = ()

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
    labels, intents, present = found_first(run, table)
    first, facts = RunFolder(path), run.facts()
    places = np.stack([table["x"].to_numpy(), table["y"].to_numpy()], axis=1)
    return Base(
        run=fingerprint(first),
        title=str(facts["source"]),
        texts=table["text"].to_pylist(),
        ids=table["id"].to_pylist(),
        given=np.array([label is not None for label in table["given"].to_pylist()], np.bool_),
        labels=labels,
        confidence=table["confidence"].to_numpy().astype(np.float32),
        places=places.astype(np.float32),
        intents=intents,
        unit=_unit(read_vectors(run.path, len(table))),
        present=present,
        arrivals=arrivals_of(facts.get("updates", ()), len(first.intents())),
    )


def _unit(vectors: FloatArray | None) -> FloatArray | None:
    """Bring vectors to length one, in place: there may be many."""
    if vectors is not None:
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return vectors


def found_first(
    run: RunFolder, table: pa.Table
) -> tuple[NDArray[np.int32], tuple[Intent, ...], tuple[str, ...]]:
    """Return what was discovered, before any training on from decisions changed it.

    Decisions are folded from there, so it must not change with what they teach. A version that was
    trained on keeps it: the column `start`, and `review` among its facts.

    Args:
        run: The current version.
        table: Its utterances.

    Returns:
        (n,) index of the intent of every utterance, the intents, and the ids of those that the
        model has now.
    """
    index, now = table["index"].to_numpy(), run.intents()
    kept = run.facts().get("review")
    if kept is None:
        return index.astype(np.int32), now, tuple(base_id(i.index) for i in now)
    ids: list[str] = kept["ids"]
    n = len(kept["intents"])  # what an update brought since is numbered behind them
    slots = np.array([*kept["roots"], *(n + j for j in range(len(now) - len(ids)))], np.int64)
    start = table["start"].fill_null(-1).to_numpy()
    present = (*ids, *(base_id(n + j) for j in range(len(now) - len(ids))))
    shown = dict(zip(present, now, strict=True))
    first = []
    for slot, row in enumerate(kept["intents"]):
        empty = Intent(slot, "", False, 0, 0.0, 0.0, 0.0)
        first.append(replace(shown.get(base_id(slot), empty), **row, index=slot))
    came = [replace(i, index=n + j) for j, i in enumerate(now[len(ids) :])]
    labels = np.where(start >= 0, start, slots[index]).astype(np.int32)
    return labels, (*first, *came), present


def fingerprint(run: RunFolder) -> str:
    """Return what tells a run from all others, in a database that many runs share."""
    facts = run.facts()
    told = [facts.get(name) for name in ("created", "source", "seed", "method")]
    report = facts.get("data_report", {})
    told += [report.get("rows_read"), report.get("rows_kept")]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:24]
