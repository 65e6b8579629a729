"""In which order the cells of one or several configs are taken, and by whom."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from ronid.bench.order import expected_s, make_tasks, next_task, read_seconds
from ronid.bench.plan import BenchCell, make_plan
from ronid.bench.rows import append_row
from ronid.bench.sheets import Sheet, read_sheets
from ronid.errors import ConfigError, UsageError
from tests.helpers.benchmark_rows import made_row, skipped_row

METHODS = ["usnid", "clnn", "dpn"]


def sheet(name: str = "a", **changes: Any) -> Sheet:
    values = {"datasets": ["clinc"], "presets": ["fast"], "seeds": [0]} | changes
    return Sheet(make_plan(values), Path(f"{name}.jsonl"))


def tasks_of(*sheets: Sheet, seconds: dict[tuple[str, ...], float] | None = None) -> Any:
    return make_tasks(sheets, [each.plan.cells for each in sheets], seconds or {})


def taken_in_turn(tasks: Any, workers: int = 1, left_s: float = math.inf) -> list[list[BenchCell]]:
    """Let the processes take turns until all have nothing left to take."""
    taken, last = [0] * len(tasks), dict[int, int]()
    done: list[list[BenchCell]] = [[] for _ in range(workers)]
    busy = list(range(workers))
    while busy:
        for worker in tuple(busy):
            index = next_task(tasks, taken, worker, last.get(worker), left_s)
            if index is None:
                busy.remove(worker)
                continue
            taken[index], last[worker] = worker + 1, index
            done[worker].append(tasks[index].cell)
    return done


class TestNext:
    def test_processes_stay_with_their_dataset_then_help_where_most_is_left(self) -> None:
        tasks = tasks_of(sheet(datasets=["clinc", "banking"], seeds="0-3"))
        taken = [0] * 8
        assert next_task(tasks, taken, 0, None) == 0
        taken[0] = 1
        assert next_task(tasks, taken, 1, None) == 4  # another process begins another dataset
        taken[4] = 2
        assert next_task(tasks, taken, 0, 0) == 1
        assert next_task(tasks, taken, 2, None) == 1
        taken[1] = 3
        assert next_task(tasks, taken, 3, None) == 5  # where more is left
        taken[5:] = [2, 2, 2]
        assert next_task(tasks, taken, 1, 4) == 2
        assert next_task(tasks, [1] * 8, 1, 4) is None

    def test_first_config_goes_first_whatever_the_process_holds(self) -> None:
        tasks = tasks_of(
            sheet("a", datasets=["clinc", "banking"]), sheet("b", datasets=["banking", "clinc"])
        )
        assert [task.sheet for task in tasks] == [0, 0, 1, 1]
        taken = [1, 0, 0, 0]
        assert next_task(tasks, taken, 0, 0) == 1
        assert next_task(tasks, [1, 2, 0, 0], 0, 0) == 3  # then its own dataset of the second
        assert next_task(tasks, [1, 2, 0, 0], 2, None) == 2

    def test_longest_goes_first_and_the_unknown_before_it(self) -> None:
        seconds = {("usnid", "clinc", "all-MiniLM-L6-v2"): 10.0}
        seconds["dpn", "clinc", "all-MiniLM-L6-v2"] = 90.0
        tasks = tasks_of(
            sheet(methods=METHODS, presets=["published"], seeds=[0, 1]), seconds=seconds
        )
        (order,) = taken_in_turn(tasks)
        assert [cell.method for cell in order] == [
            name for name in ("clnn", "dpn", "usnid") for _ in range(2)
        ]
        assert [cell.seed for cell in order] == [0, 1] * 3

    def test_dataset_with_the_longest_cell_is_begun_and_helped_first(self) -> None:
        known = {("ronid", name, "all-MiniLM-L6-v2"): s for name, s in (("clinc", 5.0),)}
        known["ronid", "banking", "all-MiniLM-L6-v2"] = 50.0
        plan = sheet(datasets=["clinc", "banking"], seeds="0-3")
        tasks = tasks_of(plan, seconds=known)
        assert tasks[next_task(tasks, [0] * 8, 0, None)].cell.dataset == "banking"
        begun = [1, 1, 1, 0, 1, 0, 0, 0]  # one of banking left, three of clinc
        assert tasks[next_task(tasks, begun, 5, None)].cell.dataset == "banking"

    def test_what_does_not_fit_leaves_its_place_to_something_shorter(self) -> None:
        names = ("usnid", "clnn", "dpn")
        seconds = {
            (name, "clinc", "all-MiniLM-L6-v2"): s
            for name, s in zip(names, (500.0, 60.0, 30.0), strict=True)
        }
        first, second = (
            sheet(name, methods=methods, presets=["published"])
            for name, methods in (("a", ["usnid", "clnn"]), ("b", ["dpn"]))
        )
        tasks = tasks_of(first, second, seconds=seconds)
        methods = lambda left_s: [  # noqa: E731 - said once, used three times
            cell.method for cell in taken_in_turn(tasks, left_s=left_s)[0]
        ]
        assert methods(1000.0) == ["usnid", "clnn", "dpn"]
        assert methods(60.0) == ["clnn", "dpn"]
        assert methods(10.0) == []

    def test_cell_of_unknown_length_always_fits(self) -> None:
        assert next_task(tasks_of(sheet()), [0], 0, None, left_s=0.001) == 0


class TestSharedStages:
    def test_cells_that_share_stages_stay_in_one_process(self) -> None:
        plan = sheet(presets=["default"], variants=["", "-OT", "-Intra"], seeds="0-3")
        done = taken_in_turn(tasks_of(plan), workers=3)
        assert sum(map(len, done)) == 12
        for own in done:
            assert [cell.variant for cell in own] == ["", "-OT", "-Intra"] * (len(own) // 3)
        assert sorted({cell.seed for own in done for cell in own[::3]}) == [0, 1, 2, 3]

    def test_nobody_helps_with_what_another_process_has_begun(self) -> None:
        tasks = tasks_of(sheet(presets=["default"], variants=["", "-OT", "-Intra"]))
        assert next_task(tasks, [1, 0, 0], 1, None) is None
        assert next_task(tasks, [1, 0, 0], 0, 0) == 1

    def test_methods_on_one_autoencoder_stay_together_and_in_order(self) -> None:
        names = ["sae_kmeans", "dec", "dcn"]
        plan = sheet(methods=[*names, "usnid"], presets=["published"], encoders=["tfidf"])
        seconds = {
            (name, "clinc", "tfidf"): s
            for name, s in zip((*names, "usnid"), (1.0, 20.0, 40.0, 50.0), strict=True)
        }
        first, other = taken_in_turn(tasks_of(plan, seconds=seconds), workers=2)
        assert [cell.method for cell in first] == names  # 61 seconds together
        assert [cell.method for cell in other] == ["usnid"]

    def test_same_cells_of_two_configs_are_apart(self) -> None:
        first, second = (sheet(name, variants=["", "-OT"]) for name in "ab")
        tasks = tasks_of(first, second)
        assert next_task(tasks, [1, 0, 0, 0], 1, None) == 2


class TestSeconds:
    def test_median_of_the_most_alike_rows_without_what_was_shared(self, tmp_path: Path) -> None:
        where = {"memory_kind": "cuda", "method": "dec"}
        for seed, wall in enumerate((30.0, 50.0, 400.0)):
            row = made_row(1, seed, **where, wall_s=wall, shared_s=10.0)
            append_row(tmp_path / "one.jsonl", row)
        slow = made_row(1, 0, **where, preset="paper", wall_s=1000.0, shared_s=0.0)
        append_row(tmp_path / "two.jsonl", slow)
        known = read_seconds(sorted(tmp_path.glob("*.jsonl")), "cuda")

        def expected(**changes: Any) -> float | None:
            values = {"dataset": "clinc", "method": "dec", "variant": "", "preset": "fast"}
            values |= {"encoder": "all-MiniLM-L6-v2", "known_ratio": 0.5, "labelled_ratio": 0.1}
            return expected_s(BenchCell(**values | {"k_rule": "given", "seed": 9} | changes), known)

        assert expected() == 40.0
        assert expected(preset="paper") == 1000.0
        assert expected(variant="-OT") == 40.0
        assert expected(preset="published") == (40.0 + 390.0) / 2
        assert [expected(**other) for other in ({"dataset": "banking"}, {"method": "dcn"})] == [
            None,
            None,
        ]
        assert read_seconds([tmp_path / "one.jsonl"], "rss") == {}

    @pytest.mark.parametrize(("kind", "expected"), [("cuda", 30.0), ("rss", 50.0)])
    def test_processes_take_turns_on_a_gpu(
        self, tmp_path: Path, kind: str, expected: float
    ) -> None:
        row = made_row(1, 0, memory_kind=kind, jobs=10, wall_s=50.0, shared_s=0.0)
        append_row(tmp_path / "one.jsonl", row)
        known = read_seconds([tmp_path / "one.jsonl"], kind, jobs=6)
        assert set(known.values()) == {expected}

    def test_other_files_and_rows_without_seconds_are_passed_over(self, tmp_path: Path) -> None:
        append_row(tmp_path / "skips.jsonl", skipped_row("weights not available here"))
        append_row(tmp_path / "made.jsonl", made_row(1))
        (tmp_path / "other.jsonl").write_text(json.dumps({"epoch": 1}) + "\n")
        (tmp_path / "cut.jsonl").write_text('{"dataset": "cl')
        assert read_seconds(sorted(tmp_path.glob("*.jsonl")), "cuda") == {}


class TestSheets:
    @pytest.fixture
    def configs(self, tmp_path: Path) -> list[Path]:
        paths = []
        for name, encoder in (("a", "bert-base-uncased"), ("b", "tfidf")):
            path = tmp_path / f"{name}.toml"
            path.write_text(
                f'datasets = ["clinc"]\npresets = ["fast"]\nseeds = [0]\nencoders = ["{encoder}"]\n'
            )
            paths.append(path)
        return paths

    def test_every_config_has_a_file_of_its_own(self, configs: list[Path]) -> None:
        sheets = read_sheets(configs)
        assert [str(each.out) for each in sheets] == [
            "benchmarks/results/a.jsonl", "benchmarks/results/b.jsonl",
        ]  # fmt: skip
        elsewhere = read_sheets(configs, rows=Path("there"))
        assert [each.out for each in elsewhere] == [Path("there/a.jsonl"), Path("there/b.jsonl")]
        assert read_sheets(configs[:1], out=Path("mine"))[0].out == Path("mine")

    def test_one_file_for_several_configs_is_refused(self, configs: list[Path]) -> None:
        with pytest.raises(UsageError, match="--out is one file, for one CONFIG; .* --rows FOLDER"):
            read_sheets(configs, out=Path("rows.jsonl"))
        with pytest.raises(UsageError, match="--out and --rows"):
            read_sheets(configs[:1], out=Path("rows.jsonl"), rows=Path("there"))
        with pytest.raises(UsageError, match=r"'a.jsonl' twice"):
            read_sheets([*configs, configs[0].parent / "other" / "a.toml"])

    def test_folder_goes_to_the_configs_that_have_the_title(self, configs: list[Path]) -> None:
        first, second = read_sheets(configs, encoders={"bert-base-uncased": "folder"})
        assert first.plan.encoder_path("bert-base-uncased") == "folder"
        assert second.plan.encoder_paths == {}
        with pytest.raises(ConfigError, match="--encoder names 'mpnet', which none of the configs"):
            read_sheets(configs, encoders={"mpnet": "folder"})
