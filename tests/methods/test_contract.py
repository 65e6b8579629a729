"""What every method of METHODS must keep to, whatever it does inside."""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from ronid.config import RoNIDConfig
from ronid.encode.encoder import build_encoder
from ronid.errors import UsageError
from ronid.methods import METHODS, method
from ronid.metrics import clustering_accuracy
from ronid.train.state import Training
from ronid.types import Discovery, Split
from toys import Recipe, Toy, make_toy

PRESETS = ("fast", "paper")
QUICK: dict[str, Any] = {"contrast": {"epochs": 1}, "m_step": {"epochs": 2}}

pytestmark = pytest.mark.parametrize("name", list(METHODS))


def fit(name: str, split: Split, config: RoNIDConfig, seed: int = 0) -> Discovery:
    dim = None if split.embeddings is None else split.embeddings.shape[1]
    encoder = build_encoder(config.encoder, torch.device("cpu"), seed=seed, given_dim=dim)
    found: Discovery = method(name).fit(split, config, Training(encoder, seed, config.optimiser))
    check(found, split)
    return found


def check(found: Discovery, split: Split) -> None:
    """Assert what holds of every discovery."""
    n, k = len(split), split.n_intents
    assert found.labels.shape == (n,)
    assert ((found.labels >= 0) & (found.labels < k)).all()
    given = split.labelled
    assert np.array_equal(found.labels[given], split.targets[given])
    assert ((found.confidence >= 0) & (found.confidence <= 1)).all()
    np.testing.assert_allclose(np.linalg.norm(found.embeddings, axis=1), 1.0, rtol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(found.prototypes, axis=1), 1.0, rtol=1e-5)
    assert found.prototypes.shape == (k, found.embeddings.shape[1])
    assert found.n_intents == k
    assert found.prior.shape == (k,)
    assert found.prior.sum() == pytest.approx(1.0)
    assert found.known == split.known
    for row in found.history:
        losses = [value for key, value in row.items() if key.startswith("loss")]
        assert losses
        assert np.isfinite(losses).all()


@pytest.fixture
def quick(recipe: Recipe, preset: str) -> RoNIDConfig:
    changes = QUICK if preset == "fast" else QUICK | {"pretrain": {"epochs": 1}}
    return replace(recipe(preset, {**changes, "contrast": {"epochs": int(preset == "fast")}}))


@pytest.mark.parametrize("preset", PRESETS)
def test_beats_chance_by_far(name: str, recipe: Recipe, utterances: Toy, preset: str) -> None:
    split = utterances.split(dev=30)
    found = fit(name, split, recipe(preset))
    hidden = split.unlabelled
    accuracy = clustering_accuracy(utterances.classes[hidden], found.labels[hidden])
    assert accuracy > 4 * 100 / 8


@pytest.mark.parametrize("preset", PRESETS)
def test_same_seed_same_labels_and_other_seed_other_ones(
    name: str, quick: RoNIDConfig, utterances: Toy, preset: str
) -> None:
    split = utterances.split(dev=30)
    one, two, other = (fit(name, split, quick, seed=seed) for seed in (3, 3, 4))
    assert np.array_equal(one.labels, two.labels)
    assert np.array_equal(one.embeddings, two.embeddings)
    assert np.array_equal(one.prototypes, two.prototypes)
    assert one.history == two.history
    assert not np.array_equal(one.embeddings, other.embeddings)


@pytest.mark.parametrize("preset", PRESETS)
def test_works_without_any_label(
    name: str, quick: RoNIDConfig, few_utterances: Toy, preset: str
) -> None:
    fit(name, few_utterances.split(known=0), quick)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("more", [0, 2])
def test_works_with_every_row_labelled(
    name: str, quick: RoNIDConfig, few_utterances: Toy, preset: str, more: int
) -> None:
    split = few_utterances.split(known=6, every=1)
    found = fit(name, replace(split, n_intents=6 + more), quick)
    assert np.array_equal(found.labels, few_utterances.classes)


@pytest.mark.parametrize("preset", PRESETS)
def test_works_when_all_intents_are_known(
    name: str, quick: RoNIDConfig, few_utterances: Toy, preset: str
) -> None:
    fit(name, few_utterances.split(known=6), quick)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("known", [0, 3])
def test_works_with_one_row_per_intent(
    name: str, quick: RoNIDConfig, preset: str, known: int
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit(name, make_toy(6, 6).split(known=known, every=1), quick)


@pytest.mark.parametrize("preset", PRESETS)
def test_works_with_one_intent(
    name: str, quick: RoNIDConfig, few_utterances: Toy, preset: str
) -> None:
    split = replace(few_utterances.split(known=0), n_intents=1)
    assert set(fit(name, split, quick).labels) == {0}


@pytest.mark.parametrize("preset", PRESETS)
def test_no_epochs_leave_the_first_prototypes(
    name: str, recipe: Recipe, few_utterances: Toy, preset: str
) -> None:
    nothing: dict[str, Any] = {s: {"epochs": 0} for s in ("pretrain", "contrast", "m_step")}
    found = fit(name, few_utterances.split(), recipe(preset, nothing))
    assert found.history == ()


def test_given_embeddings_serve_instead_of_text(name: str, recipe: Recipe, utterances: Toy) -> None:
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(8, 12))
    noisy = centres[utterances.classes] + rng.normal(size=(300, 12)) / 2
    split = replace(utterances.split(), texts=[""] * 300, embeddings=noisy.astype(np.float32))
    found = fit(name, split, recipe("fast"))
    assert clustering_accuracy(utterances.classes, found.labels) > 80


def test_given_embeddings_leave_nothing_for_paper_to_train(
    name: str, recipe: Recipe, utterances: Toy
) -> None:
    split = replace(utterances.split(), embeddings=np.ones((300, 12), np.float32))
    with pytest.raises(UsageError, match="leave no layer to train; use preset 'fast'"):
        fit(name, split, recipe("paper"))


def test_truth_is_shown_and_never_used(name: str, recipe: Recipe, utterances: Toy) -> None:
    split, config = utterances.split(), recipe("fast", QUICK)
    told = fit(name, replace(split, truth=utterances.classes), config)
    untold = fit(name, split, config)
    assert np.array_equal(told.labels, untold.labels)
    assert "accuracy" not in untold.history[-1]
    assert 0 <= told.history[-1]["accuracy"] <= 100


def test_table_names_a_paper_and_a_module(name: str) -> None:
    spec = METHODS[name]
    assert spec.title
    assert spec.paper
    assert callable(method(name).fit)
