"""The Learn page's calls, on a run that cannot train: what is told, refused and guarded."""

import json
import shutil
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the studio's packages are not installed")
from fastapi.testclient import TestClient

from ronid.learn.standing import FILE, read_standing, telling
from ronid.review.desk import LEARNED
from ronid.review.events import Accept, Lock, Merge, Move, OutOfScope, Reject
from ronid.studio.app import make_app
from ronid.studio.guard import Guard
from ronid.studio.hall import Hall
from ronid.studio.session import Door
from ronid.versions import FOLDER, current_number, next_version, undo

OF_THE_RUN = shutil.ignore_patterns(FOLDER, "review.sqlite*")


def decide(hall: Hall, *actions: Any, who: str = "Ada") -> None:
    for action in actions:
        hall.room.desk.act(action, who, hall.room.desk.version)


def test_what_would_be_taught_is_counted(client: TestClient, hall: Hall) -> None:
    decide(hall, Move((8, 9), "i1"), OutOfScope((14,)), Accept("i1"), Lock("i1"))
    decide(hall, Reject("i3"), who="Bo")
    page = client.get("/api/learn").json()
    assert page["standing"] is None
    assert page["last"] is None
    assert page["why_not"] == ""
    taught = page["taught"]
    assert taught["people"] == ["Ada", "Bo"]
    assert taught["kinds"] == {"move": 1, "out_of_scope": 1, "accept": 1, "lock": 1, "reject": 1}
    assert (taught["decisions"], taught["fresh"]) == (5, 5)
    assert taught["labels"] == 4 + 6  # of the file, and the locked intent
    assert taught["given"] == 4
    assert taught["banned"] == 2
    assert (taught["out"], taught["locked"], taught["gone"]) == (1, 1, 1)
    decide(hall, Merge(("i2", "i0"), "i0"))
    assert client.get("/api/learn").json()["taught"]["gone"] == 2


def test_nothing_decided_is_one_line(client: TestClient, hall: Hall) -> None:
    page = client.get("/api/learn").json()
    assert page["why_not"] == "nothing was decided, so there is nothing to learn"
    answer = client.post("/api/learn", json={})
    assert answer.status_code == 422
    assert answer.json()["problem"] == page["why_not"]
    assert not (hall.run / FOLDER / FILE).exists()


@pytest.mark.parametrize("path", ["/api/learn", "/api/learn/cancel", "/api/learn/undo"])
def test_other_sites_and_forms_start_nothing(client: TestClient, hall: Hall, path: str) -> None:
    decide(hall, Accept("i1"))
    body: dict[str, Any] = {"version": 1} if path.endswith("undo") else {}
    for headers in (
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ):
        assert client.post(path, json=body, headers=headers).status_code == 403
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        answer = client.post(path, content=json.dumps(body), headers={"content-type": kind})
        assert answer.status_code in (400, 415, 422)
    assert client.post(path, json={**body, "who": "Eve"}).status_code == 422
    assert client.get(path + "?x=1").status_code in (200, 404, 405)
    assert read_standing(hall.run) is None


def test_strangers_start_nothing(hall: Hall) -> None:
    decide(hall, Accept("i1"))
    door = Door("a" * 24, "correct horse")
    app: Any = Guard(make_app(hall, door), door, local=True)  # type: ignore[arg-type]
    outside = TestClient(app, base_url="http://localhost:8712")
    for path in ("/api/learn", "/api/learn/cancel", "/api/learn/undo"):
        assert outside.post(path, json={}).status_code == 401
    assert read_standing(hall.run) is None


def test_nothing_is_cancelled_or_taken_back_that_is_not_there(client: TestClient) -> None:
    answer = client.post("/api/learn/cancel", json={})
    assert (answer.status_code, answer.json()["problem"]) == (422, "nothing is being trained")
    answer = client.post("/api/learn/undo", json={"version": 1})
    assert answer.status_code == 422
    assert "is not the last one" in answer.json()["problem"]
    assert client.post("/api/learn/undo", json={"version": 0}).status_code == 422


def test_two_who_take_back_the_same_training_take_back_one(
    client: TestClient, hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    for done in ("first", "second"):
        with next_version(hall.run) as folder:
            shutil.copytree(hall.run, folder, ignore=OF_THE_RUN, dirs_exist_ok=True)
            (folder / LEARNED).write_text(json.dumps({"format_version": 1, "done": {"says": done}}))
    real = hall.refresh

    def refresh() -> None:
        monkeypatch.setattr(hall, "refresh", real)
        undo(hall.run)  # by somebody else, now that version 2 was seen to be the last one

    monkeypatch.setattr(hall, "refresh", refresh)
    answer = client.post("/api/learn/undo", json={"version": 2})
    assert answer.status_code == 422
    assert "is not the last one" in answer.json()["problem"]
    assert current_number(hall.run) == 1


def test_learning_while_somebody_learns_is_refused_and_seen(client: TestClient, hall: Hall) -> None:
    decide(hall, Accept("i1"))
    with telling(hall.run, "Bo", "a-key") as teller:  # as another process does
        teller.begin("em", 10)
        answer = client.post("/api/learn", json={})
        assert answer.status_code == 422
        assert answer.json()["problem"] == "Bo is training it already; wait for it, or cancel it"
        told = client.get("/api/learn").json()["standing"]
        assert (told["phase"], told["who"], told["total"]) == ("running", "Bo", 10)
        assert told["says"] == "discovering (EM)"
    assert client.get("/api/learn").json()["standing"]["phase"] == "done"


def test_a_training_that_was_killed_is_told_as_such(client: TestClient, hall: Hall) -> None:
    with telling(hall.run, "Bo", "a-key"):
        file = hall.run / FOLDER / FILE
        running = file.read_text()
    file.write_text(running)
    told = client.get("/api/learn").json()["standing"]
    assert told["phase"] == "failed"
    assert "stopped before its end; nothing was changed" in told["says"]
    for damaged in ("", "[]", '{"phase": "running"', '{"x": 1}'):
        file.write_text(damaged)
        assert client.get("/api/learn").json()["standing"] is None


def test_what_fails_is_one_line_on_disk(hall: Hall) -> None:
    with pytest.raises(ValueError, match="two"), telling(hall.run, "Bo", "a-key"):
        raise ValueError("two\nlines")
    told = read_standing(hall.run)
    assert told is not None
    assert (told.phase, told.says) == ("failed", "it broke off: ValueError: two lines")
    with pytest.raises(KeyboardInterrupt), telling(hall.run, "Bo", "a-key"):
        raise KeyboardInterrupt
    told = read_standing(hall.run)
    assert told is not None
    assert (told.phase, told.says) == ("cancelled", "cancelled; nothing was changed")
