"""Anderson extrapolation: a slow fixed-point iteration made several times quicker."""

import torch
from torch import Tensor

_DEPTH = 10  # past iterates remembered
_RIDGE = 1e-8  # of the Gram matrix's trace: past steps become nearly parallel


class Anderson:
    """Proposes the next point of the iteration x <- x + step(x).

    Near the solution the step is close to linear in x. So the combination of past points whose
    steps cancel best is a better point than any of them (Walker and Ni, 2011). It may overshoot
    where the step is far from linear: the caller checks, takes the plain step, and forgets.

    Args:
        weights: (k,) weights of the coordinates in "cancel best".
    """

    def __init__(self, weights: Tensor) -> None:
        self._root = weights.sqrt()
        self.forget()

    def forget(self) -> None:
        """Drop the past, after a point that was no improvement."""
        self._points: list[Tensor] = []
        self._steps: list[Tensor] = []

    def propose(self, point: Tensor, step: Tensor) -> Tensor:
        """Return the point to try next.

        Args:
            point: (k,) current point.
            step: (k,) step at this point; `point + step` is the plain iteration.
        """
        self._points = [*self._points[-_DEPTH:], point]
        self._steps = [*self._steps[-_DEPTH:], step]
        if len(self._points) == 1:
            return point + step
        moves = torch.stack(self._points).diff(dim=0)  # (m, k)
        changes = torch.stack(self._steps).diff(dim=0)  # (m, k)
        weighted = changes * self._root
        gram = weighted @ weighted.T
        gram.diagonal().add_(_RIDGE * gram.trace() + torch.finfo(gram.dtype).tiny)
        share = torch.linalg.solve(gram, weighted @ (step * self._root))  # (m,)
        return point + step - share @ (moves + changes)
