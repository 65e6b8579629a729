"""The one loop: averages, schedule, stops, history, progress."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from ronid.config import EncoderConfig, OptimiserConfig
from ronid.encode.encoder import build_encoder
from ronid.encode.rows import VectorRows
from ronid.errors import RonidError, UsageError
from ronid.train.loop import Stage, run_epochs, seeded
from ronid.train.optim import linear_factor, uncorrected_factor
from ronid.train.state import StageState, Training
from ronid.train.step import Picks
from ronid.types import IntArray

CPU = torch.device("cpu")
ROWS = VectorRows(torch.zeros(1000, 3))


@dataclass
class Told:
    """Progress that remembers."""

    begun: list[tuple[str, int]] = field(default_factory=list)
    steps: int = 0
    rows: list[Mapping[str, Any]] = field(default_factory=list)
    ended: int = 0

    def begin(self, stage: str, total: int) -> None:
        self.begun.append((stage, total))

    def advance(self, steps: int = 1, figures: Mapping[str, Any] | None = None) -> None:
        self.steps += steps
        if figures is not None:
            self.rows.append(figures)

    def end(self) -> None:
        self.ended += 1


@dataclass(frozen=True)
class StopAfter:
    """Stops after an epoch."""

    epoch: int

    def stop(self, row: Mapping[str, Any], state: StageState) -> bool:
        return bool(row["epoch"] >= self.epoch)

    def finish(self, state: StageState) -> None:
        state.scalars["finished"] = True


@pytest.fixture
def training() -> Training:
    config = EncoderConfig(trainable_layers=0, adapter_width=4)
    encoder = build_encoder(config, CPU, seed=0, given_dim=3)
    return Training(encoder, 0, OptimiserConfig(warmup_share=0.5), Told())


def weight_of(training: Training) -> Tensor:
    return training.encoder.trained_state()["adapter.inner.bias"]


def run(training: Training, stage: Stage, losses: list[float], **hooks: Any) -> StageState:
    """Run a stage whose every epoch has one batch per entry of `losses`."""
    state = StageState(training.encoder)

    def step(picks: Picks) -> Mapping[str, Tensor]:
        (pick,) = picks
        value = weight_of(training).sum() * 0 + losses[int(pick.index)]
        return {"loss": value, "loss_half": value / 2}

    run_epochs(training, stage, state, lambda _: single_rows(len(losses)), step, **hooks)
    return state


def single_rows(count: int) -> Iterator[tuple[IntArray]]:
    """Yield batches of one row each."""
    return ((np.array([row]),) for row in range(count))


def test_losses_are_averaged_over_the_steps_of_an_epoch(training: Training) -> None:
    run(training, Stage("s", ROWS, 2, 3, 0.1), [1.0, 2.0, 6.0])
    expected = {"stage": "s", "loss": 3.0, "loss_half": 1.5}
    assert training.history == [{**expected, "epoch": 1}, {**expected, "epoch": 2}]


def test_history_holds_the_figures_of_both_hooks(training: Training) -> None:
    run(
        training,
        Stage("s", ROWS, 2, 1, 0.1),
        [1.0],
        before_epoch=lambda epoch: {"before": epoch},
        after_epoch=lambda epoch: {"after": 10 * epoch},
    )
    assert [(row["before"], row["after"]) for row in training.history] == [(0, 0), (1, 10)]


def test_progress_hears_of_every_epoch(training: Training) -> None:
    run(training, Stage("s", ROWS, 3, 1, 0.1), [1.0])
    told = training.progress
    assert isinstance(told, Told)
    assert told.begun == [("s", 3)]
    assert (told.steps, told.ended) == (3, 1)
    assert told.rows == training.history


def test_stopper_ends_the_stage_and_has_the_last_word(training: Training) -> None:
    state = run(training, Stage("s", ROWS, 10, 1, 0.1, StopAfter(4)), [1.0])
    assert [row["epoch"] for row in training.history] == [1, 2, 3, 4]
    assert state.scalars["finished"]
    assert state.scalars["stopped"]


def test_learning_rate_follows_the_schedule_to_its_ends(
    training: Training, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates: list[float] = []

    def note(self: torch.optim.AdamW, *_: Any) -> None:
        rates.append(self.param_groups[0]["lr"])

    monkeypatch.setattr(torch.optim.AdamW, "step", note)
    run(training, Stage("s", ROWS, 2, 4, 0.8), [1.0] * 4)
    assert rates == [0.8 * linear_factor(step, 8, 0.5) for step in range(8)]
    assert rates[3] == 0.8
    assert rates[-1] == pytest.approx(0.8 / 4)


@pytest.mark.parametrize(("schedule_epochs", "total"), [(5, 20), (1, 8)])
def test_schedule_may_be_made_for_more_epochs_than_there_are(
    training: Training, monkeypatch: pytest.MonkeyPatch, schedule_epochs: int, total: int
) -> None:
    rates: list[float] = []

    def note(self: torch.optim.AdamW, *_: Any) -> None:
        rates.append(self.param_groups[0]["lr"])

    monkeypatch.setattr(torch.optim.AdamW, "step", note)
    stage = Stage("s", ROWS, 2, 4, 0.8, schedule_epochs=schedule_epochs)
    run(training, stage, [1.0] * 4)
    assert rates == [0.8 * linear_factor(step, total, 0.5) for step in range(8)]


def test_steps_are_as_long_as_without_bias_correction_where_asked(
    training: Training, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates: list[float] = []

    def note(self: torch.optim.AdamW, *_: Any) -> None:
        rates.append(self.param_groups[0]["lr"])

    monkeypatch.setattr(torch.optim.AdamW, "step", note)
    training.optimiser = OptimiserConfig(warmup_share=0.5, bias_correction=False)
    run(training, Stage("s", ROWS, 2, 4, 0.8), [1.0] * 4)
    factors = [linear_factor(step, 8, 0.5) * uncorrected_factor(step) for step in range(8)]
    assert rates == pytest.approx([0.8 * factor for factor in factors])


def test_gradients_are_clipped(training: Training) -> None:
    seen: list[float] = []
    training.optimiser = OptimiserConfig(clip_norm=0.25)
    state = StageState(training.encoder)

    def step(_: Picks) -> Mapping[str, Tensor]:
        weight = weight_of(training)
        if weight.grad is not None:  # that of the step before
            seen.append(float(weight.grad.norm()))
        return {"loss": 1000 * weight.sum()}

    run_epochs(training, Stage("s", ROWS, 1, 2, 0.1), state, lambda _: single_rows(2), step)
    assert seen == [pytest.approx(0.25, rel=1e-3)]


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_loss_that_is_no_number_is_an_error(training: Training, bad: float) -> None:
    with pytest.raises(RonidError, match=r"in stage 's', epoch 1; lower the learning rate \(0.1\)"):
        run(training, Stage("s", ROWS, 2, 2, 0.1), [1.0, bad])


def test_dropout_is_on_during_steps_and_every_epoch_anew(training: Training) -> None:
    modes: list[bool] = []
    state = StageState(training.encoder, {"head": torch.nn.Linear(3, 2)})

    def off(_: int) -> dict[str, Any]:
        training.encoder.train(False)
        state.heads["head"].train(False)
        return {}

    def step(_: Picks) -> Mapping[str, Tensor]:
        modes.extend([training.encoder.training, state.heads["head"].training])
        return {"loss": state.heads["head"].weight.sum()}

    stage = Stage("s", ROWS, 2, 1, 0.1)
    run_epochs(training, stage, state, lambda _: single_rows(1), step, before_epoch=off)
    assert modes == [True] * 4


def test_each_epoch_draws_other_batches_and_each_run_the_same(training: Training) -> None:
    def draws() -> list[int]:
        drawn: list[int] = []

        def batches(rng: np.random.Generator) -> Iterator[tuple[IntArray]]:
            yield (rng.integers(len(ROWS), size=1),)

        def step(picks: Picks) -> Mapping[str, Tensor]:
            drawn.extend([int(picks[0].index), int(torch.randint(1 << 30, ()))])
            return {"loss": weight_of(training).sum()}

        stage = Stage("s", ROWS, 3, 1, 0.1)
        run_epochs(training, stage, StageState(training.encoder), batches, step)
        return drawn

    first = draws()
    assert len(set(first)) == 6
    assert draws() == first


def test_step_gets_the_groups_of_a_batch_in_their_order(training: Training) -> None:
    groups = (np.array([3, 1]), np.empty(0, np.int64), np.array([7]))
    seen: list[list[list[int]]] = []

    def step(picks: Picks) -> Mapping[str, Tensor]:
        seen.append([pick.index.tolist() for pick in picks])
        return {"loss": weight_of(training).sum()}

    stage = Stage("s", ROWS, 1, 2, 0.1)
    run_epochs(training, stage, StageState(training.encoder), lambda _: [groups] * 2, step)
    assert seen == [[[3, 1], [], [7]]] * 2


def test_seeding_leaves_the_global_generator_alone() -> None:
    before = torch.get_rng_state()
    with seeded(CPU, 0, "stage", 1) as rng:
        inside = (torch.rand(1).item(), rng.random())
    assert torch.equal(torch.get_rng_state(), before)
    with seeded(CPU, 0, "stage", 1) as rng:
        assert (torch.rand(1).item(), rng.random()) == inside
    with seeded(CPU, 0, "stage", 2) as rng:
        assert (torch.rand(1).item(), rng.random()) != inside


def test_a_stage_trains_at_the_rate_that_suits_the_encoders_size(
    training: Training, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(training.encoder), "size", 40)
    training.optimiser = OptimiserConfig(warmup_share=0.0, lr_for_size=10, weight_decay=0.0)
    before = weight_of(training).detach().clone()

    def step(picks: Picks) -> Mapping[str, Tensor]:
        return {"loss": weight_of(training).sum()}

    stage = Stage("em", ROWS, 1, 1, 0.1)
    run_epochs(training, stage, StageState(training.encoder), lambda _: single_rows(1), step)
    # The first step of AdamW moves a weight by the learning rate.
    torch.testing.assert_close(before - weight_of(training), torch.full_like(before, 0.1 / 4))


def test_heads_drawn_anew_lose_their_moments_and_others_keep_them(training: Training) -> None:
    state = StageState(
        training.encoder, {"new": torch.nn.Linear(3, 2), "old": torch.nn.Linear(3, 2)}
    )
    training.optimiser = OptimiserConfig(warmup_share=0.0, weight_decay=0.0, clip_norm=1e9)
    moves: dict[str, list[float]] = {"new": [], "old": []}
    rates = [0.1 * linear_factor(step, 4, 0.0) for step in range(4)]

    def step(picks: Picks) -> Mapping[str, Tensor]:
        for name, seen in moves.items():
            seen.append(float(state.heads[name].weight[0, 0].detach()))
        sign = 1 if int(picks[0].index) == 0 else 1e-3  # a gradient that shrinks within an epoch
        return {"loss": sign * sum(head.weight.sum() for head in state.heads.values())}

    stage = Stage("s", ROWS, 2, 2, 0.1, fresh_heads=("new",))
    run_epochs(training, stage, state, lambda _: single_rows(2), step)
    # The first step of AdamW moves a weight by the whole rate, a later one by less or more.
    assert moves["new"][2] - moves["new"][3] == pytest.approx(rates[2], rel=1e-4)
    assert abs(moves["old"][2] - moves["old"][3] - rates[2]) > 0.02 * rates[2]


def test_a_stage_without_a_weight_to_train_is_refused_in_one_line() -> None:
    encoder = build_encoder(EncoderConfig(trainable_layers=0), CPU, seed=0, given_dim=3)
    stage = Stage("idle", ROWS, epochs=1, steps=1, lr=1.0)
    with pytest.raises(UsageError, match="nothing to train in stage 'idle': set encoder"):
        run_epochs(Training(encoder), stage, StageState(encoder), lambda _: [], lambda _: {})
