"""One file that holds a fit in progress; it is replaced as a whole, so a kill never spoils it."""

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from ronid.errors import RonidError

FORMAT_VERSION = 1


@dataclass(frozen=True)
class Saved:
    """What a checkpoint holds: tensors by name, and everything else as plain values."""

    tensors: dict[str, Tensor]
    values: dict[str, Any]


class Keeper(Protocol):
    """A place where a fit leaves its state and finds it again."""

    @property
    def due(self) -> bool:
        """Whether a stage in progress should be kept now."""

    def save(self, tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> None:
        """Keep this state."""

    def load(self) -> Saved | None:
        """Return a state to go on from, or None."""


class Checkpoint:
    """A file that a fit writes as it goes.

    Args:
        path: Where.
        every_s: Least seconds between two ordinary writes, so that short epochs are not slowed.
    """

    def __init__(self, path: Path, every_s: float = 20.0) -> None:
        self.path = path
        self.every_s = every_s
        self._written_at = time.monotonic()

    @property
    def due(self) -> bool:
        """Whether it is time for an ordinary write."""
        return time.monotonic() - self._written_at >= self.every_s

    def save(self, tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> None:
        """Write, then rename over the old file."""
        # Every tensor gets memory of its own: safetensors refuses shared storage.
        own = {name: t.detach().cpu().clone().contiguous() for name, t in tensors.items()}
        own["format_version"] = torch.tensor([FORMAT_VERSION])
        self.path.parent.mkdir(parents=True, exist_ok=True)
        partial = self.path.with_suffix(".partial")
        save_file(own, str(partial), metadata={"values": json.dumps(dict(values))})
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        partial.replace(self.path)
        self._written_at = time.monotonic()

    def load(self) -> Saved | None:
        """Return what was saved last, or None.

        Raises:
            RonidError: The file is of another format or damaged.
        """
        if not self.path.exists():
            return None
        try:
            with safe_open(str(self.path), framework="pt") as file:
                values = json.loads(file.metadata()["values"])
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
        except Exception as error:
            raise RonidError(
                f"checkpoint '{self.path}' cannot be read ({error}); delete it to start over"
            ) from None
        version = int(tensors.pop("format_version", torch.tensor([0]))[0])
        if version != FORMAT_VERSION:
            raise RonidError(f"checkpoint '{self.path}' has format {version}; delete it")
        return Saved(tensors, values)
