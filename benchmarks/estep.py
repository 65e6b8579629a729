"""Time and peak memory of the E-step, ours against POT, to the same column error.

    python benchmarks/estep.py --rows 18000 1000000 --classes 150 --device cpu --out estep.jsonl

Each measurement is a process of its own, so that its peak memory is its own. The scores are
cosines of clustered random unit vectors with their prototypes; the prior is imbalanced. A
measurement starts from scores (streamed: from embeddings) in memory and ends with a label for
every row. POT stops by another rule: its number of iterations is raised, off the clock, until its
column error is the one asked for, and the run with that number is the one that is timed.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from ronid.assign.sinkhorn import cosine_blocks, sinkhorn

ETA = 0.05
DIMENSION = 384
TOLERANCE = 1e-3
MAX_ITERATIONS = 10_000
SOLVERS = (
    "ronid matrix float32",
    "ronid matrix float64",
    "ronid streamed float32",
    "POT sinkhorn",
    "POT sinkhorn_log",
)
POT_MATRICES = {"POT sinkhorn": 4, "POT sinkhorn_log": 6}  # float64 (n, k) arrays held at the peak

Solved = tuple[Tensor, int, float]
"""Labels, iterations, L1 column error."""


def make_problem(rows: int, classes: int, device: str) -> tuple[Tensor, Tensor, Tensor]:
    """Embeddings (n, d), prototypes (k, d) and prior (k,), the same for every solver."""
    generator = torch.Generator().manual_seed(0)
    prototypes = normalize(torch.randn(classes, DIMENSION, generator=generator), dim=1)
    prior = 1 / (5 + torch.randperm(classes, generator=generator).double())  # 30 to 1 for 150
    prior /= prior.sum()
    embeddings = torch.empty(rows, DIMENSION)
    for start in range(0, rows, 8192):
        block = embeddings[start : start + 8192]
        owner = torch.multinomial(prior, len(block), replacement=True, generator=generator)
        noise = torch.randn(block.shape, generator=generator) * 1.3 / DIMENSION**0.5
        block.copy_(normalize(prototypes[owner] + noise, dim=1))
    shifted = torch.randn(prototypes.shape, generator=generator) * 0.5 / DIMENSION**0.5
    prototypes = normalize(prototypes + shifted, dim=1)
    return embeddings.to(device), prototypes.to(device), prior.to(device)


def prepare(solver: str, rows: int, classes: int, device: str, temperature: float) -> Any:
    """A function without arguments that solves the problem; its inputs are in memory already."""
    embeddings, prototypes, prior = make_problem(rows, classes, device)
    if solver == "ronid streamed float32":
        blocks = cosine_blocks(embeddings, prototypes, temperature=temperature)
        return lambda: solve_ours(blocks, prior, kernel_bytes=0)
    scores = embeddings @ prototypes.T / temperature
    del embeddings
    if solver.startswith("ronid"):
        scores = scores.to(getattr(torch, solver.rsplit(maxsplit=1)[-1]))
        return lambda: solve_ours(scores, prior, kernel_bytes=2**34)
    return prepare_pot(scores, prior, method=solver.rsplit(maxsplit=1)[-1])


def solve_ours(scores: Any, prior: Tensor, kernel_bytes: int) -> Solved:
    plan = sinkhorn(
        scores,
        prior,
        eta=ETA,
        tolerance=TOLERANCE,
        max_iterations=MAX_ITERATIONS,
        kernel_bytes=kernel_bytes,
    )
    return plan.labels(), plan.iterations, plan.residual


def prepare_pot(scores: Tensor, prior: Tensor, method: str) -> Callable[[], Solved]:
    """POT with the least number of iterations, in tens, that meets the tolerance."""
    import ot

    cost, nu = -scores.double(), prior
    mu = torch.full((len(cost),), 1 / len(cost), dtype=torch.float64, device=cost.device)
    if scores.device.type == "cpu":  # numpy is POT's home
        cost, nu, mu = cost.numpy(), nu.numpy(), mu.numpy()
    del scores

    def solve(iterations: int, **more: Any) -> Any:
        return ot.sinkhorn(
            mu, nu, cost, ETA, method, numItermax=iterations, stopThr=0, warn=False, **more
        )

    def error(plan: Any) -> float:
        return float(abs(plan.sum(0) - nu).sum())

    iterations, start = 0, None
    while True:  # off the clock: ten more from where the last ten ended
        plan, log = solve(10, log=True, warmstart=start)
        iterations += 10
        if error(plan) < TOLERANCE:
            break
        if iterations >= MAX_ITERATIONS:
            raise ArithmeticError(f"POT {method} is not at {TOLERANCE} after {iterations}")
        start = (ot.backend.get_backend(mu).log(log["u"]), ot.backend.get_backend(mu).log(log["v"]))
        del plan

    def timed() -> Solved:
        plan = solve(iterations)
        return torch.as_tensor(plan.argmax(1)), iterations, error(plan)

    return timed


def measure(task: dict[str, Any], labels_path: Path) -> dict[str, Any]:
    """Run one solver in this process and describe how it went."""
    solve = prepare(**task)
    cuda = task["device"] == "cuda"
    if cuda:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
    before = reset_peak(cuda)
    start = time.perf_counter()
    labels, iterations, residual = solve()
    if cuda:
        torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    peak = peak_bytes(cuda)
    np.save(labels_path, labels.cpu().numpy(), allow_pickle=False)
    return {
        "seconds": round(seconds, 4),
        "iterations": iterations,
        "residual": residual,
        "peak_memory_bytes": peak,
        "memory_beyond_input_bytes": max(0, peak - before),
    }


def reset_peak(cuda: bool) -> int:
    """Forget the peak of making the problem; return the bytes in use now."""
    if cuda:
        return torch.cuda.memory_allocated()
    try:
        Path("/proc/self/clear_refs").write_text("5")  # resets VmHWM, Linux only
    except OSError:
        return peak_bytes(cuda)
    return status_bytes("VmRSS")


def peak_bytes(cuda: bool) -> int:
    if cuda:
        return torch.cuda.max_memory_allocated()
    if Path("/proc/self/status").exists():
        return status_bytes("VmHWM")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def status_bytes(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def reason_to_skip(task: dict[str, Any]) -> str | None:
    """Why this measurement cannot be made here, or None."""
    matrices = POT_MATRICES.get(task["solver"])
    if matrices is None:
        return None
    if find_spec("ot") is None:
        return "POT is not installed"
    needed = matrices * task["rows"] * task["classes"] * 8
    if task["device"] == "cuda":
        available = torch.cuda.mem_get_info()[0]
    else:
        available = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed > available:
        return f"needs {needed / 2**30:.1f} GiB, {available / 2**30:.1f} GiB are free"
    return None


def run_apart(task: dict[str, Any], labels_path: Path, timeout: float) -> dict[str, Any]:
    """Measure in a new process; a failure becomes the reason of a skipped row."""
    reason = reason_to_skip(task)
    if reason:
        return {"skipped": reason}
    command = [sys.executable, __file__, "--measure", json.dumps(task), str(labels_path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return {"skipped": f"took longer than {timeout:.0f} s"}
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        return {"skipped": f"exit code {done.returncode}: {last[0]}"}
    return dict(json.loads(done.stdout.splitlines()[-1]))


def versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version(), "torch": torch.__version__}
    for package in ("numpy", "POT", "ronid"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def describe_device(device: str) -> str:
    if device == "cuda":
        return torch.cuda.get_device_name()
    names = Path("/proc/cpuinfo")
    lines = names.read_text().splitlines() if names.exists() else []
    name = next((line.split(":")[1].strip() for line in lines if "model name" in line), "CPU")
    return f"{name}, {torch.get_num_threads()} threads"


def print_row(row: dict[str, Any]) -> None:
    head = f"{row['rows']:>9,} x {row['classes']:<4} T={row['temperature']:<5} {row['solver']:<23}"
    if "skipped" in row:
        print(f"{head} skipped: {row['skipped']}", flush=True)
        return
    agreement = row["label_agreement"]
    print(
        f"{head} {row['seconds']:>9.3f} s {row['iterations']:>6} it  error {row['residual']:.1e}"
        f"  peak {row['peak_memory_bytes'] / 2**20:>8,.0f} MiB"
        f" (+{row['memory_beyond_input_bytes'] / 2**20:,.0f})"
        f"  labels {'-' if agreement is None else f'{agreement:.5f}'}",
        flush=True,
    )


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, nargs="+", default=[18_000, 1_000_000])
    parser.add_argument("--classes", type=int, default=150)
    parser.add_argument("--temperatures", type=float, nargs="+", default=[1.0, 0.07])
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--solvers", nargs="+", choices=SOLVERS, default=list(SOLVERS))
    parser.add_argument("--timeout", type=float, default=1800, help="seconds per measurement")
    parser.add_argument("--out", type=Path, help="JSON lines are appended to this file")
    parser.add_argument("--measure", nargs=2, metavar=("TASK", "LABELS"), help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def main() -> None:
    options = parse()
    if options.measure:
        task, labels_path = options.measure
        print(json.dumps(measure(json.loads(task), Path(labels_path))))
        return
    common = {"versions": versions(), "device_name": describe_device(options.device)}
    for rows in options.rows:
        for temperature in options.temperatures:
            reference: np.ndarray | None = None
            for solver in options.solvers:
                task = {
                    "solver": solver,
                    "rows": rows,
                    "classes": options.classes,
                    "device": options.device,
                    "temperature": temperature,
                }
                with tempfile.TemporaryDirectory() as folder:
                    labels_path = Path(folder) / "labels.npy"
                    row = task | run_apart(task, labels_path, options.timeout)
                    if "skipped" not in row:
                        labels = np.load(labels_path, allow_pickle=False)
                        reference = labels if reference is None else reference
                        row["label_agreement"] = float((labels == reference).mean())
                row |= {"eta": ETA, "tolerance": TOLERANCE, **common}
                print_row(row)
                if options.out:
                    with options.out.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
