"""What every method must do with real sentences and the embedded encoder: messages of the demo."""

import warnings
from typing import Any

import numpy as np
import pytest
import torch

from ronid.config import DEFAULT_ENCODER, updated
from ronid.data.demo import demo_corpus
from ronid.encode.cache import FrozenCache
from ronid.encode.encoder import build_encoder
from ronid.errors import RonidWarning
from ronid.methods import fit, recipe
from ronid.metrics import clustering_accuracy
from ronid.train.state import Training
from tests.helpers.method_configs import CASES
from tests.helpers.toy_corpus import Toy

pytestmark = pytest.mark.slow

INTENTS, ROWS = 8, 15

CODE = {
    "encoder": {"name": DEFAULT_ENCODER},  # 120 messages have too few words for counts of them
    "reconstruct": {"epochs": 60, "batch": 64, "lr": 3e-4},
}
PAIRS = {"threshold_step": 0.05, "lr": 1e-3, "batch": 16}
SMALL = {"labelled_batch": 32, "language_batch": 32}

BRIEF: dict[str, dict[str, Any]] = {
    "kmeans": {},
    "agglomerative": {},
    "sae_kmeans": CODE,
    "dec": {**CODE, "self_train": {"epochs": 2, "epoch_steps": 10, "batch": 64}},
    "dcn": {**CODE, "cluster": {"epochs": 5, "batch": 64}},
    "dac": {"pairs": PAIRS},
    "deepcluster": {"discover": {"epochs": 3, "lr": 1e-4, "batch": 32}},
    "kcl": {"epochs": 8, "lr": 5e-4, "batch": 32},
    "cdac_plus": {"pairs": PAIRS | {"lr": 3e-4}, "refine": {"epochs": 2, "lr": 1e-4, "batch": 32}},
    "gcd": {"contrast": {"epochs": 3, "lr": 1e-3, "batch": 32}, "restarts": 5},
    "deep_aligned": {  # without corrected moments, first steps are four times as long
        "pretrain": {"epochs": 4, "lr": 2.5e-4} | SMALL,
        "discover": {"epochs": 3, "lr": 2.5e-4, "batch": 32},
    },
    "dsscc": {
        "supervised": {"epochs": 2, "lr": 2e-4, "batch": 32},
        "joint": {"epochs": 1, "lr": 2e-4, "head_rate": 2.0, "batch": 64, "labelled_batch": 16},
        "restarts": 5,
    },
    "dpn": {
        "pretrain": {"epochs": 1, "lr": 5e-5} | SMALL,
        "discovery": {"epochs": 2, "schedule_epochs": 0, "lr": 2e-4, "batch": 64, "restarts": 5},
    },
    "clnn": {
        "pretrain": {"epochs": 1, "lr": 5e-5} | SMALL,
        "contrast": {"epochs": 2, "lr": 2e-4, "batch": 64},
    },
    "latent_em": {  # the same
        "pretrain": {"epochs": 4, "lr": 2.5e-4} | SMALL,
        "em": {"epochs": 2, "lr": 5e-5, "batch": 32},
    },
    "usnid": {
        "pretrain": {"epochs": 1, "lr": 1e-3} | SMALL,
        "epochs": 2,
        "lr": 2e-4,
        "batch": 64,
        "restarts": 5,
    },
    "dwgf": {
        "pretrain": {"epochs": 1, "lr": 5e-5} | SMALL,
        "discovery": {"epochs": 2, "lr": 2e-4, "batch": 32, "restarts": 5, "graph_neighbours": 5},
    },
    "fast": {},
    "default": {
        "pretrain": {"epochs": 2, "lr": 2e-4} | SMALL,
        "contrast": {"epochs": 2, "batch": 32},
        "m_step": {"epochs": 2, "batch": 32},
    },
    "paper": {
        "pretrain": {"epochs": 2, "lr": 1e-3} | SMALL,
        "start": {"restarts": 3},
        "m_step": {"epochs": 3, "lr": 1e-3, "batch": 32},
    },
}
"""Changes by method, or preset of RoNID: few steps, at rates that pre-trained layers bear."""

LEAST: dict[str, float] = {
    "kmeans": 65,
    "agglomerative": 65,
    "sae_kmeans": 40,
    "dec": 50,
    "dcn": 50,
    "dac": 40,
    "deepcluster": 50,
    "kcl": 38,
    "cdac_plus": 45,
    "gcd": 58,
    "deep_aligned": 71,
    "dsscc": 65,
    "dpn": 61,
    "clnn": 72,
    "latent_em": 74,
    "usnid": 60,
    "dwgf": 75,
    "fast": 70,
    "default": 70,
    "paper": 65,
}
"""Accuracy that is asked for: some points below the worst of three seeds, all beyond three times
chance. With the sign of every loss turned round, all that are trained miss it but DAC, DeepCluster,
GCD and `fast`, which so few steps do not ruin."""


@pytest.fixture(scope="module")
def demo() -> Toy:
    """Return 15 messages of every third intent, one of each in turn."""
    corpus = demo_corpus()
    truth = np.array(corpus.truth, object)
    names = sorted(set(truth))[::3]
    assert len(names) == INTENTS
    rows = np.stack([np.flatnonzero(truth == name)[:ROWS] for name in names], axis=1).ravel()
    return Toy([corpus.texts[row] for row in rows], truth[rows].tolist())


@pytest.fixture(scope="module")
def cache() -> FrozenCache:
    return FrozenCache(keep_weights=True)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "preset"), CASES)
def test_beats_chance_by_far_on_the_demo(
    name: str, preset: str, demo: Toy, cache: FrozenCache
) -> None:
    split = demo.split(every=2, dev=16)
    key = preset if name == "ronid" else name
    config = updated(recipe(name, preset), BRIEF[key])
    device = torch.device("cpu")
    encoder = build_encoder(config.encoder, device, seed=0, n_intents=INTENTS, cache=cache)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RonidWarning)  # units of a code that so few steps leave
        found = fit(split, config, Training(encoder, 0, config.optimiser))
    hidden = split.unlabelled
    accuracy = clustering_accuracy(demo.classes[hidden], found.labels[hidden])
    assert accuracy > LEAST[key]


def test_guesses_would_not_do(demo: Toy) -> None:
    hidden = demo.split(every=2).unlabelled
    rng = np.random.default_rng(0)
    guesses = rng.integers(INTENTS, size=(20, len(hidden)))
    lucky = max(clustering_accuracy(demo.classes[hidden], guess) for guess in guesses)
    assert lucky < 3 * 100 / INTENTS < min(LEAST.values())
