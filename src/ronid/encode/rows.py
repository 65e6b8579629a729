"""Utterances made ready for an encoder: what the frozen part of it says about each, kept once."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ronid.types import IntArray


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

    @property
    def lengths(self) -> IntArray:
        """(n,) tokens per utterance."""
        return np.diff(self.starts)

    def batch(self, index: IntArray, device: torch.device) -> TokenBatch:
        """Return the utterances `index`, padded to the longest of them."""
        lengths = self.lengths[index]
        columns = np.arange(lengths.max())
        inside = columns < lengths[:, None]  # (b, l)
        where = torch.from_numpy(np.where(inside, self.starts[index][:, None] + columns, 0))
        mask = torch.from_numpy(inside).to(device)
        ids = self.ids[where.to(self.ids.device)].to(device).long()
        ids = ids.masked_fill(~mask, self.pad_id)
        hidden = None
        if self.hidden is not None:
            hidden = self.hidden[where.to(self.hidden.device)].to(device)
        return TokenBatch(ids, mask.long(), hidden)


@dataclass(frozen=True)
class VectorRows:
    """Utterances as vectors: pooled by a frozen encoder, or given by the user.

    Args:
        vectors: (n, d).
    """

    vectors: Tensor

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def lengths(self) -> IntArray:
        """(n,) ones: vectors need no padding."""
        return np.ones(len(self), np.int64)


Rows = TokenRows | VectorRows


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
