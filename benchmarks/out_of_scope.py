"""Measure "none of these" and calibration with intents that the fit has never seen.

    python benchmarks/out_of_scope.py --seed 0 1 2 --work FOLDER

Of every benchmark split (75% known, 10% labelled) a fifth of the intents, half of them known and
half new ones, is taken out of the training file altogether. What is left is fitted with preset
`fast`, and the whole test file is asked: utterances of the missing intents are out of scope. Where
RONID_DATA/clinc_oos/test.tsv is there, a fit of all of CLINC is asked its own out-of-scope queries
as well. Settings were chosen with --part dev and seeds of 100 and up.

Sentences are embedded once for all seeds, and every fit is kept, both in FOLDER.
"""

import argparse
import csv
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ronid.data.benchmark_entries import CLASSIC
from ronid.data.benchmarks import read
from ronid.data.corpus import corpus_from
from ronid.data.splits import BenchmarkProblem, benchmark_cell, benchmark_problem
from ronid.encode.cache import FrozenCache
from ronid.encode.encoder import build_encoder
from ronid.encode.rows import VectorRows
from ronid.head import Floats, Scope, calibrated, closeness, p_values, squared_distances
from ronid.methods import recipe
from ronid.metrics import auroc, calibration_error, f1, false_acceptance, hungarian_map
from ronid.pipeline import discover
from ronid.types import Discovery, FloatArray, IntArray
from ronid.version import __version__

CONFIG = recipe("ronid", "fast")
MISSING = 0.2
OWN = "clinc_oos"
"""CLINC fitted whole, and asked the out-of-scope queries that come with it."""


@dataclass(frozen=True)
class Fit:
    """A fit and the features of what it is asked.

    Args:
        found: What the method found, before calibration.
        asked: (n, d) features of the utterances asked.
        truth: (n,) their true intents; what is not in scope has a number of its own.
        outside: (n,) whether they are out of scope.
    """

    found: Discovery
    asked: FloatArray
    truth: IntArray
    outside: np.ndarray


class Ready(FrozenCache):
    """Hands out the vectors of the training rows, made once for all splits."""

    def __init__(self, vectors: torch.Tensor) -> None:
        super().__init__()
        self.vectors = vectors

    def get(self, key: str, shape: Sequence[int], *rest: Any) -> torch.Tensor:
        """Return the vectors where as many rows are asked for as were given."""
        if tuple(shape) == tuple(self.vectors.shape):
            return self.vectors
        return super().get(key, shape, *rest)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    present = [OWN] if own_queries().exists() else []
    parser.add_argument("--dataset", nargs="*", default=[*CLASSIC, *present])
    parser.add_argument("--seed", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--part", choices=["dev", "test"], default="test")
    parser.add_argument("--work", type=Path, required=True, help="folder for what can be reused")
    parser.add_argument("--out", type=Path, help="file of rows to add to; only shown without it")
    options = parser.parse_args()
    made_by = {"encoder": "all-MiniLM-L6-v2", "ronid_version": __version__, "version": ""}
    options.work.mkdir(parents=True, exist_ok=True)
    for seed in options.seed:
        for dataset in options.dataset:
            cell = {"dataset": dataset, "seed": seed, "part": options.part, "preset": "fast"}
            row = cell | measure(get_fit(dataset, seed, options.part, options.work))
            print(json.dumps(row), flush=True)
            if options.out is not None:
                with options.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"format_version": 1, **row, **made_by}) + "\n")


def own_queries() -> Path:
    return Path(os.environ.get("RONID_DATA", "data")) / OWN / "test.tsv"


def missing_intents(problem: BenchmarkProblem, seed: int) -> IntArray:
    """Draw the intents that are taken out, half of them known and half new."""
    n, known = len(problem.classes), len(problem.split.known)
    each, rng = round(n * MISSING / 2), np.random.default_rng(seed)
    first = rng.choice(known, each, replace=False)
    return np.concatenate([first, known + rng.choice(n - known, each, replace=False)])


def get_fit(dataset: str, seed: int, part: str, work: Path) -> Fit:
    """Return a fit of the folder, making it first where it is not there."""
    path = work / f"{dataset}_{seed}_{part}.npz"
    if not path.exists():
        make_fit(dataset, seed, part, path)
    with np.load(path) as kept:
        found = Discovery(
            labels=kept["labels"],
            confidence=np.zeros(len(kept["labels"]), np.float32),
            embeddings=kept["emb"],
            prototypes=kept["proto"],
            prior=kept["prior"],
            temperature=CONFIG.m_step.temperature,
            known=tuple(map(str, kept["known"])),
        )
        return Fit(found, kept["E"], kept["y"], np.isin(kept["y"], kept["removed"]))


def make_fit(dataset: str, seed: int, part: str, path: Path) -> None:
    own = dataset == OWN
    problem = benchmark_problem(benchmark_cell("clinc" if own else dataset, seed=seed))
    split, names = problem.split, problem.classes
    assert split.truth is not None
    removed = np.array([len(names)]) if own else missing_intents(problem, seed)
    keep = np.flatnonzero(~np.isin(split.truth, removed))
    labels = [names[t] if t >= 0 else None for t in split.targets[keep]]
    corpus = corpus_from([split.texts[i] for i in keep], labels)
    cache = Ready(embedded(split.texts, path.parent)[torch.from_numpy(keep)])
    n_intents = len(names) - (0 if own else len(removed))
    found = discover(corpus, n_intents, CONFIG, seed=seed, device="cpu", cache=cache)
    asked = read("clinc" if own else dataset, part)
    number = {name: i for i, name in enumerate(names)}
    texts, truth = asked.texts, [number[str(name)] for name in asked.labels]
    if own:
        with own_queries().open(encoding="utf-8", newline="") as file:
            asked_rows = csv.DictReader(file, delimiter="\t")
            strange = [row["text"] for row in asked_rows if row.get("label", "oos") == "oos"]
        texts, truth = [*texts, *strange], [*truth, *[len(names)] * len(strange)]
    rows = VectorRows(embedded(texts, path.parent))
    np.savez(
        path,
        labels=found.discovery.labels,
        emb=found.discovery.embeddings,
        proto=found.discovery.prototypes,
        prior=found.discovery.prior,
        known=[number[name] for name in found.discovery.known],
        E=found.model.encoder.embed_all(rows).cpu().numpy(),
        y=truth,
        removed=removed,
    )


def embedded(texts: Sequence[str], work: Path) -> torch.Tensor:
    """Return what the frozen encoder says of texts."""
    cache = FrozenCache(work / "frozen")
    encoder = build_encoder(CONFIG.encoder, torch.device("cpu"), seed=0, n_intents=2, cache=cache)
    rows = encoder.prepare(list(texts))
    assert isinstance(rows, VectorRows)
    return rows.vectors


def measure(fit: Fit) -> dict[str, Any]:
    """Score our belonging beside the baselines, and the confidence before and after."""
    after, scope = calibrated(fit.found)
    assert scope is not None
    close = closeness(fit.asked, after.prototypes, after.rule)
    labels = close.argmax(1)
    inside = ~fit.outside
    match = hungarian_map(fit.truth[inside], labels[inside])
    correct = np.array([match.get(int(label), -1) for label in labels]) == fit.truth
    judged = {
        name: scores(belongs, fit.outside, scope.threshold, correct)
        for name, belongs in ways(fit, scope, after.temperature).items()
    }
    confidence = {
        "ece_before": calibration_error(
            largest(close, fit.found.temperature)[inside], correct[inside]
        ),
        "ece_after": calibration_error(largest(close, after.temperature)[inside], correct[inside]),
    }
    counts = {"inside": int(inside.sum()), "outside": int(fit.outside.sum())}
    facts = {"acc": 100 * float(correct[inside].mean()), "threshold": scope.threshold}
    facts |= {"temperature": after.temperature}
    return rounded({**counts, **facts, **confidence, "scores": judged})


def ways(fit: Fit, scope: Scope, temperature: float) -> dict[str, Floats]:
    """Return how well utterances belong by each score, all on the scale of `Scope.belonging`."""
    found = fit.found
    close, own = (closeness(v, found.prototypes, "cosine") for v in (fit.asked, found.embeddings))

    def share(asked: Floats, usual: Floats) -> Floats:
        return p_values(np.sort(-usual), -asked)

    tenth = np.random.default_rng(0).permutation(len(found.labels))[:1_000]
    far = np.partition(squared_distances(found.embeddings[tenth], found.embeddings), 10, axis=1)
    asked = np.partition(squared_distances(fit.asked, found.embeddings), 9, axis=1)
    plain, tuned = found.temperature, temperature
    return {
        "max softmax": share(largest(close, plain), largest(own, plain)),
        "max softmax, calibrated": share(largest(close, tuned), largest(own, tuned)),
        "distance to prototype": share(close.max(1), own.max(1)),
        # The utterance itself is the first of its neighbours in the corpus.
        "distance to 10th neighbour": share(-asked[:, 9], -far[:, 10]),
        "belonging (ours)": scope.belonging(fit.asked),
    }


def largest(close: Floats, temperature: float) -> Floats:
    """Return the (n,) probability of the best intent."""
    from scipy.special import softmax

    return np.asarray(softmax(close / temperature, axis=1).max(1))


def scores(
    belongs: Floats, outside: np.ndarray, threshold: float, correct: np.ndarray
) -> dict[str, float]:
    rejected = belongs < threshold
    kept = ~rejected & ~outside
    return {
        "auroc": auroc(belongs[~outside], belongs[outside]),
        "fpr95": false_acceptance(belongs[~outside], belongs[outside]),
        "f1": f1(outside, rejected),
        "kept": 100 * float(kept.sum() / (~outside).sum()),
        "acc_kept": 100 * float(correct[kept].mean()) if kept.any() else float("nan"),
    }


def rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: rounded(part) for key, part in value.items()}
    return round(value, 4) if isinstance(value, float) else value


if __name__ == "__main__":
    main()
