"""Every method, short enough for a test on the tiny BERT and long enough to learn something."""

from typing import Any

from ronid.config import MethodConfig, updated
from ronid.methods import METHODS, presets_of, recipe
from ronid.types import Split
from toys import TinyEncoder

SHORT: dict[str, dict[str, Any]] = {
    "kmeans": {},
    "agglomerative": {},
    "kcl": {"epochs": 6, "lr": 5e-3, "batch": 32},
    "usnid": {"pretrain": {"epochs": 3, "lr": 1e-3}, "epochs": 3, "lr": 1e-3, "restarts": 3},
}
"""Changes of the published constants, by method; RoNID's are those of the `recipe` fixture."""

QUICK: dict[str, dict[str, Any]] = {
    "kmeans": {},
    "agglomerative": {},
    "kcl": {"epochs": 2, "lr": 1e-3},
    "usnid": {"pretrain": {"epochs": 2, "lr": 1e-3}, "epochs": 2, "lr": 1e-3, "restarts": 2},
}
"""The same for tests of mechanics: one or two epochs a stage."""

CASES = [
    (name, preset)
    for name in METHODS
    for preset in (("fast", "paper") if name == "ronid" else presets_of(name))
]
"""Methods and presets that the contract is tested with."""


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
