"""What `ronid fit` says about the number of intents."""

from types import SimpleNamespace
from typing import Any

import pytest

from ronid.cli.tables import count_lines

FOUND = {"stage": "count", "k": 13, "low": 11, "high": 15}
ONE = {"stage": "count", "k": 1, "low": 1, "high": 1}


def said(asked: int | None, found: dict[str, Any] | None, made: int) -> list[str]:
    run = SimpleNamespace(
        count=lambda: found, facts=lambda: {"n_intents": asked}, intents=lambda: (None,) * made
    )
    return count_lines(run)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("asked", "found", "made", "expected"),
    [
        pytest.param(7, None, 7, "", id="given"),
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
        pytest.param(12, FOUND | {"k": 12}, 12, "", id="believed"),
        pytest.param(None, ONE, 1, "1 intent, found from the data (1 possible)", id="one"),
        pytest.param(
            9, ONE, 1, "9 intents asked for, but the data show 1: 1 was made", id="one made"
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
