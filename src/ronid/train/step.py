"""One optimiser step; on a GPU each shape of batch is recorded once and replayed.

A step of a small encoder is hundreds of kernels of a few microseconds each; launching them one by
one from Python takes several times longer than running them. A CUDA graph launches them at once.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

import torch
from torch import Tensor

from ronid.encode.rows import Pick, Rows
from ronid.types import IntArray

log = logging.getLogger("ronid.train")

Picks = tuple[Pick, ...]
Step = Callable[[Picks], Mapping[str, Tensor]]
Shape = tuple[tuple[int, ...], ...]


class Stepper:
    """Runs steps and sums their losses on the device.

    Args:
        step: Turns picked rows into named losses.
        optimiser: Moves the weights.
        clip_norm: Longest gradient.
        rows: Rows that batches are picked from.
        device: Where training happens.
    """

    def __init__(
        self,
        step: Step,
        optimiser: torch.optim.Optimizer,
        clip_norm: float,
        rows: Rows,
        device: torch.device,
    ) -> None:
        self.optimiser = optimiser
        self._step = step
        self._clip_norm = clip_norm
        self._rows = rows
        self._device = device
        self._weights = [p for group in optimiser.param_groups for p in group["params"]]
        self._records = device.type == "cuda" and rows.on_device
        self._pool = torch.cuda.graph_pool_handle() if self._records else None
        self._graphs: dict[Shape, tuple[Picks, torch.cuda.CUDAGraph] | None] = {}
        self._sums: dict[str, tuple[Tensor, Tensor]] = {}

    def __call__(self, batch: tuple[IntArray, ...]) -> None:
        """Make one step with groups of row numbers."""
        picks = tuple(self._rows.pick(group, self._device) for group in batch)
        if not self._records:
            self._run(picks)
            return
        shape = tuple(pick.shape for pick in picks)
        if shape not in self._graphs:
            # The first batch of a shape runs plainly: libraries choose their kernels in it.
            self._graphs[shape] = None
            self._run(picks)
            return
        recorded = self._graphs[shape] or self._record(shape, picks)
        if recorded is None:
            self._run(picks)
            return
        inputs, graph = recorded
        for kept, new in zip(inputs, picks, strict=True):
            kept.index.copy_(new.index)
        graph.replay()

    def means(self) -> dict[str, float]:
        """Return the mean of every loss since the last call."""
        # Read once per epoch: reading every loss would stall a GPU.
        means = {}
        for name, (total, count) in self._sums.items():
            means[name] = float(total) / max(1.0, float(count))
            total.zero_()
            count.zero_()
        return means

    def _run(self, picks: Picks) -> None:
        """Losses, gradients, optimiser."""
        losses = self._step(picks)
        self.optimiser.zero_grad(set_to_none=True)
        losses["loss"].backward()
        torch.nn.utils.clip_grad_norm_(self._weights, self._clip_norm)
        self.optimiser.step()
        for name, loss in losses.items():
            if name not in self._sums:
                zeros = torch.zeros(2, device=self._device)
                self._sums[name] = (zeros[0], zeros[1])
            total, count = self._sums[name]  # a stage may have steps of several kinds
            total += loss.detach()
            count += 1

    def _record(self, shape: Shape, picks: Picks) -> tuple[Picks, torch.cuda.CUDAGraph] | None:
        """Record the step of `picks` without running it."""
        inputs = tuple(replace(pick, index=pick.index.clone()) for pick in picks)
        graph = torch.cuda.CUDAGraph()
        self.optimiser.zero_grad(set_to_none=True)
        try:
            # By hand, not by torch.cuda.graph: that collects garbage at every recording.
            graph.capture_begin(pool=self._pool, capture_error_mode="thread_local")
            try:
                self._run(inputs)
            finally:
                graph.capture_end()
        except RuntimeError as error:
            log.warning(
                "this encoder's steps cannot be recorded, so they run one by one: %s", error
            )
            self._records = False
            self._forget_recording()
            return None
        self._graphs[shape] = (inputs, graph)
        return self._graphs[shape]

    def _forget_recording(self) -> None:
        """Free the generator of random numbers, which a failed recording leaves in its grip."""
        place = torch.cuda.current_device() if self._device.index is None else self._device.index
        generator = torch.cuda.default_generators[place]
        generator.graphsafe_set_state(generator.clone_state())


@contextmanager
def own_stream(device: torch.device) -> Iterator[None]:
    """Run on a stream of its own, which recording needs; nothing on CPU."""
    if device.type != "cuda":
        yield
        return
    torch.cuda.synchronize(device)
    try:
        with torch.cuda.stream(torch.cuda.Stream(device)):
            yield
    finally:
        torch.cuda.synchronize(device)
