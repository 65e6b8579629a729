"""Cells that share early stages train them once and end as if each had trained its own."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from ronid.bench import cell as bench_cell
from ronid.bench import stages
from ronid.bench.cell import Bench, run_cell
from ronid.bench.plan import BenchCell, Plan, make_plan
from ronid.bench.stages import NEWEST, READS, CellStages, SharedStages
from ronid.bench.variants import VARIANTS
from ronid.config import updated
from ronid.progress import Stopwatch
from tests.helpers.toy_corpus import TinyEncoder

pytestmark = pytest.mark.usefixtures("toy")

CPU = torch.device("cpu")
SETTINGS: dict[str, Any] = {
    "pretrain": {"epochs": 1, "lr": 1e-3},
    "contrast": {"epochs": 1, "few_labels_epochs": 0, "batch": 64, "lr": 1e-3},
    "m_step": {"epochs": 2, "batch": 64, "lr": 1e-3},
}


def plan_of(encoder: str = "tiny", **changes: Any) -> Plan:
    values = {"datasets": ["toy"], "presets": ["default"], "encoders": ["tiny"], "seeds": [0]}
    given = values | {"settings": SETTINGS, "keep": ["history"]} | changes
    return make_plan(given, {"tiny": encoder})


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the early stages in the order in which they are really trained."""
    names: list[str] = []

    def noting(original: Callable[..., None]) -> Callable[..., None]:
        def run(training: Any, stage: Any, *rest: Any, **more: Any) -> None:
            names.append(stage.name)
            original(training, stage, *rest, **more)

        return run

    from ronid.train import loop

    for module in ("pretrain", "contrast", "reconstruct"):
        monkeypatch.setattr(f"ronid.train.{module}.run_epochs", noting(loop.run_epochs))
    return names


class TestRuns:
    def test_every_variant_ends_as_without_sharing_to_the_last_bit(
        self, encoder: str, trained: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(bench_cell, "_rounded", dict)
        plan = plan_of(encoder, variants=["", *VARIANTS])
        bench = Bench(plan, "cpu")
        shared = [run_cell(bench, cell).row for cell in plan.cells]
        # Once for all; then for -Discount, -MLM, +CE, -Replacement and -Size.
        once = ["pretrain", "contrast"]
        assert trained == [*once, "contrast", "contrast", *once, "contrast", *once]
        for cell, row in zip(plan.cells, shared, strict=True):
            alone = run_cell(Bench(plan, "cpu"), cell).row
            assert alone["shared_s"] == 0.0
            for key in ("scores", "history", "config_hash", "split_hash", "k"):
                assert row[key] == alone[key], (cell.variant, key)
            assert row["seconds"].keys() == alone["seconds"].keys()
        # The variants do differ; some of the later ones leave the toy's figures as they are.
        assert len({str(row["history"]) for row in shared[:9]}) == 9

    @pytest.mark.parametrize("preset", ["fast", "paper"])
    def test_frozen_layers_and_adapter_are_taken_over_as_well(
        self, encoder: str, trained: list[str], monkeypatch: pytest.MonkeyPatch, preset: str
    ) -> None:
        monkeypatch.setattr(bench_cell, "_rounded", dict)
        epochs = {"fast": {"epochs": 0}, "paper": {"epochs": 2, "trainable_layers": 2}}[preset]
        settings = SETTINGS | {"pretrain": epochs}
        plan = plan_of(encoder, presets=[preset], settings=settings, variants=["", "-OT"])
        bench = Bench(plan, "cpu")
        run_cell(bench, plan.cells[0])
        row = run_cell(bench, plan.cells[1]).row
        assert trained == (["contrast"] if preset == "fast" else ["pretrain", "contrast"])
        assert row["shared_s"] > 0
        alone = run_cell(Bench(plan, "cpu"), plan.cells[1]).row
        assert (row["scores"], row["history"]) == (alone["scores"], alone["history"])

    def test_row_counts_what_was_taken_over(self, encoder: str, trained: list[str]) -> None:
        names = ["", "-OT", "-Replacement", "-Contrast", "-MLM"]
        plan = plan_of(encoder, variants=names)
        bench = Bench(plan, "cpu")
        rows = {cell.variant: run_cell(bench, cell).row for cell in plan.cells}
        assert trained == ["pretrain", "contrast", "contrast", "contrast"]
        both, first = rows["-OT"]["shared_s"], rows["-Replacement"]["shared_s"]
        assert both > first > 0
        assert rows["-Contrast"]["shared_s"] == first
        assert rows[""]["shared_s"] == rows["-MLM"]["shared_s"] == 0.0
        assert rows["-OT"]["seconds"]["contrast"] == rows[""]["seconds"]["contrast"]
        assert rows["-Replacement"]["seconds"]["pretrain"] == rows[""]["seconds"]["pretrain"]
        assert "contrast" not in rows["-Contrast"]["seconds"]
        for row in rows.values():
            assert row["wall_s"] >= row["shared_s"]
            assert row["wall_s"] >= sum(row["seconds"].values()) - 0.001
        epochs = [(epoch["stage"], epoch["epoch"]) for epoch in rows["-OT"]["history"]]
        assert epochs == [("pretrain", 1), ("contrast", 1), ("em", 1), ("em", 2)]

    @pytest.mark.parametrize(
        "other", [{"seed": 1}, {"dataset": "toy2"}, {"encoder": "second"}, {"known_ratio": 0.5}]
    )
    def test_other_seed_split_or_encoder_trains_for_itself(
        self, encoder: str, tiny: TinyEncoder, trained: list[str], other: dict[str, Any]
    ) -> None:
        plan = plan_of(
            encoder,
            seeds=[0, 1],
            datasets=["toy", "toy2"],
            encoders=["tiny", "second"],
            known_ratios=[0.75, 0.5],
            variants=["", "-OT"],
            encoder_paths={"second": tiny("bert", seed=1)},
        )
        bench = Bench(plan, "cpu")
        run_cell(bench, plan.cells[0])
        row = run_cell(bench, replace(plan.cells[0], variant="-OT", **other)).row
        assert row["shared_s"] == 0.0
        assert trained == ["pretrain", "contrast"] * 2

    def test_cell_that_fails_leaves_what_it_finished(
        self, encoder: str, trained: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        plan = plan_of(encoder, variants=["", "-OT"])
        bench = Bench(plan, "cpu")

        def broken(*_: Any) -> None:
            raise ValueError("odd")

        with monkeypatch.context() as patch:
            patch.setattr("ronid.methods.ronid.alternate", broken)
            assert "skip" in run_cell(bench, plan.cells[0]).row
        assert run_cell(bench, plan.cells[1]).row["shared_s"] > 0
        assert trained == ["pretrain", "contrast"]


def saved(
    shared: SharedStages, cell: BenchCell, *finished: str, split: str = "split"
) -> CellStages:
    """Let a cell finish stages; its one weight tells how many."""
    own = shared.of(cell, split, CPU, Stopwatch())
    for count in range(1, len(finished) + 1):
        done = list(finished[:count])
        own.save({"encoder/w": torch.full((2,), float(count))}, {"finished": done, "history": []})
    return own


def found(
    shared: SharedStages, cell: BenchCell, split: str = "split", device: torch.device = CPU
) -> list[str]:
    """Return the finished stages that a cell would go on from."""
    taken = shared.of(cell, split, device, Stopwatch()).load()
    return [] if taken is None else list(taken.values["finished"])


def cells_of(plan: Plan) -> dict[str, BenchCell]:
    return {cell.variant: cell for cell in plan.cells}


def test_methods_on_one_autoencoder_train_it_once_and_end_as_if_alone(
    trained: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench_cell, "_rounded", dict)
    settings = {"reconstruct": {"epochs": 2, "batch": 64}}
    changes = {"methods": ["sae_kmeans", "dec", "dcn"], "presets": ["published"]}
    plan = make_plan(
        {"datasets": ["toy"], "encoders": ["tfidf"], "seeds": [0], "settings": settings, **changes}
    )
    later = {"epochs": 1}
    short = {"dec": {"self_train": later | {"epoch_steps": 2}}, "dcn": {"cluster": later}}
    plain = Plan.config
    monkeypatch.setattr(
        Plan, "config", lambda self, cell: updated(plain(self, cell), short.get(cell.method, {}))
    )
    bench = Bench(plan, "cpu")
    shared = [run_cell(bench, cell).row for cell in plan.cells]
    assert trained == ["reconstruct"]
    for cell, row in zip(plan.cells, shared, strict=True):
        alone = run_cell(Bench(plan, "cpu"), cell).row
        assert row["scores"] == alone["scores"], cell.method


class TestWhatFits:
    def test_longest_snapshot_whose_settings_fit_is_taken(self) -> None:
        plan = plan_of(variants=["", *VARIANTS])
        cells, shared = cells_of(plan), SharedStages(plan)
        saved(shared, cells[""], "pretrain", "contrast")
        expected = dict.fromkeys(cells, ["pretrain", "contrast"])
        early = ("-Contrast", "-Discount", "-Replacement")
        expected |= {name: ["pretrain"] for name in early}
        expected |= {"-MLM": [], "+CE": [], "-Size": []}
        assert {name: found(shared, cell) for name, cell in cells.items()} == expected

    @pytest.mark.parametrize("section", ["encoder", "optimiser", "pretrain"])
    def test_settings_of_every_stage_count(self, section: str) -> None:
        change = {
            "encoder": {"max_length_tokens": 64},
            "optimiser": {"clip_norm": 2.0},
            "pretrain": {"lr": 2e-3},
        }[section]
        own = {"-Other": {section: change}, "-Same": {section: change, "m_step": {"alpha": 0.5}}}
        plan = plan_of(variants=["", "-OT", *own], variant=own)
        cells, shared = cells_of(plan), SharedStages(plan)
        saved(shared, cells[""], "pretrain", "contrast")
        assert found(shared, cells["-OT"]) == ["pretrain", "contrast"]
        assert found(shared, cells["-Other"]) == []
        saved(shared, cells["-Other"], "pretrain", "contrast")
        assert found(shared, cells["-Same"]) == ["pretrain", "contrast"]

    def test_other_split_or_device_is_another_fit(self) -> None:
        plan = plan_of(variants=["", "-OT"])
        cells, shared = cells_of(plan), SharedStages(plan)
        saved(shared, cells[""], "pretrain", split="one")
        assert found(shared, cells["-OT"], "one") == ["pretrain"]
        assert found(shared, cells["-OT"], "two") == []
        assert found(shared, cells["-OT"], "one", torch.device("meta")) == []

    def test_method_whose_stages_are_unknown_shares_nothing(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delitem(READS, "ronid")
        plan = plan_of(variants=["", "-OT"])
        cells, shared = cells_of(plan), SharedStages(plan)
        saved(shared, cells[""], "pretrain", "contrast")
        assert found(shared, cells["-OT"]) == []

    def test_fit_with_a_stage_that_is_unknown_is_not_kept(self) -> None:
        plan = plan_of(variants=["", "-OT"])
        cells, shared = cells_of(plan), SharedStages(plan)
        saved(shared, cells[""], "warm-up", "pretrain", "contrast")
        assert found(shared, cells["-OT"]) == []

    def test_skipped_pretraining_is_part_of_what_fits(self) -> None:
        off = {**SETTINGS, "pretrain": {"epochs": 0}}
        plan = plan_of(settings=off, variants=["", "-OT", "-MLM", "-Contrast"])
        cells, shared = cells_of(plan), SharedStages(plan)
        saved(shared, cells[""], "contrast")
        names = ("-OT", "-MLM", "-Contrast")
        assert [found(shared, cells[name]) for name in names] == [["contrast"], ["contrast"], []]


class TestMemory:
    def test_only_the_newest_are_kept(self) -> None:
        plan = plan_of(seeds=[0, 1, 2], variants=["", "-OT"])
        shared = SharedStages(plan)
        firsts, others = plan.cells[::2], plan.cells[1::2]
        for cell in (*firsts, firsts[1]):
            saved(shared, cell, "pretrain")
        assert len(shared._snapshots) == NEWEST == 2
        assert [found(shared, cell) for cell in others] == [[], ["pretrain"], ["pretrain"]]

    def test_what_one_cell_alone_could_use_is_not_kept(self) -> None:
        plan = plan_of(seeds=[0, 1], variants=["", "-Replacement"])
        shared = SharedStages(plan)
        saved(shared, plan.cells[0], "pretrain", "contrast")
        assert [s.values["finished"] for s in shared._snapshots.values()] == [["pretrain"]]
        assert found(shared, plan.cells[1]) == ["pretrain"]

    def test_snapshot_does_not_follow_the_fit_it_came_from(self) -> None:
        plan = plan_of(variants=["", "-OT"])
        cells, shared = cells_of(plan), SharedStages(plan)
        weight, history = torch.ones(2), [{"loss": 1.0}]
        values = {"finished": ["pretrain"], "history": history}
        shared.of(cells[""], "split", CPU, Stopwatch()).save({"encoder/w": weight}, values)
        weight.fill_(9.0)
        history[0]["loss"] = 9.0
        for _ in range(2):  # nor the one that goes on from it
            taken = shared.of(cells["-OT"], "split", CPU, Stopwatch()).load()
            assert taken is not None
            assert taken.tensors["encoder/w"].tolist() == [1.0, 1.0]
            assert taken.values["history"] == [{"loss": 1.0}]
            taken.values["history"][0]["loss"] = 5.0


class Clock:
    """Time that passes when a test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        fake = SimpleNamespace(perf_counter=lambda: self.now)
        monkeypatch.setattr(stages, "time", fake)
        monkeypatch.setattr("ronid.progress.time", fake)

    def spend(self, watch: Stopwatch, **seconds: float) -> None:
        for stage, spent in seconds.items():
            watch.begin(stage, 1)
            self.now += spent
            watch.end()


class TestSeconds:
    def test_encoding_that_is_done_again_is_not_counted_twice(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        clock, plan = Clock(monkeypatch), plan_of(variants=["", "-OT", "-Replacement"])
        cells, shared = cells_of(plan), SharedStages(plan)
        values: dict[str, Any] = {"history": []}
        watch = Stopwatch()
        first = shared.of(cells[""], "split", CPU, watch)
        assert first.load() is None
        clock.spend(watch, encode=2, pretrain=10)
        clock.now += 1  # building heads, say
        first.save({}, values | {"finished": ["pretrain"]})
        clock.spend(watch, encode=3, contrast=20)  # the later stages need these rows too
        first.save({}, values | {"finished": ["pretrain", "contrast"]})
        assert first.shared_s == 0.0

        watch = Stopwatch()
        second = shared.of(cells["-OT"], "split", CPU, watch)
        second.load()
        assert second.shared_s == 2 + 10 + 1 + 20
        assert watch.seconds == {"encode": 2, "pretrain": 10, "contrast": 20}
        clock.spend(watch, encode=3)
        assert watch.seconds["encode"] == 5

    def test_snapshot_of_a_cell_that_went_on_counts_from_the_very_start(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        own = {"-Twice": {"contrast": {"epochs": 2}}}
        own["-Again"] = own["-Twice"] | {"m_step": {"epochs": 1}}
        clock, plan = Clock(monkeypatch), plan_of(variants=["", *own], variant=own)
        cells, shared = cells_of(plan), SharedStages(plan)
        watch = Stopwatch()
        first = shared.of(cells[""], "split", CPU, watch)
        clock.spend(watch, encode=2, pretrain=10)
        first.save({}, {"history": [], "finished": ["pretrain"]})

        watch = Stopwatch()
        second = shared.of(cells["-Twice"], "split", CPU, watch)
        second.load()
        clock.spend(watch, encode=3, contrast=40)
        second.save({}, {"history": [], "finished": ["pretrain", "contrast"]})

        third = shared.of(cells["-Again"], "split", CPU, Stopwatch())
        third.load()
        assert (second.shared_s, third.shared_s) == (12, 52)
