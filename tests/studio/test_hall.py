"""The studio goes on when the run gets another version, whoever made it."""

import json
import shutil
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the studio's packages are not installed")
from ronid.review.events import Accept, Rename
from ronid.studio.hall import Hall
from ronid.versions import next_version, undo


def make_version(run: Path) -> None:
    """Make a next version, as an update does."""
    with next_version(run) as folder:
        for path in run.iterdir():
            if path.name == "versions" or path.name.startswith("review.sqlite"):
                continue
            copy = shutil.copytree if path.is_dir() else shutil.copy
            copy(path, folder / path.name)
        facts = json.loads((folder / "run.json").read_text())
        (folder / "run.json").write_text(json.dumps(facts | {"updates": []}))


def test_another_version_gets_a_room_of_its_own(hall: Hall) -> None:
    old = hall.room
    hall.refresh()
    assert hall.room is old
    make_version(hall.run)
    hall.refresh()
    assert hall.version == 1
    assert hall.room is not old
    assert hall.room.index is old.index  # the texts are the same
    old.desk.act(Accept("i1"), "Ada", 0)  # somebody who was still in it
    hall.refresh()
    assert hall.room.desk.view().state.intents["i1"].status == "accepted"
    undo(hall.run)
    hall.refresh()
    assert hall.version == 0
    assert hall.room.desk.version == 1
    old.close()


def test_a_version_of_the_same_number_is_told_apart(hall: Hall) -> None:
    make_version(hall.run)
    hall.refresh()
    first = hall.room
    undo(hall.run)
    make_version(hall.run)
    hall.refresh()
    assert hall.version == 1
    assert hall.room is not first


def test_a_damaged_version_leaves_the_studio_as_it_is(
    hall: Hall, caplog: pytest.LogCaptureFixture
) -> None:
    make_version(hall.run)
    (hall.run / "versions" / "1" / "intents.json").write_text("{")
    old = hall.room
    hall.refresh()
    assert hall.room is old
    assert "stays with the version it has" in caplog.text
    old.desk.act(Rename("i1", "still here"), "Ada", 0)
    hall.refresh()
    assert len(caplog.records) == 1  # told once
