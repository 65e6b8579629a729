import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pytest

from ronid.export.report import ReportData, render_report, shown_rows, write_report

DATA_BLOCK = re.compile(r'<script type="application/json" id="report-data">(.*?)</script>', re.S)


def payload(html: str) -> dict:
    (block,) = DATA_BLOCK.findall(html)
    return json.loads(block)


def test_data_cannot_leave_its_script_element(report_data: ReportData) -> None:
    (block,) = DATA_BLOCK.findall(render_report(report_data))
    assert not set("<>&\u2028\u2029") & set(block)


def test_every_utterance_survives_unchanged(report_data: ReportData) -> None:
    data = payload(render_report(report_data))
    expected = [text.replace("\ud800", "?") for text in report_data.texts]
    assert data["points"]["text"] == expected
    assert data["points"]["intent"] == report_data.labels.tolist()
    assert data["title"] == "Shop <chat> & co"


def test_header_counts_and_scores(report_data: ReportData) -> None:
    assert report_data.scores is not None
    scores = dataclasses.replace(report_data.scores, strict_acc=70.04, strict_novel_acc=65.0)
    data = payload(render_report(dataclasses.replace(report_data, scores=scores)))
    counts = {"utterances": 69, "known": 2, "new": 3, "labelled": 18, "collected": None}
    assert data["counts"] == counts
    shown = dict(data["scores"])
    assert list(shown)[0] == "Strict accuracy"
    assert (shown["Strict accuracy"], shown["Novel, in a new intent"]) == ("70.0", "65.0")
    assert "Known by name" not in shown  # not computed, so not shown
    assert data["date"] == "2026-01-02"


def test_an_updated_run_tells_its_version_what_is_collected_and_what_was_added(
    report_data: ReportData,
) -> None:
    grown = dataclasses.replace(report_data, version=2, collected=7, added={3: 1, 4: 2})
    data = payload(render_report(grown))
    assert data["counts"]["collected"] == 7
    assert [intent["added"] for intent in data["intents"]] == [0, 0, 0, 1, 2]


def test_page_asks_for_nothing_outside(report_data: ReportData) -> None:
    html = DATA_BLOCK.sub("", render_report(report_data))
    assert "default-src 'none'" in html
    assert not re.search(r"\b(src|href)=\"(?!#)", html)
    assert "url(" not in html
    assert "@import" not in html
    assert "innerHTML" not in html
    assert "{{" not in html


def test_data_lines_tell_what_was_dropped(report_data: ReportData) -> None:
    lines = payload(render_report(report_data))["data"]
    assert lines == [
        "69 of 70 rows read became utterances",
        "1 row without text left out",
        "column <text> was guessed",
    ]


def test_optional_parts_may_be_missing(report_data: ReportData) -> None:
    bare = ReportData(
        title="bare",
        texts=report_data.texts,
        labels=report_data.labels,
        intents=report_data.intents,
        coordinates=report_data.coordinates,
    )
    data = payload(render_report(bare))
    assert (data["scores"], data["charts"], data["data"], data["settings"]) == ([], [], [], [])
    assert "confidence" not in data["points"]


def test_rows_that_do_not_match_are_refused(report_data: ReportData) -> None:
    with pytest.raises(ValueError, match="one row per utterance"):
        dataclasses.replace(report_data, texts=report_data.texts[:-1])
    with pytest.raises(ValueError, match="there are 3 intents"):
        dataclasses.replace(report_data, intents=report_data.intents[:3])


def test_large_maps_are_thinned_evenly() -> None:
    labels = np.repeat([0, 1, 2], [60, 30, 10])
    rows = shown_rows(labels, most=50)
    assert len(set(rows.tolist())) == 50
    np.testing.assert_allclose(np.bincount(labels[rows]), [30, 15, 5], atol=1)
    assert np.array_equal(shown_rows(labels, most=100), np.arange(100))


def test_write_makes_folders(report_data: ReportData, tmp_path: Path) -> None:
    path = write_report(tmp_path / "deep" / "report.html", report_data)
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
