"""A graph over the training rows that a recorded step can read and a checkpoint need not hold."""

from torch import Tensor

from ronid.assign.graph import DiffusionGraph, diffusion_graph
from ronid.train.state import StageState


class KeptGraph:
    """The diffusion graph of a stage, made anew from time to time.

    Its tables are large and follow from the points they were made of, so those are what the state
    keeps: a fit that goes on from a checkpoint makes the same graph once more.

    Args:
        state: The stage; holds the points as `graph_points`.
        targets: (n,) given intents, -1 where there is none.
        neighbours: Nearest neighbours that the graph starts from.
        width: Most weights per row; one for all graphs of a stage, as a recorded step goes on
            reading the same memory.
    """

    def __init__(self, state: StageState, targets: Tensor, neighbours: int, width: int) -> None:
        self._state = state
        self._targets = targets
        self._neighbours = neighbours
        self._width = width
        self._tables: DiffusionGraph | None = None

    def renew(self, points: Tensor) -> float:
        """Join (n, d) unit vectors; return the share of the weights that the width leaves out."""
        self._state.put("graph_points", points)
        return self._build()

    def restore(self) -> None:
        """Make the graph of the state's points where a checkpoint brought them."""
        if self._tables is None:
            self._build()

    def rows(self, index: Tensor) -> Tensor:
        """Return the (b, n) weights from the rows `index` to all."""
        assert self._tables is not None
        return self._tables.rows(index)

    def _build(self) -> float:
        """Make the graph, in the memory of an earlier one."""
        points = self._state.tensors["graph_points"]
        graph = diffusion_graph(
            points, self._neighbours, targets=self._targets, most=self._width, narrow=False
        )
        if self._tables is None:
            self._tables = graph
        else:
            self._tables.columns.copy_(graph.columns)
            self._tables.weights.copy_(graph.weights)
        return graph.dropped
