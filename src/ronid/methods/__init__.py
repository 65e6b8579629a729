"""Methods of new intent discovery: one recipe per module, one literal table."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Spec:
    """One method.

    Args:
        title: Name in tables.
        paper: Where it was published.
        module: Module with `fit(split, config, training) -> Discovery`.
    """

    title: str
    paper: str
    module: str


METHODS: dict[str, Spec] = {
    "ronid": Spec("RoNID", "Zhang et al., DASFAA 2024", "ronid.methods.ronid"),
}


def method(name: str) -> Any:
    """Import and return the module of a method."""
    return import_module(METHODS[name].module)
