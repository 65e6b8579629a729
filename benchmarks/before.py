"""Measure the answer of commit 8ba84b5 on the splits and with the measures of today.

    python benchmarks/before.py CONFIG.toml [--out FILE] [--device auto] [--encoder TITLE=FOLDER]

The code of that commit knows neither the later data sets nor strict accuracy. So today's code lists
the jobs of the config, builds their problems and scores the answers. The earlier code only fits and
predicts, in its own process (`before_worker.py`). Rows have `version` = "before". Jobs whose rows
are stored are skipped: after an interruption, run the same command again.

The earlier source comes from git, see `export_source.py`. On a machine without the repository,
`carry/8ba84b5` must exist; run `python benchmarks/export_source.py` to create it.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from export_source import VERSION, export_source

from ronid.bench.cell import problem_of, scored_rows, scores_of, split_of
from ronid.bench.plan import FORMAT_VERSION, BenchCell, Plan, read_encoders, read_plan
from ronid.bench.rows import append_row, coordinates, read_rows
from ronid.bench.variants import VARIANTS
from ronid.data.splits import BenchmarkProblem
from ronid.errors import RonidError

HERE = Path(__file__).resolve().parent
METHOD = "ronid"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("config", type=Path, help="benchmark config")
    parser.add_argument(
        "--out", type=Path, help="result file; that of `ronid bench run` by default"
    )
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    parser.add_argument(
        "--encoder", action="append", metavar="TITLE=FOLDER", help="may be repeated"
    )
    parser.add_argument("--source", type=Path, help="folder that contains the earlier src")
    options = parser.parse_args(arguments)
    out = options.out or HERE / "results" / f"{options.config.stem}.jsonl"
    plan = read_plan(options.config, read_encoders(options.encoder or ()))
    cells = [replace(cell, version=VERSION) for cell in plan.cells if cell.method == METHOD]
    others = len(plan.cells) - len(cells)
    if others:
        print(f"Jobs of other methods that are left out: {others} (only RoNID changes)")
    failed = 0
    with start_earlier_code(options.source or export_source(), plan, options.device) as code:
        for number, cell in enumerate(cells, 1):
            outcome = measure(code, plan, cell, out)
            failed += outcome.startswith("failed")
            print(f"[{number}/{len(cells)}] {cell}: {outcome}", flush=True)
    if failed:
        raise SystemExit(f"{failed} of {len(cells)} jobs failed")


def measure(code: "EarlierCode", plan: Plan, cell: BenchCell, out: Path) -> str:
    """Run one job unless its row is stored, store the row, and return what to print."""
    row = asdict(cell) | {"format_version": FORMAT_VERSION}
    try:
        row |= code.ask({"cell": asdict(cell)})
        row["split_hash"] = split_of(cell).hash
        if is_stored(row, plan.keep, out):
            return "stored"
        problem = problem_of(cell)
        texts, truth = scored_rows(problem, cell)
        answer = code.ask(
            {"cell": asdict(cell), "problem": plain(problem), "texts": texts, "keep": plan.keep}
        )
    except RonidError as error:
        return f"failed: {error}"
    scores = scores_of(problem, truth, np.array(answer.pop("labels"), np.int64))
    append_row(out, row | {"scores": {"argmax": scores}} | answer)
    return f"ACC {scores['acc']:.2f}, strict {scores['strict_acc']:.2f}, {answer['wall_s']:.1f} s"


def is_stored(row: Mapping[str, Any], keep: Sequence[str], out: Path) -> bool:
    """Return whether a file has a row with scores of the same job, settings and split."""
    return out.exists() and any(
        "scores" in other
        and coordinates(other) == coordinates(dict(row))
        and all(other.get(key) == row[key] for key in ("config_hash", "split_hash"))
        and all(key in other for key in keep if key == "history")
        for other in read_rows(out)
    )


def plain(problem: BenchmarkProblem) -> dict[str, Any]:
    """Return what a method may look at as plain values."""
    split = problem.split
    assert split.truth is not None  # a benchmark's always is
    return {
        "texts": list(split.texts),
        "targets": split.targets.tolist(),
        "known": list(split.known),
        "n_intents": split.n_intents,
        "count_rule": split.count_rule,
        "dev_texts": list(split.dev_texts),
        "dev_targets": split.dev_targets.tolist(),
        "truth": split.truth.tolist(),
    }


class EarlierCode:
    """A process that runs the earlier code and answers one request at a time.

    Args:
        process: The process. It reads paths of requests and writes answers, one per line.
        folder: Folder for the request.
    """

    def __init__(self, process: "subprocess.Popen[str]", folder: Path) -> None:
        self._process = process
        self._request = folder / "request.json"

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a request.

        Raises:
            RonidError: The earlier code refuses the request.
            RuntimeError: The process has ended.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._request.write_text(json.dumps(request), encoding="utf-8")
        try:
            self._process.stdin.write(f"{self._request}\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise RuntimeError(
                "the process of the earlier code has ended; run the same command again"
            )
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise RonidError(answer["error"])
        return answer


@contextmanager
def start_earlier_code(source: Path, plan: Plan, device: str) -> Iterator[EarlierCode]:
    """Start a process that runs the code in `source`, and stop it at the end.

    Args:
        source: Folder that contains `src`.
        plan: The benchmark config; the process reads its settings with the earlier code.
        device: `auto`, `cpu` or `cuda`.
    """
    src = (source / "src").resolve()
    if not (src / "ronid" / "__init__.py").exists():
        raise SystemExit(f"'{src}' does not contain ronid; run: python benchmarks/export_source.py")
    own = {name: change for name, change in plan.variants.items() if VARIANTS.get(name) != change}
    settings = {
        "source": str(src),
        "device": device,
        "settings": dict(plan.settings),
        "variants": own,
        "encoder_paths": dict(plan.encoder_paths),
    }
    with tempfile.TemporaryDirectory(prefix="ronid-before-") as folder:
        process = subprocess.Popen(
            [sys.executable, str(HERE / "before_worker.py"), json.dumps(settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": str(src)},
        )
        try:
            yield EarlierCode(process, Path(folder))
        finally:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    main()
