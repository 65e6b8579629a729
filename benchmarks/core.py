"""Run `ronid fit` on the public benchmarks and store the test scores, with k-means beside them.

    python benchmarks/core.py --preset paper --device cuda --out benchmarks/results/core.jsonl

Every cell is: `ronid data split` -> `ronid fit` -> `ronid evaluate` on the test file, all as
commands. The test labels are read by `evaluate` only. A cell that is stored already is skipped.
"""

import argparse
import hashlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ronid.config import to_dict, updated
from ronid.data.benchmarks import BENCHMARKS
from ronid.data.splits import benchmark_cell, benchmark_problem
from ronid.presets import preset

PACKAGES = ("numpy", "scikit-learn", "torch", "transformers")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", nargs="*", default=list(BENCHMARKS))
    parser.add_argument("--preset", nargs="*", default=["paper"], help="presets, or kmeans")
    parser.add_argument("--seed", type=int, nargs="*", default=[0])
    parser.add_argument("--encoder", default="all-MiniLM-L6-v2", help="name, folder or hub id")
    parser.add_argument("--encoder-title", default="all-MiniLM-L6-v2", help="name in the rows")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/core.jsonl"))
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    stored = {_key(row) for row in _rows(options.out)}
    for seed in options.seed:
        for dataset in options.dataset:
            for name in options.preset:
                cell = {"dataset": dataset, "seed": seed, "encoder": options.encoder_title}
                cell |= {"method": "kmeans" if name == "kmeans" else "ronid"}
                cell |= {"preset": "" if name == "kmeans" else name}
                if _key(cell) not in stored:
                    run = _kmeans if name == "kmeans" else _ronid
                    row = cell | _protocol(dataset, seed) | run(dataset, name, seed, options)
                    with options.out.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(row) + "\n")
                    print(json.dumps({**cell, "scores": row["scores"], "wall_s": row["wall_s"]}))


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[k] for k in ("dataset", "method", "encoder", "preset", "seed"))


def _protocol(dataset: str, seed: int) -> dict[str, Any]:
    cell = benchmark_cell(dataset, 0.75, 0.1, seed)
    return {
        "variant": "",
        "known_ratio": 0.75,
        "labelled_ratio": 0.1,
        "k_rule": "given",
        "k": BENCHMARKS[dataset].intents,
        "split_hash": cell.hash,
        "versions": {"python": platform.python_version()} | {p: version(p) for p in PACKAGES},
    }


def _ronid(dataset: str, name: str, seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """Fit and evaluate by the command line, in a folder that is thrown away."""
    from ronid.train.optim import choose_device, device_title

    with tempfile.TemporaryDirectory() as folder:
        split, run = Path(folder) / "split", Path(folder) / "run"
        _call("data", "split", dataset, "--seed", str(seed), "--out", str(split))
        started = time.perf_counter()
        _call(
            *("fit", str(split / "train.csv"), "--dev", str(split / "dev.csv"), "--out", str(run)),
            *("--text", "text", "--label", "intent", "--preset", name),
            *("--intents", str(BENCHMARKS[dataset].intents), "--seed", str(seed)),
            *("--encoder", options.encoder, "--device", options.device),
        )
        wall = time.perf_counter() - started
        answer = _call(
            *("evaluate", str(run), str(split / "test.csv"), "--label", "truth", "--quiet"),
            *("--device", options.device, "--json"),
        )
        seconds = json.loads((run / "metrics.json").read_text())["seconds"]
        config = updated(preset(name), {"encoder": {"name": options.encoder_title}})
        return {
            "scores": {"argmax": json.loads(answer)["scores"]},
            "wall_s": round(wall, 2),
            "seconds": seconds,
            "device": device_title(choose_device(options.device)),
            "config_hash": hashlib.sha256(repr(to_dict(config)).encode()).hexdigest()[:16],
        }


def _kmeans(dataset: str, name: str, seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """k-means on the frozen encoder: fitted on the training rows, applied to the test rows."""
    import torch

    from ronid.assign.kmeans import kmeans
    from ronid.config import EncoderConfig
    from ronid.encode.encoder import build_encoder
    from ronid.metrics import score
    from ronid.train.optim import choose_device, device_title

    problem = benchmark_problem(benchmark_cell(dataset, 0.75, 0.1, seed))
    device = choose_device(options.device)
    started = time.perf_counter()
    config = EncoderConfig(name=options.encoder, trainable_layers=0, adapter_width=1)
    encoder = build_encoder(config, device, seed=seed)  # an untrained adapter is the identity
    train = encoder.embed_all(encoder.prepare(problem.split.texts))
    test = encoder.embed_all(encoder.prepare(problem.test_texts))
    generator = torch.Generator(device).manual_seed(seed)
    found = kmeans(train, problem.split.n_intents, n_init=10, generator=generator)
    labels = torch.cdist(test, found.centroids).argmin(-1).cpu().numpy()
    scores = score(problem.test_targets, labels, len(problem.split.known))
    return {
        "scores": {"argmax": vars(scores)},
        "wall_s": round(time.perf_counter() - started, 2),
        "device": device_title(device),
        "config_hash": "kmeans-10",
    }


def _call(*arguments: str) -> str:
    """Run one `ronid` command; its progress goes to our stderr."""
    command = [sys.executable, "-m", "ronid", *arguments]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=os.environ)
    return done.stdout


if __name__ == "__main__":
    main()
