"""What holds of GCD, DSSCC and CLNN beyond the contract of all methods."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import ronid.methods.clnn as clnn_module
from ronid.config import MethodConfig, updated
from ronid.encode.encoder import build_encoder
from ronid.errors import ConfigError, UsageError
from ronid.methods import METHODS, fit, published, recipe
from ronid.train.contrast import contrast
from ronid.train.state import Training
from ronid.types import Discovery, Split
from tests.helpers.method_configs import QUICK, published_short
from tests.helpers.toy_corpus import TinyEncoder, Toy


def run(split: Split, config: MethodConfig) -> Discovery:
    encoder = build_encoder(config.encoder, torch.device("cpu"), seed=0)
    return fit(split, config, Training(encoder, 0, config.optimiser))


def quick(name: str, tiny: TinyEncoder, changes: dict[str, Any] | None = None) -> MethodConfig:
    changed: MethodConfig = updated(published_short(name, tiny, QUICK[name]), changes or {})
    return changed


def test_gcd_gives_a_new_utterance_the_nearest_centroid_at_length_one(
    tiny: TinyEncoder, few_utterances: Toy
) -> None:
    split = few_utterances.split()
    found = run(split, quick("gcd", tiny))
    np.testing.assert_allclose(np.linalg.norm(found.embeddings, axis=1), 1.0, rtol=1e-5)
    gaps = np.linalg.norm(found.embeddings[:, None] - found.prototypes, axis=2)
    free = split.unlabelled
    assert np.array_equal(found.labels[free], gaps.argmin(axis=1)[free])
    assert found.rule == "distance"


def test_gcd_centroids_are_the_means_of_their_rows(tiny: TinyEncoder, few_utterances: Toy) -> None:
    found = run(few_utterances.split(), quick("gcd", tiny))
    means = [found.embeddings[found.labels == k].mean(axis=0) for k in range(6)]
    np.testing.assert_allclose(found.prototypes, means, atol=1e-4)


def test_clnn_contrasts_as_many_neighbours_as_published(
    tiny: TinyEncoder, few_utterances: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, int, int]] = []

    def note(training: Training, split: Split, rows: Any, config: Any, **how: Any) -> None:
        outputs = how["head"](torch.zeros(1, training.encoder.dim)).shape[1]
        asked.append((how["length"], config.labelled_batch, outputs))
        contrast(training, split, rows, config, **how)

    monkeypatch.setattr(clnn_module, "contrast", note)
    for dataset in ("clinc", "banking", "stackoverflow"):
        run(few_utterances.split(), quick("clnn", tiny, dict(published("clnn", dataset))))
    assert asked == [(100, 0, 128), (50, 0, 128), (500, 0, 128)]


def test_clnn_learning_rates_are_those_of_the_benchmarks() -> None:
    rates = [
        updated(recipe("clnn"), published("clnn", dataset)).contrast.lr
        for dataset in ("clinc", "banking", "stackoverflow")
    ]
    assert rates == [1e-5, 1e-5, 1e-6]


def test_dsscc_is_marked_and_its_two_phases_run_with_all_losses(
    tiny: TinyEncoder, few_utterances: Toy
) -> None:
    assert METHODS["dsscc"].note == "reconstruction"
    found = run(few_utterances.split(), quick("dsscc", tiny))
    stages = [row["stage"] for row in found.history]
    assert stages == ["supervised", "joint", "joint"]
    for row in found.history[1:]:
        parts = row["loss_supervised"] + row["loss_cluster"] + 10 * row["loss_instance"]
        assert row["loss"] == pytest.approx(parts, rel=1e-5)


def test_dsscc_stops_when_assignments_have_settled(tiny: TinyEncoder, few_utterances: Toy) -> None:
    still = {"joint": {"epochs": 9, "lr": 0.0, "stop_patience": 2}}
    found = run(few_utterances.split(), quick("dsscc", tiny, still))
    assert [row["epoch"] for row in found.history if row["stage"] == "joint"] == [1, 2, 3]


def test_dsscc_without_joint_epochs_keeps_the_first_centres(
    tiny: TinyEncoder, few_utterances: Toy
) -> None:
    found = run(few_utterances.split(), quick("dsscc", tiny, {"joint": {"epochs": 0}}))
    assert {row["stage"] for row in found.history} == {"supervised"}


def test_dsscc_on_given_embeddings_says_what_it_lacks(few_utterances: Toy) -> None:
    vectors = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
    split = replace(few_utterances.split(), embeddings=vectors)
    config = updated(recipe("dsscc"), {"encoder": {"trainable_layers": 0}})
    encoder = build_encoder(config.encoder, torch.device("cpu"), seed=0, given_dim=4)
    with pytest.raises(UsageError, match="nothing to train in stage 'supervised'"):
        fit(split, config, Training(encoder, 0, config.optimiser))


def test_dsscc_moves_its_centres_faster_than_the_encoder(
    tiny: TinyEncoder, few_utterances: Toy
) -> None:
    split = few_utterances.split()

    def moved(rate: float) -> Discovery:
        changes = {"joint": {"epochs": 1, "lr": 1e-7, "head_rate": rate}}
        return run(split, quick("dsscc", tiny, changes))

    slow, fast = moved(0.0), moved(1e5)
    np.testing.assert_allclose(slow.embeddings, fast.embeddings, atol=1e-3)
    assert np.abs(slow.prototypes - fast.prototypes).max() > 1e-3


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("gcd", {"contrast": {"supervised_share": 1.5}}, "supervised_share"),
        ("gcd", {"projection_width": 0}, "projection_width"),
        ("dsscc", {"joint": {"contrast_temperature": 0}}, "contrast_temperature"),
        ("clnn", {"contrast": {"head_dropout": 2.0}}, "head_dropout"),
    ],
)
def test_settings_out_of_range_are_refused(
    name: str, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        updated(recipe(name), changes)


@pytest.mark.parametrize("name", ["gcd", "clnn", "latent_em"])
def test_a_contrast_that_would_teach_only_what_is_left_behind_is_refused(
    name: str, tiny: TinyEncoder, few_utterances: Toy
) -> None:
    frozen = {"encoder": {"trainable_layers": 0, "head": "none"}}
    changes = frozen if name == "gcd" else frozen | {"pretrain": {"epochs": 0}}
    with pytest.raises(UsageError, match=r"nothing to train in stage '.*': set encoder"):
        run(few_utterances.split(), quick(name, tiny, changes))
