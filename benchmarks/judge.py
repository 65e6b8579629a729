"""Does a judgement without truth rank runs as their true accuracy does?

    python benchmarks/judge.py --datasets banking stackoverflow --seeds 0 1 --work judge-work

Runs of differing quality are fitted on every split (known ratio 0.75, labelled ratio 0.1): with
less or no training, by k-means alone, with too few and too many intents. Each is judged by what
`ronid evaluate RUN` sees, and only then scored with the truth. Seeds of 100 and more with the dev
file chose how parts become one score; seeds below with the test file say how good it is. Fits are
kept in the work folder, so that a new judge needs no new fit.
"""

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ronid.config import updated
from ronid.data.benchmarks import read
from ronid.data.splits import BenchmarkProblem, benchmark_cell, benchmark_problem
from ronid.encode.cache import FrozenCache
from ronid.encode.encoder import build_encoder
from ronid.files import without_nan
from ronid.head import predict
from ronid.judge import Evidence, judge
from ronid.methods import fit, recipe
from ronid.metrics import score
from ronid.train.optim import choose_device
from ronid.train.state import Training
from ronid.version import __version__

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "judge.jsonl"
STILL = {"contrast": {"epochs": 0}, "m_step": {"epochs": 0}}


@dataclass(frozen=True)
class Variant:
    """A way to be better or worse: settings of preset `fast`, and a factor on the right K."""

    changes: dict[str, Any] | None
    factor: float = 1.0


VARIANTS = {
    "fast": Variant({}),
    "fast, K x 2": Variant({}, 2),
    "k-means": Variant(None),
    "untrained": Variant(STILL),
    "fast, K x 0.8": Variant({}, 0.8),
    "short": Variant({"contrast": {"epochs": 1}, "m_step": {"epochs": 1}}),
    "untrained, K x 2": Variant(STILL, 2),
    "untrained, K x 0.8": Variant(STILL, 0.8),
}


def fitted(
    problem: BenchmarkProblem, name: str, cell: tuple[str, int], cache: FrozenCache, work: Path
) -> dict[str, Any]:
    """Return the arrays of a fit and its scores, from the work folder where they are there."""
    dataset, seed = cell
    slug = "".join(c if c.isalnum() or c == "." else "_" for c in name)
    path = work / f"{dataset}-{seed}-{slug}.npz"
    if not path.exists():
        values = _fit(problem, VARIANTS[name], dataset, seed, cache)
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{path.name}.partial")
        with partial.open("wb") as file:
            np.savez(file, **values)
        partial.replace(path)
    with np.load(path, allow_pickle=False) as stored:
        return {key: stored[key] for key in stored.files}


def _fit(
    problem: BenchmarkProblem, variant: Variant, dataset: str, seed: int, cache: FrozenCache
) -> dict[str, Any]:
    config: Any = recipe("ronid", "fast")
    if variant.changes is None:  # an untrained adapter is the identity, and the cache is shared
        config = replace(recipe("kmeans", "published"), encoder=config.encoder)
    else:
        config = updated(config, variant.changes)
    split = problem.split
    k = max(len(split.known), round(variant.factor * split.n_intents))
    device = choose_device("cpu")
    encoder = build_encoder(config.encoder, device, seed=seed, n_intents=k, cache=cache)
    training = Training(encoder, seed, config.optimiser)
    asked = type(split)(**{**vars(split), "n_intents": k, "truth": None})
    started = time.perf_counter()
    found = fit(asked, config, training)
    dev = read(dataset, "dev")
    index = {label: i for i, label in enumerate(problem.classes)}
    parts = {
        "dev": (dev.texts, [index[str(label)] for label in dev.labels]),
        "test": (problem.test_texts, problem.test_targets),
    }
    scores = {}
    for part, (texts, truth) in parts.items():
        vectors = encoder.embed_all(encoder.prepare(list(texts))).cpu().numpy()
        answer = predict(vectors, found.prototypes, found.temperature, found.rule)
        scores[part] = vars(score(truth, answer.labels, len(split.known)))
    return {
        "embeddings": found.embeddings.astype(np.float16),
        "labels": found.labels,
        "prototypes": found.prototypes,
        "scores": json.dumps(scores),
        "fit_s": time.perf_counter() - started,
    }


def judged(problem: BenchmarkProblem, values: dict[str, Any]) -> dict[str, Any]:
    """Return the judgement of a fit, and how much of what it names the truth confirms."""
    split, k = problem.split, len(values["prototypes"])
    evidence = Evidence(
        texts=split.texts,
        embeddings=values["embeddings"].astype(np.float32),
        labels=values["labels"],
        targets=split.targets,
        prototypes=values["prototypes"].astype(np.float32),
        names=tuple(f"intent {i}" for i in range(k)),
        known=tuple(i < len(split.known) for i in range(k)),
        rows=len(split),
    )
    started = time.perf_counter()
    found = judge(evidence)
    seconds = time.perf_counter() - started
    row_of = {" ".join(text.split()): row for row, text in enumerate(split.texts)}
    members = evidence.members()

    def main_class(rows: Any) -> int:
        return int(np.bincount(problem.split.truth[rows]).argmax())

    twins = [
        main_class(members[t.intents[0]]) == main_class(members[t.intents[1]]) for t in found.twins
    ]
    mixtures = [
        main_class([row_of[text] for text in m.halves[0]])
        != main_class([row_of[text] for text in m.halves[1]])
        for m in found.mixtures
    ]
    return {
        "k": k,
        "score": found.score,
        "parts": vars(found.parts),
        "twins": {"said": len(twins), "right": sum(twins), "right_of_10": sum(twins[:10])},
        "mixtures": {"said": len(mixtures), "right": sum(mixtures)},
        "judge_s": round(seconds, 1),
    }


def fits(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield one row per run."""
    for dataset in options.datasets:
        cache = FrozenCache(options.work / f"cache-{dataset}", keep_weights=True)
        for seed in options.seeds:
            problem = benchmark_problem(benchmark_cell(dataset, 0.75, 0.1, seed))
            for name in options.variants:
                values = fitted(problem, name, (dataset, seed), cache, options.work / "fits")
                scores = json.loads(str(values["scores"]))
                yield {
                    "dataset": dataset,
                    "seed": seed,
                    "preset": "fast",
                    "variant": name,
                    "version": "",
                    "acc": {part: scores[part]["acc"] for part in ("dev", "test")},
                    **judged(problem, values),
                    "versions": {"ronid": __version__, "torch": torch.__version__},
                }


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--datasets", nargs="+", default=["banking", "stackoverflow", "clinc"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--work", type=Path, required=True, help="folder of fits and cache")
    parser.add_argument("--out", type=Path, default=RESULTS, help="JSON lines are appended")
    return parser.parse_args()


def main() -> None:
    options = parse()
    for row in fits(options):
        with options.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(without_nan(row)) + "\n")
        name = f"{row['dataset']} {row['seed']} {row['variant']}"
        print(f"{name}: score {row['score']:.1f}, test ACC {row['acc']['test']:.1f}", flush=True)


if __name__ == "__main__":
    main()
