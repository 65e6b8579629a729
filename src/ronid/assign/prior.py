"""The class prior beta: how the utterances are believed to spread over the intents (Eq. 5)."""

import torch
from torch import Tensor


def uniform_prior(k: int) -> Tensor:
    """The first belief: all intents are equally frequent.

    Args:
        k: Number of intents.

    Returns:
        (k,) float64 shares.

    Raises:
        ValueError: `k` is less than 1.
    """
    if k < 1:
        raise ValueError(f"k is {k}; a prior needs at least one intent")
    return torch.full((k,), 1 / k, dtype=torch.float64)


def update_prior(
    prior: Tensor, predictions: Tensor, momentum: float = 0.95, floor: float = 1e-4
) -> Tensor:
    """Move the prior towards the shares the model predicts (Eq. 5).

    beta <- lambda_1 * beta + (1 - lambda_1) * b, where b_j is the share of rows whose largest
    entry of P (the model, not the plan) is j.

    Args:
        prior: (k,) shares beta.
        predictions: (n,) argmax of P for all rows, labelled and unlabelled.
        momentum: lambda_1, the weight of the old prior.
        floor: Least share of an intent before renormalising; keeps an intent that nothing is
            predicted as from dying for good.

    Returns:
        (k,) float64 shares that sum to 1.

    Raises:
        ValueError: There are no predictions, one is outside 0..k-1, or momentum is not in 0..1.
    """
    k = len(prior)
    if not 0 <= momentum <= 1:
        raise ValueError(f"momentum is {momentum}; it must lie between 0 and 1")
    if len(predictions) == 0:
        raise ValueError("no predictions to update the prior with")
    if predictions.min() < 0 or predictions.max() >= k:
        raise ValueError(f"predictions must lie in 0..{k - 1}, the classes of the prior")
    predicted = torch.bincount(predictions, minlength=k).to(prior.device) / len(predictions)
    moved = momentum * prior.double() + (1 - momentum) * predicted.double()
    floored = moved.clamp(min=floor)
    return floored / floored.sum()


def shrunk_prior(
    predictions: Tensor, k: int, known: int, *, size_error: float = 0.13, floor: float = 1e-4
) -> Tensor:
    """Predicted shares, drawn towards equal ones as far as their spread may be error.

    Clusters differ in size because intents do, and because clusters are wrong. The clusters of
    known intents, anchored by labels, tell the two apart: if their sizes spread no more than
    clustering errors would make them, all intents are taken for equally frequent; if they spread
    more, the predicted shares are believed in proportion (the shrinkage of James and Stein).

    Args:
        predictions: (n,) argmax of P for all rows.
        k: Number of intents.
        known: How many of them are known; these are 0..known-1.
        size_error: Relative error of a cluster's size that is expected anyway.
        floor: Least share of an intent before renormalising.

    Returns:
        (k,) float64 shares that sum to 1.
    """
    shares = torch.bincount(predictions, minlength=k).double() / max(1, len(predictions))
    anchored = shares[:known] if known > 2 else shares  # noqa: PLR2004 - a spread needs three
    spread = shares.new_zeros(())
    if len(anchored) > 1 and anchored.any():
        spread = anchored.var() / anchored.mean().square()
    belief = (1 - size_error**2 / spread.clamp(min=1e-12)).clamp(min=0)
    floored = ((1 - belief) / k + belief * shares).clamp(min=floor)
    return floored / floored.sum()


def vouched_prior(prior: Tensor, shares: Tensor, floor: float = 1e-4) -> Tensor:
    """Put shares that somebody vouches for into a prior; the others share what is left.

    Args:
        prior: (k,) shares.
        shares: (k,) shares to believe, NaN where the prior is to be kept.
        floor: Least share of an intent before renormalising.

    Returns:
        (k,) float64 shares that sum to 1.
    """
    given = shares.isfinite()
    prior, shares = prior.double(), shares.to(prior.device).double()
    given = given.to(prior.device)
    rest = (1 - shares[given].sum()).clamp(min=0)
    others = prior[~given]
    mixed = prior.clone()
    mixed[given] = shares[given]
    mixed[~given] = others / others.sum().clamp(min=1e-12) * rest
    floored = mixed.clamp(min=floor)
    return floored / floored.sum()


def unlabelled_marginal(
    prior: Tensor, labelled_counts: Tensor, n: int, epsilon: float = 1e-3
) -> Tensor:
    """Class marginal nu of the unlabelled rows: what the labelled ones leave of the prior.

    Of the n * beta_j utterances expected of intent j, the labelled ones are accounted for
    already: nu_j is proportional to max(n * beta_j - n_labelled_j, epsilon).

    Args:
        prior: (k,) shares of the intents among all rows.
        labelled_counts: (k,) labelled rows of each intent; 0 for novel intents.
        n: Number of all rows, labelled and unlabelled.
        epsilon: Least expected count of an intent, in rows.

    Returns:
        (k,) float64 shares that sum to 1.

    Raises:
        ValueError: The lengths differ, or more rows are labelled than there are.
    """
    if prior.shape != labelled_counts.shape:
        raise ValueError(
            f"prior has {len(prior)} classes, labelled_counts {len(labelled_counts)}; "
            "give novel intents a count of 0"
        )
    if labelled_counts.sum() > n:
        raise ValueError(f"{int(labelled_counts.sum())} rows are labelled, but n is {n}")
    expected = n * prior.double() - labelled_counts.to(prior.device).double()
    remaining = expected.clamp(min=epsilon)
    return remaining / remaining.sum()
