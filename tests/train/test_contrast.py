"""Neighbour contrast before the EM loop."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from ronid.assign.neighbours import nearest_neighbours
from ronid.config import ContrastConfig, EncoderConfig
from ronid.encode.encoder import build_encoder
from ronid.train import contrast as module
from ronid.train.contrast import contrast, neighbour_loss
from ronid.train.heads import projection
from ronid.train.state import Training
from ronid.types import Split
from tests.helpers.toy_corpus import TinyEncoder, Toy, make_toy

CONFIG = ContrastConfig(epochs=3, batch=32, lr=1e-3)


def start(name: str) -> Training:
    config = EncoderConfig(name=name, trainable_layers=0, adapter_width=16)
    return Training(build_encoder(config, torch.device("cpu"), seed=0))


def run(training: Training, split: Split, config: ContrastConfig) -> None:
    contrast(training, split, training.encoder.prepare(split.texts), config)


def test_loss_falls_and_neighbours_agree_more(tiny: TinyEncoder, utterances: Toy) -> None:
    training, split = start(tiny("bert")), utterances.split()
    rows = training.encoder.prepare(split.texts)

    def agreement() -> float:
        near = nearest_neighbours(training.encoder.embed_all(rows), 5).numpy()
        return float((utterances.classes[near] == utterances.classes[:, None]).mean())

    before = agreement()
    run(training, split, replace(CONFIG, epochs=15, batch=64))
    assert training.history[-1]["loss"] < training.history[0]["loss"]
    assert agreement() > before
    assert training.finished == ["contrast"]


def test_loss_is_the_weighted_sum_of_its_terms(tiny: TinyEncoder, few_utterances: Toy) -> None:
    training = start(tiny("bert"))
    run(training, few_utterances.split(), replace(CONFIG, supervised_weight=0.3))
    for row in training.history:
        expected = row["loss_neighbour"] + 0.3 * row["loss_supervised"]
        assert row["loss"] == pytest.approx(expected, rel=1e-5)


def test_without_labels_only_neighbours_pull(tiny: TinyEncoder, few_utterances: Toy) -> None:
    training = start(tiny("bert"))
    run(training, few_utterances.split(known=0), CONFIG)
    assert "loss_supervised" not in training.history[0]
    assert np.isfinite([row["loss"] for row in training.history]).all()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"neighbours": 3}, 3),
        ({"neighbours": 7}, 4),
        ({"neighbour_share": 0.4}, 4),
        ({"neighbour_share": 0.0}, 1),
    ],
)
def test_length_of_the_neighbour_lists(
    tiny: TinyEncoder,
    few_utterances: Toy,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, float],
    expected: int,
) -> None:
    asked: list[int] = []

    def note(points: torch.Tensor, count: int) -> torch.Tensor:
        asked.append(count)
        return nearest_neighbours(points, count)

    monkeypatch.setattr(module, "nearest_neighbours", note)
    run(
        start(tiny("bert")),
        few_utterances.split(),
        replace(CONFIG, epochs=5, refresh_epochs=2, **changes),
    )
    assert asked == [expected] * 3  # before epochs 1, 3 and 5


def test_two_rows_have_nothing_to_contrast(tiny: TinyEncoder) -> None:
    training = start(tiny("bert"))
    run(training, make_toy(2, 2).split(known=1), CONFIG)
    assert training.history == []


def test_no_epochs_skip_the_stage(tiny: TinyEncoder, few_utterances: Toy) -> None:
    training = start(tiny("bert"))
    run(training, few_utterances.split(), replace(CONFIG, epochs=0))
    assert (training.history, training.finished) == ([], [])


def test_lists_are_as_long_as_asked_for_or_as_there_are_rows(
    tiny: TinyEncoder, few_utterances: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[tuple[int, ...]] = []

    def note(points: torch.Tensor, count: int) -> torch.Tensor:
        found = nearest_neighbours(points, count)
        made.append(tuple(found.shape))
        return found

    monkeypatch.setattr(module, "nearest_neighbours", note)
    split = few_utterances.split()
    for length in (25, 500):
        training = start(tiny("bert"))
        rows = training.encoder.prepare(split.texts)
        contrast(training, split, rows, replace(CONFIG, epochs=1), length=length)
    assert made == [(60, 25), (60, 59)]


def test_a_labelled_batch_of_none_leaves_the_supervised_part_out(
    tiny: TinyEncoder, few_utterances: Toy
) -> None:
    training = start(tiny("bert"))
    run(training, few_utterances.split(), replace(CONFIG, labelled_batch=0))
    assert "loss_supervised" not in training.history[0]


def test_contrast_is_made_on_unit_vectors_of_the_projection_which_learns_too(
    tiny: TinyEncoder, few_utterances: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    training, split = start(tiny("bert")), few_utterances.split()
    head = projection(training, "contrast", 7)
    before = [weight.detach().clone() for weight in head.parameters()]
    widths: set[tuple[int, float]] = set()

    def note(vectors: torch.Tensor, *rest: Any, **named: Any) -> torch.Tensor:
        lengths = vectors.detach().norm(dim=1)
        widths.add((vectors.shape[1], round(float((lengths - 1).abs().max()), 4)))
        return neighbour_loss(vectors, *rest, **named)

    monkeypatch.setattr(module, "neighbour_loss", note)
    rows = training.encoder.prepare(split.texts)
    contrast(training, split, rows, replace(CONFIG, epochs=1), head=head)
    assert widths == {(7, 0.0)}
    assert not any(map(torch.equal, before, head.parameters()))


def test_a_drawn_neighbour_has_the_positives_of_its_anchor_where_they_are_paired() -> None:
    vectors = torch.nn.functional.normalize(torch.randn(6, 5, dtype=torch.float64), dim=1)
    # Anchors 0, 1, 2 with neighbours 3, 4, 5; 1 is a neighbour of 0, but not 0 one of 1.
    neighbours = torch.tensor([[3, 1], [4, 5], [5, 4], [4, 5], [5, 3], [3, 4]])
    targets = torch.tensor([-1, 7, 7, -1, -1, -1])  # 1 and 2 share an intent
    loss = neighbour_loss(vectors, torch.arange(6), neighbours, targets, 0.5, paired=True)
    positive = {(0, 0), (0, 1), (1, 1), (1, 2), (2, 1), (2, 2)}
    expected = []
    for i in range(6):
        others = [j for j in range(6) if j != i]
        scores = {j: float(vectors[i] @ vectors[j]) / 0.5 for j in others}
        total = math.log(sum(math.exp(scores[j]) for j in others))
        own = [total - scores[j] for j in others if (i % 3, j % 3) in positive]
        expected.append(sum(own) / len(own))
    assert float(loss) == pytest.approx(sum(expected) / 6)
    apart = neighbour_loss(vectors, torch.arange(6), neighbours, targets, 0.5)
    assert float(apart) != pytest.approx(float(loss))
