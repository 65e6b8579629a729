"""Measure the names of new intents: does a name lead back to the true label it stands for?

    python benchmarks/names.py --dataset banking --seed 0 1 2
    python benchmarks/names.py --dataset banking RUN_0 RUN_1 RUN_2

The true label of a found intent is the one most of its utterances have. Its name, as words, is
compared with the names of all labels of the dataset by the frozen default encoder; it counts
where the true label is the nearest (top 1) or among the three nearest. Beside it stands the
strongest keyphrase alone. Run folders need the truth (`ronid fit --truth`); their names are made
anew. A dataset and seed that is stored already is skipped.
"""

import argparse
import csv
import json
import platform
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from ronid.data.benchmarks import BENCHMARKS
from ronid.data.splits import benchmark_cell, benchmark_problem
from ronid.export.rename import named_anew
from ronid.methods import from_toml
from ronid.run import RunFolder, open_finished
from ronid.types import FloatArray, Intent

ENCODER = "all-MiniLM-L6-v2"
PURE = 0.5
PACKAGES = ("numpy", "torch", "transformers")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path, nargs="*", help="finished runs; none: fit `fast`")
    parser.add_argument("--dataset", required=True, choices=list(BENCHMARKS))
    parser.add_argument("--seed", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/names.jsonl"))
    options = parser.parse_args()
    stored = {(row["dataset"], row["seed"]) for row in _rows(options.out)}
    with tempfile.TemporaryDirectory() as folder:
        runs = options.runs or [Path(folder) / str(seed) for seed in options.seed]
        for place, path in enumerate(runs):
            if not options.runs:
                if (options.dataset, options.seed[place]) in stored:
                    continue
                _fit(options.dataset, options.seed[place], path)
            run = open_finished(path)
            seed = run.facts()["seed"]
            if (options.dataset, seed) in stored:
                continue
            row = {"dataset": options.dataset, "seed": seed} | measure(run)
            with options.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
            print(json.dumps({key: row[key] for key in ("dataset", "seed", "scores")}))


def measure(run: RunFolder) -> dict[str, Any]:
    """Return the scores of a run's names, and every name beside the truth."""
    table = run.assignments()
    labels, truth = table["index"].to_numpy(), table["truth"].to_pylist()
    targets = sorted({label for label in truth if label is not None})
    found = []
    for intent in named_anew(run):
        rows = np.flatnonzero(labels == intent.index)
        counts = Counter(truth[row] for row in rows if truth[row] is not None)
        if not intent.known and counts:
            label, count = min(counts.items(), key=lambda item: (-item[1], item[0]))
            found.append(_entry(intent, label, count / counts.total()))
    vectors = embed([words(target) for target in targets])
    wanted = np.array([targets.index(entry["truth"]) for entry in found])
    for kind in ("name", "keyphrase"):
        ranks = rank_of(embed([words(entry[kind]) for entry in found]), vectors, wanted)
        for entry, rank in zip(found, ranks, strict=True):
            entry[f"{kind}_rank"] = int(rank) + 1
    return {
        "preset": from_toml(run.path / "config.toml").preset,
        "encoder": ENCODER,
        "labels": len(targets),
        "scores": {
            kind: {"all": _top(found, kind), "pure": _top(_pure(found), kind)}
            for kind in ("name", "keyphrase")
        },
        "names": found,
        "versions": {"python": platform.python_version()} | {p: version(p) for p in PACKAGES},
        "version": "",  # see mark_before.py
    }


def _entry(intent: Intent, label: str, purity: float) -> dict[str, Any]:
    return {
        "name": intent.name,
        "keyphrase": intent.keyphrases[0] if intent.keyphrases else intent.name,
        "truth": label,
        "purity": round(purity, 3),
        "size": intent.size,
    }


def words(name: str) -> str:
    """Turn an identifier into words."""
    return " ".join(name.replace("_", " ").split())


def rank_of(names: FloatArray, targets: FloatArray, wanted: np.ndarray) -> np.ndarray:
    """Return how many labels are nearer to each name than the wanted one.

    Args:
        names: (n, d) unit vectors.
        targets: (m, d) unit vectors.
        wanted: (n,) positions among the targets.
    """
    alike = names @ targets.T
    return (alike > alike[np.arange(len(names)), wanted][:, None]).sum(axis=1)


def embed(texts: Sequence[str]) -> FloatArray:
    """Return unit vectors of the frozen default encoder."""
    from ronid.config import EncoderConfig
    from ronid.encode.encoder import build_encoder
    from ronid.train.optim import choose_device

    # An untrained adapter is the identity.
    config = EncoderConfig(trainable_layers=0, adapter_width=1)
    encoder = build_encoder(config, choose_device("cpu"), seed=0)
    vectors: FloatArray = encoder.embed_all(encoder.prepare(list(texts))).cpu().numpy()
    return vectors


def _pure(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [entry for entry in found if entry["purity"] >= PURE]


def _top(found: list[dict[str, Any]], kind: str) -> dict[str, float]:
    ranks = np.array([entry[f"{kind}_rank"] for entry in found])
    shares = {f"top{n}": round(100 * float((ranks <= n).mean()), 2) for n in (1, 3)}
    return {"intents": len(found), **shares}


def _fit(dataset: str, seed: int, path: Path) -> None:
    """Make the run of one seed: 75% of the intents known, a tenth of their rows labelled."""
    problem = benchmark_problem(benchmark_cell(dataset, 0.75, 0.1, seed))
    split, source = problem.split, path.with_suffix(".csv")
    assert split.truth is not None
    with source.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("text", "label", "truth"))
        for text, target, true in zip(split.texts, split.targets, split.truth, strict=True):
            label = split.known[target] if target >= 0 else ""
            writer.writerow((text, label, problem.classes[true]))
    command = [sys.executable, "-m", "ronid", "fit", str(source), "--out", str(path), "--quiet"]
    command += ["--text", "text", "--label", "label", "--truth", "truth", "--preset", "fast"]
    command += ["--intents", str(split.n_intents), "--seed", str(seed)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def _rows(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


if __name__ == "__main__":
    main()
