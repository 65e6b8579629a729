"""`ronid methods`: what can be fitted beside RoNID."""

from rich.console import Console
from rich.table import Table

from ronid.cli.console import print_json
from ronid.cli.options import AsJson


def methods(as_json: AsJson = False) -> None:
    """List the methods for `ronid fit --method`.

    `labels`: whether the method needs or uses labeled utterances. `embeddings`: whether it accepts
    your own embeddings, in Python only. `GPU`: whether its published settings take hours without
    a GPU.
    """
    from ronid.methods import METHODS, presets_of

    if as_json:
        print_json(
            [
                {
                    "name": name,
                    "title": spec.title,
                    "kind": spec.kind,
                    "needs_labels": spec.needs_labels,
                    "takes_embeddings": spec.takes_embeddings,
                    "wants_gpu": spec.wants_gpu,
                    "paper": spec.paper,
                    "presets": presets_of(name),
                    "note": ", ".join(filter(None, (spec.note, spec.printed))),
                }
                for name, spec in METHODS.items()
            ]
        )
        return
    heads = ("method", "title", "labels", "embeddings", "GPU", "published by")
    table = Table(*heads, box=None, padding=(0, 1), pad_edge=False)
    for name, spec in METHODS.items():
        takes, wants = ("yes" if one else "" for one in (spec.takes_embeddings, spec.wants_gpu))
        labels = _labels(spec.kind, spec.needs_labels)
        table.add_row(name, spec.title, labels, takes, wants, spec.paper)
    Console().print(table)
    for name, spec in METHODS.items():
        if spec.note:
            Console().print(f"{name}: {spec.note}")


def _labels(kind: str, needed: bool) -> str:
    if kind == "unsupervised":
        return "not used"
    return "needed" if needed else "used"
