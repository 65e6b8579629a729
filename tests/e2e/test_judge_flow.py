"""`ronid evaluate RUN` without a file of true intents, through the real command."""

import json
import shutil
from pathlib import Path

import pytest

from tests.helpers import cli_corpus
from tests.helpers.cli_corpus import ok, ronid

PARTS = {
    "resampling",
    "seeds",
    "silhouette",
    "sure",
    "far",
    "given",
    "hidden",
    "single",
    "distinct",
}


@pytest.fixture
def run(fitted: Path, tmp_path: Path) -> Path:
    """A copy of a fitted run: a judgement is written into it."""
    return shutil.copytree(fitted, tmp_path / "run")


def test_evaluate_without_input_prints_and_keeps_a_judgement(run: Path) -> None:
    before = {path.name for path in run.iterdir()}
    done = ronid("evaluate", run)
    assert done.returncode == 0, done.stderr
    assert "score" in done.stdout
    assert "agreement with clusters found from other starts" in done.stdout
    assert "all of it is in" in done.stderr
    assert {path.name for path in run.iterdir()} == before | {"judgement.json"}


def test_json_is_what_is_kept_and_the_same_each_time(run: Path) -> None:
    told = json.loads(ok("evaluate", run, "--json", "--quiet"), parse_constant=pytest.fail)
    kept = json.loads((run / "judgement.json").read_text())
    assert kept.pop("format_version") == 1
    assert told.pop("run") == str(run)
    assert told == kept
    assert set(told["parts"]) == PARTS
    assert 0 <= told["score"] <= 100
    assert told["rows"] == told["judged"] == len(cli_corpus.rows())
    assert len(told["intents"]) == cli_corpus.N_INTENTS
    assert sum(intent["size"] for intent in told["intents"]) == told["rows"]
    assert told["refit"] is None
    again = json.loads(ok("evaluate", run, "--json", "--quiet"))
    assert again["score"] == told["score"]


def test_a_second_fit_is_compared_on_request(run: Path) -> None:
    told = json.loads(ok("evaluate", run, "--refit-seed", "7", "--json", "--quiet"))
    assert -1 <= told["refit"] <= 1


def test_a_folder_that_cannot_be_written_still_gets_its_answer(run: Path) -> None:
    (run / "judgement.json.partial").mkdir()  # even root cannot write there
    done = ronid("evaluate", run)
    assert done.returncode == 0
    assert "cannot be written" in done.stderr
    assert not (run / "judgement.json").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--label", "truth"), "--text, --label and --format tell how to read INPUT; give it too"),
        (("calls.csv", "--refit-seed", "3"), "leave out INPUT"),
        (("--refit-seed", "0"), "is the seed of the run; give another"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    fitted: Path, arguments: tuple[str, ...], said: str
) -> None:
    done = ronid("evaluate", fitted, *arguments, "--quiet")
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
