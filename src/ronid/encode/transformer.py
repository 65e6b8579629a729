"""A pretrained transformer cut in two: frozen lower layers run once, upper layers are trained."""

import warnings
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from ronid.config import ALL_LAYERS
from ronid.encode.cache import FrozenCache, content_key
from ronid.encode.packed import Layout, prepare_model
from ronid.encode.rows import B, Index, Pick, Rows, TokenRows, VectorRows, batches_by_length
from ronid.encode.running import LayerRunner
from ronid.encode.weights import load_pretrained
from ronid.errors import RonidWarning, UsageError
from ronid.progress import Progress, Silent

CPU_BATCH_TOKENS = 2_048
GPU_BATCH_TOKENS = 65_536


class Alter(Protocol):
    """Changes the tokens of a batch, which then runs all layers."""

    def __call__(self, batch: B, /) -> B:
        """Return the batch with other tokens."""
        ...


def masked_mean(hidden: Tensor, mask: Tensor) -> Tensor:
    """Average the token vectors of each utterance, padding left out (Eq. 1).

    Args:
        hidden: (b, l, h).
        mask: (b, l).

    Returns:
        (b, h) in float32.
    """
    weights = mask.unsqueeze(-1).float()
    return (hidden.float() * weights).sum(1) / weights.sum(1).clamp_min(1.0)


class TransformerBackbone(nn.Module):
    """Text to pooled vectors.

    Args:
        name: Embedded default, folder, or hub id.
        trainable_layers: Last n layers to train, 0 for none, ALL_LAYERS for all.
        max_length_tokens: Longer utterances are cut.
        device: Where the model runs.
        words: Put the mean of the word vectors below the first layer after the pooled vector;
            for a wholly frozen encoder only.
        cache: Where loaded weights may be kept.
        frozen_dropout: Whether frozen layers have dropout while others train, and so run at every
            step.
    """

    def __init__(
        self,
        name: str,
        trainable_layers: int,
        max_length_tokens: int,
        device: torch.device,
        words: bool = False,
        cache: FrozenCache | None = None,
        *,
        frozen_dropout: bool = False,
    ) -> None:
        super().__init__()
        cache = cache or FrozenCache()
        self.tokenizer, self.model, self.language_model = cache.pretrained(name, load_pretrained)
        if getattr(self.model, "pooler", None) is not None:
            self.model.pooler = None  # pooling is the masked mean, so this would run for nothing
        self.name = name
        self.words = words
        self.frozen_dropout = frozen_dropout
        self.fingerprint = _fingerprint(self.model)
        self.device = device
        self.dim = int(self.model.config.hidden_size)
        self.touched: set[str] = set()
        self.to(device)
        self._runner = LayerRunner(self.model, device)
        self.layers = self._runner.layers
        positions = getattr(self.model.config, "max_position_embeddings", None)
        if positions is not None:
            max_length_tokens = min(max_length_tokens, positions - self._runner.first_position)
        self.max_length_tokens = max_length_tokens
        self.packs = prepare_model(self.model)
        self.special_ids = torch.tensor(self.tokenizer.all_special_ids, device=device)
        self.set_trainable(trainable_layers)
        self.train(False)

    # -- what is trained ------------------------------------------------------------------------

    def set_trainable(self, trainable_layers: int) -> None:
        """Train the last `trainable_layers` layers only; earlier prepared rows become stale."""
        count = len(self.layers)
        if self.words and trainable_layers != 0:
            raise UsageError(
                "encoder.adapter_reads_words needs trainable_layers = 0, in pretrain too; "
                "set adapter_reads_words = false to train layers"
            )
        if trainable_layers == ALL_LAYERS or trainable_layers >= count:
            trainable_layers = ALL_LAYERS
        elif trainable_layers < 0:
            raise UsageError(f"trainable_layers is {trainable_layers}; give 0 to {count} or -1")
        self.trainable_layers = trainable_layers
        self.model.requires_grad_(trainable_layers == ALL_LAYERS)
        for layer in self._upper:
            layer.requires_grad_(True)
        self.touched |= {n for n, p in self.model.named_parameters() if p.requires_grad}

    @property
    def frozen_layers(self) -> int:
        """How many layers, counted from below, are never trained."""
        return (
            0 if self.trainable_layers == ALL_LAYERS else len(self.layers) - self.trainable_layers
        )

    @property
    def _upper(self) -> list[nn.Module]:
        return self.layers[self.frozen_layers :]

    def train(self, mode: bool = True) -> "TransformerBackbone":
        """Switch dropout on, in the trained layers only where frozen ones are to be cacheable."""
        super().train(mode and (self.trainable_layers == ALL_LAYERS or self.frozen_dropout))
        for layer in self._upper:
            layer.train(mode)
        return self

    def trained_state(self) -> dict[str, Tensor]:
        """Return the weights that training may have changed, by name."""
        return {n: p for n, p in self.model.named_parameters() if n in self.touched}

    # -- running --------------------------------------------------------------------------------

    def prepare(
        self, texts: Sequence[str], cache: FrozenCache, progress: Progress | None = None
    ) -> Rows:
        """Tokenise `texts` and run the frozen layers over them, once per content."""
        progress = progress or Silent()
        progress.begin("encode", len(texts))
        try:
            if self.trainable_layers == 0:
                return self._pooled(texts, cache, progress)
            return self._prepare(self.tokenize(texts), cache, progress)
        finally:
            progress.end()

    def keep(self, texts: Sequence[str], vectors: Tensor, cache: FrozenCache) -> None:
        """Put what the frozen layers said of `texts` into a cache, for a later `prepare`.

        Args:
            texts: Utterances.
            vectors: (n, w) what `prepare` made of them where no layer is trained.
            cache: Where to.
        """

        def compute(out: Tensor) -> None:
            out.copy_(vectors)

        key = self._pooled_key(texts)
        cache.get(key, vectors.shape, torch.float32, compute, torch.device("cpu"))

    def _pooled(self, texts: Sequence[str], cache: FrozenCache, progress: Progress) -> VectorRows:
        """Run all layers, none of which is trained; what is kept is not even tokenised again."""

        def compute(out: Tensor) -> None:
            self._run_frozen(self.tokenize(texts), out, True, progress)

        shape = (len(texts), 2 * self.dim if self.words else self.dim)
        hidden = cache.get(self._pooled_key(texts), shape, torch.float32, compute, self.device)
        return VectorRows(hidden.to(self.device))

    def _prepare(self, rows: TokenRows, cache: FrozenCache, progress: Progress) -> Rows:
        """Add what the frozen layers say, where there are any."""
        if self.frozen_layers == 0 or self.frozen_dropout:
            return rows
        shape = (len(rows.ids), self.dim)
        dtype = torch.float32 if self.device.type == "cpu" else torch.bfloat16

        def compute(out: Tensor) -> None:
            self._run_frozen(rows, out, False, progress)

        key = self._frozen_key(rows, dtype)
        hidden = cache.get(key, shape, dtype, compute, self.device)
        if hidden.device != self.device and hidden.nbytes <= _spare_bytes(self.device):
            hidden = hidden.to(self.device)
        return TokenRows(rows.ids, rows.starts, rows.pad_id, hidden)

    def forward(self, rows: Rows, index: Index, alter: Alter | None = None) -> Tensor:
        """Return the (b, h) pooled vectors of the rows `index`, with gradient where trained.

        With words it is (b, 2h): the mean word vector follows the pooled one.

        Args:
            rows: Prepared rows.
            index: Which of them.
            alter: Changes the tokens of a batch; such a batch runs all layers.
        """
        pick = rows.pick(index, self.device) if isinstance(index, np.ndarray) else index
        if isinstance(rows, VectorRows):
            return rows.vectors[pick.index]
        if self.packs:
            states, layout = self._packed(rows, pick, alter)
            return layout.means(states)
        return masked_mean(*self._padded(rows, pick, alter))

    @torch.no_grad()
    def word_means(self, rows: Rows) -> Tensor | None:
        """Return the (n, w) mean word vectors below the first layer; None where none were kept."""
        if isinstance(rows, VectorRows):
            return rows.vectors[:, self.dim :] if self.words else None
        weight = self.model.get_input_embeddings().weight
        starts = torch.from_numpy(rows.starts[:-1]).to(rows.ids.device)
        return torch.nn.functional.embedding_bag(rows.ids.long(), weight, starts, mode="mean")

    def states(self, rows: TokenRows, pick: Pick, alter: Alter | None = None) -> Tensor:
        """Return the output of the last layer, one line per place that `alter` was shown."""
        if self.packs:
            return self._packed(rows, pick, alter)[0]
        return self._padded(rows, pick, alter)[0].flatten(0, 1)

    def _packed(self, rows: TokenRows, pick: Pick, alter: Alter | None) -> tuple[Tensor, Layout]:
        """Run a batch without padding: (t, h) states and where they belong."""
        batch = rows.pack(pick)
        if alter is not None:
            batch = alter(batch)
        return self._runner.packed(batch, self._above(batch.hidden)), batch.layout

    def _padded(self, rows: TokenRows, pick: Pick, alter: Alter | None) -> tuple[Tensor, Tensor]:
        """Run a padded batch: (b, l, h) states and (b, l) mask."""
        batch = rows.batch(pick.index, self.device, pick.width)
        if alter is not None:
            batch = alter(batch)
        return self._runner.padded(batch, self._above(batch.hidden)), batch.mask

    def _above(self, hidden: Tensor | None) -> list[nn.Module]:
        """Return the layers that are still to run: all, or the upper ones above kept states."""
        return self.layers if hidden is None else self._upper

    def autocast(self) -> torch.autocast:
        """bfloat16 on GPU, plain float32 on CPU."""
        return self._runner.autocast()

    @torch.no_grad()
    def _run_frozen(self, rows: TokenRows, out: Tensor, pooled: bool, progress: Progress) -> None:
        """Fill `out` with pooled vectors, or with the states after the last frozen layer."""
        self.train(False)
        budget = CPU_BATCH_TOKENS if self.device.type == "cpu" else GPU_BATCH_TOKENS
        seen: dict[str, Tensor] = {}
        frozen = self.layers[: self.frozen_layers]
        hooks = [
            frozen[0].register_forward_pre_hook(lambda _m, inputs: seen.update(words=inputs[0])),
            frozen[-1].register_forward_hook(lambda _m, _i, o: seen.update(states=_first(o))),
        ]
        try:
            for index in batches_by_length(rows.lengths, budget):
                batch = rows.batch(index, self.device)
                last = self._runner.padded(batch, frozen)
                if pooled:
                    parts = [last, seen["words"]] if self.words else [last]
                    means = torch.cat([masked_mean(part, batch.mask) for part in parts], dim=-1)
                    out[torch.from_numpy(index).to(out.device)] = means.to(out.device)
                else:
                    _scatter(seen["states"], batch.mask, rows, index, out)
                progress.advance(len(index))
        finally:
            for hook in hooks:
                hook.remove()

    def tokenize(self, texts: Sequence[str]) -> TokenRows:
        """Turn utterances into token rows, cutting over-long ones with a warning."""
        ids: list[list[int]] = []
        for start in range(0, len(texts), 10_000):
            block = list(texts[start : start + 10_000])
            ids += self.tokenizer(block, add_special_tokens=True, truncation=False)["input_ids"]
        cut = sum(len(row) > self.max_length_tokens for row in ids)
        if cut:
            short = self.tokenizer(
                [t for t, row in zip(texts, ids, strict=True) if len(row) > self.max_length_tokens],
                truncation=True,
                max_length=self.max_length_tokens,
            )["input_ids"]
            replacements = iter(short)
            ids = [next(replacements) if len(r) > self.max_length_tokens else r for r in ids]
            warnings.warn(
                f"{cut} of {len(ids)} utterances are longer than {self.max_length_tokens} tokens "
                "and were cut; raise encoder.max_length_tokens to keep them whole",
                RonidWarning,
                stacklevel=2,
            )
        starts = np.concatenate([[0], np.cumsum([len(row) for row in ids])]).astype(np.int64)
        flat = np.fromiter((t for row in ids for t in row), np.int32, int(starts[-1]))
        pad = self.tokenizer.pad_token_id
        return TokenRows(torch.from_numpy(flat).to(self.device), starts, 0 if pad is None else pad)

    def _pooled_key(self, texts: Sequence[str]) -> str:
        """Key of what no trained layer touches: the texts, how they are cut, and the weights."""
        how = f"pooled {self.words} {self.max_length_tokens} {len(self.tokenizer)}"
        return content_key([how, *texts, *self._weights_below()])

    def _frozen_key(self, rows: TokenRows, dtype: torch.dtype) -> str:
        """Key of the frozen output: the tokens, the frozen weights, and how it is stored."""
        return content_key(
            [
                f"{self.frozen_layers}/{len(self.layers)} {dtype}",
                rows.starts.tobytes(),
                rows.ids.cpu().numpy().tobytes(),
                *self._weights_below(),
            ]
        )

    def _weights_below(self) -> Iterator[bytes]:
        """Yield the weights of the frozen layers: they may have been trained before."""
        upper = {id(p) for layer in self._upper for p in layer.parameters()}
        for weight in self.model.parameters():
            if id(weight) not in upper:
                yield weight.detach().cpu().numpy().tobytes()


def _spare_bytes(device: torch.device) -> int:
    """Memory of the device that kept states may take."""
    return torch.cuda.mem_get_info(device)[0] // 4 if device.type == "cuda" else 0


def _first(output: Any) -> Tensor:
    """Return the states out of a layer's answer, whichever form the family uses."""
    return output[0] if isinstance(output, tuple) else output


def _fingerprint(model: nn.Module) -> str:
    """Return a hash of the weights as they were loaded, to recognise the same encoder later."""
    weights = (p.detach().numpy() for p in model.parameters())
    return content_key([model.config.model_type, *(w.tobytes() for w in weights)])  # type: ignore[union-attr,list-item]


def _scatter(states: Tensor, mask: Tensor, rows: TokenRows, index: np.ndarray, out: Tensor) -> None:
    """Write the token states of a padded batch to their places in `out`."""
    lengths = rows.lengths[index]
    places = np.concatenate(
        [np.arange(s, s + n) for s, n in zip(rows.starts[index], lengths, strict=True)]
    )
    flat = states[mask.bool()]  # row-major, so in the order of `places`
    out[torch.from_numpy(places).to(out.device)] = flat.to(out.dtype).to(out.device)
