"""Neighbour contrast: utterances are pulled to their nearest neighbours before any clustering."""

from collections.abc import Iterator, Mapping

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from ronid.assign.neighbours import nearest_neighbours
from ronid.config import ContrastConfig
from ronid.encode.rows import Rows
from ronid.losses.contrastive import neighbour_mask, supervised_contrastive_loss
from ronid.train.batches import beside_labelled, steps_per_epoch
from ronid.train.likeness import likeness
from ronid.train.loop import Stage, run_epochs
from ronid.train.state import StageState, Training
from ronid.train.step import Picks
from ronid.train.views import view
from ronid.types import IntArray, Split


def contrast(  # noqa: PLR0913 - none follows from another
    training: Training,
    split: Split,
    rows: Rows,
    config: ContrastConfig,
    *,
    length: int = 0,
    head: nn.Module | None = None,
    paired: bool = False,
    judged_at: int = 0,
) -> None:
    """Bring neighbours and rows of the same given intent together.

    Args:
        training: What the stages of this fit share; its encoder is trained.
        split: The problem.
        rows: Its training rows, prepared.
        config: Settings; a `labelled_batch` of 0 leaves out the supervised part.
        length: Neighbours of every row, as far as there are so many; 0 for `list_length`.
        head: Space in which the contrast is made, trained along; None for the features' own.
        paired: Whether a drawn neighbour has the positives of its anchor, not its own.
        judged_at: Number of intents at which words are weighed; 0 for the split's.
    """
    if "contrast" in training.finished or config.epochs == 0 or len(rows) < 3:
        return
    encoder = training.encoder
    state = StageState(encoder, {} if head is None else {"projection": head})
    targets = torch.from_numpy(split.targets).to(encoder.device)
    steps = steps_per_epoch(len(rows), config.batch)
    stage = Stage("contrast", rows, config.epochs, steps, config.lr)

    def refresh(epoch: int) -> Mapping[str, float]:
        if epoch % config.refresh_epochs == 0 or "neighbours" not in state.tensors:
            told = config.discount and epoch == 0  # later features have learned from the labels
            if told:
                points = likeness(encoder, rows, targets, judged_at or split.n_intents)
            else:
                points = encoder.embed_all(rows)
            listed = nearest_neighbours(points, length or list_length(split, config))
            state.put("neighbours", listed)
        return {}

    known = min(config.labelled_batch, len(split.labelled))

    def batches(rng: np.random.Generator) -> Iterator[tuple[IntArray]]:
        neighbours = state.tensors["neighbours"].cpu().numpy()
        for given, anchors in beside_labelled(split.labelled, known, len(rows), config.batch, rng):
            yield (np.concatenate([given, with_neighbours(anchors, neighbours, rng)]),)

    def step(picks: Picks) -> Mapping[str, Tensor]:
        (pick,) = picks
        vectors = view(encoder, rows, pick, config.token_replacement)
        if head is not None:
            vectors = normalize(head(vectors), dim=-1)
        near = neighbour_loss(
            vectors[known:],
            pick.index[known:],
            state.tensors["neighbours"],
            targets,
            config.temperature,
            paired=paired,
        )
        if not known:
            return {"loss": near, "loss_neighbour": near}
        same = supervised_contrastive_loss(
            vectors[:known], targets[pick.index[:known]], config.temperature
        )
        loss = near + config.supervised_weight * same
        return {"loss": loss, "loss_neighbour": near, "loss_supervised": same}

    run_epochs(training, stage, state, batches, step, before_epoch=refresh)
    training.finish("contrast")


def list_length(split: Split, config: ContrastConfig) -> int:
    """Return the length of a neighbour list: a share of the mean intent's size, up to a limit."""
    wanted = round(config.neighbour_share * len(split) / split.n_intents)
    most = min(config.neighbours or wanted, len(split) - 1)
    return max(1, min(wanted, most))


def with_neighbours(anchors: IntArray, neighbours: IntArray, rng: np.random.Generator) -> IntArray:
    """Return the anchors followed by one neighbour of each."""
    drawn = neighbours[anchors, rng.integers(neighbours.shape[1], size=len(anchors))]
    return np.concatenate([anchors, drawn])


def neighbour_loss(  # noqa: PLR0913 - what is contrasted, and what with
    vectors: Tensor,
    index: Tensor,
    neighbours: Tensor,
    targets: Tensor,
    temperature: float,
    *,
    paired: bool = False,
) -> Tensor:
    """Contrast of a batch in which neighbours and equal given intents are positives.

    Args:
        vectors: (2b, d) unit vectors of anchors, and behind them of one neighbour of each.
        index: (2b,) which rows they are.
        neighbours: (n, m) neighbours of every training row.
        targets: (n,) given intents, -1 where there is none.
        temperature: Temperature.
        paired: Whether a neighbour stands for its anchor, with the anchor's positives.
    """
    if paired:
        positive = neighbour_mask(index[: len(index) // 2], neighbours, targets).repeat(2, 2)
    else:
        positive = neighbour_mask(index, neighbours, targets)
    return supervised_contrastive_loss(vectors, positive, temperature)
