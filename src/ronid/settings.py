"""Settings as nested frozen dataclasses: changed by name, checked, written plainly."""

import difflib
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, Literal, get_args, get_origin, get_type_hints

from ronid.errors import ConfigError

ALL_LAYERS = -1
"""Value of `trainable_layers` that trains the whole encoder, word embeddings included."""

_SHARES = frozenset(
    (
        "adapter_dropout", "alpha", "certainty", "cross_entropy_share",
        "encoder_momentum", "head_dropout", "mask_probability", "neighbour_share", "prior_floor",
        "prior_momentum", "prototype_momentum", "supervised_share", "token_erasure",
        "token_replacement", "warmup_share",
    )
)  # fmt: skip
_POSITIVE = frozenset(
    (
        "batch", "clip_norm", "contrast_temperature", "epoch_steps", "eta", "graph_neighbours",
        "graph_width", "labelled_batch", "language_batch", "max_iterations", "max_length_tokens",
        "patience", "projection_width", "refresh_epochs", "restarts", "score_temperature",
        "smoothing_neighbours", "stop_patience", "temperature", "tolerance",
    )
)  # fmt: skip


def updated(config: Any, changes: Mapping[str, Any], where: str = "") -> Any:
    """Return `config` with nested `changes` applied, checking every key and type.

    Args:
        config: A config dataclass.
        changes: Values, or mappings for sections.
        where: Dotted path of `config`, for messages.

    Raises:
        ConfigError: Unknown key, wrong type or value.

    Example:
        >>> from ronid.config import RoNIDConfig
        >>> updated(RoNIDConfig(), {"m_step": {"alpha": 0.5}}).m_step.alpha
        0.5
    """
    hints = get_type_hints(type(config))
    known = {item.name: getattr(config, item.name) for item in fields(config)}
    new: dict[str, Any] = {}
    for key, value in changes.items():
        path = f"{where}{key}"
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"; did you mean '{near[0]}'?" if near else f"; known: {', '.join(known)}"
            raise ConfigError(f"unknown setting '{path}'{hint}")
        if is_dataclass(known[key]):
            if not isinstance(value, Mapping):
                raise ConfigError(f"setting '{path}' is a section; write [{path}] and its keys")
            new[key] = updated(known[key], value, f"{path}.")
        else:
            new[key] = _checked(value, hints[key], path)
    return replace(config, **new)


def _checked(value: Any, hint: Any, path: str) -> Any:
    """Return `value` as the type `hint`, refusing what does not fit."""
    if get_origin(hint) is Literal:
        if value in get_args(hint):
            return value
        choices = ", ".join(map(repr, get_args(hint)))
        raise ConfigError(f"setting '{path}' is {value!r}; choose one of: {choices}")
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, hint) or (hint is int and isinstance(value, bool)):
        raise ConfigError(
            f"setting '{path}' is {value!r} ({type(value).__name__}), expected {hint.__name__}"
        )
    if hint in (int, float):
        _check_range(value, path)
    return value


def _check_range(value: float, path: str) -> None:
    """Refuse a number with which no stage could run."""
    key = path.rpartition(".")[2]
    if key in _SHARES:
        fits, range_ = 0 <= value <= 1, "a number from 0 to 1"
    elif key in _POSITIVE:
        fits, range_ = 0 < value < math.inf, "a number above 0"
    elif key == "trainable_layers":
        fits, range_ = value >= ALL_LAYERS, f"0 or more, or {ALL_LAYERS} for all"
    else:
        fits, range_ = 0 <= value < math.inf, "0 or more"
    if not fits:
        raise ConfigError(f"setting '{path}' is {value}; give {range_}")


def to_dict(config: Any) -> dict[str, Any]:
    """Return `config` as nested plain dictionaries."""
    return {
        item.name: to_dict(value) if is_dataclass(value) else value
        for item in fields(config)
        for value in (getattr(config, item.name),)
    }


def differences(config: Any, base: Any) -> dict[str, Any]:
    """Return the changes with which `updated` makes `config` of `base`."""
    theirs = to_dict(base)
    found: dict[str, Any] = {}
    for name, value in to_dict(config).items():
        if isinstance(value, dict):
            changes = {key: part for key, part in value.items() if part != theirs[name][key]}
            if changes:
                found[name] = changes
        elif value != theirs[name] and name not in ("method", "preset"):
            found[name] = value
    return found
