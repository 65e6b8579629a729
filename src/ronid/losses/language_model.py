"""Masked language modelling, the unlabelled half of pre-training (Eq. 2), and token noise."""

import math

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

IGNORED = -100
"""Label of a token that is not to be predicted."""


def _chance(like: Tensor, generator: torch.Generator | None) -> Tensor:
    """Uniform numbers, drawn where the generator lives: a CPU seed serves a GPU batch."""
    device = like.device if generator is None else generator.device
    return torch.rand(like.shape, generator=generator, device=device).to(like.device)


def _random_tokens(like: Tensor, vocab_size: int, generator: torch.Generator | None) -> Tensor:
    device = like.device if generator is None else generator.device
    drawn = torch.randint(vocab_size, like.shape, generator=generator, device=device)
    return drawn.to(like.device, like.dtype)


def mask_tokens(
    input_ids: Tensor,
    special_mask: Tensor,
    *,
    mask_id: int,
    vocab_size: int,
    generator: torch.Generator | None = None,
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
        generator: Source of the draws; None for the one of the device, seeded by the loop.
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
    generator: torch.Generator | None = None,
    probability: float = 0.25,
) -> Tensor:
    """Random token replacement: another view of the same utterance for contrast.

    Args:
        input_ids: (b, l) token ids.
        special_mask: (b, l) true for special and padding tokens; these are never touched.
        vocab_size: Number of ids to draw from.
        generator: Source of the draws; None for the one of the device, seeded by the loop.
        probability: Chance of a token to be replaced.

    Returns:
        (b, l) token ids.
    """
    chosen = (_chance(input_ids, generator) < probability) & ~special_mask.bool()
    return torch.where(chosen, _random_tokens(input_ids, vocab_size, generator), input_ids)


def tokens_to_erase(
    rows: Tensor,
    special_mask: Tensor,
    *,
    generator: torch.Generator | None = None,
    share: float = 0.4,
) -> Tensor:
    """Draw tokens that are to fall out: another view of the same utterance, words missing.

    Of the n tokens of an utterance that are not special, floor(share n) are drawn, so that
    something is always left of it.

    Args:
        rows: Utterance of each token, of any shape.
        special_mask: The same shape, true for special and padding tokens; these are never drawn.
        generator: Source of the draws; None for the one of the device, seeded by the loop.
        share: Share of the tokens of an utterance that fall out.

    Returns:
        The same shape, true for tokens that fall out.
    """
    fixed = special_mask.bool().flatten()
    # By utterance, in each the special tokens last and all others as drawn.
    groups = 2 * rows.flatten() + fixed
    keys, order = (groups + _chance(groups, generator).double()).sort()
    own = groups[order] // 2 * 2
    first = torch.searchsorted(keys, own.double())
    plain = torch.searchsorted(keys, own.double() + 1) - first  # of the same utterance
    chosen = torch.arange(len(keys), device=keys.device) - first < (share * plain.double()).floor()
    return torch.zeros_like(fixed).scatter(0, order, chosen).view_as(special_mask)


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
    # Summed and divided, so that no hidden token at all gives 0 and a GPU is never asked.
    exact = logits.to(torch.promote_types(logits.dtype, torch.float32))
    total = cross_entropy(
        exact.flatten(0, -2), labels.flatten(), ignore_index=IGNORED, reduction="sum"
    )
    return total / (labels != IGNORED).sum().clamp(min=1)


def hidden_tokens(labels: Tensor, share: float) -> Tensor:
    """Return the flat positions of hidden tokens, and of others up to a fixed number.

    Only these positions need to meet the vocabulary. The number depends on the shape alone, not on
    the draws: three standard deviations above the mean, so that there is nearly always room.

    Args:
        labels: (b, l) as `mask_tokens` returns them.
        share: Chance with which tokens were hidden.
    """
    n = labels.numel()
    room = min(n, math.ceil(n * share + 3 * math.sqrt(n * share * (1 - share))) + 1)
    return torch.topk((labels != IGNORED).flatten().float(), room).indices
