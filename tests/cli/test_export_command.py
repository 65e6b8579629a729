import json
from pathlib import Path

import pytest

from ronid.cli.export import TARGETS
from ronid.export.formats import FORMATS, load_format
from ronid.run import RunFolder
from tests.helpers.finished_run import SHOP, make_run


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return make_run(tmp_path / "run")


def test_help_lists_every_target() -> None:
    assert TARGETS.replace(" or ", ", ").split(", ") == list(FORMATS)


@pytest.mark.parametrize("to", FORMATS)
def test_export_prints_its_files_and_what_stays_out(ronid, run, tmp_path: Path, to: str) -> None:
    done = ronid("export", run.path, "--to", to)
    assert done.returncode == 0, done.stderr
    names = [str(Path(f"export-{to}") / name) for name in FORMATS[to].files]
    assert sorted(done.stdout.splitlines()) == sorted(names)
    assert "1 intent, 4 utterances" in done.stderr
    assert "3 new intents not accepted yet and left out; --all exports" in done.stderr
    read = load_format(to).read(tmp_path / f"export-{to}")
    assert {text for text, _ in read} == set(SHOP["track_order"])


def test_all_exports_open_intents_and_json_sums_it_up(ronid, run, tmp_path: Path) -> None:
    options = ("--to", "watson", "--all", "--out", tmp_path / "w", "--json")
    done = ronid("export", run.path, *options)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert (answer["intents"], answer["utterances"]) == (4, 15)
    assert answer["choice"] == {"open": True, "rejected": False, "out_of_scope": False}
    assert answer["export"] == str(tmp_path / "w")
    assert list(answer["sha256"]) == ["intents.csv"]


def test_what_is_left_out_or_changed_is_counted_in_a_line(ronid, tmp_path: Path) -> None:
    groups = {"one thing": ["a [b](c)", "d", "d", "e"], "alone": ["f"], "other": ["g", "h"]}
    run = make_run(tmp_path / "run", groups, known=2)
    done = ronid("export", run.path, "--to", "rasa")
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines() == [
        "1 intent, 3 utterances",
        "1 new intent not accepted yet and left out; --all exports open intents too",
        "left out: 2 utterances (1 repeated, 1 in intents of fewer than 2 utterances); "
        "audit.jsonl lists them",
        "left out, without utterances: alone",
        "changed: 1 utterance; audit.jsonl lists them",
        "renamed: 1 intent; names.csv lists them",
    ]
    quiet = ronid("export", run.path, "--to", "rasa", "--force", "--quiet")
    assert quiet.stderr == ""


def test_nothing_accepted_is_one_line_and_code_2(ronid, tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", known=0)
    done = ronid("export", run.path, "--to", "csv")
    assert done.returncode == 2
    assert done.stderr == (
        "ronid: no intent is accepted yet (4 are open): accept some in `ronid review`, "
        "or export the open ones too with --all\n"
    )
    assert not (tmp_path / "export-csv").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--to", "siri"), "'siri' is no target"),
        ((), "Missing option '--to'"),
        (("--to", "lex", "--language", "sw"), "Lex wants a region too"),
        (("--to", "csv", "--out", "run"), "holds other files"),
        (("--to", "csv", "--out", "no/where"), "does not exist; make it first"),
    ],
)
def test_bad_options_are_refused_in_one_line(ronid, run, options, message: str) -> None:
    done = ronid("export", run.path, *options)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_folder_that_is_no_run_is_refused(ronid, tmp_path: Path) -> None:
    done = ronid("export", tmp_path / "nothing", "--to", "csv")
    assert done.returncode == 2
    assert "is not a run" in done.stderr


def test_a_second_export_needs_force(ronid, run) -> None:
    first = ronid("export", run.path, "--to", "csv", "--quiet")
    second = ronid("export", run.path, "--to", "csv")
    assert (first.returncode, second.returncode) == (0, 2)
    assert "holds an export already; --force replaces it" in second.stderr
    assert ronid("export", run.path, "--to", "csv", "--force").returncode == 0


def test_system_and_name_reach_the_files(ronid, run, tmp_path: Path) -> None:
    ronid("export", run.path, "--to", "openai-jsonl", "--system", "Which intent?")
    talk = json.loads((tmp_path / "export-openai-jsonl/training.jsonl").read_text().splitlines()[0])
    assert [each["content"] for each in talk["messages"]] == [
        "Which intent?", "where is my order", "track_order",
    ]  # fmt: skip
    ronid("export", run.path, "--to", "clu", "--name", "help desk")
    project = json.loads((tmp_path / "export-clu/project.json").read_text())
    assert project["metadata"]["projectName"] == "help_desk"
