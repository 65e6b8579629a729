import os
from typing import Any

import pytest
from hypothesis import settings

from ronid.config import RoNIDConfig, updated
from ronid.presets import preset
from tests.helpers.toy_corpus import Recipe, TinyEncoder, Toy, make_toy, save_tiny_encoder

# Before any test imports what reads them once: no network, and no fight for cores between workers.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("OMP_NUM_THREADS", "1")

pytest_plugins = ["tests.helpers.tiers"]

# The only settings of property tests: the same few examples in every run, or many random ones with
# HYPOTHESIS_PROFILE=nightly. No deadline, because a busy machine is not an error.
settings.register_profile("fast", max_examples=20, derandomize=True, deadline=None)
settings.register_profile("nightly", max_examples=100, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))


@pytest.fixture(scope="session")
def utterances() -> Toy:
    """300 utterances of 8 intents."""
    return make_toy(300, 8)


@pytest.fixture(scope="session")
def few_utterances() -> Toy:
    """60 utterances of 6 intents, for tests that look at mechanics only."""
    return make_toy(60, 6)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> TinyEncoder:
    """Return a function that gives the folder of a tiny random encoder; see `TinyEncoder`."""
    folder = tmp_path_factory.mktemp("encoders")

    def make(family: str, masked_lm: bool = False, seed: int = 0) -> str:
        path = folder / f"{family}-{'masked-lm' if masked_lm else 'bare'}-{seed}"
        if not path.exists():
            save_tiny_encoder(path, family, masked_lm, seed)
        return str(path)

    return make


@pytest.fixture(scope="session")
def recipe(tiny: TinyEncoder) -> Recipe:
    """Return a function that gives a shortened preset on the tiny BERT; see `Recipe`."""
    short: dict[str, dict[str, Any]] = {
        "fast": {
            "encoder": {"adapter_width": 64},
            "contrast": {"epochs": 4, "batch": 64},
            "m_step": {"epochs": 4, "batch": 64},
        },
        "default": {
            "pretrain": {"epochs": 2, "lr": 1e-3},
            "contrast": {"epochs": 4, "batch": 64, "lr": 1e-3},
            "m_step": {"epochs": 4, "batch": 64, "lr": 1e-3},
        },
        "paper": {
            "pretrain": {"epochs": 3, "lr": 1e-3},
            "start": {"restarts": 3},
            "m_step": {"epochs": 3, "lr": 1e-3},
        },
    }

    def make(name: str, changes: dict[str, Any] | None = None) -> RoNIDConfig:
        config = updated(preset(name), {"encoder": {"name": tiny("bert")}})
        config = updated(config, short[name])
        changed: RoNIDConfig = updated(config, changes or {})
        return changed

    return make
