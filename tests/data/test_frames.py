from typing import Any

import datasets
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from ronid.data.readers import load
from ronid.errors import DataError

COLUMNS = {"text": ["a b", "c"], "label": ["x", None]}


@pytest.mark.parametrize(
    "data",
    [
        pd.DataFrame(COLUMNS),
        pl.DataFrame(COLUMNS),
        pa.table(COLUMNS),
        datasets.Dataset.from_dict(COLUMNS),
        COLUMNS,
        [("a b", "x"), ("c", None)],
        [["a b", "x"], ["c", float("nan")]],
        [{"text": "a b", "label": "x"}, {"text": "c"}],
    ],
    ids=["pandas", "polars", "pyarrow", "datasets", "columns", "pairs", "lists", "mappings"],
)
def test_every_kind_of_data_gives_the_same_corpus(data: Any) -> None:
    corpus = load(data)
    assert (corpus.texts, corpus.labels) == (["a b", "c"], ["x", None])


@pytest.mark.parametrize(
    "data",
    [
        ["a b", "c"],
        ("a b", "c"),
        np.array(["a b", "c"]),
        pd.Series(["a b", "c"], name="anything"),
        pl.Series(["a b", "c"]),
        pa.chunked_array([["a b"], ["c"]]),
        pd.DataFrame({"anything": ["a b", "c"]}),
    ],
    ids=["list", "tuple", "numpy", "pandas", "polars", "pyarrow", "one column"],
)
def test_texts_alone_are_enough(data: Any) -> None:
    corpus = load(data)
    assert corpus.texts == ["a b", "c"]
    assert corpus.labels == [None, None]
    assert all(type(text) is str or isinstance(text, np.str_) for text in corpus.texts)


@pytest.mark.filterwarnings("ignore:2 of 3 rows")
def test_missing_texts_of_a_series_are_dropped() -> None:
    assert load(pd.Series([None, "a", float("nan")], dtype=object)).texts == ["a"]


@pytest.mark.parametrize("values", [[3.0, float("nan"), -1.0], [3, None, -1]])
def test_numeric_labels_of_a_frame_become_names(values: list[Any]) -> None:
    frame = pd.DataFrame({"text": ["a", "b", "c"], "label": values})
    assert load(frame).labels == ["3", None, None]
    nullable = frame.assign(label=pd.array([3, None, -1], dtype="Int64"))
    assert load(nullable).labels == ["3", None, None]


def test_class_numbers_of_a_dataset_become_their_names() -> None:
    features = datasets.Features(
        {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["pay", "card"])}
    )
    data = datasets.Dataset.from_dict(
        {"text": ["a", "b", "c"], "label": [1, -1, 0]}, features=features
    )
    assert load(data).labels == ["card", None, "pay"]


def test_large_arrow_table_is_read_batch_by_batch() -> None:
    texts = [f"utterance {i}" for i in range(25_001)]
    assert load(pa.table({"text": texts})).texts == texts


@pytest.mark.parametrize("data", [5, b"text", None, pl.LazyFrame({"text": ["a"]})])
def test_other_objects_are_refused(data: Any) -> None:
    with pytest.raises(DataError, match="cannot be read; give a path, a pandas"):
        load(data)


@pytest.mark.parametrize("data", [[], {}, pd.DataFrame(), pd.DataFrame({"text": []})])
def test_data_without_rows_are_refused(data: Any) -> None:
    with pytest.raises(DataError, match="no rows"):
        load(data)


def test_mixed_items_are_refused() -> None:
    with pytest.raises(DataError, match="item 1 is of type str, expected an object"):
        load([{"text": "a"}, "b"])
    with pytest.raises(
        DataError, match=r"item 1 is of type tuple, expected a \(text, label\) pair"
    ):
        load([("a", "x"), ("b",)])
