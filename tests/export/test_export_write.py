"""The folder of an export: chosen intents, audit, equal bytes, whole or not at all."""

import csv
import errno
import hashlib
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest

from ronid.errors import UsageError
from ronid.export.audit import checksums
from ronid.export.batch import Choice, Options
from ronid.export.catalogue import Catalogue, build_catalogue
from ronid.export.formats import FORMATS, load_format
from ronid.export.write import export_catalogue, is_export
from tests.helpers.export_strategies import NAMES, TEXTS, catalogue

MIXED = build_catalogue(
    [
        {"id": "a", "name": "refund", "known": True, "description": "money back"},
        {"id": "b", "name": "gift card", "status": "accepted"},
        {"id": "c", "name": "pause"},
        {"id": "d", "name": "noise", "status": "rejected"},
    ],
    {
        "text": [
            "pay me",
            "pay back",
            "a gift",
            "gifts",
            "pause it",
            "stop it",
            "x",
            "y",
            "weather",
        ],
        "intent": ["a", "a", "b", "b", "c", "c", "d", "d", None],
        "by": ["given", "model", "person", "model", "model", "model", "model", "model", "model"],
        "who": ["", "", "ada", "", "", "", "", "", ""],
        "when": ["", "", "2026-01-02T03:04:05+00:00", "", "", "", "", "", ""],
        "confidence": [None, 0.9, None, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3],
    },
    {"source": "calls.csv", "run_version": 2},
)
DECIDED = "2026-01-02T03:04:05+00:00"


def intents(folder: Path) -> set[str]:
    return {intent for _, intent in load_format("csv").read(folder)}


def audit(folder: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    head, *rows = [
        json.loads(line) for line in (folder / "audit.jsonl").read_text("utf-8").splitlines()
    ]
    return head, rows


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (Choice(), {"refund", "gift card"}),
        (Choice(open=True), {"refund", "gift card", "pause"}),
        (Choice(rejected=True), {"refund", "gift card", "noise"}),
        (Choice(out_of_scope=True), {"refund", "gift card", "out_of_scope"}),
    ],
)
def test_only_what_was_asked_for_leaves(choice: Choice, expected: set[str], tmp_path: Path) -> None:
    done = export_catalogue(MIXED, "csv", tmp_path / "out", choice)
    assert intents(tmp_path / "out") == expected
    assert bool(done.batch.notes) == (not choice.open)


def test_nothing_accepted_is_said_with_what_to_do(tmp_path: Path) -> None:
    undecided = Catalogue(MIXED.intents[2:], MIXED.rows[4:])
    with pytest.raises(UsageError, match=r"no intent is accepted yet \(1 are open\).*--all"):
        export_catalogue(undecided, "csv", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
    done = export_catalogue(undecided, "csv", tmp_path / "out", Choice(open=True))
    assert len(done.batch.lines) == 2


def test_audit_says_where_every_label_came_from(tmp_path: Path) -> None:
    export_catalogue(MIXED, "watson", tmp_path / "out")
    head, rows = audit(tmp_path / "out")
    assert (head["source"], head["run_version"], head["to"]) == ("calls.csv", 2, "watson")
    assert head["ronid_version"]
    content = (tmp_path / "out" / "intents.csv").read_bytes()
    assert head["sha256"] == {"intents.csv": hashlib.sha256(content).hexdigest()}
    labels = [{key: row[key] for key in row if key not in ("kind", "intent_id")} for row in rows]
    assert labels == [
        {"id": "1", "text": "pay me", "intent": "refund", "by": "given"},
        {"id": "2", "text": "pay back", "intent": "refund", "by": "model", "confidence": 0.9},
        {"id": "3", "text": "a gift", "intent": "gift_card", "by": "person", "who": "ada",
         "when": DECIDED},
        {"id": "4", "text": "gifts", "intent": "gift_card", "by": "model", "confidence": 0.8},
    ]  # fmt: skip


def test_audit_lists_what_was_changed_and_left_out(tmp_path: Path) -> None:
    made = catalogue([["a\tb", "c", "c", "x" * 2000]], ["one"])
    done = export_catalogue(made, "watson", tmp_path / "out")
    head, rows = audit(tmp_path / "out")
    assert head["left_out"] == {"longer than 1,024 characters": 1, "repeated": 1}
    assert [(row["id"], row.get("written"), row.get("left_out")) for row in rows] == [
        ("1", "a b", None),
        ("2", None, None),
        ("4", None, "longer than 1,024 characters"),
        ("3", None, "repeated"),
    ]
    assert rows[0]["text"] == "a\tb"
    assert len(done.batch.changed) == 1


def test_intents_that_lost_all_utterances_are_named(tmp_path: Path) -> None:
    made = catalogue([["one", "two"], ["alone"]], ["first", "second"])
    done = export_catalogue(made, "rasa", tmp_path / "out")
    assert [intent.name for intent in done.batch.empty] == ["second"]
    assert audit(tmp_path / "out")[0]["empty"] == ["second"]


def test_changed_names_stand_beside_the_export(tmp_path: Path) -> None:
    done = export_catalogue(MIXED, "lex", tmp_path / "out")
    with (tmp_path / "out" / "names.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["id"], row["name"], row["exported_as"], row["status"]) for row in rows] == [
        ("a", "refund", "refund", "accepted"),
        ("b", "gift card", "gift_card", "accepted"),
    ]
    assert rows[0]["description"] == "money back"
    assert done.batch.renamed == {"gift card": "gift_card"}


def test_names_do_not_depend_on_the_choice(tmp_path: Path) -> None:
    twins = build_catalogue(
        [
            {"id": "a", "name": "gift card"},
            {"id": "b", "name": "gift_card", "status": "accepted"},
        ],
        {"text": ["x", "y"], "intent": ["a", "b"]},
    )
    few = export_catalogue(twins, "lex", tmp_path / "few")
    all_of_them = export_catalogue(twins, "lex", tmp_path / "all", Choice(open=True))
    assert few.batch.names == all_of_them.batch.names
    assert few.batch.renamed == {"gift_card": "gift_card_2"}


@pytest.mark.parametrize("to", FORMATS)
def test_equal_input_gives_equal_bytes(
    to: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = catalogue([TEXTS, *([f"{name} one", f"{name} two"] for name in NAMES)], ["t", *NAMES])
    export_catalogue(made, to, tmp_path / "first")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    monkeypatch.setattr("time.time", lambda: 2_000_000_000.0)
    export_catalogue(made, to, tmp_path / "second")
    assert checksums(tmp_path / "first") == checksums(tmp_path / "second")


@pytest.mark.parametrize("to", ["dialogflow-cx", "lex"])
def test_archives_hold_no_time_and_are_sorted(to: str, tmp_path: Path) -> None:
    done = export_catalogue(MIXED, to, tmp_path / "out")
    with zipfile.ZipFile(done.files[0]) as archive:
        entries = archive.infolist()
    assert {entry.date_time for entry in entries} == {(1980, 1, 1, 0, 0, 0)}
    assert [entry.filename for entry in entries] == sorted(entry.filename for entry in entries)


def test_a_failure_leaves_nothing_and_keeps_the_older_export(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export_catalogue(MIXED, "csv", tmp_path / "out")
    before = checksums(tmp_path)

    def fail(*_: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("ronid.export.write.write_audit", fail)
    for place in ("out", "new"):
        with pytest.raises(OSError, match="disk full"):
            export_catalogue(MIXED, "jsonl", tmp_path / place, force=True)
    assert checksums(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_the_older_export_is_back_if_the_new_one_cannot_take_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export_catalogue(MIXED, "csv", tmp_path / "out")
    before = checksums(tmp_path)
    rename = os.rename

    def refuse(self: Path, target: Path) -> Path:
        if self.name == "new":
            raise OSError("no")
        rename(self, target)
        return target

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(OSError, match="no"):
        export_catalogue(MIXED, "jsonl", tmp_path / "out", force=True)
    assert checksums(tmp_path) == before


def leftover(place: Path, name: str, *folders: str) -> Path:
    """Make what a killed export leaves."""
    staged = place / name
    for folder in folders:
        (staged / folder).mkdir(parents=True)
        (staged / folder / "utterances.csv").write_text(folder)
    (staged / "ronid-export").write_text("")
    return staged


def test_a_place_that_cannot_be_written_is_named_as_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: Any) -> str:
        raise PermissionError(errno.EACCES, "Permission denied", "hidden")

    monkeypatch.setattr("ronid.export.write.tempfile.mkdtemp", refuse)
    with pytest.raises(UsageError) as refused:
        export_catalogue(MIXED, "csv", tmp_path / "out")
    place = tmp_path / "out"
    assert str(refused.value) == (
        f"cannot write to '{place}' (Permission denied); give another --out"
    )


def test_what_a_killed_export_left_is_gone_after_the_next(tmp_path: Path) -> None:
    leftover(tmp_path, ".out-abcd_123", "new")
    other = leftover(tmp_path, ".other-abcd_123", "new")
    foreign = leftover(tmp_path, ".out-abcd_124", "new", "letters")
    unmarked = tmp_path / ".out-abcd_125"
    unmarked.mkdir()
    named = leftover(tmp_path, ".out-and-about", "new")
    export_catalogue(MIXED, "csv", tmp_path / "out")
    kept = {path.name for path in (other, foreign, unmarked, named)}
    assert {path.name for path in tmp_path.iterdir()} == {"out", *kept}


def test_an_export_that_still_runs_is_left_alone(tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    staged = leftover(tmp_path, ".out-abcd_123", "new")
    with (staged / "ronid-export").open() as mark:
        fcntl.flock(mark, fcntl.LOCK_EX)
        export_catalogue(MIXED, "csv", tmp_path / "out")
        assert staged.is_dir()
    export_catalogue(MIXED, "csv", tmp_path / "out", force=True)
    assert not staged.exists()


def test_an_older_export_comes_back_if_the_kill_was_between_two(tmp_path: Path) -> None:
    export_catalogue(MIXED, "csv", tmp_path / "out")
    before = checksums(tmp_path)
    staged = leftover(tmp_path, ".out-abcd_123", "new")
    (tmp_path / "out").rename(staged / "old")
    with pytest.raises(UsageError, match="--force replaces it"):
        export_catalogue(MIXED, "jsonl", tmp_path / "out")
    assert checksums(tmp_path) == before


def test_an_older_export_is_replaced_only_by_force(tmp_path: Path) -> None:
    out = tmp_path / "out"
    export_catalogue(MIXED, "csv", out)
    with pytest.raises(UsageError, match="--force replaces it"):
        export_catalogue(MIXED, "jsonl", out)
    export_catalogue(MIXED, "jsonl", out, force=True)
    assert sorted(path.name for path in out.iterdir()) == [
        "audit.jsonl", "names.csv", "utterances.jsonl",
    ]  # fmt: skip


def test_force_never_removes_what_is_no_export(tmp_path: Path) -> None:
    export_catalogue(MIXED, "csv", tmp_path / "out")
    (tmp_path / "out" / "letter.txt").write_text("mine")
    assert not is_export(tmp_path / "out")
    with pytest.raises(UsageError, match="holds other files"):
        export_catalogue(MIXED, "csv", tmp_path / "out", force=True)
    assert (tmp_path / "out" / "letter.txt").read_text() == "mine"
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UsageError, match="is not a folder"):
        export_catalogue(MIXED, "csv", tmp_path / "file", force=True)
    with pytest.raises(UsageError, match="does not exist; make it first"):
        export_catalogue(MIXED, "csv", tmp_path / "no" / "out")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (Options(language="english!"), "--language 'english!' is none"),
        (Options(name=" "), "--name must be"),
        (Options(name="a\nb"), "--name must be"),
    ],
)
def test_options_that_no_target_takes_are_refused(options, message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        export_catalogue(MIXED, "hf", tmp_path / "out", options=options)


def test_an_unknown_target_is_refused_with_the_list(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'siri' is no target of an export; there are: rasa, "):
        export_catalogue(MIXED, "siri", tmp_path / "out")
