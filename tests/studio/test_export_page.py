"""Export from the studio: what is told before, what the archive holds, what is refused."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the studio's packages are not installed")
from fastapi.testclient import TestClient

from ronid.export.formats import FORMATS, load_format
from ronid.export.reviewed import catalogue_of
from ronid.review.events import (
    Accept,
    Confirm,
    Merge,
    Move,
    OutOfScope,
    Part,
    Reject,
    Rename,
    Split,
)
from ronid.studio.app import make_app
from ronid.studio.guard import Guard
from ronid.studio.hall import Hall, open_hall
from ronid.studio.session import Door
from tests.helpers.finished_run import SHOP, make_run

NAME = "<img src=x onerror=alert(1)> lost / card"


def decide(hall: Hall, *actions: Any, who: str = "Ada") -> None:
    for action in actions:
        hall.room.desk.act(action, who, hall.room.desk.version)


def unpack(client: TestClient, path: str, folder: Path) -> Path:
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        archive.extractall(folder)
    return next(folder.iterdir())


def test_every_target_is_offered_with_its_files(client: TestClient) -> None:
    told = client.get("/api/export").json()
    assert [each["to"] for each in told["targets"]] == list(FORMATS)
    assert told["targets"][0]["files"] == ["nlu.yml", "domain.yml", "names.csv", "audit.jsonl"]


def test_what_changes_is_told_before(client: TestClient, hall: Hall) -> None:
    decide(hall, Rename("i1", NAME), Accept("i1"))
    told = client.get("/api/export/rasa").json()
    assert (told["intents"], told["utterances"]) == (2, 8)
    assert told["renamed"] == [{"name": NAME, "as": "img_src_x_onerror_alert_1_lost_card"}]
    assert told["notes"] == ["2 new intents not accepted yet and left out"]
    everything = client.get("/api/export/rasa?open=true").json()
    assert (everything["intents"], everything["utterances"], everything["notes"]) == (4, 15, [])


@pytest.mark.parametrize("to", FORMATS)
def test_the_archive_is_what_the_command_writes(
    client: TestClient, hall: Hall, tmp_path: Path, to: str
) -> None:
    decide(hall, Accept("i1"), Rename("i2", "gift, please"), OutOfScope((5,)))
    answer = client.get(f"/api/export/{to}/file?open=true")
    assert answer.headers["content-type"] == "application/zip"
    assert f'filename="export-{to}.zip"' in answer.headers["content-disposition"]
    folder = unpack(client, f"/api/export/{to}/file?open=true", tmp_path / "out")
    assert folder.name == f"export-{to}"
    found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert found == {*FORMATS[to].files, "names.csv", "audit.jsonl"}
    pairs = load_format(to).read(folder)
    assert {text for text, _ in pairs} <= {text for group in SHOP.values() for text in group}
    assert len(pairs) == 14
    assert len({intent for _, intent in pairs}) == 4


def test_equal_reviews_give_equal_bytes(client: TestClient) -> None:
    first, second = (client.get("/api/export/rasa/file").content for _ in range(2))
    assert first == second


def test_the_audit_names_who_decided(client: TestClient, hall: Hall, tmp_path: Path) -> None:
    decide(hall, Move((8, 9), "i1"), Merge(("i2", "i3"), "i2"), Reject("i2"))
    decide(hall, Accept("i1"), who="Bo")
    folder = unpack(client, "/api/export/jsonl/file?rejected=1", tmp_path / "out")
    head, *rows = [json.loads(line) for line in (folder / "audit.jsonl").read_text().splitlines()]
    assert (head["review_version"], head["run_version"]) == (4, 0)
    by = {row["text"]: (row["by"], row.get("who")) for row in rows}
    assert by["where is my order"] == ("given", None)
    assert by["I lost my card"] == ("person", "Bo")
    assert by["buy a gift card"] == ("person", "Ada")
    assert by["pause my membership"] == ("model", "Ada")  # merged, not read one by one
    statuses = {row["intent_id"] for row in rows}
    assert statuses == {"i0", "i1", "i2"}


def test_decisions_leave_by_the_command_too(hall: Hall) -> None:
    part = Part("n1", "half", (4, 5))
    decide(hall, Split("i1", (part,)), Accept("n1"), Confirm((8,)), OutOfScope((12,)))
    made = catalogue_of(hall.run)
    assert [intent.id for intent in made.intents if intent.accepted] == ["i0", "n1"]
    assert {row.intent for row in made.rows} == {"i0", "i1", "i2", "i3", "n1", None}
    assert made.rows[8].by == "person"
    assert made.about["review_version"] == 4


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/api/export/siri", "'siri' is no target of an export; there are: rasa"),
        ("/api/export/siri/file", "'siri' is no target of an export; there are: rasa"),
        ("/api/export/..%2f..%2fetc/file", ""),
        ("/api/export/lex?language=sw", "Lex wants a region too"),
        ("/api/export/hf?name=%20", "the name must be"),
        ("/api/export/hf/file?language=no!", "the language 'no!' is none"),
        ("/api/export/hf?language=" + "x" * 99, ""),
        ("/api/export/hf?open=perhaps", ""),
    ],
)
def test_what_cannot_be_is_one_line(client: TestClient, path: str, said: str) -> None:
    answer = client.get(path)
    assert answer.status_code in (404, 422)
    assert said in answer.text
    if said:
        line = answer.json()["problem"]
        assert "\n" not in line
        assert "--" not in line


def test_nothing_accepted_is_said_in_words_of_the_page(tmp_path: Path) -> None:
    make_run(tmp_path / "run", SHOP, known=0)
    hall = open_hall(tmp_path / "run")
    door = Door("a" * 24)
    app: Any = Guard(make_app(hall, door), door, local=True)  # type: ignore[arg-type]
    client = TestClient(app, base_url="http://localhost:8712")
    client.post("/enter", data={"name": "Ada", "next": "/"}, follow_redirects=False)
    answer = client.get("/api/export/csv")
    assert answer.json()["problem"] == (
        "no intent is accepted yet (4 are open): accept some, or export the open ones too"
    )
    hall.close()


def test_strangers_and_other_sites_get_nothing(client: TestClient, hall: Hall) -> None:
    door = Door("a" * 24)
    app: Any = Guard(make_app(hall, door), door, local=True)  # type: ignore[arg-type]
    outside = TestClient(app, base_url="http://localhost:8712")
    for path in ("/api/export", "/api/export/csv", "/api/export/csv/file", "/api/learn"):
        assert outside.get(path).status_code == 401
        for headers in ({"sec-fetch-site": "cross-site"}, {"origin": "https://evil.example"}):
            assert client.get(path, headers=headers).status_code == 403


def test_nothing_is_left_on_the_server(
    client: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    assert client.get("/api/export/rasa/file").status_code == 200
    assert client.get("/api/export/siri/file").status_code == 422
    assert list(place.iterdir()) == []
