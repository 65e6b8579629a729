"""Every method, short enough for a test on the tiny BERT and long enough to learn something."""

from typing import Any

from ronid.config import MethodConfig, updated
from ronid.methods import METHODS, presets_of, recipe
from ronid.types import Split
from tests.helpers.toy_corpus import TinyEncoder

REBUILD = {"reconstruct": {"epochs": 8, "batch": 100}}

SHORT: dict[str, dict[str, Any]] = {
    "kmeans": {},
    "agglomerative": {},
    "dac": {"pairs": {"threshold_step": 0.03, "lr": 3e-3, "batch": 32}},
    "cdac_plus": {
        "pairs": {"threshold_step": 0.03, "lr": 1e-3, "batch": 64},
        "refine": {"epochs": 6, "lr": 1e-3, "batch": 64},
    },
    "deepcluster": {"discover": {"epochs": 3, "batch": 64, "lr": 1e-3}},
    "deep_aligned": {
        "pretrain": {"epochs": 6, "lr": 1e-3, "labelled_batch": 32},
        "discover": {"epochs": 4, "batch": 64, "lr": 1e-3},
    },
    "latent_em": {
        "pretrain": {"epochs": 6, "lr": 1e-3, "labelled_batch": 32},
        "em": {"epochs": 4, "batch": 64, "lr": 1e-3},
    },
    "dpn": {
        "pretrain": {"epochs": 3, "lr": 1e-3},
        "discovery": {"epochs": 3, "schedule_epochs": 0, "lr": 1e-3, "batch": 64, "restarts": 3},
    },
    "dwgf": {
        "pretrain": {"epochs": 3, "lr": 1e-3},
        "discovery": {"epochs": 3, "lr": 1e-3, "batch": 64, "restarts": 3, "graph_neighbours": 10},
    },
    "sae_kmeans": REBUILD,
    "dec": {**REBUILD, "self_train": {"epochs": 2, "epoch_steps": 5}},
    "dcn": {**REBUILD, "cluster": {"epochs": 2, "batch": 100}},
    "gcd": {"contrast": {"epochs": 6, "lr": 2e-3}, "restarts": 5},
    "dsscc": {
        "supervised": {"epochs": 10, "lr": 1e-3},
        "joint": {"epochs": 4, "lr": 1e-3, "head_rate": 2.0},
        "restarts": 5,
    },
    "clnn": {
        "pretrain": {"epochs": 3, "lr": 1e-3},
        "contrast": {"epochs": 6, "lr": 1e-3, "batch": 64},
    },
    "kcl": {"epochs": 6, "lr": 5e-3, "batch": 32},
    "usnid": {"pretrain": {"epochs": 3, "lr": 1e-3}, "epochs": 3, "lr": 1e-3, "restarts": 3},
}
"""Changes of the published constants, by method; RoNID's are those of the `recipe` fixture."""

QUICK: dict[str, dict[str, Any]] = {
    "kmeans": {},
    "agglomerative": {},
    "dac": {"pairs": {"epochs": 2, "lr": 1e-3}},
    "cdac_plus": {"pairs": {"epochs": 2, "lr": 1e-3}, "refine": {"epochs": 2, "lr": 1e-3}},
    "deepcluster": {"discover": {"epochs": 2}},
    "deep_aligned": {
        "pretrain": {"epochs": 2, "lr": 1e-3},
        "discover": {"epochs": 2, "lr": 1e-3, "restarts": 2},
    },
    "latent_em": {
        "pretrain": {"epochs": 2, "lr": 1e-3},
        "em": {"epochs": 2, "batch": 32, "lr": 1e-3, "restarts": 2},
    },
    "dpn": {
        "pretrain": {"epochs": 1, "lr": 1e-3},
        "discovery": {"epochs": 2, "schedule_epochs": 0, "lr": 1e-3, "batch": 32, "restarts": 2},
    },
    "dwgf": {
        "pretrain": {"epochs": 1, "lr": 1e-3},
        "discovery": {"epochs": 3, "refresh_epochs": 2, "lr": 1e-3, "batch": 32, "restarts": 2},
    },
    "sae_kmeans": {"reconstruct": {"epochs": 2, "batch": 32}},
    "dec": {
        "reconstruct": {"epochs": 1, "batch": 32},
        "self_train": {"epochs": 2, "epoch_steps": 2, "stop_change": 0.0},
    },
    "dcn": {"reconstruct": {"epochs": 1, "batch": 32}, "cluster": {"epochs": 2, "batch": 32}},
    "gcd": {"contrast": {"epochs": 2, "lr": 1e-3}, "restarts": 2},
    "dsscc": {
        "supervised": {"epochs": 1, "lr": 1e-3},
        "joint": {"epochs": 2, "lr": 1e-3},
        "restarts": 2,
    },
    "clnn": {
        "pretrain": {"epochs": 1, "lr": 1e-3},
        "contrast": {"epochs": 2, "lr": 1e-3},
        "restarts": 2,
    },
    "kcl": {"epochs": 2, "lr": 1e-3},
    "usnid": {"pretrain": {"epochs": 2, "lr": 1e-3}, "epochs": 2, "lr": 1e-3, "restarts": 2},
}
"""The same for tests of mechanics: one or two epochs a stage."""

CASES = [(name, preset) for name in METHODS for preset in presets_of(name)]
"""Methods and presets that the contract is tested with."""

STAGES: dict[tuple[str, str], tuple[str, ...]] = {
    ("kmeans", "published"): (),
    ("agglomerative", "published"): (),
    ("sae_kmeans", "published"): ("reconstruct",),
    ("dec", "published"): ("reconstruct", "self_train"),
    ("dcn", "published"): ("reconstruct", "cluster"),
    ("dac", "published"): ("pairs",),
    ("deepcluster", "published"): ("discover",),
    ("kcl", "published"): ("similarity", "clusters"),
    ("cdac_plus", "published"): ("pairs", "refine"),
    ("gcd", "published"): ("contrast",),
    ("deep_aligned", "published"): ("pretrain", "discover"),
    ("dsscc", "published"): ("supervised", "joint"),
    ("dpn", "published"): ("pretrain", "discovery"),
    ("clnn", "published"): ("pretrain", "contrast"),
    ("latent_em", "published"): ("pretrain", "em"),
    ("usnid", "published"): ("pretrain", "cluster"),
    ("dwgf", "published"): ("pretrain", "discovery"),
    ("ronid", "paper"): ("pretrain", "em"),
    ("ronid", "default"): ("pretrain", "contrast", "em"),
    ("ronid", "fast"): ("contrast", "em"),
}
"""Stages that train, in order, by method and preset."""


def published_short(name: str, tiny: TinyEncoder, changes: dict[str, Any]) -> MethodConfig:
    """Return the published recipe of a method with changes, on the tiny BERT."""
    config: Any = recipe(name)
    if config.encoder.name != "tfidf":
        config = updated(config, {"encoder": {"name": tiny("bert")}})
    changed: MethodConfig = updated(config, changes)
    return changed


def without_labels(split: Split) -> Split:
    """Return the problem with no label and no held-out row."""
    from dataclasses import replace

    import numpy as np

    hidden = np.full(len(split), -1)
    none = np.empty(0, np.int64)
    return replace(split, targets=hidden, known=(), dev_texts=(), dev_targets=none)
