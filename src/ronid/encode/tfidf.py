"""Utterances as tf-idf vectors: a backbone that counts words and is never trained."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ronid.encode.cache import FrozenCache, content_key
from ronid.encode.rows import Index, Rows, VectorRows
from ronid.encode.transformer import Alter
from ronid.errors import UsageError
from ronid.progress import Progress

WORDS = 2_000
"""Words counted unless told otherwise, as in the published stacked auto-encoder."""


class TfidfBackbone(nn.Module):
    """Counts of the most frequent words, weighted by rarity and brought to length 1.

    The first texts it prepares decide the words and their weights; all later ones, and all texts
    after `load`, are described with these.

    Args:
        device: Where vectors are kept.
        dim: Width of the vectors, and most words counted; fewer words leave columns of zeros.
    """

    name = "tfidf"
    trainable_layers = 0
    layers = ()

    def __init__(self, device: torch.device, dim: int = WORDS) -> None:
        super().__init__()
        if dim < 1:
            raise UsageError(f"tf-idf needs at least one column, got {dim}")
        self.dim = dim
        self.device = device
        self.fingerprint = content_key([self.name, str(dim)])
        self.touched: set[str] = set()
        # Tensors are all there is, so that what is saved and what is used cannot differ.
        self._fitted: dict[str, Tensor] = {}

    def prepare(
        self, texts: Sequence[str], cache: FrozenCache, progress: Progress | None = None
    ) -> VectorRows:
        """Return the tf-idf vectors of `texts`, fitting words and weights if none are known yet.

        Raises:
            UsageError: The texts to fit on hold no word.
        """
        if not self._fitted:
            self._fitted = _fit(texts, self.dim)
        if len(texts) == 0:
            return VectorRows(torch.zeros(0, self.dim, device=self.device))
        # Also right after fitting, the way a loaded model goes.
        counts = _vectoriser(self._fitted).transform(texts).astype(np.float32)  # (n, words)
        counts.resize((len(texts), self.dim))
        return VectorRows(torch.from_numpy(counts.toarray()).to(self.device))

    def forward(self, rows: Rows, index: Index, alter: Alter | None = None) -> Tensor:
        """Return the (b, d) vectors of the rows `index`."""
        assert isinstance(rows, VectorRows)
        if alter is not None:
            raise UsageError("tf-idf vectors have no tokens to alter")
        pick = rows.pick(index, self.device) if isinstance(index, np.ndarray) else index
        return rows.vectors[pick.index]

    def set_trainable(self, trainable_layers: int) -> None:
        """Counting words leaves nothing to train; only 0 is possible."""
        if trainable_layers != 0:
            raise UsageError(
                "encoder 'tfidf' has no layer to train; set encoder.trainable_layers = 0, "
                "pretrain.trainable_layers too where the method has it, or choose another encoder"
            )

    def trained_state(self) -> dict[str, Tensor]:
        """Return the words (UTF-8, one a line) and their weights; nothing before fitting."""
        return dict(self._fitted)

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Put back what `trained_state` returned after fitting.

        Raises:
            UsageError: It is not what a tf-idf encoder of this width saves. That holds for
                nothing at all, too: the next texts would silently be fitted on.
        """
        fitted = {name: value.detach().cpu().clone() for name, value in state.items()}
        if not _is_whole(fitted, self.dim):
            raise UsageError(
                f"saved words and weights do not fit encoder '{self.name}' with {self.dim} "
                "columns; copy the model folder anew"
            )
        self._fitted = fitted


def _fit(texts: Sequence[str], most: int) -> dict[str, Tensor]:
    """Return the `most` frequent words of the texts, in alphabetical order, and their weights."""
    from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

    counter = CountVectorizer()
    try:
        counts = counter.fit_transform(texts)  # (n, all words)
    except ValueError:
        raise UsageError(
            "tf-idf finds no word of two letters or more in the texts to fit on; "
            "check which column holds the text, or choose another encoder"
        ) from None
    total = np.asarray(counts.sum(axis=0)).ravel()
    # Stable: words equally frequent are taken in alphabetical order, on every machine.
    kept = np.sort(np.argsort(-total, kind="stable")[:most])
    words = counter.get_feature_names_out()[kept]
    idf = TfidfTransformer().fit(counts[:, kept]).idf_.astype(np.float64)
    spelt = bytearray("\n".join(words).encode())  # no word holds a line break
    return {"words": torch.frombuffer(spelt, dtype=torch.uint8), "idf": torch.from_numpy(idf)}


def _spelt(words: Tensor) -> list[str]:
    """Return the words that a saved tensor holds."""
    return words.numpy().tobytes().decode().split("\n")


def _vectoriser(fitted: Mapping[str, Tensor]) -> Any:
    """Return what turns texts into tf-idf vectors with known words and weights."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectoriser = TfidfVectorizer(vocabulary=_spelt(fitted["words"]))
    vectoriser.idf_ = fitted["idf"].numpy()
    return vectoriser


def _is_whole(fitted: Mapping[str, Tensor], most: int) -> bool:
    """Whether saved tensors are words, each once, with one weight each."""
    if {n: (t.dtype, t.ndim) for n, t in fitted.items()} != {
        "words": (torch.uint8, 1),
        "idf": (torch.float64, 1),
    }:
        return False
    try:
        words = _spelt(fitted["words"])
    except UnicodeDecodeError:
        return False
    return "" not in words and len(set(words)) == len(words) == len(fitted["idf"]) <= most
