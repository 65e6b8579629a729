"""The stage that finds the number of intents, where it is not given."""

from dataclasses import replace
from typing import Any

import torch

from ronid.assign.count import (
    DOUBT_UNLABELLED,
    DRAWS,
    Expected,
    IntentCount,
    count_beside_known,
    count_by_size,
    count_by_tree,
)
from ronid.assign.novelty import find_novelty
from ronid.encode.rows import Rows
from ronid.train.state import Training, generator_of, inputs_of
from ronid.types import Split

SHARE = {"deep_aligned": 1.0, "dpn": 0.9}
"""Of the mean size, from which on a cluster counts."""

FINAL = "count"
"""The stage whose number is made; one before it is a rough idea that costs less."""


def count_intents(training: Training, split: Split, rows: Rows, stage: str = FINAL) -> Split:
    """Return the split with its number of intents, found from the features as they are now.

    What was found stays in the history as the row of `stage`, with its evidence; a fit that is
    resumed finds it there.

    Args:
        training: What the stages of this fit share.
        split: The problem; where its number is given, nothing is done.
        rows: Its training rows, prepared.
        stage: Name in the history: `FINAL`, or another for a rough idea.
    """
    if split.count_rule == "given":
        return split
    if stage not in training.finished:
        training.progress.begin("count", 1)
        training.history.append({"stage": stage, **_found(training, split, rows, stage)})
        training.progress.advance()
        training.progress.end()
        training.finish(stage)
    row = next(row for row in training.history if row["stage"] == stage)
    return replace(split, n_intents=int(row["k"]), count_rule="given")


def rather_too_many(n_intents: int) -> int:
    """Return the most intents there may be where `n_intents` is a rough idea, found without labels.

    It misses intents more often than it makes them up, and whoever looks for fewer parts than there
    are sees how well whole groups of intents lie apart.
    """
    return n_intents + -(-n_intents // DOUBT_UNLABELLED)


def count_on_frozen(training: Training, split: Split) -> Split:
    """Return the split with its number of intents, found by an encoder that nothing trains.

    Args:
        training: Its encoder is frozen; its history gets the row of the stage.
        split: The problem.
    """
    return count_intents(
        training, split, training.encoder.prepare(inputs_of(split), training.progress)
    )


def _found(training: Training, split: Split, rows: Rows, stage: str) -> dict[str, Any]:
    """Return the number of intents and its evidence."""
    rule, start, known = split.count_rule, split.n_intents, len(split.known)
    embeddings = training.encoder.embed_all(rows)
    generator = generator_of(embeddings.device, training.seed, stage)
    if rule in SHARE:
        k = count_by_size(embeddings, start, share=SHARE[rule], generator=generator)
        return {"rule": rule, "start": start, "k": max(1, known, k)}
    if rule == "usnid":
        targets = torch.from_numpy(split.targets).to(embeddings.device)
        k = count_beside_known(embeddings, targets, known, start, generator=generator)
        return {"rule": rule, "start": start, "k": k}
    novelty = find_novelty(embeddings, split.targets, known)
    final = stage == FINAL
    found = count_by_tree(
        embeddings,
        known,
        expected=Expected.from_novelty(novelty, known) if novelty else None,
        # A guess is judged by what the data say without it, so it has no say before it is.
        at_most=start if rule == "auto" and start else None,
        draws=DRAWS if final else 1,
        finest=final,  # before anything was learned, fine peaks are often chance
        generator=generator,
    )
    kept = rule == "guess" and final and start <= found.high
    return {"rule": rule, "start": start, **_evidence(found), "k": start if kept else found.k}


def _evidence(found: IntentCount) -> dict[str, Any]:
    """Return the estimate as plain values, its curve around the numbers that were possible."""
    near = (found.numbers >= found.low / 3) & (found.numbers <= found.high * 3)
    curve = {
        "numbers": found.numbers[near].tolist(),
        "rise": [round(float(v), 3) for v in found.rise[near]],
    }
    bounds = {"estimate": found.k, "low": found.low, "high": found.high}
    return {**bounds, "leftover": found.leftover, **curve}
