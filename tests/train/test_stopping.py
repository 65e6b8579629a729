"""When stages stop, and which weights they leave."""

import pytest
import torch

from ronid.config import EncoderConfig
from ronid.encode.encoder import build_encoder
from ronid.train.state import StageState
from ronid.train.stopping import AllEpochs, BestEpoch, FirstOf, SettledLabels
from tests.helpers.toy_corpus import TinyEncoder


@pytest.fixture
def state(tiny: TinyEncoder) -> StageState:
    config = EncoderConfig(trainable_layers=0, adapter_width=4)
    encoder = build_encoder(config, torch.device("cpu"), seed=0, given_dim=3)
    return StageState(encoder, {"classes": torch.nn.Linear(3, 2)})


def set_weights(state: StageState, value: float) -> None:
    with torch.no_grad():
        for weight in state.weights().values():
            weight.fill_(value)


def weights(state: StageState) -> set[float]:
    return {float(x) for weight in state.weights().values() for x in weight.detach().flatten()}


def test_best_epoch_comes_back(state: StageState) -> None:
    stopper, stops = BestEpoch("dev", patience=2), []
    for epoch, figure in enumerate([50.0, 70.0, 60.0, 70.0]):
        set_weights(state, float(epoch))
        stops.append(stopper.stop({"dev": figure}, state))
    assert stops == [False, False, False, True]
    stopper.finish(state)
    assert weights(state) == {1.0}
    assert state.scalars["best"] == 70.0


def test_better_epoch_starts_the_wait_anew(state: StageState) -> None:
    stopper = BestEpoch("dev", patience=2)
    assert not any(stopper.stop({"dev": x}, state) for x in (1.0, 0.5, 2.0, 0.5))
    assert stopper.stop({"dev": 2.0}, state)


def test_best_epoch_also_comes_back_when_the_wait_never_ran_out(state: StageState) -> None:
    stopper = BestEpoch("dev", patience=100)
    for epoch, figure in enumerate([3.0, 2.0]):
        set_weights(state, float(epoch))
        stopper.stop({"dev": figure}, state)
    stopper.finish(state)
    assert weights(state) == {0.0}


def test_epoch_without_the_figure_counts_as_neither(state: StageState) -> None:
    stopper = BestEpoch("dev", patience=1)
    set_weights(state, 5.0)
    assert not stopper.stop({}, state)
    stopper.finish(state)
    assert weights(state) == {5.0}


def test_labels_must_stay_settled_in_a_row(state: StageState) -> None:
    stopper = SettledLabels(change=0.1, patience=2)
    changes = [0.05, 0.5, 0.05, 0.1, 0.0, 0.0]
    assert [stopper.stop({"changed": c}, state) for c in changes] == [False] * 5 + [True]


def test_first_epoch_has_no_change_and_is_not_settled(state: StageState) -> None:
    assert not SettledLabels(change=0.1, patience=1).stop({}, state)


def test_epochs_of_warm_up_never_count_as_settled(state: StageState) -> None:
    stopper = SettledLabels(change=0.1, patience=1, after=1.5)
    rows = [{"changed": 0.0, "epoch": epoch} for epoch in (1, 2)]
    assert [stopper.stop(row, state) for row in rows] == [False, True]


def test_all_epochs_never_stops(state: StageState) -> None:
    assert not AllEpochs().stop({"changed": 0.0, "dev": 0.0}, state)


class TestFirstOf:
    def test_any_rule_ends_the_stage(self, state: StageState) -> None:
        stopper = FirstOf((BestEpoch("dev", patience=2), SettledLabels(change=0.1, patience=1)))
        assert not stopper.stop({"dev": 1.0, "changed": 0.5}, state)
        assert stopper.stop({"dev": 2.0, "changed": 0.0}, state)

    def test_all_rules_see_every_epoch(self, state: StageState) -> None:
        stopper = FirstOf((SettledLabels(change=0.1, patience=1), BestEpoch("dev", patience=9)))
        set_weights(state, 1.0)
        assert stopper.stop({"dev": 1.0, "changed": 0.0}, state)
        set_weights(state, 2.0)
        stopper.finish(state)
        assert weights(state) == {1.0}
