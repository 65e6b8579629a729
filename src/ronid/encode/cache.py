"""Output of frozen layers, computed once per content: in memory, or as files in a folder."""

import copy
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor


def content_key(parts: Iterable[str | bytes]) -> str:
    """Return a key that changes with any of the parts or their order."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()[:32]


class FrozenCache:
    """Tensors by content key.

    Args:
        folder: Where to keep them as memory-mapped files, or None for memory only.
        memory_bytes: In memory, the oldest are let go beyond this size.
        keep_weights: Also keep pretrained weights in memory, for many fits in one process.
    """

    def __init__(
        self,
        folder: Path | None = None,
        memory_bytes: int = 4 << 30,
        *,
        keep_weights: bool = False,
    ) -> None:
        self.folder = folder
        self.memory_bytes = memory_bytes
        self.hits = 0
        self._memory: dict[str, Tensor] = {}
        self._keep_weights = keep_weights
        self._pretrained: dict[str, Any] = {}

    def pretrained(self, name: str, load: Callable[[str], Any]) -> Any:
        """Return what `load` says of an encoder, a copy of its own for every caller."""
        if not self._keep_weights:
            return load(name)
        if name not in self._pretrained:
            self._pretrained[name] = load(name)
        return copy.deepcopy(self._pretrained[name])

    def get(
        self,
        key: str,
        shape: Sequence[int],
        dtype: torch.dtype,
        compute: Callable[[Tensor], None],
        device: torch.device,
    ) -> Tensor:
        """Return the tensor of `key`, letting `compute` fill it when it is not there yet.

        Args:
            key: Content key.
            shape: Shape of the tensor.
            dtype: Its dtype.
            compute: Fills the empty tensor it is given.
            device: Where the tensor is wanted; a file always stays on the host.
        """
        if key in self._memory:
            self.hits += 1
            return self._memory[key]
        if self.folder is None:
            tensor = torch.empty(*shape, dtype=dtype, device=device)
            compute(tensor)
        else:
            tensor = self._file(key, shape, dtype, compute)
        self._remember(key, tensor)
        return tensor

    def _file(
        self,
        key: str,
        shape: Sequence[int],
        dtype: torch.dtype,
        compute: Callable[[Tensor], None],
    ) -> Tensor:
        """Map the file of `key`, after computing it under another name and renaming it."""
        assert self.folder is not None
        self.folder.mkdir(parents=True, exist_ok=True)
        path, about = self.folder / f"{key}.bin", self.folder / f"{key}.json"
        description = json.dumps({"format_version": 1, "shape": list(shape), "dtype": str(dtype)})
        size = torch.Size(shape).numel()
        whole = path.exists() and path.stat().st_size == size * dtype.itemsize
        if whole and about.exists() and about.read_text() == description:
            self.hits += 1
            return torch.from_file(str(path), shared=True, size=size, dtype=dtype).view(*shape)
        partial = path.with_suffix(f".{os.getpid()}.partial")
        try:
            tensor = torch.from_file(str(partial), shared=True, size=size, dtype=dtype)
            compute(tensor.view(*shape))
            about.write_text(description)
            # The map stays valid through the rename: both names mean the same file.
            partial.replace(path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
        return tensor.view(*shape)

    def _remember(self, key: str, tensor: Tensor) -> None:
        """Keep `tensor`, forgetting the oldest ones over the memory bound."""
        self._memory[key] = tensor
        while len(self._memory) > 1 and self._bytes() > self.memory_bytes:
            self._memory.pop(next(iter(self._memory)))

    def _bytes(self) -> int:
        """Size of all tensors kept."""
        return sum(t.numel() * t.element_size() for t in self._memory.values())
