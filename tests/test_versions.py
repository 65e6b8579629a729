import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ronid import versions
from ronid.errors import DataError, UsageError
from ronid.run import open_finished
from ronid.versions import current_folder, current_number, frozen_cache, link, next_version, undo
from tests.helpers.finished_run import make_run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_run(tmp_path / "run").path


def add(run: Path, source: str) -> None:
    before = source_of(run)
    with next_version(run) as folder:
        for file in open_finished(run).path.iterdir():
            if file.is_file():
                shutil.copyfile(file, folder / file.name)
        facts = (folder / "run.json").read_text()
        (folder / "run.json").write_text(facts.replace(before, source))


def source_of(run: Path) -> str:
    return str(open_finished(run).facts()["source"])


def files(run: Path) -> dict[str, bytes]:
    own = [path for path in run.rglob("*") if path.is_file() and "versions" not in path.parts]
    return {str(path.relative_to(run)): path.read_bytes() for path in own}


def test_a_run_without_versions_is_its_own_folder(run: Path) -> None:
    assert current_number(run) == 0
    assert current_folder(run) == run
    assert open_finished(run).path == run


def test_versions_follow_each_other_and_undo_goes_back_one_by_one(run: Path) -> None:
    before = files(run)
    add(run, "b.csv")
    add(run, "c.csv")
    assert (current_number(run), source_of(run)) == (2, "c.csv")
    assert undo(run) == 1
    assert source_of(run) == "b.csv"
    assert not (run / "versions" / "2").exists()
    assert undo(run) == 0
    assert source_of(run) == "a.csv"
    assert files(run) == before
    with pytest.raises(UsageError, match="no update to undo"):
        undo(run)


def rows_of(run: Path) -> int:
    return int(open_finished(run).assignments().num_rows)


def longer(run: Path, by: int) -> None:
    """Add a version with some rows more, and what a frozen encoder said of them."""
    add(run, f"{by} more.csv")
    path = open_finished(run).path / "assignments.parquet"
    table = pq.read_table(path)
    pq.write_table(pa.concat_tables([table, table.slice(0, by)]), path)
    keep(run)


def keep(run: Path) -> None:
    frozen_cache(run, rows_of(run)).mkdir(parents=True, exist_ok=True)
    (frozen_cache(run, rows_of(run)) / "vectors.bin").touch()


def cached(run: Path) -> list[int]:
    return sorted(int(path.name) for path in (run / "cache").iterdir())


def test_undo_forgets_what_the_frozen_encoder_said_of_what_it_takes_out(run: Path) -> None:
    first = rows_of(run)
    keep(run)
    longer(run, 2)
    longer(run, 3)
    assert cached(run) == [first, first + 2, first + 5]
    undo(run)
    assert cached(run) == [first, first + 2]
    frozen_cache(run, first + 9).mkdir()  # of an update that was killed
    undo(run)
    assert cached(run) == [first]


def test_undo_of_a_version_with_the_same_utterances_keeps_their_cache(run: Path) -> None:
    longer(run, 2)
    longer(run, 0)
    undo(run)
    assert cached(run) == [rows_of(run)]


def undone_first(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let somebody else undo a version just before the next call has the lock."""
    real = versions.locked

    @contextmanager
    def late(run: Path) -> Iterator[None]:
        monkeypatch.setattr(versions, "locked", real)
        undo(run)
        with real(run):
            yield

    monkeypatch.setattr(versions, "locked", late)


def test_an_undo_that_comes_second_does_not_remove_the_run(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files(run)
    add(run, "b.csv")
    undone_first(run, monkeypatch)
    with pytest.raises(UsageError, match="no update to undo"):
        undo(run)
    assert files(run) == before
    assert current_number(run) == 0


def test_an_undo_of_a_version_that_is_undone_already_takes_back_no_other(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(run, "b.csv")
    add(run, "c.csv")
    undone_first(run, monkeypatch)
    with pytest.raises(UsageError, match=r"version 2 of run .* is not the last one: that is 1$"):
        undo(run, expected=2)
    assert (current_number(run), source_of(run)) == (1, "b.csv")
    assert undo(run, expected=1) == 0


def test_an_update_that_fails_changes_nothing(run: Path) -> None:
    add(run, "b.csv")
    with pytest.raises(FileNotFoundError), next_version(run) as folder:
        shutil.copyfile(run / "no such file", folder / "run.json")
    assert (current_number(run), source_of(run)) == (1, "b.csv")
    assert not (run / "versions" / "next").exists()


def test_leftovers_of_a_kill_are_no_version_and_go_away(run: Path) -> None:
    add(run, "b.csv")
    for name in ("next", "2"):  # killed while writing, and between writing and pointing
        (run / "versions" / name).mkdir()
        (run / "versions" / name / "rubbish").touch()
    assert source_of(run) == "b.csv"
    add(run, "c.csv")
    assert source_of(run) == "c.csv"
    assert not list(run.rglob("rubbish"))


def test_two_updates_at_once_are_refused(run: Path) -> None:
    pytest.importorskip("fcntl")
    with (
        pytest.raises(UsageError, match="updated by another process"),
        next_version(run),
        next_version(run),
    ):
        pass
    assert current_number(run) == 0


def test_a_damaged_pointer_and_a_lost_version_are_told(run: Path) -> None:
    add(run, "b.csv")
    shutil.rmtree(run / "versions" / "1")
    with pytest.raises(DataError, match="version 1 of run .* is gone"):
        open_finished(run)
    (run / "versions" / "current").write_text("two")
    with pytest.raises(DataError, match="must hold the number"):
        open_finished(run)


def test_link_shares_bytes_or_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("weights")
    link(tmp_path / "a", tmp_path / "x" / "b")
    assert (tmp_path / "x" / "b").samefile(tmp_path / "a")

    def refuse(*_: object) -> None:
        raise OSError

    monkeypatch.setattr(os, "link", refuse)
    link(tmp_path / "a", tmp_path / "x" / "c")
    assert (tmp_path / "x" / "c").read_text() == "weights"
    assert not (tmp_path / "x" / "c").samefile(tmp_path / "a")


@pytest.mark.parametrize("then", ["undo", "update"])
def test_what_a_killed_undo_left_is_removed_by_the_next_change(run: Path, then: str) -> None:
    for source in ("b.csv", "c.csv", "d.csv"):
        add(run, source)
    versions._point_to(run, 1)  # two undos that were killed before they removed anything
    if then == "undo":
        undo(run)
        left = {"current", "lock"}
    else:
        add(run, "e.csv")
        left = {"current", "lock", "1", "2"}
    assert {path.name for path in (run / "versions").iterdir()} == left
