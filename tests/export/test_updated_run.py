"""What an update is said to have done, and the report of a run that was updated."""

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ronid.export.card import write_card
from ronid.export.run_report import report_of_run
from ronid.export.updates import added_by, update_lines
from ronid.run import COLLECTED, RunFolder
from tests.helpers.finished_run import make_run

UPDATE: dict[str, Any] = {
    "version": 1,
    "when": "2026-01-02T03:04:05+00:00",
    "source": "new.csv",
    "rows": 6,
    "labelled": 0,
    "fitted": 5,
    "collected": 1,
    "new": (),
    "drift": (),
}


def test_what_was_collected_earlier_and_fits_now_is_said() -> None:
    _, lines = update_lines(UPDATE | {"waited": 20, "elsewhere": None, "old": 700})
    assert lines == [
        "5 of 6 fit intents that were there; 20 collected earlier fit now; "
        "1 fits nowhere so far and is collected"
    ]
    _, lines = update_lines(UPDATE | {"waited": 1, "elsewhere": None, "old": 700})
    assert "; 1 collected earlier fits now; " in lines[0]
    assert "earlier" not in update_lines(UPDATE | {"waited": 0})[1][0]


def test_what_was_set_aside_now_and_what_is_collected_in_all_are_told_apart() -> None:
    _, lines = update_lines(UPDATE | {"collected": 16, "aside": 1})
    assert lines[0].endswith("; 1 fits nowhere so far, 16 are collected in all")
    assert update_lines(UPDATE | {"aside": 1})[1] == update_lines(UPDATE)[1]


def test_records_of_older_versions_are_said_as_they_were() -> None:
    _, lines = update_lines(UPDATE | {"collected": 3})
    assert lines == ["5 of 6 fit intents that were there; 3 fit nowhere so far and are collected"]


@pytest.mark.parametrize(("elsewhere", "said"), [(64, "64"), (1, "1"), (0, "0")])
def test_what_the_model_sees_elsewhere_is_said(elsewhere: int, said: str) -> None:
    _, lines = update_lines(UPDATE | {"elsewhere": elsewhere, "old": 1700})
    assert lines[1] == (
        f"{said} of 1,700 utterances that were there would go to another intent by the model as "
        "it is now; all keep theirs"
    )


def made(version: int, *names: str, kind: str = "") -> dict[str, Any]:
    new = [{"index": 0, "name": name, "size": 1, "known": False} for name in names]
    return {"version": version, "new": new} | ({"kind": kind} if kind else {})


def test_added_intents_are_known_by_their_place() -> None:
    present = [f"i{k}" for k in range(7)]
    facts = {"updates": [made(1, "a"), made(2), made(3, "b", "c")]}
    assert added_by(facts, present) == {4: 1, 5: 3, 6: 3}
    assert added_by({}, present) == {}


def test_added_intents_are_known_where_training_on_gave_them_other_numbers() -> None:
    # The fit made i0 to i2, update 1 made i3; people joined i1 to i0 and made s9, then update 3
    # made i4.
    facts = {
        "updates": [made(1, "a"), made(2, "people's", kind="learn"), made(3, "b")],
        "review": {"ids": ["i0", "i3", "i2", "s9"], "intents": [{}] * 4},
    }
    assert added_by(facts, ["i0", "i3", "i2", "s9", "i4"]) == {1: 1, 4: 3}


def updated(path: Path, *updates: dict[str, Any]) -> RunFolder:
    """A run of four intents of which the last came with update 1; three utterances wait."""
    run = make_run(path)
    count = {"stage": "count", "k": 3, "estimate": 3, "low": 3, "high": 5}
    (path / "history.jsonl").write_text(json.dumps(count) + "\n")
    run.write_facts(run.facts() | {"n_intents": None, "updates": list(updates)})
    pq.write_table(pa.table({"text": ["a", "b", "c"]}), path / COLLECTED)
    return run


FIRST = UPDATE | {"new": [{"index": 3, "name": "pause", "size": 3, "known": False}]}


def payload(run: RunFolder) -> dict[str, Any]:
    html = report_of_run(run).read_text(encoding="utf-8")
    (block,) = re.findall(r'id="report-data">(.*?)</script>', html, re.DOTALL)
    return dict(json.loads(block))


def test_the_report_tells_what_updates_added(tmp_path: Path) -> None:
    data = payload(updated(tmp_path / "run", FIRST))
    assert data["title"] == "Intents found in a.csv and new.csv"
    assert data["counts"]["collected"] == 3
    assert [intent["added"] for intent in data["intents"]] == [0, 0, 0, 1]
    assert dict(data["settings"])["Intents asked for"].endswith("3 to 5 possible, for version 0")
    learnt = {"kind": "learn", "version": 3, "when": "2026", "source": "", "utterances": 1}
    learnt |= {"moved": 0, "labels": 0, "held": 0, "not_held": 0, "new": (), "gone": ()}
    more = updated(tmp_path / "more", FIRST, UPDATE | {"version": 2}, learnt)
    assert payload(more)["title"] == "Intents found in a.csv and 2 updates"


def test_the_report_of_a_fit_is_as_it_was(tmp_path: Path) -> None:
    data = payload(make_run(tmp_path / "run"))
    assert data["title"] == "Intents found in a.csv"
    assert data["counts"]["collected"] is None
    assert {intent["added"] for intent in data["intents"]} == {0}


def test_the_card_has_the_same_title_and_counts(tmp_path: Path) -> None:
    run = updated(tmp_path / "run", FIRST)
    write_card(run)
    lines = (run.path / "README.md").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "# Intents found in a.csv and new.csv"
    assert lines[2].startswith(
        "15 utterances, 1 known and 3 new intents; 3 of the utterances fit none so far. "
    )
