"""Other views of an utterance: the same words with a few of them exchanged, or missing."""

from torch import Tensor

from ronid.encode.encoder import Encoder
from ronid.encode.rows import B, Index, PackedBatch, Rows, TokenBatch, TokenRows
from ronid.encode.transformer import TransformerBackbone
from ronid.errors import UsageError
from ronid.losses.language_model import replace_tokens, tokens_to_erase


def untouchable(backbone: TransformerBackbone, batch: TokenBatch | PackedBatch) -> Tensor:
    """Return where no view may change a token: special tokens, and places outside of a text."""
    return (batch.ids.unsqueeze(-1) == backbone.special_ids).any(-1) | batch.outside


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
    backbone = reader_of(encoder, rows, "token_replacement")

    def alter(batch: B) -> B:
        # Drawn from the device's own generator, seeded by the loop, like dropout.
        ids = replace_tokens(
            batch.ids,
            untouchable(backbone, batch),
            vocab_size=len(backbone.tokenizer),
            probability=replaced,
        )
        return batch.with_ids(ids)

    vectors: Tensor = encoder(rows, index, alter)
    return vectors


def erased_view(encoder: Encoder, rows: Rows, index: Index, erased: float) -> Tensor:
    """Return the (b, d) features of the rows `index`, some of their tokens fallen out.

    A row that is picked twice gets two views. Altered rows run all layers, the frozen ones without
    gradient.

    Args:
        encoder: The encoder.
        rows: Prepared rows.
        index: Rows.
        erased: Share of the tokens of an utterance that fall out; 0 gives the rows as they are.

    Raises:
        UsageError: Tokens are to be erased where there are only vectors.
    """
    if erased == 0:
        plain: Tensor = encoder(rows, index)
        return plain
    backbone = reader_of(encoder, rows, "token_erasure")

    def alter(batch: B) -> B:
        return batch.without(tokens_to_erase(batch.row, untouchable(backbone, batch), share=erased))

    vectors: Tensor = encoder(rows, index, alter)
    return vectors


def reader_of(encoder: Encoder, rows: Rows, setting: str) -> TransformerBackbone:
    """Return the backbone that reads the tokens of `rows`, which `setting` wants to alter."""
    if isinstance(rows, TokenRows) and isinstance(encoder.backbone, TransformerBackbone):
        return encoder.backbone
    raise UsageError(f"{setting} needs texts and encoder.trainable_layers")
