import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from ronid.errors import DataError, UsageError
from ronid.export import rename
from ronid.export.rename import rename_run
from ronid.intents_file import write_intents
from ronid.name.llm import Namer
from ronid.run import RunFolder, open_finished
from ronid.versions import current_folder, next_version
from tests.helpers.chat_server import names, serve
from tests.helpers.finished_run import SHOP, make_run


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return make_run(tmp_path / "run")


def contents(run: RunFolder) -> dict[str, bytes]:
    files = [path for path in run.path.rglob("*") if path.is_file()]
    return {str(path.relative_to(run.path)): path.read_bytes() for path in files}


def test_every_file_of_a_run_gets_the_new_names(run: RunFolder) -> None:
    with serve(lambda n, _: names(f"named_{n}", f"Description {n}.")) as chat:
        done = rename_run(run.path, Namer(chat.url, "small"))
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
    done = rename_run(run.path)
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
    assert rename_run(run.path).after == new


def test_names_of_the_user_stay_and_nobody_else_gets_them(run: RunFolder) -> None:
    known, lost, gift, pause = run.intents()
    mine = replace(gift, name=lost.name, named_by="user")
    write_intents(run.path, [known, replace(lost, name="other"), mine, pause])
    after = rename_run(run.path).after
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
        rename_run(run.path, Namer(chat.url, "small"))
    after = contents(run)
    assert [json.loads(line)["body"] for line in after.pop("sent.jsonl").splitlines()]
    assert after.pop("versions/lock") == b""
    assert after == before


class Killed(BaseException):
    """Nothing after it runs."""


@pytest.mark.parametrize("moment", range(6))
def test_a_kill_at_any_moment_leaves_old_or_new_names_everywhere(
    run: RunFolder, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    """The new files are made ready by one rename, put in place by four; one more never comes."""
    calls, genuine = [], Path.replace

    def replace_or_die(self: Path, target: Path) -> Path:
        if len(calls) == moment:
            raise Killed
        calls.append(self.name)
        return genuine(self, target)

    before = run.intents()
    with serve(lambda n, _: names(f"named_{n}")) as chat, monkeypatch.context() as patch:
        patch.setattr(Path, "replace", replace_or_die)
        patch.setattr(shutil, "rmtree", lambda *_, **__: None)  # nobody tidies up after a kill
        if moment < 5:
            with pytest.raises(Killed):
                rename_run(run.path, Namer(chat.url, "small"))
        else:
            rename_run(run.path, Namer(chat.url, "small"))
            assert len(calls) == 5
    again = open_finished(run.path)
    new = ["track_order", "named_1", "named_2", "named_3"]
    old = [intent.name for intent in before]
    assert [intent.name for intent in again.intents()] == (new if moment else old)
    assert set(again.assignments()["intent"].to_pylist()) == set(new if moment else old)
    for name in ("README.md", "report.html"):
        assert ("named_2" in (run.path / name).read_text(encoding="utf-8")) == (moment > 0)
    assert not (run.path / "renaming.ready").exists()
    rename_run(run.path)
    assert not list(run.path.glob("renaming*"))


def test_whoever_looks_for_the_current_version_finishes_what_a_kill_left(run: RunFolder) -> None:
    ready = run.path / "renaming.ready"
    ready.mkdir()
    (run.path / "intents.json").replace(ready / "intents.json")
    assert current_folder(run.path) == run.path
    assert len(run.intents()) == 4
    assert not ready.exists()


def test_half_a_change_that_cannot_be_finished_is_one_clear_line(run: RunFolder) -> None:
    ready = run.path / "renaming.ready"
    ready.mkdir()
    (ready / "intents.json").write_text("new")
    (run.path / "intents.json").unlink()
    (run.path / "intents.json").mkdir()  # even root cannot put a file there
    with pytest.raises(DataError, match="are changed by half"):
        open_finished(run.path)


def test_names_are_not_changed_while_another_process_changes_the_run(run: RunFolder) -> None:
    pytest.importorskip("fcntl")
    before = contents(run)
    with next_version(run.path), pytest.raises(UsageError, match="by another process"):
        rename_run(run.path)
    assert {name: contents(run)[name] for name in before} == before


def test_an_updated_run_is_named_in_its_version_and_locked_as_a_whole(run: RunFolder) -> None:
    with next_version(run.path) as folder:
        shutil.copytree(run.path, folder, ignore=lambda *_: ["versions"], dirs_exist_ok=True)
    before = contents(run)
    with serve(lambda n, _: names(f"named_{n}")) as chat:
        rename_run(run.path, Namer(chat.url, "small"))
    assert open_finished(run.path).intents()[1].name == "named_1"
    assert run.intents()[1].name != "named_1"
    assert not (run.path / "versions" / "1" / "versions").exists()
    assert set(contents(run)) - set(before) == {"sent.jsonl"}


def test_names_of_a_model_stay_where_it_fails_and_go_where_none_is_asked(run: RunFolder) -> None:
    plain = run.intents()
    with serve(lambda n, _: names(f"named_{n}", f"People want {n}.")) as chat:
        named = rename_run(run.path, Namer(chat.url, "small")).after
    with serve(lambda n, _: names("better") if n == 1 else (401, b"")) as chat:
        second = rename_run(run.path, Namer(chat.url, "other"))
    assert second.after[1].name == "better"
    assert second.after[2:] == named[2:]
    assert "; kept the name a model gave before: 2; set RONID_NAMER_KEY" in second.message
    assert rename_run(run.path).after == plain


def test_what_a_killed_call_left_behind_is_removed(run: RunFolder) -> None:
    (run.path / "renaming").mkdir()
    (run.path / "renaming" / "intents.json").write_text("half")
    rename_run(run.path)
    assert not (run.path / "renaming").exists()


def test_damaged_weights_are_one_clear_line(run: RunFolder) -> None:
    (run.path / "encoder" / "weights.safetensors").write_bytes(b"nothing")
    with pytest.raises(DataError, match="cannot be read"):
        rename_run(run.path)


def test_empty_intents_are_named_by_number(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", {**SHOP, "empty": []})
    empty = rename_run(run.path).after[4]
    assert (empty.name, empty.named_by, empty.description) == ("new_intent_4", "number", "")
    shutil.rmtree(run.path)
