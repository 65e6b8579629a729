import json
import math
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ronid.bench.cell import Bench, problem_of, run_cell, scored_rows
from ronid.bench.order import make_tasks
from ronid.bench.plan import Plan, make_plan
from ronid.bench.rows import append_row, read_rows
from ronid.bench.runner import Event, Run, run_tasks, todo
from ronid.bench.sheets import Sheet
from ronid.cli.app import app
from ronid.errors import RonidError
from ronid.methods import ronid
from tests.helpers import toy_benchmark

SETTINGS: dict[str, Any] = {
    "encoder": {"adapter_width": 16},
    "contrast": {"epochs": 1, "batch": 64},
    "m_step": {"epochs": 2, "batch": 64},
}


def plan_of(encoder: str, **changes: Any) -> Plan:
    values = {"datasets": ["toy"], "presets": ["fast"], "encoders": ["tiny"], "seeds": [0]}
    return make_plan(values | {"settings": SETTINGS} | changes, {"tiny": encoder})


def run(plan: Plan, out: Path, **how: Any) -> tuple[list[Event], Any]:
    events: list[Event] = []
    sheet = Sheet(plan, out)
    tasks = make_tasks([sheet], [todo(plan, out).pending], {})
    ending = run_tasks(Run((sheet,), "cpu", **how), tasks, events.append)
    return [event for event in events if event.kind == "end"], ending.summaries[0]


def test_row_says_all_that_a_reader_needs(toy: Path, encoder: str, tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    plan = plan_of(encoder, variants=["", "-OT"], keep=["history", "map"])
    _, summary = run(plan, out)
    assert (summary.scored, summary.skipped, summary.failed) == (2, 0, 0)
    row, other = read_rows(out)
    assert (row["dataset"], row["method"], row["variant"], row["encoder"]) == (
        "toy", "ronid", "", "tiny",
    )  # fmt: skip
    assert (row["known_ratio"], row["labelled_ratio"], row["k_rule"], row["k"]) == (
        0.75, 0.1, "given", 6,
    )  # fmt: skip
    assert row["memory_kind"] == "rss"
    assert row["peak_memory_bytes"] > 2**20
    assert row["device"].startswith("cpu, ")
    assert set(row["versions"]) >= {"ronid", "python", "torch", "transformers", "numpy"}
    assert row["split_hash"] == other["split_hash"]
    assert row["config_hash"] != other["config_hash"]
    for rule in ("argmax", "refit"):
        scores = row["scores"][rule]
        assert scores.pop("tail_acc") is None  # all intents are of one size
        strict = [scores.pop(key) for key in ("strict_acc", "known_by_name", "strict_novel_acc")]
        assert set(scores) == {
            "nmi", "ari", "acc", "known_acc", "novel_acc", "h_score", "macro_acc",
        }  # fmt: skip
        assert scores["acc"] > 40  # chance is 17
        if rule == "refit":
            assert strict == [None] * 3  # clusters of k-means are not named
        else:
            assert 0 <= strict[0] <= scores["acc"]
        assert all(value == round(value, 4) for value in scores.values())
    assert {"encode", "contrast", "em"} <= set(row["seconds"])
    assert row["wall_s"] >= row["seconds"]["em"]
    epochs = [epoch for epoch in row["history"] if epoch["stage"] == "em"]
    assert all(0 <= epoch["accuracy"] <= 100 for epoch in epochs)
    assert {len(row["map"][key]) for key in ("x", "y", "truth", "predicted")} == {60}
    # The second cell finds the encodings of the first.
    assert (row["cache_hits"], other["cache_hits"] > 0) == (0, True)
    # Nothing of this machine is in the rows.
    assert encoder not in out.read_text()
    assert str(toy) not in out.read_text()


def test_same_cell_gives_the_same_scores_whatever_ran_before(toy: Path, encoder: str) -> None:
    plan = plan_of(encoder, seeds=[0, 1])
    shared = Bench(plan, "cpu")
    run_cell(shared, plan.cells[0])
    after = run_cell(shared, plan.cells[1]).row
    alone = run_cell(Bench(plan, "cpu"), plan.cells[1]).row
    assert after["scores"] == alone["scores"]


def test_scoring_on_dev_is_another_cell_and_covers_all_intents(toy: Path, encoder: str) -> None:
    plan = plan_of(encoder, scored_on="dev", keep=["map"])
    row = run_cell(Bench(plan, "cpu"), plan.cells[0]).row
    assert row["scored_on"] == "dev"
    assert sorted(set(row["map"]["truth"])) == list(range(6))
    assert len(row["map"]["truth"]) == 30
    assert plan.cells[0].coordinates != plan_of(encoder).cells[0].coordinates


def test_dev_and_test_rows_have_the_entities_of_the_job(toy: Path, encoder: str) -> None:
    texts = {}
    for part in ("dev", "test"):
        plain, other = plan_of(encoder, scored_on=part, entity_ratios=[0, 1.0]).cells
        rows = [scored_rows(problem_of(cell), cell) for cell in (plain, other)]
        assert all(old != new for old, new in zip(rows[0][0], rows[1][0], strict=True))
        assert rows[0][1].tolist() == rows[1][1].tolist()
        texts[part] = rows[1][0]
    assert (len(texts["dev"]), len(texts["test"])) == (30, 60)


def test_stored_cells_are_not_run_again(toy: Path, encoder: str, tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    run(plan_of(encoder), out)
    before = out.read_bytes()
    grown = plan_of(encoder, seeds=[0, 1])
    left = todo(grown, out)
    assert ([c.seed for c in left.done], [c.seed for c in left.pending]) == ([0], [1])
    assert left.stale == ()
    events, _ = run(grown, out)
    assert [event.task.cell.seed for event in events] == [1]
    assert out.read_bytes().startswith(before)


def test_row_of_other_settings_or_split_is_stale(toy: Path, encoder: str, tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    run(plan_of(encoder), out)
    changed = {**SETTINGS, "m_step": {"epochs": 1, "batch": 64}}
    assert len(todo(plan_of(encoder, settings=changed), out).stale) == 1
    assert len(todo(plan_of(encoder, keep=["history"]), out).pending) == 1
    run(plan_of(encoder, settings=changed), out)
    assert len(read_rows(out)) == 2
    for settings in (SETTINGS, changed):  # both stay, and both count as done
        assert todo(plan_of(encoder, settings=settings), out).pending == ()
    other = tmp_path / "other.jsonl"
    append_row(other, read_rows(out)[0] | {"split_hash": "0"})
    assert len(todo(plan_of(encoder), other).stale) == 1


def test_cells_that_cannot_run_say_why_and_are_tried_again(
    toy: Path, encoder: str, tmp_path: Path, connections: list[Any]
) -> None:
    out = tmp_path / "rows.jsonl"
    plan = make_plan(
        {
            "datasets": ["toy", "clinc"], "presets": ["fast"], "seeds": [0],
            "encoders": ["tiny", "bert-base-uncased", "gone"], "k_rules": ["given"],
            "settings": SETTINGS,
            "encoder_paths": {"bert-base-uncased": "no-such-owner/no-such-model"},
        },
        {"tiny": encoder, "gone": str(tmp_path / "no" / "folder")},
    )  # fmt: skip
    _, summary = run(plan, out)
    assert not connections
    assert (summary.scored, summary.skipped, summary.failed) == (1, 5, 0)
    reasons = {
        (row["dataset"], row["encoder"], row["k_rule"]): row["skip"]
        for row in read_rows(out)
        if "skip" in row
    }
    assert reasons["toy", "bert-base-uncased", "given"] == "weights not available here"
    assert "ronid data fetch clinc" in reasons["clinc", "tiny", "given"]
    assert "encoder folder 'gone' does not exist" in reasons["toy", "gone", "given"]
    assert str(tmp_path) not in out.read_text()
    # Said once is enough, and a skip is not done.
    size = out.stat().st_size
    assert len(todo(plan, out).pending) == 5
    run(plan, out)
    assert out.stat().st_size == size


def test_given_folder_stands_for_the_hub_weights(toy: Path, encoder: str) -> None:
    plan = make_plan(
        {"datasets": ["toy"], "presets": ["fast"], "seeds": [0], "settings": SETTINGS,
         "encoders": ["bert-base-uncased"],
         "encoder_paths": {"bert-base-uncased": "google-bert/bert-base-uncased"}},
        {"bert-base-uncased": encoder},
    )  # fmt: skip
    row = run_cell(Bench(plan, "cpu"), plan.cells[0]).row
    assert row["encoder"] == "bert-base-uncased"
    assert row["scores"]["argmax"]["acc"] > 40


def test_error_in_one_cell_leaves_the_others_alone(
    toy: Path, encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit = ronid.fit

    def sometimes(split: Any, config: Any, training: Any) -> Any:
        if training.seed == 0:
            raise RonidError("a loss stopped being a number")
        if training.seed == 1:
            raise ValueError(f"odd shape in {tmp_path}/secret/file.py\nmore")
        return fit(split, config, training)

    monkeypatch.setattr(ronid, "fit", sometimes)
    out = tmp_path / "rows.jsonl"
    _, summary = run(plan_of(encoder, seeds="0-2"), out)
    assert (summary.scored, summary.skipped, summary.failed) == (1, 2, 1)
    foreseen, odd, fine = read_rows(out)
    assert foreseen["skip"] == "a loss stopped being a number"
    assert odd["skip"] == "failed: ValueError: odd shape in file.py"
    assert "scores" in fine
    log = out.with_suffix(".log").read_text()
    assert "Traceback" in log
    assert "ValueError: odd shape" in log


def test_out_of_gpu_memory_is_a_reason(
    toy: Path, encoder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    def too_big(*_: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(ronid, "fit", too_big)
    plan = plan_of(encoder)
    outcome = run_cell(Bench(plan, "cpu"), plan.cells[0])
    assert outcome.row["skip"] == "out of GPU memory"
    assert outcome.failure == ""


def test_no_cell_starts_after_the_deadline(toy: Path, encoder: str, tmp_path: Path) -> None:
    plan = plan_of(encoder, seeds="0-3")
    events, summary = run(plan, tmp_path / "rows.jsonl", deadline=time.time() - 1)
    assert (events, summary.scored) == ([], 0)
    events, summary = run(plan, tmp_path / "rows.jsonl", deadline=time.time() + 0.001)
    assert summary.scored <= 1


def test_stored_rows_stand_where_the_data_is_not(
    toy: Path, encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ronid.bench import cell

    out = tmp_path / "rows.jsonl"
    run(plan_of(encoder), out)
    monkeypatch.setenv("RONID_DATA", str(tmp_path / "nowhere"))
    cell._split.cache_clear()
    assert todo(plan_of(encoder), out).pending == ()


def test_rows_hold_no_nan(toy: Path, encoder: str, tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    run(plan_of(encoder, known_ratios=[1.0]), out)  # then no intent is novel
    text = out.read_text()
    assert "NaN" not in text
    scores = json.loads(text)["scores"]["argmax"]
    assert scores["novel_acc"] is None
    assert math.isfinite(scores["known_acc"])


def write_config(folder: Path, seeds: str = "0-2") -> Path:
    path = folder / "small.toml"
    path.write_text(
        f'datasets = ["toy"]\npresets = ["fast"]\nencoders = ["tiny"]\nseeds = "{seeds}"\n'
        f"{toy_benchmark.QUICK}"
    )
    return path


def test_command_lists_runs_and_lists_again(
    toy: Path, encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["bench", "run", str(write_config(tmp_path)), "--encoder", f"tiny={encoder}"]
    listed = CliRunner().invoke(app, [*command, "--dry-run"])
    assert listed.stdout.count("to run  toy ronid fast tiny") == 3
    assert not (tmp_path / "benchmarks").exists()
    none = CliRunner().invoke(app, [*command, "--device", "cpu", "--minutes", "0"])
    assert "3 cells remain after 0 minutes; run the same command to go on" in none.output
    done = CliRunner().invoke(app, [*command, "--device", "cpu"])
    assert (done.exit_code, "3 of 3 cells done" in done.output) == (0, True)
    assert len(read_rows(tmp_path / "benchmarks" / "results" / "small.jsonl")) == 3
    listed = CliRunner().invoke(app, [*command, "--dry-run"])
    assert listed.stdout.count("done    toy ronid fast tiny") == 3
    changed = (tmp_path / "small.toml").read_text().replace("adapter_width = 16", "")
    (tmp_path / "small.toml").write_text(changed)
    stale = CliRunner().invoke(app, [*command, "--minutes", "0"])
    assert "3 cells are stored with other settings" in stale.output


def test_command_fails_at_the_end_when_a_cell_did(
    toy: Path, encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise ValueError("odd")

    monkeypatch.setattr(ronid, "fit", broken)
    out = tmp_path / "rows.jsonl"
    command = ["bench", "run", str(write_config(tmp_path, "0-1")), "--out", str(out), "--quiet"]
    done = CliRunner().invoke(app, [*command, "--encoder", f"tiny={encoder}", "--device", "cpu"])
    assert done.exit_code == 1
    assert "2 cells failed unexpectedly; see " in done.output
    assert len(read_rows(out)) == 2
