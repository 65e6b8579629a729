"""What newcomers ran into: nothing is overwritten, dropped or invented without a word."""

import json
import math
from pathlib import Path

import pytest

from ronid.errors import DataError, UsageError
from ronid.estimator import RoNID
from ronid.files import read_json, without_nan, write_json


def test_json_files_hold_null_where_there_is_no_number(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"format_version": 1, "x": [math.nan, 1.5, (math.inf,)]})
    assert read_json(tmp_path / "a.json")["x"] == [None, 1.5, [None]]
    assert json.dumps(without_nan({"a": {"b": math.nan}}), allow_nan=False)


def test_missing_folder_is_called_missing(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        RoNID.load(tmp_path / "nope")


@pytest.mark.parametrize("count", [None, "20", 20.0])
def test_number_of_intents_must_be_a_whole_number(count: object) -> None:
    with pytest.raises(UsageError, match="how many intents|whole number"):
        RoNID(n_intents=count).fit(["one", "two", "three"])  # type: ignore[arg-type]
