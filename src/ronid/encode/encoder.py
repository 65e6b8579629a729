"""The encoder a method trains: a backbone for text or given vectors, an adapter, unit length."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from ronid.config import TFIDF, EncoderConfig
from ronid.encode.cache import FrozenCache, content_key
from ronid.encode.dropout import ByteDropout
from ronid.encode.heads import Head, build_head
from ronid.encode.rows import Index, Rows, VectorRows, batches_by_length
from ronid.encode.tfidf import TfidfBackbone
from ronid.encode.transformer import (
    CPU_BATCH_TOKENS,
    GPU_BATCH_TOKENS,
    Alter,
    TransformerBackbone,
)
from ronid.errors import UsageError
from ronid.progress import Progress
from ronid.seeds import derive
from ronid.types import FloatArray

Inputs = Sequence[str] | FloatArray


class VectorBackbone(nn.Module):
    """Embeddings that the user brings instead of text.

    Args:
        dim: Their width.
        device: Where they are kept.
    """

    name = "given embeddings"
    trainable_layers = 0
    layers = ()

    def __init__(self, dim: int, device: torch.device) -> None:
        super().__init__()
        self.dim = dim
        self.device = device
        self.fingerprint = content_key([self.name, str(dim)])
        self.touched: set[str] = set()

    def prepare(
        self, vectors: FloatArray, cache: FrozenCache, progress: Progress | None = None
    ) -> Rows:
        """Move `vectors` to the device."""
        if vectors.ndim != 2 or vectors.shape[1] != self.dim:
            raise UsageError(
                f"embeddings have shape {vectors.shape}, expected (rows, {self.dim}) as in fit"
            )
        array = np.ascontiguousarray(vectors, np.float32)
        return VectorRows(torch.from_numpy(array).to(self.device))

    def forward(self, rows: Rows, index: Index, alter: Alter | None = None) -> Tensor:
        """Return the vectors of the rows `index`."""
        assert isinstance(rows, VectorRows)
        if alter is not None:
            raise UsageError("given embeddings have no tokens to alter")
        pick = rows.pick(index, self.device) if isinstance(index, np.ndarray) else index
        return rows.vectors[pick.index]

    def set_trainable(self, trainable_layers: int) -> None:
        """Given vectors cannot be trained; only 0 is possible."""
        if trainable_layers != 0:
            raise UsageError(
                "given embeddings leave no layer to train; use preset 'fast' of RoNID, or "
                "give texts"
            )

    def trained_state(self) -> dict[str, Tensor]:
        """Nothing here is trained."""
        return {}


class Adapter(nn.Module):
    """A residual two-layer network that starts as the identity.

    Args:
        dim: Width of the pooled vector and of the output.
        width: Hidden width.
        dropout: Dropout on input and hidden units while training.
        reads_words: Whether the input holds the mean word vector after the pooled one.
    """

    def __init__(self, dim: int, width: int, dropout: float, reads_words: bool = False) -> None:
        super().__init__()
        self.dim = dim
        self.inner = nn.Linear(2 * dim if reads_words else dim, width)
        self.outer = nn.Linear(width, dim)
        self.dropout = ByteDropout(dropout)
        nn.init.zeros_(self.outer.weight)
        nn.init.zeros_(self.outer.bias)

    def forward(self, vectors: Tensor) -> Tensor:
        """(b, d), or (b, 2d) with words, to (b, d)."""
        # Unit length first, so that one learning rate suits encoders of any scale.
        parts = [functional.normalize(part, dim=-1) for part in vectors.split(self.dim, dim=-1)]
        hidden = functional.gelu(self.inner(self.dropout(torch.cat(parts, dim=-1))))
        adapted: Tensor = parts[0] + self.outer(self.dropout(hidden))
        return adapted


Backbone = TransformerBackbone | VectorBackbone | TfidfBackbone


class Encoder(nn.Module):
    """Utterances to unit vectors s (Eq. 1 and the normalisation of Eq. 6).

    Args:
        backbone: Where vectors come from.
        adapter: Residual network on top, or None.
        cache: Keeps what the frozen part said.
        head: Layers above both, whose output is what is clustered, or None.
        normalise: Whether that output is brought to length 1.
    """

    def __init__(
        self,
        backbone: Backbone,
        adapter: Adapter | None,
        cache: FrozenCache | None = None,
        *,
        head: Head | None = None,
        normalise: bool = True,
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.adapter = adapter
        self.cache = cache or FrozenCache()
        self.head = head
        self.normalise = normalise

    @property
    def device(self) -> torch.device:
        """Where training happens."""
        return self.backbone.device

    @property
    def dim(self) -> int:
        """Width of the vectors."""
        return self.backbone.dim if self.head is None else self.head.dim

    @property
    def size(self) -> int:
        """Layers times width; 0 for given embeddings."""
        return len(self.backbone.layers) * self.backbone.dim

    def prepare(self, inputs: Inputs, progress: Progress | None = None) -> Rows:
        """Make utterances ready: tokenised, frozen layers run (or taken from the cache).

        Raises:
            UsageError: Texts where embeddings are needed, or the other way round.
        """
        reads_vectors = isinstance(self.backbone, VectorBackbone)
        if reads_vectors != isinstance(inputs, np.ndarray):
            wanted = "embeddings, not texts" if reads_vectors else "texts, not embeddings"
            raise UsageError(f"this encoder was built for other input; give {wanted}")
        return self.backbone.prepare(inputs, self.cache, progress)  # type: ignore[arg-type]

    def pooled(self, rows: Rows, index: Index, alter: Alter | None = None) -> Tensor:
        """Return the (b, d) vectors of the rows `index` before they are brought to length 1."""
        vectors: Tensor = self.backbone(rows, index, alter)
        for module in (self.adapter, self.head):
            if module is not None:
                vectors = module(vectors)
        return vectors

    def forward(self, rows: Rows, index: Index, alter: Alter | None = None) -> Tensor:
        """Return the (b, d) features of the rows `index`, their tokens altered if asked."""
        vectors = self.pooled(rows, index, alter)
        return functional.normalize(vectors, dim=-1) if self.normalise else vectors

    @torch.no_grad()
    def embed_all(self, rows: Rows) -> Tensor:
        """Return the (n, d) features of all rows, dropout off."""
        self.train(False)
        out = torch.empty(len(rows), self.dim, device=self.device)
        for index in batches_by_length(rows.lengths, self._inference_tokens(rows)):
            out[torch.from_numpy(index).to(self.device)] = self(rows, index)
        return out

    def word_means(self, rows: Rows) -> Tensor | None:
        """Return the (n, w) mean word vectors of all rows; None where there are none."""
        backbone = self.backbone
        return backbone.word_means(rows) if isinstance(backbone, TransformerBackbone) else None

    def _inference_tokens(self, rows: Rows) -> int:
        """Tokens (or vectors) that one inference batch may hold."""
        if self.device.type == "cuda":
            return GPU_BATCH_TOKENS
        return 8_192 if isinstance(rows, VectorRows) else CPU_BATCH_TOKENS

    def trained_state(self) -> dict[str, Tensor]:
        """Return every weight that training may have changed."""
        state = {f"backbone.{n}": p for n, p in self.backbone.trained_state().items()}
        return state | self._upper_weights()

    def _upper_weights(self) -> dict[str, Tensor]:
        """Return the weights of adapter and head by name."""
        modules = {"adapter": self.adapter, "head": self.head}
        return {
            f"{name}.{n}": p
            for name, module in modules.items()
            if module is not None
            for n, p in module.named_parameters()
        }

    @torch.no_grad()
    def load_trained(self, state: dict[str, Tensor]) -> None:
        """Put back what `trained_state` returned.

        Raises:
            UsageError: The weights belong to another encoder.
        """
        if isinstance(self.backbone, TfidfBackbone):
            words = {n: t for n, t in state.items() if n.startswith("backbone.")}
            self.backbone.load({n.removeprefix("backbone."): t for n, t in words.items()})
            state = {n: t for n, t in state.items() if n not in words}
        model = getattr(self.backbone, "model", None)
        own = {f"backbone.{n}": p for n, p in model.named_parameters()} if model else {}
        own |= self._upper_weights()
        for name, value in state.items():
            if name not in own or own[name].shape != value.shape:
                raise UsageError(f"saved weight '{name}' does not fit encoder '{self.name}'")
            own[name].copy_(value)
            if name.startswith("backbone."):
                self.backbone.touched.add(name.removeprefix("backbone."))

    @property
    def name(self) -> str:
        """Name of the backbone."""
        return self.backbone.name

    def fingerprint(self) -> str:
        """Hash of the weights as they were before training, to recognise the same encoder."""
        return self.backbone.fingerprint


def build_encoder(
    config: EncoderConfig,
    device: torch.device,
    *,
    seed: int,
    n_intents: int | None = None,
    given_dim: int | None = None,
    cache: FrozenCache | None = None,
) -> Encoder:
    """Return an untrained encoder.

    Args:
        config: Which encoder, and what of it is trained.
        device: Where it runs.
        seed: Run seed; the first weights of adapter and head derive from it.
        n_intents: How many outputs a head of logits has.
        given_dim: Width of the user's embeddings, or None for text.
        cache: Keeps the output of frozen layers.
    """
    # Counts of words, and the user's own vectors, have no word vectors below them.
    words = config.adapter_reads_words and given_dim is None and config.name != TFIDF
    if words and not config.adapter_width:
        raise UsageError("encoder.adapter_reads_words needs an encoder.adapter_width")
    backbone: Backbone
    if given_dim is None and config.name == TFIDF:
        backbone = TfidfBackbone(device)
        backbone.set_trainable(config.trainable_layers)
    elif given_dim is None:
        backbone = TransformerBackbone(
            config.name,
            config.trainable_layers,
            config.max_length_tokens,
            device,
            words,
            cache,
            frozen_dropout=config.frozen_dropout,
        )
    else:
        backbone = VectorBackbone(given_dim, device)
        backbone.set_trainable(config.trainable_layers)
    adapter = None
    if config.adapter_width:
        with _seeded(seed, "adapter"):
            adapter = Adapter(backbone.dim, config.adapter_width, config.adapter_dropout, words)
        adapter.to(device)
    head = None
    if config.head != "none":
        with _seeded(seed, "head"):
            head = build_head(config.head, backbone.dim, n_intents)
        head.to(device)
    return Encoder(backbone, adapter, cache, head=head, normalise=config.normalise)


@contextmanager
def _seeded(seed: int, place: str) -> Iterator[None]:
    """Draw first weights from the run's seed, and leave torch's own generator as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive(seed, place))
        yield
