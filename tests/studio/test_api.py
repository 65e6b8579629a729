"""The studio's calls: what every page gets, and one call per action."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the studio's packages are not installed")
from fastapi.testclient import TestClient

from ronid.review.events import Rename
from ronid.studio.app import make_app
from ronid.studio.guard import Guard
from ronid.studio.hall import Hall, open_hall
from ronid.studio.room import Room
from ronid.studio.session import Door
from tests.helpers.finished_run import make_run

GROUPS = {
    "track_order": [f"where is my order number {n}" for n in range(12)],
    "<img src=x onerror=alert(1)>": [f"<script>alert({n})</script> lost card" for n in range(9)],
    "gift": [f"buy gift card {n} \ud800" for n in range(8)],
    "pause": [f"暂停 membership {n}" for n in range(7)],
}


class Person:
    """Somebody who works with the studio."""

    def __init__(self, hall: Hall, name: str) -> None:
        door = Door("a" * 24)
        app: Any = Guard(make_app(hall, door), door, local=True)  # type: ignore[arg-type]
        self.client = TestClient(app, base_url="http://localhost:8712")
        self.client.post("/enter", data={"name": name, "next": "/x"}, follow_redirects=False)
        self.keys = 0
        self.name = name

    def get(self, path: str) -> Any:
        answer = self.client.get(f"/api{path}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    def act(self, kind: str, seen: int | None = None, key: str = "", **values: Any) -> Any:
        self.keys += 1
        body = {
            "action": {"kind": kind, **values},
            "seen": self.get("/state")["version"] if seen is None else seen,
            "key": key or f"{self.name}-key-{self.keys}",
        }
        return self.client.post("/api/act", json=body)


@pytest.fixture
def hall(tmp_path: Path) -> Iterator[Hall]:
    groups = {
        name: [t.encode("utf-8", "replace").decode() for t in texts]
        for name, texts in GROUPS.items()
    }
    make_run(tmp_path / "run", groups, known=1)
    made = open_hall(tmp_path / "run", title="shop")
    yield made
    made.close()


@pytest.fixture
def room(hall: Hall) -> Room:
    return hall.room


@pytest.fixture
def ann(hall: Hall) -> Person:
    return Person(hall, "Ann")


@pytest.fixture
def bob(hall: Hall) -> Person:
    return Person(hall, "Bob")


def test_the_overview_tells_all(ann: Person) -> None:
    state = ann.get("/state")
    assert [each["size"] for each in state["intents"]] == [12, 9, 8, 7]
    assert [each["known"] for each in state["intents"]] == [True, False, False, False]
    assert state["progress"] == {
        "accepted": 0,
        "rejected": 0,
        "open": 4,
        "out": 0,
        "rows": 0,
        "of": 36,
    }
    assert state["me"] == {"name": "Ann", "undo": None, "redo": None}
    assert state["intents"][0]["given"] == state["intents"][0]["confirmed"] == 12


def test_every_action_is_one_call_and_one_event(ann: Person, room: Room) -> None:
    rows = ann.get("/intent/i1/all")["rows"]
    wanted: list[dict[str, Any]] = [
        {"kind": "rename", "intent": "i1", "name": "lost card"},
        {"kind": "describe", "intent": "i1", "description": "The card is gone."},
        {"kind": "confirm", "rows": rows[:1]},
        {"kind": "move", "rows": rows[:2], "intent": "i2"},
        {"kind": "out_of_scope", "rows": rows[2:3]},
        {"kind": "gather", "rows": rows[3:5], "id": "n1", "name": "together"},
        {"kind": "split", "intent": "i2", "parts": [{"id": "n2", "name": "p", "rows": rows[:2]}]},
        {"kind": "merge", "intents": ["i1", "n1"], "into": "i1"},
        {"kind": "keep_apart", "intents": ["i1", "i2"]},
        {"kind": "keep_whole", "intent": "i1"},
        {"kind": "accept", "intent": "i1"},
        {"kind": "reopen", "intent": "i1"},
        {"kind": "reject", "intent": "i1"},
        {"kind": "lock", "intent": "i1"},
        {"kind": "unlock", "intent": "i1"},
        {"kind": "undo", "target": 15},
        {"kind": "redo", "target": 15},
        {"kind": "return", "version": 3},
    ]
    for number, action in enumerate(wanted, 1):
        answer = ann.act(**action)
        assert answer.status_code == 200, answer.text
        assert answer.json()["seq"] == room.desk.version == number
    assert ann.get("/intent/i1")["description"] == "The card is gone."


def test_undo_and_redo_are_offered_to_whom_they_belong(ann: Person, bob: Person) -> None:
    ann.act("accept", intent="i1")
    assert ann.get("/state")["me"]["undo"]["seq"] == 1
    assert bob.get("/state")["me"]["undo"] is None
    ann.act("undo", target=1)
    assert ann.get("/state")["me"]["redo"]["seq"] == 1


def test_a_conflict_is_answered_with_what_happened(ann: Person, bob: Person, room: Room) -> None:
    ann.act("merge", intents=["i1", "i2"], into="i1")
    answer = bob.act("accept", seen=0, intent="i2")
    assert answer.status_code == 409
    told = answer.json()
    assert told["version"] == 1
    assert [each["who"] for each in told["conflict"]] == ["Ann"]
    assert "merged" in told["conflict"][0]["says"]
    assert room.desk.version == 1
    assert bob.act("accept", seen=told["version"], intent="i1").status_code == 200


def test_a_retry_is_the_same_event(ann: Person, room: Room) -> None:
    first = ann.act("accept", key="the-same-key", intent="i1").json()
    assert ann.act("accept", key="the-same-key", intent="i1").json()["seq"] == first["seq"]
    assert ann.act("accept", key="the-same-key", intent="i2").status_code == 422
    assert room.desk.version == 1


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"action": {"kind": "accept", "intent": "i1"}, "seen": -1, "key": "12345678"},
        {"action": {"kind": "accept", "intent": "i1"}, "seen": 0, "key": "short"},
        {"action": {"kind": "accept", "intent": "i1"}, "seen": "0", "key": "12345678"},
        {"action": {"kind": "accept", "intent": "i1"}, "seen": 9, "key": "12345678"},
        {"action": {"kind": "accept", "intent": "i1"}, "seen": 0, "key": "12345678", "who": "Eve"},
        {"action": {"kind": "format_disk"}, "seen": 0, "key": "12345678"},
        {"action": [], "seen": 0, "key": "12345678"},
        [],
    ],
)
def test_malformed_actions_change_nothing(ann: Person, room: Room, body: Any) -> None:
    answer = ann.client.post("/api/act", json=body)
    assert answer.status_code == 422
    assert room.desk.version == 0


def test_an_intent_shows_its_utterances_and_neighbours(ann: Person) -> None:
    page = ann.get("/intent/i1")
    assert page["total"] == len(page["rows"]) == 9
    assert len(page["nearest"]) == 3
    fits = [row["margin"] for row in page["rows"]]
    assert fits == sorted(fits, reverse=True)
    border = ann.get("/intent/i1?order=borderline")
    assert [row["row"] for row in border["rows"]] == [row["row"] for row in page["rows"]][::-1]
    assert page["rows"][0]["text"].startswith("<script>")
    assert ann.get("/intent/i1/rows?start=4")["start"] == 4


def test_what_became_of_an_intent_is_told(ann: Person) -> None:
    ann.act("merge", intents=["i0", "i1"], into="i0")
    answer = ann.client.get("/api/intent/i1")
    assert answer.status_code == 422
    assert "was merged into “track_order”" in answer.json()["problem"]
    assert ann.client.get("/api/intent/nothing").status_code == 422


def test_search_finds_and_says_where(ann: Person) -> None:
    found = ann.get("/search?q=暂停")
    assert found["total"] == 7
    assert {row["intent"]["id"] for row in found["rows"]} == {"i3"}
    assert ann.get("/search?q=GIFT CARD")["total"] == 8
    assert ann.client.get("/api/search?q=" + "x" * 600).status_code == 422


def test_a_split_is_shown_and_can_be_done_as_shown(ann: Person) -> None:
    shown = ann.get("/intent/i0/split?parts=3")
    assert sum(len(part["rows"]) for part in shown["parts"]) == 12
    parts = [
        {"id": f"n{n}", "name": part["name"], "rows": part["rows"]}
        for n, part in enumerate(shown["parts"][1:])
    ]
    assert ann.act("split", seen=shown["version"], intent="i0", parts=parts).status_code == 200
    assert len(ann.get("/state")["intents"]) == 6
    assert ann.client.get("/api/intent/i0/split?parts=99").status_code == 422


def test_history_tells_who_did_what_and_what_counts(ann: Person, bob: Person) -> None:
    ann.act("accept", intent="i1")
    bob.act("reject", intent="i2")
    bob.act("undo", target=1)
    page = ann.get("/history")
    assert page["people"] == ["Ann", "Bob"]
    assert [(each["seq"], each["who"], each["counts"]) for each in page["entries"]] == [
        (3, "Bob", True),
        (2, "Bob", True),
        (1, "Ann", False),
    ]
    assert "took back #1: accepted" in page["entries"][0]["says"]
    assert [each["seq"] for each in ann.get("/history?before=2")["entries"]] == [1]


def test_earlier_versions_can_be_looked_at(ann: Person) -> None:
    ann.act("rename", intent="i1", name="another")
    before = ann.get("/state?version=0")
    assert before["intents"][1]["name"] != "another"
    assert (before["version"], before["now"]) == (0, 1)
    assert ann.client.get("/api/state?version=9").status_code == 422


def test_the_map_gets_numbers(ann: Person, room: Room) -> None:
    points = np.frombuffer(ann.client.get("/api/points").content, "<f4").reshape(-1, 2)
    np.testing.assert_array_equal(points, room.base.places)
    ann.act("out_of_scope", rows=[3])
    answer = ann.client.get("/api/places")
    places = np.frombuffer(answer.content, "<i4")
    assert answer.headers["x-ronid-version"] == "1"
    assert places[3] == -1
    assert len(places) == 36
    assert len(ann.get("/intent/out/rows")["rows"]) == 1


def test_rows_that_do_not_exist_are_left_out(ann: Person) -> None:
    answer = ann.client.post("/api/rows", json={"rows": [0, 10**9, -5, 35]})
    assert [row["row"] for row in answer.json()["rows"]] == [0, 35]
    assert ann.client.post("/api/rows", json={"rows": ["x"]}).status_code == 422


def test_suggestions_come_and_go_with_the_state(room: Room, ann: Person) -> None:
    room._make(room.desk.view())
    assert ann.get("/state")["suggested"] == 0
    assert room.suggestions(room.desk.view().state).doubts is not None
    room.desk.act(Rename("i1", "x"), "Ann", 0)
    room._make(room.desk.view())
    assert ann.get("/state")["suggested"] == 1


def test_doubtful_utterances_name_the_other_intent(room: Room, ann: Person) -> None:
    rows = ann.get("/intent/i2/all")["rows"]
    part = {"id": "n1", "name": "strange mixture", "rows": [*ann.get("/intent/i1/all")["rows"][:1]]}
    ann.act("split", intent="i1", parts=[part])
    ann.act("merge", intents=["n1", "i2"], into="i2")
    room._make(room.desk.view())
    found = ann.get("/doubts")
    assert [row["row"] for row in found["rows"]] == part["rows"]
    assert found["rows"][0]["nearer"]["id"] == "i1"
    assert ann.get("/state")["intents"][2]["doubts"] == 1
    assert len(rows) == 8
