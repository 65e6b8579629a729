import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from chat_server import names, serve
from made_run import SHOP, make_run
from ronid.errors import DataError
from ronid.export import rename
from ronid.export.rename import rename_run
from ronid.files import write_intents
from ronid.name.llm import Namer
from ronid.run import RunFolder, open_finished


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return make_run(tmp_path / "run")


def contents(run: RunFolder) -> dict[str, bytes]:
    files = [path for path in run.path.rglob("*") if path.is_file()]
    return {str(path.relative_to(run.path)): path.read_bytes() for path in files}


def test_every_file_of_a_run_gets_the_new_names(run: RunFolder) -> None:
    with serve(lambda n, _: names(f"named_{n}", f"Description {n}.")) as chat:
        done = rename_run(run, Namer(chat.url, "small"))
    again = open_finished(run.path)
    assert [i.name for i in again.intents()] == ["track_order", "named_1", "named_2", "named_3"]
    assert again.intents() == done.after
    assert set(again.assignments()["intent"].to_pylist()) == {i.name for i in done.after}
    assert again.assignments().schema.metadata[b"format_version"] == b"1"
    for name in ("README.md", "report.html"):
        text = (run.path / name).read_text(encoding="utf-8")
        assert "named_2" in text
        assert done.before[2].name not in text.replace("gift card", "")
    assert "Description 3." in (run.path / "report.html").read_text(encoding="utf-8")
    assert len(done.changes) == 3


def test_without_a_namer_nothing_but_old_names_changes(run: RunFolder) -> None:
    before = run.intents()
    done = rename_run(run)
    assert done.after == before
    assert done.changes == []
    assert done.message == ""


def test_a_run_of_an_older_ronid_loads_and_gains_what_it_lacks(run: RunFolder) -> None:
    path = run.path / "intents.json"
    new = run.intents()
    stored = json.loads(path.read_text(encoding="utf-8"))
    for row in stored["intents"]:
        for field in ("description", "borderline", "nearest", "named_by"):
            del row[field]
    path.write_text(json.dumps(stored), encoding="utf-8")
    old = run.intents()
    assert [intent.named_by for intent in old] == ["user", *["keyphrases"] * 3]
    assert old[1].nearest == ()
    assert rename_run(run).after == new


def test_names_of_the_user_stay_and_nobody_else_gets_them(run: RunFolder) -> None:
    known, lost, gift, pause = run.intents()
    mine = replace(gift, name=lost.name, named_by="user")
    write_intents(run.path, [known, replace(lost, name="other"), mine, pause])
    after = rename_run(run).after
    assert after[2].name == lost.name
    assert after[2].named_by == "user"
    assert len({intent.name for intent in after}) == 4


def test_a_failure_half_way_leaves_the_run_as_it_was(
    run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(run)

    def fail(_: RunFolder) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(rename, "report_of_run", fail)
    with serve(lambda n, _: names(f"named_{n}")) as chat, pytest.raises(OSError, match="disk full"):
        rename_run(run, Namer(chat.url, "small"))
    assert contents(run) == before


def test_what_a_killed_call_left_behind_is_removed(run: RunFolder) -> None:
    (run.path / "renaming").mkdir()
    (run.path / "renaming" / "intents.json").write_text("half")
    rename_run(run)
    assert not (run.path / "renaming").exists()


def test_damaged_weights_are_one_clear_line(run: RunFolder) -> None:
    (run.path / "encoder" / "weights.safetensors").write_bytes(b"nothing")
    with pytest.raises(DataError, match="cannot be read"):
        rename_run(run)


def test_empty_intents_are_named_by_number(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", {**SHOP, "empty": []})
    empty = rename_run(run).after[4]
    assert (empty.name, empty.named_by, empty.description) == ("new_intent_4", "number", "")
    shutil.rmtree(run.path)
