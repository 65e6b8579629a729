"""Heads: what published methods put between the pooled vector and the features they cluster."""

from torch import Tensor, nn

from ronid.encode.autoencoder import CODE_WIDTHS, CodeHead
from ronid.encode.dropout import ByteDropout
from ronid.errors import UsageError

DROPOUT = 0.1


class Head(nn.Module):
    """Layers in a row, with the width of what comes out.

    Args:
        layers: The layers.
        dim: Width of the output.
    """

    def __init__(self, layers: nn.Module, dim: int) -> None:
        super().__init__()
        self.layers = layers
        self.dim = dim

    def forward(self, vectors: Tensor) -> Tensor:
        """(b, d) to (b, dim)."""
        out: Tensor = self.layers(vectors)
        return out


def build_head(kind: str, dim: int, n_intents: int | None) -> Head:
    """Return the head `kind` of `EncoderConfig.head` over vectors of width `dim`.

    Args:
        kind: Which.
        dim: Width of its input.
        n_intents: Outputs of a head of logits.

    Raises:
        UsageError: A head of logits, but nobody said how many intents there are.
    """
    if kind in ("code", "linear_code"):
        return Head(CodeHead(dim, linear=kind == "linear_code"), CODE_WIDTHS[-1])
    activation, _, logits = kind.partition("_")
    activations: dict[str, nn.Module] = {"tanh": nn.Tanh(), "relu": nn.ReLU()}
    layers = [nn.Linear(dim, dim), activations.get(activation, nn.Identity()), ByteDropout(DROPOUT)]
    if not logits:
        return Head(nn.Sequential(*layers), dim)
    if n_intents is None:
        raise UsageError(f"encoder.head '{kind}' needs the number of intents")
    return Head(nn.Sequential(*layers, nn.Linear(dim, n_intents)), n_intents)
