"""Whatever a user gets wrong ends in one line, exit code 2, and a folder as it was."""

import errno
import json
import subprocess
import sys
import tomllib
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ronid.cli import main
from ronid.cli.fit import fit
from ronid.data.corpus import corpus_from
from ronid.presets import preset
from ronid.run import Job, RunFolder

Done = subprocess.CompletedProcess[str]
Command = Callable[..., Done]

FIT = ("--out", "run", "--intents", "3")


def contents(folder: Path) -> dict[str, bytes | None]:
    """Every path under a folder with the bytes of the files."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


@pytest.fixture
def refused(ronid: Command, tmp_path: Path) -> Callable[..., str]:
    """Run a command that must be refused; return its one line without the name in front."""

    def run(*arguments: str | Path, **how: str) -> str:
        before = contents(tmp_path)
        done = ronid(*arguments, **how)
        assert done.returncode == 2, done.stderr
        assert done.stdout == ""
        assert "Traceback" not in done.stderr
        lines = done.stderr.splitlines()
        assert len(lines) == 1, done.stderr
        assert lines[0].startswith("ronid: ")
        assert contents(tmp_path) == before
        return lines[0].removeprefix("ronid: ")

    return run


def unfinished_run(path: Path) -> RunFolder:
    """Make the folder of a run that has not begun."""
    corpus = corpus_from(["a b", "c d", "e f"], ["x", None, None])
    return RunFolder.create(path, Job(corpus, None, 2, preset("fast"), 0, "cpu"), "calls.csv")


def finished_run(path: Path) -> RunFolder:
    """Make the folder of a run that says it is finished."""
    run = unfinished_run(path)
    run.finish()
    return run


def test_no_such_file(refused: Callable[..., str]) -> None:
    assert refused("fit", "nothing.csv", *FIT).startswith("nothing.csv does not exist; check")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nothing.csv", *FIT), "nothing.csv does not exist"),
        (("calls.csv", *FIT, "--text", "utterence"), "did you mean 'utterance'?"),
        (("calls.csv", *FIT, "--dev", "nothing.csv"), "nothing.csv does not exist"),
        (("calls.csv", "--out", "run", "--exactly"), "--exactly needs a number"),
        (("calls.csv", "--out", "run", "--intents", "7"), "there are only 6 utterances"),
        (("calls.csv", *FIT, "--config", "wrong.toml"), "did you mean 'alpha'?"),
        (("calls.csv", *FIT, "--encoder", "./missing"), "'./missing' does not exist"),
    ],
)
def test_what_can_be_refused_without_torch_does_not_wait_for_it(
    calls: Path, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    (tmp_path / "wrong.toml").write_text("[m_step]\nalpah = 0.5\n")
    code = (
        "import sys\nfrom ronid.cli import main\n"
        "try:\n    main()\nfinally:\n    print('torch' in sys.modules)"
    )
    command = [sys.executable, "-c", code, "fit", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert done.stdout == "False\n"


def test_settings_file_is_read_once(
    calls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "settings.toml").write_text("[m_step]\nepochs = 1\n")
    read: list[str] = []

    def noting(text: str) -> dict[str, Any]:
        read.append(text)
        return tomllib.loads(text)

    jobs: list[Job] = []
    monkeypatch.setattr("ronid.toml.tomllib", SimpleNamespace(loads=noting))
    monkeypatch.setattr("ronid.cli.fit.start", lambda _out, job, *_: jobs.append(job))
    monkeypatch.setattr("ronid.cli.fit._show", lambda *_: None)
    fit(str(calls), tmp_path / "run", 3, config=tmp_path / "settings.toml", device="cpu")
    assert jobs[0].config.m_step.epochs == 1
    assert len(read) == 1


def test_input_that_is_a_folder(refused: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    assert "is a folder; name one file in it" in refused("fit", "folder.csv", *FIT)


@pytest.mark.parametrize("option", ["--text", "--label", "--truth", "--id"])
def test_unknown_column_lists_those_there(
    refused: Callable[..., str], calls: Path, option: str
) -> None:
    said = refused("fit", calls, *FIT, option, "utterence")
    assert f"asked for by {option}" in said
    assert "its columns are: 'id', 'utterance', 'intent'; did you mean 'utterance'?" in said


def test_a_column_in_two_roles(refused: Callable[..., str], calls: Path) -> None:
    said = refused("fit", calls, "--out", "run", "--text", "utterance", "--label", "utterance")
    assert said.startswith("column 'utterance' is asked for by both --text and --label; give each")


def test_wrong_encoding_gives_the_line_and_the_option(
    refused: Callable[..., str], tmp_path: Path
) -> None:
    (tmp_path / "latin.csv").write_bytes("text,intent\nhello,\ncafé,\n".encode("latin-1"))
    said = refused("fit", "latin.csv", *FIT)
    assert "latin.csv, line 3, byte 4: 0xe9 is not valid utf-8" in said
    assert "--encoding latin-1" in said


def test_unknown_encoding(refused: Callable[..., str], calls: Path) -> None:
    said = refused("fit", calls, *FIT, "--encoding", "utf-9")
    assert said == "encoding 'utf-9' is unknown; try utf-8, utf-16, latin-1 or cp1252"


def test_binary_file(refused: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "picture.csv").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    assert "is a PNG image, not csv" in refused("fit", "picture.csv", *FIT)
    (tmp_path / "program.csv").write_bytes(b"\x7fELF\0\0\0")
    assert "is a binary file, not csv" in refused("fit", "program.csv", *FIT)


def test_ending_that_is_not_read(refused: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "calls.docx").write_text("hello")
    assert "the ending '.docx' is not read" in refused("fit", "calls.docx", *FIT)


def test_ragged_rows(refused: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "ragged.csv").write_text("text,intent\nhello,a\nwell, then,b\n")
    said = refused("fit", "ragged.csv", *FIT)
    assert "ragged.csv, line 3: expected 2 fields, found 3; quote" in said


def test_unclosed_quote(refused: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "open.csv").write_text('text,intent\nhello,a\n"well,b\nthen,c\n')
    assert "is never closed" in refused("fit", "open.csv", *FIT)


def test_broken_json_line(refused: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "calls.jsonl").write_text('{"text": "a"}\n{"text": \n')
    assert "calls.jsonl, line 2, column" in refused("fit", "calls.jsonl", *FIT)


@pytest.mark.parametrize("content", ["", "text,intent\n"])
def test_no_rows(refused: Callable[..., str], tmp_path: Path, content: str) -> None:
    (tmp_path / "empty.csv").write_text(content)
    assert refused("fit", "empty.csv", *FIT) == "empty.csv has no rows; give at least one utterance"


def test_rows_without_any_text(refused: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "blank.csv").write_text("text,intent\n ,a\n,b\n")
    assert "none of the 2 rows has text in column 'text'" in refused("fit", "blank.csv", *FIT)


def test_no_text_column(refused: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "odd.csv").write_text("alpha,beta\n1,2\n")
    said = refused("fit", "odd.csv", *FIT)
    assert "'alpha', 'beta'" in said
    assert "--text" in said


def test_standard_input_without_rows(refused: Callable[..., str]) -> None:
    assert "standard input has no rows" in refused("fit", "-", *FIT)


def test_fewer_intents_than_known_ones(refused: Callable[..., str], calls: Path) -> None:
    said = refused("fit", calls, "--out", "run", "--intents", "1")
    assert said == (
        "1 intent asked for, but 2 are labelled already (card, refund); ask for at least 2"
    )


@pytest.mark.parametrize("number", ["0", "-3"])
def test_a_number_of_intents_below_one(
    refused: Callable[..., str], calls: Path, number: str
) -> None:
    assert "must be at least 1" in refused("fit", calls, "--out", "run", "--intents", number)


def test_more_intents_than_utterances(refused: Callable[..., str], calls: Path) -> None:
    said = refused("fit", calls, "--out", "run", "--intents", "7")
    assert said == "7 intents asked for, but there are only 6 utterances; ask for fewer"


def test_number_of_intents_that_is_none(refused: Callable[..., str], calls: Path) -> None:
    said = refused("fit", calls, "--out", "run", "--intents", "many")
    assert said == "--intents is 'many'; give a whole number, or auto"


def test_used_output_folder_is_left_alone(
    refused: Callable[..., str], calls: Path, tmp_path: Path
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "letter.txt").write_text("mine")
    said = refused("fit", calls, *FIT)
    assert said == "output folder 'run' is already used; give another --out"


def test_output_that_is_a_file(refused: Callable[..., str], calls: Path, tmp_path: Path) -> None:
    (tmp_path / "run").write_text("mine")
    assert refused("fit", calls, *FIT) == "output 'run' is a file; give a folder with --out"


def test_output_folder_of_an_unfinished_run_says_how_to_go_on(
    refused: Callable[..., str], calls: Path, tmp_path: Path
) -> None:
    unfinished_run(tmp_path / "run")
    said = refused("fit", calls, *FIT)
    assert said.endswith("or finish the run in it: ronid fit --resume run")


def test_output_folder_of_a_finished_run_offers_no_resume(
    refused: Callable[..., str], calls: Path, tmp_path: Path
) -> None:
    finished_run(tmp_path / "run")
    assert "--resume" not in refused("fit", calls, *FIT)


def test_output_folder_of_a_run_killed_before_it_began_says_what_to_do(
    refused: Callable[..., str], calls: Path, tmp_path: Path
) -> None:
    run = unfinished_run(tmp_path / "run")
    (run.path / "run.json").unlink()
    assert "delete it: it holds a run that was stopped before" in refused("fit", calls, *FIT)
    assert "has no run.json" in refused("fit", "--resume", "run")


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        ("[m_step]\nalpah = 0.5\n", "'m_step.alpah'; did you mean 'alpha'?"),
        ("[m_step]\nalpha = 'x'\n", "setting 'm_step.alpha' is 'x' (str), expected float"),
        ("m_step = 1\n", "setting 'm_step' is a section"),
        ("[start]\nprototypes = 'random'\n", "choose one of: 'kmeans', 'semisup_kmeans'"),
        ("preset = 'slow'\n", "no preset 'slow'; choose one of: auto, paper, default, fast"),
        ("[m_step\n", "is not TOML"),
        ("preset = 'paper'\n", "contradicts preset 'paper'"),
    ],
)
def test_bad_settings_file(
    refused: Callable[..., str], calls: Path, tmp_path: Path, toml: str, said: str
) -> None:
    (tmp_path / "settings.toml").write_text(toml)
    preset = ("--preset", "fast") if "contradicts" in said else ()
    assert said in refused("fit", calls, *FIT, "--config", "settings.toml", *preset)


def test_missing_settings_file(refused: Callable[..., str], calls: Path) -> None:
    said = refused("fit", calls, *FIT, "--config", "none.toml")
    assert said == "cannot read config 'none.toml': No such file or directory"


def test_unknown_preset(refused: Callable[..., str], calls: Path) -> None:
    said = refused("fit", calls, *FIT, "--preset", "slow")
    assert said == "no preset 'slow'; choose one of: auto, paper, default, fast"


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--device", "gpu7", "no device 'gpu7'; give cpu, cuda"),
        ("--encoder", "no/such-model", "encoder 'no/such-model' cannot be loaded"),
        ("--encoder", "./missing", "encoder folder './missing' does not exist"),
        ("--encoder", "empty", "has no config.json; give a model folder"),
    ],
)
def test_what_only_the_start_of_the_work_shows_leaves_no_folder(
    refused: Callable[..., str], calls: Path, tmp_path: Path, option: str, value: str, said: str
) -> None:
    (tmp_path / "empty").mkdir()
    assert said in refused("fit", calls, *FIT, "--quiet", option, value)


def test_unknown_option_names_the_near_ones(refused: Callable[..., str], calls: Path) -> None:
    said = refused("fit", calls, *FIT, "--intent", "3")
    assert "No such option: --intent" in said
    assert "--intents" in said


def test_unknown_verb(refused: Callable[..., str]) -> None:
    assert "No such command 'fti'" in refused("fti")


def test_fit_without_input_or_output(refused: Callable[..., str], calls: Path) -> None:
    said = "say what to read and where to write: ronid fit INPUT --out RUN"
    assert refused("fit", "--out", "run", "--intents", "3") == said
    assert refused("fit", calls, "--intents", "3") == said


def test_predict_without_input(refused: Callable[..., str], tmp_path: Path) -> None:
    finished_run(tmp_path / "run")
    assert refused("predict", "run") == 'give INPUT or --text "...", one of the two'
    assert refused("predict", "run", "calls.csv", "--text", "hello").startswith("give INPUT or")


@pytest.mark.parametrize(
    ("out", "said"),
    [
        ("answers.doc", "must end in .csv, .jsonl, .parquet"),
        ("none/answers.csv", "folder 'none' for --out does not exist"),
    ],
)
def test_predict_to_where_nothing_can_be_written(
    refused: Callable[..., str], tmp_path: Path, out: str, said: str
) -> None:
    finished_run(tmp_path / "run")
    assert said in refused("predict", "run", "--text", "hello", "--out", out)


def test_report_to_a_folder_that_is_not_there(refused: Callable[..., str], tmp_path: Path) -> None:
    finished_run(tmp_path / "run")
    assert "'none' for --out does not exist" in refused("report", "run", "--out", "none/r.html")


VERBS = {"predict": ("--text", "hello"), "evaluate": ("calls.csv",), "report": ()}


@pytest.mark.parametrize("verb", VERBS)
def test_run_folder_that_is_none(
    refused: Callable[..., str], calls: Path, tmp_path: Path, verb: str
) -> None:
    assert "'run' is not a run: it does not exist" in refused(verb, "run", *VERBS[verb])
    (tmp_path / "run").mkdir()
    assert "'run' is not a run: it has no run.json" in refused(verb, "run", *VERBS[verb])


@pytest.mark.parametrize("half_written", [False, True])
@pytest.mark.parametrize("verb", VERBS)
def test_unfinished_run_says_how_to_finish_it(
    refused: Callable[..., str], calls: Path, tmp_path: Path, verb: str, half_written: bool
) -> None:
    run = unfinished_run(tmp_path / "run")
    if half_written:  # killed while it wrote its results
        (run.path / "assignments.parquet").write_bytes(b"PAR1")
        (run.path / "model.json").write_text("{")
    said = refused(verb, "run", *VERBS[verb])
    assert said == "run 'run' is not finished; finish it with: ronid fit --resume run"


def test_resume_of_a_finished_run(refused: Callable[..., str], tmp_path: Path) -> None:
    finished_run(tmp_path / "run")
    said = refused("fit", "--resume", "run")
    assert said == "run 'run' is finished already; its report is run/report.html"


def test_resume_takes_no_input(refused: Callable[..., str], calls: Path, tmp_path: Path) -> None:
    unfinished_run(tmp_path / "run")
    assert "leave out INPUT and every option but --json and --quiet" in refused(
        "fit", calls, "--resume", "run"
    )
    assert "leave out INPUT and every option but --json and --quiet" in refused(
        "fit", "--resume", "run", "--out", "other"
    )


def test_damaged_and_newer_runs(refused: Callable[..., str], tmp_path: Path) -> None:
    run = unfinished_run(tmp_path / "run")
    (run.path / "run.json").write_text("{")
    assert "'run/run.json' is damaged" in refused("fit", "--resume", "run")
    (run.path / "run.json").write_text(json.dumps({"format_version": 99}))
    assert "was written by a newer ronid" in refused("report", "run")


def test_evaluate_without_labels(refused: Callable[..., str], calls: Path, tmp_path: Path) -> None:
    finished_run(tmp_path / "run")
    said = refused("evaluate", "run", calls, "--label", "")
    assert "has no labels to compare with; name their column by --label" in said


def test_predict_names_its_own_option_for_the_column(
    refused: Callable[..., str], tmp_path: Path
) -> None:
    finished_run(tmp_path / "run")
    (tmp_path / "odd.csv").write_text("alpha,beta\n1,2\n")
    said = refused("predict", "run", "odd.csv")
    assert "--column" in said
    assert "--text" not in said


def test_data_verbs_are_reached_through_the_command(refused: Callable[..., str]) -> None:
    assert "no benchmark 'bankin'" in refused("data", "check", "bankin")


def test_failed_check_has_exit_code_one(ronid: Command, tmp_path: Path) -> None:
    done = ronid("data", "check", "--json", RONID_DATA=str(tmp_path), RONID_CACHE=str(tmp_path))
    assert done.returncode == 1
    assert json.loads(done.stdout)["clinc"]["train"]["status"] == "missing"


def test_bad_checkpoint_cadence(refused: Callable[..., str], calls: Path) -> None:
    said = refused("fit", calls, *FIT, "--quiet", RONID_CHECKPOINT_S="often")
    assert said == "RONID_CHECKPOINT_S is 'often'; give a number of seconds"


@pytest.mark.skipif(sys.platform == "win32", reason="what the machine says is POSIX")
def test_a_run_in_a_place_that_cannot_be_written(refused: Callable[..., str], calls: Path) -> None:
    said = refused("fit", calls, "--out", "calls.csv/run", "--intents", "3", "--quiet")
    assert said == "cannot write to 'calls.csv/run' (Not a directory); give another --out"


def test_what_the_machine_refuses_is_one_line_and_exit_code_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(**_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "run/model.json")

    monkeypatch.setattr("ronid.cli.app.app", full)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # put back after the test
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 1
    said = capsys.readouterr().err
    assert said == "ronid: 'run/model.json' cannot be read or written: No space left on device\n"


def test_nothing_asked_shows_the_help_alone(ronid: Command) -> None:
    done = ronid()
    assert done.returncode == 2
    assert "Usage: ronid" in done.stdout + done.stderr
    assert "ronid: " not in done.stderr


def test_version_is_quick(ronid: Command) -> None:
    from ronid.version import __version__

    done = ronid("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"ronid {__version__}\n", "")
