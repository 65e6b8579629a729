"""Fit and predict with an earlier source; `before.py` starts this process and sends it requests.

PYTHONPATH names the earlier source, so every import of `ronid` here is an import from there. Each
line of standard input is the path of a JSON file with one request. If the request has a `problem`,
the process fits it and predicts; otherwise it returns the hash of the settings. Each answer is one
line of JSON.
"""

import json
import os
import sys
import time
import traceback
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np


def main() -> None:
    """Answer requests until standard input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # so that no library prints among the answers
    settings = json.loads(sys.argv[1])
    import ronid

    if not Path(ronid.__file__).resolve().is_relative_to(settings["source"]):
        raise SystemExit(f"{ronid.__file__} is not in {settings['source']}; check PYTHONPATH")
    bench = bench_of(settings)
    for line in sys.stdin:
        request = json.loads(Path(line.rstrip("\n")).read_text(encoding="utf-8"))
        print(json.dumps(answered(bench, request)), file=answers, flush=True)


def bench_of(settings: dict[str, Any]) -> Any:
    """Return what all jobs share: settings, device and the encodings of frozen layers."""
    from ronid.bench.cell import Bench
    from ronid.bench.plan import Plan
    from ronid.bench.variants import VARIANTS

    plan = Plan(
        cells=(),
        encoder_paths=settings["encoder_paths"],
        settings=settings["settings"],
        variants=VARIANTS | settings["variants"],
    )
    return Bench(plan, settings["device"])


def answered(bench: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a request, or the reason why there is none."""
    from ronid.bench.plan import BenchCell, config_hash

    known = {item.name for item in fields(BenchCell)}
    cell = BenchCell(**{name: value for name, value in request["cell"].items() if name in known})
    try:
        config = bench.plan.config(cell)
        if "problem" not in request:
            return {"config_hash": config_hash(config)}
        return fitted(bench, cell, config, request)
    except Exception as error:
        traceback.print_exc()
        return {"error": f"{type(error).__name__}: {error}"}


def fitted(bench: Any, cell: Any, config: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Fit and predict in the same steps as `ronid.bench.cell` of the earlier source."""
    from ronid.bench import cell as harness
    from ronid.bench.rows import thinned
    from ronid.files import without_nan
    from ronid.methods import fit
    from ronid.progress import Stopwatch
    from ronid.train.infer import predict
    from ronid.train.optim import choose_device
    from ronid.train.state import Training

    device = choose_device(bench.device)
    harness._import_all()
    harness._begin_memory(device)
    watch = Stopwatch()
    started = time.perf_counter()
    split = split_of(request["problem"])
    encoder = harness._encoder(bench, cell, config, device, split.n_intents)
    hits = encoder.cache.hits
    discovery = fit(split, config, Training(encoder, cell.seed, config.optimiser, watch))
    features = encoder.embed_all(encoder.prepare(request["texts"], watch))
    prototypes = harness._tensor(discovery.prototypes, device)
    found = predict(features, prototypes, discovery.temperature, discovery.rule)
    wall_s = time.perf_counter() - started
    answer = {"labels": np.asarray(found.labels).tolist(), "k": discovery.n_intents}
    answer |= {"wall_s": round(wall_s, 3), "shared_s": 0.0, "jobs": 1}
    answer |= {"seconds": harness._rounded(watch.seconds), "cache_hits": encoder.cache.hits - hits}
    answer |= {**harness._memory(device), **harness._where(device)}
    if "history" in request["keep"]:
        answer["history"] = [harness._rounded(epoch) for epoch in thinned(discovery.history)]
    plain: dict[str, Any] = without_nan(answer)
    return plain


def split_of(problem: dict[str, Any]) -> Any:
    """Return the problem in the form of the earlier source."""
    from ronid.types import Split

    arrays = {
        name: np.array(problem[name], np.int64) for name in ("targets", "dev_targets", "truth")
    }
    texts = {name: tuple(problem[name]) for name in ("texts", "known", "dev_texts")}
    return Split(
        **texts, **arrays, n_intents=problem["n_intents"], count_rule=problem["count_rule"]
    )


if __name__ == "__main__":
    main()
