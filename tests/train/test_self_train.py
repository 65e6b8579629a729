"""Self-training: centres and features move towards their own surest assignments."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from ronid.config import EncoderConfig, OptimiserConfig
from ronid.encode.autoencoder import Decoder
from ronid.encode.encoder import build_encoder
from ronid.losses.student_t import student_t
from ronid.metrics import clustering_accuracy
from ronid.train import self_train as module
from ronid.train.heads import Centres
from ronid.train.self_train import SelfTrainConfig, renew_targets, self_train
from ronid.train.state import StageState, Training
from ronid.types import Split

CPU = torch.device("cpu")
ENCODER = EncoderConfig(trainable_layers=0, adapter_width=8, normalise=False)
PLAIN = OptimiserConfig(weight_decay=0.0, warmup_share=0.0, clip_norm=1e6)
CONFIG = SelfTrainConfig(restarts=5, epochs=3, epoch_steps=4, batch=32, lr=1e-3, stop_change=0.0)
CLASSES = np.arange(60) % 3
WIDTHS = (8, 6)


def problem(known: int = 2) -> Split:
    rng = np.random.default_rng(0)
    points = 3 * np.eye(3, 6)[CLASSES] + rng.normal(size=(60, 6))
    given = (np.arange(60) < 15) & (known > CLASSES)
    return Split(
        texts=[""] * 60,
        targets=np.where(given, CLASSES, -1),
        known=("a", "b", "c")[:known],
        n_intents=3,
        embeddings=points.astype(np.float32),
    )


def run(config: SelfTrainConfig = CONFIG, split: Split | None = None) -> tuple[Any, ...]:
    split = split or problem()
    training = Training(build_encoder(ENCODER, CPU, seed=0, given_dim=6), 0, PLAIN)
    rows = training.encoder.prepare(split.embeddings)
    torch.manual_seed(0)
    decoder = Decoder(6, WIDTHS)
    centres = self_train(training, split, rows, config, decoder)
    return training, rows, centres, decoder


def naive_targets(points: np.ndarray, centres: np.ndarray) -> np.ndarray:
    n, k = len(points), len(centres)
    q = np.array([[1 / (1 + ((z - m) ** 2).sum()) for m in centres] for z in points])
    q /= q.sum(axis=1, keepdims=True)
    p = np.array([[q[i, j] ** 2 / q[:, j].sum() for j in range(k)] for i in range(n)])
    return p / p.sum(axis=1, keepdims=True)


class TestTargets:
    def test_are_those_of_the_whole_set_not_of_a_batch(self) -> None:
        training = Training(build_encoder(ENCODER, CPU, seed=0, given_dim=6))
        rows = training.encoder.prepare(problem().embeddings)
        centres = Centres(torch.zeros(3, 6))
        with torch.no_grad():
            centres.weight.copy_(torch.rand(3, 6, generator=torch.Generator().manual_seed(0)))
        state = StageState(training.encoder, {"centres": centres})
        assert renew_targets(state, rows) == 1.0
        codes = training.encoder.embed_all(rows).double().numpy()
        expected = naive_targets(codes, centres.weight.detach().double().numpy())
        np.testing.assert_allclose(state.tensors["targets"].numpy(), expected, rtol=1e-4)
        gaps = ((codes[:, None] - centres.weight.detach().numpy()) ** 2).sum(axis=2)
        assert np.array_equal(state.tensors["labels"].numpy(), gaps.argmin(axis=1))

    def test_share_of_changed_labels_is_that_since_the_last_renewal(self) -> None:
        training = Training(build_encoder(ENCODER, CPU, seed=0, given_dim=6))
        rows = training.encoder.prepare(problem().embeddings)
        state = StageState(training.encoder, {"centres": Centres(torch.zeros(3, 6))})
        renew_targets(state, rows)
        assert renew_targets(state, rows) == 0.0
        state.tensors["labels"][:15] += 1
        assert renew_targets(state, rows) == pytest.approx(0.25)

    def test_are_renewed_once_at_the_start_and_once_an_epoch(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        times: list[float] = []

        def note(*given: object) -> float:
            times.append(renew_targets(*given))
            return times[-1]

        monkeypatch.setattr(module, "renew_targets", note)
        training, *_ = run()
        assert len(times) == 4
        assert [row["changed"] for row in training.history] == times[1:]


def test_assignments_become_surer_and_clusters_are_those_of_the_points() -> None:
    sure = []
    for epochs in (0, 10):
        training, rows, centres, _ = run(replace(CONFIG, epochs=epochs, epoch_steps=10, lr=5e-3))
        q = student_t(training.encoder.embed_all(rows), centres)
        sure.append(float(q.max(dim=1).values.mean()))
    assert sure[1] > 1.1 * sure[0]
    assert clustering_accuracy(CLASSES, q.argmax(dim=1).numpy()) > 80


def test_known_intents_come_first() -> None:
    training, rows, centres, _ = run()
    codes = training.encoder.embed_all(rows)
    labels = torch.cdist(codes, centres).argmin(dim=1).numpy()
    for known in range(2):
        assert (labels[known == CLASSES] == known).mean() > 0.5


def test_centres_are_trained() -> None:
    _, _, first, _ = run(replace(CONFIG, epochs=0))
    _, _, last, _ = run()
    assert first.shape == last.shape == (3, 6)
    assert not torch.allclose(first, last)
    assert not last.requires_grad


def test_stops_at_the_first_renewal_that_changes_too_little() -> None:
    training, *_ = run(replace(CONFIG, epochs=50, lr=1e-7, stop_change=0.01))
    assert len(training.history) == 1
    assert training.history[0]["changed"] < 0.01


def test_without_weight_the_decoder_is_left_alone() -> None:
    _, _, _, decoder = run()
    torch.manual_seed(0)
    for trained, first in zip(decoder.parameters(), Decoder(6, WIDTHS).parameters(), strict=True):
        assert torch.equal(trained, first)


def test_with_weight_the_reconstruction_is_trained_too() -> None:
    training, _, _, decoder = run(replace(CONFIG, reconstruction_weight=0.1, epoch_steps=20))
    for row in training.history:
        expected = row["loss_divergence"] + 0.1 * row["loss_rebuilt"]
        assert row["loss"] == pytest.approx(expected, rel=1e-5)
    assert training.history[-1]["loss_rebuilt"] < training.history[0]["loss_rebuilt"]
    torch.manual_seed(0)
    pairs = zip(decoder.parameters(), Decoder(6, WIDTHS).parameters(), strict=True)
    assert not all(torch.equal(trained, first) for trained, first in pairs)


def test_fewer_rows_than_a_batch_and_no_labels_serve() -> None:
    training, _, centres, _ = run(replace(CONFIG, batch=500), problem(known=0))
    assert len(training.history) == 3
    assert torch.isfinite(centres).all()
