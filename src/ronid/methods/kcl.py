"""KCL: clusters learnt from pairs, which a network taught by the known intents tells apart.

Hsu et al., Learning to Cluster in Order to Transfer across Domains and Tasks (ICLR 2018), for text
as in TEXTOIR. First a similarity network learns from pairs of labelled rows whether two utterances
share an intent. Then a new network of one output per intent learns from what the first says of all
pairs of a batch: equal class distributions where they are alike, different ones elsewhere; and
cross-entropy of the labelled rows of the batch. A new utterance gets the intent of its largest
output; features are the outputs at length 1, and the prototypes are the axes, put in the order in
which labelled rows say that known intents come first. As in DAC, a known intent may end up with an
output that is no utterance's largest: labelled ones keep it, a new one never gets it.

Deviations. Pairs of an utterance with itself are left out of both losses: with 150 intents they
would be half of all pairs that are alike. The similarity network normalises by the batch at hand
always, where the published one has running statistics for inference. Its training stops by the
average precision of the pairs that are alike, in place of accuracy over all pairs: with many
intents so few are alike that a network which never says so is hardly worse than a good one. Batches
are shuffled, and the best epoch is taken back whether or not patience ran out. Features are the
masked mean; the published one averages padding too. The moments of Adam are corrected, there not.
Dropout is on in the layers that are trained only, there in all (`encoder.frozen_dropout`).

A fit that is killed goes on with the similarity network that it had: the first stage leaves its
weights in `Training.kept`, which every later checkpoint holds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ronid.config import EncoderConfig, OptimiserConfig
from ronid.encode.rows import Rows
from ronid.losses.known import known_cross_entropy
from ronid.losses.pairwise import pair_divergence_loss
from ronid.train.batches import one_pass, some_steps, steps_per_epoch
from ronid.train.held_out import agreement, held_out_rows
from ronid.train.infer import check_outputs, gather_by_output
from ronid.train.loop import Stage, run_epochs
from ronid.train.similarity import SimilarityNetwork, pair_loss, pair_precision, similarity_network
from ronid.train.state import StageState, Training, inputs_of
from ronid.train.step import Picks
from ronid.train.stopping import by_held_out
from ronid.types import Discovery, Split


@dataclass(frozen=True)
class Config:
    """Settings of KCL, the same for both networks.

    Args:
        epochs: Upper bound; one pass over labelled rows, or over all in the second stage.
        patience: Epochs without a better figure of the held-out rows before stopping.
        epochs_without_dev: Epochs to run when no held-out rows exist.
        lr: Learning rate.
        batch: Rows per step; every two of them are a pair.
        margin: Divergence from which a pair that is not alike is left alone.
    """

    method: str = "kcl"
    preset: str = "published"
    encoder: EncoderConfig = field(default_factory=lambda: EncoderConfig(head="relu_logits"))
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    epochs: int = 100
    patience: int = 10
    epochs_without_dev: int = 30
    lr: float = 5e-5
    batch: int = 128
    margin: float = 2.0

    holds_out = True


def fit(split: Split, config: Config, training: Training) -> Discovery:
    """Discover the intents of `split`."""
    encoder = training.encoder
    check_outputs(encoder, split)
    rows = encoder.prepare(inputs_of(split), training.progress)
    dev_rows = held_out_rows(training, split)
    network = learn_similarity(training, split, rows, dev_rows, config)
    learn_clusters(training, split, rows, dev_rows, network, config)
    return gather_by_output(training, split, rows)


def learn_similarity(
    training: Training, split: Split, rows: Rows, dev_rows: Rows | None, config: Config
) -> SimilarityNetwork:
    """Return a network that has learnt from labelled rows which pairs are alike."""
    network = similarity_network(training, config.encoder)
    if "similarity" in training.finished:
        network.load(training.kept)
        return network
    # The encoder that is trained later is part of every checkpoint, so it is here too: without a
    # gradient it stays what it is.
    state = StageState(training.encoder, {"similarity": network})
    stage = Stage(
        name="similarity",
        rows=rows,
        steps=steps_per_epoch(len(split.labelled), config.batch),
        **_length("dev_precision", dev_rows, config),
    )
    targets = torch.from_numpy(split.targets).to(training.encoder.device)

    def step(picks: Picks) -> Mapping[str, Tensor]:
        (pick,) = picks
        return {"loss": pair_loss(network(rows, pick), targets[pick.index], pick.index)}

    def dev_precision(_: int) -> Mapping[str, float]:
        if dev_rows is None:
            return {}
        return pair_precision(network, dev_rows, split.dev_targets, config.batch)

    batches = some_steps(split.labelled, config.batch, stage.steps)
    run_epochs(training, stage, state, batches, step, after_epoch=dev_precision)
    training.finish("similarity", network.trained())
    network.train(False)
    return network


def learn_clusters(
    training: Training,
    split: Split,
    rows: Rows,
    dev_rows: Rows | None,
    network: SimilarityNetwork,
    config: Config,
) -> None:
    """Train the encoder's outputs by what `network` says of the pairs of a batch."""
    encoder = training.encoder
    stage = Stage(
        name="clusters",
        rows=rows,
        steps=steps_per_epoch(len(rows), config.batch),
        **_length("dev_nmi", dev_rows, config),
    )
    targets = torch.from_numpy(split.targets).to(encoder.device)
    vectors = network.encoder.embed_all(rows)  # once: this network learns no more

    def step(picks: Picks) -> Mapping[str, Tensor]:
        (pick,) = picks
        with torch.no_grad():
            alike = network.head(vectors[pick.index]).argmax(-1) == 1
        logits, given = encoder.pooled(rows, pick), targets[pick.index]
        pairs = pair_divergence_loss(logits, alike, config.margin, pick.index)
        labelled = known_cross_entropy(logits, given)
        return {"loss": pairs + labelled, "loss_pairs": pairs, "loss_ce": labelled}

    def dev_nmi(_: int) -> Mapping[str, float]:
        if dev_rows is None:
            return {}
        return agreement(split, encoder.embed_all(dev_rows).argmax(-1).cpu().numpy())

    batches = one_pass(len(rows), config.batch)
    run_epochs(training, stage, StageState(encoder), batches, step, after_epoch=dev_nmi)


def _length(figure: str, dev_rows: Rows | None, config: Config) -> dict[str, Any]:
    """Return how long a stage lasts, and its learning rate."""
    epochs, stopper = by_held_out(
        figure,
        dev_rows is not None,
        epochs=config.epochs,
        patience=config.patience,
        without=config.epochs_without_dev,
    )
    return {"epochs": epochs, "lr": config.lr, "stopper": stopper}
