"""Where bytes come from: a file or standard input, its format, compression and encoding."""

import codecs
import csv
import gzip
import io
import json
import re
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, cast

from ronid.data.columns import is_text_header, is_usual
from ronid.errors import DataError

FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".parquet": "parquet",
    ".xlsx": "xlsx",
    ".txt": "txt",
}
"""File endings that are read; each may be followed by `.gz`."""

BINARY_FORMATS = ("parquet", "xlsx")

_GZIP = b"\x1f\x8b"
_HEAD_BYTES = 4096
_STRAY_SHARE = 0.01  # of zero bytes, up to which a file is text with an accident in it
_SIGNATURES = {
    b"\x89PNG": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"GIF8": "a GIF image",
    b"%PDF": "a PDF document",
    b"PK\x03\x04": "a zip archive or an Excel workbook",
    b"PAR1": "a Parquet file",
    b"\xd0\xcf\x11\xe0": "an old Office document",
    b"BZh": "a bzip2 archive",
    b"\xfd7zXZ": "an xz archive",
    b"\x28\xb5\x2f\xfd": "a zstd archive",
}


@dataclass(frozen=True)
class Source:
    """A file that can be opened from the start as often as needed.

    Args:
        path: The file.
        name: What messages call it.
        format: One of the values of `FORMATS`.
        encoding: How its text is encoded.
    """

    path: Path
    name: str
    format: str
    encoding: str

    def open(self) -> IO[bytes]:
        """Open the content as bytes, decompressed."""
        return _open_bytes(self.path)

    def lines(self, newline: str | None = None) -> Iterator[str]:
        """Yield the lines of text one by one; `newline` as for `open`."""
        # "utf-8-sig" also reads UTF-8 without the mark that Windows programs put in front.
        encoding = "utf-8-sig" if _is_utf8(self.encoding) else self.encoding
        with self.open() as raw, io.TextIOWrapper(raw, encoding, newline=newline) as text:
            yield from text

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Turn what goes wrong with bytes inside the block into one line for the user."""
        try:
            yield
        except UnicodeDecodeError as error:
            raise DataError(_wrong_encoding(self, error)) from None
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise DataError(
                f"{self.name} is a damaged gzip file ({error}); copy or download it again"
            ) from None
        except OSError as error:
            raise DataError(f"{self.name} cannot be read: {error.strerror or error}") from None


@contextmanager
def open_source(
    source: str | Path, encoding: str, format: str | None, named: Sequence[str] = ()
) -> Iterator[Source]:
    """Find a file, or copy standard input ("-") or a pipe to a temporary one; decide its format.

    Args:
        source: Path, or "-".
        encoding: How its text is encoded.
        format: One of the values of `FORMATS`, or None to decide by ending or content.
        named: Columns the user names; a first line that holds one is a header.

    Yields:
        The source.

    Raises:
        DataError: There is no such file, or it is not what its ending says.
    """
    try:
        codecs.lookup(encoding)
    except LookupError:
        raise DataError(
            f"encoding {encoding!r} is unknown; try utf-8, utf-16, latin-1 or cp1252"
        ) from None
    if format is not None and format not in FORMATS.values():
        known = ", ".join(dict.fromkeys(FORMATS.values()))
        raise DataError(f"format {format!r} is unknown; the formats read are: {known}")
    path = Path(source)
    if str(source) != "-":
        path = _existing(path)
        if path.is_file():
            yield _checked(Source(path, str(path), format or _format_by_ending(path), encoding))
            return
    # A copy on disk keeps memory small, and lets the reader look at the beginning twice.
    name = "standard input" if str(source) == "-" else str(path)
    with tempfile.TemporaryDirectory(prefix="ronid-") as folder:
        whole = Path(folder) / "stream"
        with whole.open("wb") as copy, _stream(source) as stream:
            shutil.copyfileobj(stream, copy)
        copied = Source(whole, name, format or "txt", encoding)
        if format is None:
            with copied.reading():
                copied = replace(copied, format=_format_by_content(copied, named))
        yield _checked(copied)


def _stream(source: str | Path) -> AbstractContextManager[IO[bytes]]:
    """Open what can be read once only: standard input, which stays open, or a pipe."""
    if str(source) == "-":
        return nullcontext(sys.stdin.buffer)
    return Path(source).expanduser().open("rb")


def _existing(path: Path) -> Path:
    path = path.expanduser()
    if path.is_dir():
        raise DataError(f"{path} is a folder; name one file in it")
    if not path.exists():
        raise DataError(f"{path} does not exist; check the name and the current folder")
    return path


def _format_by_ending(path: Path) -> str:
    endings = [ending.lower() for ending in path.suffixes]
    if endings and endings[-1] == ".gz":
        endings.pop()
    ending = endings[-1] if endings else ""
    if ending == ".xls":
        raise DataError(f"{path} is in the old .xls format; save it as .xlsx or .csv")
    if ending not in FORMATS:
        raise DataError(
            f"{path}: the ending {ending!r} is not read; the endings read are: "
            f"{', '.join(FORMATS)} (each also with .gz); or say the format with --format"
        )
    return FORMATS[ending]


def _format_by_content(source: Source, named: Sequence[str]) -> str:
    with source.open() as stream:
        head = stream.read(_HEAD_BYTES)
    for signature, format in ((b"PAR1", "parquet"), (b"PK\x03\x04", "xlsx")):
        if head.startswith(signature):
            return format
    first = head.decode("utf-8-sig", errors="replace").lstrip().partition("\n")[0].strip()
    if first.startswith(("[", "{")):
        return "jsonl" if first.startswith("{") and _is_json(first) else "json"
    if "\t" in first:
        return "tsv"
    # A comma alone is no sign of a table: "hello, I lost my card" has one too.
    cells = [cell.strip(' "') for cell in re.split("[,;|]", first)]
    if len(cells) > 1:
        is_header = any(is_usual(cell) or cell in named for cell in cells)
    else:
        is_header = is_text_header(cells[0], None) or cells[0] in named
        is_header = is_header and _is_quoted_column(source)
    return "csv" if is_header else "txt"


def _is_quoted_column(source: Source) -> bool:
    """Whether the lines are one column of csv with quotes around some of its fields.

    All lines are looked at: one that csv would cut or refuse makes plain text of them.
    """
    lines: list[str] = []  # those of the current field

    def noted() -> Iterator[str]:
        for line in source.lines(newline=""):
            lines.append(line)
            yield line

    rows, some = csv.reader(noted(), strict=True), False
    try:
        if not "".join(next(filter(None, rows))).strip():
            return False  # spaces above the header, which csv would take for it
        lines.clear()
        for row in rows:
            quoted = lines[0].startswith('"')
            lines.clear()
            if len(row) > 1 or (not quoted and '"' in "".join(row)):
                return False
            some = some or quoted
    except csv.Error:
        return False
    return some


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def _open_bytes(path: Path) -> IO[bytes]:
    """Open a file, through gzip where its first bytes say so."""
    stream = path.open("rb")
    packed = stream.read(len(_GZIP)) == _GZIP
    stream.seek(0)
    if not packed:
        return stream
    stream.close()
    return cast("IO[bytes]", gzip.open(path, "rb"))


def _checked(source: Source) -> Source:
    """Refuse a file whose first bytes contradict its name."""
    with source.reading():
        with source.path.open("rb") as raw:
            start = raw.read(len(_GZIP))
        if source.path.suffix.lower() == ".gz" and start and start != _GZIP:
            raise DataError(f"{source.name} is not a gzip file; rename it without .gz")
        with source.open() as stream:
            head = stream.read(_HEAD_BYTES)
    if source.format in BINARY_FORMATS:
        return source
    for signature, kind in _SIGNATURES.items():
        if head.startswith(signature):
            raise DataError(f"{source.name} is {kind}, not {source.format}; check the file")
    wide = _is_wide(source.encoding)
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and not wide:
        raise DataError(f"{source.name} looks like UTF-16 text; pass --encoding utf-16")
    if b"\0" in head and not wide:
        zeros, line = head.count(0), head[: head.index(0)].count(b"\n") + 1
        if zeros > _STRAY_SHARE * len(head):
            raise DataError(f"{source.name} is a binary file, not {source.format}; check the file")
        raise DataError(
            f"{source.name}, line {line}: a zero byte, which no text has; remove it and try again"
        )
    return source


def _is_wide(encoding: str) -> bool:
    """Whether letters take two or four bytes, so that zero bytes and odd line ends are normal."""
    return codecs.lookup(encoding).name.startswith(("utf-16", "utf-32"))


def _is_utf8(encoding: str) -> bool:
    return codecs.lookup(encoding).name == "utf-8"


def _wrong_encoding(source: Source, error: UnicodeDecodeError) -> str:
    """Say where the first byte is that the encoding does not have.

    Decoding goes block by block, so that the error itself knows no line: look for it again.
    """
    advice = "say how the file is encoded, for example --encoding latin-1"
    if _is_wide(source.encoding):
        return f"{source.name} is not valid {source.encoding} ({error.reason}); {advice}"
    where = ""
    with source.open() as stream:
        for number, line in enumerate(stream, start=1):
            try:
                line.decode(source.encoding)
            except UnicodeDecodeError as found:
                error, where = found, f", line {number}, byte {found.start + 1}"
                break
    byte = error.object[error.start]
    return f"{source.name}{where}: 0x{byte:02x} is not valid {source.encoding}; {advice}"
