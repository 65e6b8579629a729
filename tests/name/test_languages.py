"""Utterances of any script pass through names, files and report unharmed."""

import csv
import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ronid.data.readers import load
from ronid.intents_file import read_intents
from ronid.run import open_finished
from tests.helpers.finished_run import make_run

GROUPS = {
    "bekannt": ["Wo ist mein Paket?", "Paket kommt nicht an", "Mein Paket ist weg"],
    "chinese": ["我的银行卡丢了", "银行卡丢了怎么办", "昨天银行卡丢了", "银行卡不见了"],
    "arabic": ["أريد إلغاء الاشتراك", "كيف يمكن إلغاء الاشتراك", "إلغاء الاشتراك من فضلك"],
    "german": [
        "Überweisungsgebühren erstatten",
        "Warum so hohe Überweisungsgebühren?",
        "Überweisungsgebühren prüfen",
    ],
    "emoji": ["🎉🎉", "👍", "🎉 👍 🎉", "👩‍👩‍👧", "❤️", "☎️ ⚠️⚠️", "1️⃣"],
    "more_emoji": ["😡", "😡😡😡", "😤"],
    "mixed": ["reset 密码 please", "密码 reset", "كلمة السر reset 密码", "how do I reset 密码"],
}
TEXTS = [text for group in GROUPS.values() for text in group]


def test_names_are_unique_legal_and_in_the_script_of_the_utterances(tmp_path: Path) -> None:
    intents = make_run(tmp_path / "run", GROUPS).intents()
    found = [intent.name for intent in intents]
    assert len(set(found)) == len(GROUPS)
    for name in found[1:]:
        assert name
        assert name == name.lower()
        assert "_".join(name.split()) == name
    assert found[0] == "bekannt"
    assert found[1] == "银行卡丢了"
    assert "إلغاء_الاشتراك" in found[2]
    assert "überweisungsgebühren" in found[3]
    assert found[4:6] == ["new_intent_4", "new_intent_5"]
    assert "密码" in found[6]
    assert [intent.named_by for intent in intents[4:6]] == ["number", "number"]


def test_files_of_a_run_hold_the_utterances_as_they_are(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", GROUPS)
    again = open_finished(run.path)
    assert again.assignments()["text"].to_pylist() == TEXTS
    assert set(again.assignments()["intent"].to_pylist()) == {i.name for i in again.intents()}
    assert read_intents(run.path) == again.intents()
    stored = (run.path / "intents.json").read_text(encoding="utf-8")
    assert "银行卡" in stored
    assert "👍" in stored
    card = (run.path / "README.md").read_text(encoding="utf-8")
    assert "إلغاء" in card
    for intent in again.intents():
        assert intent.exemplars
        assert "\n" not in intent.description
        assert not set(intent.exemplars) & set(intent.borderline)


def test_report_holds_every_utterance_and_lets_each_choose_its_direction(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", GROUPS)
    page = (run.path / "report.html").read_text(encoding="utf-8")
    start = page.index('id="report-data">') + len('id="report-data">')
    data = json.loads(page[start : page.index("</script>", start)])
    assert data["points"]["text"] == TEXTS
    assert data["intents"][2]["nearest"][0]["name"] == "bekannt"
    # Whatever is made of an utterance: the one pointed at, those found, exemplars and borderline.
    shown = re.findall(r"\{ text: points\.text\[\w+\].*?\}", page)
    shown += re.findall(r'element\("li", (\{ text\b.*?\})', page)
    assert len(shown) >= 3
    assert [each for each in shown if 'dir: "auto"' not in each] == []


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_files_of_utterances_are_read_as_they_are(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"calls.{form}"
    labels = ["bekannt" if text in GROUPS["bekannt"] else "" for text in TEXTS]
    if form == "csv":
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([("text", "intent"), *zip(TEXTS, labels, strict=True)])
    elif form == "jsonl":
        rows = [{"text": t, "intent": n or None} for t, n in zip(TEXTS, labels, strict=True)]
        lines = [json.dumps(row, ensure_ascii=False) for row in rows]
        path.write_text("\n".join(lines), encoding="utf-8")
    else:
        pq.write_table(pa.table({"text": TEXTS, "intent": labels}), path)
    corpus = load(str(path), text="text", label="intent")
    assert corpus.texts == TEXTS
    assert corpus.known == ("bekannt",)
