"""What DPN and DWGF do beyond the contract of all methods."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ronid.assign.graph import smoothed
from ronid.assign.kmeans import kmeans
from ronid.bench.cell import _refit
from ronid.bench.plan import BenchCell
from ronid.config import EncoderConfig, updated
from ronid.encode.encoder import build_encoder
from ronid.errors import ConfigError
from ronid.losses.prototype_distance import soft_cosine_loss, soft_distance_loss
from ronid.methods import dpn, dwgf, fit, published, recipe
from ronid.train.state import StageState, Training
from ronid.types import Discovery, Split
from tests.helpers.method_configs import QUICK, published_short
from tests.helpers.toy_corpus import TinyEncoder, Toy

CPU = torch.device("cpu")


def run(split: Split, config: Any) -> Discovery:
    encoder = build_encoder(config.encoder, CPU, seed=0)
    return fit(split, config, Training(encoder, 0, config.optimiser))


def of_dataset(name: str, dataset: str) -> Any:
    return updated(recipe(name), published(name, dataset)).discovery


@pytest.mark.parametrize(
    ("dataset", "epochs", "gamma"),
    [("clinc", 80, 10.0), ("banking", 60, 10.0), ("stackoverflow", 10, 90.0)],
)
def test_dpn_has_the_constants_of_each_benchmark(dataset: str, epochs: int, gamma: float) -> None:
    found = of_dataset("dpn", dataset)
    assert (found.epochs, found.known_weight, found.schedule_epochs) == (epochs, gamma, 100)


@pytest.mark.parametrize(
    ("dataset", "expected"),
    [
        ("clinc", (15, 10, 0.3, 80, 1e-5)),
        ("banking", (15, 25, 0.3, 50, 1e-5)),
        ("stackoverflow", (50, 30, 0.01, 15, 5e-6)),
    ],
)
def test_dwgf_has_the_constants_of_each_benchmark(
    dataset: str, expected: tuple[float, ...]
) -> None:
    found = of_dataset("dwgf", dataset)
    near = found.graph_neighbours, found.smoothing_neighbours
    assert (*near, found.self_training_weight, found.epochs, found.lr) == expected


def test_loss_of_dpn_is_the_sum_of_its_three_terms() -> None:
    encoder = build_encoder(
        EncoderConfig(trainable_layers=0, adapter_width=2), CPU, seed=0, given_dim=3
    )
    torch.manual_seed(0)
    features, targets = torch.randn(6, 3), torch.tensor([-1, 0, 1, -1, -1])
    index = torch.tensor([1, 2, 0, 1, 3, 4])  # two labelled rows, then any
    state = StageState(encoder, {"classes": nn.Linear(3, 4)})
    state.put("prototypes", torch.randn(4, 3))
    state.put("known_prototypes", torch.randn(2, 3))
    state.put("passes_for_known", torch.tensor([0.0, 1.0, 0.0, 1.0, 0.0]))
    config = replace(dpn.DiscoveryConfig(), known_weight=7.0)
    found = dpn.losses(features, index, 2, state, targets, config)
    mixed, tensors = features[2:], state.tensors
    passes = torch.tensor([0.0, 1.0, 1.0, 0.0])
    near = soft_distance_loss(mixed, tensors["prototypes"], 0.07)
    known = soft_cosine_loss(mixed, tensors["known_prototypes"], 0.07, passes)
    classified = cross_entropy(state.heads["classes"](features[:2]), torch.tensor([0, 1]))
    torch.testing.assert_close(found["loss"], near + 7 * known + classified)


def test_prototypes_of_all_intents_stand_still_and_those_of_known_ones_follow(
    tiny: TinyEncoder, few_utterances: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[dict[str, Tensor]] = []
    means: list[Tensor] = []
    plain_losses, plain_means = dpn.losses, dpn.class_means

    def spied_losses(*args: Any) -> dict[str, Tensor]:
        seen.append({name: tensor.clone() for name, tensor in args[3].tensors.items()})
        return plain_losses(*args)

    def spied_means(*args: Any) -> Tensor:
        means.append(plain_means(*args))
        return means[-1]

    monkeypatch.setattr(dpn, "losses", spied_losses)
    monkeypatch.setattr(dpn, "class_means", spied_means)
    config = published_short("dpn", tiny, QUICK["dpn"])
    changes = {"discovery": {"batch": 60, "epochs": 3}, "pretrain": {"epochs": 0}}
    run(few_utterances.split(), updated(config, changes))
    first, second, third = seen
    for name in ("prototypes", "passes_for_known"):
        assert torch.equal(first[name], third[name])
    assert first["prototypes"].shape == (6, 32)
    expected = means[0]
    for step, mean in zip((first, second, third), means, strict=True):
        expected = 0.9 * expected + 0.1 * mean
        torch.testing.assert_close(step["known_prototypes"], expected)
    assert not torch.allclose(means[0], means[2], atol=1e-3)


def test_schedule_of_dpn_is_longer_than_its_epochs(tiny: TinyEncoder, few_utterances: Toy) -> None:
    config = published_short("dpn", tiny, QUICK["dpn"])
    one, other = (
        run(few_utterances.split(), updated(config, {"discovery": {"schedule_epochs": epochs}}))
        for epochs in (0, 50)
    )
    # Of 50 epochs the first two are warm-up: the encoder hardly moves.
    moved = [found.history[-1]["loss_ce"] for found in (one, other)]
    assert moved[0] < moved[1]


def test_graph_of_dwgf_is_made_anew_when_it_is_due(tiny: TinyEncoder, few_utterances: Toy) -> None:
    found = run(few_utterances.split(), published_short("dwgf", tiny, QUICK["dwgf"]))
    rows = [row for row in found.history if row["stage"] == dwgf.STAGE]
    assert ["graph_dropped" in row for row in rows] == [True, False, True]


def test_graph_of_dwgf_that_is_cut_says_so(tiny: TinyEncoder, few_utterances: Toy) -> None:
    config = published_short("dwgf", tiny, QUICK["dwgf"])
    narrow = updated(config, {"discovery": {"graph_width": 2, "epochs": 1}})
    assert run(few_utterances.split(), narrow).history[-1]["graph_dropped"] > 0.1


@pytest.mark.parametrize(
    "changes",
    [{"graph_neighbours": 0}, {"graph_width": 0}, {"smoothing_neighbours": 0},
     {"encoder_momentum": 1.5}],
)  # fmt: skip
def test_dwgf_refuses_what_makes_no_graph(changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"setting 'discovery\.\w+' is [\d.]+; give a number"):
        updated(recipe("dwgf"), {"discovery": changes})


def features_of_blobs() -> Tensor:
    generator = torch.Generator().manual_seed(0)
    centres = torch.randn(5, 8, generator=generator)
    return centres.repeat(12, 1) + torch.randn(60, 8, generator=generator)


def found_of(features: Tensor, intents: int) -> Discovery:
    blank = np.zeros(len(features))
    return Discovery(
        labels=blank.astype(np.int64),
        confidence=blank.astype(np.float32),
        embeddings=features.numpy(),
        prototypes=features[:intents].numpy(),
        prior=np.full(intents, 1 / intents),
        temperature=1.0,
        known=(),
    )


@pytest.mark.parametrize("near", [3, 20])
def test_benchmark_scores_dwgf_on_features_smoothed_by_the_settings_of_the_fit(near: int) -> None:
    features = features_of_blobs()
    config = updated(recipe("dwgf"), {"discovery": {"smoothing_neighbours": near}})
    expected = kmeans(
        smoothed(features, near), 5, n_init=20, generator=torch.Generator().manual_seed(0)
    )
    found = dwgf.refit(features, found_of(features, 5), config, torch.Generator().manual_seed(0))
    assert np.array_equal(found, expected.labels.numpy())


def test_refit_is_told_the_settings_of_its_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []

    def refit(features: Any, discovery: Any, config: Any, generator: Any) -> str:
        told.append(config)
        return "labels"

    monkeypatch.setattr(dwgf, "refit", refit)
    cell = BenchCell("banking", "dwgf", "", "x", "published", 0.75, 0.1, "given", 0)
    features = features_of_blobs()
    config = recipe("dwgf")
    assert _refit(cell, config, features, found_of(features, 5)) == "labels"
    assert told == [config]
