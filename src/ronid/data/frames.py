"""Tables that are in memory already: frames, columns, lists.

Frames are told apart by what they can do, so that none of their packages is imported here.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from ronid.data.columns import Table
from ronid.data.corpus import is_missing
from ronid.errors import DataError

READABLE = (
    "a path, a pandas or polars frame, a pyarrow Table, a datasets.Dataset, or a list of strings, "
    "of (text, label) pairs or of dicts"
)

_BATCH = 10_000


def table_of(data: Any, origin: str) -> Table:
    """See an object in memory as a table.

    Args:
        data: Frame, series, mapping of columns, or list of strings, pairs or mappings.
        origin: What messages call it.

    Returns:
        The table; its rows are read when asked for.

    Raises:
        DataError: The object is of no kind that can be read.
    """
    if hasattr(data, "column_names") and hasattr(data, "to_batches"):
        return Table(tuple(data.column_names), partial(arrow_rows, data.to_batches()))
    if hasattr(data, "column_names") and hasattr(data, "features"):
        return Table(tuple(data.column_names), partial(_dataset_rows, data))
    if hasattr(data, "shape") and hasattr(data, "columns"):
        return _frame(data)
    if isinstance(data, Mapping):
        return _of_columns(data, origin)
    for to_list in ("to_list", "tolist", "to_pylist"):  # polars and pandas; numpy; pyarrow
        if hasattr(data, to_list):
            data = getattr(data, to_list)()
            break
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        return _of_items(data, origin)
    raise DataError(f"{origin} of type {type(data).__name__} cannot be read; give {READABLE}")


def arrow_rows(batches: Any, positions: Sequence[int]) -> Iterator[Sequence[Any]]:
    """Yield rows of Arrow record batches, one batch in Python objects at a time."""
    for batch in batches:
        for start in range(0, batch.num_rows, _BATCH):
            part = batch.slice(start, _BATCH)
            yield from zip(*(part.column(p).to_pylist() for p in positions), strict=True)


def _dataset_rows(data: Any, positions: Sequence[int]) -> Iterator[Sequence[Any]]:
    """Yield rows of a Hugging Face dataset, class numbers replaced by their names."""
    names = [data.column_names[p] for p in positions]
    classes = [getattr(data.features[name], "names", None) for name in names]
    for batch in data.select_columns(names).iter(batch_size=_BATCH):
        yield from zip(
            *(
                [_class_name(value, known) for value in batch[name]] if known else batch[name]
                for name, known in zip(names, classes, strict=True)
            ),
            strict=True,
        )


def _class_name(value: int | None, classes: Sequence[str]) -> str | None:
    return classes[value] if value is not None and value >= 0 else None


def _frame(data: Any) -> Table:
    """A pandas frame, whose columns go by position, or a polars one."""

    def column(position: int) -> list[Any]:
        series = data.iloc[:, position] if hasattr(data, "iloc") else data.to_series(position)
        values: list[Any] = series.to_list()
        return values

    return Table(tuple(map(str, data.columns)), partial(_column_rows, column))


def _of_columns(data: Mapping[str, Any], origin: str) -> Table:
    names = tuple(map(str, data))
    columns = list(data.values())
    for name, values in zip(names, columns, strict=True):
        if isinstance(values, str) or not hasattr(values, "__len__"):
            raise DataError(
                f"{origin}: {name!r} holds no list; give a list of objects, a list of strings, "
                "or an object of columns"
            )
    lengths = {name: len(values) for name, values in zip(names, columns, strict=True)}
    if len(set(lengths.values())) > 1:
        raise DataError(f"{origin}: the columns differ in length ({lengths}); make them equal")
    return Table(names, partial(_column_rows, columns.__getitem__))


def _column_rows(
    column: Callable[[int], Sequence[Any]], positions: Sequence[int]
) -> Iterator[Sequence[Any]]:
    return zip(*(column(position) for position in positions), strict=True)


def _of_items(items: Sequence[Any], origin: str) -> Table:
    """A list: its first item that is not missing says what the others must be."""
    first = next((item for item in items if not is_missing(item)), "")
    if isinstance(first, str):
        _all_are(items, lambda item: isinstance(item, str) or is_missing(item), "text", origin)
        return Table(("text",), lambda _: ((item,) for item in items))
    if isinstance(first, Mapping):
        _all_are(items, lambda item: isinstance(item, Mapping), "an object", origin)
        names = tuple(dict.fromkeys(name for item in items for name in item))
        return Table(names, partial(_item_rows, items, names))
    _all_are(items, _is_pair, "a (text, label) pair", origin)
    return Table(
        ("text", "label"), lambda positions: (tuple(item[p] for p in positions) for item in items)
    )


def _item_rows(
    items: Sequence[Mapping[str, Any]], names: Sequence[str], positions: Sequence[int]
) -> Iterator[Sequence[Any]]:
    wanted = [names[position] for position in positions]
    return ([item.get(name) for name in wanted] for item in items)


def _is_pair(item: Any) -> bool:
    return isinstance(item, tuple | list) and len(item) == 2


def _all_are(
    items: Sequence[Any], right: Callable[[Any], bool], expected: str, origin: str
) -> None:
    for position, item in enumerate(items):
        if not right(item):
            raise DataError(
                f"{origin}: item {position} is of type {type(item).__name__}, expected {expected}; "
                "give a list of strings, of (text, label) pairs or of objects"
            )
