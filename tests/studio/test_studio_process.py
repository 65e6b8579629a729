"""The studio as a process: what its command refuses, and what a kill leaves."""

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nicegui", reason="the studio's packages are not installed")
from ronid.review import open_desk
from tests.helpers.finished_run import make_run
from tests.helpers.studio_server import Server, serving, start, stop

PASSWORD = "correct horse"


def ask(server: Server, path: str, body: dict[str, Any] | None = None, name: str = "Ann") -> Any:
    request = urllib.request.Request(
        f"{server.url}/api{path}",
        None if body is None else json.dumps(body).encode(),
        {
            "content-type": "application/json",
            "authorization": f"Bearer {PASSWORD}",
            "x-ronid-name": name,
        },
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def run_command(*arguments: str) -> "subprocess.CompletedProcess[str]":
    environment = {k: v for k, v in os.environ.items() if k != "RONID_PASSWORD"}
    return subprocess.run(
        [sys.executable, "-m", "ronid", "review", *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        env=environment,
    )


@pytest.mark.service
def test_other_addresses_are_refused_without_a_password(tmp_path: Path) -> None:
    make_run(tmp_path / "run")
    done = run_command(str(tmp_path / "run"), "--host", "0.0.0.0", "--no-browser")
    assert done.returncode == 2
    assert "can be reached by others" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.service
def test_what_is_no_run_is_one_line(tmp_path: Path) -> None:
    done = run_command(str(tmp_path / "nothing"))
    assert done.returncode == 2
    assert "is not a run" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.service
def test_a_port_in_use_is_one_line(tmp_path: Path) -> None:
    make_run(tmp_path / "run")
    with serving(tmp_path / "run") as server:
        done = run_command(str(tmp_path / "run"), "--port", str(server.port))
        assert done.returncode == 2
        assert "is in use" in done.stderr


def rename_on(server: Server, who: str, confirmed: dict[int, str]) -> None:
    """Rename until the server is gone; note what it confirmed."""
    for number in range(10_000):
        name = f"{who} {number}"
        action = {"kind": "rename", "intent": f"i{len(who) % 3 + 1}", "name": name}
        key = f"key-{name}".replace(" ", "-")
        try:
            seen = ask(server, "/state")["version"]
            done = ask(server, "/act", {"action": action, "seen": seen, "key": key}, who)
        except urllib.error.HTTPError as error:
            if error.code != 409:  # somebody else renamed the same intent meanwhile
                raise
        except (OSError, http.client.HTTPException):
            return
        else:
            confirmed[done["seq"]] = name


def test_killing_the_server_under_load_loses_no_confirmed_action(tmp_path: Path) -> None:
    make_run(tmp_path / "run")
    confirmed: dict[int, str] = {}
    for turn in range(2):
        server = start(tmp_path / "run", "--password", PASSWORD)
        threads = [
            threading.Thread(target=rename_on, args=(server, f"{who} {turn}", confirmed))
            for who in ("A", "Bo", "Cyn", "Dora")
        ]
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + 60
        while len(confirmed) < 40 * (turn + 1):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        os.kill(server.process.pid, signal.SIGKILL)
        for thread in threads:
            thread.join(20)
        stop(server)
    desk = open_desk(tmp_path / "run")
    events = {entry.seq: entry.event.action for entry in desk.entries()}
    assert list(events) == list(range(1, len(events) + 1))
    assert len(confirmed) >= 80
    assert all(events[seq].name == name for seq, name in confirmed.items())  # type: ignore[union-attr]
    assert not any(entry.problem for entry in desk.entries())
    desk.close()


@pytest.mark.service
def test_two_servers_over_one_file_see_each_other(tmp_path: Path) -> None:
    make_run(tmp_path / "run")
    with (
        serving(tmp_path / "run", "--password", PASSWORD) as one,
        serving(tmp_path / "run", "--password", PASSWORD) as other,
    ):
        body = {"action": {"kind": "accept", "intent": "i1"}, "seen": 0, "key": "a-key-of-mine"}
        ask(one, "/act", body)
        deadline = threading.Event()
        for _ in range(20):
            if ask(other, "/state")["version"] == 1:
                break
            deadline.wait(0.1)
        assert ask(other, "/state")["intents"][1]["status"] == "accepted"
