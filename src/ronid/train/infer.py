"""Inference by prototype: the intent of an utterance is its nearest prototype."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ronid.types import IntArray


@dataclass(frozen=True)
class Prediction:
    """Intents of utterances.

    Args:
        labels: (n,) most probable intent.
        probabilities: (n, k).
    """

    labels: IntArray
    probabilities: np.ndarray


@torch.no_grad()
def predict(embeddings: Tensor, prototypes: Tensor, temperature: float) -> Prediction:
    """Return argmax and softmax over the prototypes, in blocks of rows.

    Args:
        embeddings: (n, d) unit vectors.
        prototypes: (k, d) unit vectors.
        temperature: tau.
    """
    # float64 so that a text gets the same answer whatever batch it came in.
    blocks = [
        torch.softmax(block.double() @ prototypes.double().T / temperature, dim=-1)
        for block in embeddings.split(8192)
    ]
    probabilities = torch.cat(blocks).cpu().numpy()
    return Prediction(probabilities.argmax(-1), probabilities)
