import math
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronid.data.corpus import (
    case_warning,
    corpus_from,
    differing_in_case,
    format_report,
    intent_name,
)
from ronid.data.readers import load
from ronid.errors import DataError
from ronid.types import DataReport


@pytest.mark.parametrize(
    "value",
    [None, "", "  ", -1, -1.0, "-1", " -1 ", math.nan, np.nan, np.float32("nan"), np.int64(-1),
     pd.NA, pd.NaT],
)  # fmt: skip
def test_missing_labels_have_no_name(value: Any) -> None:
    assert intent_name(value) is None


@pytest.mark.parametrize(
    ("value", "name"),
    [(" refund ", "refund"), (0, "0"), (3.0, "3"), (2.5, "2.5"), (np.int64(7), "7"), ("-2", "-2"),
     (np.float32(4), "4"), ("nan", "nan")],
)  # fmt: skip
def test_other_labels_become_names(value: Any, name: str) -> None:
    assert intent_name(value) == name


def test_corpus_of_lists_keeps_rows_in_place() -> None:
    corpus = corpus_from(
        ["a ", "b", "a"], np.array([2, -1, 2]), truth=["x", None, "y"], ids=[7, 8, 9]
    )
    assert corpus.texts == ["a", "b", "a"]
    assert corpus.labels == ["2", None, "2"]
    assert corpus.truth == ["x", None, "y"]
    assert corpus.ids == ["7", "8", "9"]
    assert corpus.report.duplicates == 1
    assert corpus.report.label_counts == {"2": 2}


@pytest.mark.parametrize(
    "column",
    [
        np.array([["x"], [None]], object),
        np.array([[3], [-1]]),
        pd.DataFrame({"y": ["x", None]}),
        pd.DataFrame({"y": [3, None]}, dtype="Int64"),
        pl.DataFrame({"y": ["x", None]}),
        pl.DataFrame({"y": [3, None]}),
        pa.table({"y": ["x", None]}),
    ],
)
def test_labels_may_be_the_one_column_of_a_table(column: Any) -> None:
    corpus = corpus_from(["a", "b"], column, truth=column)
    assert corpus.labels in (["x", None], ["3", None])
    assert corpus.truth == corpus.labels


def test_embeddings_may_stand_for_texts() -> None:
    corpus = corpus_from(None, ["a", ""], embeddings=[[1, 0], [0, 1]])
    assert corpus.texts == ["", ""]
    assert corpus.embeddings is not None
    assert corpus.embeddings.dtype == np.float32
    assert corpus.report.duplicates == 0
    assert corpus_from(["a", "b"], embeddings=np.eye(2)).texts == ["a", "b"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"texts": ["a", " ", None]}, r"2 texts empty \(rows 1, 2\)"),
        ({"texts": ["a", 5]}, "text 1 is of type int"),
        ({"texts": "hello"}, "one string"),
        ({"texts": []}, "no utterances"),
        ({"texts": None}, "neither texts nor embeddings"),
        ({"texts": ["a"], "labels": ["x", "y"]}, "2 labels for 1 text; give one per text"),
        ({"texts": ["a", "b"], "labels": ["x"]}, "1 label for 2 texts; give one per text"),
        ({"texts": ["a"], "labels": [["x"]]}, "a label is a list or an object; give text"),
        ({"texts": ["a"], "labels": np.eye(1, 2)}, r"labels have shape \(1, 2\); give one column"),
        ({"texts": ["a"], "truth": []}, "0 true intents for 1 text;"),
        ({"texts": ["a"], "ids": [1, 2]}, "2 ids for 1 text;"),
        ({"texts": ["a"], "embeddings": np.eye(2)}, "2 embeddings for 1 text;"),
        ({"texts": ["a"], "embeddings": [1.0]}, "1 dimension;"),
        ({"texts": ["a"], "embeddings": [[math.nan]]}, "NaN"),
    ],
)
def test_lists_that_do_not_fit_are_refused(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(DataError, match=says):
        corpus_from(**arguments)


@given(st.lists(st.sampled_from("abcdef"), min_size=1))
def test_duplicates_are_those_of_a_set(texts: list[str]) -> None:
    assert corpus_from(texts).report.duplicates == len(texts) - len(set(texts))


@given(st.lists(st.integers(95, 105), min_size=1, max_size=5))
def test_over_long_texts_are_counted_by_words(lengths: list[int]) -> None:
    texts = ["w " * length for length in lengths]
    assert corpus_from(texts).report.over_long == sum(length > 100 for length in lengths)


def test_half_a_surrogate_pair_is_replaced_and_said() -> None:
    corpus = load(["fine \U0001f600", "cut \ud83d"])
    assert corpus.texts == ["fine \U0001f600", "cut \ufffd"]
    assert corpus.report.messages == ("1 utterance with broken characters (shown as \ufffd)",)
    assert corpus_from(["cut \ud83d"]).texts[0].encode()


def test_ids_of_several_rows_are_told() -> None:
    def told(ids: list[str]) -> tuple[str, ...]:
        frame = pd.DataFrame({"id": ids, "text": [f"text {i}" for i in range(len(ids))]})
        return load(frame, id="id").report.messages

    assert told(["a", "b", ""]) == told(["a", "", ""])
    assert told(["a", "b", "b"])[-1] == "1 id occurs more than once, such as 'b'"
    assert told(["a", "b", "b", "a", "a"])[-1] == "2 ids occur more than once, such as 'a'"


@pytest.mark.filterwarnings("ignore:1 of 6 rows")
def test_report_counts_and_ranks() -> None:
    rows = [("a", "x"), ("b", "y"), ("b", "y"), ("", "z"), ("c", None), ("d", "once")]
    report = load(rows).report
    assert (report.rows_read, report.rows_kept, report.empties_dropped) == (6, 5, 1)
    assert list(report.label_counts.items()) == [("y", 2), ("once", 1), ("x", 1)]
    assert (report.duplicates, report.labelled) == (1, 4)


def test_report_reads_as_sentences() -> None:
    report = DataReport(
        rows_read=1200,
        rows_kept=1199,
        empties_dropped=1,
        duplicates=1,
        over_long=2,
        label_counts={"pay": 30, "card": 20, "a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": 1},
        messages=("column 'q' is read as the text",),
    )
    assert format_report(report) == [
        "1,199 utterances from 1,200 rows",
        "1 row without text left out",
        "56 labelled with 8 intents (largest: pay 30, card 20, a 1), 1,143 unlabelled",
        "6 intents with one labelled utterance only: a, b, c, d, e and 1 more",
        "1 repeat of an earlier utterance, kept",
        "2 utterances of more than 100 words: the encoder may cut them",
        "column 'q' is read as the text",
    ]
    assert format_report(DataReport(1, 1)) == [
        "1 utterance",
        "no labels: this is unsupervised, every intent is to be discovered",
    ]


def test_names_that_differ_in_case_only_are_found_together() -> None:
    assert differing_in_case(
        ["alarm", "pay", "ALARM", "Pay", "straße", "Alarm", "STRASSE", "x"]
    ) == [
        ("alarm", "ALARM", "Alarm"),
        ("pay", "Pay"),
        ("straße", "STRASSE"),
    ]
    assert differing_in_case(["alarm", "alarm", "alarms"]) == []


def test_labels_that_differ_in_case_only_are_told_in_one_line() -> None:
    assert case_warning({"alarm": 2, "pay": 1}) is None
    assert case_warning({"alarm": 1200, "pay": 3, "ALARM": 2, "Alarm": 1}) == (
        "labels that differ in case only make intents of their own: 'ALARM' (2) and 'Alarm' (1) "
        "beside 'alarm' (1,200); if they are one, write them alike"
    )
    many = {name: 1 for k in range(5) for name in (f"a{k}", f"A{k}")}
    told = str(case_warning(many))
    assert "'A0' (1) beside 'a0' (1), 'A1' (1) beside 'a1' (1)" in told
    assert "'A2' (1) beside 'a2' (1) and 2 more; if they are one, write them alike" in told
