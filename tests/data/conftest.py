import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from ronid.data import benchmarks
from ronid.data.benchmark_entries import BENCHMARKS, CLASSIC, PARTS, Benchmark

PUBLISHED_SPLITS = tuple(name for name, entry in BENCHMARKS.items() if entry.own_split)


@pytest.fixture
def benchmark_data() -> None:
    """Skip a test if a benchmark of the paper is missing or changed."""
    for name in CLASSIC:
        _skip_unless_complete(name)


@pytest.fixture(params=PUBLISHED_SPLITS)
def published_dataset(request: pytest.FixtureRequest) -> str:
    """Return the name of each BOLT and TLSA data set; skip if it is missing or changed."""
    _skip_unless_complete(request.param)
    return str(request.param)


def _skip_unless_complete(name: str) -> None:
    if {state.status for state in benchmarks.check(name)} != {"ok"}:
        pytest.skip(f"benchmark {name} is missing: set RONID_DATA or run ronid data fetch {name}")


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Path]:
    """Register a small benchmark named "toy" and write it under RONID_DATA when called."""
    counts = {"train": {"a": 20, "b": 10, "c": 5, "d": 30}, "dev": dict.fromkeys("abcd", 3)}
    counts["test"] = dict.fromkeys("abcd", 2)
    content = {
        part: "text\tlabel\n"
        + "".join(f'"{part} {k}, {i}"\t{k}\n' for k, n in counts[part].items() for i in range(n))
        for part in PARTS
    }
    entry = Benchmark(
        title="Toy",
        intents=4,
        rows={part: sum(counts[part].values()) for part in PARTS},
        sha256={part: hashlib.sha256(content[part].encode()).hexdigest() for part in PARTS},
        licence="none",
        origin="here",
        location="owner/repository/HEAD/data/toy",
        max_length_tokens=10,
    )
    monkeypatch.setitem(BENCHMARKS, "toy", entry)
    monkeypatch.setenv("RONID_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("RONID_DATA", raising=False)

    def write(folder: Path = tmp_path / "given" / "toy") -> Path:
        folder.mkdir(parents=True)
        for part, text in content.items():
            (folder / f"{part}.tsv").write_text(text, encoding="utf-8")
        monkeypatch.setenv("RONID_DATA", str(tmp_path / "given"))
        return folder

    return write
