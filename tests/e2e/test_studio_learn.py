"""Learning in the studio, as processes: progress, the next version, kills, cancelling, undo."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nicegui", reason="the studio's packages are not installed")
from ronid.learn.standing import read_standing
from ronid.review import open_desk
from tests.helpers.studio_server import Server, serving, start, stop

PASSWORD = "correct horse"


@pytest.fixture
def run(fitted: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(fitted, tmp_path / "run"))


def ask(server: Server, path: str, body: dict[str, Any] | None = None, name: str = "Ada") -> Any:
    request = urllib.request.Request(
        f"{server.url}/api{path}",
        None if body is None else json.dumps(body).encode(),
        {
            "content-type": "application/json",
            "authorization": f"Bearer {PASSWORD}",
            "x-ronid-name": name,
        },
    )
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.load(answer)


def decide(server: Server, **action: Any) -> None:
    seen = ask(server, "/state")["version"]
    ask(server, "/act", {"action": action, "seen": seen, "key": f"key-{seen}-{action['kind']}"})


def until(look: Callable[[], Any], seconds: float = 120) -> Any:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = look()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError("it did not happen")


def phase(server: Server, *wanted: str) -> Any:
    def look() -> Any:
        found = ask(server, "/learn")["standing"]
        return found if found and found["phase"] in wanted else None

    return until(look)


def training(run: Path) -> Any:
    """Wait until a training holds the run."""
    return until(lambda: (now := read_standing(run)) and now.phase == "running" and now)


@pytest.mark.service
def test_the_studio_goes_on_with_the_new_version_and_back(run: Path) -> None:
    with serving(run, "--password", PASSWORD) as server:
        decide(server, kind="merge", intents=["i3", "i4"], into="i3")
        decide(server, kind="accept", intent="i0")
        began = ask(server, "/learn", {}, "Bo")["standing"]
        assert (began["phase"], began["who"]) == ("running", "Bo")
        with pytest.raises(urllib.error.HTTPError) as refused:
            ask(server, "/learn", {})
        assert refused.value.code == 422
        assert "is training it already" in refused.value.read().decode()
        assert phase(server, "done", "failed")["says"] == ""
        until(lambda: ask(server, "/learn")["run"] == 1)
        page = ask(server, "/learn")
        assert (page["last"]["version"], page["last"]["who"]) == (1, "Bo")
        assert page["last"]["current"]
        assert [each["says"] for each in page["last"]["verdicts"]]
        assert page["why_not"].startswith("nothing was decided since the last training")
        assert page["taught"]["fresh"] == 0
        state = ask(server, "/state")
        assert state["version"] == 3
        assert len(state["intents"]) == 4
        entry = ask(server, "/history")["entries"][0]
        assert (entry["kind"], entry["who"]) == ("learn", "Bo")
        with pytest.raises(urllib.error.HTTPError):  # a training is a version, not an act
            decide(server, kind="undo", target=3)
        assert ask(server, "/state")["me"]["undo"]["seq"] == 2
        decide(server, kind="rename", intent="i3", name="after the training")
        back = ask(server, "/learn/undo", {"version": 1}, "Cy")
        assert back["run"] == 0
        page = ask(server, "/learn")
        assert page["last"] is None
        assert page["why_not"] == ""
        latest = ask(server, "/history")["entries"][0]
        assert (latest["kind"], latest["who"]) == ("undo", "Cy")
        names = [each["name"] for each in ask(server, "/state")["intents"]]
        assert "after the training" in names
        assert not (run / "versions" / "1").exists()


def test_a_kill_of_the_server_loses_nothing(run: Path) -> None:
    server = start(run, "--password", PASSWORD)
    decide(server, kind="merge", intents=["i3", "i4"], into="i3")
    ask(server, "/learn", {})
    training(run)
    decide(server, kind="rename", intent="i0", name="said while it trained")
    os.kill(server.process.pid, signal.SIGKILL)
    stop(server)
    with serving(run, "--password", PASSWORD) as again:
        told = phase(again, "running", "done")
        assert told["who"] == "Ada"
        assert phase(again, "done", "failed")["phase"] == "done"
        until(lambda: ask(again, "/learn")["run"] == 1)
        names = [each["name"] for each in ask(again, "/state")["intents"]]
        assert "said while it trained" in names
        page = ask(again, "/learn")
        assert page["taught"]["fresh"] == 1  # it is taught the next time
        assert page["why_not"] == ""
    desk = open_desk(run)
    kinds = [entry.event.action.kind for entry in desk.entries()]
    desk.close()
    assert kinds == ["merge", "rename", "learn"]
    assert not any(entry.problem for entry in desk.entries())


@pytest.mark.service
def test_another_server_sees_it_and_cancels_it(run: Path) -> None:
    with (
        serving(run, "--password", PASSWORD) as one,
        serving(run, "--password", PASSWORD) as other,
    ):
        decide(one, kind="accept", intent="i1")
        ask(one, "/learn", {})
        training(run)
        ask(other, "/learn/cancel", {}, "Bo")
        for server in (one, other):
            told = phase(server, "cancelled", "done", "failed")
            assert told["says"] == "cancelled; nothing was changed"
            assert ask(server, "/learn")["run"] == 0
        assert not (run / "versions" / "next").exists()
        assert ask(one, "/state")["version"] == 1
        with pytest.raises(urllib.error.HTTPError) as refused:
            ask(other, "/learn/cancel", {})
        assert "nothing is being trained" in refused.value.read().decode()


@pytest.mark.service
def test_a_training_by_the_command_is_seen_and_the_page_moves_on(run: Path) -> None:
    with serving(run, "--password", PASSWORD) as server:
        decide(server, kind="accept", intent="i1")
        command = [sys.executable, "-m", "ronid", "learn", str(run), "--quiet", "--who", "Di"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        assert phase(server, "running")["who"] == "Di"
        assert process.wait(120) == 0
        until(lambda: ask(server, "/learn")["run"] == 1)
        assert ask(server, "/learn")["last"]["who"] == "Di"
        assert ask(server, "/state")["version"] == 2


def test_a_killed_training_leaves_the_run_and_says_so(run: Path) -> None:
    with serving(run, "--password", PASSWORD) as server:
        decide(server, kind="accept", intent="i1")
        ask(server, "/learn", {})
        os.kill(training(run).pid, signal.SIGKILL)
        told = phase(server, "failed", "done")
        if told["phase"] == "failed":
            assert "nothing was changed" in told["says"]
            assert ask(server, "/learn")["run"] == 0
            ask(server, "/learn", {})  # and it can begin anew
            assert phase(server, "done", "failed")["phase"] == "done"


@pytest.mark.service
def test_decisions_in_postgresql_are_learnt_and_the_version_taken_back(
    run: Path, postgres_url: str
) -> None:
    with serving(run, "--password", PASSWORD, "--store", postgres_url) as server:
        decide(server, kind="merge", intents=["i3", "i4"], into="i3")
        ask(server, "/learn", {})
        assert phase(server, "done", "failed")["phase"] == "done"
        until(lambda: ask(server, "/learn")["run"] == 1)
        assert ask(server, "/state")["version"] == 2
        assert ask(server, "/learn/undo", {"version": 1}, "Bo") == {"run": 0, "version": 3}
    assert not (run / "review.sqlite").exists()
