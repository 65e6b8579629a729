"""Running some layers of a transformer: padded or packed batches, in bfloat16 on a GPU.

This works for every family whose layers stand in one list: the model's own forward code runs, with
that list exchanged. To compute what the lower layers say, the list is cut after them; to go on
from there, a layer that injects the kept states takes their place. Masks, position biases and
rotary angles are thus always made by the model itself.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from ronid.encode.packed import packed
from ronid.encode.rows import PackedBatch, TokenBatch
from ronid.errors import UsageError


class LayerRunner:
    """Runs layers of a model.

    Args:
        model: A transformer, on `device` already.
        device: Where it runs.
    """

    def __init__(self, model: nn.Module, device: torch.device) -> None:
        self.model = model
        self.device = device
        self._parent, self._attribute = _find_layers(model)
        self.layers: list[nn.Module] = list(getattr(self._parent, self._attribute))
        self.first_position = _first_position(model)
        self._injected = _Injected(self.layers[0])
        self._injected.returns_tuple = self._layers_return_tuples()

    def packed(self, batch: PackedBatch, layers: list[nn.Module]) -> Tensor:
        """Run `layers` over a batch without padding, from its kept states on if it has some.

        Returns:
            (t, h) states.
        """
        hidden = None if batch.hidden is None else batch.hidden.unsqueeze(0)
        positions = batch.layout.column + self.first_position
        with self._using(layers, hidden), self._in_bfloat16(), packed(self.model, batch.layout):
            output = self.model(
                input_ids=batch.ids.unsqueeze(0), position_ids=positions.unsqueeze(0)
            )
        states: Tensor = output[0][0]
        return states

    def padded(self, batch: TokenBatch, layers: list[nn.Module]) -> Tensor:
        """Run `layers` over a padded batch, from its kept states on if it has some.

        Returns:
            (b, l, h) states.
        """
        with self._using(layers, batch.hidden), self.autocast():
            output: Tensor = self.model(input_ids=batch.ids, attention_mask=batch.mask)[0]
        return output

    def autocast(self) -> torch.autocast:
        """bfloat16 on GPU, plain float32 on CPU."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda")

    @contextmanager
    def _using(self, layers: list[nn.Module], hidden: Tensor | None) -> Iterator[None]:
        """Let the model run `layers`, above the kept states if given, in place of its own list."""
        own = getattr(self._parent, self._attribute)
        if hidden is not None:
            self._injected.hidden = hidden.to(self._training_dtype)
            layers = [self._injected, *layers]
        setattr(self._parent, self._attribute, nn.ModuleList(layers))
        try:
            yield
        finally:
            setattr(self._parent, self._attribute, own)
            self._injected.hidden = None

    @property
    def _training_dtype(self) -> torch.dtype:
        return torch.bfloat16 if self.device.type == "cuda" else torch.float32

    @contextmanager
    def _in_bfloat16(self) -> Iterator[None]:
        """On a GPU, run the layers in use on bfloat16 copies of their weights.

        Autocast would hold everything between matrix products in float32, and moving that about
        takes longer than the products. Gradients reach the float32 weights through the copies.
        """
        weights = [
            (module, name, weight)
            for module in (self.model.modules() if self.device.type == "cuda" else ())
            for name, weight in module._parameters.items()
            if weight is not None
        ]
        copies = _Copies.apply(*[weight for _, _, weight in weights]) if weights else ()
        try:
            for (module, name, _), copy in zip(weights, copies, strict=True):
                module._parameters[name] = copy
            yield
        finally:
            for module, name, weight in weights:
                module._parameters[name] = weight

    @torch.no_grad()
    def _layers_return_tuples(self) -> bool:
        """Whether this family's layers answer with a tuple; asked by running one token."""
        kept: list[Any] = []
        hook = self.layers[0].register_forward_hook(lambda _m, _i, o: kept.append(o))
        self.model.train(False)
        token = torch.zeros(1, 1, dtype=torch.long, device=self.device)
        self.padded(TokenBatch(token, torch.ones_like(token), None), self.layers[:1])
        hook.remove()
        return isinstance(kept[0], tuple)


class _Injected(nn.Module):
    """Stands for the lower layers: whatever it is given, it answers with the kept states."""

    def __init__(self, template: nn.Module) -> None:
        super().__init__()
        self.hidden: Tensor | None = None
        self.returns_tuple = False
        # ModernBERT asks each layer for its kind of attention.
        self.attention_type = getattr(template, "attention_type", None)

    def forward(self, *_: Any, **__: Any) -> Any:
        """Return the kept states in the shape the family's layers use."""
        return (self.hidden,) if self.returns_tuple else self.hidden


class _Copies(torch.autograd.Function):
    """bfloat16 copies of many tensors by one kernel, and their gradients back by another."""

    @staticmethod
    def forward(ctx: Any, *weights: Tensor) -> tuple[Tensor, ...]:
        ctx.set_materialize_grads(False)
        copies = [torch.empty_like(weight, dtype=torch.bfloat16) for weight in weights]
        torch._foreach_copy_(copies, weights)
        needed = zip(copies, ctx.needs_input_grad, strict=True)
        ctx.mark_non_differentiable(*[copy for copy, need in needed if not need])  # frozen ones
        return tuple(copies)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        given = [gradient for gradient in gradients if gradient is not None]
        wide = [torch.empty_like(gradient, dtype=torch.float32) for gradient in given]
        if given:
            torch._foreach_copy_(wide, given)
        returned = iter(wide)
        return tuple(None if gradient is None else next(returned) for gradient in gradients)


def _first_position(model: nn.Module) -> int:
    """Return the number of the first token: RoBERTa and MPNet count from their padding index on."""
    for name, table in model.named_modules():
        if name.endswith("position_embeddings") and getattr(table, "padding_idx", None) is not None:
            return int(table.padding_idx) + 1  # type: ignore[arg-type]
    return 0


def _find_layers(model: nn.Module) -> tuple[nn.Module, str]:
    """Return the module that holds the list of transformer layers, and the attribute's name."""
    count = model.config.num_hidden_layers  # type: ignore[union-attr]
    for module in model.modules():
        for name, child in module.named_children():
            if isinstance(child, nn.ModuleList) and len(child) == count:
                return module, name
    raise UsageError(f"encoder of type '{type(model).__name__}' has no list of {count} layers")
