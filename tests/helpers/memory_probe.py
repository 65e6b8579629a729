"""How much memory a piece of work takes at once, tensor by tensor."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class LargestTensor(TorchDispatchMode):
    """While it is entered, remembers the largest tensor that any operation returned on the host.

    What counts is memory: a view is as large as what it looks at, and of a sparse tensor nothing,
    as its parts were tensors before.
    """

    def __init__(self) -> None:
        super().__init__()
        self.elements = 0
        self.made_by = ""

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Run the operation and look at what it returns."""
        made = func(*args, **(kwargs or {}))
        for one in tree_leaves(made):
            if isinstance(one, Tensor) and one.is_cpu and one.layout is torch.strided:
                elements = one.untyped_storage().nbytes() // one.element_size()
                if elements > self.elements:
                    self.elements, self.made_by = elements, str(func)
        return made


def memory(what: str) -> int:
    """Return a figure of this process in bytes: `VmRSS` is its memory, `VmHWM` the most of it.

    Not by `getrusage`: there a process begins with the peak of the one that started it.
    """
    with open("/proc/self/status", encoding="utf-8") as lines:
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(what))
