"""Attention of short utterances in one kernel: a whole utterance and head per program.

Fused attention kernels are made for long sequences and work in tiles of 64 to 128 tokens; an
utterance has a dozen, so that most of a tile is empty. Importing this module needs triton, which
comes with the GPU builds of torch.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from ronid.encode.packed import KERNEL, tile_of

GROUPS = 64
"""Programs per head that share the gradient of the bias."""


@triton.jit
def _weights(  # noqa: PLR0913, PLR0917 - a kernel has no other inputs
    q, k, v, bias, bounds, seed, row, scale, dropout, span,
    HEADS: tl.constexpr, D: tl.constexpr, W: tl.constexpr, BIASED: tl.constexpr,
):  # fmt: skip
    """Load an utterance; return its tiles, scores, and which weights dropout keeps."""
    head = tl.program_id(1)
    start = tl.load(bounds + row)
    length = tl.load(bounds + row + 1) - start
    i = tl.arange(0, W)
    at = ((start + i)[:, None] * HEADS + head) * D + tl.arange(0, D)[None, :]
    real = (i < length)[:, None]
    queries = tl.load(q + at, mask=real, other=0.0)
    keys = tl.load(k + at, mask=real, other=0.0)
    values = tl.load(v + at, mask=real, other=0.0)
    scores = tl.dot(queries, tl.trans(keys)) * scale
    if BIASED:
        inside = (i < span)[:, None] & (i < span)[None, :]
        place = (head * span + i[:, None]) * span + i[None, :]
        scores += tl.load(bias + place, mask=inside, other=0.0).to(tl.float32)
    scores = tl.where((i < length)[None, :], scores, -1e30)
    drawn = tl.rand(tl.load(seed), ((start + i)[:, None] * HEADS + head) * span + i[None, :])
    kept = tl.where(drawn >= dropout, 1.0 / (1.0 - dropout), 0.0)
    return queries, keys, values, scores, kept, at, real


@triton.jit(do_not_specialize=["first", "span"])
def _forward(  # noqa: PLR0913, PLR0917 - a kernel has no other inputs
    q, k, v, bias, out, logsum, bounds, seed, first, scale, dropout, span,
    HEADS: tl.constexpr, D: tl.constexpr, W: tl.constexpr, BIASED: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) + first
    _, _, values, scores, kept, at, real = _weights(
        q, k, v, bias, bounds, seed, row, scale, dropout, span, HEADS, D, W, BIASED
    )
    top = tl.max(scores, 1)
    powers = tl.exp(scores - top[:, None])
    total = tl.sum(powers, 1)
    weights = powers / total[:, None] * kept
    tl.store(out + at, tl.dot(weights.to(values.dtype), values).to(values.dtype), mask=real)
    start = tl.load(bounds + row)
    i = tl.arange(0, W)
    where = (start + i) * HEADS + tl.program_id(1)
    tl.store(logsum + where, top + tl.log(total), mask=i < tl.load(bounds + row + 1) - start)


@triton.jit(do_not_specialize=["first", "rows", "span"])
def _backward(  # noqa: PLR0913, PLR0917 - a kernel has no other inputs
    q, k, v, bias, out, logsum, bounds, seed, first, scale, dropout, span,
    d_out, d_q, d_k, d_v, d_bias, rows,
    HEADS: tl.constexpr, D: tl.constexpr, W: tl.constexpr, BIASED: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(1)
    i = tl.arange(0, W)
    d_scores_sum = tl.zeros((W, W), tl.float32)
    for turn in range(tl.program_id(0), rows, tl.num_programs(0)):
        row = first + turn
        queries, keys, values, scores, kept, at, real = _weights(
            q, k, v, bias, bounds, seed, row, scale, dropout, span, HEADS, D, W, BIASED
        )
        start = tl.load(bounds + row)
        length = tl.load(bounds + row + 1) - start
        where = (start + i) * HEADS + head
        sums = tl.load(logsum + where, mask=i < length, other=1e30)  # no weight behind the end
        weights = tl.exp(scores - sums[:, None])
        given = tl.load(d_out + at, mask=real, other=0.0)
        outcome = tl.load(out + at, mask=real, other=0.0)
        slope = tl.sum(given.to(tl.float32) * outcome.to(tl.float32), 1)
        d_weights = tl.dot(given, tl.trans(values)) * kept
        d_scores = weights * (d_weights - slope[:, None])
        narrow = (d_scores * scale).to(queries.dtype)
        dropped = (weights * kept).to(values.dtype)
        tl.store(d_v + at, tl.dot(tl.trans(dropped), given).to(values.dtype), mask=real)
        tl.store(d_q + at, tl.dot(narrow, keys).to(queries.dtype), mask=real)
        tl.store(d_k + at, tl.dot(tl.trans(narrow), queries).to(keys.dtype), mask=real)
        if BIASED:
            d_scores_sum += d_scores
    if BIASED:
        inside = (i < span)[:, None] & (i < span)[None, :]
        place = ((tl.program_id(0) * HEADS + head) * span + i[:, None]) * span + i[None, :]
        tl.store(d_bias + place, d_scores_sum, mask=inside)


class Attention(torch.autograd.Function):
    """Attention of packed tokens between the bounds of their utterances.

    Inputs are (t, heads, d) queries, keys and values, the (heads, w, w) bias or None, the (b + 1,)
    int32 bounds, the boxes of rows and widths, the chance of dropout and the factor of the scores.
    """

    @staticmethod
    def forward(  # noqa: PLR0913, PLR0917 - the terms of one formula
        ctx: Any,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        bias: Tensor | None,
        bounds: Tensor,
        boxes: tuple[tuple[int, int], ...],
        dropout: float,
        scale: float,
    ) -> Tensor:
        """Return the (t, heads, d) outcome, zero where the filling is."""
        q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
        out = torch.zeros_like(q)  # filling belongs to no utterance
        logsum = torch.empty(q.shape[:2], dtype=torch.float32, device=q.device)
        seed = torch.zeros(1, dtype=torch.int32, device=q.device)
        if dropout:  # drawn on the device: a recorded step must draw anew at every replay
            seed.random_()
        table = out if bias is None else bias.contiguous()
        span = KERNEL if bias is None else bias.shape[-1]
        ctx.save_for_backward(q, k, v, table, out, logsum, bounds, seed)
        ctx.terms = boxes, dropout, scale, span, bias is not None
        with torch.cuda.device_of(q):
            for first, rows, constants in _launches(q, boxes, bias is not None):
                _forward[rows, q.shape[1]](
                    q, k, v, table, out, logsum, bounds, seed, first, scale, dropout, span,
                    **constants,
                )  # fmt: skip
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        """Return the gradients of queries, keys, values and bias."""
        saved = ctx.saved_tensors
        boxes, dropout, scale, span, biased = ctx.terms
        q, table = saved[0], saved[3]
        given = gradient.contiguous()
        grads = [torch.zeros_like(q) for _ in range(3)]
        parts = [torch.zeros(GROUPS, *table.shape, device=q.device) for _ in boxes if biased]
        with torch.cuda.device_of(q):
            for box, (first, rows, constants) in enumerate(_launches(q, boxes, biased)):
                part = parts[box] if biased else q
                programs = min(GROUPS, rows) if biased else rows
                _backward[programs, q.shape[1]](
                    *saved, first, scale, dropout, span, given, *grads, part, rows, **constants
                )
        d_bias = torch.cat(parts).sum(0).to(table.dtype) if biased else None
        return *grads, d_bias, None, None, None, None


def _launches(
    q: Tensor, boxes: tuple[tuple[int, int], ...], biased: bool
) -> list[tuple[int, int, dict[str, Any]]]:
    """Return first row, number of rows and constants of the kernel for each box."""
    launches, first = [], 0
    for rows, width in boxes:
        tile = tile_of(width)
        constants = {"HEADS": q.shape[1], "D": q.shape[2], "W": tile, "BIASED": biased}
        # One stage: there is nothing to prefetch, and a second would not fit beside wide tiles.
        constants |= {"num_warps": min(8, max(1, tile * tile // 1024)), "num_stages": 1}
        launches.append((first, rows, constants))
        first += rows
    return launches
