"""A memory of all training rows, filled by a momentum encoder as training goes."""

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from ronid.encode.encoder import Encoder
from ronid.encode.rows import Pick, Rows
from ronid.train.follower import Follower
from ronid.train.state import StageState
from ronid.train.views import view

PROJECTION = "projection"
"""Name of the head that projects features into the space of the memory."""


class MomentumMemory:
    """Projections of all rows, each as the momentum encoder saw it last.

    Args:
        state: The stage; has a head `projection`, and holds the memory as the tensor `memory`.
        rows: The training rows, prepared.
        keep: Share that the weights of the momentum encoder keep of themselves in a step.
        replaced: Chance of a token to become a random one in what either encoder reads.
    """

    def __init__(self, state: StageState, rows: Rows, keep: float, replaced: float) -> None:
        self._state = state
        self._rows = rows
        self._replaced = replaced
        self._network = _Projected(state.encoder, state.heads[PROJECTION])
        self._follower = Follower(state, self._network, keep)

    @property
    def vectors(self) -> Tensor:
        """(n, p) unit vectors."""
        return self._state.tensors["memory"]

    @torch.no_grad()
    def start(self, embeddings: Tensor) -> None:
        """Fill the memory with the projections of (n, d) features, and start the average."""
        head = self._state.heads[PROJECTION].train(False)
        self._state.put("memory", normalize(head(embeddings), dim=-1))
        self._follower.start()

    def renew(self, pick: Pick) -> None:
        """Let the momentum encoder follow, and remember what it makes of a batch of rows."""
        self._follower.step()
        _, keys = self._follower(self._rows, pick, self._replaced)
        self.vectors.index_copy_(0, pick.index, keys)

    def queries(self, pick: Pick) -> tuple[Tensor, Tensor]:
        """Return (b, d) features of a view of a batch, and their (b, p) unit projections."""
        features, projected = self._network(self._rows, pick, self._replaced)
        return features, projected


class _Projected(nn.Module):
    """Encoder and projection in one call, on whatever weights."""

    def __init__(self, encoder: Encoder, head: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head

    def forward(self, rows: Rows, pick: Pick, replaced: float) -> tuple[Tensor, Tensor]:
        """Return features of a view and their unit projections."""
        features = view(self.encoder, rows, pick, replaced)
        return features, normalize(self.head(features), dim=-1)
