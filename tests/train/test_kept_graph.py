"""A graph that lives in the state of a stage."""

import pytest
import torch
from torch.nn.functional import normalize

from ronid.assign.graph import diffusion_graph
from ronid.config import EncoderConfig
from ronid.encode.encoder import build_encoder
from ronid.train.kept_graph import keep_graph, kept_graph
from ronid.train.state import StageState


@pytest.fixture
def state() -> StageState:
    config = EncoderConfig(trainable_layers=0, adapter_width=4)
    return StageState(build_encoder(config, torch.device("cpu"), seed=0, given_dim=3))


def points(seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return normalize(torch.randn(30, 4, generator=generator), dim=1)


@pytest.mark.parametrize("width", [4, 20, 30, 1000])
def test_kept_weights_are_those_of_the_graph(state: StageState, width: int) -> None:
    targets = torch.arange(30) % 7 - 1
    graph = diffusion_graph(points(0), 2, targets=targets, most=width, hops=2)
    keep_graph(state, graph, width)
    index = torch.tensor([3, 29, 0])
    assert torch.equal(kept_graph(state).rows(index), graph.rows(index))


def test_a_new_graph_takes_the_place_of_the_old_one_in_the_same_memory(state: StageState) -> None:
    # Of other widths before they are kept, since one joins more points than the other.
    graphs = [
        diffusion_graph(points(seed), near, hops=2) for seed, near in ((0, 1), (1, 6), (2, 2))
    ]
    assert len({graph.columns.shape for graph in graphs}) == 3
    keep_graph(state, graphs[0], 2048)
    held = dict(state.tensors)
    for graph in graphs[1:]:
        keep_graph(state, graph, 2048)
        assert all(state.tensors[name] is tensor for name, tensor in held.items())
        everything = torch.arange(30)
        assert torch.equal(kept_graph(state).rows(everything), graph.rows(everything))
