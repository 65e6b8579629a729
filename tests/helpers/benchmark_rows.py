"""Rows as `ronid bench run` writes them, made by hand."""

from typing import Any


def made_row(acc: float, seed: int = 0, **changes: Any) -> dict[str, Any]:
    """Return a row whose ACC is `acc`, NMI one more and ARI one less; refit is 2 lower."""
    scores = {
        rule: {"nmi": acc + 1 - off, "ari": acc - 1 - off, "acc": acc - off, "known_acc": acc,
               "novel_acc": None, "h_score": None}
        for rule, off in (("argmax", 0), ("refit", 2))
    }  # fmt: skip
    row = {
        "dataset": "clinc", "method": "ronid", "variant": "", "encoder": "all-MiniLM-L6-v2",
        "preset": "fast", "known_ratio": 0.75, "labelled_ratio": 0.1, "k_rule": "given",
        "seed": seed, "scored_on": "test", "format_version": 1, "config_hash": "c0",
        "split_hash": f"split-{changes.get('dataset', 'clinc')}-{seed}", "scores": scores,
    }  # fmt: skip
    return {**row, **changes}


def skipped_row(reason: str, seed: int = 0, **changes: Any) -> dict[str, Any]:
    """Return the row of a cell that could not run."""
    row = made_row(0, seed, **changes) | {"skip": reason}
    del row["scores"]
    return row
