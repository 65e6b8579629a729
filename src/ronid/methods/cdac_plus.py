"""CDAC+ (Lin et al., AAAI 2020): adaptive clustering with given pairs, then refined by itself.

    pairs   the thresholds of DAC; given intents decide about pairs of labelled utterances
    refine  k-means centres of the logits, and a soft assignment to them that learns from its
            surest part, as in DEC (Xie et al., 2016)

The intent of an utterance is its most probable centre.

Constants are those of the authors' code. What is done otherwise, or was a guess:

- their refinement is stopped by agreement with the true labels of the training set, here by that
  with held-out utterances of known intents, and the best epoch is kept in any case;
- a later port updates weights that no optimiser owns any more, and averages the divergence over
  centres as well, so that its refinement does nothing; here it is the mean over rows, and centres
  and encoder move together;
- few labels change while the learning rate is still rising, so that this stops nothing yet;
- centres come from k-means over all rows with 10 restarts, as theirs did, not the raw ones only;
- masked mean, new layers, dropout, moments of Adam and batches as in `ronid.methods.dac`, the
  constant u - l is left out; centres do not decay.

Published as semi-supervised. Nothing in it needs a label, though: without any it is DAC followed by
the refinement, so it is not refused.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ronid.config import EncoderConfig, OptimiserConfig
from ronid.encode.rows import Rows
from ronid.train.batches import one_pass, steps_per_epoch
from ronid.train.heads import Centres
from ronid.train.held_out import agreement, held_out_rows
from ronid.train.infer import gather
from ronid.train.loop import Stage
from ronid.train.optim import warmup_epochs
from ronid.train.pairs import PairsConfig, learn_pairs
from ronid.train.self_train import sharpen
from ronid.train.state import Training, inputs_of
from ronid.train.stopping import BestEpoch, FirstOf, SettledLabels
from ronid.types import Discovery, Split


@dataclass(frozen=True)
class GivenPairsConfig(PairsConfig):
    """Settings of learning from pairs, given ones among them.

    Args:
        labelled_weight: Weight of the loss in the pass over the labelled rows.
    """

    labelled_weight: float = 5.0


@dataclass(frozen=True)
class RefineConfig:
    """Settings of the refinement.

    Args:
        epochs: Upper bound; 0 takes the centres of k-means as they are.
        lr: Learning rate.
        batch: Rows per step.
        restarts: Starts of k-means.
        stop_change: Stop when fewer labels than this share change in an epoch ...
        patience: ... or when held-out utterances agree no better for so many epochs.
    """

    epochs: int = 100
    lr: float = 5e-5
    batch: int = 256
    restarts: int = 10
    stop_change: float = 1e-3
    patience: int = 5


@dataclass(frozen=True)
class Config:
    """Settings of CDAC+.

    Args:
        pairs: How pairs are told apart and learnt from.
        refine: How the clusters are refined.
    """

    method: str = "cdac_plus"
    preset: str = "published"
    encoder: EncoderConfig = field(
        default_factory=lambda: EncoderConfig(
            trainable_layers=1, head="tanh_logits", normalise=False
        )
    )
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    pairs: GivenPairsConfig = field(default_factory=GivenPairsConfig)
    refine: RefineConfig = field(default_factory=RefineConfig)

    @property
    def holds_out(self) -> bool:
        """Only the refinement is stopped by held-out labels."""
        return self.refine.epochs > 0


def fit(split: Split, config: Config, training: Training) -> Discovery:
    """Discover the intents of `split`."""
    rows = training.encoder.prepare(inputs_of(split), training.progress)
    learn_pairs(training, split, rows, config.pairs, labelled_weight=config.pairs.labelled_weight)
    centres = refine(training, split, rows, config.refine)
    return gather(training, split, rows, centres)


def refine(training: Training, split: Split, rows: Rows, config: RefineConfig) -> Tensor:
    """Sharpen the soft assignment to the centres of k-means; return them, known intents first.

    Args:
        training: What the stages of this fit share; its encoder is trained.
        split: The problem.
        rows: Its training rows, prepared.
        config: Settings.
    """
    encoder, dev_rows = training.encoder, held_out_rows(training, split)
    after = warmup_epochs(config.epochs, training.optimiser)
    stopper = FirstOf(
        (BestEpoch("dev_nmi", config.patience), SettledLabels(config.stop_change, 1, after))
    )
    steps = steps_per_epoch(len(rows), config.batch)
    stage = Stage("refine", rows, config.epochs, steps, config.lr, stopper)

    @torch.no_grad()
    def look(centres: Centres) -> Mapping[str, float]:
        if dev_rows is None:
            return {}
        predicted = centres(encoder.embed_all(dev_rows)).argmax(dim=1)
        return agreement(split, predicted.cpu().numpy())

    batches = one_pass(len(rows), config.batch)
    return sharpen(training, split, stage, batches, restarts=config.restarts, look=look)
