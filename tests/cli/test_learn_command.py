"""`ronid learn` where there is nothing to learn: which store it reads, and that it makes none."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ronid.cli.learn import _shown
from ronid.learn import Job
from ronid.review import open_desk
from tests.helpers.finished_run import make_run

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_run(tmp_path / "run").path


def test_a_store_that_is_not_there_is_not_made(ronid: Command, run: Path) -> None:
    done = ronid("learn", "run")
    assert done.returncode == 2
    assert done.stderr == (
        "ronid: nothing was decided: there is no review at 'run/review.sqlite'; review the run "
        "first: ronid review run\n"
    )
    assert not list(run.glob("review.sqlite*"))


def test_the_variable_of_review_and_export_names_the_store(
    ronid: Command, run: Path, tmp_path: Path
) -> None:
    said = ronid("learn", "run", RONID_REVIEW_STORE="kept.sqlite").stderr
    assert "there is no review at 'kept.sqlite'" in said
    assert not (tmp_path / "kept.sqlite").exists()
    said = ronid("learn", "run", "--store", "mine.sqlite", RONID_REVIEW_STORE="kept.sqlite").stderr
    assert "there is no review at 'mine.sqlite'" in said


def test_a_store_without_decisions_is_named(ronid: Command, run: Path) -> None:
    open_desk(run).close()
    done = ronid("learn", "run")
    assert done.returncode == 2
    assert done.stderr == (
        "ronid: nothing was decided, so there is nothing to learn (decisions are read from "
        "'run/review.sqlite'); review the run first: ronid review run\n"
    )


def test_a_job_reads_the_store_it_was_given(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RONID_REVIEW_STORE", str(tmp_path / "variable.sqlite"))
    own = str(tmp_path / "own.sqlite")
    for where in (None, own):
        ended = Job(run, where).wait(60)
        assert ended.phase == "failed"
        assert f"there is no review at '{where or run / 'review.sqlite'}'" in ended.says


def test_no_password_of_a_store_is_shown() -> None:
    assert _shown("postgresql://ann:secret@host:5432/base?password=x") == "postgresql://host/base"
