"""Pre-training: cross-entropy on labelled rows, masked language model on all rows (Eq. 2)."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from ronid.config import PretrainConfig
from ronid.encode.language_head import TiedHead, language_head
from ronid.encode.rows import B, Pick, Rows, TokenRows
from ronid.encode.transformer import TransformerBackbone
from ronid.errors import UsageError
from ronid.losses.contrastive import supervised_contrastive_loss
from ronid.losses.language_model import hidden_tokens, language_model_loss, mask_tokens
from ronid.train.batches import cycled_batches, one_pass, steps_per_epoch
from ronid.train.held_out import held_out_rows
from ronid.train.loop import Stage, run_epochs, seeded
from ronid.train.state import StageState, Training, head_weights, inputs_of
from ronid.train.step import Picks
from ronid.train.stopping import by_held_out
from ronid.train.views import reader_of, untouchable
from ronid.types import IntArray, Split

LANGUAGE_HEAD = "language_head"
LANGUAGE_HEAD_LR = 1e-3


def pretrain_layers(
    training: Training,
    split: Split,
    config: PretrainConfig,
    trainable_layers: int,
    *,
    keep_classes: bool = False,
    language_head_epochs: int = 0,
) -> None:
    """Pre-train the layers that the section names, then make those of the next stages trainable.

    Args:
        training: What the stages of this fit share.
        split: The problem.
        config: Settings.
        trainable_layers: Layers trained after this stage.
        keep_classes: Whether the head of the known classes is kept, as `classes`.
        language_head_epochs: Passes that train a head for masked words alone before.
    """
    if not config.epochs or "pretrain" in training.finished:
        return
    encoder = training.encoder
    encoder.backbone.set_trainable(config.trainable_layers)
    rows = encoder.prepare(inputs_of(split), training.progress)
    dev_rows = held_out_rows(training, split)
    learn_language_head(training, rows, config, language_head_epochs)
    pretrain(training, split, rows, dev_rows, config, keep_classes=keep_classes)
    encoder.backbone.set_trainable(trainable_layers)


def pretrain(  # noqa: PLR0913 - the problem, its rows, and what is kept
    training: Training,
    split: Split,
    rows: Rows,
    dev_rows: Rows | None,
    config: PretrainConfig,
    *,
    keep_classes: bool = False,
) -> None:
    """Give the encoder what labels and raw text teach, before any pseudo-label exists.

    Args:
        training: What the stages of this fit share; its encoder is trained.
        split: The problem.
        rows: Its training rows, prepared.
        dev_rows: Its held-out rows, prepared, or None.
        config: Settings.
        keep_classes: Whether the head of the known classes is kept, as `classes`.
    """
    if "pretrain" in training.finished or config.epochs == 0:
        return
    encoder = training.encoder
    state = StageState(encoder, _heads(training, split, rows, config))
    if not state.heads:  # neither labels nor language to learn from
        return
    has_dev = dev_rows is not None and "classes" in state.heads
    labelled = split.labelled if "classes" in state.heads else split.labelled[:0]
    size = config.labelled_batch
    epochs, stopper = by_held_out(
        "dev_accuracy",
        has_dev,
        epochs=config.epochs,
        patience=config.patience,
        without=config.epochs_without_dev,
    )
    stage = Stage(
        name="pretrain",
        rows=rows,
        epochs=epochs,
        steps=(
            steps_per_epoch(len(labelled), size)
            if len(labelled) and config.epoch_rows == "labelled"
            else steps_per_epoch(len(rows), config.language_batch)
        ),
        lr=config.lr,
        stopper=stopper,
    )

    targets = torch.from_numpy(split.targets).to(encoder.device)

    def batches(rng: np.random.Generator) -> Iterator[tuple[IntArray, IntArray]]:
        classified = cycled_batches(labelled, size, rng)
        reads = {"language", "contrast"} & state.heads.keys()
        raw = np.arange(len(rows)) if reads else labelled[:0]
        read = cycled_batches(raw, config.language_batch, rng)
        for _ in range(stage.steps):
            yield next(classified), next(read)

    def step(picks: Picks) -> Mapping[str, Tensor]:
        classified, read = picks
        losses: dict[str, Tensor] = {}
        if "classes" in state.heads and len(classified):
            logits = state.heads["classes"](encoder.pooled(rows, classified))
            losses["loss_ce"] = functional.cross_entropy(logits.float(), targets[classified.index])
        if "language" in state.heads:
            loss = _language_loss(state, rows, read, config.mask_probability)
            losses["loss_mlm"] = loss * config.language_weight
        if "contrast" in state.heads:
            loss = _contrast_loss(state, rows, picks, targets, config.contrast_temperature)
            losses["loss_contrast"] = loss * config.contrast_weight
        return {"loss": torch.stack(list(losses.values())).sum(), **losses}

    def dev_accuracy(_: int) -> dict[str, Any]:
        if dev_rows is None or not has_dev:
            return {}
        return {"dev_accuracy": _accuracy(training, state, dev_rows, split.dev_targets)}

    run_epochs(training, stage, state, batches, step, after_epoch=dev_accuracy)
    kept = ["classes"] if keep_classes and "classes" in state.heads else []
    training.finish("pretrain", head_weights({name: state.heads[name] for name in kept}))


def learn_language_head(
    training: Training, rows: Rows, config: PretrainConfig, epochs: int
) -> None:
    """Train a new head for masked words while the encoder stands still.

    The first gradients of a new head say nothing about the encoder, but are far longer than those
    of the labels. A head that the checkpoint brought along is left as it is.

    Args:
        training: What the stages of this fit share; it keeps the head, as `language`.
        rows: The training rows, prepared.
        config: Settings of pre-training.
        epochs: Passes over all rows.
    """
    if LANGUAGE_HEAD in training.finished or not (epochs and config.language_weight):
        return
    backbone = reader_of(training.encoder, rows, "language_head_epochs")
    with seeded(training.encoder.device, training.seed, LANGUAGE_HEAD):
        head = language_head(backbone)
    if isinstance(head, TiedHead):
        state = StageState(training.encoder, {"language": head})
        steps = steps_per_epoch(len(rows), config.language_batch)
        stage = Stage(LANGUAGE_HEAD, rows, epochs, steps, LANGUAGE_HEAD_LR)

        def step(picks: Picks) -> Mapping[str, Tensor]:
            return {"loss": _language_loss(state, rows, picks[0], config.mask_probability)}

        backbone.set_trainable(0)
        run_epochs(training, stage, state, one_pass(len(rows), config.language_batch), step)
        backbone.set_trainable(config.trainable_layers)
    training.finish(LANGUAGE_HEAD, head_weights({"language": head}))


def _heads(
    training: Training, split: Split, rows: Rows, config: PretrainConfig
) -> dict[str, nn.Module]:
    """Return the heads this stage trains: known classes where there are any, masked words."""
    encoder = training.encoder
    heads: dict[str, nn.Module] = {}
    with seeded(encoder.device, training.seed, "pretrain heads"):
        if split.known and config.cross_entropy:
            linear = nn.Linear(encoder.dim, len(split.known))
            heads["classes"] = nn.Sequential(nn.Dropout(config.head_dropout), linear)
        if config.contrast_weight:
            heads["contrast"] = nn.Linear(encoder.dim, split.n_intents)
        if config.language_weight and isinstance(rows, TokenRows):
            assert isinstance(encoder.backbone, TransformerBackbone)
            if encoder.backbone.tokenizer.mask_token_id is None:
                raise UsageError(
                    f"encoder '{encoder.name}' has no mask token; set pretrain.language_weight to 0"
                )
            heads["language"] = language_head(encoder.backbone)
            training.recall("language", heads["language"])
    heads = {name: head.to(encoder.device).requires_grad_(True) for name, head in heads.items()}
    # A checkpoint's own head shares the word embeddings: those are the encoder's to freeze.
    encoder.backbone.set_trainable(encoder.backbone.trainable_layers)
    return heads


def _language_loss(state: StageState, rows: Rows, pick: Pick, probability: float) -> Tensor:
    """Return the second term of Eq. 2 for the rows of `pick`.

    Masked inputs run all layers, the frozen ones without gradient.
    """
    backbone = reader_of(state.encoder, rows, "pretrain.language_weight")
    assert isinstance(rows, TokenRows)
    tokenizer = backbone.tokenizer
    drawn: list[Tensor] = []

    def mask(batch: B) -> B:
        masked, labels = mask_tokens(
            batch.ids,
            untouchable(backbone, batch),
            mask_id=tokenizer.mask_token_id,
            vocab_size=len(tokenizer),
            probability=probability,
        )
        drawn.append(labels.flatten())
        return batch.with_ids(masked)

    hidden = backbone.states(rows, pick, mask)
    chosen = hidden_tokens(drawn[0], probability)
    with backbone.autocast():  # only masked tokens reach the large matrix
        logits = state.heads["language"](hidden[chosen])  # (m, v)
    return language_model_loss(logits, drawn[0][chosen])


def _contrast_loss(
    state: StageState, rows: Rows, picks: Picks, targets: Tensor, temperature: float
) -> Tensor:
    """Return the contrast between two dropout views of all picked rows."""
    index = torch.cat([pick.index for pick in picks])
    # A row without a given intent has only its other view for a positive: its number is its class.
    classes = torch.where(targets[index] >= 0, targets[index], len(targets) + index)
    views = [state.encoder.pooled(rows, pick) for _ in range(2) for pick in picks if len(pick)]
    vectors = functional.normalize(state.heads["contrast"](torch.cat(views)), dim=-1)
    return supervised_contrastive_loss(vectors, classes.repeat(2), temperature)


@torch.no_grad()
def _accuracy(
    training: Training, state: StageState, dev_rows: Rows, dev_targets: IntArray
) -> float:
    """Return the share, in percent, of held-out rows whose known intent is recognised."""
    encoder, head = training.encoder, state.heads["classes"]
    encoder.train(False)
    head.train(False)
    right = 0
    for start in range(0, len(dev_rows), 512):
        index = np.arange(start, min(start + 512, len(dev_rows)))
        predicted = head(encoder.pooled(dev_rows, index)).argmax(-1).cpu().numpy()
        right += int((predicted == dev_targets[index]).sum())
    return 100.0 * right / len(dev_rows)
