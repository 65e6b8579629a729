"""Contrast between dropout views, as a stage of its own."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from ronid.config import EncoderConfig
from ronid.encode.encoder import build_encoder
from ronid.losses.contrastive import supervised_contrastive_loss
from ronid.train import dropout_contrast as module
from ronid.train.dropout_contrast import DropoutContrastConfig, batch_parts, dropout_contrast
from ronid.train.heads import projection
from ronid.train.state import Training
from ronid.types import Split
from tests.helpers.toy_corpus import TinyEncoder, Toy, make_toy

CONFIG = DropoutContrastConfig(epochs=2, batch=16, lr=1e-3)


def start(name: str) -> Training:
    config = EncoderConfig(name=name, trainable_layers=1)
    return Training(build_encoder(config, torch.device("cpu"), seed=0))


def run(training: Training, split: Split, config: DropoutContrastConfig, **how: Any) -> None:
    dropout_contrast(training, split, training.encoder.prepare(split.texts), config, **how)


def split_of(labelled: int, unlabelled: int) -> Split:
    targets = np.array([0] * labelled + [-1] * unlabelled, np.int64)
    known = ("intent",) if labelled else ()
    return Split([""] * len(targets), targets, known, 2)


@given(
    labelled=st.integers(0, 40),
    unlabelled=st.integers(0, 40),
    batch=st.integers(1, 30),
    share=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_parts_fill_the_batch_and_never_ask_for_rows_that_are_not_there(
    labelled: int, unlabelled: int, batch: int, share: float
) -> None:
    config = DropoutContrastConfig(batch=batch, supervised_share=share)
    known, free = batch_parts(split_of(labelled, unlabelled), config)
    assert 0 <= known <= labelled
    assert 0 <= free <= unlabelled
    assert known + free <= batch
    if share < 1 and labelled + unlabelled:
        assert known + free > 0


@pytest.mark.parametrize(
    ("labelled", "unlabelled", "share", "expected"),
    [
        (50, 50, 0.5, (8, 8)),
        (3, 50, 0.5, (3, 13)),
        (50, 3, 0.5, (8, 3)),
        (50, 0, 0.5, (16, 0)),
        (0, 50, 0.5, (0, 16)),
        (50, 50, 1.0, (16, 0)),
        (0, 50, 1.0, (0, 0)),
    ],
)
def test_golden_parts(
    labelled: int, unlabelled: int, share: float, expected: tuple[int, int]
) -> None:
    config = DropoutContrastConfig(batch=16, supervised_share=share)
    assert batch_parts(split_of(labelled, unlabelled), config) == expected


def test_both_losses_fall(tiny: TinyEncoder, utterances: Toy) -> None:
    training = start(tiny("bert"))
    head = projection(training, "contrast", 16)
    run(training, utterances.split(), replace(CONFIG, epochs=8, lr=2e-3, batch=64), head=head)
    first, last = training.history[0], training.history[-1]
    assert last["loss_supervised"] < 0.9 * first["loss_supervised"]
    assert last["loss_instance"] < first["loss_instance"]
    assert training.finished == ["contrast"]


def test_loss_is_the_weighted_sum_of_its_parts(tiny: TinyEncoder, few_utterances: Toy) -> None:
    training = start(tiny("bert"))
    run(training, few_utterances.split(), replace(CONFIG, supervised_share=0.3))
    for row in training.history:
        expected = 0.3 * row["loss_supervised"] + 0.7 * row["loss_instance"]
        assert row["loss"] == pytest.approx(expected, rel=1e-5)


def test_supervised_part_sees_labelled_rows_twice_and_no_others(
    tiny: TinyEncoder, few_utterances: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[Tensor, Tensor]] = []

    def note(features: Tensor, positives: Tensor, temperature: float) -> Tensor:
        seen.append((features.detach(), positives))
        return supervised_contrastive_loss(features, positives, temperature)

    monkeypatch.setattr(module, "supervised_contrastive_loss", note)
    split = few_utterances.split()
    run(start(tiny("bert")), split, replace(CONFIG, epochs=1))
    for (features, classes), (everything, index) in zip(seen[::2], seen[1::2], strict=True):
        assert (classes >= 0).all()
        assert torch.equal(classes[:8], classes[8:])
        assert torch.equal(features, everything[:16])
        assert not torch.equal(features[:8], features[8:])  # dropout differs between the views
        torch.testing.assert_close(everything.norm(dim=1), torch.ones(32))
        assert (split.targets[index[16:].numpy()] == -1).all()


def test_a_share_of_one_leaves_unlabelled_rows_out(tiny: TinyEncoder, few_utterances: Toy) -> None:
    training, split = start(tiny("bert")), few_utterances.split()
    run(training, split, replace(CONFIG, supervised_share=1.0), name="supervised")
    assert all("loss_instance" not in row for row in training.history)
    assert [row["stage"] for row in training.history] == ["supervised"] * 2
    assert training.finished == ["supervised"]


def test_nothing_happens_without_labels_at_a_share_of_one(
    tiny: TinyEncoder, few_utterances: Toy
) -> None:
    training = start(tiny("bert"))
    run(training, few_utterances.split(known=0), replace(CONFIG, supervised_share=1.0))
    assert (training.history, training.finished) == ([], [])


def test_without_labels_only_instances_are_told_apart(
    tiny: TinyEncoder, few_utterances: Toy
) -> None:
    training = start(tiny("bert"))
    run(training, few_utterances.split(known=0), CONFIG)
    assert all("loss_supervised" not in row for row in training.history)
    assert np.isfinite([row["loss"] for row in training.history]).all()


def test_held_out_rows_choose_the_epoch(tiny: TinyEncoder, few_utterances: Toy) -> None:
    training, split = start(tiny("bert")), few_utterances.split(dev=20)
    run(training, split, replace(CONFIG, epochs=30, patience=1, lr=1e-2))
    accuracies = [row["dev_accuracy"] for row in training.history]
    assert len(accuracies) < 30
    from ronid.train.held_out import clustered_accuracy, held_out_rows

    kept = clustered_accuracy(training, split, held_out_rows(training, split))
    assert kept["dev_accuracy"] == pytest.approx(max(accuracies))


def test_one_row_has_nothing_to_contrast_and_does_no_harm(tiny: TinyEncoder) -> None:
    training = start(tiny("bert"))
    run(training, make_toy(1, 1).split(known=0), CONFIG)
    assert np.isfinite([row["loss"] for row in training.history]).all()


def test_no_epochs_skip_the_stage(tiny: TinyEncoder, few_utterances: Toy) -> None:
    training = start(tiny("bert"))
    run(training, few_utterances.split(), replace(CONFIG, epochs=0))
    assert (training.history, training.finished) == ([], [])
