"""The command as people use it, in processes that are really killed."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ronid.bench.rows import coordinates, read_rows
from tests.helpers import toy_benchmark

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="signals and file locks are POSIX"),
]

CELLS = 40


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "toy.toml"
    path.write_text(
        'format_version = 1\ndatasets = ["toy", "toy2"]\npresets = ["fast"]\n'
        f'encoders = ["bert-base-uncased"]\nseeds = "0-{CELLS // 2 - 1}"\n{toy_benchmark.QUICK}'
    )
    return path


def start(data: Path, *arguments: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        toy_benchmark.command("bench", "run", *arguments),
        stderr=subprocess.PIPE,
        text=True,
        env=toy_benchmark.environment(data),
    )


def wait_for_rows(path: Path, count: int, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        if path.exists() and path.read_bytes().count(b"\n") >= count:
            return
        time.sleep(0.005)
    raise AssertionError(f"no {count} rows came: {process.stderr and process.stderr.read()}")


def test_interrupted_and_killed_run_goes_on_where_it_was(
    data: Path, encoder: str, config: Path, tmp_path: Path
) -> None:
    out = tmp_path / "rows.jsonl"
    arguments = (config, "--out", out, "--encoder", f"bert-base-uncased={encoder}")

    process = start(data, *arguments, "--quiet")
    wait_for_rows(out, 2, process)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=30)
    assert process.returncode == 130
    done = len(read_rows(out))
    assert f"{done} of {CELLS} cells done; run the same command to go on" in error
    assert "Traceback" not in error

    process = start(data, *arguments, "--quiet")
    wait_for_rows(out, done + 2, process)
    process.kill()
    process.communicate(timeout=30)
    stored = out.read_bytes()
    assert stored.count(b"\n") < CELLS
    with out.open("ab") as file:  # what a kill in the middle of a write leaves
        file.write(b'{"dataset": "to')

    finished = toy_benchmark.ronid(data, "bench", "run", *arguments)
    assert finished.returncode == 0, finished.stderr
    assert "last line of 'rows.jsonl' was cut short" in finished.stderr
    assert f"{CELLS} of {CELLS} cells done" in finished.stderr
    assert out.read_bytes().startswith(stored)
    rows = read_rows(out)
    assert len(rows) == len({coordinates(row) for row in rows}) == CELLS


def test_two_processes_share_the_cells(
    data: Path, encoder: str, config: Path, tmp_path: Path
) -> None:
    out = tmp_path / "rows.jsonl"
    config.write_text(config.read_text().replace(f"0-{CELLS // 2 - 1}", "0-2"))
    done = toy_benchmark.ronid(
        data, "bench", "run", config, "--out", out, "--jobs", "2", "--beside", "3",
        "--encoder", f"bert-base-uncased={encoder}",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = read_rows(out)
    assert len({coordinates(row) for row in rows}) == len(rows) == 6
    assert {row["jobs"] for row in rows} == {5}  # what shares the device, of this run or not
    assert "6 of 6 cells done" in done.stderr
    # The two datasets hold the same rows, so worker and order must not matter.
    scores = {(row["dataset"], row["seed"]): row["scores"] for row in rows}
    assert all(scores["toy", seed] == scores["toy2", seed] for seed in range(3))


def test_two_configs_share_two_processes_and_go_on_after_an_interrupt(
    data: Path, encoder: str, config: Path, tmp_path: Path
) -> None:
    other = tmp_path / "ablation.toml"
    text = config.read_text().replace('["toy", "toy2"]', '["toy"]')
    config.write_text(text.replace(f"0-{CELLS // 2 - 1}", "0-5"))
    other.write_text('variants = ["", "-OT"]\n' + text.replace(f"0-{CELLS // 2 - 1}", "0-5"))
    rows = tmp_path / "rows"
    arguments = (config, other, "--rows", rows, "--jobs", "2")
    arguments = (*arguments, "--encoder", f"bert-base-uncased={encoder}")

    process = start(data, *arguments, "--quiet")
    wait_for_rows(rows / "ablation.jsonl", 2, process)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=30)
    assert process.returncode == 130
    done = len(read_rows(rows / "ablation.jsonl"))
    assert f"toy: 6 of 6, ablation: {done} of 12 cells done; run the same command" in error
    assert "Traceback" not in error
    before = (rows / "ablation.jsonl").read_bytes()

    finished = toy_benchmark.ronid(data, "bench", "run", *arguments)
    assert finished.returncode == 0, finished.stderr
    assert f"6 of 6 cells done; rows: {rows / 'toy.jsonl'}" in finished.stderr
    assert f"12 of 12 cells done; rows: {rows / 'ablation.jsonl'}" in finished.stderr
    assert (rows / "ablation.jsonl").read_bytes().startswith(before)
    for name, count in (("toy", 6), ("ablation", 12)):
        found = read_rows(rows / f"{name}.jsonl")
        assert len(found) == len({coordinates(row) for row in found}) == count
    # Cells that share stages were in one process, but for those that the interrupt parted.
    shared = [row for row in read_rows(rows / "ablation.jsonl") if row["shared_s"] > 0]
    assert len(shared) >= 4
