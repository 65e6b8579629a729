"""Training batches without padding: all tokens of a batch in one row, attention within utterances.

Utterances of a random batch differ much in length, so that padding to the longest one would
multiply the work by two or three. Here the model sees one long sequence of all tokens; only the
attention, a small part of the work, knows utterances: by a kernel made for it on a GPU, else on a
padded copy. The model's own code does the rest: it asks for its attention by name, and finds the
one of this module.
"""

import logging
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

log = logging.getLogger("ronid.encode")

FAMILIES = frozenset(("bert", "roberta", "xlm-roberta", "mpnet"))
"""Model types whose attention depends on nothing but tokens and their order."""

SHORT = 64
"""Up to this width a GPU attends faster by plain products than by fused ones on padded tokens."""

KERNEL = 128
"""Up to this width a GPU attends by a kernel of its own, where it can be built."""

_NAME = "ronid_packed"


@dataclass(frozen=True)
class Layout:
    """Which token of a packed batch belongs where.

    The padded form is a few boxes of utterances of like length, one after the other.

    Args:
        row: (t,) utterance of each token, counted in the order of the boxes; the last in filling.
        column: (t,) place of each token in its utterance.
        valid: (t,) false for the filling behind the last token.
        place: (t,) place of each token in the padded form.
        slot: (s,) token at each place of the padded form, any one where there is none.
        mask: (s,) true where there is a token.
        bounds: (b + 1,) where each utterance begins, and where the last one ends.
        order: (b,) utterances in the order of the boxes.
        boxes: Utterances and width of each box.
    """

    row: Tensor
    column: Tensor
    valid: Tensor
    place: Tensor
    slot: Tensor
    mask: Tensor
    bounds: Tensor
    order: Tensor
    boxes: tuple[tuple[int, int], ...]

    @classmethod
    def of(
        cls, lengths: Tensor, order: Tensor, tokens: int, boxes: tuple[tuple[int, int], ...]
    ) -> "Layout":
        """Lay utterances end to end, and filling behind them; nothing is read from a GPU.

        Args:
            lengths: (b,) tokens of each utterance, in the order of the boxes.
            order: (b,) which utterances these are.
            tokens: Tokens of all of them together, or more.
            boxes: Utterances and width of each box, none narrower than one of its utterances.
        """
        device = lengths.device
        ends = lengths.cumsum(0)
        begins = ends - lengths
        token = torch.arange(tokens, device=device)
        row = torch.searchsorted(ends, token, right=True).clamp(max=len(lengths) - 1)
        valid = token < ends[-1]
        column = torch.where(valid, token - begins[row], 0)
        first, slots, masks = [], [], []  # of each row in the padded form
        a = base = 0
        for rows, width in boxes:
            columns = torch.arange(width, device=device)
            mask = columns < lengths[a : a + rows, None]
            masks.append(mask.flatten())
            slots.append(torch.where(mask, begins[a : a + rows, None] + columns, 0).flatten())
            first.append(base + width * torch.arange(rows, device=device))
            a, base = a + rows, base + rows * width
        return cls(
            row=row,
            column=column,
            valid=valid,
            place=torch.cat(first)[row] + column,
            slot=torch.cat(slots),
            mask=torch.cat(masks),
            bounds=torch.cat([begins[:1], ends]).to(torch.int32),
            order=order,
            boxes=boxes,
        )

    @property
    def widest(self) -> int:
        """Tokens of the longest utterance, or a little more."""
        return max(width for _, width in self.boxes)

    def pad(self, tokens: Tensor) -> Tensor:
        """(t, ...) to (s, ...); what stands outside the mask means nothing."""
        padded: Tensor = _Rearrange.apply(tokens, self.slot, self.place, self.valid)
        return padded

    def unpad(self, padded: Tensor) -> Tensor:
        """(s, ...) to (t, ...); what stands in the filling means nothing."""
        tokens: Tensor = _Rearrange.apply(padded, self.place, self.slot, self.mask)
        return tokens

    def split(self, padded: Tensor) -> list[Tensor]:
        """(s, ...) to one (utterances, width, ...) for each box."""
        parts = padded.split([rows * width for rows, width in self.boxes])
        return [part.unflatten(0, box) for part, box in zip(parts, self.boxes, strict=True)]

    def means(self, tokens: Tensor) -> Tensor:
        """Average the (t, h) tokens of each utterance: (b, h) in float32."""
        real = self.mask.unsqueeze(-1).float()
        sums = [part.sum(1) for part in self.split(self.pad(tokens.float()) * real)]
        lengths = [part.sum(1) for part in self.split(real)]
        means = torch.cat(sums) / torch.cat(lengths).clamp_min(1.0)
        return means.index_select(0, self.order.argsort())


class _Rearrange(torch.autograd.Function):
    """A gather whose gradient is the gather back: no sums, so nothing to sort or to collide."""

    @staticmethod
    def forward(ctx: Any, source: Tensor, there: Tensor, back: Tensor, real: Tensor) -> Tensor:
        ctx.save_for_backward(back, real)
        return source.index_select(0, there)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        back, real = ctx.saved_tensors
        returned = gradient.index_select(0, back)
        # Filling was never read for good, so it gets no gradient.
        return returned * real.view(-1, *[1] * (returned.ndim - 1)), None, None, None


_layout: ContextVar[Layout | None] = ContextVar("layout", default=None)


def attend(  # noqa: PLR0913, PLR0917 - the signature under which models call their attention
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None = None,
    dropout: float = 0.0,
    scaling: float | None = None,
    bias: Tensor | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """Attention of packed tokens, each utterance by itself.

    Args:
        module: The caller.
        query: (1, heads, t, width of a head), and so are `key` and `value`.
        key: See `query`.
        value: See `query`.
        attention_mask: Not used: the layout knows.
        dropout: Chance of an attention weight to be dropped.
        scaling: Factor of the scores.
        bias: (1, heads, w, w) added to the scores.

    Returns:
        (1, t, heads, width of a head), and None for the weights.
    """
    layout = _layout.get()
    assert layout is not None
    tokens = [x[0].transpose(0, 1) for x in (query, key, value)]  # (t, heads, width of a head)
    scale = scaling or query.shape[-1] ** -0.5
    kernel = _kernel_for(tokens[0], layout, biased=bias is not None)
    if kernel is not None:
        table = None if bias is None else bias[0].to(query.dtype)
        found = kernel(*tokens, table, layout.bounds, layout.boxes, dropout, scale)
        return found.unsqueeze(0), None
    q, k, v = ([part.transpose(1, 2) for part in layout.split(layout.pad(x))] for x in tokens)
    boxes = zip(q, k, v, layout.split(layout.mask), strict=True)
    out = [_attend_box(*box, bias, dropout, scale).transpose(1, 2).flatten(0, 1) for box in boxes]
    return layout.unpad(torch.cat(out)).unsqueeze(0), None


def _kernel_for(tokens: Tensor, layout: Layout, *, biased: bool) -> Callable[..., Tensor] | None:
    """Return the kernel for short utterances if it can run (t, heads, d) tokens, or None."""
    _, heads, width = tokens.shape
    if not tokens.is_cuda or tokens.dtype != torch.bfloat16 or width not in {16, 32, 64, 128}:
        return None
    tiles = {tile_of(box) for _, box in layout.boxes}
    built = [_kernel(heads, width, tile, biased, tokens.device) for tile in tiles]
    return None if None in built else built[0]


def tile_of(width: int) -> int:
    """Return the tokens that the kernel holds for utterances of up to `width`: a power of two."""
    return 1 << max(4, (width - 1).bit_length())


@cache
def _kernel(  # noqa: PLR0917 - what decides which code is built
    heads: int, width: int, tile: int, biased: bool, device: torch.device
) -> Callable[..., Tensor] | None:
    """Build the kernel for utterances of up to `tile` tokens; None where that cannot be."""
    if tile > KERNEL:
        return None
    tokens = torch.zeros(1, heads, width, dtype=torch.bfloat16, device=device, requires_grad=True)
    bounds = torch.tensor([0, 1], dtype=torch.int32, device=device)
    table = torch.zeros(heads, tile, tile, dtype=torch.bfloat16, device=device) if biased else None
    try:
        from ronid.encode.kernels import Attention

        with torch.enable_grad(), torch.random.fork_rng(devices=[device]):
            out = Attention.apply(tokens, tokens, tokens, table, bounds, ((1, tile),), 0.0, 1.0)
            out.sum().backward()
    except ImportError:
        return None
    except Exception as error:  # no compiler here, or a GPU with too little memory on its chip
        text = str(error).strip().splitlines()
        log.warning(
            "attention over %d tokens runs padded, which is slower: its kernel cannot be built: %s",
            tile,
            text[0] if text else type(error).__name__,
        )
        return None
    return Attention.apply


def _attend_box(  # noqa: PLR0913, PLR0917 - the terms of one formula
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor, bias: Tensor | None, dropout: float, scale: float
) -> Tensor:
    """Attention of utterances padded to one width: (b, heads, w, width of a head) to the same."""
    mask, width = mask[:, None, None, :], q.shape[2]
    if not q.is_cuda or width > SHORT:
        scores = mask if bias is None else _masked(bias[..., :width, :width].to(q.dtype), mask)
        scores = scores.expand(-1, -1, width, -1)
        return scaled_dot_product_attention(q, k, v, scores, dropout, scale=scale)
    # Fused attention works in tiles of 64 or more tokens, most of them empty here.
    scores = (q * scale) @ k.transpose(-1, -2)
    if bias is not None:
        scores = scores + bias[..., :width, :width]
    weights = torch.softmax(_masked(scores, mask), dim=-1)
    return torch.dropout(weights.to(v.dtype), dropout, dropout > 0) @ v


def _masked(scores: Tensor, mask: Tensor) -> Tensor:
    """Scores that no softmax notices where there is no token."""
    return scores.masked_fill(~mask, torch.finfo(scores.dtype).min)


def prepare_model(model: nn.Module) -> bool:
    """Make `model` able to run packed batches; return whether it is."""
    family = model.config.model_type  # type: ignore[union-attr]
    if family not in FAMILIES:
        return False
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface

    AttentionInterface.register(_NAME, attend)
    AttentionMaskInterface.register(_NAME, lambda *_, **__: None)
    if family == "mpnet":
        _adapt_mpnet(model)
    return True


@contextmanager
def packed(model: nn.Module, layout: Layout) -> Iterator[None]:
    """Let `model` treat its input as the packed tokens of `layout`."""
    config: Any = model.config
    before = config._attn_implementation
    token = _layout.set(layout)
    config._attn_implementation = _NAME
    try:
        yield
    finally:
        config._attn_implementation = before
        _layout.reset(token)


def _adapt_mpnet(model: Any) -> None:
    """MPNet does not ask for its attention by name, and adds a bias that depends on distance."""
    encoder = model.encoder
    plain_bias = encoder.compute_position_bias
    buckets: dict[tuple[int, torch.device], Tensor] = {}

    def position_bias(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        layout = _layout.get()
        if layout is None:
            plain: Tensor = plain_bias(x, *args, **kwargs)
            return plain
        key = layout.widest, x.device
        if key not in buckets:
            places = torch.arange(key[0])
            distance = places[None, :] - places[:, None]
            # On the host, and kept: the model's code cannot be recorded as part of a step.
            buckets[key] = encoder.relative_position_bucket(distance).to(x.device)
        bias: Tensor = encoder.relative_attention_bias(buckets[key])  # (w, w, heads)
        return bias.permute(2, 0, 1).unsqueeze(0)

    def attention(
        self: Any, hidden_states: Tensor, attention_mask: Any = None, position_bias: Any = None,
        output_attentions: bool = False, **kwargs: Any,
    ) -> Any:  # fmt: skip
        if _layout.get() is None:
            return type(self).forward(
                self, hidden_states, attention_mask, position_bias, output_attentions, **kwargs
            )
        shape = (*hidden_states.shape[:-1], -1, self.attention_head_size)
        q, k, v = (x(hidden_states).view(shape).transpose(1, 2) for x in (self.q, self.k, self.v))
        dropout = self.dropout.p if self.training else 0.0
        out, _ = attend(self, q, k, v, None, dropout, bias=position_bias)
        return (self.o(out.flatten(2)),)

    encoder.compute_position_bias = position_bias
    for layer in encoder.layer:
        layer.attention.attn.forward = types.MethodType(attention, layer.attention.attn)
