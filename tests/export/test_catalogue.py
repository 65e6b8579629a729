import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ronid.errors import DataError
from ronid.export.catalogue import build_catalogue, catalogue_of_run
from ronid.run import COLLECTED
from ronid.versions import FOLDER, POINTER
from tests.helpers.finished_run import SHOP, make_run


def test_labels_of_the_user_and_predictions_are_told_apart(tmp_path: Path) -> None:
    make_run(tmp_path / "run")
    found = catalogue_of_run(tmp_path / "run")
    orders = len(SHOP["track_order"])
    assert [row.by for row in found.rows[: orders + 1]] == ["given"] * orders + ["model"]
    assert found.rows[0].confidence is None
    assert 0 < (found.rows[orders].confidence or 0) <= 1
    assert [intent.accepted for intent in found.intents] == [True, False, False, False]
    assert found.about["run_version"] == 0
    assert found.about["source"] == "a.csv"


def test_the_last_version_of_an_updated_run_counts(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run").path
    later = shutil.copytree(run, tmp_path / "later")
    (run / FOLDER).mkdir()
    later = later.rename(run / FOLDER / "1")
    table = pq.read_table(later / "assignments.parquet")
    pq.write_table(table.slice(0, 3), later / "assignments.parquet")
    collected = pa.table({"text": ["what is the weather"], "label": [""], "id": ["n7"]})
    pq.write_table(collected, later / COLLECTED)
    (run / FOLDER / POINTER).write_text("1\n")
    found = catalogue_of_run(run)
    assert found.about["run_version"] == 1
    assert len(found.rows) == 4
    assert (found.rows[3].intent, found.rows[3].text, found.rows[3].id) == (
        None, "what is the weather", "n7",
    )  # fmt: skip


def test_columns_of_the_user_travel_along(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run").path
    table = pq.read_table(run / "assignments.parquet")
    channel = pa.array(["mail"] * len(table))
    pq.write_table(table.append_column("channel", channel), run / "assignments.parquet")
    assert dict(catalogue_of_run(run).rows[0].extra) == {"channel": "mail"}


def test_runs_of_embeddings_have_nothing_to_export(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run").path
    table = pq.read_table(run / "assignments.parquet")
    empty = pa.array([""] * len(table))
    pq.write_table(table.set_column(1, "text", empty), run / "assignments.parquet")
    with pytest.raises(DataError, match="no utterances to export"):
        catalogue_of_run(run)


def test_decisions_of_people_carry_who_and_when() -> None:
    found = build_catalogue(
        [{"id": "a", "name": "refund", "status": "accepted"}],
        {
            "text": ["pay me", "half \ud83d"],
            "intent": ["a", None],
            "by": ["person", "model"],
            "who": ["ada", None],
            "when": ["2026-01-02T03:04:05+00:00", None],
            "confidence": [None, 0.25],
        },
    )
    first, second = found.rows
    assert (first.by, first.who, first.when[:4]) == ("person", "ada", "2026")
    assert (second.intent, second.confidence, second.text) == (None, 0.25, "half \ufffd")
    assert [row.id for row in found.rows] == ["1", "2"]


@pytest.mark.parametrize(
    ("intents", "rows", "message"),
    [
        ([{"id": "a", "name": "x"}] * 2, {"text": [], "intent": []}, "share 1 ids"),
        ([], {"text": ["x"]}, "no column intent"),
        ([], {"text": ["x"], "intent": []}, "not as long"),
        ([], {"text": ["x"], "intent": ["b"]}, "not listed: b"),
    ],
)
def test_what_does_not_fit_together_is_refused(intents, rows, message: str) -> None:
    with pytest.raises(DataError, match=message):
        build_catalogue(intents, rows)


@pytest.mark.parametrize(
    ("known", "status", "standing"),
    [
        (True, "open", "accepted"),
        (False, "open", "open"),
        (False, "accepted", "accepted"),
        (True, "rejected", "rejected"),
    ],
)
def test_labelled_intents_are_accepted_until_somebody_rejects_them(known, status, standing) -> None:
    intent = {"id": "a", "name": "x", "known": known, "status": status}
    (made,) = build_catalogue([intent], {"text": [], "intent": []}).intents
    assert made.standing == standing
