"""Masked-language heads: the checkpoint's own where it has one, else one tied to the words."""

from typing import Any

from torch import Tensor, nn
from torch.nn import functional

from ronid.encode.transformer import TransformerBackbone


class TiedHead(nn.Module):
    """Dense, GELU, layer norm, then the word embeddings transposed.

    Args:
        words: The encoder's word embeddings; shared, not copied.
        hidden_dim: Width of the encoder's states; ELECTRA's words are narrower.
    """

    def __init__(self, words: nn.Embedding, hidden_dim: int) -> None:
        super().__init__()
        count, dim = words.weight.shape
        self.dense = nn.Linear(hidden_dim, dim)
        self.norm = nn.LayerNorm(dim)
        self.bias = nn.Parameter(words.weight.new_zeros(count))
        self._words = [words]  # in a list: the encoder owns these weights, not the head

    def forward(self, hidden: Tensor) -> Tensor:
        """(m, h) states of masked tokens to (m, v) logits."""
        transformed = self.norm(functional.gelu(self.dense(hidden)))
        return functional.linear(transformed, self._words[0].weight, self.bias)


def language_head(backbone: TransformerBackbone) -> nn.Module:
    """Return the head that predicts masked tokens from their states.

    Args:
        backbone: The encoder; its checkpoint may have brought a head of its own.
    """
    head = _own_head(backbone.language_model)
    if head is None:
        head = TiedHead(backbone.model.get_input_embeddings(), backbone.dim)
    return head.to(backbone.device)


def _own_head(model: Any) -> nn.Module | None:
    """Return the head of a masked-LM checkpoint, by the families' names for it."""
    if model is None:
        return None
    for name in ("cls", "lm_head"):  # BERT; RoBERTa and MPNet
        if hasattr(model, name):
            return getattr(model, name)
    if hasattr(model, "vocab_projector"):  # DistilBERT
        activation = _Call(model.activation)
        return nn.Sequential(
            model.vocab_transform, activation, model.vocab_layer_norm, model.vocab_projector
        )
    if hasattr(model, "decoder") and hasattr(model, "head"):  # ModernBERT
        return nn.Sequential(model.head, model.decoder)
    return None


class _Call(nn.Module):
    """Wrap a plain function as a module."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, values: Tensor) -> Tensor:
        """Apply it."""
        return self.function(values)
