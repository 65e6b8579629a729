"""A fitted model: encoder, prototypes and named intents; predicts, saves and loads."""

from dataclasses import dataclass
from pathlib import Path
from shutil import copyfile
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file

from ronid.config import MethodConfig, to_dict, updated
from ronid.encode.cache import FrozenCache
from ronid.encode.encoder import Encoder, Inputs, VectorBackbone, build_encoder
from ronid.errors import RonidError, UsageError
from ronid.files import FORMAT_VERSION, read_json, write_json
from ronid.head import Scope, predict
from ronid.intents_file import read_intents, write_intents
from ronid.methods import from_toml
from ronid.progress import Progress
from ronid.toml import to_toml
from ronid.train.optim import choose_device
from ronid.types import FloatArray, IntArray, Intent, Rule
from ronid.version import __version__
from ronid.versions import current_folder, link

WEIGHTS = Path("encoder", "weights.safetensors")
GROWN = Path("encoder", "intents.safetensors")
"""Prototypes and scope of a model that was updated; its `WEIGHTS` are those before the update."""


@dataclass(frozen=True)
class Answer:
    """Predicted intents.

    Args:
        labels: (n,) index of the intent.
        names: (n,) its name.
        confidence: (n,) its probability.
        probabilities: (n, k) of all intents.
        belonging: (n,) how well the utterance belongs to the intents at all: the share of training
            utterances that lie as far from the others, or farther; 1 where the model has no scope.
        accepted: (n,) whether it is taken to be; else the answer is "none of these", and `labels`
            and `names` say which intent is nearest.
    """

    labels: IntArray
    names: np.ndarray
    confidence: FloatArray
    probabilities: np.ndarray
    belonging: FloatArray
    accepted: NDArray[np.bool_]


@dataclass(frozen=True)
class IntentModel:
    """What `fit` returns and `load` brings back.

    Args:
        config: The recipe it was made with.
        encoder: The trained encoder.
        prototypes: (k, d), known intents first.
        prior: (k,) estimated shares.
        temperature: Turns closeness into probabilities.
        intents: The k intents.
        seed: Seed of the run.
        rule: What closeness is.
        scope: Tells what belongs to no intent; None where that was not learnt, and all is accepted.
    """

    config: MethodConfig
    encoder: Encoder
    prototypes: FloatArray
    prior: np.ndarray
    temperature: float
    intents: tuple[Intent, ...]
    seed: int = 0
    rule: Rule = "cosine"
    scope: Scope | None = None

    def transform(self, inputs: Inputs, progress: Progress | None = None) -> FloatArray:
        """Return the (n, d) features of utterances (or of given embeddings)."""
        if len(inputs) == 0:
            return np.empty((0, self.encoder.dim), np.float32)
        # A cache of its own: what is predicted must not pile up in memory.
        kept, self.encoder.cache = self.encoder.cache, FrozenCache()
        try:
            rows = self.encoder.prepare(inputs, progress)
            return self.encoder.embed_all(rows).cpu().numpy()
        finally:
            self.encoder.cache = kept

    def predict(
        self, inputs: Inputs, progress: Progress | None = None, *, threshold: float | None = None
    ) -> Answer:
        """Return the intent of every utterance; each is answered alone as in any batch.

        Args:
            inputs: Utterances, or given embeddings.
            progress: Told what is going on.
            threshold: Least belonging that is accepted, 0 (all) to 1; None for the model's own.

        Raises:
            UsageError: The threshold is not in 0..1, or the model cannot tell what belongs.
        """
        least = self._threshold(threshold)
        vectors = self.transform(inputs, progress)
        found = predict(vectors, self.prototypes, self.temperature, self.rule)
        names = np.array([intent.name for intent in self.intents], dtype=object)
        rows = np.arange(len(vectors))
        confidence = found.probabilities[rows, found.labels].astype(np.float32)
        belonging = np.ones(len(vectors))
        if self.scope is not None:
            belonging = self.scope.belonging(vectors)
        return Answer(
            found.labels,
            names[found.labels],
            confidence,
            found.probabilities,
            belonging.astype(np.float32),
            belonging >= least,
        )

    def _threshold(self, given: float | None) -> float:
        """Return the least belonging that is accepted."""
        if given is None:
            return 0.0 if self.scope is None else self.scope.threshold
        if not 0 <= given <= 1:
            raise UsageError(f"the threshold is {given}; give a number from 0 (accept all) to 1")
        if given > 0 and self.scope is None:
            raise UsageError(
                "this model cannot tell what is out of scope, so no threshold can be set; "
                "fit it again with this version, on two utterances or more"
            )
        return given

    def save(self, folder: Path) -> None:
        """Write config, trained weights and intents; the untrained encoder is named, not copied."""
        (folder / "encoder").mkdir(parents=True, exist_ok=True)
        config = {"format_version": FORMAT_VERSION, **to_dict(self.config)}
        (folder / "config.toml").write_text(to_toml(config), encoding="utf-8")
        save_file(self._trained() | self._grown(), str(folder / WEIGHTS))
        write_json(folder / "model.json", self._about())
        write_intents(folder, self.intents)

    def save_beside(self, base: Path, folder: Path) -> None:
        """Write a model with the encoder of another folder, whose weights are linked.

        An adapter is written anew: it may have been trained on.

        Args:
            base: Folder of a saved model with the same trained encoder, but for its adapter.
            folder: Where to write.
        """
        link(base / WEIGHTS, folder / WEIGHTS)
        copyfile(base / "config.toml", folder / "config.toml")
        alone = self.encoder.adapter is not None and not self.encoder.backbone.trainable_layers
        save_file(self._grown() | (self._trained() if alone else {}), str(folder / GROWN))
        fitted = read_json(base / "model.json").get("fitted_intents") or len(read_intents(base))
        write_json(folder / "model.json", self._about() | {"fitted_intents": fitted})
        write_intents(folder, self.intents)

    def _grown(self) -> dict[str, torch.Tensor]:
        """Return the tensors that an update changes."""
        tensors = {"prototypes": self.prototypes, "prior": self.prior}
        if self.scope is not None:
            tensors |= {"scope.vectors": self.scope.vectors, "scope.usual": self.scope.usual}
        return {name: torch.from_numpy(array).contiguous() for name, array in tensors.items()}

    def _trained(self) -> dict[str, torch.Tensor]:
        """Return every weight of the encoder that training may have changed."""
        trained = self.encoder.trained_state()
        return {name: weight.detach().cpu().contiguous() for name, weight in trained.items()}

    def _about(self) -> dict[str, Any]:
        """Return what `model.json` says."""
        scope = self.scope
        reads_text = not isinstance(self.encoder.backbone, VectorBackbone)
        return {
            "format_version": FORMAT_VERSION,
            "ronid_version": __version__,
            "seed": self.seed,
            "temperature": self.temperature,
            "rule": self.rule,
            "scope": scope and {"scale": scope.scale, "threshold": scope.threshold},
            "encoder": self.encoder.name,
            "encoder_fingerprint": self.encoder.fingerprint(),
            "given_dim": None if reads_text else self.encoder.backbone.dim,
        }


def load_model(folder: Path, device: str = "auto", encoder: str | None = None) -> IntentModel:
    """Load a model from its folder.

    Args:
        folder: Folder written by `IntentModel.save` or by a run; the current version of a run.
        device: Where it will run.
        encoder: Folder of the base encoder, if it has moved since.

    Raises:
        DataError: Not a model folder, or an unfinished run.
        RonidError: The weights cannot be read, or belong to another base encoder.
    """
    folder = current_folder(folder)
    about = read_json(folder / "model.json")
    config = from_toml(folder / "config.toml")
    if encoder is not None:
        config = updated(config, {"encoder": {"name": encoder}})
    tensors = _read_weights(folder / WEIGHTS)
    if (folder / GROWN).exists():
        tensors |= _read_weights(folder / GROWN)
    prototypes, prior = tensors.pop("prototypes"), tensors.pop("prior")
    scope = None
    if about.get("scope"):  # older models have none
        vectors, usual = tensors.pop("scope.vectors"), tensors.pop("scope.usual")
        scope = Scope(vectors.numpy(), usual=usual.numpy(), **about["scope"])
    intents = read_intents(folder)
    built = build_encoder(
        config.encoder,
        choose_device(device),
        seed=about["seed"],
        n_intents=about.get("fitted_intents") or len(intents),  # a head of logits has not grown
        given_dim=about["given_dim"],
    )
    if built.fingerprint() != about["encoder_fingerprint"]:
        raise RonidError(
            f"encoder '{built.name}' is not the one model '{folder}' was trained on; "
            "give the folder of the right one"
        )
    built.load_trained(tensors)
    return IntentModel(
        config=config,
        encoder=built,
        prototypes=prototypes.numpy(),
        prior=prior.numpy(),
        temperature=about["temperature"],
        intents=intents,
        seed=about["seed"],
        rule=about.get("rule", "cosine"),  # older models know no other
        scope=scope,
    )


def _read_weights(path: Path) -> dict[str, torch.Tensor]:
    """Return the tensors of a model folder."""
    try:
        return load_file(str(path))
    except Exception as error:
        raise RonidError(
            f"weights '{path}' cannot be read ({error}); copy the model folder anew"
        ) from None
