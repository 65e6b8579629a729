"""What newcomers ran into: nothing is overwritten, dropped or invented without a word."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ronid.cli.fit import _asked, fit
from ronid.errors import DataError, UsageError
from ronid.estimator import RoNID
from ronid.files import read_json, without_nan, write_json
from ronid.presets import AUTO, PRESETS, WITHOUT_GPU
from ronid.run import Job
from tests.helpers.toy_corpus import TinyEncoder, Toy

Command = Callable[..., subprocess.CompletedProcess[str]]


def test_json_files_hold_null_where_there_is_no_number(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"format_version": 1, "x": [math.nan, 1.5, (math.inf,)]})
    assert read_json(tmp_path / "a.json")["x"] == [None, 1.5, [None]]
    assert json.dumps(without_nan({"a": {"b": math.nan}}), allow_nan=False)


def test_missing_folder_is_called_missing(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        RoNID.load(tmp_path / "nope")


@pytest.mark.parametrize("count", ["20", 20.0])
def test_number_of_intents_must_be_a_whole_number(count: object) -> None:
    with pytest.raises(UsageError, match="whole number"):
        RoNID(n_intents=count, preset="fast").fit(["one", "two", "three"])  # type: ignore[arg-type]


@pytest.fixture
def calls(tmp_path: Path, few_utterances: Toy) -> Path:
    """A file of utterances, some labelled."""
    path = tmp_path / "calls.csv"
    rows = zip(few_utterances.texts, few_utterances.labels(), strict=True)
    path.write_text("text,intent\n" + "".join(f"{text},{name or ''}\n" for text, name in rows))
    return path


def said(stderr: str) -> str:
    """Return what was said on one line, however the terminal broke it."""
    return " ".join(stderr.split())


def test_fit_without_a_gpu_says_which_preset_it_takes(
    ronid: Command, calls: Path, tiny: TinyEncoder, tmp_path: Path
) -> None:
    (tmp_path / "quick.toml").write_text("[contrast]\nepochs = 1\n[m_step]\nepochs = 1\n")
    done = ronid(
        "fit", calls, "--out", "run", "--intents", "6", "--device", "cpu",
        "--encoder", tiny("bert"), "--config", "quick.toml",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert said(done.stderr).count(WITHOUT_GPU) == 1
    assert WITHOUT_GPU not in said(done.stdout)
    assert 'preset = "fast"' in (tmp_path / "run" / "config.toml").read_text()


def test_fit_with_a_gpu_takes_the_default_preset_without_a_word(
    calls: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "quick.toml").write_text("[m_step]\nepochs = 1\n")
    jobs: list[Job] = []
    monkeypatch.setattr("ronid.cli.fit._on_gpu", lambda _: True)
    monkeypatch.setattr("ronid.cli.fit.start", lambda _out, job, *_: jobs.append(job))
    monkeypatch.setattr("ronid.cli.fit._show", lambda *_: None)
    for preset in (None, "auto", "paper"):
        fit(str(calls), tmp_path / "run", 6, preset=preset, config=tmp_path / "quick.toml")
    assert [job.config.preset for job in jobs] == ["default", "default", "paper"]
    assert {job.config.m_step.epochs for job in jobs} == {1}
    assert jobs[0].config.encoder == PRESETS["default"].encoder
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("preset", "settings", "automatic"),
    [
        (None, None, True),
        ("auto", None, True),
        ("auto", "", True),
        ("fast", "", False),
        ("paper", "", False),
        (None, 'preset = "auto"\n', True),
        (None, 'preset = "paper"\n', False),
        (None, 'preset = "fast"\n', False),  # the file chose it, not the lack of a GPU
    ],
)
def test_only_an_automatic_choice_is_told(
    tmp_path: Path, preset: str | None, settings: str | None, automatic: bool
) -> None:
    file = None
    if settings is not None:
        file = tmp_path / "settings.toml"
        file.write_text(settings)
    assert (_asked(None, preset, file).preset == AUTO) == automatic


def test_threads_that_wait_leave_the_core_to_others(tmp_path: Path) -> None:
    code = (
        "import os, sys\nfrom ronid.cli import main\nsys.argv = ['ronid', '--version']\n"
        "try:\n    main()\nfinally:\n    print(os.environ['OMP_WAIT_POLICY'])"
    )
    for given, expected in ((None, "PASSIVE"), ("ACTIVE", "ACTIVE")):
        environment = {k: v for k, v in os.environ.items() if k != "OMP_WAIT_POLICY"}
        if given:
            environment["OMP_WAIT_POLICY"] = given
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment, cwd=tmp_path, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stdout.split()[-1] == expected
