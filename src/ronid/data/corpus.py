"""Building a `Corpus`: from the rows of a table, or from lists in memory."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar, cast

import numpy as np

from ronid.data.columns import Columns, Table
from ronid.errors import DataError
from ronid.plural import counted
from ronid.types import Corpus, DataReport, FloatArray

OVER_LONG_WORDS = 100

_T = TypeVar("_T")


def intent_name(value: Any) -> str | None:
    """Name of the intent a label stands for, None where it says that there is none.

    Args:
        value: Label as found: text, number, or a missing value of any kind.

    Returns:
        The stripped name, numbers as text; None for empty text, None, NaN and -1.

    Example:
        >>> [intent_name(value) for value in (" refund ", 3, 3.0, "", -1, float("nan"))]
        ['refund', '3', '3', None, None, None]
    """
    if is_missing(value):
        return None
    if isinstance(value, float | np.floating) and float(value).is_integer():
        value = int(value)  # a column of whole numbers with gaps arrives as 3.0
    name = text_of(value)
    return None if name in ("", "-1", "-1.0") else name


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, or the missing value of pandas."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and math.isnan(value)


def text_of(value: Any) -> str:
    """Text of a cell, without the white space around it; numbers as text, missing as empty.

    Half of a surrogate pair, as cut emoji leave it in JSON, becomes U+FFFD: no file could hold it.

    Raises:
        TypeError: The cell holds a list or an object.
    """
    if type(value) is not str:
        if is_missing(value):
            return ""
        if not isinstance(value, str | int | float | np.generic):
            raise TypeError(f"{type(value).__name__} is no text")
        value = str(value)
    text: str = value.strip()
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return re.sub(r"[\ud800-\udfff]", "\ufffd", text)
    return text


class _IntentNames(dict[Any, str | None]):
    """Each label seen to one name object: a million equal labels take the room of one."""

    def __missing__(self, value: Any) -> str | None:
        name = intent_name(value)
        if not is_missing(value):  # every NaN is a new key: keep none
            self[value] = name
        return name


def collect(table: Table, columns: Columns, origin: str) -> Corpus:
    """Turn the rows of a table into a corpus, in one pass.

    Args:
        table: Rows, read as they are needed.
        columns: Which of its columns hold what.
        origin: What messages call the source.

    Returns:
        The corpus, without the rows that have no text.

    Raises:
        DataError: There is no row, no text, or a value that is neither text nor number.
    """
    roles = list(columns.positions)
    at = {role: roles.index(role) for role in roles}
    label_at, truth_at, id_at = at.get("label"), at.get("truth"), at.get("id")
    names = _IntentNames()
    texts: list[str] = []
    labels: list[str | None] = []
    truth: list[str | None] = []
    ids: list[str] = []
    rows_read = 0
    for row in table.rows(list(columns.positions.values())):
        rows_read += 1
        try:
            text = text_of(row[0])
            if not text:
                continue
            texts.append(text)
            labels.append(None if label_at is None else names[row[label_at]])
            if truth_at is not None:
                truth.append(names[row[truth_at]])
            if id_at is not None:
                ids.append("" if is_missing(row[id_at]) else str(row[id_at]))
        except TypeError:
            raise DataError(
                f"{origin}: row {rows_read} holds a list or an object where text or a label is "
                "expected; name other columns with --text and --label"
            ) from None
    _require_text(rows_read, len(texts), origin, table.names[columns.positions["text"]])
    messages = (*table.messages, *columns.messages, *_repeated_ids(ids))
    report = _report(texts, labels, rows_read, messages)
    return Corpus(
        texts,
        labels,
        report,
        ids=None if id_at is None else ids,
        truth=None if truth_at is None else truth,
    )


def corpus_from(
    texts: Iterable[str] | None,
    labels: Iterable[Any] | None = None,
    *,
    truth: Iterable[Any] | None = None,
    ids: Iterable[Any] | None = None,
    embeddings: Any = None,
) -> Corpus:
    """Make a corpus of lists or arrays; every row is kept, so that results stay row by row.

    Args:
        texts: n utterances; None when `embeddings` stand for them.
        labels: n intents, also as a table of one column; None, "", -1 and NaN mean unlabelled.
        truth: n true intents for diagnostics only, missing in the same ways.
        ids: n identifiers.
        embeddings: (n, d) vectors, or None.

    Returns:
        The corpus.

    Raises:
        DataError: Lengths differ, a text is missing or empty, or the vectors are not finite.
    """
    vectors = None if embeddings is None else _vectors(embeddings)
    if texts is None and vectors is None:
        raise DataError("neither texts nor embeddings are given; give at least one of them")
    if isinstance(texts, str):
        raise DataError("texts is one string; give a list of utterances")
    kept = [""] * len(vectors) if texts is None and vectors is not None else _texts(texts or ())
    if not kept:
        raise DataError("there are no utterances; give at least one")
    if vectors is None:
        _require_every_text(kept)
    elif len(vectors) != len(kept):
        raise _wrong_number(len(vectors), "embedding", len(kept))
    intents = _names(labels, len(kept), "label") or [None] * len(kept)
    return Corpus(
        kept,
        intents,
        _report(kept, intents, len(kept), ()),
        ids=None if ids is None else _aligned([str(i) for i in ids], len(kept), "id"),
        truth=_names(truth, len(kept), "true intent"),
        embeddings=vectors,
    )


def format_report(report: DataReport) -> list[str]:
    """Say for people what reading found and did.

    Args:
        report: Report of a corpus.

    Returns:
        Lines of plain text.
    """
    rows = "" if report.rows_read == report.rows_kept else f" from {report.rows_read:,} rows"
    lines = [f"{counted(report.rows_kept, 'utterance')}{rows}"]
    if report.empties_dropped:
        lines.append(f"{counted(report.empties_dropped, 'row')} without text left out")
    if report.label_counts:
        largest = ", ".join(f"{k} {v:,}" for k, v in list(report.label_counts.items())[:3])
        lines.append(
            f"{report.labelled:,} labelled with {counted(len(report.label_counts), 'intent')} "
            f"(largest: {largest}), {report.rows_kept - report.labelled:,} unlabelled"
        )
    else:
        lines.append("no labels: this is unsupervised, every intent is to be discovered")
    if report.used_once:
        lines.append(
            f"{counted(len(report.used_once), 'intent')} with one labelled utterance only: "
            f"{shortened(report.used_once)}"
        )
    if report.duplicates:
        lines.append(f"{counted(report.duplicates, 'repeat')} of an earlier utterance, kept")
    if report.over_long:
        lines.append(
            f"{counted(report.over_long, 'utterance')} of more than {report.over_long_words} "
            "words: the encoder may cut them"
        )
    return [*lines, *report.messages]


def differing_in_case(names: Iterable[str]) -> list[tuple[str, ...]]:
    """Find names that differ by upper and lower case only.

    Args:
        names: Names of intents; repeats do not count.

    Returns:
        Those that are alike, together, in the order in which they are given.

    Example:
        >>> differing_in_case(["alarm", "pay", "ALARM"])
        [('alarm', 'ALARM')]
    """
    alike: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        alike.setdefault(name.casefold(), []).append(name)
    return [tuple(group) for group in alike.values() if len(group) > 1]


def case_warning(counts: Mapping[str, int]) -> str | None:
    """Say which labels differ by upper and lower case only, and what to do; None where none do.

    Args:
        counts: Labelled utterances per intent, largest first.
    """

    def told(first: str, *others: str) -> str:
        beside = " and ".join(f"'{name}' ({counts[name]:,})" for name in others)
        return f"{beside} beside '{first}' ({counts[first]:,})"

    alike = [told(*group) for group in differing_in_case(counts)]
    if not alike:
        return None
    return (
        "labels that differ in case only make intents of their own: "
        f"{shortened(alike, limit=3)}; if they are one, write them alike"
    )


def shortened(names: Sequence[str], limit: int = 5) -> str:
    """Join the first names, and count the others."""
    rest = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + rest


def _require_text(rows_read: int, kept: int, origin: str, column: str) -> None:
    if not rows_read:
        raise DataError(f"{origin} has no rows; give at least one utterance")
    if not kept:
        raise DataError(
            f"{origin}: none of the {rows_read} rows has text in column {column!r}; "
            "name another column with --text"
        )


def _repeated_ids(ids: list[str]) -> list[str]:
    """Say it where an id is that of several rows, as ids are to tell them apart."""
    counts = Counter(filter(None, ids))
    repeated = [name for name, count in counts.items() if count > 1]
    if not repeated:
        return []
    occurs = "occurs" if len(repeated) == 1 else "occur"
    return [f"{counted(len(repeated), 'id')} {occurs} more than once, such as '{repeated[0]}'"]


def _report(
    texts: list[str], labels: list[str | None], rows_read: int, messages: tuple[str, ...]
) -> DataReport:
    counts = Counter(labels)
    counts.pop(None, None)
    broken = sum(not text.isascii() and "\ufffd" in text for text in texts)
    if broken:
        messages += (f"{counted(broken, 'utterance')} with broken characters (shown as \ufffd)",)
    ranked = sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))
    return DataReport(
        rows_read=rows_read,
        rows_kept=len(texts),
        empties_dropped=rows_read - len(texts),
        duplicates=_count_duplicates(texts),
        over_long=sum(map(_is_over_long, texts)),
        over_long_words=OVER_LONG_WORDS,
        label_counts={str(name): count for name, count in ranked},
        messages=messages,
    )


def _count_duplicates(texts: list[str]) -> int:
    """Count texts equal to an earlier one, by 64-bit hashes: 8 bytes per text, no set."""
    hashes = np.fromiter((hash(text) for text in texts if text), np.int64)
    hashes.sort()
    return int(np.count_nonzero(hashes[1:] == hashes[:-1]))


def _is_over_long(text: str) -> bool:
    # Words have at least one letter and one space: most texts are too short to need counting.
    return len(text) > 2 * OVER_LONG_WORDS and len(text.split()) > OVER_LONG_WORDS


def _texts(texts: Iterable[Any]) -> list[str]:
    kept = []
    for row, text in enumerate(texts):
        if not isinstance(text, str) and not is_missing(text):
            raise DataError(f"text {row} is of type {type(text).__name__}; give strings")
        kept.append(text_of(text))
    return kept


def _require_every_text(texts: list[str]) -> None:
    empty = [row for row, text in enumerate(texts) if not text]
    if empty:
        rows = shortened([str(row) for row in empty])
        raise DataError(f"{counted(len(empty), 'text')} empty (rows {rows}); leave those rows out")


def _names(values: Iterable[Any] | None, n: int, noun: str) -> list[str | None] | None:
    if values is None:
        return None
    column, seen = list(_one_column(values, noun)), _IntentNames()
    try:
        return _aligned([seen[value] for value in column], n, noun)
    except TypeError:
        raise DataError(f"a {noun} is a list or an object; give text or numbers") from None


def _one_column(values: Any, noun: str) -> Iterable[Any]:
    """Return the values of a frame, table or (n, 1) array; others as they are."""
    shape = getattr(values, "shape", ())
    if len(shape) < 2:  # noqa: PLR2004 - rows and columns
        return cast("Iterable[Any]", values)
    if shape[1:] != (1,):
        raise DataError(f"{noun}s have shape {tuple(shape)}; give one column of them")
    return cast("Iterable[Any]", np.asarray(values)[:, 0])


def _aligned(values: list[_T], n: int, noun: str) -> list[_T]:
    if len(values) != n:
        raise _wrong_number(len(values), noun, n)
    return values


def _wrong_number(number: int, noun: str, texts: int) -> DataError:
    return DataError(f"{counted(number, noun)} for {counted(texts, 'text')}; give one per text")


def _vectors(embeddings: Any) -> FloatArray:
    vectors = np.asarray(embeddings, np.float32)  # (n, d)
    if vectors.ndim != 2:
        raise DataError(
            f"embeddings have {counted(vectors.ndim, 'dimension')}; give an (n, d) array"
        )
    if not np.isfinite(vectors).all():
        raise DataError("embeddings hold NaN or infinite values; give finite ones")
    return vectors
