"""Inference by prototype: both rules, and what is gathered of a fit that is over."""

import numpy as np
import pytest
import torch

from ronid.config import EncoderConfig
from ronid.encode.encoder import build_encoder
from ronid.train.infer import gather, gather_by_kmeans
from ronid.train.state import Training, inputs_of
from ronid.types import Rule, Split

RULES: tuple[Rule, ...] = ("cosine", "distance")


def points(n: int, d: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed))


@pytest.fixture
def problem() -> Split:
    """40 rows around four far corners; every fifth row of the first two carries its label."""
    rng = np.random.default_rng(0)
    classes = np.arange(40) % 4
    vectors = 5 * np.eye(4, 6)[classes] + rng.normal(size=(40, 6)) / 4
    targets = np.where((classes < 2) & (np.arange(40) < 12), classes, -1)
    return Split(
        texts=[""] * 40,
        targets=targets,
        known=("a", "b"),
        n_intents=4,
        embeddings=vectors.astype(np.float32),
        truth=classes,
    )


def training_of(split: Split) -> Training:
    config = EncoderConfig(trainable_layers=0, normalise=False)
    assert split.embeddings is not None
    dim = split.embeddings.shape[1]
    return Training(build_encoder(config, torch.device("cpu"), seed=0, given_dim=dim), 0)


def test_gathered_labels_keep_what_was_given(problem: Split) -> None:
    training = training_of(problem)
    rows = training.encoder.prepare(inputs_of(problem))
    wrong = torch.zeros(4, 6)
    wrong[3, 0] = 5.0  # the first intent's rows look like the fourth
    found = gather(training, problem, rows, wrong)
    given_rows = problem.labelled
    assert np.array_equal(found.labels[given_rows], problem.targets[given_rows])
    assert found.rule == "distance"
    assert found.prior.tolist() == (np.bincount(found.labels, minlength=4) / 40).tolist()


def test_clusters_of_known_intents_come_first(problem: Split) -> None:
    training = training_of(problem)
    rows = training.encoder.prepare(inputs_of(problem))
    found = gather_by_kmeans(training, problem, rows)
    assert problem.truth is not None
    known = problem.truth < 2
    assert np.array_equal(found.labels[known], problem.truth[known])
    assert len(set(found.labels)) == 4


def test_known_intents_come_first_whatever_the_centres_to_start_from(problem: Split) -> None:
    training = training_of(problem)
    rows = training.encoder.prepare(inputs_of(problem))
    starts = 5 * torch.eye(4, 6)
    found = gather_by_kmeans(training, problem, rows, init=starts[[3, 1, 0, 2]])
    np.testing.assert_allclose(found.prototypes[:2], starts[:2].numpy(), atol=0.5)
    assert problem.truth is not None
    known = problem.truth < 2
    assert np.array_equal(found.labels[known], problem.truth[known])


@pytest.mark.parametrize("normalise", [False, True])
def test_clear_clusters_are_sure(problem: Split, normalise: bool) -> None:
    training = training_of(problem)
    training.encoder.normalise = normalise
    found = gather_by_kmeans(training, problem, training.encoder.prepare(inputs_of(problem)))
    assert found.confidence.mean() > 0.9
