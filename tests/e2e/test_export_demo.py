"""Exports of the demo, by the real command: every target, and back again."""

import json
from collections import Counter
from pathlib import Path

import pytest

from ronid.data.demo import demo_corpus
from ronid.export.audit import checksums
from ronid.export.formats import FORMATS, load_format
from tests.helpers.cli_corpus import ok, ronid

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of the demo; tests only read it."""
    out = tmp_path_factory.mktemp("demo") / "demo-run"
    ok("demo", "--out", out, "--quiet")
    return out


@pytest.mark.parametrize("to", FORMATS)
def test_demo_leaves_in_every_format(demo: Path, tmp_path: Path, to: str) -> None:
    out = tmp_path / "out"
    answer = json.loads(ok("export", demo, "--to", to, "--all", "--out", out, "--json", "--quiet"))
    assert answer["intents"] == 24
    pairs = load_format(to).read(out)
    assert len(pairs) == answer["utterances"]
    said = set(demo_corpus().texts)
    assert {text for text, _ in pairs} <= said
    left_out = sum(answer["left_out"].values())
    assert answer["utterances"] + left_out == len(demo_corpus().texts)
    ok("export", demo, "--to", to, "--all", "--out", tmp_path / "again", "--quiet")
    assert checksums(out) == checksums(tmp_path / "again")


def test_only_labelled_intents_leave_before_a_review(demo: Path, tmp_path: Path) -> None:
    done = ronid("export", demo, "--to", "jsonl", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "8 new intents not accepted yet and left out" in done.stderr
    rows = [
        json.loads(line)
        for line in (tmp_path / "export-jsonl" / "utterances.jsonl").read_text("utf-8").split("\n")
        if line
    ]
    labels = dict(zip(demo_corpus().texts, demo_corpus().labels, strict=True))
    given = Counter(row["intent"] for row in rows if row["by"] == "given")
    assert given == Counter(label for label in demo_corpus().labels if label)
    assert all(labels[row["text"]] == row["intent"] for row in rows if row["by"] == "given")
    assert {row["status"] for row in rows} == {"accepted"}


def test_exported_table_is_a_file_to_fit(demo: Path, tmp_path: Path) -> None:
    ok("export", demo, "--to", "csv", "--all", "--quiet", cwd=tmp_path)
    said = ok("data", "report", "export-csv/utterances.csv", cwd=tmp_path)
    assert "1,620 utterances" in said
    assert "24 intents" in said
