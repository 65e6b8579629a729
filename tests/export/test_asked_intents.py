"""What a report says of the number of intents that was asked for."""

from types import SimpleNamespace
from typing import Any

import pytest

from ronid.export.run_report import _asked

FOUND = {"stage": "count", "estimate": 29, "low": 25, "high": 32}


@pytest.mark.parametrize(
    ("asked", "found", "said"),
    [
        (24, None, "24, exactly"),
        (None, None, "as many as the data show"),
        (None, {"k": 29}, "as many as the data show: 29 estimated, 25 to 32 possible"),
        (24, {"k": 24}, "24 (29 estimated, 25 to 32 possible)"),
        (33, {"k": 29}, "33, not believed (29 estimated, 25 to 32 possible)"),
    ],
)
def test_a_number_is_said_with_what_became_of_it(
    asked: int | None, found: dict[str, int] | None, said: str
) -> None:
    run: Any = SimpleNamespace(count=lambda: None if found is None else FOUND | found)
    assert _asked(run, {"n_intents": asked}) == said


def test_of_an_updated_run_it_is_said_which_version_was_counted() -> None:
    run: Any = SimpleNamespace(count=lambda: FOUND | {"k": 29})
    said = _asked(run, {"n_intents": None, "updates": [{}]})
    assert said == "as many as the data show: 29 estimated, 25 to 32 possible, for version 0"
    run = SimpleNamespace(count=lambda: None)
    assert _asked(run, {"n_intents": 24, "updates": [{}]}) == "24, exactly, for version 0"
