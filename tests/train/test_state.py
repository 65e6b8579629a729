"""The state of a stage: tensors change in place, so that whoever holds one sees the change."""

from pathlib import Path

import pytest
import torch
from torch import nn

from ronid.config import EncoderConfig
from ronid.encode.encoder import build_encoder
from ronid.train.checkpoint import Checkpoint
from ronid.train.state import StageState, Training, head_weights


@pytest.fixture
def state() -> StageState:
    config = EncoderConfig(trainable_layers=0, adapter_width=4)
    return StageState(build_encoder(config, torch.device("cpu"), seed=0, given_dim=3))


def test_put_keeps_the_storage(state: StageState) -> None:
    state.put("prototypes", torch.zeros(2, 3))
    held = state.tensors["prototypes"]
    state.put("prototypes", torch.ones(2, 3))
    assert state.tensors["prototypes"] is held
    assert torch.equal(held, torch.ones(2, 3))


def test_put_copies_so_that_the_given_tensor_stays_its_own(state: StageState) -> None:
    for value in (torch.zeros(3), torch.ones(3)):
        state.put("labels", value)
        value.fill_(9.0)
        assert not (state.tensors["labels"] == 9.0).any()


@pytest.mark.parametrize("other", [torch.ones(4), torch.ones(3, dtype=torch.int64)])
def test_put_of_another_shape_or_dtype_takes_the_place(
    state: StageState, other: torch.Tensor
) -> None:
    state.put("labels", torch.zeros(3))
    held = state.tensors["labels"]
    state.put("labels", other)
    assert torch.equal(state.tensors["labels"], other)
    assert state.tensors["labels"].dtype == other.dtype
    assert torch.equal(held, torch.zeros(3))


def test_put_carries_no_graph(state: StageState) -> None:
    weight = torch.ones(3, requires_grad=True)
    for factor in (1.0, 2.0):
        state.put("prototypes", factor * weight)
        assert not state.tensors["prototypes"].requires_grad
        assert torch.equal(state.tensors["prototypes"], torch.full((3,), factor))


def test_put_of_itself_changes_nothing(state: StageState) -> None:
    state.put("prior", torch.tensor([0.25, 0.75]))
    state.put("prior", state.tensors["prior"])
    assert state.tensors["prior"].tolist() == [0.25, 0.75]


class TestLeft:
    """What a stage leaves to the next one."""

    def start(self, path: Path) -> Training:
        config = EncoderConfig(trainable_layers=0, adapter_width=4)
        encoder = build_encoder(config, torch.device("cpu"), seed=0, given_dim=3)
        return Training(encoder, checkpoint=Checkpoint(path, every_s=0.0))

    def test_comes_back_from_every_later_checkpoint(self, tmp_path: Path) -> None:
        path, head = tmp_path / "kept.safetensors", nn.Linear(2, 2)
        training = self.start(path)
        training.finish("first", head_weights({"head": head}))
        optimiser = torch.optim.AdamW(training.encoder.parameters())
        training.keep("second", 1, StageState(training.encoder), optimiser)
        for stage in ("second", "third"):
            resumed, other = self.start(path), nn.Linear(2, 2)
            resumed.restore()
            resumed.recall("head", other)
            assert torch.equal(other.weight, head.weight)
            resumed.finish(stage)

    def test_what_nobody_kept_stays_as_it_is(self, tmp_path: Path) -> None:
        training, head = self.start(tmp_path / "kept.safetensors"), nn.Linear(2, 2)
        before = head.weight.detach().clone()
        training.recall("head", head)
        assert torch.equal(head.weight, before)
