"""`ronid learn` on a small run: the next version, undo, kills, cancelling, two at once."""

import json
import random
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from ronid.judge import read_evidence
from ronid.learn import Job
from ronid.model import load_model
from ronid.review import Desk, open_desk
from ronid.review.events import (
    Accept,
    Action,
    Lock,
    Merge,
    Move,
    OutOfScope,
    Part,
    Reject,
    Rename,
    Split,
)
from ronid.review.state import same
from ronid.run import open_finished
from tests.helpers import cli_corpus
from tests.helpers.cli_corpus import Row, ok, ronid


@pytest.fixture
def run(fitted: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(fitted, tmp_path / "run"))


def decide(run: Path, *actions: Action, who: str = "Ann") -> None:
    desk = open_desk(run)
    for action in actions:
        desk.act(action, who, desk.version)
    desk.close()


def looked_at(run: Path) -> Desk:
    desk = open_desk(run)
    desk.close()
    return desk


def learn(run: Path, *options: str) -> dict[str, Any]:
    return dict(json.loads(ok("learn", run, "--device", "cpu", "--json", "--quiet", *options)))


def folder_of(run: Path) -> Path:
    pointer = run / "versions" / "current"
    number = pointer.read_text().strip() if pointer.exists() else "0"
    return run / "versions" / number if number != "0" else run


def intents(folder: Path) -> list[dict[str, Any]]:
    return list(json.loads((folder / "intents.json").read_text())["intents"])


def files(folder: Path) -> dict[str, bytes]:
    own = [path for path in folder.rglob("*") if path.is_file()]
    mine = [p for p in own if not {"versions", "cache"} & set(p.relative_to(folder).parts)]
    kept = [path for path in mine if not path.name.startswith("review.sqlite")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in kept}


def some(run: Path, id: str, count: int) -> tuple[int, ...]:
    """Return rows of an intent that nobody labelled."""
    desk = looked_at(run)
    rows = desk.view().state.rows(id)
    return tuple(int(row) for row in rows[~desk.base.given[rows]][:count])


def test_decisions_become_the_next_version_and_undo_goes_back(run: Path) -> None:
    before = files(run)
    moved, out = some(run, "i3", 3), some(run, "i1", 2)
    part = some(run, "i0", 20)
    decide(
        run, Move(moved, "i4"), OutOfScope(out), Accept("i4"), Rename("i3", "my own name"),
        Split("i0", (Part("half", "the half", part),)), Lock("i2"),
    )  # fmt: skip
    kept = looked_at(run).view().state
    done = learn(run, "--who", "Bob")
    assert files(run) == before
    assert (done["version"], done["decisions"], done["intents"]) == (1, 6, 6)
    assert done["not_held"] + done["held"] == 6
    assert [each["name"] for each in done["new"]] == ["the half"]
    table = pq.read_table(folder_of(run) / "assignments.parquet")
    names = [intent["name"] for intent in intents(folder_of(run))]
    assert names[:3] == [i["name"] for i in intents(run)[:3]]
    assert names[3] == "my own name"
    assert names[5] == "the half"
    index = table["index"].to_numpy()
    assert (index[list(moved)] == 4).all()
    locked = kept.places == kept.intents["i2"].slot
    assert np.array_equal(index[kept.places >= 0] == 2, locked[kept.places >= 0])
    assert (table["confidence"].to_numpy()[list(out)] == 0).all()
    state = looked_at(run).view().state
    assert set(state.out_rows().tolist()) == set(out)
    ids = looked_at(run).base.present
    assert ids == ("i0", "i1", "i2", "i3", "i4", "half")
    inside = state.places >= 0
    assert np.array_equal(
        np.array([ids.index(state.slots[s]) for s in state.places[inside]]), index[inside]
    )
    assert "trained on" in looked_at(run).entries()[-1].says
    assert looked_at(run).entries()[-1].event.who == "Bob"
    assert "6 decisions of Ann" in (folder_of(run) / "report.html").read_text()
    assert "back to version 0" in ok("undo", run)
    assert files(run) == before
    back = looked_at(run).view().state
    assert np.array_equal(back.places, kept.places)
    assert dict(back.intents) == dict(kept.intents)
    assert learn(run)["version"] == 1


def test_scores_go_by_name_where_a_new_intent_takes_the_number_of_a_known_one(run: Path) -> None:
    decide(run, Merge(("i0", "i1"), "i1"))  # the last intent, a new one, becomes number 0
    learn(run)
    found = intents(folder_of(run))
    known = {intent["name"] for intent in found if intent["known"]}
    assert [intent["known"] for intent in found] == [False, True, True, False]
    table = pq.read_table(folder_of(run) / "assignments.parquet").to_pylist()
    rows = [row for row in table if row["given"] is None and row["truth"] in known]
    by_name = 100 * np.mean([row["intent"] == row["truth"] for row in rows])
    scores = json.loads((folder_of(run) / "metrics.json").read_text())["scores"]
    assert scores["known_by_name"] == pytest.approx(by_name)
    assert by_name > 50
    checked = run.parent / "checked.csv"
    lines = [f'"{row["text"]}",{row["truth"]}' for row in rows]
    checked.write_text("\n".join(["text,intent", *lines]), encoding="utf-8")
    told = json.loads(ok("evaluate", run, checked, "--json", "--quiet"))["scores"]
    assert told["known_by_name"] > 50
    assert told["strict_acc"] == told["known_by_name"]


def test_a_second_training_goes_on_from_the_first(run: Path) -> None:
    decide(run, Merge(("i3", "i4"), "i3"), Move(some(run, "i0", 2), "i1"))
    first = learn(run)
    assert first["intents"] == 4
    assert len(first["gone"]) == 1
    refused = ronid("learn", run)
    assert refused.returncode == 2
    assert "nothing was decided since the last training" in refused.stderr
    state = looked_at(run).view().state
    rows = tuple(int(r) for r in state.rows("i3")[: state.size("i3") // 2])
    decide(run, Split("i3", (Part("new", "split again", rows),)), Reject("i2"))
    second = learn(run)
    assert (second["version"], second["intents"]) == (2, 4)
    assert looked_at(run).base.present == ("i0", "i1", "new", "i3")
    assert (looked_at(run).view().state.size("i2"), second["gone"]) == (0, ["unlock"])
    rows_ = json.loads(ok("history", run, "--json"))
    assert [row["version"] for row in rows_] == [0, 1, 2]
    ok("predict", run, "--text", "battery empty")
    ok("name", run, "--quiet")
    assert [i["name"] for i in intents(folder_of(run))][2] == "split again"
    ok("undo", run)
    earlier = looked_at(run)
    assert "new" in earlier.view().state.intents  # decisions are never lost
    assert earlier.base.present == ("i0", "i1", "i2", "i3")


def test_updates_of_a_run_that_learnt_and_learning_after_them(run: Path, tmp_path: Path) -> None:
    rows = some(run, "i0", 20)
    decide(run, Split("i0", (Part("half", "the half", rows),)), Merge(("i3", "i4"), "i4"))
    learn(run)
    before = looked_at(run).view().state
    odd = [Row(f"{word} gift voucher present {n}", "voucher", "") for n, word in
           enumerate(["card", "shop", "box", "gift", "code", "party"] * 3)]  # fmt: skip
    new = cli_corpus.write_csv(tmp_path / "new.csv", [*odd, *cli_corpus.rows()[:20]])
    done = json.loads(ok("update", run, new, "--device", "cpu", "--json", "--quiet"))
    assert [each["name"] for each in done["new"]][0] == "voucher"
    desk = looked_at(run)
    after = desk.view().state
    n = len(before.places)
    # By id: what an update brings takes the slots before those that people made.
    assert [after.of_row(r) for r in range(n)] == [before.of_row(r) for r in range(n)]
    assert "i5" in after.intents
    assert after.intents["i5"].name == "voucher"
    assert desk.base.present[:5] == ("i0", "i1", "i2", "half", "i4")
    decide(run, Accept("i5"))
    assert learn(run)["version"] == 3
    again = looked_at(run)
    assert again.view().state.intents["i5"].name == "voucher"
    assert (again.base.labels == desk.base.labels).all()


def test_what_was_decided_of_an_undone_update_is_not_taken_for_the_next(
    run: Path, tmp_path: Path
) -> None:
    def bring(word: str) -> dict[str, Any]:
        words = ["card", "shop", "box", "gift", "code", "party"] * 3
        rows = [Row(f"{each} {word} present {n}", word, "") for n, each in enumerate(words)]
        new = cli_corpus.write_csv(tmp_path / f"{word}.csv", rows)
        said = ok("update", run, new, "--device", "cpu", "--json", "--quiet")
        return dict(json.loads(said))

    old = some(run, "i0", 2)
    assert [each["name"] for each in bring("voucher")["new"]] == ["voucher"]
    new = tuple(int(row) for row in looked_at(run).view().state.rows("i5")[:3])
    decide(run, Rename("i5", "coupons"), Accept("i5"), Move(new, "i1"), Move(old, "i1"))
    ok("undo", run)
    assert [each["name"] for each in bring("helmet")["new"]] == ["helmet"]
    said: list[str] = []
    desk = open_desk(run, said=said.append)
    desk.close()
    state = desk.view().state
    assert [bool(entry.problem) for entry in desk.entries()] == [True, True, True, False]
    assert (state.intents["i5"].name, state.intents["i5"].status) == ("helmet", "open")
    assert {state.of_row(row) for row in new} == {"i5"}
    assert {state.of_row(row) for row in old} == {"i1"}
    assert "3 recorded action(s) do not fit" in said[0]
    assert "undone since" in said[0]
    told = ronid("export", run, "--to", "csv", "--out", tmp_path / "out", "--all", "--quiet")
    assert "3 recorded action(s) do not fit" in told.stderr
    written = [path.read_text(encoding="utf-8") for path in (tmp_path / "out").glob("*.csv")]
    assert any("helmet" in text for text in written)
    assert not any("coupons" in text for text in written)


def test_methods_without_prototypes_to_train_learn_by_moving_them(
    tmp_path: Path, encoder: Path, corpus: Path
) -> None:
    run = tmp_path / "run"
    ok(
        "fit", corpus, "--out", run, "--intents", "5", "--method", "kmeans", "--encoder", encoder,
        "--device", "cpu", "--quiet",
    )  # fmt: skip
    moved = some(run, "i3", 2)
    decide(run, Move(moved, "i4"), Merge(("i0", "i1"), "i0"))
    done = learn(run)
    assert (done["intents"], done["version"]) == (4, 1)
    ids = looked_at(run).base.present
    index = pq.read_table(folder_of(run) / "assignments.parquet")["index"].to_numpy()
    assert {ids[k] for k in index[list(moved)]} == {"i4"}
    assert (folder_of(run) / "encoder" / "weights.safetensors").samefile(
        run / "encoder" / "weights.safetensors"
    )
    ok("predict", run, "--text", "battery empty")


def test_a_run_that_learnt_other_names_is_judged_and_fitted_again(
    run: Path, encoder: Path, tmp_path: Path
) -> None:
    given = looked_at(run).base.given
    labelled = np.flatnonzero(given & (looked_at(run).base.labels == 0))
    moved = tuple(int(row) for row in labelled[:2])
    decide(run, Rename("i0", "another name"), Merge(("i1", "i2"), "i1"), Move(moved, "i3"))
    learn(run)
    settings = folder_of(run) / "config.toml"
    settings.write_text(settings.read_text().replace(str(encoder), str(tmp_path / "gone")))
    told = json.loads(
        ok("evaluate", run, "--refit-seed", "7", "--encoder", encoder, "--json", "--quiet")
    )
    assert -1 <= told["refit"] <= 1
    assert told["intents"][0]["name"] == "another name"

    finished = open_finished(run)
    found = read_evidence(finished, load_model(run, "cpu", str(encoder)))
    index = finished.assignments()["index"].to_numpy()
    assert np.array_equal(~found.free, given)
    assert np.array_equal(found.targets[given], index[given])
    assert {found.names[k] for k in found.targets[labelled[2:]]} == {"another name"}
    assert set(found.targets[list(moved)]) == {looked_at(run).base.present.index("i3")}


def test_a_label_that_was_put_out_of_scope_counts_as_none(run: Path, tmp_path: Path) -> None:
    base = looked_at(run).base
    labelled = np.flatnonzero(base.given & (base.labels == 0))
    out = [int(row) for row in labelled[:2]]
    decide(run, OutOfScope(tuple(out)))
    learn(run)
    counting = base.given.copy()
    counting[out] = False
    finished = open_finished(run)
    found = read_evidence(finished, load_model(run, "cpu"))
    assert np.array_equal(~found.free, counting)
    assert np.array_equal(finished.labelled(), counting)
    assert finished.assignments()["given"].null_count == int((~base.given).sum())  # none is lost

    asked = tmp_path / "asked.csv"
    lines = [f"{base.texts[row]},refund" for row in [*out, int(labelled[2])]]
    asked.write_text("\n".join(["text,intent", *lines]))
    said = ronid("evaluate", run, asked).stderr
    assert "1 of these utterances was labelled in the fit" in said

    new = cli_corpus.write_csv(tmp_path / "new.csv", cli_corpus.rows()[:20])
    ok("update", run, new, "--device", "cpu", "--quiet")
    updated = open_finished(run).labelled()
    assert np.array_equal(updated[: len(base)], counting)
    assert len(updated) == len(open_finished(run).assignments())
    for row in out:  # whoever takes it back has the label back
        decide(run, Move((row,), "i0"))
    learn(run)
    assert np.array_equal(open_finished(run).labelled()[: len(base)], base.given)


def test_nothing_decided_and_no_run_are_one_line(run: Path, tmp_path: Path) -> None:
    for folder, said in ((run, "nothing was decided"), (tmp_path / "no", "is not a run")):
        done = ronid("learn", folder)
        assert done.returncode == 2
        assert said in done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert not (run / "versions" / "current").exists()


def test_a_job_tells_how_far_it_is_and_what_it_did(run: Path) -> None:
    decide(run, Accept("i4"))
    job = Job(run, who="Ann", device="cpu")
    seen = set()
    until = time.monotonic() + 120
    while job.poll()["phase"] == "running" and time.monotonic() < until:
        seen.add(job.poll()["stage"])
        time.sleep(0.05)
    last = job.wait(10)
    assert last.phase == "done", last.says
    assert seen & {"encode", "contrast", "em", "write"}
    result = job.poll()["result"]
    assert result["version"] == 1
    assert result["verdicts"][0]["status"] == "held"
    assert folder_of(run).name == "1"


def test_two_at_once_are_refused_in_one_line_and_a_cancelled_one_changes_nothing(
    run: Path,
) -> None:
    decide(run, Accept("i4"))
    before, log = files(run), looked_at(run).version
    job = Job(run, device="cpu")
    until = time.monotonic() + 120
    while not (run / "versions" / "next").exists():
        assert time.monotonic() < until
        assert job.poll()["phase"] == "running"
        time.sleep(0.002)
    from ronid.errors import UsageError
    from ronid.learn.flow import learn_run

    with pytest.raises(UsageError, match="is being updated by another process; wait for it"):
        learn_run(run, device="cpu")
    job.cancel()
    assert job.wait(60).phase == "cancelled"
    assert job.poll()["result"] is None
    assert not (run / "versions" / "current").exists()
    assert not (run / "versions" / "next").exists()
    assert files(run) == before
    assert looked_at(run).version == log
    job.cancel()  # too late: nothing happens
    failed = Job(run / "nowhere", device="cpu").wait(60)
    assert failed.phase == "failed"
    assert "is not a run" in failed.says


def test_a_version_that_was_not_recorded_is_found_when_the_review_opens(run: Path) -> None:
    decide(run, Merge(("i3", "i4"), "i3"))
    shutil.copy(run / "review.sqlite", run / "kept.sqlite")
    learn(run)
    wanted = looked_at(run).view().state
    for file in run.glob("review.sqlite*"):  # as a kill between the two leaves it
        file.unlink()
    shutil.move(run / "kept.sqlite", run / "review.sqlite")
    desk = looked_at(run)
    assert same(desk.view().state, wanted)
    assert desk.version == 2
    assert looked_at(run).version == 2


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX")
def test_a_kill_at_any_moment_leaves_the_old_or_the_new_version(run: Path) -> None:
    decide(run, Accept("i4"), Merge(("i0", "i3"), "i0"))
    old, state = files(run), looked_at(run).view().state
    rng, seen = random.Random(0), set()
    for attempt in range(8):
        process = cli_corpus.start("learn", run, "--quiet", "--device", "cpu")
        until = time.monotonic() + 60
        while not (run / "versions" / "next").exists() and not process.ended():
            assert time.monotonic() < until
            time.sleep(0.002)
        time.sleep(rng.random() * 0.6 * attempt)
        process.send_signal(signal.SIGKILL)
        process.wait(60)
        pointer = run / "versions" / "current"
        number = int(pointer.read_text()) if pointer.exists() else 0
        seen.add(number)
        assert files(run) == old
        if number == 0:
            assert same(looked_at(run).view().state, state)
        else:
            folder = run / "versions" / "1"
            assert (folder / "report.html").exists()
            assert "trained on" in " ".join(e.says for e in looked_at(run).entries())
            ok("predict", run, "--text", "battery empty")
            ok("undo", run)
    assert 0 in seen
    assert learn(run)["version"] == 1
