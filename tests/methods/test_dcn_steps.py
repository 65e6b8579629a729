"""The parts of DCN that are its own: centres that are running means, and the two losses."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ronid.config import updated
from ronid.encode.encoder import build_encoder
from ronid.methods import fit, recipe
from ronid.methods.dcn import running_means
from ronid.pipeline import discover
from ronid.train.state import Training
from ronid.types import Split
from tests.helpers.toy_corpus import TinyEncoder, Toy

CPU = torch.device("cpu")
SHORT: dict[str, Any] = {
    "reconstruct": {"epochs": 4, "batch": 20},
    "cluster": {"epochs": 3, "batch": 20},
    "self_train": {"epochs": 2, "epoch_steps": 3, "batch": 20, "stop_change": 0.0},
}

pytestmark = pytest.mark.filterwarnings("ignore::ronid.errors.RonidWarning")


def one_by_one(
    centres: np.ndarray, counts: np.ndarray, points: np.ndarray, labels: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    centres, counts = centres.copy(), counts.copy()
    for point, label in zip(points, labels, strict=True):
        counts[label] += 1
        step = 1 / counts[label]
        centres[label] = (1 - step) * centres[label] + step * point
    return centres, counts


class TestRunningMeans:
    @given(st.integers(0, 10_000), st.integers(1, 5), st.integers(1, 20), st.integers(0, 100))
    def test_equal_points_taken_one_by_one(self, seed: int, k: int, b: int, first: int) -> None:
        rng = np.random.default_rng(seed)
        centres, points = rng.normal(size=(k, 3)), rng.normal(size=(b, 3))
        counts, labels = np.full(k, float(first)), rng.integers(k, size=b)
        moved, new = running_means(*map(torch.from_numpy, (centres, counts, points, labels)))
        expected = one_by_one(centres, counts, points, labels)
        np.testing.assert_allclose(moved.numpy(), expected[0], rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(new.numpy(), expected[1])

    def test_golden_value(self) -> None:
        moved, new = running_means(
            torch.tensor([[0.0, 0.0], [1.0, 1.0]]),
            torch.tensor([1.0, 2.0]),
            torch.tensor([[2.0, 0.0], [0.0, 4.0]]),
            torch.tensor([0, 0]),
        )
        torch.testing.assert_close(moved, torch.tensor([[2 / 3, 4 / 3], [1.0, 1.0]]))
        assert new.tolist() == [3.0, 2.0]


def problem() -> Split:
    rng = np.random.default_rng(0)
    classes = np.arange(60) % 3
    points = 3 * np.eye(3, 6)[classes] + rng.normal(size=(60, 6)) / 2
    targets = np.where((np.arange(60) < 15) & (classes < 2), classes, -1)
    vectors = points.astype(np.float32)
    return Split([""] * 60, targets, ("a", "b"), n_intents=3, embeddings=vectors)


def history(changes: dict[str, Any]) -> list[dict[str, Any]]:
    config = updated(recipe("dcn"), {**SHORT, **changes})
    training = Training(build_encoder(config.encoder, CPU, seed=0, given_dim=6), 0)
    training.optimiser = config.optimiser
    return [dict(row) for row in fit(problem(), config, training).history]


def test_loss_is_the_weighted_sum_of_its_terms() -> None:
    weights = {"reconstruction_weight": 0.5, "distance_weight": 3.0}
    rows = history({"cluster": {**SHORT["cluster"], **weights}})[-3:]
    assert [row["stage"] for row in rows] == ["cluster"] * 3
    for row in rows:
        expected = 0.5 * row["loss_rebuilt"] + 3 * row["loss_distance"]
        assert row["loss"] == pytest.approx(expected, rel=1e-5)


def test_error_of_reconstruction_is_a_sum_over_columns() -> None:
    rows = history({"cluster": {**SHORT["cluster"], "lr": 0.0}})
    last, first = rows[3], rows[4]  # the last mean of the stage before, and this stage's first
    assert first["loss_rebuilt"] == pytest.approx(6 * last["loss"], rel=0.2)


def test_codes_come_nearer_to_their_centres() -> None:
    longer = {**SHORT["cluster"], "epochs": 6, "lr": 1e-3}
    rows = [row for row in history({"cluster": longer}) if row["stage"] == "cluster"]
    assert rows[-1]["loss_distance"] < rows[0]["loss_distance"]


def test_other_loss_is_the_self_training_of_dec_with_reconstruction() -> None:
    stages = [row["stage"] for row in history({"loss": "idec"})]
    assert stages == ["reconstruct"] * 4 + ["self_train"] * 2
    assert recipe("dcn").self_train.reconstruction_weight == 0.1
    assert recipe("dec").self_train.reconstruction_weight == 0.0


@pytest.mark.parametrize("name", ["sae_kmeans", "dec", "dcn"])
def test_codes_of_a_frozen_transformer_serve_too(
    name: str, tiny: TinyEncoder, few_utterances: Toy
) -> None:
    split = few_utterances.split()
    sections = set(recipe(name).__dataclass_fields__)
    changes = {key: value for key, value in SHORT.items() if key in sections}
    config = updated(recipe(name), {**changes, "encoder": {"name": tiny("bert")}})
    training = Training(build_encoder(config.encoder, CPU, seed=0), 0, config.optimiser)
    found = fit(split, config, training)
    assert found.embeddings.shape == (60, 10)
    assert found.rule == "distance"


def test_model_of_given_embeddings_is_saved_and_loaded(tmp_path: Any) -> None:
    from ronid.data.corpus import corpus_from
    from ronid.model import load_model

    split = problem()
    corpus = replace(corpus_from(["x"] * 60, [None] * 60), embeddings=split.embeddings)
    found = discover(corpus, 3, updated(recipe("dcn"), SHORT), device="cpu")
    found.model.save(tmp_path)
    vectors: Any = split.embeddings
    assert np.array_equal(
        load_model(tmp_path, "cpu").predict(vectors).probabilities,
        found.model.predict(vectors).probabilities,
    )
