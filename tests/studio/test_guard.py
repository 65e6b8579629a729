"""Who comes in, from where, and how much they may send; asked as browsers and attackers ask."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the studio's packages are not installed")
from fastapi.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from ronid.errors import UsageError
from ronid.studio.app import check_address, make_app
from ronid.studio.enter import local_path
from ronid.studio.guard import Guard, is_loopback
from ronid.studio.hall import Hall, open_hall
from ronid.studio.session import Door
from tests.helpers.finished_run import make_run

HOME = "http://localhost:8712"
ACCEPT = {"action": {"kind": "accept", "intent": "i1"}, "seen": 0, "key": "a-key-of-mine"}


@pytest.fixture
def hall(tmp_path: Path) -> Iterator[Hall]:
    make_run(tmp_path / "run")
    made = open_hall(tmp_path / "run", title="<b>shop</b>")
    yield made
    made.close()


def client(hall: Hall, password: str | None = None, local: bool = True) -> TestClient:
    door = Door("a" * 24, password)
    return TestClient(Guard(make_app(hall, door), door, local=local), base_url=HOME)  # type: ignore[arg-type]


@pytest.fixture
def inside(hall: Hall) -> TestClient:
    found = client(hall)
    answer = found.post("/enter", data={"name": "Ann", "next": "/"}, follow_redirects=False)
    assert answer.status_code == 303
    return found


def test_nobody_comes_in_without_a_name(hall: Hall) -> None:
    outside = client(hall)
    answer = outside.get("/intent/i1?q=x", follow_redirects=False)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/enter?next=%2Fintent%2Fi1%3Fq%3Dx"
    assert outside.get("/api/state").status_code == 401
    assert outside.post("/api/act", json=ACCEPT).status_code == 401
    assert hall.room.desk.version == 0


def test_events_carry_the_name(inside: TestClient, hall: Hall) -> None:
    answer = inside.post("/api/act", json=ACCEPT)
    assert answer.json()["says"].startswith("accepted")
    assert hall.room.desk.entries()[0].event.who == "Ann"


def test_a_password_is_asked_for_and_checked(hall: Hall) -> None:
    door = client(hall, "correct horse")
    page = door.get("/enter").text
    assert 'type="password"' in page
    assert door.post("/enter", data={"name": "Eve"}).status_code == 403
    assert door.post("/enter", data={"name": "Eve", "password": "wrong"}).status_code == 403
    assert door.get("/api/state").status_code == 401
    right = {"name": "Ann", "password": "correct horse"}
    assert door.post("/enter", data=right, follow_redirects=False).status_code == 303
    assert door.get("/api/state").json()["me"]["name"] == "Ann"


def test_guessing_ends_soon(hall: Hall) -> None:
    door = client(hall, "correct horse")
    codes = [
        door.post("/enter", data={"name": "Eve", "password": f"guess {n}"}).status_code
        for n in range(12)
    ]
    assert codes[-1] == 429
    right = {"authorization": "Bearer correct horse"}
    assert door.get("/api/state", headers=right).status_code == 401


def test_programs_come_in_by_token(hall: Hall) -> None:
    door = client(hall, "correct horse")
    token = {"authorization": "Bearer correct horse", "x-ronid-name": "nightly"}
    assert door.post("/api/act", json=ACCEPT, headers=token).status_code == 200
    assert hall.room.desk.entries()[0].event.who == "nightly"
    assert door.get("/api/state", headers={"authorization": "Bearer no"}).status_code == 401
    assert client(hall).get("/api/state", headers=token).status_code == 401


def test_cookies_are_signed_end_and_cannot_be_read_by_scripts(hall: Hall) -> None:
    answer = client(hall, "correct horse").post(
        "/enter", data={"name": "Ann", "password": "correct horse"}, follow_redirects=False
    )
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    door = Door("a" * 24, "correct horse")
    value = door.issue("Ann")
    body, signature = value.split(".")
    assert door.who(value) == "Ann"
    assert door.who(f"{body}.{signature[::-1]}") is None
    assert door.who(f"x{body}.{signature}") is None
    assert Door("a" * 24, "another").who(value) is None
    assert Door("b" * 24, "correct horse").who(value) is None
    for nonsense in ("", ".", "é.é", "a.b.c", None):
        assert door.who(nonsense) is None


def test_a_cookie_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    door = Door("a" * 24)
    value = door.issue("Ann")
    now = time.time()
    monkeypatch.setattr("ronid.studio.session.time.time", lambda: now + 31 * 24 * 3600)
    assert door.who(value) is None


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "http://localhost:9999"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_other_sites_cannot_act(inside: TestClient, hall: Hall, headers: dict[str, str]) -> None:
    assert inside.post("/api/act", json=ACCEPT, headers=headers).status_code == 403
    assert inside.post("/enter", data={"name": "Eve"}, headers=headers).status_code == 403
    assert hall.room.desk.version == 0
    with (
        pytest.raises(WebSocketDisconnect) as refused,
        inside.websocket_connect("/_nicegui_ws/socket.io/", headers=headers),
    ):
        pass
    assert refused.value.code == 1008  # refused by us; where nothing answers it is 1000
    ours = {"origin": HOME, "sec-fetch-site": "same-origin"}
    assert inside.post("/api/act", json=ACCEPT, headers=ours).status_code == 200


def test_a_form_of_another_site_is_no_action(inside: TestClient, hall: Hall) -> None:
    text = '{"action": {"kind": "accept", "intent": "i1"}, "seen": 0, "key": "a-key-of-mine"}'
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        answer = inside.post("/api/act", content=text, headers={"content-type": kind})
        assert answer.status_code in (400, 415, 422)
    assert hall.room.desk.version == 0


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8712", "localhost.evil.example", ""]
)
def test_other_names_for_this_machine_are_not_answered(inside: TestClient, host: str) -> None:
    assert inside.get("/api/state", headers={"host": host}).status_code == 421


def test_a_server_for_others_answers_to_any_name(hall: Hall) -> None:
    door = client(hall, "correct horse", local=False)
    assert door.get("/enter", headers={"host": "review.example"}).status_code == 200


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(inside: TestClient, method: str) -> None:
    assert inside.request(method, "/api/state").status_code == 405


def test_bodies_that_are_too_large_are_refused(inside: TestClient, hall: Hall) -> None:
    big = b'{"action": "' + b"x" * (5 * 2**20) + b'"}'
    kind = {"content-type": "application/json"}
    assert inside.post("/api/act", content=big, headers=kind).status_code == 413
    parts: Any = (big[start : start + 2**16] for start in range(0, len(big), 2**16))
    assert inside.post("/api/act", content=parts, headers=kind).status_code == 413
    lie = {**kind, "content-length": "-5"}
    assert inside.post("/api/act", content=b"{}", headers=lie).status_code == 413
    assert hall.room.desk.version == 0


@pytest.mark.parametrize(
    "path",
    [
        "/api/intent/..%2f..%2fetc%2fpasswd",
        "/api/intent/%2e%2e%2f%2e%2e%2frun.json",
        "/api/intent/i1%00",
        "/api/../../run.json",
        "/run.json",
        "/review.sqlite",
        "/page/app.js",
        "/api/intent/i1/split?parts=../../x",
    ],
)
def test_paths_lead_nowhere_else(inside: TestClient, path: str) -> None:
    answer = inside.get(path)
    assert answer.status_code in (404, 422)
    assert "root:" not in answer.text
    assert "format_version" not in answer.text


def test_pages_may_load_nothing_from_elsewhere(inside: TestClient) -> None:
    headers = inside.get("/api/state").headers
    policy = headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "http" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"


def test_names_and_titles_are_shown_as_text(hall: Hall) -> None:
    door = client(hall)
    page = door.get('/enter?next=/"><script>alert(1)</script>').text
    assert "<script>" not in page
    assert "<b>shop</b>" not in page
    answer = door.post("/enter", data={"name": "<script>" * 30, "next": "/"})
    assert answer.status_code == 400
    assert "<script>" not in answer.text


@pytest.mark.parametrize(
    ("wanted", "path"),
    [
        ("/map?a=i1", "/map?a=i1"),
        ("//evil.example", "/"),
        ("https://evil.example", "/"),
        ("/\\evil.example", "/"),
        ("/x\\y", "/"),
        ("/x\r\nset-cookie: a=b", "/"),
        ("", "/"),
        ("/enter", "/"),
    ],
)
def test_nobody_is_sent_elsewhere(wanted: str, path: str) -> None:
    assert local_path(wanted) == path


def test_other_addresses_need_a_password() -> None:
    check_address("127.0.0.1", None)
    check_address("::1", None)
    check_address("localhost", None)
    check_address("0.0.0.0", "correct horse")
    for host in ("0.0.0.0", "::", "192.168.0.7", "review.example"):
        assert not is_loopback(host)
        with pytest.raises(UsageError, match="can be reached by others"):
            check_address(host, None)
        with pytest.raises(UsageError, match="can be reached by others"):
            check_address(host, "")
    with pytest.raises(UsageError, match="too short"):
        check_address("127.0.0.1", "short")
