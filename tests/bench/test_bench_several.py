"""Several configs in one run: each has its file of rows, all share the processes."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from ronid.bench import runner
from ronid.bench.cell import Bench, Outcome
from ronid.bench.plan import BenchCell
from ronid.bench.rows import append_row, read_rows
from ronid.cli import bench as command
from ronid.cli.app import app
from tests.helpers import toy_benchmark
from tests.helpers.benchmark_rows import made_row

pytestmark = pytest.mark.usefixtures("toy")

Ran = list[tuple[str, str, int]]


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> Ran:
    """Cells that only seem to run: method, variant and seed of each in turn."""
    cells: Ran = []

    def fake(bench: Bench, cell: BenchCell) -> Outcome:
        cells.append((cell.method, cell.variant, cell.seed))
        row = {name: getattr(cell, name) for name in cell.__dataclass_fields__}
        row |= {"config_hash": bench.plan.config_hash(cell), "jobs": bench.jobs}
        row |= {"scores": made_row(50.0)["scores"], "wall_s": 1.0, "shared_s": 0.0}
        return Outcome(row | {"split_hash": runner.split_of(cell).hash, "memory_kind": "rss"})

    monkeypatch.setattr(runner, "run_cell", fake)
    return cells


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Write a config into the folder that commands run in."""
    monkeypatch.chdir(tmp_path)

    def write(name: str, encoder: str = "tiny", method: str = "clnn", more: str = "") -> Path:
        path = Path(f"{name}.toml")
        path.write_text(
            f'datasets = ["toy"]\npresets = ["published", "fast"]\nencoders = ["{encoder}"]\n'
            f'methods = ["{method}"]\nseeds = "0-1"\n{more}'
        )
        return path

    return write


def bench_run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["bench", "run", *map(str, arguments), "--device", "cpu"])


def store_time(name: str, method: str, wall_s: float, **changes: Any) -> None:
    """Store a row that tells how long a method took on the toy."""
    row = made_row(1, 77, dataset="toy", method=method, encoder="tiny", memory_kind="rss")
    append_row(
        Path("benchmarks") / "results" / f"{name}.jsonl",
        row | {"preset": "published", "wall_s": wall_s, "shared_s": 0.0} | changes,
    )


def test_rows_of_each_config_go_to_its_own_file(config: Callable[..., Path], ran: Ran) -> None:
    first, second = config("a"), config("b", method="usnid")
    done = bench_run(second, first)
    assert done.exit_code == 0, done.output
    results = Path("benchmarks") / "results"
    assert [row["method"] for row in read_rows(results / "a.jsonl")] == ["clnn"] * 2
    assert [row["method"] for row in read_rows(results / "b.jsonl")] == ["usnid"] * 2
    assert [method for method, *_ in ran] == ["usnid", "usnid", "clnn", "clnn"]
    assert "[3/4] a: toy clnn" in done.output
    for name in "ab":
        assert f"2 of 2 cells done; rows: {results / name}.jsonl" in done.output
    assert done.output.splitlines()[-1] == "0.0 minutes in all"
    bench_run(first, second, "--rows", "there")
    assert [len(read_rows(Path("there") / f"{name}.jsonl")) for name in "ab"] == [2, 2]
    assert len(ran) == 8


def test_all_configs_are_listed(config: Callable[..., Path], ran: Ran) -> None:
    first, second = config("a"), config("b", method="usnid")
    bench_run(first)
    listed = bench_run(first, second, "--dry-run")
    assert listed.stdout.count("done    toy clnn") == listed.stdout.count("to run  toy usnid") == 2
    assert listed.stdout.index("a: 2 of 2 cells done") < listed.stdout.index("b: 0 of 2 cells done")


def test_one_file_for_several_configs_is_refused(config: Callable[..., Path], ran: Ran) -> None:
    refused = bench_run(config("a"), config("b"), "--out", "rows.jsonl")
    assert "--rows FOLDER" in str(refused.exception)
    assert (ran, Path("rows.jsonl").exists()) == ([], False)


def test_known_times_say_the_order_and_the_unknown_comes_first(
    config: Callable[..., Path], ran: Ran
) -> None:
    methods = 'clnn", "usnid", "dpn'
    path = config("a", method=methods)
    store_time("other", "clnn", 10)
    store_time("more", "usnid", 20)
    store_time("more", "dpn", 500, memory_kind="cuda")  # which says nothing about a CPU
    bench_run(path)
    assert [method for method, *_ in ran] == ["dpn"] * 2 + ["usnid"] * 2 + ["clnn"] * 2


def test_cell_that_would_end_too_late_leaves_the_time_to_a_shorter_one(
    config: Callable[..., Path], ran: Ran
) -> None:
    first, second = config("a", method='dpn", "clnn'), config("b", method="usnid")
    for method, seconds in (("dpn", 700), ("clnn", 90), ("usnid", 5)):
        store_time("other", method, seconds)
    done = bench_run(first, second, "--minutes", "1")
    assert [method for method, *_ in ran] == ["usnid"] * 2
    assert done.exit_code == 0
    assert "0 of 4 cells done; rows: benchmarks/results/a.jsonl" in done.output
    assert "4 cells remain after 1 minutes; run the same command to go on" in done.output
    assert "  2 of a: toy dpn published tiny: about 700 s each, more than --minutes" in done.output
    bench_run(first, second, "--minutes", "5")
    assert [method for method, *_ in ran[2:]] == ["clnn"] * 2
    bench_run(first, second)
    assert len(ran) == 6


def test_what_the_time_was_over_for_is_said(
    config: Callable[..., Path], ran: Ran, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_time("other", "clnn", 50)
    left_s = iter([60.0, 20.0, 0.0])
    monkeypatch.setattr(runner.Run, "left_s", property(lambda _: next(left_s)))
    done = bench_run(config("a"), "--minutes", "1")
    assert len(ran) == 1
    assert "  1 of toy clnn published tiny: about 50 s each, more than was left" in done.output
    none = bench_run(config("b", method="usnid"), "--minutes", "0")
    assert "  2 of toy usnid published tiny: the time was over" in none.output


def test_interrupt_counts_every_config_and_the_same_command_goes_on(
    config: Callable[..., Path], ran: Ran, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [config("a"), config("b", method="usnid")]
    real = runner.run_cell

    def stopped(bench: Bench, cell: BenchCell) -> Outcome:
        if cell.method == "usnid" and cell.seed == 1:
            raise KeyboardInterrupt
        return real(bench, cell)

    with monkeypatch.context() as patch:
        patch.setattr(runner, "run_cell", stopped)
        ended = bench_run(*paths)
    told = "a: 2 of 2, b: 1 of 2 cells done; run the same command to go on"
    assert told in f"{ended.exception} {ended.output}"
    assert bench_run(*paths).exit_code == 0
    assert ran == [("clnn", "", 0), ("clnn", "", 1), ("usnid", "", 0), ("usnid", "", 1)]


def test_weights_that_are_not_here_hold_nobody_up(
    config: Callable[..., Path], encoder: str, tmp_path: Path, connections: list[Any]
) -> None:
    gone = config("a", encoder="no-such-owner/no-such-model", method="ronid")
    here = config("b", method="ronid", more=toy_benchmark.QUICK)
    done = bench_run(gone, here, "--encoder", f"tiny={encoder}")
    assert done.exit_code == 0, done.output
    assert not connections
    assert "0 of 2 cells done, 2 could not run; rows: benchmarks/results/a.jsonl" in done.output
    assert "2 of 2 cells done; rows: benchmarks/results/b.jsonl" in done.output
    assert encoder not in Path("benchmarks/results/b.jsonl").read_text()


def test_stages_of_a_config_are_let_go_and_encodings_kept(
    config: Callable[..., Path], encoder: str
) -> None:
    paths = [config(name, method="ronid", more=toy_benchmark.QUICK) for name in "ab"]
    bench_run(*paths, "--encoder", f"tiny={encoder}")
    first, second = (read_rows(Path(f"benchmarks/results/{name}.jsonl")) for name in "ab")
    assert [row["scores"] for row in first] == [row["scores"] for row in second]
    assert {row["shared_s"] for row in (*first, *second)} == {0.0}
    assert (first[0]["cache_hits"], second[0]["cache_hits"] > 0) == (0, True)


class TestMps:
    @pytest.fixture(autouse=True)
    def installed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(shutil, "which", lambda name: f"bin/{name}")
        monkeypatch.setattr(command, "_mps_runs", lambda: False)

    def test_said_in_one_line_where_it_would_help(self) -> None:
        (line,) = command._mps_lines("cuda", 6)
        assert "nvidia-cuda-mps-control -d" in line

    @pytest.mark.parametrize(("kind", "jobs"), [("cpu", 6), ("cuda", 1)])
    def test_nothing_where_no_gpu_is_shared(self, kind: str, jobs: int) -> None:
        assert command._mps_lines(kind, jobs) == []

    def test_nothing_where_it_is_missing_or_runs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(shutil, "which", lambda _: None)
            assert command._mps_lines("cuda", 6) == []
        monkeypatch.setattr(command, "_mps_runs", lambda: True)
        assert command._mps_lines("cuda", 6) == []


def test_daemon_is_found_among_processes(tmp_path: Path) -> None:
    for number, name in ((1, "init"), (2, "python")):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "comm").write_text(f"{name}\n")
    assert not command._mps_runs(tmp_path)
    (tmp_path / "2" / "comm").write_text("nvidia-cuda-mps\n")
    assert command._mps_runs(tmp_path)
