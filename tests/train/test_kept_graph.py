"""A graph that follows from the state of a stage."""

import pytest
import torch
from torch.nn.functional import normalize

from ronid.assign.graph import diffusion_graph
from ronid.config import EncoderConfig
from ronid.encode.encoder import build_encoder
from ronid.train.kept_graph import KeptGraph
from ronid.train.state import StageState

TARGETS = torch.arange(30) % 7 - 1
ALL = torch.arange(30)


@pytest.fixture
def state() -> StageState:
    config = EncoderConfig(trainable_layers=0, adapter_width=4)
    return StageState(build_encoder(config, torch.device("cpu"), seed=0, given_dim=3))


def points(seed: int, spread: float = 1.0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return normalize(torch.randn(30, 4, generator=generator) * spread + (1 - spread), dim=1)


@pytest.mark.parametrize("width", [4, 20, 30, 1000])
def test_kept_weights_are_those_of_the_graph(state: StageState, width: int) -> None:
    graph = diffusion_graph(points(0), 2, targets=TARGETS, most=width)
    kept = KeptGraph(state, TARGETS, 2, width)
    assert kept.renew(points(0)) == graph.dropped
    index = torch.tensor([3, 29, 0])
    assert torch.equal(kept.rows(index), graph.rows(index))


def test_a_new_graph_takes_the_place_of_the_old_one_in_the_same_memory(state: StageState) -> None:
    # Of other widths before they are kept, since points that lie closer have more paths.
    vectors = [points(0), points(1, 0.2), points(2, 0.7)]
    graphs = [diffusion_graph(x, 2, targets=TARGETS) for x in vectors]
    assert len({graph.columns.shape for graph in graphs}) > 1
    kept = KeptGraph(state, TARGETS, 2, 2048)
    kept.renew(vectors[0])
    assert kept._tables is not None
    places = kept._tables.columns.data_ptr(), kept._tables.weights.data_ptr()
    for x, graph in zip(vectors[1:], graphs[1:], strict=True):
        kept.renew(x)
        assert places == (kept._tables.columns.data_ptr(), kept._tables.weights.data_ptr())
        assert torch.equal(kept.rows(ALL), graph.rows(ALL))


def test_a_checkpoint_holds_the_points_and_not_the_tables(state: StageState) -> None:
    kept = KeptGraph(state, TARGETS, 2, 2048)
    kept.renew(points(0))
    assert {name: tuple(t.shape) for name, t in state.tensors.items()} == {"graph_points": (30, 4)}
    resumed = KeptGraph(state, TARGETS, 2, 2048)
    resumed.restore()
    assert torch.equal(resumed.rows(ALL), kept.rows(ALL))
