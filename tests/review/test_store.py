"""The contract of a store, on SQLite and on PostgreSQL."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ronid.errors import UsageError
from ronid.review.events import Accept, Describe, Move, Recorded, Rename, make_event
from ronid.review.store import Store, store_for


def take_all(newer: list[Recorded]) -> None:
    pass


@pytest.fixture
def store(where: str, run_name: str) -> Store:
    return store_for(where, run_name)


def test_events_come_back_in_order(store: Store) -> None:
    events = [make_event(Describe("i1", f"a\n“{k}” 取消 🎉"), "Ann", k) for k in range(5)]
    recorded = [store.append(event, 0, take_all) for event in events]
    assert [each.seq for each in recorded] == [1, 2, 3, 4, 5]
    assert store.since(0) == recorded
    assert store.since(3) == recorded[3:]
    assert store.since(5) == []


def test_a_retry_is_not_applied_twice(store: Store) -> None:
    event = make_event(Accept("i1"), "Ann", 0, "the-same-key")
    first = store.append(event, 0, take_all)
    again = make_event(Accept("i1"), "Ann", 0, "the-same-key")
    assert store.append(again, 0, take_all) == first
    assert len(store.since(0)) == 1


def test_a_key_cannot_mean_something_else(store: Store) -> None:
    store.append(make_event(Accept("i1"), "Ann", 0, "the-same-key"), 0, take_all)
    with pytest.raises(UsageError, match="key"):
        store.append(make_event(Accept("i2"), "Ann", 0, "the-same-key"), 0, take_all)


def test_a_refused_event_leaves_no_trace_and_no_gap(store: Store) -> None:
    def refuse(newer: list[Recorded]) -> None:
        raise UsageError("no")

    with pytest.raises(UsageError, match="no"):
        store.append(make_event(Accept("i1"), "Ann", 0), 0, refuse)
    assert store.append(make_event(Accept("i2"), "Ann", 0), 0, take_all).seq == 1


def test_the_judge_of_an_event_sees_what_came_since(store: Store) -> None:
    first = store.append(make_event(Accept("i1"), "Ann", 0), 0, take_all)
    second = store.append(make_event(Accept("i2"), "Bob", 0), 0, take_all)
    seen: list[Recorded] = []
    store.append(make_event(Accept("i3"), "Ann", 0), 0, seen.extend)
    assert seen == [first, second]


def test_runs_do_not_mix(where: str, run_name: str) -> None:
    one = store_for(where, run_name)
    one.append(make_event(Accept("i1"), "Ann", 0), 0, take_all)
    if where.startswith("postgres"):
        assert store_for(where, "another-run").since(0) == []
    else:
        with pytest.raises(UsageError, match="another run"):
            store_for(where, "another-run")


def test_recorded_events_cannot_be_changed(where: str, run_name: str) -> None:
    store = store_for(where, run_name)
    store.append(make_event(Accept("i1"), "Ann", 0), 0, take_all)
    table = "ronid_events" if where.startswith("postgres") else "events"
    with pytest.raises(Exception, match="never"):
        store._db.execute(f"UPDATE {table} SET who = 'Eve'")  # type: ignore[attr-defined]
    with pytest.raises(Exception, match="never"):
        store._db.execute(f"DELETE FROM {table}")  # type: ignore[attr-defined]


def write_some(where: str, run: str, who: str, count: int) -> None:
    store = store_for(where, run)
    for number in range(count):
        store.append(make_event(Rename("i1", f"{who} {number}"), who, 0), 0, take_all)
    store.close()


def test_many_writers_leave_no_gap_and_lose_nothing(where: str, run_name: str) -> None:
    store_for(where, run_name).close()
    context = multiprocessing.get_context("spawn")
    names = [f"writer {number}" for number in range(4)]
    processes = [
        context.Process(target=write_some, args=(where, run_name, name, 25)) for name in names
    ]
    for process in processes:
        process.start()
    shared = store_for(where, run_name)

    def write_shared(who: str) -> None:
        for number in range(10):
            shared.append(make_event(Rename("i1", f"{who} {number}"), who, 0), 0, take_all)

    threads = [threading.Thread(target=write_shared, args=(f"thread {k}",)) for k in range(3)]
    for thread in threads:
        thread.start()
    for joined in (*threads, *processes):
        joined.join(60)
    assert [process.exitcode for process in processes] == [0] * 4
    events = shared.since(0)
    assert [each.seq for each in events] == list(range(1, 131))
    for who, count in [*((name, 25) for name in names), *((f"thread {k}", 10) for k in range(3))]:
        mine = [each.event.action for each in events if each.event.who == who]
        assert mine == [Rename("i1", f"{who} {number}") for number in range(count)]


WRITER = """
import sys
from ronid.review.events import Move, make_event
from ronid.review.store import store_for
store = store_for(sys.argv[1], sys.argv[2])
number = 0
while True:
    number += 1
    event = make_event(Move(tuple(range(number % 50 + 1)), "i1"), sys.argv[3], 0)
    print(store.append(event, 10**9, lambda newer: None).seq, event.key, flush=True)
"""


def test_killing_the_writers_loses_no_confirmed_event(
    where: str, run_name: str, tmp_path: Path
) -> None:
    store_for(where, run_name).close()
    confirmed: dict[int, str] = {}
    for turn in range(3):
        files = [tmp_path / f"{turn}-{k}.txt" for k in range(3)]
        writers = []
        for k, path in enumerate(files):
            with path.open("w") as out:
                command = [sys.executable, "-c", WRITER, where, run_name, f"writer {k}"]
                writers.append(subprocess.Popen(command, stdout=out))
        deadline = time.monotonic() + 60
        while min(len(path.read_text().splitlines()) for path in files) < 15:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        for writer in writers:
            os.kill(writer.pid, signal.SIGKILL)
            writer.wait()
        for path in files:
            # The last line may be cut: the kill came while it was being printed.
            for line in path.read_text().split("\n")[:-1]:
                seq, key = line.split()
                assert confirmed.setdefault(int(seq), key) == key
    stored = store_for(where, run_name).since(0)
    assert [each.seq for each in stored] == list(range(1, len(stored) + 1))
    keys = {each.seq: each.event.key for each in stored}
    assert len(confirmed) >= 135
    assert confirmed.items() <= keys.items()
    assert all(isinstance(each.event.action, Move) for each in stored)


def test_a_lost_connection_is_made_anew(postgres_url: str, run_name: str) -> None:
    store = store_for(postgres_url, run_name)
    store.append(make_event(Accept("i1"), "Ann", 0), 0, take_all)
    other = store_for(postgres_url, "another")
    pid = store._db.info.backend_pid  # type: ignore[attr-defined]
    other._db.execute("SELECT pg_terminate_backend(%s)", (pid,))  # type: ignore[attr-defined]
    assert store.append(make_event(Accept("i2"), "Ann", 0), 0, take_all).seq == 2
    assert len(store.since(0)) == 2


def test_a_server_that_is_not_there_is_one_line_without_the_password() -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(UsageError) as caught:
        store_for("postgresql://ann:topsecret@127.0.0.1:9/x", "run")
    assert "topsecret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_other_places_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="mysql"):
        store_for("mysql://x", "run")
    (tmp_path / "note.txt").write_text("not a database, but long enough to look like a file\n" * 99)
    with pytest.raises(UsageError, match="cannot be opened"):
        store_for(tmp_path / "note.txt", "run")
    with pytest.raises(UsageError, match="cannot be opened"):
        store_for(tmp_path / "nowhere" / "review.sqlite", "run")
