import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from ronid.data import benchmarks
from ronid.data.benchmark_entries import BENCHMARKS, CLASSIC
from ronid.errors import DataError, RonidError, UsageError

Toy = Callable[..., Path]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    handler = partial(Quiet, directory=str(tmp_path / "server"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


def served(toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = toy(tmp_path / "server" / BENCHMARKS["toy"].location)
    monkeypatch.delenv("RONID_DATA")
    return folder


def test_fetched_benchmark_is_found_and_read(
    toy: Toy, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served(toy, tmp_path, monkeypatch)
    folder = benchmarks.fetch("toy", base_url=server)
    assert folder == benchmarks.find("toy") == tmp_path / "cache" / "data" / "toy"
    assert [state.status for state in benchmarks.check("toy")] == ["ok"] * 3
    assert len(benchmarks.read("toy", "train")) == BENCHMARKS["toy"].rows["train"]
    # A second call finds everything in place: no server is needed.
    assert benchmarks.fetch("toy", base_url="http://127.0.0.1:9") == folder


def test_corrupted_download_is_refused_and_leaves_nothing(
    toy: Toy, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    origin = served(toy, tmp_path, monkeypatch)
    (origin / "dev.tsv").write_text("text\tlabel\nchanged\ta\n")
    with pytest.raises(RonidError, match="other bytes than the published ones"):
        benchmarks.fetch("toy", base_url=server)
    left = [path.name for path in (tmp_path / "cache" / "data" / "toy").iterdir()]
    assert left == ["train.tsv"]


def test_file_absent_from_the_server_is_one_line(toy: Toy, server: str, tmp_path: Path) -> None:
    with pytest.raises(RonidError, match=r"cannot be downloaded \(.*RONID_DATA") as caught:
        benchmarks.fetch("toy", base_url=server, folder=tmp_path / "here")
    assert "\n" not in str(caught.value)
    assert list((tmp_path / "here" / "toy").iterdir()) == []


def test_unreachable_server_is_one_line(toy: Toy) -> None:
    with pytest.raises(RonidError, match="refused.*check the connection") as caught:
        benchmarks.fetch("toy", base_url="http://127.0.0.1:9")
    assert "\n" not in str(caught.value)


def test_benchmark_that_is_nowhere_names_both_ways(toy: Toy) -> None:
    with pytest.raises(DataError, match="ronid data fetch toy, or set RONID_DATA"):
        benchmarks.find("toy")
    assert [state.status for state in benchmarks.check("toy")] == ["missing"] * 3


def test_given_folder_comes_before_the_cache(toy: Toy) -> None:
    folder = toy()
    assert benchmarks.find("toy") == folder


def test_changed_file_is_not_read(toy: Toy) -> None:
    folder = toy()
    (folder / "train.tsv").write_text("text\tlabel\nx\ta\n")
    (folder / "dev.tsv").unlink()
    states = [state.status for state in benchmarks.check("toy")]
    assert states == ["wrong hash", "missing", "ok"]
    with pytest.raises(DataError, match="wrong hash; run: ronid data fetch toy"):
        benchmarks.read("toy", "train")


def test_unknown_benchmark_suggests_one() -> None:
    with pytest.raises(UsageError, match="did you mean 'banking'"):
        benchmarks.benchmark("banking77")


def test_cache_lies_in_the_home_folder_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RONID_CACHE", raising=False)
    assert benchmarks.cache_folder() == Path.home() / ".cache" / "ronid" / "data"


@pytest.mark.benchmark_data
@pytest.mark.parametrize("name", CLASSIC)
def test_benchmark_files_have_the_published_rows(benchmark_data: None, name: str) -> None:
    entry = BENCHMARKS[name]
    for part, rows in entry.rows.items():
        corpus = benchmarks.read(name, part)
        assert len(corpus) == corpus.report.labelled == rows
        assert len(corpus.known) == entry.intents


@pytest.mark.slow
@pytest.mark.benchmark_data
def test_files_with_published_splits_have_the_registered_rows_and_intents(
    published_dataset: str,
) -> None:
    entry = BENCHMARKS[published_dataset]
    intents = set(benchmarks.read(published_dataset, "train").known)
    assert len(intents) == entry.intents
    for part, rows in entry.rows.items():
        corpus = benchmarks.read(published_dataset, part)
        assert len(corpus) == corpus.report.labelled == rows
        assert set(corpus.known) <= intents
