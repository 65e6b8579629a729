"""Early stages that cells of one process have in common are trained once.

Most ablations change the EM loop only; what was trained before it is then the same to the last bit,
because everything random is seeded by run, stage and epoch. Such a cell goes on from a snapshot of
another one, exactly as an interrupted fit goes on from its checkpoint.
"""

import copy
import json
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ronid.bench.plan import BenchCell, Plan
from ronid.config import to_dict
from ronid.progress import Stopwatch

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from ronid.train.checkpoint import Saved

NEWEST = 2
"""How many snapshots are kept."""

READS: dict[str, dict[str, tuple[str, ...]]] = {
    "ronid": {
        "pretrain": ("encoder", "optimiser", "pretrain"),
        "contrast": ("encoder", "optimiser", "pretrain", "contrast"),
    },
    **dict.fromkeys(
        ("sae_kmeans", "dec", "dcn"), {"reconstruct": ("encoder", "optimiser", "reconstruct")}
    ),
}
"""Stages in order, by method, and all sections read until each is over; others never share."""

ALIKE = {"dec": "sae_kmeans", "dcn": "sae_kmeans"}
"""Methods whose shared stages are those of another, to the last bit."""

_OWN_ROWS = ("pretrain",)
"""Stages that prepare rows for themselves, which a cell that goes on after them leaves out."""

Key = tuple[str, str, str]


@dataclass(frozen=True)
class Snapshot:
    """A fit at the end of a stage, and what it cost to come there.

    Args:
        tensors: Trained weights, with memory of their own.
        values: History and finished stages.
        wall_s: Seconds that a cell saves by going on from here.
        seconds: The same by stage, as far as a stage was named.
    """

    tensors: "Mapping[str, Tensor]"
    values: Mapping[str, Any]
    wall_s: float
    seconds: Mapping[str, float]


class SharedStages:
    """The newest snapshots of one process, in the memory of the device that trains.

    Args:
        plan: The benchmark config; what only one of its cells could use is not kept.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._uses = Counter(key for cell in plan.cells for key in _stage_keys(plan, cell).values())
        self._snapshots: dict[Key, Snapshot] = {}

    def of(
        self, cell: BenchCell, split_hash: str, device: "torch.device", watch: Stopwatch
    ) -> "CellStages":
        """Return what stands for the checkpoint of a cell; its clock starts now.

        Args:
            cell: The cell that is about to be fitted.
            split_hash: Hash of its split.
            device: Where it is trained.
            watch: Its stopwatch, which gets the seconds of stages taken over.
        """
        keys = {
            stage: (split_hash, str(device), key)
            for stage, key in _stage_keys(self._plan, cell).items()
            if self._uses[key] > 1
        }
        return CellStages(self, keys, watch)

    def get(self, key: Key) -> Snapshot | None:
        """Return the snapshot of `key`, or None."""
        return self._snapshots.get(key)

    def put(self, key: Key, snapshot: Snapshot) -> None:
        """Keep a snapshot and let go of the oldest beyond `NEWEST`."""
        self._snapshots.pop(key, None)
        self._snapshots[key] = snapshot
        while len(self._snapshots) > NEWEST:
            del self._snapshots[next(iter(self._snapshots))]


class CellStages:
    """The place where the fit of one cell looks for finished stages and leaves its own.

    Args:
        shared: Snapshots of all cells.
        keys: Under which key each stage may be shared, in the order of the stages.
        watch: The cell's stopwatch.
    """

    due = False  # a stage in progress is never kept

    def __init__(self, shared: SharedStages, keys: Mapping[str, Key], watch: Stopwatch) -> None:
        self.shared_s = 0.0
        self._shared = shared
        self._keys = dict(keys)
        self._watch = watch
        self._wall_s = 0.0
        self._seconds: dict[str, float] = {}
        self._mark()

    def load(self) -> "Saved | None":
        """Return the snapshot with most finished stages that fits, or None.

        Its seconds are the cell's from then on: in `shared_s` and in the stopwatch.
        """
        from ronid.train.checkpoint import Saved

        for key in reversed(self._keys.values()):
            found = self._shared.get(key)
            if found is None:
                continue
            self.shared_s = self._wall_s = found.wall_s
            self._seconds = dict(found.seconds)
            for stage, spent in found.seconds.items():
                self._watch.seconds[stage] = self._watch.seconds.get(stage, 0.0) + spent
            self._mark()
            return Saved(dict(found.tensors), copy.deepcopy(dict(found.values)))
        return None

    def save(self, tensors: "Mapping[str, Tensor]", values: Mapping[str, Any]) -> None:
        """Keep a fit whose last stage has just ended, where another cell may go on from it."""
        finished: list[str] = values["finished"]
        self._count(finished[-1])
        if all(stage in self._keys for stage in finished):
            own = {name: tensor.detach().clone() for name, tensor in tensors.items()}
            kept = copy.deepcopy(dict(values))
            snapshot = Snapshot(own, kept, self._wall_s, dict(self._seconds))
            self._shared.put(self._keys[finished[-1]], snapshot)
        self._mark()

    def _count(self, stage: str) -> None:
        """Add what `stage` cost since the last mark.

        A cell that goes on builds its encoder and prepares the rows of the later stages itself, and
        pays for that on its own clock. So the clock of a snapshot starts after the encoder is
        built, and encoding counts only where it was done for a finished stage alone: nothing is
        counted twice but the copying of weights, which takes milliseconds.
        """
        spent = time.perf_counter() - self._since
        encoding = self._watch.seconds.get("encode", 0.0) - self._encoded
        if stage in _OWN_ROWS:
            self._seconds["encode"] = self._seconds.get("encode", 0.0) + encoding
        else:
            spent -= encoding
        self._wall_s += spent
        self._seconds[stage] = self._watch.seconds.get(stage, 0.0)

    def _mark(self) -> None:
        """Start counting anew."""
        self._since = time.perf_counter()
        self._encoded = self._watch.seconds.get("encode", 0.0)


def first_stage(plan: Plan, cell: BenchCell) -> str:
    """Return what is the same for cells that may share stages, and "" where none is ever shared.

    A later stage reads all that those before it read, so the first one tells.
    """
    return next(iter(_stage_keys(plan, cell).values()), "")


def _stage_keys(plan: Plan, cell: BenchCell) -> dict[str, str]:
    """Return, for each stage that may be shared, all that its outcome depends on but the data."""
    config = to_dict(plan.config(cell))
    # Variant and preset are names of settings, which count themselves; scoring comes afterwards.
    method = ALIKE.get(cell.method, cell.method)
    same = replace(cell, variant="", preset="", scored_on="", method=method)
    known = (*same.coordinates, plan.encoder_path(cell.encoder))
    return {
        stage: json.dumps([known, {name: config[name] for name in sections}], sort_keys=True)
        for stage, sections in READS.get(cell.method, {}).items()
    }
