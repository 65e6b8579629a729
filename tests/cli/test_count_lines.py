"""What `ronid fit` says about the number of intents."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from ronid.cli.fit import _show
from ronid.cli.tables import count_lines, idle_lines, run_summary
from ronid.intents_file import write_intents
from ronid.run import RunFolder
from tests.helpers.finished_run import make_run

FOUND = {"stage": "count", "k": 13, "low": 11, "high": 15}
ONE = {"stage": "count", "k": 1, "low": 1, "high": 1}


def said(asked: int | None, found: dict[str, Any] | None, made: int, empty: int = 0) -> list[str]:
    intents = [SimpleNamespace(size=int(i >= empty)) for i in range(made)]
    run = SimpleNamespace(
        count=lambda: found, facts=lambda: {"n_intents": asked}, intents=lambda: intents
    )
    return count_lines(run)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("asked", "found", "made", "expected"),
    [
        pytest.param(7, None, 7, "7 intents, as told by --exactly", id="given"),
        pytest.param(None, None, 7, "", id="not told how"),
        pytest.param(
            None, FOUND, 13, "13 intents, found from the data (11 to 15 possible)", id="auto"
        ),
        pytest.param(None, FOUND, 12, "12 intents, found from the data", id="one was empty"),
        pytest.param(None, FOUND, 20, "13 intents, found from the data", id="updated since"),
        pytest.param(
            30, FOUND, 13, "30 intents asked for, but the data show 11 to 15: 13", id="many"
        ),
        pytest.param(
            7, FOUND | {"k": 7}, 7, "7 intents, as asked for, but the data show 11", id="few"
        ),
        pytest.param(
            12, FOUND | {"k": 12}, 12, "12 intents, as asked for (11 to 15 possible", id="believed"
        ),
        pytest.param(
            7, {"stage": "count", "k": 7}, 7, "7 intents, as asked for", id="without bounds"
        ),
        pytest.param(None, ONE, 1, "1 intent, found from the data (1 possible)", id="one"),
        pytest.param(
            9, ONE, 1, "9 intents asked for, but the data show 1: 1 was made", id="one made"
        ),
        pytest.param(
            14,
            FOUND | {"k": 14},
            6,
            "14 intents asked for, of which 8 got no utterance",
            id="empty",
        ),
        pytest.param(
            1, FOUND | {"k": 1}, 1, "1 intent, as asked for, but the data show 11", id="one asked"
        ),
    ],
)
def test_count_is_told(asked: int, found: dict[str, Any] | None, made: int, expected: str) -> None:
    lines = said(asked, found, made)
    assert len(lines) == bool(expected)
    assert all(line.startswith(expected) for line in lines)


@pytest.mark.parametrize(
    ("empty", "expected"),
    [
        (0, ""),
        (1, ", and 1 has no utterance: ask for fewer, or leave out --exactly"),
        (3, ", and 3 have no utterance: ask for fewer, or leave out --exactly"),
    ],
)
def test_a_number_that_is_certain_is_told_with_the_intents_that_stayed_empty(
    empty: int, expected: str
) -> None:
    told = "40 intents, as told by --exactly; the data were not asked"
    assert said(40, None, 40, empty) == [told + expected]


EVIDENCE = FOUND | {"estimate": 13}


def counted(path: Path, asked: int | None, found: dict[str, Any] | None) -> RunFolder:
    """A run of four intents that was asked for some number."""
    run = make_run(path)
    run.write_facts(run.facts() | {"n_intents": asked})
    if found is not None:
        (run.path / "history.jsonl").write_text(json.dumps(found) + "\n")
    return run


@pytest.mark.parametrize(
    ("asked", "found", "expected"),
    [
        pytest.param(4, None, (4, None, None, None, 4, True), id="exactly"),
        pytest.param(None, EVIDENCE | {"k": 4}, (None, 13, 11, 15, 4, None), id="auto"),
        pytest.param(28, EVIDENCE | {"k": 4}, (28, 13, 11, 15, 4, False), id="refused"),
        pytest.param(4, EVIDENCE | {"k": 4}, (4, 13, 11, 15, 4, True), id="believed"),
        pytest.param(5, EVIDENCE | {"k": 5}, (5, 13, 11, 15, 4, True), id="one stayed empty"),
        pytest.param(None, {"stage": "count", "k": 4}, (None, 4, None, None, 4, None), id="rule"),
    ],
)
def test_json_has_the_count(
    tmp_path: Path, asked: int | None, found: dict[str, Any] | None, expected: tuple[Any, ...]
) -> None:
    names = ("asked", "estimate", "low", "high", "taken", "believed")
    run = counted(tmp_path / "run", asked, found)
    told = run_summary(run)["count"]
    assert {name: told[name] for name in names} == dict(zip(names, expected, strict=True))
    assert set(told) == {*names, "exactly", "empty"}


def test_json_says_that_the_data_were_not_asked_and_how_many_intents_are_empty(
    tmp_path: Path,
) -> None:
    run = counted(tmp_path / "run", 4, None)
    first, *others = run.intents()
    write_intents(run.path, [first, replace(others[0], size=0), *others[1:]])
    told = run_summary(run)["count"]
    assert (told["exactly"], told["taken"], told["empty"]) == (True, 4, 1)
    asked = counted(tmp_path / "asked", 4, EVIDENCE | {"k": 4})
    assert run_summary(asked)["count"]["exactly"] is False


@pytest.mark.parametrize("as_json", [True, False])
@pytest.mark.parametrize("quiet", [True, False])
def test_a_number_that_was_not_taken_is_told_in_any_case(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], as_json: bool, quiet: bool
) -> None:
    _show(counted(tmp_path / "run", 28, EVIDENCE | {"k": 4}), as_json, quiet)
    told = [line for line in capsys.readouterr().err.splitlines() if "asked for" in line]
    assert len(told) == 1
    assert told[0].startswith("28 intents asked for, but the data show 11 to 15: 4 were made")


def test_quiet_is_quiet_where_the_number_was_taken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for i, (asked, k) in enumerate([(None, 4), (4, 4)]):
        _show(counted(tmp_path / f"run{i}", asked, EVIDENCE | {"k": k}), True, True)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("found", [None, {"stage": "count", "k": 4, "low": 3, "high": 5}])
def test_a_number_that_was_taken_is_told_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], found: dict[str, Any] | None
) -> None:
    _show(counted(tmp_path / "run", 4, found), True, False)
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("4 intents,")]
    assert len(told) == 1


def test_known_intents_that_are_not_in_the_pile_are_named() -> None:
    def told(*rows: tuple[int, str | None]) -> list[str]:
        index, given = zip(*rows, strict=True)
        intents = [SimpleNamespace(index=i, name=f"i{i}", known=i < 8) for i in range(9)]
        table = {"index": pa.array(index), "given": pa.array(given, pa.string())}
        run = SimpleNamespace(assignments=lambda: table, intents=lambda: intents)
        return idle_lines(run)  # type: ignore[arg-type]

    all_used = [(i, None) for i in range(8)]
    assert told(*all_used, (1, "i1")) == []
    assert told(*all_used[1:], (0, "i0")) == [
        "1 known intent has no utterance but those labelled so: i0"
    ]
    (line,) = told((8, None), *((i, f"i{i}") for i in range(8)))
    assert line.startswith("8 known intents have no")
    assert line.endswith(": i0, i1, i2, i3, i4, ...")
    assert told((0, "i0"), (1, "i1")) == []  # nothing was raw
