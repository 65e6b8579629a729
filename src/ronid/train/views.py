"""Other views of an utterance: the same words with a few of them exchanged."""

import torch
from torch import Tensor
from torch.nn.functional import normalize

from ronid.encode.encoder import Encoder
from ronid.encode.rows import Rows, TokenBatch, TokenRows
from ronid.encode.transformer import TransformerBackbone, masked_mean
from ronid.errors import UsageError
from ronid.losses.language_model import replace_tokens
from ronid.types import IntArray


def untouchable(backbone: TransformerBackbone, batch: TokenBatch) -> Tensor:
    """Return (b, l) true for special tokens and padding, which no view may change."""
    special = torch.tensor(backbone.tokenizer.all_special_ids, device=backbone.device)
    return torch.isin(batch.ids, special) | (batch.mask == 0)


def view(encoder: Encoder, rows: Rows, index: IntArray, replaced: float) -> Tensor:
    """Return the (b, d) unit vectors of the rows `index`, some of their tokens replaced.

    Altered tokens run all layers, the frozen ones without gradient.

    Args:
        encoder: The encoder.
        rows: Prepared rows.
        index: (b,) rows.
        replaced: Chance of a token to become a random one; 0 gives the rows as they are.

    Raises:
        UsageError: Tokens are to be replaced where there are only vectors.
    """
    if replaced == 0:
        vectors: Tensor = encoder(rows, index)
        return vectors
    backbone = encoder.backbone
    if not isinstance(rows, TokenRows) or not isinstance(backbone, TransformerBackbone):
        raise UsageError("m_step.token_replacement needs texts and encoder.trainable_layers")
    batch = rows.batch(index, backbone.device)
    ids = replace_tokens(
        batch.ids,
        untouchable(backbone, batch),
        vocab_size=len(backbone.tokenizer),
        generator=torch.default_generator,  # seeded by the loop, like dropout
        probability=replaced,
    )
    pooled = masked_mean(backbone.hidden_states(TokenBatch(ids, batch.mask, None)), batch.mask)
    return normalize(pooled if encoder.adapter is None else encoder.adapter(pooled), dim=-1)
