"""What training changes: kept in one place, so that it can be saved and put back exactly."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from ronid.config import OptimiserConfig
from ronid.encode.encoder import Encoder, Inputs
from ronid.progress import Progress, Silent
from ronid.seeds import derive
from ronid.train.checkpoint import Keeper, Saved
from ronid.types import Split


@dataclass
class StageState:
    """The changing parts of one stage.

    Args:
        encoder: Trained in every stage.
        heads: Further modules trained in this stage, by name.
        tensors: Tensors the stage replaces as it goes, such as prototypes.
        scalars: Counters.
    """

    encoder: Encoder
    heads: dict[str, nn.Module] = field(default_factory=dict)
    tensors: dict[str, Tensor] = field(default_factory=dict)
    scalars: dict[str, Any] = field(default_factory=dict)

    @torch.no_grad()
    def put(self, name: str, value: Tensor) -> None:
        """Set a tensor, in place where there is one: a recorded step goes on reading it."""
        value = value.detach().to(self.encoder.device)
        old = self.tensors.get(name)
        if old is not None and old.shape == value.shape and old.dtype == value.dtype:
            old.copy_(value)
        else:
            self.tensors[name] = value.clone()

    def put_labels(self, labels: Tensor) -> dict[str, float]:
        """Set `labels`; return `changed`, the share that is not what it was, if there were any."""
        old = self.tensors.get("labels")
        changed = {} if old is None else {"changed": float((labels != old).double().mean())}
        self.put("labels", labels)
        return changed

    def weights(self) -> dict[str, Tensor]:
        """Return all trained weights by name."""
        weights = {f"encoder/{n}": p for n, p in self.encoder.trained_state().items()}
        for head, module in self.heads.items():
            weights |= {f"{head}/{n}": p for n, p in module.named_parameters() if p.requires_grad}
        return weights


@dataclass
class Training:
    """What the stages of one fit share.

    Args:
        encoder: The encoder being trained.
        seed: Run seed.
        optimiser: Settings of the optimiser.
        progress: Told about every stage and step.
        checkpoint: Where the fit in progress is kept, or None.
        history: One row per finished epoch.
        finished: Names of the stages that are over.
        kept: What finished stages leave to later ones beside the trained encoder.
    """

    encoder: Encoder
    seed: int = 0
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    progress: Progress = field(default_factory=Silent)
    checkpoint: Keeper | None = None
    history: list[dict[str, Any]] = field(default_factory=list)
    finished: list[str] = field(default_factory=list)
    kept: dict[str, Tensor] = field(default_factory=dict)
    _saved: Saved | None = None

    def restore(self) -> None:
        """Take up what the checkpoint holds: finished stages, history and the encoder."""
        self._saved = self.checkpoint.load() if self.checkpoint else None
        if self._saved is None:
            return
        self.history[:] = self._saved.values["history"]
        self.finished[:] = self._saved.values["finished"]
        self.kept = _under("kept", self._saved.tensors)
        self.encoder.load_trained(_under("encoder", self._saved.tensors))

    def begin(self, stage: str, state: StageState, optimiser: torch.optim.Optimizer) -> int:
        """Return the epoch at which `stage` goes on, its state put back where one was saved."""
        saved = self._saved
        if saved is None or saved.values["stage"] != stage:
            return 0
        for name, weight in state.weights().items():
            with torch.no_grad():
                weight.copy_(saved.tensors[name])
        device = state.encoder.device
        state.tensors |= {n: t.to(device) for n, t in _under("state", saved.tensors).items()}
        state.scalars |= saved.values["scalars"]
        _load_optimiser(optimiser, _under("optimiser", saved.tensors))
        return int(saved.values["epoch"])

    def keep(
        self, stage: str, epoch: int, state: StageState, optimiser: torch.optim.Optimizer
    ) -> None:
        """Write a checkpoint of `stage` after `epoch` finished epochs."""
        if self.checkpoint is None:
            return
        tensors = state.weights()
        tensors |= {f"state/{n}": t for n, t in state.tensors.items()}
        tensors |= {f"optimiser/{n}": t for n, t in _optimiser_tensors(optimiser).items()}
        self._write(tensors, {"stage": stage, "epoch": epoch, "scalars": state.scalars})

    def finish(self, stage: str, kept: Mapping[str, Tensor] | None = None) -> None:
        """Note that `stage` is over and write a checkpoint of the encoder and of what is kept.

        Args:
            stage: Its name.
            kept: Tensors that later stages need, such as `head_weights`; every later checkpoint
                holds them too.
        """
        self.finished.append(stage)
        self.kept |= {name: tensor.detach().clone() for name, tensor in (kept or {}).items()}
        self._saved = None
        if self.checkpoint is not None:
            tensors = {f"encoder/{n}": p for n, p in self.encoder.trained_state().items()}
            self._write(tensors, {"stage": "", "epoch": 0, "scalars": {}})

    @torch.no_grad()
    def recall(self, name: str, head: nn.Module) -> None:
        """Give `head` the weights that a finished stage kept under `name`, where one did."""
        kept = _under(name, self.kept)
        for key, weight in head.named_parameters():
            if key in kept:
                weight.copy_(kept[key])

    def _write(self, tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> None:
        assert self.checkpoint is not None
        kept = {f"kept/{name}": tensor for name, tensor in self.kept.items()}
        self.checkpoint.save(
            {**tensors, **kept}, {**values, "history": self.history, "finished": self.finished}
        )


def head_weights(heads: Mapping[str, nn.Module]) -> dict[str, Tensor]:
    """Return the weights of heads by name, as `Training.finish` keeps and `recall` finds them."""
    return {
        f"{head}/{name}": weight
        for head, module in heads.items()
        for name, weight in module.named_parameters()
    }


def inputs_of(split: Split) -> Inputs:
    """Return what the encoder reads of the training rows: texts, or the embeddings given."""
    return split.texts if split.embeddings is None else split.embeddings


def dev_inputs_of(split: Split) -> Inputs:
    """Return what the encoder reads of the held-out rows."""
    return split.dev_texts if split.dev_embeddings is None else split.dev_embeddings


def generator_of(device: torch.device, seed: int, *coordinates: str | int) -> torch.Generator:
    """Return the generator of one place of a run."""
    return torch.Generator(device).manual_seed(derive(seed, *coordinates))


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors named `prefix/...`, without the prefix."""
    start = f"{prefix}/"
    return {n.removeprefix(start): t for n, t in tensors.items() if n.startswith(start)}


def _optimiser_tensors(optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return the moments and step counts by position of the weight."""
    state = optimiser.state_dict()["state"]
    return {f"{i}/{key}": torch.as_tensor(v) for i, d in state.items() for key, v in d.items()}


def _load_optimiser(optimiser: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Put back what `_optimiser_tensors` returned."""
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        position, key = name.split("/")
        state.setdefault(int(position), {})[key] = tensor
    optimiser.load_state_dict({**optimiser.state_dict(), "state": state})
