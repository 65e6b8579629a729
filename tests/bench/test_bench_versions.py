"""Rows of an earlier answer stay loadable, and nothing takes them for current ones."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ronid.bench.compare import compare, read_selector, select
from ronid.bench.plan import make_plan
from ronid.bench.rows import append_row, latest, read_rows
from ronid.bench.runner import todo
from ronid.bench.table import make_table
from ronid.cli.app import app
from ronid.errors import UsageError
from tests.helpers.benchmark_rows import made_row
from tests.helpers.benchmark_script import load_benchmark

BEFORE = made_row(80.0, 0, version="before")
NOW = made_row(90.0, 0, version="")


def test_rows_of_one_version_only_are_latest() -> None:
    assert latest([NOW, BEFORE]) == [NOW]
    assert latest([made_row(70.0), NOW, BEFORE]) == [NOW]  # a row without the field is current
    assert latest([NOW, BEFORE], "before") == [BEFORE]


def test_table_leaves_earlier_rows_out_unless_asked() -> None:
    (line,) = make_table([BEFORE, NOW], beside="none").lines
    assert str(line.figures["clinc", "acc"]) == "90.00"
    table = make_table([BEFORE, NOW], beside="none", version="before")
    assert str(table.lines[0].figures["clinc", "acc"]) == "80.00"
    assert "version: before" in table.caption
    with pytest.raises(UsageError, match="there are no rows to show"):
        make_table([BEFORE])


def test_caption_does_not_mention_the_usual_split() -> None:
    assert "split" not in make_table([NOW], beside="none").caption
    own = make_row_of_own_split()
    assert "split: own" in make_table([own], beside="none").caption


def make_row_of_own_split() -> dict[str, object]:
    return made_row(90.0, 0, dataset="bolt-trec", split="own")


def test_command_shows_a_version(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    for row in (BEFORE, NOW):
        append_row(path, row)
    shown = CliRunner().invoke(app, ["bench", "table", str(path), "--published", "none"])
    assert ("90.00" in shown.stdout, "80.00" in shown.stdout) == (True, False)
    command = ["bench", "table", str(path), "--published", "none", "--version", "before"]
    shown = CliRunner().invoke(app, command)
    assert ("90.00" in shown.stdout, "80.00" in shown.stdout) == (False, True)


@pytest.mark.filterwarnings("ignore:clinc. 1 seed only")
def test_before_and_now_are_paired_by_split_and_seed() -> None:
    rows = [BEFORE, NOW]
    ours, theirs = (select(rows, read_selector(text)) for text in ("preset=fast", "version=before"))
    (found,) = compare(ours, theirs)
    assert (found.n, found.mean) == (1, pytest.approx(10))


def test_job_with_an_earlier_row_only_is_pending_and_the_earlier_row_never(
    toy: Path, encoder: str, tmp_path: Path
) -> None:
    plan = make_plan(
        {"datasets": ["toy"], "presets": ["fast"], "seeds": [0], "encoders": ["tiny"]},
        {"tiny": encoder},
    )
    (job,) = plan.cells
    out = tmp_path / "rows.jsonl"
    row = {name: getattr(job, name) for name in job.__dataclass_fields__}
    row |= {"config_hash": plan.config_hash(job), "scores": {}}
    append_row(out, row | {"version": "before"})
    found = todo(plan, out)
    assert (found.pending, found.done, found.stale) == ((job,), (), ())
    append_row(out, row)
    assert todo(plan, out).stale == (job,)  # its split is not stored with it
    assert all(cell.version == "" for cell in found.pending)


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """Rows of several methods and presets, as the earlier code wrote them; one row of today."""
    path = tmp_path / "rows.jsonl"
    for row in (
        made_row(80.0, 0),
        made_row(81.0, 0, preset="default", note="größer"),
        made_row(82.0, 0, preset="paper"),
        made_row(83.0, 0, method="kmeans", preset="published"),
        made_row(84.0, 1, version=""),
        {"dataset": "clinc", "preset": "fast", "acc": 90.5},  # of a script beside the harness
        {"dataset": "clinc", "acc": 90.5},
    ):
        append_row(path, row)
    return path


def test_marking_changes_rows_of_the_two_presets_once(stored: Path) -> None:
    script = load_benchmark("mark_before")
    old = stored.read_text(encoding="utf-8").splitlines()
    assert script.mark(stored) == 3
    new = stored.read_text(encoding="utf-8").splitlines()
    versions = [json.loads(line).get("version") for line in new]
    assert versions == ["before", "before", None, None, "", "before", None]
    for number, version in enumerate(versions):
        if version == "before":
            assert json.loads(new[number]) == json.loads(old[number]) | {"version": "before"}
        else:
            assert new[number] == old[number]
    assert script.mark(stored) == 0
    assert stored.read_text(encoding="utf-8").splitlines() == new
    assert [path.name for path in stored.parent.iterdir()] == ["rows.jsonl"]
    assert len(read_rows(stored)) == 7


def test_pages_leave_marked_rows_out_unless_asked(
    stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = load_benchmark("table_rows")
    monkeypatch.setattr(tables, "RESULTS", stored.parent)
    load_benchmark("mark_before").mark(stored)
    assert [len(rows("rows")) for rows in (tables.harness_rows, tables.stored_rows)] == [4, 4]
    assert len(tables.harness_rows("rows", version="before")) == 3
    assert len(tables.read_rows("rows.jsonl", "before")) == 3
