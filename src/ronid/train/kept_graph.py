"""A graph over the training rows that lives in a stage's state: saved, resumed, and recorded."""

import torch
from torch import Tensor

from ronid.assign.graph import DiffusionGraph
from ronid.train.state import StageState


def keep_graph(state: StageState, graph: DiffusionGraph, width: int) -> None:
    """Keep a graph in `state`, in place of an earlier one.

    Args:
        state: The stage.
        graph: Its tables are no wider than `width`.
        width: Weights per row; one for all graphs of a stage, as a recorded step goes on reading
            the same memory.
    """
    width = min(width, len(graph.columns))
    state.put("graph_columns", _widened(graph.columns, width))
    state.put("graph_weights", _widened(graph.weights, width))
    state.put("graph_targets", graph.targets)


def kept_graph(state: StageState) -> DiffusionGraph:
    """Return the graph that `keep_graph` kept; what it lost is not known any more."""
    tensors = state.tensors
    columns, weights = tensors["graph_columns"], tensors["graph_weights"]
    return DiffusionGraph(columns, weights, tensors["graph_targets"], 0.0)


def _widened(table: Tensor, width: int) -> Tensor:
    """Fill up the rows of a table."""
    # With their first entry again, not with 0: a place that is written twice must be so alike.
    return torch.cat([table, table[:, :1].expand(-1, width - table.shape[1])], dim=1)
