import csv
import gzip
import io
import json
import os
import subprocess
import sys
import tempfile
import threading
import zipfile
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from ronid.data.readers import load
from ronid.errors import DataError, MissingExtraError, RonidWarning
from ronid.types import Corpus

ROWS = [("where is my card", "card"), ('say "hi",\nplease', None), ("pay me", "pay")]
TEXTS = [text for text, _ in ROWS]
LABELS = [label for _, label in ROWS]


def write(path: Path, rows: list[tuple[str, str | None]] = ROWS) -> Path:
    """Write rows in the format of the path's ending, through gzip where it ends so."""
    ending = path.name.removesuffix(".gz").rpartition(".")[2]
    data = io.BytesIO()
    columns = {"utterance": [t for t, _ in rows], "intent": [k for _, k in rows]}
    if ending in ("csv", "tsv"):
        text = io.StringIO()
        writer = csv.writer(text, delimiter="," if ending == "csv" else "\t")
        writer.writerows([tuple(columns), *rows])
        data.write(text.getvalue().encode())
    elif ending in ("jsonl", "ndjson"):
        lines = [json.dumps({"utterance": t} | ({"intent": k} if k else {})) for t, k in rows]
        data.write("\n".join(lines).encode())
    elif ending == "json":
        records = [{"utterance": t, "intent": k} for t, k in rows]
        data.write(json.dumps(records, indent=2).encode())
    elif ending == "parquet":
        parquet.write_table(pa.table(columns | {"vector": [[0.5]] * len(rows)}), data)
    elif ending == "xlsx":
        book = openpyxl.Workbook()
        for row in [tuple(columns), *rows]:
            book.active.append(row)
        book.create_sheet("notes")
        book.save(data)
    content = data.getvalue()
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)
    return path


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "ndjson", "json", "parquet", "xlsx"])
def test_every_format_reads_the_same_corpus(tmp_path: Path, ending: str, packed: str) -> None:
    corpus = load(write(tmp_path / f"calls.{ending}{packed}"))
    assert corpus.texts == TEXTS
    assert corpus.labels == LABELS
    assert corpus.report.rows_read == corpus.report.rows_kept == 3


def test_plain_text_is_one_utterance_per_line(tmp_path: Path) -> None:
    path = tmp_path / "calls.txt"
    path.write_text("\n  hello, you \nbye\u2028now\n\n", encoding="utf-8")
    with pytest.warns(RonidWarning, match="1 of 3 rows"):
        corpus = load(path)
    assert corpus.texts == ["hello, you", "bye\u2028now"]
    assert corpus.report.empties_dropped == 1
    assert "without a header" in corpus.report.messages[0]


@pytest.mark.parametrize("name", ["calls.txt", "calls.csv"])
def test_header_of_one_column_is_detected(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("Utterance\nhello\nbye\n")
    corpus = load(path)
    assert corpus.texts == ["hello", "bye"]
    assert corpus.report.messages == ("the first line, 'Utterance', is read as a header",)
    path.write_text("phrases\nhello\nbye\n")
    assert load(path).texts == ["phrases", "hello", "bye"]
    assert load(path, text="phrases").texts == ["hello", "bye"]


def test_long_first_line_is_shortened_in_the_message(tmp_path: Path) -> None:
    path = tmp_path / "calls.txt"
    path.write_text("word " * 50)
    assert "..." in load(path).report.messages[0]


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_delimiter_of_csv_is_sniffed(tmp_path: Path, delimiter: str) -> None:
    path = tmp_path / "calls.csv"
    rows = [["id", "text", "label"], ["1", "one, two, three", "a"], ["2", "four, five", ""]]
    path.write_text("\n".join(delimiter.join(row) for row in rows))
    corpus = load(path, id="id")
    assert corpus.texts == ["one, two, three", "four, five"]
    assert corpus.ids == ["1", "2"]
    assert repr(delimiter) in corpus.report.messages[0]


def test_byte_order_mark_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "calls.csv"
    path.write_bytes(b"\xef\xbb\xbftext,label\r\nol\xc3\xa9,a\r\n\r\n")
    corpus = load(path)
    assert (corpus.texts, corpus.labels) == (["olé"], ["a"])


def test_other_encodings_are_read(tmp_path: Path) -> None:
    path = tmp_path / "calls.csv"
    path.write_bytes("text,label\nolé,a\n".encode("latin-1"))
    assert load(path, encoding="latin-1").texts == ["olé"]
    path.write_bytes("text,label\nolé,a\n".encode("utf-16"))
    assert load(path, encoding="utf-16").texts == ["olé"]


@pytest.mark.parametrize(
    ("content", "texts", "labels"),
    [
        (["a b", "c"], ["a b", "c"], [None, None]),
        ({"text": ["a", "b"], "label": [3, -1]}, ["a", "b"], ["3", None]),
        ([["a", "x"], ["b", None]], ["a", "b"], ["x", None]),
    ],
)
def test_json_may_hold_strings_columns_or_pairs(
    tmp_path: Path, content: Any, texts: list[str], labels: list[str | None]
) -> None:
    path = tmp_path / "calls.json"
    path.write_text(json.dumps(content))
    corpus = load(path)
    assert (corpus.texts, corpus.labels) == (texts, labels)


def test_jsonl_may_hold_strings_and_late_labels(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_text('"one"\n\n{"text": "two"}\n{"text": "three", "label": -1.0}\n')
    corpus = load(path)
    assert (corpus.texts, corpus.labels) == (["one", "two", "three"], [None, None, None])
    assert any("'label'" in message for message in corpus.report.messages)


def test_excel_says_which_sheet_and_takes_numbers_as_text(tmp_path: Path) -> None:
    path = tmp_path / "calls.xlsx"
    book = openpyxl.Workbook()
    for row in (["hello"], [None], [42]):
        book.active.append(row)
    book.create_sheet("notes")
    book.save(path)
    corpus = load(path)
    assert corpus.texts == ["hello", "42"]
    assert "first of 2 sheets" in corpus.report.messages[0]
    assert "without a header" in corpus.report.messages[1]


def test_empty_workbook_has_no_rows(tmp_path: Path) -> None:
    openpyxl.Workbook().save(tmp_path / "a.xlsx")
    with pytest.raises(DataError, match="no rows"):
        load(tmp_path / "a.xlsx")


def test_missing_openpyxl_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "calls.xlsx")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingExtraError, match=r'pip install "ronid\[excel\]"'):
        load(path)


def test_truth_is_never_guessed_and_labels_can_be_refused(tmp_path: Path) -> None:
    path = tmp_path / "calls.csv"
    path.write_text("text,intent,truth\nhello,,greet\nbye,bye,bye\n")
    assert load(path).truth is None
    corpus = load(path, truth="truth", label="")
    assert corpus.truth == ["greet", "bye"]
    assert corpus.labels == [None, None]


def test_equal_labels_share_one_object(tmp_path: Path) -> None:
    path = tmp_path / "calls.csv"
    path.write_text("text,intent\n" + "".join(f"hello {i},greeting\n" for i in range(10)))
    labels = load(path).labels
    assert all(label is labels[0] for label in labels)


@pytest.mark.parametrize(
    ("name", "content", "options", "says"),
    [
        ("a.csv", b"text,label\nx,a\nx,y,a\n", {}, r"line 3: expected 2 fields, found 3"),
        ("a.csv", b'text,label\n"x\ny",a\nz\n', {}, r"line 4: expected 2 fields, found 1"),
        ("a.csv", b"text\nhello, you\n", {}, r"line 2: expected 1 field, found 2.*--format txt"),
        ("a.csv", b'text,label\nx,a\n"y,a\nz,b\n', {}, r"line 3: a quote opens.*never closed"),
        ("a.csv", b'text,label\nx,a\ny,"a\nz,b\n', {}, r"line 3: a quote opens.*never closed"),
        ("a.tsv", b'text\tlabel\n"' + b"x" * 140_000, {}, r"line 2: field larger.*never closed"),
        ("a.csv", b'"' + b"x" * 140_000, {}, r"line 1: field larger.*never closed"),
        ("a.csv", b"text,label\n", {}, "no rows"),
        ("a.csv", b"", {}, "no rows"),
        ("a.txt", b"\n \n", {}, "no rows"),
        ("a.jsonl", b"", {}, "no rows"),
        ("a.json", b" ", {}, "no rows"),
        ("a.json", b"[]", {}, "no rows"),
        ("a.csv", b"text,label\n ,a\n,b\n", {}, r"none of the 2 rows has text in column 'text'"),
        ("a.csv", b"foo,bar\n1,2\n", {}, r"no column looks like text.*'foo', 'bar'.*--text"),
        ("a.csv", b"text,Intent\n1,2\n", {"label": "intnt"}, r"no column 'intnt'.*mean 'Intent'"),
        ("a.csv", b"text,intent\n1,2\n", {"text": "qqq"}, r"no column 'qqq'.*'text', 'intent'$"),
        ("a.csv", b"text,label\nx,a\nol\xe9,b\n", {}, r"line 3, byte 3: 0xe9.*--encoding latin-1"),
        ("a.csv", b"text\nx\n", {"encoding": "klingon"}, "encoding 'klingon' is unknown"),
        ("a.csv", b"\xff\xfet", {"encoding": "utf-16"}, r"not valid utf-16 \(truncated data\)"),
        ("a.csv", b"text\nx\n", {"format": "doc"}, "format 'doc' is unknown.*csv, tsv"),
        ("a.csv", b"\x89PNG\r\n\x1a\n....", {}, "a PNG image, not csv"),
        ("a.csv", b"ab\0cd", {}, "binary file"),
        ("a.csv", b"text\n" + b"hello\n" * 50 + b"a\0b\n", {}, "line 52: a zero byte.*remove it"),
        ("a.csv", "text\nx\n".encode("utf-16"), {}, "--encoding utf-16"),
        ("a.doc", b"x", {}, r"'.doc' is not read.*\.csv.*\.txt.*--format"),
        ("noending", b"x", {}, r"'' is not read"),
        ("a.xls", b"x", {}, r"save it as \.xlsx"),
        ("a.jsonl", b'{"text": "x"}\n{"text": \n', {}, r"line 2, column \d+: broken JSON"),
        ("a.jsonl", b'{"text": "x"}\n[1]\n', {}, r"line 2: found a list"),
        ("a.json", b'[\n"x",\n"y"\n', {}, r"line \d, column \d+: broken JSON"),
        ("a.json", b"5", {}, "of type int cannot be read"),
        ("a.json", b'{"text": "x"}', {}, "'text' holds no list"),
        ("a.json", b'{"text": ["x"], "label": []}', {}, "differ in length"),
        ("a.json", b'[{"text": ["x"]}]', {}, r"row 1 holds a list or an object"),
        ("a.json", b'["x", 5]', {}, r"item 1 is of type int, expected text"),
        ("a.json", b"[[1, 2, 3]]", {}, r"item 0.*expected a \(text, label\) pair"),
        ("a.csv.gz", b"text\nx\n", {}, "not a gzip file"),
        ("a.csv.gz", gzip.compress(b"text\n" + b"xyz\n" * 9999, mtime=0)[:60], {}, "damaged gzip"),
        ("a.csv.gz", b"\x1f\x8bnonsense", {}, "damaged gzip"),
        ("a.parquet", b"PAR1 nonsense", {}, "no readable Parquet file"),
        ("a.xlsx", b"PK\x03\x04 nonsense", {}, "no readable Excel workbook"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_said_in_one_line(
    tmp_path: Path, name: str, content: bytes, options: dict[str, str], says: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError, match=says) as caught:
        load(path, **options)
    assert "\n" not in str(caught.value)


def test_zip_named_csv_is_called_a_zip(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.csv", "w") as archive:
        archive.writestr("calls.csv", "text\nx\n")
    with pytest.raises(DataError, match="zip archive"):
        load(tmp_path / "a.csv")


def test_missing_file_and_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nothing\.csv does not exist"):
        load(tmp_path / "nothing.csv")
    with pytest.raises(DataError, match="is a folder"):
        load(str(tmp_path))


def test_damaged_parquet_pages_are_said_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"text": [f"utterance {i}" for i in range(5000)]})
    parquet.write_table(table, path, compression="zstd", use_dictionary=False)
    content = bytearray(path.read_bytes())
    content[4:2000] = bytes(1996)
    path.write_bytes(content)
    with pytest.raises(DataError, match="no readable Parquet file"):
        load(path)


def test_file_that_may_not_be_opened_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.csv")

    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(DataError, match=r"a\.csv cannot be read: Permission denied"):
        load(path)


@pytest.mark.parametrize("format", [None, "csv"])
@pytest.mark.parametrize(
    ("content", "texts"),
    [(b"text,label\nx,a\n", ["x"]), (gzip.compress(b"text;label\nx;a\n", mtime=0), ["x"])],
)
def test_standard_input_is_read(
    monkeypatch: pytest.MonkeyPatch, content: bytes, texts: list[str], format: str | None
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert load("-", format=format).texts == texts


@pytest.mark.parametrize(
    ("ending", "content"),
    [
        ("tsv", b"text\tlabel\nhello, you\ta\n"),
        ("jsonl", b'{"text": "hello, you"}\n'),
        ("json", b'{\n"text": ["hello, you"]}\n'),
        ("json", b'["hello, you"]'),
        ("txt", b"hello, you\n"),
    ],
)
def test_format_of_standard_input_is_guessed(
    monkeypatch: pytest.MonkeyPatch, ending: str, content: bytes
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert load("-").texts == ["hello, you"]


def read_stdin(monkeypatch: pytest.MonkeyPatch, content: str, **how: str) -> Corpus:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
    return load("-", **how)


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        ('text\n"set an alarm"\n"cancel it"\n', ["set an alarm", "cancel it"]),
        ('"text"\r\n"set an alarm"\r\n', ["set an alarm"]),
        (
            '\nUtterance\nhi\n\n"a ""b"", c"\n"d\ne"\nbye; you',
            ["hi", 'a "b", c', "d\ne", "bye; you"],
        ),
    ],
)
def test_quoted_lines_under_a_header_of_text_are_fields(
    monkeypatch: pytest.MonkeyPatch, content: str, texts: list[str]
) -> None:
    assert read_stdin(monkeypatch, content).texts == texts


def test_quoted_lines_under_a_named_header_are_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    content = 'said\n"set an alarm"\n'
    assert read_stdin(monkeypatch, content, text="said").texts == ["set an alarm"]
    assert read_stdin(monkeypatch, content).texts == ["said", '"set an alarm"']


@pytest.mark.parametrize(
    "lines",
    [
        ["hello, you", "bye"],
        ['"set an alarm"', "well, then"],
        ['"yes" or "no"', '"cancel it"'],
        ['"cancel it"', 'say "hi"'],
        ['"cancel it"', '"an open quote'],
        ['"set, an", "alarm"'],
        ['"set, an","alarm"'],
        ['"cancel it"', *["hello"] * 2000, "well, then"],
        ['"' + "x" * 140_000, '"'],
    ],
)
def test_lines_under_a_header_of_text_that_are_no_fields_stay_whole(
    monkeypatch: pytest.MonkeyPatch, lines: list[str]
) -> None:
    assert read_stdin(monkeypatch, "\n".join(["text", *lines])).texts == lines
    assert read_stdin(monkeypatch, "\n".join(["  ", "text", *lines])).texts == lines


def test_damaged_gzip_on_standard_input_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "".join(f'"utterance {i * i}"\n' for i in range(9999))
    packed = gzip.compress(f"text\n{lines}".encode(), mtime=0)
    for damaged in (packed[:60], packed[:-2000], b"\x1f\x8bnonsense"):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(damaged)))
        with pytest.raises(DataError, match="standard input is a damaged gzip file"):
            load("-")


@pytest.mark.parametrize("ending", ["parquet", "xlsx"])
def test_binary_standard_input_is_recognised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    content = write(tmp_path / f"a.{ending}").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert load("-").texts == TEXTS


def test_named_column_makes_a_header_of_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"x,y\nhello,2\n")))
    assert load("-", text="x").texts == ["hello"]


def test_errors_of_standard_input_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    with pytest.raises(DataError, match="standard input has no rows"):
        load("-")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.parametrize("format", [None, "csv"])
@pytest.mark.parametrize("packed", [False, True])
def test_a_pipe_is_read_whole_first(tmp_path: Path, format: str | None, packed: bool) -> None:
    pipe, content = tmp_path / "63", b"text;label\nhello, you;a\nbye;b\n"
    os.mkfifo(pipe)
    content = gzip.compress(content) if packed else content
    writer = threading.Thread(target=pipe.write_bytes, args=(content,))
    writer.start()
    found = load(pipe, format=format)
    writer.join()
    assert (found.texts, found.labels) == (["hello, you", "bye"], ["a", "b"])


cell = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1).map(str.strip)


@given(st.lists(st.tuples(cell.filter(bool), cell), min_size=1, max_size=20))
def test_csv_written_by_the_standard_library_is_read_back(rows: list[tuple[str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder) / "a.tsv", [(t, k or None) for t, k in rows])
        corpus = load(path)
    assert corpus.texts == [text for text, _ in rows]
    assert corpus.labels == [None if k in ("", "-1", "-1.0") else k for _, k in rows]


def test_import_is_quick_and_brings_no_heavy_package() -> None:
    code = (
        "import sys, ronid.data.readers; "
        "print(*({'pyarrow', 'pandas', 'polars', 'datasets', 'torch'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_large_file_is_read_in_bounded_memory(tmp_path: Path, ending: str) -> None:
    path, n, size = tmp_path / f"big.{ending}", 0, 0
    line = '{{"text": "{:07d} please tell me where my parcel is today ok", "intent": ""}}\n'
    if ending == "csv":
        line = "{:07d} please tell me where my parcel is today ok,\n"
    with path.open("w") as stream:
        stream.write("text,intent\n" if ending == "csv" else "")
        while size < 200_000_000:
            size += stream.write("".join(map(line.format, range(n, n + 10_000))))
            n += 10_000
    code = (
        "import re, sys; from pathlib import Path; from ronid.data.readers import load; "
        # ru_maxrss would be no less than what the parent held when it forked.
        "rows = len(load(sys.argv[1])); status = Path('/proc/self/status').read_text(); "
        "print(rows, re.search(r'VmHWM:\\s+(\\d+)', status)[1])"
    )
    command = [sys.executable, "-c", code, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows, peak_kib = map(int, done.stdout.split())
    assert rows == n
    assert peak_kib < 750_000
