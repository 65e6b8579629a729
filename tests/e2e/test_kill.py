"""A run killed at any moment is finished by --resume, bit for bit as if nothing had happened."""

import json
import os
import signal
import struct
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import cli_corpus
from tests.helpers.cli_corpus import ok
from tests.helpers.forkserver_cli import Started

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and pipes are POSIX")

RESULTS = (
    "assignments.parquet", "intents.json", "encoder/weights.safetensors", "history.jsonl",
    "config.toml", "model.json",
)  # fmt: skip
EVERY_EPOCH = {"RONID_CHECKPOINT_S": "0"}


@dataclass(frozen=True)
class Case:
    """A file of utterances and the options of the fit that is killed."""

    corpus: Path
    options: tuple[str, ...]
    expected: dict[str, bytes]

    def start(self, run: Path) -> Started:
        """Start the fit."""
        return launch("fit", self.corpus, "--out", run, *self.options)


def launch(*arguments: str | Path) -> Started:
    """Start a command that writes a checkpoint after every epoch."""
    return cli_corpus.start(*arguments, **EVERY_EPOCH)


def results(run: Path) -> dict[str, bytes]:
    """Read every file that must not depend on a kill."""
    return {name: (run / name).read_bytes() for name in RESULTS}


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory, encoder: Path, corpus: Path) -> Case:
    """A fit with every stage, and what it gives when nothing disturbs it."""
    folder = tmp_path_factory.mktemp("case")
    settings = folder / "settings.toml"
    settings.write_text(cli_corpus.SETTINGS)
    options = (
        "--intents", str(cli_corpus.N_INTENTS), "--truth", "truth", "--quiet",
        "--encoder", str(encoder), "--config", str(settings),
    )  # fmt: skip
    # Without checkpoints on the way, so that writing them is shown to change nothing either.
    ok("fit", corpus, "--out", folder / "run", *options, RONID_CHECKPOINT_S="1000")
    return Case(corpus, options, results(folder / "run"))


def kept(run: Path) -> dict[str, Any]:
    """Read stage and epoch of the checkpoint, without torch: the header of safetensors is JSON."""
    try:
        with (run / "work" / "checkpoint.safetensors").open("rb") as file:
            (size,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(size))
    except FileNotFoundError:
        return {"stage": "", "epoch": 0, "finished": []}
    values: dict[str, Any] = json.loads(header["__metadata__"]["values"])
    return values


def reached(stage: str, epoch: int) -> Callable[[Path], bool]:
    """Return whether a checkpoint of that stage is at that epoch or later."""

    def test(run: Path) -> bool:
        values = kept(run)
        return bool(values["stage"] == stage and values["epoch"] >= epoch)

    return test


def begun(run: Path) -> bool:
    return (run / "run.json").exists()


def kill_when(
    process: Started,
    run: Path,
    moment: Callable[[Path], bool],
    by: signal.Signals = signal.SIGKILL,
) -> str:
    """Wait for a moment of the run, send the signal, and return what stderr got."""
    until = time.monotonic() + 120
    while not moment(run):
        assert not process.ended(), "the run ended before the moment came"
        assert time.monotonic() < until
        time.sleep(0.002)
    process.send_signal(by)
    done = process.wait(60)
    assert done.returncode == (-by if by == signal.SIGKILL else 130)
    assert json.loads((run / "run.json").read_text())["finished"] is False
    return done.stderr


def check_resumed(run: Path, case: Case) -> None:
    """Finish the run and compare it with the undisturbed one."""
    ok("fit", "--resume", run, "--quiet")
    assert results(run) == case.expected
    assert json.loads((run / "run.json").read_text())["finished"] is True
    assert not (run / "work").exists()
    assert not list(run.glob("*.partial"))


MOMENTS = {
    "just begun": begun,
    "pre-training": reached("pretrain", 3),
    "contrast": reached("contrast", 4),
    "late EM epoch": reached("em", 12),
}


@pytest.mark.parametrize(
    "moment",
    [
        pytest.param("just begun", marks=pytest.mark.slow),
        pytest.param("pre-training", marks=pytest.mark.slow),
        "contrast",
        "late EM epoch",
    ],
)
def test_killed_run_resumes_to_the_same_bits(case: Case, tmp_path: Path, moment: str) -> None:
    run = tmp_path / "run"
    kill_when(case.start(run), run, MOMENTS[moment])
    check_resumed(run, case)


def test_run_killed_twice_and_interrupted_once(case: Case, tmp_path: Path) -> None:
    run = tmp_path / "run"
    kill_when(case.start(run), run, reached("pretrain", 2))
    resume = ("fit", "--resume", str(run), "--quiet")
    kill_when(launch(*resume), run, reached("contrast", 2))
    kill_when(launch(*resume), run, reached("em", 5), by=signal.SIGINT)
    check_resumed(run, case)


def test_interrupt_says_how_to_go_on(case: Case, tmp_path: Path) -> None:
    run = tmp_path / "run"
    said = kill_when(case.start(run), run, reached("em", 2), by=signal.SIGINT)
    told = f"ronid: interrupted; nothing is lost, go on with: ronid fit --resume {run}\n"
    assert said == told


def test_run_killed_while_encoding(tmp_path: Path, encoder: Path, quick: Path) -> None:
    utterances = [
        cli_corpus.Row(f"{row.text} {other.text}", row.intent, row.truth)
        for row in cli_corpus.rows()
        for other in cli_corpus.rows()[::90]
    ]
    corpus = cli_corpus.write_csv(tmp_path / "calls.csv", utterances)
    options = ("--intents", str(cli_corpus.N_INTENTS), "--encoder", str(encoder), "--quiet")
    options += ("--config", str(quick))

    def encoding(run: Path) -> bool:
        return bool(list(run.glob("work/cache/*.partial")))

    run = tmp_path / "run"
    kill_when(launch("fit", corpus, "--out", run, *options), run, encoding)
    assert list(run.glob("work/cache/*.partial"))
    assert not list(run.glob("work/cache/*.bin"))
    ok("fit", "--resume", run, "--quiet")
    ok("fit", corpus, "--out", tmp_path / "other", *options)
    assert results(run) == results(tmp_path / "other")


@pytest.mark.parametrize("name", ["assignments.parquet", "report.html"])
def test_run_killed_while_writing_results(case: Case, tmp_path: Path, name: str) -> None:
    run = tmp_path / "run"
    process = case.start(run)

    def at_the_pipe(run: Path) -> bool:
        # A pipe nobody reads in place of a result: writing it waits until the kill.
        if begun(run) and not (run / name).exists():
            os.mkfifo(run / name)
        return (run / "intents.json").exists()

    kill_when(process, run, at_the_pipe)
    (run / name).unlink()
    check_resumed(run, case)
