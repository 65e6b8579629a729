"""`ronid methods`: what can be fitted beside RoNID."""

from rich.console import Console
from rich.table import Table

from ronid.cli.console import print_json
from ronid.cli.options import AsJson


def methods(as_json: AsJson = False) -> None:
    """List the methods that `ronid fit --method` takes."""
    from ronid.methods import METHODS, presets_of

    if as_json:
        print_json(
            [
                {
                    "name": name,
                    "title": spec.title,
                    "kind": spec.kind,
                    "needs_labels": spec.needs_labels,
                    "paper": spec.paper,
                    "presets": presets_of(name),
                    "note": spec.note,
                }
                for name, spec in METHODS.items()
            ]
        )
        return
    table = Table("method", "title", "labels", "published by", box=None, padding=(0, 2))
    for name, spec in METHODS.items():
        table.add_row(name, spec.title, _labels(spec.kind, spec.needs_labels), spec.paper)
    Console().print(table)


def _labels(kind: str, needed: bool) -> str:
    if kind == "unsupervised":
        return "not used"
    return "needed" if needed else "used"
