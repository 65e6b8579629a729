"""Held-out utterances of known intents: how an encoder is judged while it is trained."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from ronid.config import EncoderConfig
from ronid.encode.encoder import build_encoder
from ronid.train.held_out import agreement, clustered_accuracy, held_out_rows
from ronid.train.state import Training
from ronid.types import Split

CORNERS = 5 * np.eye(3, 4, dtype=np.float32)


def problem(dev: int) -> Split:
    """Three known intents whose held-out rows lie in three corners."""
    classes = np.arange(dev) % 3
    return Split(
        texts=[""] * 3,
        targets=np.arange(3),
        known=("a", "b", "c"),
        n_intents=5,
        dev_texts=[""] * dev,
        dev_targets=classes,
        embeddings=CORNERS,
        dev_embeddings=CORNERS[classes] + np.linspace(0, 0.1, dev, dtype=np.float32)[:, None],
    )


def training_of() -> Training:
    config = EncoderConfig(trainable_layers=0, normalise=False)
    return Training(build_encoder(config, torch.device("cpu"), seed=0, given_dim=4), 0)


def test_clusters_that_are_the_intents_score_full() -> None:
    training, split = training_of(), problem(12)
    rows = held_out_rows(training, split)
    assert clustered_accuracy(training, split, rows) == {"dev_accuracy": 100.0}
    mixed = replace(split, dev_targets=np.array([0, 0, 0, 1, 1, 1, 2, 2, 2, 0, 1, 2]))
    assert clustered_accuracy(training, mixed, rows)["dev_accuracy"] < 70


@pytest.mark.parametrize("dev", [0, 2])
def test_too_few_rows_say_nothing(dev: int) -> None:
    training, split = training_of(), problem(dev)
    rows = held_out_rows(training, split)
    assert (rows is None) == (dev == 0)
    assert clustered_accuracy(training, split, rows) == {}


def test_agreement_is_blind_to_the_numbers_of_labels() -> None:
    split = problem(9)
    assert agreement(split, (split.dev_targets + 1) % 3)["dev_nmi"] == pytest.approx(100.0)
    assert agreement(split, np.zeros(9, np.int64))["dev_nmi"] == pytest.approx(0.0)
