"""DCN (Yang et al., ICML 2017): a code that can be rebuilt and that k-means likes.

After the stacked auto-encoder of SAE-KM and k-means over its codes, every batch

    1  gets the nearest centre of each code,
    2  moves each centre k by its codes z, one after the other: c_k += 1, mu_k += (z - mu_k) / c_k,
    3  trains the network by lambda |x - x'|^2 + beta / 2 |z - mu|^2, mean over rows.

A new utterance gets the nearest centre.

The figures that are usually printed for DCN come from code that trains another loss, IDEC (Guo et
al., IJCAI 2017): the self-training of DEC plus 0.1 times the mean squared error of reconstruction.
That is the setting `loss = "idec"`; all else is then as in DEC.

The input is tf-idf by default, counts of words as behind the printed figures; the rows of the
benchmark's table read the vectors of the frozen encoder instead, as those of SAE-KM.

Differences from the published code of DCN, beside those of SAE-KM: the auto-encoder and its first
training are those of SAE-KM, as DCN's were made for images; so is the optimiser of the second
stage, without weight decay (5e-4 there); both squares are sums over columns, as in the paper.
Labels only say which clusters the known intents are.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from ronid.assign.kmeans import nearest_centroid
from ronid.assign.start import known_first
from ronid.config import EncoderConfig, OptimiserConfig
from ronid.encode.autoencoder import Decoder
from ronid.encode.rows import Rows
from ronid.methods.sae_kmeans import code_encoder, keras_adam
from ronid.train.batches import one_pass, steps_per_epoch
from ronid.train.clusters import cluster_rows
from ronid.train.infer import gather
from ronid.train.loop import Stage, run_epochs
from ronid.train.reconstruct import ReconstructConfig, rebuilding_loss, reconstruct
from ronid.train.self_train import SelfTrainConfig, self_train
from ronid.train.state import StageState, Training, inputs_of
from ronid.train.step import Picks
from ronid.types import Discovery, Split


@dataclass(frozen=True)
class ClusterConfig:
    """The stage that trains codes and centres together.

    Args:
        restarts: Restarts of the k-means that gives the first centres.
        epochs: Passes over all rows.
        batch: Rows per step.
        lr: Learning rate.
        reconstruction_weight: lambda.
        distance_weight: beta.
        first_count: c_k at the start; the larger, the slower centres move.
    """

    restarts: int = 20
    epochs: int = 100
    batch: int = 256
    lr: float = 1e-4
    reconstruction_weight: float = 1.0
    distance_weight: float = 1.0
    first_count: float = 100.0


@dataclass(frozen=True)
class Config:
    """Settings of DCN.

    Args:
        loss: `dcn`, or `idec` for what is usually called DCN.
        reconstruct: The stage that trains the auto-encoder.
        cluster: The stage after it, for `dcn`.
        self_train: The stage after it, for `idec`.
    """

    method: str = "dcn"
    preset: str = "published"
    encoder: EncoderConfig = field(default_factory=code_encoder)
    optimiser: OptimiserConfig = field(default_factory=keras_adam)
    loss: Literal["dcn", "idec"] = "dcn"
    reconstruct: ReconstructConfig = field(default_factory=ReconstructConfig)
    cluster: ClusterConfig = field(default_factory=ClusterConfig)
    self_train: SelfTrainConfig = field(
        default_factory=lambda: SelfTrainConfig(reconstruction_weight=0.1)
    )

    holds_out = False


def fit(split: Split, config: Config, training: Training) -> Discovery:
    """Discover the intents of `split`."""
    rows = training.encoder.prepare(inputs_of(split), training.progress)
    decoder = reconstruct(training, rows, config.reconstruct)
    if config.loss == "idec":
        centres = self_train(training, split, rows, config.self_train, decoder)
    else:
        centres = cluster(training, split, rows, config.cluster, decoder)
    return gather(training, split, rows, centres)


def cluster(
    training: Training, split: Split, rows: Rows, config: ClusterConfig, decoder: Decoder
) -> Tensor:
    """Train codes and centres together, and return the (k, d) centres, known intents first.

    Args:
        training: What the stages of this fit share; its encoder is trained.
        split: The problem.
        rows: Its training rows, prepared.
        config: Settings.
        decoder: Trained too.
    """
    encoder = training.encoder
    state = StageState(encoder, {"decoder": decoder})
    steps = steps_per_epoch(len(rows), config.batch)
    stage = Stage("cluster", rows, config.epochs, steps, config.lr)

    def begin(_: int) -> Mapping[str, float]:
        if "centres" not in state.tensors:
            codes = encoder.embed_all(rows)
            found = cluster_rows(training, split, codes, "start", n_init=config.restarts)
            state.put("centres", found.centroids)
            state.put("counts", torch.full((split.n_intents,), config.first_count))
        return {}

    def step(picks: Picks) -> Mapping[str, Tensor]:
        (pick,) = picks
        codes = encoder(rows, pick)
        fixed, centres = codes.detach(), state.tensors["centres"]
        labels = nearest_centroid(fixed, centres)
        moved, counts = running_means(centres, state.tensors["counts"], fixed, labels)
        state.put("centres", moved)
        state.put("counts", counts)
        gaps = (codes - moved[labels]).square().sum(dim=1).mean() / 2
        rebuilt = rebuilding_loss(encoder, decoder, rows, pick, codes) * decoder.dim
        loss = config.reconstruction_weight * rebuilt + config.distance_weight * gaps
        return {"loss": loss, "loss_rebuilt": rebuilt, "loss_distance": gaps}

    batches = one_pass(len(rows), config.batch)
    run_epochs(training, stage, state, batches, step, before_epoch=begin)
    begin(0)  # without a single epoch, the first centres are the answer
    # The clusters have moved since k-means named those of the known intents.
    return known_first(state.tensors["centres"], encoder.embed_all(rows), split)


def running_means(
    centres: Tensor, counts: Tensor, points: Tensor, labels: Tensor
) -> tuple[Tensor, Tensor]:
    """Return centres and counts after every point has pulled at its centre.

    Taking the points one by one, c += 1 and mu += (z - mu) / c, gives the mean of all of them and
    of c times the first centre, whatever their order; that is what is computed.

    Args:
        centres: (k, d).
        counts: (k,) how many points each stands for.
        points: (b, d).
        labels: (b,) centre of each point.
    """
    classes = torch.arange(len(centres), device=labels.device)
    member = (labels[:, None] == classes).to(points)  # (b, k)
    new = counts + member.sum(dim=0)
    moved = (counts[:, None] * centres + member.T @ points) / new.clamp(min=1)[:, None]
    return torch.where((new > counts)[:, None], moved, centres), new
