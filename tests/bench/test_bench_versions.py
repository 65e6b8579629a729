"""Rows of an earlier answer stay loadable, and nothing takes them for current ones."""

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

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


def test_seeds_of_one_setting_are_all_current_or_all_earlier() -> None:
    other_seed, other_setting, other_dataset = (
        made_row(80.0, 1, version="before"),
        made_row(80.0, 0, version="before", variant="-OT"),
        made_row(80.0, 0, version="before", dataset="banking"),
    )
    earlier = [BEFORE, other_seed, other_setting, other_dataset]
    assert latest(earlier, None) == earlier
    assert latest([*earlier, NOW], None) == [other_setting, other_dataset, NOW]


def test_table_leaves_earlier_rows_out_unless_asked() -> None:
    (line,) = make_table([BEFORE, NOW], beside="none").lines
    assert str(line.figures["clinc", "acc"]) == "90.00"
    table = make_table([BEFORE, NOW], beside="none", version="before")
    assert str(table.lines[0].figures["clinc", "acc"]) == "80.00"
    assert "version: before" in table.caption
    with pytest.raises(UsageError, match="all rows have version 'before'.* pass --version before"):
        make_table([BEFORE])
    for version in ("", "before"):
        with pytest.raises(UsageError, match="there are no rows to show"):
            make_table([], version=version)


def test_comparison_without_current_rows_names_the_selector() -> None:
    with pytest.raises(UsageError, match="fits 'preset=fast'; rows .* do; add version=before"):
        select([BEFORE], read_selector("preset=fast"))
    with pytest.raises(UsageError, match="see the rows with"):
        select([BEFORE], read_selector("preset=paper"))


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


@pytest.fixture
def pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., ModuleType]:
    """Return a function that loads a script of tables and lets it read some rows."""

    def load(script: str, **files: list[dict[str, Any]]) -> ModuleType:
        for name, rows in files.items():
            for row in rows:
                append_row(tmp_path / "results" / f"{name}.jsonl", row)
        module = load_benchmark(script)
        monkeypatch.setitem(module.harness_rows.__globals__, "RESULTS", tmp_path / "results")
        return module

    return load


def test_pages_use_earlier_rows_of_settings_without_current_ones(
    pages: Callable[..., ModuleType],
) -> None:
    default = made_row(81.0, 0, version="before", preset="default")
    tables = pages("table_rows", rows=[BEFORE, default, NOW])
    assert tables.harness_rows("rows", "missing") == [default, NOW]
    assert tables.harness_rows("rows", version="before") == [BEFORE, default]


def test_pages_use_earlier_rows_of_a_script_only_if_all_are(
    pages: Callable[..., ModuleType],
) -> None:
    old = {"dataset": "clinc", "seed": 0, "version": "before"}
    now = {"dataset": "clinc", "seed": 1, "version": ""}
    tables = pages("table_rows", old=[old], both=[old, now], plain=[{"dataset": "clinc"}])
    assert tables.read_rows("old.jsonl") == [old]
    assert tables.read_rows("both.jsonl") == [now]
    assert tables.read_rows("plain.jsonl") == [{"dataset": "clinc"}]


def test_table_with_earlier_rows_says_so_below() -> None:
    tables = load_benchmark("table_rows")
    default = made_row(81.0, 0, version="before", preset="default")
    paper = made_row(82.0, 0, preset="paper")
    tail = (
        "were measured with the code of commit 8ba84b5 or earlier, before the initialization of "
        "RoNID changed."
    )
    for rows, sentence in (
        ([NOW, paper], ""),
        ([BEFORE | {"skip": "no weights"}], ""),
        ([default, NOW, paper], f"\n\nThe rows of preset `default` {tail}"),
        ([BEFORE, default], f"\n\nThe rows of presets `default` and `fast` {tail}"),
        ([BEFORE, NOW], f"\n\nSome rows of preset `fast` {tail}"),
    ):
        assert tables.with_note("| a |", rows) == f"| a |{sentence}"
    shown = tables.setting_table([BEFORE, made_row(90.0, 0, dataset="banking")], beside="none")
    assert "| version |" not in shown
    (line,) = [line for line in shown.splitlines() if line.startswith("| RoNID")]
    assert ("90.00" in line, "80.00" in line) == (True, True)
    assert shown.endswith(f"Some rows of preset `fast` {tail}")


def test_differences_on_pages_are_between_rows_of_one_version(
    pages: Callable[..., ModuleType],
) -> None:
    default = {"preset": "default"}
    whole, without, current = (
        made_row(90.0, **default, version="before"),
        made_row(88.0, **default, version="before", variant="-MLM"),
        made_row(95.0, **default, version=""),
    )
    tables = pages("benchmark_tables", **{"additions-dev": [whole, without, current]})
    assert "| `-MLM` | 88.00 | 1 | 2.00 |" in tables.additions_dev_table()
    found = made_row(93.0, **default, version="", variant="-MLM")
    tables = pages("benchmark_tables", **{"additions-dev": [found]})
    assert "| `-MLM` | 93.00 | 1 | 2.00 |" in tables.additions_dev_table()
    assert "commit" not in tables.additions_dev_table()
