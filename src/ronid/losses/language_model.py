"""Masked language modelling, the unlabelled half of pre-training (Eq. 2), and token noise."""

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

IGNORED = -100
"""Label of a token that is not to be predicted."""


def _chance(like: Tensor, generator: torch.Generator) -> Tensor:
    """Uniform numbers, drawn where the generator lives: a CPU seed serves a GPU batch."""
    return torch.rand(like.shape, generator=generator, device=generator.device).to(like.device)


def _random_tokens(like: Tensor, vocab_size: int, generator: torch.Generator) -> Tensor:
    drawn = torch.randint(vocab_size, like.shape, generator=generator, device=generator.device)
    return drawn.to(like.device, like.dtype)


def mask_tokens(
    input_ids: Tensor,
    special_mask: Tensor,
    *,
    mask_id: int,
    vocab_size: int,
    generator: torch.Generator,
    probability: float = 0.15,
) -> tuple[Tensor, Tensor]:
    """Hide some tokens for the model to predict.

    Of the tokens chosen, 80 % become the mask token, 10 % a random one, 10 % stay (BERT, Devlin et
    al., 2019).

    Args:
        input_ids: (b, l) token ids.
        special_mask: (b, l) true for special and padding tokens; these are never touched.
        mask_id: Id of the mask token.
        vocab_size: Number of ids to draw random tokens from.
        generator: Source of the draws.
        probability: Chance of a token to be chosen.

    Returns:
        The (b, l) ids with tokens hidden, and the (b, l) labels: the true id where a token was
        chosen, -100 elsewhere.
    """
    chosen = (_chance(input_ids, generator) < probability) & ~special_mask.bool()
    fate = _chance(input_ids, generator)
    masked = torch.where(chosen & (fate < 0.8), mask_id, input_ids)
    replaced = chosen & (fate >= 0.8) & (fate < 0.9)
    masked = torch.where(replaced, _random_tokens(input_ids, vocab_size, generator), masked)
    return masked, torch.where(chosen, input_ids, IGNORED)


def replace_tokens(
    input_ids: Tensor,
    special_mask: Tensor,
    *,
    vocab_size: int,
    generator: torch.Generator,
    probability: float = 0.25,
) -> Tensor:
    """Random token replacement: another view of the same utterance for contrast.

    Args:
        input_ids: (b, l) token ids.
        special_mask: (b, l) true for special and padding tokens; these are never touched.
        vocab_size: Number of ids to draw from.
        generator: Source of the draws.
        probability: Chance of a token to be replaced.

    Returns:
        (b, l) token ids.
    """
    chosen = (_chance(input_ids, generator) < probability) & ~special_mask.bool()
    return torch.where(chosen, _random_tokens(input_ids, vocab_size, generator), input_ids)


def language_model_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of the hidden tokens.

    Purpose: knowledge from all utterances, labelled or not, before discovery.

    Inputs: logits (..., v) over the vocabulary; labels (...) true ids, -100 where not to predict.

    Equation: second term of (2), -mean log P(hidden token | rest of the utterance).

    Reference: RoNID, Sec. 3.3; BERT (Devlin et al., 2019).

    Relations: takes the labels of `mask_tokens`; 0, not NaN, where no token was hidden.

    Returns:
        The loss, a scalar.
    """
    hidden = labels != IGNORED
    if not hidden.any():
        return logits.sum() * 0
    # Only the hidden tokens meet the softmax: it is (hidden, v) instead of (b * l, v).
    chosen = logits[hidden]
    return cross_entropy(
        chosen.to(torch.promote_types(chosen.dtype, torch.float32)), labels[hidden]
    )
