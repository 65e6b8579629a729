"""Where the vectors of an update come from: the run before, and the utterances that came."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor
from torch.nn.functional import normalize

from ronid.assign.whiten import within_whitened
from ronid.encode.cache import FrozenCache
from ronid.encode.rows import VectorRows
from ronid.encode.transformer import TransformerBackbone
from ronid.head import closeness
from ronid.model import IntentModel
from ronid.progress import Progress
from ronid.run import MOST_KEPT_BYTES, RunFolder
from ronid.types import FloatArray, IntArray
from ronid.update.adapt import Frozen, can_adapt, embedded
from ronid.update.grow import Views
from ronid.update.version import Arrivals
from ronid.vectors import read_vectors
from ronid.versions import frozen_cache

COMPARED = 10_000
"""Old utterances at most that neighbours are looked for among."""


@dataclass(frozen=True)
class Seen:
    """Utterances as they are seen and compared.

    Args:
        old: Some that were there.
        labels: (m,) their intents.
        came: Those that came.
        frozen: What the adapter can learn from, None where there is none.
    """

    old: Views
    labels: IntArray
    came: Views
    frozen: Frozen | None


class Source:
    """Vectors of old and new utterances.

    Where all but an adapter is frozen, utterances are compared by what the frozen part says, and
    the adapter can learn; where the run has lost that, they are embedded anew. Else, or where they
    are too many, features are compared.

    Args:
        path: Folder of the run.
        run: Its current version.
        table: The utterances of it.
        model: The model of it.
        progress: Told what is going on.
    """

    def __init__(
        self, path: Path, run: RunFolder, table: pa.Table, model: IntentModel, progress: Progress
    ) -> None:
        self.path, self.run, self.model, self.progress = path, run, model, progress
        self.texts: list[str] = table["text"].to_pylist()
        self.labels: IntArray = table["index"].to_numpy()
        self.old = self._frozen_old()

    def _frozen_old(self) -> Tensor | None:
        """Return what the frozen part says of the old utterances, None where it is of no use."""
        if not can_adapt(self.model):
            return None
        kept = frozen_cache(self.path, len(self.texts))
        backbone = self.model.encoder.backbone
        assert isinstance(backbone, TransformerBackbone)
        size = 4 * len(self.texts) * backbone.dim * (2 if backbone.words else 1)
        if size > MOST_KEPT_BYTES and not kept.is_dir():
            return None
        return self._frozen(self.texts, FrozenCache(kept))

    def _frozen(self, texts: list[str], cache: FrozenCache) -> Tensor:
        encoder = self.model.encoder
        encoder.cache = cache
        rows = encoder.prepare(texts, self.progress)
        assert isinstance(rows, VectorRows)
        return rows.vectors

    def seen(self, arrivals: Arrivals) -> Seen:
        """Return old utterances, or a sample, and those that came, as they are seen and compared.

        Args:
            arrivals: Utterances that came.
        """
        drawn = np.sort(np.random.default_rng(0).permutation(len(self.texts))[:COMPARED])
        features, labels = self._features_of(drawn)
        if self.old is None:
            vectors = self.model.transform(arrivals.texts, self.progress)
            return Seen(
                Views(features, unit(features)), labels, Views(vectors, unit(vectors)), None
            )
        came = self._frozen_came(arrivals, self.old)
        some = self.old[torch.from_numpy(drawn)]
        plain = comparable(torch.cat([some, came]), labels, self.model.encoder.backbone.dim)
        return Seen(
            Views(features, plain[: len(some)]),
            labels,
            Views(embedded(self.model, came), plain[len(some) :]),
            Frozen(self.old, self.labels, came),
        )

    def _frozen_came(self, arrivals: Arrivals, old: Tensor) -> Tensor:
        """Return what the frozen part says of utterances that came; of some it has said it."""
        known = torch.empty(0, old.shape[1])
        if arrivals.frozen is not None and arrivals.frozen.shape[1] == old.shape[1]:
            known = torch.from_numpy(arrivals.frozen)
        rest = arrivals.texts[len(known) :]
        said = [self._frozen(rest, FrozenCache())] if rest else []
        return torch.cat([known.to(old), *said])

    @cached_property
    def features(self) -> FloatArray | None:
        """(m, d) features of what was there, before anything learns; None if the run has none."""
        if self.old is not None:
            return embedded(self.model, self.old)
        return read_vectors(self.run.path, len(self.texts))

    def _features_of(self, drawn: IntArray) -> tuple[FloatArray, IntArray]:
        """Return features of some old utterances, and their intents."""
        if self.features is not None:
            return self.features[drawn], self.labels[drawn]
        scope = self.model.scope  # runs of older versions kept no features but these
        assert scope is not None
        vectors = scope.vectors.astype(np.float32) * scope.scale
        return vectors, closeness(vectors, self.model.prototypes, self.model.rule).argmax(1)

    def keep(self, texts: list[str], came: Tensor) -> None:
        """Keep what the frozen part says of the old utterances and of some that came.

        Args:
            texts: Those that came, in the order of the new version.
            came: (n, w) what the frozen part says of them.
        """
        backbone = self.model.encoder.backbone
        assert self.old is not None
        assert isinstance(backbone, TransformerBackbone)
        vectors = torch.cat([self.old, came]).cpu()
        if vectors.nbytes > MOST_KEPT_BYTES:
            return
        cache = FrozenCache(frozen_cache(self.path, len(vectors)))
        backbone.keep(self.texts + texts, vectors, cache)


def comparable(vectors: Tensor, labels: IntArray, width: int) -> FloatArray:
    """Return unit vectors in which sentence and words count the same, and intents stand apart.

    What varies within old intents counts for less, see `within_whitened`. A trained space tells the
    old intents apart better, but may have two new ones as one.

    Args:
        vectors: (n, w) of the frozen part: of the sentence, and of its words where it has them.
        labels: (m,) intents of the first of them.
        width: Of the sentence's part.
    """
    sentence, *words = vectors.split(width, dim=1)
    words = [part - part.mean(dim=0) for part in words]  # what all utterances share says nothing
    points = torch.cat([normalize(part, dim=1) for part in (sentence, *words)], dim=1)
    targets = torch.full((len(vectors),), -1, device=vectors.device)
    targets[: len(labels)] = torch.from_numpy(labels).to(targets)
    return within_whitened(points, targets).cpu().numpy()


def unit(vectors: FloatArray) -> FloatArray:
    """Return vectors of length 1."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.maximum(lengths, 1e-12)).astype(np.float32)
