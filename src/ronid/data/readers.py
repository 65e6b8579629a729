"""Reading utterances: one function per file format, and `load`, which takes them all."""

import csv
import io
import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from typing import Any

from ronid.data.columns import Table, Wanted, choose_columns, is_text_header
from ronid.data.corpus import collect
from ronid.data.frames import arrow_rows, table_of
from ronid.data.sources import Source, open_source
from ronid.errors import DataError, MissingExtraError, RonidWarning
from ronid.types import Corpus

_DELIMITERS = ",;\t|"
_SNIFFED_LINES = 50
_END = "\x04end of data\x04"  # a field no file holds


def load(
    source: Any,
    *,
    text: str | None = None,
    label: str | None = None,
    truth: str | None = None,
    id: str | None = None,
    encoding: str = "utf-8",
    format: str | None = None,
) -> Corpus:
    """Read utterances and the labels of those that have one.

    Args:
        source: Path to a .csv, .tsv, .jsonl, .ndjson, .json, .parquet, .xlsx or .txt file, each
            also with .gz; "-" for standard input; a pandas or polars frame or series, a pyarrow
            table, a Hugging Face dataset, a mapping of columns, or a list of strings, of
            (text, label) pairs or of mappings.
        text: Column of the utterances; guessed when not given.
        label: Column of the intents; guessed when not given, "" for none.
        truth: Column of the true intents, for diagnostics only; never guessed.
        id: Column of identifiers.
        encoding: Encoding of a text file.
        format: csv, tsv, jsonl, json, parquet, xlsx or txt, when the ending does not say.

    Returns:
        The corpus; its `report` says what was dropped and guessed.

    Raises:
        DataError: The source cannot be read as asked.

    Example:
        >>> load([("where is my card", "card_arrival"), ("pay me", None)]).known
        ('card_arrival',)
    """
    wanted = Wanted(text, label, truth, id)
    if isinstance(source, str | Path):
        named = [name for name in (text, label, truth, id) if name]
        with open_source(source, encoding, format, named) as file, file.reading():
            corpus = _corpus(READERS[file.format](file, wanted), wanted, file.name)
    else:
        corpus = _corpus(table_of(source, "the data"), wanted, "the data")
    if corpus.report.empties_dropped:
        warnings.warn(
            f"{corpus.report.empties_dropped} of {corpus.report.rows_read} rows have no text "
            "and are left out",
            RonidWarning,
            stacklevel=2,
        )
    return corpus


def _corpus(table: Table, wanted: Wanted, origin: str) -> Corpus:
    if not table.names:
        raise DataError(f"{origin} has no rows; give at least one utterance")
    return collect(table, choose_columns(table, wanted, origin), origin)


def read_csv(source: Source, wanted: Wanted) -> Table:
    """Comma-separated values; the delimiter may also be a semicolon, a tab or a bar."""
    delimiter = _sniff_delimiter(source)
    table = _read_delimited(source, wanted, delimiter)
    if delimiter == ",":
        return table
    said = f"fields are separated by {delimiter!r}"
    return Table(table.names, table.rows, (said, *table.messages))


def read_tsv(source: Source, wanted: Wanted) -> Table:
    """Tab-separated values, quoted as in CSV."""
    return _read_delimited(source, wanted, "\t")


def _read_delimited(source: Source, wanted: Wanted, delimiter: str) -> Table:
    try:
        rows = csv.reader(source.lines(newline=""), delimiter=delimiter)
        header = next((row for row in rows if row), [])
    except csv.Error as error:
        raise _too_long(source, 1, error) from None
    names = tuple(name.strip() for name in header)
    has_header = len(names) > 1 or not names or is_text_header(names[0], wanted.text)
    read = partial(_delimited_rows, source, delimiter, len(names), has_header)
    if not has_header:
        return Table(("text",), read, (_no_header(header[0]),))
    return Table(names, read, (_header(names[0]),) if len(names) == 1 else ())


def _delimited_rows(
    source: Source, delimiter: str, width: int, skip_first: bool, positions: Sequence[int]
) -> Iterator[Sequence[str]]:
    """Yield the fields asked for; a field may span lines when quoted.

    A last line of one field too many marks the end: where it does not come out as a row of its
    own, an opening quote has swallowed it.
    """
    pick: Callable[[Any], Sequence[str]] = itemgetter(*positions)
    if len(positions) == 1:
        pick = itemgetter(slice(positions[0], positions[0] + 1))
    end = delimiter * width + _END
    reader = csv.reader(chain(source.lines(newline=""), [end]), delimiter=delimiter)
    previous = line = 1  # where the last row began, where the current one begins
    try:
        for row in reader:
            if len(row) == width:
                if skip_first:
                    skip_first = False
                else:
                    yield pick(row)
            elif row:
                if row[-1] == _END:
                    return
                raise _ragged(source, line, row, width)
            previous, line = line, reader.line_num + 1
    except csv.Error as error:
        raise _too_long(source, line, error) from None
    raise _unclosed(source, previous)


def _ragged(source: Source, line: int, row: list[str], width: int) -> DataError:
    if _END in row[-1]:
        return _unclosed(source, line)
    advice = "quote fields that hold the delimiter"
    if width == 1:
        advice = "quote the text, or read one utterance per line with --format txt"
    return DataError(
        f"{source.name}, line {line}: expected {width} field{'s' * (width > 1)}, "
        f"found {len(row)}; {advice}"
    )


def _unclosed(source: Source, line: int) -> DataError:
    return DataError(
        f"{source.name}, line {line}: a quote opens here or soon after and is never closed; "
        "close it, or double a quote that belongs to the text"
    )


def _too_long(source: Source, line: int, error: csv.Error) -> DataError:
    return DataError(
        f"{source.name}, line {line}: {error}; most often a quote opens here and is never closed"
    )


def _sniff_delimiter(source: Source) -> str:
    """Take the delimiter that cuts the first lines most evenly, a comma when none does."""
    sample = list(islice(source.lines(newline=""), _SNIFFED_LINES))
    best, best_score = ",", (0.0, 1)
    for delimiter in _DELIMITERS:
        try:
            rows = [row for row in csv.reader(sample, delimiter=delimiter) if row]
        except csv.Error:
            continue
        width = len(rows[0]) if rows else 1
        even = sum(len(row) == width for row in rows) / max(len(rows), 1)
        if width > 1 and (even, width) > best_score:
            best, best_score = delimiter, (even, width)
    return best


def read_txt(source: Source, wanted: Wanted) -> Table:
    """Plain text, one utterance per line."""
    first = next((line.strip() for line in source.lines() if line.strip()), None)
    if first is None:
        return Table((), lambda _: iter(()))
    if is_text_header(first, wanted.text):
        return Table((first,), lambda _: islice(_text_rows(source), 1, None), (_header(first),))
    return Table(("text",), lambda _: _text_rows(source), (_no_header(first),))


def _text_rows(source: Source) -> Iterator[tuple[str]]:
    lines = iter(source.lines())
    # Blank lines before the first utterance would otherwise hide a header.
    first = next(line for line in lines if line.strip())
    return ((line,) for line in chain([first], lines))


def _header(first: str) -> str:
    return f"the first line, {first!r}, is read as a header"


def _no_header(first: str) -> str:
    shown = first if len(first) <= 40 else first[:37] + "..."
    return (
        f"one column without a header: the first line, {shown!r}, is read as an utterance; "
        "if it is a header, pass it as --text"
    )


def read_jsonl(source: Source, wanted: Wanted) -> Table:
    """One JSON object or string per line.

    The file is read twice: labels are often absent from the first lines, so that only all of
    them tell which columns there are.
    """
    names: dict[str, None] = {}
    for record in _json_records(source):
        names.update(dict.fromkeys(record))
    columns = tuple(names)

    def rows(positions: Sequence[int]) -> Iterator[Sequence[Any]]:
        keys = [columns[position] for position in positions]
        for record in _json_records(source):
            yield [record.get(key) for key in keys]

    return Table(columns, rows)


def _json_records(source: Source) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(source.lines(newline="\n"), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise DataError(
                f"{source.name}, line {number}, column {error.colno}: broken JSON ({error.msg}); "
                "each line must be one whole object"
            ) from None
        if isinstance(record, str):
            record = {"text": record}
        if not isinstance(record, dict):
            raise DataError(
                f"{source.name}, line {number}: found a {type(record).__name__}; "
                "each line must be an object or a string"
            )
        yield record


def read_json(source: Source, wanted: Wanted) -> Table:
    """A JSON list of objects, of strings or of pairs, or an object of columns."""
    content = "".join(source.lines())
    if not content.strip():
        return Table((), lambda _: iter(()))
    try:
        data = json.loads(content)
    except json.JSONDecodeError as error:
        raise DataError(
            f"{source.name}, line {error.lineno}, column {error.colno}: broken JSON ({error.msg}); "
            "for one object per line, pass --format jsonl"
        ) from None
    return table_of(data, source.name) if data else Table((), lambda _: iter(()))


def read_parquet(source: Source, wanted: Wanted) -> Table:
    """Parquet, read in batches and only the columns needed."""
    import pyarrow as pa
    from pyarrow import parquet

    stream = source.open()
    try:
        file = parquet.ParquetFile(stream)
    except (pa.ArrowException, OSError) as error:
        stream.close()
        raise _damaged(source, "Parquet file", error) from None
    names = tuple(file.schema_arrow.names)

    def rows(positions: Sequence[int]) -> Iterator[Sequence[Any]]:
        wanted_names = [names[position] for position in positions]
        try:
            with stream:
                for batch in file.iter_batches(columns=wanted_names):
                    picked = [batch.schema.get_field_index(name) for name in wanted_names]
                    yield from arrow_rows([batch], picked)
        except (pa.ArrowException, OSError) as error:
            raise _damaged(source, "Parquet file", error) from None

    return Table(names, rows)


def read_xlsx(source: Source, wanted: Wanted) -> Table:
    """The first sheet of an Excel workbook."""
    try:
        import openpyxl
    except ImportError:
        raise MissingExtraError("openpyxl", "excel") from None
    try:
        with source.open() as stream:
            content = io.BytesIO(stream.read())
        book = openpyxl.load_workbook(content, read_only=True, data_only=True)
        sheet = book.worksheets[0]
        filled = (row for row in sheet.iter_rows(values_only=True) if any(_filled(row)))
        rows = [list(row) for row in filled]
    except Exception as error:  # openpyxl lets zip, XML and key errors of a bad file through
        raise _damaged(source, "Excel workbook", error) from None
    messages = []
    if len(book.worksheets) > 1:
        messages.append(
            f"only the first of {len(book.worksheets)} sheets, {sheet.title!r}, is read"
        )
    if not rows:
        return Table((), lambda _: iter(()))
    names = tuple("" if cell is None else str(cell).strip() for cell in rows[0])
    if len(names) == 1 and not is_text_header(names[0], wanted.text):
        messages.append(_no_header(names[0]))
        names = ("text",)
    else:
        messages += [_header(names[0])] if len(names) == 1 else []
        rows = rows[1:]

    def pick(positions: Sequence[int]) -> Iterator[Sequence[Any]]:
        # Rows end at their last cell: what is missing there is empty.
        return ([row[p] if p < len(row) else None for p in positions] for row in rows)

    return Table(names, pick, tuple(messages))


def _filled(row: Sequence[Any]) -> Iterator[bool]:
    return (cell is not None for cell in row)


def _damaged(source: Source, kind: str, error: Exception) -> DataError:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return DataError(f"{source.name} is no readable {kind} ({reason}); export or copy it again")


READERS: dict[str, Callable[[Source, Wanted], Table]] = {
    "csv": read_csv,
    "tsv": read_tsv,
    "jsonl": read_jsonl,
    "json": read_json,
    "parquet": read_parquet,
    "xlsx": read_xlsx,
    "txt": read_txt,
}
