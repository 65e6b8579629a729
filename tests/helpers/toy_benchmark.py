"""A small benchmark, also for commands: `python -m tests.helpers.toy_benchmark bench run ...`."""

import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path

from ronid.data.benchmark_entries import BENCHMARKS, Benchmark
from tests.helpers import ROOT
from tests.helpers.toy_corpus import make_toy

PARTS = {"train": (120, 0), "dev": (30, 1), "test": (60, 2)}
INTENTS = 6
QUICK = """
[settings.encoder]
adapter_width = 16
[settings.contrast]
epochs = 1
batch = 64
[settings.m_step]
epochs = 2
batch = 64
"""


def content() -> dict[str, str]:
    """Return the text of every part as TSV."""
    texts = {}
    for part, (rows, seed) in PARTS.items():
        toy = make_toy(rows, INTENTS, seed)
        lines = [f"{text}\t{name}" for text, name in zip(toy.texts, toy.truth, strict=True)]
        texts[part] = "text\tlabel\n" + "\n".join(lines) + "\n"
    return texts


def write(folder: Path) -> Path:
    """Write the benchmarks `toy` and `toy2` as RONID_DATA would hold them."""
    for name in ("toy", "toy2"):
        (folder / name).mkdir(parents=True)
        for part, text in content().items():
            (folder / name / f"{part}.tsv").write_text(text, encoding="utf-8")
    return folder


def entry() -> Benchmark:
    """Return what the registry of benchmarks holds about the toy."""
    return Benchmark(
        title="Toy",
        intents=INTENTS,
        rows={part: rows for part, (rows, _) in PARTS.items()},
        sha256={part: hashlib.sha256(t.encode()).hexdigest() for part, t in content().items()},
        licence="none",
        origin="here",
        location="owner/repository/HEAD/data/toy",
        max_length_tokens=10,
    )


def command(*arguments: str | Path) -> list[str]:
    """Return the command line of `ronid` with the toy benchmarks in it."""
    return [sys.executable, "-m", __spec__.name, *map(str, arguments)]


def environment(data: Path) -> dict[str, str]:
    """Return the environment of such a command: the data, one thread, no network."""
    fixed = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "COLUMNS": "120"}
    folders = {"RONID_DATA": data, "RONID_CACHE": data / "cache", "PYTHONPATH": ROOT}
    return {**os.environ, **fixed, **{name: str(folder) for name, folder in folders.items()}}


def ronid(data: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        command(*arguments),
        capture_output=True,
        text=True,
        env=environment(data),
        check=False,
        timeout=120,
    )


if __name__ in ("__main__", "__mp_main__"):  # the second is what a spawned worker calls it
    BENCHMARKS["toy"] = BENCHMARKS["toy2"] = entry()

if __name__ == "__main__":
    from ronid.cli import main

    # A shell may have started the tests in the background, where interrupts are ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main()
