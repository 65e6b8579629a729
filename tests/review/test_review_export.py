"""What people decided leaves the run, wherever their decisions are kept."""

from pathlib import Path

from made_run import make_run
from ronid.export.formats import load_format
from ronid.export.reviewed import catalogue_of
from ronid.export.write import export_catalogue
from ronid.review import open_desk
from ronid.review.events import Accept, Rename


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
