import errno
import socket
from pathlib import Path
from typing import Any

import pytest

from ronid.bench import cell
from ronid.data.benchmark_entries import BENCHMARKS
from tests.helpers import toy_benchmark
from tests.helpers.toy_corpus import TinyEncoder


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the toy benchmarks, as RONID_DATA."""
    return toy_benchmark.write(tmp_path_factory.mktemp("benchmarks"))


@pytest.fixture
def toy(data: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the toy benchmarks known to this process, and nothing remembered of other tests."""
    for name in ("toy", "toy2"):
        monkeypatch.setitem(BENCHMARKS, name, toy_benchmark.entry())
    monkeypatch.setenv("RONID_DATA", str(data))
    monkeypatch.setenv("RONID_CACHE", str(data / "cache"))
    cell._split.cache_clear()
    cell._problem.cache_clear()
    return data


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Refuse every connection to a network, and return the list of addresses that were tried."""
    tried: list[Any] = []

    def refuse(_: socket.socket, address: Any) -> None:
        tried.append(address)
        raise OSError(errno.ENETUNREACH, "no network in this test")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    return tried


@pytest.fixture
def encoder(tiny: TinyEncoder) -> str:
    """Folder of a tiny BERT."""
    return tiny("bert")
