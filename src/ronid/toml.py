"""Settings as TOML: nested dictionaries of plain values, read and written."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ronid.errors import ConfigError


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file into nested dictionaries.

    Raises:
        ConfigError: No such file, or not TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read config '{path}': {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"config '{path}' is not TOML: {error}") from None


def to_toml(values: Mapping[str, Any]) -> str:
    """Write nested dictionaries of plain values as TOML, sections last."""
    plain = [f"{k} = {_toml(v)}" for k, v in values.items() if not isinstance(v, Mapping)]
    sections = [
        f"\n[{name}]\n" + "\n".join(f"{k} = {_toml(v)}" for k, v in section.items())
        for name, section in values.items()
        if isinstance(section, Mapping)
    ]
    return "\n".join(plain + sections) + "\n"


def _toml(value: Any) -> str:
    """Write one plain value as TOML."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        escaped = "".join(
            f"\\u{ord(c):04x}" if ord(c) < 32 or ord(c) == 127 else c
            for c in value.replace("\\", "\\\\").replace('"', '\\"')
        )
        return f'"{escaped}"'
    return repr(value)
