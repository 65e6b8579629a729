"""Measure what a model rejects that was fitted to a pile of which a part belongs to no intent.

    python benchmarks/chatter.py --seed 0 1 2 --out benchmarks/results/pile-rejected.jsonl

Of every benchmark the pile (75% known, 10% labelled) gets chatter from a foreign benchmark, see
`ronid.data.pile`, and preset `fast` is fitted to it. Then the model is asked as `ronid predict`
asks it: the test file, all of which belongs, and the test files of the foreign benchmarks, none of
which does. With --chatter 0 the same is asked of a model that never saw any chatter, with
--intents auto of one that was not told how many intents there are.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from ronid.data.benchmark_entries import BENCHMARKS, CLASSIC
from ronid.data.benchmarks import read
from ronid.data.corpus import corpus_from
from ronid.data.pile import Pile
from ronid.data.splits import BenchmarkProblem, benchmark_cell, benchmark_problem
from ronid.methods import recipe
from ronid.metrics import auroc, score
from ronid.pipeline import Found, discover
from ronid.types import IntArray
from ronid.version import __version__

CONFIG = recipe("ronid", "fast")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", nargs="*", default=list(CLASSIC))
    parser.add_argument("--seed", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--chatter", type=float, default=0.2, help="share of the pile")
    parser.add_argument("--intents", choices=("given", "auto"), default="given")
    parser.add_argument("--out", type=Path, help="file of rows to add to; only shown without it")
    options = parser.parse_args()
    made_by = {"encoder": "all-MiniLM-L6-v2", "ronid_version": __version__, "version": ""}
    for seed in options.seed:
        for dataset in options.dataset:
            cell = benchmark_cell(dataset, seed=seed, pile=Pile(chatter_ratio=options.chatter))
            problem = benchmark_problem(cell)
            row = {"dataset": dataset, "seed": seed, "part": "test", "preset": "fast"}
            row |= {"chatter_ratio": options.chatter, "split_hash": cell.hash}
            found = fitted(problem, seed, told=options.intents == "given")
            row |= {"k_rule": options.intents, "k": found.discovery.n_intents}
            row |= measure(found, problem, foreign_texts(dataset))
            print(json.dumps(row), flush=True)
            if options.out is not None:
                with options.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"format_version": 1, **row, **made_by}) + "\n")


def foreign_texts(dataset: str) -> list[str]:
    """Return utterances that belong to no intent of a benchmark and are in no pile."""
    return [text for name in BENCHMARKS[dataset].foreign for text in read(name, "test").texts]


def fitted(problem: BenchmarkProblem, seed: int, *, told: bool) -> Found:
    """Fit the pile of a problem as a user would, told the number of real intents or not."""
    split = problem.split
    labels = [problem.classes[t] if t >= 0 else None for t in split.targets]
    corpus = corpus_from(list(split.texts), labels)
    return discover(corpus, split.n_intents if told else None, CONFIG, seed=seed, device="cpu")


def measure(found: Found, problem: BenchmarkProblem, foreign: list[str]) -> dict[str, Any]:
    """Say how the real intents fare and which utterances are rejected, in percent."""
    split, model = problem.split, found.model
    inside, outside = model.predict(list(problem.test_texts)), model.predict(foreign)
    # `discover` sorts the known intents by name; a problem has them in drawn order.
    place = {name: i for i, name in enumerate(problem.classes)}
    known = [place[name] for name in found.discovery.known]
    scores = score(problem.test_targets, inside.labels, known)
    row = {
        "acc": scores.acc,
        "known_acc": scores.known_acc,
        "novel_acc": scores.novel_acc,
        "rejected_inside": 100 * float((~inside.accepted).mean()),
        "rejected_outside": 100 * float((~outside.accepted).mean()),
        "auroc": auroc(inside.belonging, outside.belonging),
    }
    assert split.truth is not None
    labels, k = found.discovery.labels, found.discovery.n_intents
    row |= chatter_clusters(labels, split.truth, k, len(known))
    return {key: round(value, 4) for key, value in row.items()}


def chatter_clusters(labels: IntArray, truth: IntArray, k: int, known: int) -> dict[str, float]:
    """Say where the chatter of a pile went: into clusters of its own, or among real utterances.

    Args:
        labels: (n,) intents found; the known ones come first.
        truth: (n,) true intents, -1 for chatter.
        k: How many intents were found.
        known: How many of them are known.
    """
    chatter = truth < 0
    sizes = np.bincount(labels, minlength=k)
    strange = np.bincount(labels[chatter], minlength=k)
    own = strange > sizes / 2
    total = max(1, int(chatter.sum()))
    return {
        "chatter": int(chatter.sum()),
        "chatter_clusters": int(own.sum()),
        "chatter_in_them": 100 * float(strange[own].sum()) / total,
        "chatter_in_known": 100 * float(strange[:known].sum()) / total,
    }


if __name__ == "__main__":
    main()
