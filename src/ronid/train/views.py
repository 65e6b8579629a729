"""Other views of an utterance: the same words with a few of them exchanged."""

from torch import Tensor

from ronid.encode.encoder import Encoder
from ronid.encode.rows import Index, Rows, TokenRows
from ronid.encode.transformer import TransformerBackbone
from ronid.errors import UsageError
from ronid.losses.language_model import replace_tokens


def untouchable(backbone: TransformerBackbone, ids: Tensor, outside: Tensor) -> Tensor:
    """Return where no view may change a token: special tokens, and those `outside` of a text."""
    return (ids.unsqueeze(-1) == backbone.special_ids).any(-1) | outside


def view(encoder: Encoder, rows: Rows, index: Index, replaced: float) -> Tensor:
    """Return the (b, d) unit vectors of the rows `index`, some of their tokens replaced.

    Altered tokens run all layers, the frozen ones without gradient.

    Args:
        encoder: The encoder.
        rows: Prepared rows.
        index: Rows.
        replaced: Chance of a token to become a random one; 0 gives the rows as they are.

    Raises:
        UsageError: Tokens are to be replaced where there are only vectors.
    """
    if replaced == 0:
        plain: Tensor = encoder(rows, index)
        return plain
    backbone = encoder.backbone
    if not isinstance(rows, TokenRows) or not isinstance(backbone, TransformerBackbone):
        raise UsageError("token_replacement needs texts and encoder.trainable_layers")

    def alter(ids: Tensor, outside: Tensor) -> Tensor:
        # Drawn from the device's own generator, seeded by the loop, like dropout.
        return replace_tokens(
            ids,
            untouchable(backbone, ids, outside),
            vocab_size=len(backbone.tokenizer),
            probability=replaced,
        )

    vectors: Tensor = encoder(rows, index, alter)
    return vectors
