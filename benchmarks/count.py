"""Measure how many intents the filters of published methods count, on the features ours sees.

    python benchmarks/count.py --seed 0 1 2 --work FOLDER --out FILE

Of every benchmark split (75% known, 10% labelled) the encoder of preset `fast` learns from
neighbours, as before our own count. Then the filters of published methods count, each from two and
from three times the truth. Ours is measured by the harness, see benchmarks/configs/count.toml.
Sentences are embedded once for all seeds, in FOLDER.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from ronid.data.benchmark_entries import CLASSIC
from ronid.data.splits import Cell, benchmark_cell, benchmark_problem
from ronid.encode.cache import FrozenCache
from ronid.encode.encoder import build_encoder
from ronid.methods.ronid import contrast, count_intents, lengthened
from ronid.presets import preset
from ronid.progress import Silent
from ronid.train.state import Training, inputs_of
from ronid.types import CountRule
from ronid.version import __version__

RULES: tuple[CountRule, ...] = ("deep_aligned", "dpn", "usnid")
FACTORS = (2, 3)


def counted(cell: Cell, rules: Sequence[CountRule], cache: FrozenCache) -> Iterator[dict[str, Any]]:
    """Train on neighbours, then count by every rule from every start."""
    split, seed = benchmark_problem(cell).split, cell.seed
    config = preset("fast")
    encoder = build_encoder(config.encoder, torch.device("cpu"), seed=seed, cache=cache)
    training = Training(encoder, seed, config.optimiser, Silent())
    rows = encoder.prepare(inputs_of(split), training.progress)
    unknown = replace(split, count_rule="auto", n_intents=0)
    rough = count_intents(training, unknown, rows, "rough_count")
    contrast(training, rough, rows, lengthened(config.contrast, split))
    for rule in rules:
        for factor in FACTORS:
            asked = replace(split, count_rule=rule, n_intents=factor * split.n_intents)
            count_intents(training, asked, rows, f"{rule}@{factor}")
            yield {
                "format_version": 1,
                "dataset": cell.dataset,
                "known_ratio": cell.known_ratio,
                "seed": seed,
                "rule": f"{rule}@{factor}",
                "found": training.history[-1]["k"],
                "intents": split.n_intents,
                "ronid_version": __version__,
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset", nargs="*", default=list(CLASSIC), help="CLASSIC by default")
    parser.add_argument("--seed", type=int, nargs="+", default=list(range(10)))
    parser.add_argument("--rule", choices=RULES, nargs="+", default=RULES, help="all by default")
    parser.add_argument("--work", type=Path, required=True, help="folder for embeddings")
    parser.add_argument("--out", type=Path, required=True, help="file to add rows to")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    cache = FrozenCache(options.work)
    for dataset in options.dataset:
        for seed in options.seed:
            cell = benchmark_cell(dataset, seed=seed)
            rows = list(counted(cell, options.rule, cache))
            with options.out.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)
            print(dataset, seed, {row["rule"]: row["found"] for row in rows}, flush=True)


if __name__ == "__main__":
    main()
