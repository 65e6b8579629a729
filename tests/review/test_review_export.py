"""What people decided leaves the run, wherever their decisions are kept."""

import io
import zipfile
from pathlib import Path

import pytest

from ronid.export.formats import load_format
from ronid.export.reviewed import catalogue_of
from ronid.export.write import export_catalogue
from ronid.review import open_desk
from ronid.review.events import Accept, Rename
from tests.helpers.finished_run import SHOP, make_run


def test_decisions_of_either_store_are_exported(where: str, tmp_path: Path) -> None:
    run = tmp_path / "run"
    make_run(run)
    desk = open_desk(run, where)
    desk.act(Rename("i1", "lost card"), "Ada", 0)
    desk.act(Accept("i1"), "Ada", 1)
    desk.close()
    plain = catalogue_of(run)
    assert [intent.name for intent in plain.intents if intent.accepted] == ["track_order"]
    made = catalogue_of(run, where)
    assert [intent.name for intent in made.intents if intent.accepted] == [
        "track_order", "lost card",
    ]  # fmt: skip
    export_catalogue(made, "rasa", tmp_path / "out")
    names = {intent for _, intent in load_format("rasa").read(tmp_path / "out")}
    assert names == {"track_order", "lost_card"}
    who = {(row.by, row.who) for row in made.rows if row.intent == "i1"}
    assert who == {("person", "Ada")}


def test_either_store_leaves_by_the_page(where: str, tmp_path: Path) -> None:
    testing = pytest.importorskip("fastapi.testclient", reason="fastapi is not installed")
    from ronid.studio.app import make_app
    from ronid.studio.hall import open_hall
    from ronid.studio.session import Door

    # Runs of one second are told apart by their size, and tests share a server.
    make_run(tmp_path / "run", {**SHOP, "weather": ["rain?", "will it rain"]})
    hall = open_hall(tmp_path / "run", where)
    client = testing.TestClient(make_app(hall, Door("a" * 24)))
    assert client.get("/api/export/rasa").json()["intents"] == 1
    hall.room.desk.act(Accept("i1"), "Ada", 0)
    assert client.get("/api/export/rasa").json()["intents"] == 2
    answer = client.get("/api/export/csv/file")
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        archive.extractall(tmp_path / "out")
    pairs = load_format("csv").read(tmp_path / "out" / "export-csv")
    assert len(pairs) == 8
    hall.close()
