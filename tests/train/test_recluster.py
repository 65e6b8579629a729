"""Clusters anew every epoch: their numbers, what changed, and the loss they are learnt by."""

import numpy as np
import pytest
import torch
from torch import Tensor

from ronid.config import EncoderConfig
from ronid.encode.encoder import build_encoder
from ronid.train.recluster import cluster_loss, recluster
from ronid.train.state import StageState, Training

CPU = torch.device("cpu")


@pytest.fixture
def training() -> Training:
    config = EncoderConfig(trainable_layers=0, head="tanh", normalise=False)
    return Training(build_encoder(config, CPU, seed=0, given_dim=3))


@pytest.fixture
def state(training: Training) -> StageState:
    return StageState(training.encoder, {"classes": torch.nn.Linear(3, 4)})


def blobs(seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    centres = 50 * torch.tensor([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    return centres.repeat(20, 1) + torch.randn(80, 3, generator=generator)


def test_first_clustering_has_nothing_to_compare(training: Training, state: StageState) -> None:
    assert recluster(training, state, blobs(), 4, 0) == {}
    assert state.tensors["labels"].shape == (80,)
    assert state.tensors["centroids"].shape == (4, 3)


@pytest.mark.parametrize("align", [True, False])
def test_rows_that_move_are_counted(training: Training, state: StageState, align: bool) -> None:
    points = blobs()
    recluster(training, state, points, 4, 0, align=align)
    assert recluster(training, state, points, 4, 1, align=align) == {"changed": 0.0}
    points[:8] = points[1]  # six of them come from other clusters
    assert recluster(training, state, points, 4, 2, align=align)["changed"] == pytest.approx(6 / 80)


def test_aligned_clusters_keep_their_numbers_and_storage(
    training: Training, state: StageState
) -> None:
    recluster(training, state, blobs(), 4, 0)
    held = state.tensors["labels"]
    before = held.clone()
    recluster(training, state, blobs(seed=1), 4, 1)
    assert state.tensors["labels"] is held
    assert held.equal(before)


def test_without_alignment_every_epoch_has_other_numbers(
    training: Training, state: StageState
) -> None:
    seen = set()
    for epoch in range(6):
        recluster(training, state, blobs(), 4, epoch, align=False, n_init=1)
        seen.add(tuple(state.tensors["labels"].tolist()))
    assert len(seen) > 1


def test_loss_is_the_cross_entropy_of_the_clusters(training: Training, state: StageState) -> None:
    points = blobs()
    rows = training.encoder.prepare(points.numpy())
    training.encoder.train(False)
    recluster(training, state, points, 4, 0)
    index = np.array([3, 77, 5])
    head, labels = state.heads["classes"], state.tensors["labels"]
    shares = head(training.encoder(rows, index)).softmax(dim=-1)
    expected = -shares[torch.arange(3), labels[index]].log().mean()
    found = cluster_loss(state, rows, rows.pick(index, CPU))
    torch.testing.assert_close(found, expected)
