import json
from dataclasses import replace
from pathlib import Path

import pytest

from ronid.cli.name import KEY
from ronid.intents_file import write_intents
from ronid.run import RunFolder
from ronid.versions import locked
from tests.helpers.chat_server import names, serve
from tests.helpers.finished_run import make_run


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return make_run(tmp_path / "run")


def test_old_and_new_names_are_shown_and_the_key_comes_from_the_environment(ronid, run) -> None:
    with serve(lambda n, _: names(f"named_{n}")) as chat:
        options = ("--namer", chat.url, "--namer-model", "small")
        done = ronid("name", run.path, *options, RONID_NAMER_KEY="secret", COLUMNS="80")
    assert done.returncode == 0, done.stderr
    assert "named_2" in done.stdout
    assert "model:small" in done.stdout
    assert "gift_card" in done.stdout
    assert "named 3 of 3 new intents by the model" in done.stderr
    assert all(headers["Authorization"] == "Bearer secret" for _, headers, _ in chat.requests)
    assert "secret" not in done.stdout + done.stderr


def test_show_prompt_prints_what_would_be_sent_and_sends_nothing(ronid, run) -> None:
    with serve(lambda n, _: names(f"named_{n}")) as chat:
        options = ("--namer", chat.url, "--namer-model", "small")
        shown = ronid("name", run.path, *options, "--show-prompt")
        assert chat.requests == []
        ronid("name", run.path, *options, "--quiet")
    assert shown.returncode == 0, shown.stderr
    first, *later = [body["messages"] for _, _, body in chat.requests]
    assert all(message["content"] in shown.stdout for message in first)
    for messages in later:  # they also list the names that the model has just given
        for message in messages:
            assert message["content"].partition("Names already taken")[0] in shown.stdout


@pytest.mark.parametrize("with_namer", [True, False])
def test_show_prompt_as_json_is_what_would_be_sent(ronid, run, with_namer: bool) -> None:
    with serve(lambda n, _: names(f"named_{n}")) as chat:
        options = ("--namer", chat.url, "--namer-model", "small")
        shown = ronid(
            "name", run.path, *(options if with_namer else ()), "--show-prompt", "--json",
            RONID_NAMER_KEY="secret",
        )  # fmt: skip
        assert chat.requests == []
        ronid("name", run.path, *options, "--quiet")
    assert shown.returncode == 0, shown.stderr
    assert "secret" not in shown.stdout
    told = json.loads(shown.stdout)
    assert told["run"] == str(run.path)
    assert [each["to"] for each in told["requests"]] == 3 * [
        f"{chat.url}/chat/completions" if with_namer else None
    ]
    sent = chat.requests[0][2]
    assert told["requests"][0]["body"] == sent | ({} if with_namer else {"model": None})


def test_a_refused_key_is_told_in_one_line(ronid, run) -> None:
    with serve(lambda *_: (401, b"no")) as chat:
        options = ("--namer", chat.url, "--namer-model", "small", "--quiet")
        done = ronid("name", run.path, *options)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "HTTP 401: the server wants a key (1), not asked after that (2)" in line
    assert line.endswith(f"set {KEY}")


def test_without_the_option_nothing_is_sent_and_json_lists_the_intents(ronid, run) -> None:
    # Any request would fail here: the proxy does not exist.
    done = ronid("name", run.path, "--json", http_proxy="http://127.0.0.1:9")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["changes"] == []
    assert answer["intents"][1]["nearest"][0]["name"] == "track_order"


def test_an_endpoint_that_fails_is_told_in_one_line_and_by_the_exit_code(ronid, run) -> None:
    options = ("--namer", "http://127.0.0.1:9/v1", "--namer-model", "small", "--quiet")
    done = ronid("name", run.path, *options)
    assert done.returncode == 1
    assert "gift_card" in done.stdout  # the names without a model are written and shown
    assert all(name in done.stdout for name in [i.name for i in run.intents() if not i.known])
    assert "3 not: no connection (3); named without a model: 3" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_an_endpoint_that_is_down_takes_no_name_away(ronid, run) -> None:
    with serve(lambda n, _: names(f"named_{n}", f"People want {n}.")) as chat:
        ronid("name", run.path, "--namer", chat.url, "--namer-model", "small")
    before = run.intents()
    options = ("--namer", "http://127.0.0.1:9/v1", "--namer-model", "other", "--quiet")
    done = ronid("name", run.path, *options)
    assert done.returncode == 1, done.stderr
    assert run.intents() == before
    assert [intent.named_by for intent in before[1:]] == ["model:small"] * 3
    assert "3 not: no connection (3); kept the name a model gave before: 3\n" in done.stderr


def test_one_intent_without_an_answer_is_told_by_the_exit_code(ronid, run) -> None:
    with serve(lambda n, _: names(f"named_{n}") if n == 1 else (404, b"")) as chat:
        options = ("--namer", chat.url, "--namer-model", "small", "--json", "--quiet")
        done = ronid("name", run.path, *options)
    assert done.returncode == 1, done.stderr
    answer = json.loads(done.stdout)
    assert answer["unanswered"] == 2
    assert [intent["named_by"] == "model:small" for intent in answer["intents"]].count(True) == 1
    assert done.stderr.startswith("named 1 of 3 new intents by the model; 2 not: HTTP 404 (1)")


def test_where_there_is_nothing_to_name_all_is_well(ronid, tmp_path: Path) -> None:
    run = make_run(tmp_path / "known", known=4)
    options = ("--namer", "http://127.0.0.1:9/v1", "--namer-model", "small")
    assert ronid("name", run.path, *options).returncode == 0


def test_what_is_sent_is_shown_and_kept_without_the_key(ronid, run) -> None:
    with serve(lambda n, _: names(f"named_{n}")) as chat:
        options = ("--namer", chat.url, "--namer-model", "small", "--json")
        done = ronid("name", run.path, *options, RONID_NAMER_KEY="secret")
    json.loads(done.stdout)
    for message in chat.requests[0][2]["messages"]:
        assert message["content"] in done.stderr
    kept = run.path / "sent.jsonl"
    told = f"this goes to {chat.url}/chat/completions, then up to 2 more of this form; '{kept}'"
    assert told in done.stderr
    rows = [json.loads(line) for line in kept.read_text(encoding="utf-8").splitlines()]
    assert [row["body"] for row in rows] == [body for _, _, body in chat.requests]
    assert "secret" not in kept.read_text(encoding="utf-8") + done.stderr


def test_nothing_is_sent_while_another_process_changes_the_run(ronid, run) -> None:
    pytest.importorskip("fcntl")
    with serve(lambda n, _: names(f"named_{n}")) as chat, locked(run.path):
        done = ronid("name", run.path, "--namer", chat.url, "--namer-model", "small")
    assert done.returncode == 2
    assert "is being updated by another process" in done.stderr
    assert chat.requests == []
    assert not (run.path / "sent.jsonl").exists()


@pytest.mark.parametrize("columns", ["80", "40"])
def test_long_names_are_folded_and_never_cut(ronid, run, columns: str) -> None:
    long = "a_name_of_an_intent_that_is_much_too_long_for_a_narrow_screen"
    known, *new = run.intents()
    write_intents(run.path, [known, replace(new[0], name=long, named_by="user"), *new[1:]])
    done = ronid("name", run.path, COLUMNS=columns)
    assert "\u2026" not in done.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--namer", "http://localhost/v1"), "--namer needs --namer-model"),
        (("--namer-model", "small"), "--namer-model needs --namer"),
        (("--namer", "nowhere", "--namer-model", "small"), "'nowhere' is not an address"),
    ],
)
def test_half_a_namer_is_refused_in_one_line(ronid, run, options, message: str) -> None:
    done = ronid("name", run.path, *options)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_folder_that_is_no_run_is_refused(ronid, tmp_path: Path) -> None:
    done = ronid("name", tmp_path / "nothing")
    assert done.returncode == 2
    assert "is not a run" in done.stderr
