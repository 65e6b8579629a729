"""`ronid update`, `undo` and `history` on a run that lacks some of the intents."""

import csv
import json
import random
import shutil
import signal
import sys
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import load_file

from ronid.data.corpus import corpus_from
from ronid.update import flow
from tests.helpers import cli_corpus
from tests.helpers.cli_corpus import Row, ok, ronid

LATE = ("battery", "station")


def late_rows() -> list[Row]:
    return [row for row in cli_corpus.rows() if row.truth in LATE]


def early_rows() -> list[Row]:
    return [row for row in cli_corpus.rows() if row.truth not in LATE]


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory, encoder: Path, quick: Path) -> Path:
    """A run of three intents; tests copy it."""
    folder = tmp_path_factory.mktemp("first")
    corpus = cli_corpus.write_csv(folder / "first.csv", early_rows()[::2])
    ok(
        "fit", corpus, "--out", folder / "run", "--intents", "3", "--encoder", encoder,
        "--config", quick, "--device", "cpu", "--quiet",
    )  # fmt: skip
    return folder / "run"


@pytest.fixture
def run(first: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(first, tmp_path / "run"))


def update(run: Path, rows: list[Row], *options: str) -> dict[str, Any]:
    """Update a run with utterances and return what it says."""
    new = cli_corpus.write_csv(run.parent / "new.csv", rows)
    said = ok("update", run, new, "--device", "cpu", "--json", "--quiet", *options)
    return dict(json.loads(said))


def folder_of(run: Path) -> Path:
    number = (run / "versions" / "current").read_text().strip()
    return run / "versions" / number if number != "0" else run


def intents(folder: Path) -> list[dict[str, Any]]:
    return list(json.loads((folder / "intents.json").read_text())["intents"])


def files(folder: Path) -> dict[str, bytes]:
    """What a version wrote; the cache is shared by all of them."""
    inside = {path.relative_to(folder): path for path in folder.rglob("*") if path.is_file()}
    own = {
        name: path for name, path in inside.items() if name.parts[0] not in {"versions", "cache"}
    }
    return {str(name): path.read_bytes() for name, path in own.items()}


def test_new_intents_come_and_old_ones_stay_what_they_were(run: Path) -> None:
    before = files(run)
    done = update(run, [*late_rows(), *early_rows()[1::6]], "--least", "10")
    assert files(run) == before
    assert done["version"] == 1
    assert done["rows"] == len(late_rows()) + len(early_rows()[1::6])
    assert done["new"]
    now, table = folder_of(run), pq.read_table(folder_of(run) / "assignments.parquet")
    old, new = intents(run), intents(now)
    for a, b in zip(old, new, strict=False):
        assert (a["index"], a["name"], a["known"]) == (b["index"], b["name"], b["known"])
        assert b["size"] >= a["size"]
    weights = load_file(run / "encoder" / "weights.safetensors")["prototypes"]
    grown = load_file(now / "encoder" / "intents.safetensors")["prototypes"]
    assert grown[: len(old)].tobytes() == weights.tobytes()
    assert len(grown) == len(new) == done["intents"]
    shared = now / "encoder" / "weights.safetensors"
    assert shared.samefile(run / "encoder" / "weights.safetensors")
    assert len(table) == done["utterances"]
    assert len(table) + done["collected"] == len(early_rows()[::2]) + done["rows"]
    assert len(set(table["id"].to_pylist())) == len(table)
    made = {each["name"] for each in done["new"]}
    truth = {row.text: row.truth for row in cli_corpus.rows()}
    mine = zip(table["intent"].to_pylist(), table["text"].to_pylist(), strict=True)
    late = [truth[text] in LATE for name, text in mine if name in made]
    assert np.mean(late) > 0.7


def test_every_other_verb_works_on_an_updated_run(run: Path, tmp_path: Path) -> None:
    done = update(run, late_rows(), "--least", "10")
    truth = tmp_path / "truth.csv"
    lines = [f"{row.text},{row.truth}" for row in cli_corpus.rows()]
    truth.write_text("\n".join(["text,intent", *lines]))
    assert json.loads(ok("evaluate", run, truth, "--json", "--quiet"))["rows"] == len(lines)
    answer = json.loads(ok("predict", run, "--text", late_rows()[5].text, "--json"))
    assert answer[0]["intent"] in [each["name"] for each in done["new"]]
    assert answer[0]["accepted"]
    page = Path(ok("report", run).strip())
    assert page == folder_of(run) / "report.html"
    assert "Version 1" in page.read_text()
    names = [intent["name"] for intent in intents(folder_of(run)) if intent["known"]]
    ok("name", run, "--quiet")
    assert [i["name"] for i in intents(folder_of(run)) if i["known"]] == names
    assert "Version 1" in page.read_text()
    ok("evaluate", run, "--quiet")
    refused = ronid("fit", "--resume", run)
    assert refused.returncode == 2
    assert "finished already" in refused.stderr


def test_undo_goes_back_step_by_step_and_history_lists(run: Path) -> None:
    before = files(run)
    update(run, late_rows()[::2], "--least", "10")
    between = files(folder_of(run))
    assert between
    update(run, late_rows()[1::2])
    rows = json.loads(ok("history", run, "--json"))
    assert [row["version"] for row in rows] == [0, 1, 2]
    assert "new.csv" in ok("history", run)
    assert "back to version 1" in ok("undo", run)
    assert files(folder_of(run)) == between
    back = json.loads(ok("undo", run, "--json"))
    assert (back["version"], back["intents"]) == (0, 3)
    assert files(run) == before
    refused = ronid("undo", run)
    assert refused.returncode == 2
    assert "no update to undo" in refused.stderr


def test_what_was_collected_waits_for_more_of_its_kind(run: Path) -> None:
    some = update(run, late_rows()[::12], "--least", "12")
    assert some["new"] == []
    assert some["collected"] > 0
    more = update(run, [row for i, row in enumerate(late_rows()) if i % 12], "--least", "12")
    assert more["new"]
    table = pq.read_table(folder_of(run) / "assignments.parquet")
    texts = set(table["text"].to_pylist())
    assert texts & {row.text for row in late_rows()[::12]}


def test_labels_are_kept_and_new_names_become_known_intents(run: Path) -> None:
    rows = [Row(row.text, "flat battery" if i % 2 else "", row.truth) for i, row in
            enumerate(row for row in late_rows() if row.truth == "battery")]  # fmt: skip
    odd = Row("please refund money now then", "unlock", "refund")
    done = update(run, [*rows, odd])
    assert [(new["name"], new["known"]) for new in done["new"]][0] == ("flat battery", True)
    table = pq.read_table(folder_of(run) / "assignments.parquet").to_pylist()
    given = {row["text"]: row["given"] for row in table}
    found = {row["text"]: row["intent"] for row in table}
    assert all(found[text] == label for text, label in given.items() if label)
    assert found[odd.text] == "unlock"
    ok("name", run, "--quiet")
    last = intents(folder_of(run))[3]
    assert (last["name"], last["known"]) == ("flat battery", True)


def test_what_all_fits_makes_nothing_new(run: Path) -> None:
    done = update(run, early_rows()[::2])
    assert done["new"] == []
    assert (done["fitted"], done["collected"]) == (len(early_rows()[::2]), 0)
    assert done["intents"] == 3


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("text,intent\n", (), "no "),
        ("text\nhello\n", ("--threshold", "2"), "from 0 (all fit) to 1"),
        ("text\nhello\n", ("--least", "1"), "give 2 or more"),
    ],
)
def test_bad_input_is_one_line_and_changes_nothing(
    run: Path, content: str, options: tuple[str, ...], message: str
) -> None:
    (run.parent / "new.csv").write_text(content)
    done = ronid("update", run, run.parent / "new.csv", *options, "--quiet")
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (run / "versions" / "current").exists()


def test_runs_that_cannot_be_updated_are_refused(run: Path, corpus: Path) -> None:
    about = json.loads((run / "model.json").read_text())
    for change, message in (({"given_dim": 4}, "made from embeddings"), ({"scope": None}, "fits")):
        (run / "model.json").write_text(json.dumps(about | change))
        done = ronid("update", run, corpus, "--quiet")
        assert (done.returncode, message in done.stderr) == (2, True), done.stderr
    facts = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(facts | {"finished": False}))
    assert "is not finished" in ronid("update", run, corpus).stderr


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX")
def test_a_kill_at_any_moment_leaves_the_old_or_the_new_version(run: Path) -> None:
    new = cli_corpus.write_csv(run.parent / "new.csv", late_rows())
    update(run, early_rows()[1::8])
    old = files(folder_of(run))
    rng, seen = random.Random(0), set()
    for attempt in range(8):
        process = cli_corpus.start("update", run, new, "--quiet")
        until = time.monotonic() + 60
        while not (run / "versions" / "next").exists() and not process.ended():
            assert time.monotonic() < until
            time.sleep(0.002)
        time.sleep(rng.random() * 0.25 * attempt)
        process.send_signal(signal.SIGKILL)
        process.wait(60)
        number = int((run / "versions" / "current").read_text())
        seen.add(number)
        folder = run / "versions" / str(number)
        if number == 1:
            assert files(folder) == old
        else:
            assert number == 2
            assert len(json.loads((folder / "run.json").read_text())["updates"]) == 2
            assert (folder / "report.html").exists()
            ok("predict", run, "--text", "battery empty")
            ok("undo", run)
    assert 1 in seen
    assert update(run, late_rows(), "--least", "10")["version"] == 2


@pytest.mark.slow
def test_demo_finds_the_intents_that_were_held_back(tmp_path: Path) -> None:
    from ronid.data.demo import demo_corpus

    corpus = demo_corpus()
    late = {"gift_card_purchase", "student_discount", "ebike_battery_dead"}
    assert corpus.truth is not None
    rows = list(zip(corpus.texts, corpus.labels, corpus.truth, strict=True))
    come = [truth in late or i % 12 == 0 for i, (_, _, truth) in enumerate(rows)]
    for name, wanted in (("first", False), ("new", True)):
        with (tmp_path / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("text", "intent"))
            writer.writerows(
                (t, g or "") for (t, g, _), c in zip(rows, come, strict=True) if c == wanted
            )
    run = tmp_path / "run"
    fit = ("--intents", "21", "--preset", "fast", "--device", "cpu", "--quiet")
    ok("fit", tmp_path / "first.csv", "--out", run, *fit)
    done = json.loads(ok("update", run, tmp_path / "new.csv", "--json", "--quiet"))
    truth = {text: name for text, _, name in rows}
    table = pq.read_table(folder_of(run) / "assignments.parquet").to_pylist()
    found = set()
    for new in done["new"]:
        members = [truth[row["text"]] for row in table if row["intent"] == new["name"]]
        most = max(set(members), key=members.count)
        assert members.count(most) / len(members) > 0.7
        found.add(most)
    assert len(found & late) >= 2
    assert found <= late


def test_a_version_predicts_with_what_its_adapter_learnt(run: Path) -> None:
    from ronid.model import load_model

    texts = [row.text for row in late_rows()]
    before = load_model(run, "cpu").transform(texts)
    assert update(run, late_rows(), "--least", "10")["new"]
    table = pq.read_table(folder_of(run) / "assignments.parquet")
    kept = load_file(folder_of(run) / "embeddings.safetensors")
    now = load_model(run, "cpu")
    features = now.transform(table["text"].to_pylist())
    np.testing.assert_allclose(features, kept["embeddings"] * kept["scale"], atol=2e-3)
    assert np.abs(now.transform(texts) - before).max() > 0.01
    ok("undo", run)
    np.testing.assert_array_equal(load_model(run, "cpu").transform(texts), before)


def test_only_the_last_two_versions_keep_what_the_frozen_encoder_said(run: Path) -> None:
    sizes = [len(pq.read_table(run / "assignments.parquet"))]
    for part in range(3):
        update(run, early_rows()[1::2][10 * part : 10 * part + 10])
        sizes.append(len(pq.read_table(folder_of(run) / "assignments.parquet")))
    assert len(set(sizes)) == 4
    assert {path.name for path in (run / "cache").iterdir()} == {str(size) for size in sizes[-2:]}


def test_without_the_cache_an_update_ends_as_with_it(run: Path) -> None:
    done = update(run, late_rows(), "--least", "10")
    assert done["new"]
    table = pq.read_table(folder_of(run) / "assignments.parquet")
    ok("undo", run)
    shutil.rmtree(run / "cache")
    again = update(run, late_rows(), "--least", "10")
    assert again["new"] == done["new"]
    other = pq.read_table(folder_of(run) / "assignments.parquet")
    assert other["index"].to_pylist() == table["index"].to_pylist()
    sizes = {str(len(pq.read_table(run / "assignments.parquet"))), str(len(table))}
    assert {path.name for path in (run / "cache").iterdir()} == sizes


def test_an_update_that_waited_for_another_builds_on_it(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = early_rows()[1::2][:10], early_rows()[1::2][10:16]
    whole = flow.next_version

    def after_another(path: Path) -> AbstractContextManager[Path]:
        """Just before this update gets the lock, another one is done."""
        monkeypatch.setattr(flow, "next_version", whole)
        update(run, first)
        return whole(path)

    monkeypatch.setattr(flow, "next_version", after_another)
    corpus = corpus_from([row.text for row in second], [None] * len(second))
    done = flow.update_run(run, corpus, device="cpu")
    assert done.version == 2
    before = len(pq.read_table(run / "assignments.parquet"))
    assert done.utterances + done.collected == before + len(first) + len(second)


def test_a_file_that_comes_twice_is_told(run: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.csv"
    texts = [row.text for row in early_rows()[1::2][:8]]
    new.write_text("\n".join(["id,text", *(f"n{i},{text}" for i, text in enumerate(texts))]))
    once = ronid("update", run, new, "--id", "id", "--device", "cpu")
    twice = ronid("update", run, new, "--id", "id", "--device", "cpu")
    assert (once.returncode, twice.returncode) == (0, 0)
    assert "in the run already" not in once.stderr
    assert "ids are in the run already; if this file was brought in before" in twice.stderr
    plain = cli_corpus.write_csv(tmp_path / "plain.csv", early_rows()[::2][:5])
    said = ronid("update", run, plain, "--device", "cpu").stderr
    assert "5 of 5 texts are in the run already" in said


def test_a_file_that_comes_twice_is_told_where_some_of_it_was_collected(
    run: Path, tmp_path: Path
) -> None:
    rows = late_rows()[:3]
    assert update(run, rows, "--threshold", "1")["collected"] == len(rows)
    new = tmp_path / "new.csv"
    lines = [f"n{i},{row.text}" for i, row in enumerate(rows)]
    new.write_text("\n".join(["id,text", *lines]))
    options = ("--device", "cpu", "--threshold", "1")
    ids_are_new = ronid("update", run, new, "--id", "id", *options)
    assert "3 of 3 texts are in the run already" in ids_are_new.stderr
    new.write_text("\n".join(["id,text", "n0,something else", "n9,and more"]))
    one_id = ronid("update", run, new, "--id", "id", *options)
    assert "1 of 2 ids are in the run already" in one_id.stderr


def test_ids_of_a_file_are_not_compared_with_numbers_that_ronid_gave(
    run: Path, tmp_path: Path
) -> None:
    new, options = tmp_path / "new.csv", ("--device", "cpu", "--threshold", "1")
    assert update(run, late_rows()[:3], "--threshold", "1")["collected"] == 3  # numbered as well
    rows = len(pq.read_table(run / "assignments.parquet"))
    texts = [row.text for row in late_rows()[3:8]]
    ids = ["1", "2", "3", str(rows + 1), str(rows + 3)]
    lines = [f"{id},{text}" for id, text in zip(ids, texts, strict=True)]
    new.write_text("\n".join(["id,text", *lines]))
    once = ronid("update", run, new, "--id", "id", *options)
    assert (once.returncode, "already" in once.stderr) == (0, False), once.stderr
    twice = ronid("update", run, new, "--id", "id", *options)
    assert "5 of 5 ids are in the run already" in twice.stderr
    fits = ronid("update", run, new, "--id", "id", "--device", "cpu", "--threshold", "0")
    assert "5 of 5 ids are in the run already" in fits.stderr
    kept = pq.read_table(folder_of(run) / "assignments.parquet")
    assert not (folder_of(run) / "collected.parquet").exists()
    assert kept["numbered"].to_pylist() == [True] * (rows + 3) + [False] * 15
    again = ronid("update", run, new, "--id", "id", *options)
    assert "5 of 5 ids are in the run already" in again.stderr


def test_whole_numbers_of_a_run_that_does_not_say_whose_they_are_are_not_compared(
    run: Path, tmp_path: Path
) -> None:
    path, new = run / "assignments.parquet", tmp_path / "new.csv"
    table = pq.read_table(path).drop_columns(["numbered"])
    ids = ["a7", *table["id"].to_pylist()[1:]]
    pq.write_table(table.set_column(table.column_names.index("id"), "id", pa.array(ids)), path)
    new.write_text("id,text\n2,something else\n3,and more\n")
    once = ronid("update", run, new, "--id", "id", "--device", "cpu", "--threshold", "0")
    assert (once.returncode, "already" in once.stderr) == (0, False), once.stderr
    new.write_text("id,text\n2,something new\n4,and other\na7,words\n")
    twice = ronid("update", run, new, "--id", "id", "--device", "cpu", "--threshold", "0")
    assert "2 of 3 ids are in the run already" in twice.stderr


def test_an_update_says_what_it_guessed_and_which_ids_repeat(run: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.csv"
    lines = [f"c{i // 2},web,{row.text}," for i, row in enumerate(early_rows()[1::2][:4])]
    new.write_text("\n".join(["conv_id,channel,message,category", *lines, "c9,web,,"]))
    done = ronid("update", run, new, "--id", "conv_id", "--device", "cpu")
    assert done.returncode == 0
    assert done.stderr.splitlines()[:4] == [
        "column 'message' is read as the text; to use another, pass --text NAME",
        "column 'category' is read as the label; to use another, pass --label NAME, "
        'or --label "" for none',
        "2 ids occur more than once, such as 'c0'",
        "1 of 5 rows have no text and were left out",
    ]
    quiet = ronid("update", run, new, "--device", "cpu", "--quiet")
    assert "column" not in quiet.stderr


def test_a_label_that_differs_by_case_only_is_told(run: Path, tmp_path: Path) -> None:
    known = next(each["name"] for each in intents(run) if each["known"])
    new = tmp_path / "new.csv"
    first, second, third = (row.text for row in late_rows()[:3])
    new.write_text(f"text,intent\n{first},{known.upper()}\n{second},Taxi\n{third},taxi\n")
    said = ronid("update", run, new, "--device", "cpu").stderr
    assert f"label '{known.upper()}' makes an intent of its own beside '{known}'" in said
    assert "label 'taxi' makes an intent of its own beside 'Taxi'" in said
    assert said.count("makes an intent of its own") == 2


def test_what_was_collected_stays_when_the_cache_is_lost(run: Path) -> None:
    stray = late_rows()
    collected = update(run, stray[:3], "--threshold", "1")["collected"]
    assert collected
    shutil.rmtree(run / "cache")
    assert update(run, stray[3:6], "--threshold", "1")["collected"] > collected


def test_vectors_of_what_came_are_kept_behind_those_before(run: Path) -> None:
    before = len(load_file(run / "embeddings.safetensors")["embeddings"])
    update(run, early_rows()[1::2][:20])
    folder = folder_of(run)
    rows = pq.read_table(folder / "assignments.parquet").num_rows
    kept = load_file(folder / "embeddings.safetensors")
    assert len(kept["embeddings"]) == rows > before
    old = load_file(run / "embeddings.safetensors")
    np.testing.assert_allclose(
        kept["embeddings"][:before] * kept["scale"],
        old["embeddings"] * old["scale"],
        atol=2e-3 * float(old["scale"][0]),
    )


def test_labels_may_come_to_a_run_that_was_fitted_without_any(
    tmp_path: Path, encoder: Path, quick: Path
) -> None:
    run = tmp_path / "run"
    corpus = cli_corpus.write_csv(tmp_path / "first.csv", early_rows()[::3])
    ok(
        "fit", corpus, "--label", "", "--out", run, "--intents", "3", "--encoder", encoder,
        "--config", quick, "--device", "cpu", "--quiet",
    )  # fmt: skip
    assert pq.read_schema(run / "assignments.parquet").field("given").type == pa.string()
    table = pq.read_table(run / "assignments.parquet")  # as older versions wrote it
    at = table.schema.get_field_index("given")
    pq.write_table(table.set_column(at, "given", pa.nulls(len(table))), run / "assignments.parquet")
    done = update(run, early_rows()[1::3])
    assert done["labelled"] > 0
    given = set(pq.read_table(folder_of(run) / "assignments.parquet")["given"].to_pylist())
    assert given > {None}


def test_a_text_that_comes_again_goes_where_it_was(run: Path) -> None:
    table = pq.read_table(run / "assignments.parquet")
    text, index = table["text"][5].as_py(), table["index"][5].as_py()
    done = update(run, [Row(text, "", "")] * 40, "--least", "10")
    assert (done["new"], done["fitted"], done["collected"], done["aside"]) == ([], 40, 0, 0)
    now = pq.read_table(folder_of(run) / "assignments.parquet")
    assert now["index"].to_pylist()[len(table) :] == [index] * 40
