"""A network that tells pairs of one intent from others, learnt from labelled utterances."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, linear

from ronid.config import EncoderConfig
from ronid.encode.encoder import Encoder, VectorBackbone, build_encoder
from ronid.encode.rows import Index, Rows
from ronid.train.batches import shuffled_batches
from ronid.train.loop import seeded
from ronid.train.state import Training
from ronid.types import IntArray


class PairHead(nn.Module):
    """Whether two vectors belong together, for all ordered pairs of a batch.

    The vectors of a pair are joined and go through a linear layer, batch normalisation over all
    pairs, ReLU and a linear layer. Over all pairs the output of the first layer, its mean and its
    variance are sums of a part of either side, so only what follows is done pair by pair.
    Normalisation is by the batch at hand, in inference too: there are no running statistics.

    Args:
        dim: Width of one vector.
        width: Hidden width.
    """

    eps = 1e-5

    def __init__(self, dim: int, width: int) -> None:
        super().__init__()
        self.joined = nn.Linear(2 * dim, width, bias=False)  # normalisation would take off a bias
        self.scale = nn.Parameter(torch.ones(width))
        self.shift = nn.Parameter(torch.zeros(width))
        self.outer = nn.Linear(width, 2)

    def forward(self, vectors: Tensor) -> Tensor:
        """(b, d) to the (b, b, 2) logits of a pair being different, and alike."""
        sides = [linear(vectors, part) for part in self.joined.weight.chunk(2, dim=1)]
        variance = sides[0].var(dim=0, correction=0) + sides[1].var(dim=0, correction=0)
        scale = self.scale * torch.rsqrt(variance + self.eps)
        first, second = ((side - side.mean(dim=0)) * scale for side in sides)
        logits: Tensor = self.outer((first[:, None] + (second + self.shift)).relu())
        return logits


class SimilarityNetwork(nn.Module):
    """Whether two utterances share an intent, for all ordered pairs of a batch.

    Args:
        encoder: Its own; reads the same rows as the one that is to be trained with it.
        head: From the vectors of a batch to the logits of its pairs.
    """

    def __init__(self, encoder: Encoder, head: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head

    def forward(self, rows: Rows, index: Index) -> Tensor:
        """Return the (b, b, 2) logits of pairs of the rows `index` being different, and alike."""
        logits: Tensor = self.head(self.encoder(rows, index))
        return logits

    def trained(self) -> dict[str, Tensor]:
        """Return all trained weights by name."""
        return {n: weight for n, weight in self.named_parameters() if weight.requires_grad}

    @torch.no_grad()
    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Put back what `trained` returned."""
        for name, weight in self.trained().items():
            weight.copy_(weights[name])


def similarity_network(training: Training, config: EncoderConfig) -> SimilarityNetwork:
    """Return an untrained network over an encoder of its own, as the run's one was at the start.

    Args:
        training: The fit it belongs to; first weights derive from its seed.
        config: How its encoder was built; adapter and head are left out.
    """
    backbone = training.encoder.backbone
    bare = replace(config, adapter_width=0, adapter_reads_words=False, head="none")
    encoder = build_encoder(
        replace(bare, name=backbone.name, normalise=False),
        training.encoder.device,
        seed=training.seed,
        given_dim=backbone.dim if isinstance(backbone, VectorBackbone) else None,
        cache=training.encoder.cache,
    )
    with seeded(encoder.device, training.seed, "similarity"):
        head = PairHead(encoder.dim, 4 * encoder.dim).to(encoder.device)
    return SimilarityNetwork(encoder, head).train(False)


def pair_loss(logits: Tensor, targets: Tensor, index: Tensor) -> Tensor:
    """Return the mean cross-entropy of the pairs of a batch.

    Args:
        logits: (b, b, 2) of pairs being different, and alike.
        targets: (b,) known intents.
        index: (b,) rows; no row is a pair with itself.
    """
    same = (targets[:, None] == targets).long()
    losses = cross_entropy(logits.flatten(0, 1), same.flatten(), reduction="none").view_as(same)
    pairs = index[:, None] != index
    return torch.where(pairs, losses, 0).sum() / pairs.sum().clamp(min=1)


@torch.no_grad()
def pair_precision(
    network: SimilarityNetwork, rows: Rows, targets: IntArray, size: int
) -> dict[str, float]:
    """Return `dev_precision`, how far ahead of all others the pairs are that are alike.

    It is the average precision of their order by the network's certainty, in percent; empty where
    no two rows are alike. Accuracy and F1 of the network's decisions hardly say anything before it
    calls some pair alike for the first time.

    Args:
        network: The network.
        rows: Held-out rows, prepared.
        targets: (n,) their intents.
        size: Rows of a batch; pairs are made within batches, as in training.
    """
    network.train(False)
    classes = torch.from_numpy(targets)
    alike, certainty = [], []
    for index in shuffled_batches(len(rows), size, np.random.default_rng(0)):
        logits = network(rows, index)
        own = classes[torch.from_numpy(index)].to(logits.device)
        pairs = ~torch.eye(len(index), dtype=torch.bool, device=logits.device)
        certainty.append((logits[..., 1] - logits[..., 0])[pairs])
        alike.append((own[:, None] == own)[pairs])
    same = torch.cat(alike)
    if not same.any():
        return {}
    return {"dev_precision": 100 * average_precision(same, torch.cat(certainty))}


def average_precision(hits: Tensor, scores: Tensor) -> float:
    """Return the mean over all hits of the precision among what scores at least as much.

    Where the scores are, as there are many: for held-out pairs a host would take as long as the
    epoch did.

    Args:
        hits: (n,) which ones are to come first; at least one is.
        scores: (n,) by which they are ordered.
    """
    scores, order = scores.sort(descending=True)
    hits = hits[order]
    _, sizes = scores.unique_consecutive(return_counts=True)
    last = sizes.cumsum(0)  # those of one score are taken together
    found = hits.double().cumsum(0)[last - 1]
    gained = found.diff(prepend=found.new_zeros(1))
    return float((gained * found / last).sum() / found[-1])
