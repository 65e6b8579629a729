"""The table of `ronid predict` reads back as it was, whatever the utterances hold."""

import csv
import io
from pathlib import Path

import pytest

from ronid.cli.predict import _save_csv, _write_csv

TEXTS = ["plain", "a\rb", "a\r\nb", "a\nb", 'say "hi", now', "\r", "x\r", "ß 取消 🎉"]


def rows(*names: str) -> list[dict[str, object]]:
    common = {"confidence": 0.5, "known": True, "belonging": 0.25, "accepted": False}
    return [{"id": f"{n}\r", "text": text, "intent": name, **common}
            for n, (text, name) in enumerate(zip(TEXTS, names, strict=True))]  # fmt: skip


@pytest.mark.parametrize("name", ["refund", "re\rfund"])
def test_every_line_break_stays_inside_its_field(name: str, tmp_path: Path) -> None:
    given = rows(*[name] * len(TEXTS))
    _save_csv(tmp_path / "a.csv", given)
    with (tmp_path / "a.csv").open(encoding="utf-8", newline="") as file:
        read = list(csv.DictReader(file))
    assert [(row["id"], row["text"], row["intent"]) for row in read] == [
        (row["id"], row["text"], row["intent"]) for row in given
    ]
    assert {(row["known"], row["accepted"]) for row in read} == {("true", "false")}


def test_other_readers_see_the_same_rows(tmp_path: Path) -> None:
    from pyarrow import csv as arrow_csv

    given = [{k: v for k, v in row.items() if k != "id"} for row in rows(*["refund"] * len(TEXTS))]
    _save_csv(tmp_path / "a.csv", given)
    options = arrow_csv.ParseOptions(newlines_in_values=True)
    table = arrow_csv.read_csv(tmp_path / "a.csv", parse_options=options)
    assert table["text"].to_pylist() == TEXTS


def test_plain_rows_are_written_plainly() -> None:
    out = io.StringIO()
    _write_csv(out, [rows(*["refund"] * len(TEXTS))[0] | {"id": "1"}])
    assert out.getvalue() == (
        "id,text,intent,confidence,known,belonging,accepted\n1,plain,refund,0.5,true,0.25,false\n"
    )
