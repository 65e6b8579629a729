import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ronid.cli.data import app
from ronid.data import benchmarks
from ronid.data.benchmark_entries import BENCHMARKS, PARTS, Benchmark
from ronid.errors import DataError, UsageError

TRAIN = "text\tlabel\n" + "".join(f"utterance {i}\tintent {i % 4}\n" for i in range(80))


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small benchmark, the only one there is, under RONID_DATA."""
    digest = hashlib.sha256(TRAIN.encode()).hexdigest()
    entry = Benchmark(
        "Toy", 4, dict.fromkeys(PARTS, 80), dict.fromkeys(PARTS, digest), "none", "here", "x", 9
    )
    monkeypatch.setattr(benchmarks, "BENCHMARKS", {"toy": entry})
    monkeypatch.setenv("RONID_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("RONID_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "data" / "toy"
    folder.mkdir(parents=True)
    for part in PARTS:
        (folder / f"{part}.tsv").write_text(TRAIN)
    return folder


def run(*arguments: str, input: str | None = None) -> str:
    """Run a command that must succeed; errors come out as they were raised."""
    result = CliRunner().invoke(app, arguments, input=input, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_list_shows_all_benchmarks() -> None:
    assert set(json.loads(run("list", "--json"))) == set(BENCHMARKS)
    table = run("list")
    assert all(name in table for name in BENCHMARKS)


def test_check_says_what_is_right_and_fails_on_what_is_not(toy: Path) -> None:
    assert json.loads(run("check", "toy", "--json"))["toy"]["dev"]["status"] == "ok"
    assert run("check").count("ok") == 3
    (toy / "dev.tsv").write_text("changed")
    result = CliRunner().invoke(app, ["check"])
    assert result.exit_code == 1
    assert "wrong" in result.output


def test_fetch_takes_one_or_all(toy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmarks, "fetch", lambda name: toy / name)
    assert run("fetch", "all") == f"toy: {toy / 'toy'}\n"
    assert json.loads(run("fetch", "toy", "--json")) == {"toy": str(toy / "toy")}


def test_split_writes_a_cell_and_three_tables(toy: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    said = run("split", "toy", "--known", "0.5", "--labelled", "0.25", "--out", str(out))
    assert "2 known intents, 10 labelled utterances" in said
    assert sorted(path.name for path in out.iterdir()) == [
        "cell.json",
        "dev.csv",
        "test.csv",
        "train.csv",
    ]
    again = json.loads(run("split", "toy", "--known", "0.5", "--out", str(out), "--json"))
    assert again["hash"] == json.loads((out / "cell.json").read_text())["hash"]
    assert (again["known"], again["labelled"]) == (2, 4)


def test_split_of_an_unknown_benchmark_is_a_usage_error(toy: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no benchmark 'tooy'.*did you mean 'toy'"):
        run("split", "tooy", "--out", str(tmp_path))


@pytest.mark.filterwarnings("error")
def test_report_says_what_was_found(tmp_path: Path) -> None:
    path = tmp_path / "calls.csv"
    path.write_text("q;intent\nhello;greet\nhello;\n;greet\n")
    said = run("report", str(path), "--text", "q")
    assert said.startswith("2 utterances from 3 rows\n1 row without text left out\n1 labelled")
    found = json.loads(run("report", str(path), "--text", "q", "--label", "", "--json"))
    assert (found["rows_kept"], found["duplicates"], found["labelled"]) == (2, 1, 0)


def test_report_says_which_labels_differ_in_case_only(tmp_path: Path) -> None:
    path = tmp_path / "calls.csv"
    path.write_text("text,intent\na,alarm\nb,alarm\nc,ALARM\nd,pay\n")
    said = [line for line in run("report", str(path)).splitlines() if "case" in line]
    assert said == [
        "labels that differ in case only make intents of their own: 'ALARM' (1) beside "
        "'alarm' (2); if they are one, write them alike"
    ]
    found = json.loads(run("report", str(path), "--json"))
    assert found["differing_in_case"] == [["alarm", "ALARM"]]
    assert "case" not in run("report", str(path), "--label", "")


def test_report_reads_standard_input() -> None:
    assert run("report", "-", "--format", "txt", input="a\nb\n").startswith("2 utterances\n")


def test_report_raises_what_the_reader_raises(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        run("report", str(tmp_path / "nothing.csv"))


def test_import_brings_no_numpy() -> None:
    code = "import sys, ronid.cli.data; print(*({'numpy', 'pyarrow', 'torch'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
