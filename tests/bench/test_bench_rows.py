import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronid.bench.rows import append_row, latest, read_rows, repair, thinned
from ronid.errors import DataError, RonidWarning
from tests.helpers.benchmark_rows import made_row


def test_rows_come_back_as_they_were_with_null_for_nan(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "rows.jsonl"
    append_row(path, made_row(90, 0))
    append_row(path, {**made_row(91, 1), "x": float("nan"), "word": "ü"})
    first, second = read_rows(path)
    assert first == made_row(90, 0)
    assert second["x"] is None
    assert second["word"] == "ü"


@pytest.mark.parametrize("cut", [1, 10, 200])
def test_cut_last_line_is_dropped_and_written_over(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "rows.jsonl"
    append_row(path, made_row(90, 0))
    whole = path.read_bytes()
    path.write_bytes(whole + json.dumps(made_row(91, 1)).encode()[:cut])
    with pytest.warns(RonidWarning, match="last line of 'rows.jsonl' was cut short"):
        assert read_rows(path) == [made_row(90, 0)]
    with pytest.warns(RonidWarning, match="cut short"):
        append_row(path, made_row(92, 2))
    assert path.read_bytes().startswith(whole)
    assert [row["seed"] for row in read_rows(path)] == [0, 2]


def test_last_line_that_lacks_its_end_only_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(made_row(90, 0)))
    repair(path)
    append_row(path, made_row(91, 1))
    assert [row["seed"] for row in read_rows(path)] == [0, 1]


def test_damaged_line_in_the_middle_is_refused_with_its_number(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(made_row(90)) + "\n{broken\n" + json.dumps(made_row(90)) + "\n")
    with pytest.raises(DataError, match="line 2 is no row of results"):
        read_rows(path)


def test_missing_file_and_newer_format_are_one_line(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    with pytest.raises(DataError, match="does not exist; make it with: ronid bench run"):
        read_rows(path)
    append_row(path, {**made_row(90), "format_version": 2})
    with pytest.raises(DataError, match="line 1 was written by a newer ronid"):
        read_rows(path)


def test_the_last_row_of_a_cell_counts() -> None:
    rows = [made_row(90, 0), made_row(80, 1), made_row(95, 0, config_hash="c1")]
    assert [row["scores"]["argmax"]["acc"] for row in latest(rows)] == [95, 80]


def test_two_processes_that_append_at_once_lose_nothing(tmp_path: Path) -> None:
    path, count = tmp_path / "rows.jsonl", 150
    code = (
        "import sys; from pathlib import Path; from ronid.bench.rows import append_row\n"
        "for i in range(int(sys.argv[3])):\n"
        "    row = {'dataset': 'd', 'worker': sys.argv[2], 'i': i, 'fill': 'x' * (i * 97 % 9000)}\n"
        "    append_row(Path(sys.argv[1]), row)\n"
    )
    command = [sys.executable, "-c", code, str(path)]
    workers = [subprocess.Popen([*command, name, str(count)]) for name in "ab"]
    assert [worker.wait(timeout=60) for worker in workers] == [0, 0]
    rows = read_rows(path)
    for name in "ab":
        assert [row["i"] for row in rows if row["worker"] == name] == list(range(count))
    assert len(rows) == 2 * count


def epochs(stage: str, count: int) -> list[dict[str, object]]:
    return [{"stage": stage, "epoch": number} for number in range(1, count + 1)]


def test_a_long_stage_keeps_its_first_its_last_and_what_lies_evenly_between() -> None:
    kept = thinned([*epochs("reconstruct", 9), *epochs("em", 3)], most=5)
    assert [e["epoch"] for e in kept if e["stage"] == "reconstruct"] == [1, 3, 5, 7, 9]
    assert kept[5:] == epochs("em", 3)


@given(st.lists(st.integers(0, 40), max_size=4), st.integers(2, 10))
def test_thinned_history_holds_both_ends_of_every_stage_in_order(
    lengths: list[int], most: int
) -> None:
    history = [e for number, length in enumerate(lengths) for e in epochs(f"s{number}", length)]
    kept = thinned(history, most)
    assert kept == [epoch for epoch in history if epoch in kept]
    for number, length in enumerate(lengths):
        own = [epoch["epoch"] for epoch in kept if epoch["stage"] == f"s{number}"]
        assert len(own) == min(length, most)
        assert not own or (own[0], own[-1]) == (1, length)
