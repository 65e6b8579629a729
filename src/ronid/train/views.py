"""Other views of an utterance: the same words with a few of them exchanged, or missing."""

from torch import Tensor

from ronid.encode.encoder import Encoder
from ronid.encode.rows import Index, Rows, TokenRows
from ronid.encode.transformer import TransformerBackbone
from ronid.errors import UsageError
from ronid.losses.language_model import erase_tokens, replace_tokens


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
    backbone = _reader(encoder, rows, "token_replacement")

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


def erased_view(encoder: Encoder, rows: Rows, index: Index, erased: float) -> Tensor:
    """Return the (b, d) features of the rows `index`, some of their tokens erased.

    A row that is picked twice gets two views. An erased token becomes the mask token, or, where
    the tokenizer has none, the unknown or the padding one: dropping it would change the shape of
    the batch. Altered tokens run all layers, the frozen ones without gradient.

    Args:
        encoder: The encoder.
        rows: Prepared rows.
        index: Rows.
        erased: Chance of a token to be erased; 0 gives the rows as they are.

    Raises:
        UsageError: Tokens are to be erased where there are only vectors.
    """
    if erased == 0:
        plain: Tensor = encoder(rows, index)
        return plain
    backbone = _reader(encoder, rows, "token_erasure")
    nothing = erased_id(backbone)

    def alter(ids: Tensor, outside: Tensor) -> Tensor:
        fixed = untouchable(backbone, ids, outside)
        return erase_tokens(ids, fixed, erased_id=nothing, probability=erased)

    vectors: Tensor = encoder(rows, index, alter)
    return vectors


def erased_id(backbone: TransformerBackbone) -> int:
    """Return the id of the token that takes the place of an erased one."""
    tokenizer = backbone.tokenizer
    ids = (tokenizer.mask_token_id, tokenizer.unk_token_id, tokenizer.pad_token_id)
    return int(next((token for token in ids if token is not None), 0))


def _reader(encoder: Encoder, rows: Rows, setting: str) -> TransformerBackbone:
    """Return the backbone that reads the tokens of `rows`, which `setting` wants to alter."""
    if isinstance(rows, TokenRows) and isinstance(encoder.backbone, TransformerBackbone):
        return encoder.backbone
    raise UsageError(f"{setting} needs texts and encoder.trainable_layers")
