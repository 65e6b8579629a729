"""Utterances made ready for an encoder: what the frozen part of it says about each, kept once."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from ronid.encode.packed import Layout
from ronid.types import IntArray

BOX_ROWS = 16
"""Batches of fewer than four times so many rows are not cut into boxes."""


@dataclass(frozen=True)
class Pick:
    """Rows chosen for a batch, with everything the host must know to run it.

    Sizes are plain numbers, rounded up on a GPU: it is never asked, and meets few shapes.

    Args:
        index: (b,) rows, on the device.
        tokens: Tokens of all rows together, or a little more.
        boxes: Rows and width of each box of rows of like length, shortest first; a width is that
            of the box's longest row, or a little more.
    """

    index: Tensor
    tokens: int
    boxes: tuple[tuple[int, int], ...]

    def __len__(self) -> int:
        return len(self.index)

    @property
    def width(self) -> int:
        """Tokens of the longest row, or a little more."""
        return self.boxes[-1][1]

    @property
    def shape(self) -> tuple[Any, ...]:
        """Batches of the same shape run the same kernels."""
        return len(self.index), self.tokens, self.boxes


@dataclass(frozen=True)
class TokenBatch:
    """A padded batch.

    Args:
        ids: (b, l) token ids.
        mask: (b, l) 1 for tokens, 0 for padding.
        hidden: (b, l, h) output of the frozen layers, or None where no layer is frozen.
    """

    ids: Tensor
    mask: Tensor
    hidden: Tensor | None

    @property
    def outside(self) -> Tensor:
        """(b, l) true where there is no token."""
        return self.mask == 0

    @property
    def row(self) -> Tensor:
        """(b, l) the row of each place."""
        return torch.arange(len(self.ids), device=self.ids.device)[:, None].expand_as(self.ids)

    def with_ids(self, ids: Tensor) -> "TokenBatch":
        """Other tokens in the same places, of which frozen layers have said nothing."""
        return replace(self, ids=ids, hidden=None)

    def without(self, gone: Tensor) -> "TokenBatch":
        """Let the tokens `gone`, (b, l), fall out: those behind them move up."""
        order = (gone | self.outside).to(torch.int8).argsort(dim=1, stable=True)
        mask = (~gone).to(self.mask) * self.mask
        return TokenBatch(self.ids.gather(1, order), mask.gather(1, order), None)


@dataclass(frozen=True)
class PackedBatch:
    """A batch without padding.

    Args:
        ids: (t,) token ids.
        layout: Which token belongs where.
        hidden: (t, h) output of the frozen layers, or None where no layer is frozen.
    """

    ids: Tensor
    layout: Layout
    hidden: Tensor | None

    @property
    def outside(self) -> Tensor:
        """(t,) true in the filling."""
        return ~self.layout.valid

    @property
    def row(self) -> Tensor:
        """(t,) the row of each token."""
        return self.layout.row

    def with_ids(self, ids: Tensor) -> "PackedBatch":
        """Other tokens in the same places, of which frozen layers have said nothing."""
        return replace(self, ids=ids, hidden=None)

    def without(self, gone: Tensor) -> "PackedBatch":
        """Let the tokens `gone`, (t,), fall out: those behind them move up."""
        kept = self.layout.valid & ~gone
        before = torch.cat([kept.new_zeros(1, dtype=torch.long), kept.cumsum(0)])
        lengths = before[self.layout.bounds.long()].diff()  # no row outgrows its box
        layout = Layout.of(lengths, self.layout.order, len(self.ids), self.layout.boxes)
        # What fell out is filling now.
        order = (~kept).to(torch.int8).argsort(stable=True)
        return PackedBatch(self.ids[order], layout, None)


B = TypeVar("B", TokenBatch, PackedBatch)


@dataclass(frozen=True)
class TokenRows:
    """Token sequences laid end to end, without padding.

    Args:
        ids: (t,) token ids of all utterances.
        starts: (n + 1,) where each utterance begins in `ids`.
        pad_id: Token id that fills padding.
        hidden: (t, h) output of the frozen layers at every token, or None.
    """

    ids: Tensor
    starts: IntArray
    pad_id: int
    hidden: Tensor | None = None

    def __len__(self) -> int:
        return len(self.starts) - 1

    @cached_property
    def lengths(self) -> IntArray:
        """(n,) tokens per utterance."""
        return np.diff(self.starts)

    @cached_property
    def _bounds(self) -> Tensor:
        """(n + 1,) `starts` where the tokens are."""
        return torch.from_numpy(self.starts).to(self.ids.device)

    @cached_property
    def _lengths(self) -> Tensor:
        """(n,) `lengths` where the tokens are."""
        return self._bounds.diff()

    def pick(self, index: IntArray, device: torch.device) -> Pick:
        """Choose the rows `index` for a batch."""
        lengths = np.sort(self.lengths[index])
        tokens = int(lengths.sum())
        short = 3 * len(index) // 4 if len(index) >= 4 * BOX_ROWS else 0
        cuts = [0, short, len(index)] if short else [0, len(index)]
        boxes = [(b - a, int(lengths[a:b].max(initial=1))) for a, b in itertools.pairwise(cuts)]
        if device.type == "cuda":  # few shapes, each of which is recorded once
            tokens = _up(tokens, 1_024)
            boxes = [(rows, _up(width, 8 if width <= 16 else 16)) for rows, width in boxes]  # noqa: PLR2004
        return Pick(_sent(index, device), tokens, tuple(boxes))

    def pack(self, pick: Pick) -> PackedBatch:
        """Return the picked utterances end to end, and behind them filling up to `pick.tokens`."""
        device = self.ids.device
        starts, lengths = self._bounds[pick.index], self._lengths[pick.index]  # (b,)
        # Sorted here, not by the host: the order must follow the rows when a GPU repeats a step.
        lengths, order = lengths.sort(stable=True)
        layout = Layout.of(lengths, order, pick.tokens, pick.boxes)
        where = starts[order][layout.row] + layout.column
        ids = torch.where(layout.valid, self.ids[where].long(), self.pad_id)
        hidden = None
        if self.hidden is not None:
            hidden = self.hidden[where.to(self.hidden.device)].to(device)
        return PackedBatch(ids, layout, hidden)

    def batch(
        self, index: IntArray | Tensor, device: torch.device, width: int | None = None
    ) -> TokenBatch:
        """Return the utterances `index`, padded to `width` or to the longest of them."""
        if isinstance(index, np.ndarray):
            width = width or int(self.lengths[index].max())
            index = torch.from_numpy(index)
        assert width is not None
        index = index.to(self.ids.device)
        starts = self._bounds[index][:, None]
        columns = torch.arange(width, device=self.ids.device)
        mask = columns < self._bounds[index + 1][:, None] - starts  # (b, l)
        where = torch.where(mask, starts + columns, 0)
        ids = torch.where(mask, self.ids[where].long(), self.pad_id).to(device)
        hidden = None
        if self.hidden is not None:
            hidden = self.hidden[where.to(self.hidden.device)].to(device)
        return TokenBatch(ids, mask.to(device).long(), hidden)

    @property
    def on_device(self) -> bool:
        """Whether nothing has to be fetched from the host to make a batch."""
        return self.hidden is None or self.hidden.device == self.ids.device


@dataclass(frozen=True)
class VectorRows:
    """Utterances as vectors: pooled by a frozen encoder, or given by the user.

    Args:
        vectors: (n, d).
    """

    vectors: Tensor

    def __len__(self) -> int:
        return len(self.vectors)

    @cached_property
    def lengths(self) -> IntArray:
        """(n,) ones: vectors need no padding."""
        return np.ones(len(self), np.int64)

    def pick(self, index: IntArray, device: torch.device) -> Pick:
        """Choose the rows `index` for a batch."""
        return Pick(_sent(index, device), len(index), ((len(index), 1),))

    @property
    def on_device(self) -> bool:
        """Vectors are kept where they are used."""
        return True


Rows = TokenRows | VectorRows
Index = IntArray | Pick
"""Rows by number, or already chosen for a batch."""


def _sent(index: IntArray, device: torch.device) -> Tensor:
    """Return row numbers on the device, without waiting for what runs there."""
    numbers = torch.from_numpy(index)
    return numbers.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else numbers


def _up(number: int, step: int) -> int:
    """Round up to a multiple of `step`."""
    return -(-number // step) * step


def batches_by_length(lengths: IntArray, token_budget: int) -> Iterator[IntArray]:
    """Yield row indices in batches of like length whose padded size stays within a budget.

    Args:
        lengths: (n,) tokens per row.
        token_budget: Most tokens a batch may hold, padding included (one row always fits).
    """
    order = np.argsort(lengths, kind="stable")
    start = 0
    while start < len(order):
        # Sorted upwards, so the last row decides the width of the batch.
        stop = start + 1
        while stop < len(order) and lengths[order[stop]] * (stop + 1 - start) <= token_budget:
            stop += 1
        yield order[start:stop]
        start = stop
