"""Measure logistic regression on frozen embeddings, for comparison with what discovers intents.

    python benchmarks/plain_classifier.py CONFIG.toml [--out FILE] [--encoder TITLE=FOLDER]

For every split of the config the script stores three rows of method `logistic_regression`:

- variant "": trained on the labels. The least confident answers count as "new", as many as there
  are novel utterances. No user knows that number, so the truth helps this baseline.
- variant "-New": the same, but every answer is a known intent.
- variant "+AllLabels": trained on the true intents of all training utterances, the ceiling of a
  linear classifier on these vectors.

C comes from cross-validation on the labels. Methods, presets and rules for the number of intents in
the config play no part. Rows that are stored are skipped.
"""

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from ronid.bench.cell import problem_of, scored_rows, scores_of, split_of, versions
from ronid.bench.plan import FORMAT_VERSION, BenchCell, read_encoders, read_plan
from ronid.bench.rows import append_row, coordinates, read_rows
from ronid.config import EncoderConfig
from ronid.data.splits import BenchmarkProblem
from ronid.encode.cache import FrozenCache
from ronid.encode.encoder import Encoder, build_encoder
from ronid.types import FloatArray, IntArray

HERE = Path(__file__).resolve().parent
METHOD = "logistic_regression"
VARIANTS = ("", "-New", "+AllLabels")
STRENGTHS = (0.1, 1.0, 10.0, 100.0)
"""Values of C that cross-validation compares."""

MAX_FOLDS = 5
MAX_ITERATIONS = 1000


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("config", type=Path, help="benchmark config")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "plain-classifier.jsonl")
    parser.add_argument(
        "--encoder", action="append", metavar="TITLE=FOLDER", help="may be repeated"
    )
    options = parser.parse_args(arguments)
    plan = read_plan(options.config, read_encoders(options.encoder or ()))
    cells = splits_of(plan.cells)
    stored = {coordinates(row) for row in read_rows(options.out)} if options.out.exists() else set()
    cache = FrozenCache(keep_weights=True)
    for number, cell in enumerate(cells, 1):
        wanted = [replace(cell, variant=variant) for variant in VARIANTS]
        if all(coordinates(asdict(each)) in stored for each in wanted):
            continue
        config = EncoderConfig(name=plan.encoder_path(cell.encoder), trainable_layers=0)
        encoder = build_encoder(config, torch.device("cpu"), seed=0, cache=cache)
        for row in measure(cell, encoder):
            if coordinates(row) not in stored:
                append_row(options.out, row)
        print(f"[{number}/{len(cells)}] {cell}", flush=True)


def splits_of(cells: Sequence[BenchCell]) -> list[BenchCell]:
    """Return one cell of this method for every split and encoder among others."""
    ours = (replace(c, method=METHOD, preset="", variant="", k_rule="given") for c in cells)
    return list(dict.fromkeys(ours))


def measure(cell: BenchCell, encoder: Encoder) -> Iterator[dict[str, Any]]:
    """Return the rows of one split.

    Args:
        cell: The split, as a cell of this method.
        encoder: A frozen encoder.
    """
    problem = problem_of(cell)
    texts, truth = scored_rows(problem, cell)
    vectors = encoder.embed_all(encoder.prepare(problem.split.texts)).numpy()
    scored = encoder.embed_all(encoder.prepare(texts)).numpy()
    for variant, (labels, seconds) in answers(problem, vectors, scored, truth).items():
        yield asdict(replace(cell, variant=variant)) | {
            "format_version": FORMAT_VERSION,
            "split_hash": split_of(cell).hash,
            "scores": {"argmax": scores_of(problem, truth, labels)},
            "wall_s": round(seconds, 3),
            "versions": versions(),
        }


def answers(
    problem: BenchmarkProblem, vectors: FloatArray, scored: FloatArray, truth: IntArray
) -> Mapping[str, tuple[IntArray, float]]:
    """Return the (m,) predicted intents of the scored rows, and the seconds of the fit, by variant.

    Args:
        problem: The problem.
        vectors: (n, d) training rows.
        scored: (m, d) scored rows.
        truth: (m,) their classes.
    """
    split, known = problem.split, len(problem.split.known)
    given = split.targets >= 0
    started = time.perf_counter()
    labels, confidence = classify(vectors[given], split.targets[given], scored)
    fitted = time.perf_counter()
    n_novel = int((truth >= known).sum())
    least_sure = np.argsort(confidence, kind="stable")[:n_novel]
    with_new = labels.copy()
    with_new[least_sure] = known
    assert split.truth is not None  # a benchmark's always is
    inside = split.truth >= 0
    ceiling, _ = classify(vectors[inside], split.truth[inside], scored)
    fit_s, ceiling_s = fitted - started, time.perf_counter() - fitted
    return {"": (with_new, fit_s), "-New": (labels, fit_s), "+AllLabels": (ceiling, ceiling_s)}


def classify(
    vectors: FloatArray, targets: IntArray, scored: FloatArray
) -> tuple[IntArray, NDArray[np.float64]]:
    """Fit logistic regression, and return the intents of other rows and their probability.

    Args:
        vectors: (n, d) labeled rows.
        targets: (n,) their intents.
        scored: (m, d) rows to classify.
    """
    model = LogisticRegression(max_iter=MAX_ITERATIONS)
    folds = min(MAX_FOLDS, int(np.median(np.unique(targets, return_counts=True)[1])))
    if folds > 1:
        split = StratifiedKFold(folds, shuffle=True, random_state=0)
        model = GridSearchCV(model, {"C": STRENGTHS}, cv=split)
    model.fit(vectors, targets)
    probabilities = model.predict_proba(scored)
    return model.classes_[probabilities.argmax(1)], probabilities.max(1)


if __name__ == "__main__":
    main()
