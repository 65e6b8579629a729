"""Reconstruction: an auto-encoder learns a short code from which its input can be rebuilt."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor
from torch.nn import functional

from ronid.encode.autoencoder import CodeHead, Decoder, live_units
from ronid.encode.encoder import Encoder
from ronid.encode.rows import Pick, Rows
from ronid.errors import RonidWarning, UsageError
from ronid.train.batches import one_pass, steps_per_epoch
from ronid.train.loop import Stage, run_epochs, seeded
from ronid.train.optim import tensor_cores
from ronid.train.state import StageState, Training, head_weights
from ronid.train.step import Picks


@dataclass(frozen=True)
class ReconstructConfig:
    """Reconstruction of an auto-encoder's input, the published start of methods on short codes.

    Args:
        epochs: Passes over all rows; 0 leaves the first weights as they are.
        batch: Rows per step.
        lr: Learning rate.
    """

    epochs: int = 5_000
    batch: int = 4_096
    lr: float = 1e-3


def reconstruct(training: Training, rows: Rows, config: ReconstructConfig) -> Decoder:
    """Train the encoder's `code` head together with a decoder, and return the decoder.

    What is rebuilt is the output of the frozen backbone: tf-idf vectors, pooled vectors of a
    transformer, or given embeddings.

    Args:
        training: What the stages of this fit share; the head of its encoder is trained.
        rows: The training rows, prepared.
        config: Settings.

    Raises:
        UsageError: The encoder makes no code, or not from what is rebuilt.
    """
    encoder = training.encoder
    head = _code_head(encoder)
    with seeded(encoder.device, training.seed, "decoder"):
        decoder = Decoder(head.dim, head.widths).to(encoder.device)
    if "reconstruct" in training.finished:
        training.recall("decoder", decoder)
        return decoder
    if not config.epochs:
        return decoder
    steps = steps_per_epoch(len(rows), config.batch)
    stage = Stage("reconstruct", rows, config.epochs, steps, config.lr)

    def step(picks: Picks) -> Mapping[str, Tensor]:
        (pick,) = picks
        return {"loss": rebuilding_loss(encoder, decoder, rows, pick, encoder(rows, pick))}

    def after_epoch(epoch: int) -> Mapping[str, float]:
        last = epoch == config.epochs - 1  # only then: it takes all rows
        return {"live_units": live_units(encoder.embed_all(rows))} if last else {}

    state = StageState(encoder, {"decoder": decoder})
    batches = one_pass(len(rows), config.batch)
    with tensor_cores(encoder.device):
        run_epochs(training, stage, state, batches, step, after_epoch=after_epoch)
    training.finish("reconstruct", head_weights(state.heads))
    _warn_of_dead_units(head.code_dim, training.history[-1]["live_units"])
    return decoder


def rebuilding_loss(
    encoder: Encoder, decoder: Decoder, rows: Rows, pick: Pick, codes: Tensor
) -> Tensor:
    """Return the squared error, mean over rows and columns, of the input rebuilt from codes.

    Args:
        encoder: Whose backbone gives the input.
        decoder: Rebuilds it.
        rows: The training rows, prepared.
        pick: Rows of the batch.
        codes: (b, c) their codes.
    """
    inputs = encoder.backbone(rows, pick)  # (b, d)
    return functional.mse_loss(decoder(codes), inputs)


def _code_head(encoder: Encoder) -> CodeHead:
    """Return what makes the code, refusing an encoder whose input would move with it."""
    if encoder.head is None or not isinstance(encoder.head.layers, CodeHead):
        raise UsageError(
            "this method clusters the code of an auto-encoder; set encoder.head = code"
        )
    if encoder.backbone.trainable_layers or encoder.adapter is not None:
        raise UsageError(
            "an auto-encoder rebuilds what a frozen encoder says; set encoder.trainable_layers "
            "and encoder.adapter_width to 0"
        )
    return encoder.head.layers


def _warn_of_dead_units(width: int, live: int) -> None:
    """Say how many units of the code are lost."""
    dead = width - live
    if dead:
        warnings.warn(
            f"{dead} of {width} units of the code are 0 for every utterance, so that clusters are "
            "found with the others only; try another seed or a lower reconstruct.lr",
            RonidWarning,
            stacklevel=3,
        )
