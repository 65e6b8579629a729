"""Ctrl-C ends every verb with one line that says what is left and what to do next."""

import io
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from ronid.cli import main
from ronid.cli.console import Bars, error
from ronid.cli.interrupt import StoppedError, on_interrupt
from ronid.intents_file import read_intents, write_intents
from ronid.review import open_desk
from ronid.versions import next_version
from tests.helpers.finished_run import make_run
from tests.helpers.studio_server import LISTENING

AGAIN = "nothing was changed, run the same command again"


def files(folder: Path) -> dict[Path, bytes]:
    """What is in a folder, but for empty marks that locks leave."""
    found = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {path: held for path, held in found.items() if path.suffix not in {"", ".lock"}}


class Everything:
    """A model that accepts all."""

    scope = None
    encoder = SimpleNamespace(backbone=None)
    intents = (SimpleNamespace(known=True),)

    def predict(self, texts: list[str], *_: Any, **__: Any) -> SimpleNamespace:
        n = len(texts)
        return SimpleNamespace(
            labels=np.zeros(n, np.int64), names=["a"] * n, confidence=np.ones(n),
            belonging=np.ones(n), accepted=np.ones(n, bool),
        )  # fmt: skip


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A finished run in the folder that commands are given in, and a file of utterances."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "new.csv").write_text("text,intent\nwhere is my order,track_order\nlost it,\n")
    path = make_run(tmp_path / "run").path
    open_desk(path).close()
    return path


@pytest.fixture
def stopped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """Give a command that is interrupted when it calls something; return its one line."""

    def command(line: str, at: str, before: Callable[[], None] = lambda: None) -> str:
        def interrupt(*_: Any, **__: Any) -> None:
            before()
            signal.raise_signal(signal.SIGINT)

        monkeypatch.setattr(at, interrupt)
        monkeypatch.setattr(sys, "argv", ["ronid", *line.split()])
        handler = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            with pytest.raises(SystemExit) as ended:
                main()
        finally:
            signal.signal(signal.SIGINT, handler)
        assert ended.value.code == 130
        said = capsys.readouterr().err.splitlines()
        assert len(said) == 1, said
        assert said[0].startswith("ronid: interrupted; ")
        return said[0].removeprefix("ronid: interrupted; ")

    return command


@pytest.mark.usefixtures("run")
@pytest.mark.parametrize(
    ("line", "at"),
    [
        ("predict run new.csv -q", "ronid.data.readers.load"),
        ("predict run --text hello", "ronid.model.load_model"),
        ("evaluate run new.csv -q", "ronid.model.load_model"),
        ("evaluate run", "ronid.model.load_model"),
        ("update run new.csv -q", "ronid.data.readers.load"),
        ("update run new.csv -q", "ronid.update.update_run"),
        ("learn run -q", "ronid.learn.flow.learn_run"),
        ("undo run", "ronid.versions.undo"),
        ("history run", "ronid.run.open_finished"),
        ("name run", "ronid.export.rename.rename_run"),
        ("report run", "ronid.export.run_report.write_report"),
        ("export run --to csv --all -q", "ronid.export.formats.csv_file.write_rows"),
        ("fit new.csv --out other", "ronid.data.readers.load"),
        ("fit new.csv --out other -q", "ronid.run.write_corpus"),
        ("demo --out other", "ronid.data.demo.demo_corpus"),
        ("methods", "ronid.cli.methods.Console"),
    ],
)
def test_what_is_interrupted_changes_nothing_and_says_so(
    stopped: Callable[..., str], tmp_path: Path, line: str, at: str
) -> None:
    before = files(tmp_path)
    assert stopped(line, at) == AGAIN
    assert files(tmp_path) == before


def test_half_an_answer_is_not_left(
    stopped: Callable[..., str], run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ronid.model.load_model", lambda *_: Everything())

    def half() -> None:
        (written,) = run.parent.glob("answer.csv*")
        written.write_text("text,int")

    assert stopped("predict run new.csv --out answer.csv -q", "csv.DictWriter", half) == AGAIN
    assert not list(run.parent.glob("answer*"))


@pytest.mark.parametrize("verb", ["update run new.csv -q", "learn run -q"])
def test_a_version_that_is_there_already_is_told(
    stopped: Callable[..., str], run: Path, verb: str
) -> None:
    def make() -> None:
        with next_version(run) as folder:
            (folder / "run.json").write_text("{}")

    at = "ronid.update.update_run" if "update" in verb else "ronid.learn.flow.learn_run"
    told = "but version 1 counts already; take it back with: ronid undo run"
    assert stopped(verb, at, make) == told


def test_an_undo_that_is_done_already_is_told(stopped: Callable[..., str], run: Path) -> None:
    with next_version(run) as folder:
        (folder / "run.json").write_text('{"finished": true}')
    pointer = run / "versions" / "current"
    told = stopped("undo run", "ronid.versions.undo", lambda: pointer.write_text("0") and None)
    assert told == "but version 0 counts already; it is back"


def test_names_that_are_written_already_are_told(stopped: Callable[..., str], run: Path) -> None:
    def write() -> None:
        intents = read_intents(run)
        write_intents(run, [*intents[:-1], replace(intents[-1], name="other")])

    told = stopped("name run", "ronid.export.rename.rename_run", write)
    assert told == "but the names are written already; the report has them"


@pytest.mark.usefixtures("run")
def test_a_fit_that_has_begun_can_be_resumed(stopped: Callable[..., str]) -> None:
    line = "fit new.csv --out other --intents 2 --device cpu -q"
    told = stopped(line, "ronid.pipeline.fit_run")
    assert told == "nothing is lost, go on with: ronid fit --resume other"
    told = stopped("fit --resume other -q", "ronid.pipeline.fit_run")
    assert told == "nothing is lost, go on with: ronid fit --resume other"


@pytest.mark.skipif(sys.platform == "win32", reason="signals and pipes are POSIX")
def test_a_real_signal_ends_a_process_without_a_traceback(run: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", LISTENING, "predict", "run", "-"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=run.parent,
    )
    assert process.stdin is not None
    # More than a pipe holds: it has been written once the command is reading.
    process.stdin.write(b"text\n" + 20_000 * b"where is my order\n")
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said.decode()) == (130, f"ronid: interrupted; {AGAIN}\n")


def test_where_blocks_lie_within_each_other_the_inner_one_speaks() -> None:
    told = pytest.raises(StoppedError, match="interrupted; inner")
    with told, on_interrupt("outer"), on_interrupt(lambda: "inner"):
        raise KeyboardInterrupt


def test_an_error_closes_the_bar_that_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    bars, screen = Bars(), io.StringIO()
    bars.console = Console(file=screen, force_terminal=True)
    bars.begin("encode", 3)
    error("interrupted")
    assert screen.getvalue().rstrip().endswith("\x1b[?25h")  # the cursor is back
    assert capsys.readouterr().err == "ronid: interrupted\n"
    assert Bars.shown is None
