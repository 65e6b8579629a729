"""Intent discovery as a scikit-learn estimator: `fit(X, y)` with missing labels, then `predict`."""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state

from ronid.config import MethodConfig, differences, updated
from ronid.data.corpus import corpus_from
from ronid.errors import RonidWarning, UsageError
from ronid.methods import recipe
from ronid.presets import AUTO, WITHOUT_GPU
from ronid.types import Corpus, FloatArray, IntArray, Intent


class IntentDiscovery(ClusterMixin, BaseEstimator):
    """Recognise known intents and discover new ones, by any method there is.

    Args:
        n_intents: How many intents there are, known and new together; None to find out. A number
            is kept unless the data show fewer, which a warning tells.
        method: Name of the method; `ronid methods` lists them.
        encoder: A model folder or a hub id; None for that of the recipe, which is the embedded one
            where it reads with an encoder. Not used when X is a matrix.
        preset: Of RoNID `default` (all layers learn; for a GPU), `fast` (frozen encoder and
            adapter; for laptops), `paper` (as published), or `auto`: `default` where there is a
            GPU, else `fast`, with a warning. Of every other method `published` or `auto`, which
            is the same.
        settings: Further settings by section, such as `{"m_step": {"alpha": 0.5}}`.
        random_state: Seed; the same seed gives the same labels on CPU.
        device: `auto`, `cpu` or `cuda`.
        exact: Whether `n_intents` is certain.

    Attributes:
        labels_: (n,) index into `intents_` for every utterance of `fit`.
        intents_: What was found: name, known or new, size, exemplars, keyphrases, confidence.
        classes_: (k,) names of the intents, in the order of `predict_proba`.
        model_: The fitted model.

    Example:
        >>> model = IntentDiscovery(24, method="kmeans").fit(texts)     # doctest: +SKIP
        >>> model.predict(["the bike will not unlock"])                 # doctest: +SKIP
        array(['unlock_failed'], dtype=object)
    """

    def __init__(  # noqa: PLR0913 - what a user may choose
        self,
        n_intents: int | None = None,
        *,
        method: str = "ronid",
        encoder: str | None = None,
        preset: str = AUTO,
        settings: Mapping[str, Any] | None = None,
        random_state: int | np.random.RandomState | None = 0,
        device: str = "auto",
        exact: bool = False,
    ) -> None:
        self.n_intents = n_intents
        self.method = method
        self.encoder = encoder
        self.preset = preset
        self.settings = settings
        self.random_state = random_state
        self.device = device
        self.exact = exact

    def fit(self, X: Any, y: Any = None) -> Self:
        """Discover the intents of X.

        Args:
            X: n utterances (list, array, Series), or an (n, d) matrix of embeddings.
            y: n labels (list, array, Series, or a frame of one column); None, NaN, "" or -1 where
                the intent is not known.
        """
        from ronid.pipeline import discover

        corpus = _corpus(X, y)
        seed = self.random_state
        if not isinstance(seed, int | np.integer):
            seed = check_random_state(seed).randint(2**31)
        config = self._config(vectors=corpus.embeddings is not None)
        found = discover(
            corpus,
            self.n_intents,
            config,
            exact=self.exact,
            seed=int(seed),
            device=self.device,
        )
        if self.n_intents is not None and found.discovery.n_intents < self.n_intents:
            warnings.warn(
                f"{self.n_intents} intents asked for, and {found.discovery.n_intents} made: the "
                "data show fewer, or some got no utterance; exact=True makes as many as asked for",
                RonidWarning,
                stacklevel=2,
            )
        self.model_ = found.model
        self.labels_ = found.discovery.labels
        self.confidence_ = found.discovery.confidence
        self._publish()
        return self

    def fit_predict(self, X: Any, y: Any = None) -> IntArray:
        """Discover the intents of X as `fit` does; return `labels_`.

        Args:
            X: As for `fit`.
            y: As for `fit`; that of scikit-learn would leave the labels out.
        """
        return self.fit(X, y).labels_

    def predict(
        self, X: Any, *, none: str | None = None, threshold: float | None = None
    ) -> NDArray[np.object_]:
        """Return the intent's name for every utterance of X.

        Args:
            X: Utterances, or an (n, d) matrix of embeddings.
            none: What to answer where an utterance belongs to none of the intents, such as
                `"none_of_these"`; without it the nearest intent is always the answer.
            threshold: Least belonging that is accepted, from 0 (all) to 1; None for the model's
                own. Says nothing without `none`.
        """
        answer = self._fitted().predict(_inputs(X), threshold=threshold)
        if none is None:
            return answer.names
        if none in self.classes_:
            raise UsageError(f"none='{none}' is the name of an intent; give another word")
        return np.where(answer.accepted, answer.names, none)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the (n, k) probabilities, columns as in `classes_`."""
        return self._fitted().predict(_inputs(X)).probabilities

    def transform(self, X: Any) -> FloatArray:
        """Return the (n, d) features of the trained encoder, of length 1 in RoNID."""
        return self._fitted().transform(_inputs(X))

    def score(self, X: Any, y: Any) -> float:
        """Return the clustering accuracy (0 to 1) on the labelled rows of X."""
        from ronid.metrics import clustering_accuracy

        predicted = self.predict(X)
        truth = corpus_from(None, y, embeddings=np.zeros((len(predicted), 1))).labels
        rows = [i for i, name in enumerate(truth) if name is not None]
        if not rows:
            raise UsageError("no row of y has a label; score needs some")
        # Names become numbers: known intents keep one number in truth and prediction.
        numbers = {name: i for i, name in enumerate(self.classes_)}
        for name in truth:
            if name is not None:
                numbers.setdefault(name, len(numbers))
        percent = clustering_accuracy(
            [numbers[str(truth[i])] for i in rows], [numbers[predicted[i]] for i in rows]
        )
        return percent / 100

    def save(self, folder: str | Path) -> Path:
        """Write the fitted model to a folder: safetensors, JSON, TOML and Parquet, no pickle."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = Path(folder)
        self._fitted().save(path)
        table = pa.table({"index": self.labels_, "confidence": self.confidence_})
        pq.write_table(table, path / "assignments.parquet")
        return path

    @classmethod
    def load(cls, folder: str | Path, *, device: str = "auto", encoder: str | None = None) -> Self:
        """Load a model that `save` or `ronid fit` wrote.

        Args:
            folder: Its folder.
            device: Where it will run.
            encoder: Folder of the base encoder, if it has moved since.
        """
        import pyarrow.parquet as pq

        from ronid.model import load_model
        from ronid.versions import current_folder

        model = load_model(Path(folder), device, encoder)
        made_by = model.config.method
        if issubclass(cls, RoNID) and made_by != "ronid":
            raise UsageError(
                f"'{folder}' was made by method '{made_by}'; load it with IntentDiscovery.load"
            )
        own: dict[str, Any] = {} if issubclass(cls, RoNID) else {"method": made_by}
        loaded = cls(
            len(model.intents),
            **own,
            encoder=model.config.encoder.name,
            preset=model.config.preset,
            random_state=model.seed,
            device=device,
        )
        loaded.settings = differences(model.config, loaded._config()) or None
        loaded.model_ = model
        table = pq.read_table(current_folder(Path(folder)) / "assignments.parquet")
        loaded.labels_ = table["index"].to_numpy()
        loaded.confidence_ = table["confidence"].to_numpy()
        loaded._publish()
        return loaded

    def _config(self, vectors: bool = False) -> MethodConfig:
        gpu = False
        if self.method == "ronid" and self.preset == AUTO and not vectors:
            from ronid.train.optim import choose_device

            gpu = choose_device(self.device).type == "cuda"
            if not gpu:
                warnings.warn(WITHOUT_GPU, RonidWarning, stacklevel=3)
        chosen = recipe(self.method, self.preset, gpu=gpu, vectors=vectors)
        named = {} if self.encoder is None else {"encoder": {"name": self.encoder}}
        config: MethodConfig = updated(chosen, named)
        if self.settings is not None and not isinstance(self.settings, Mapping):
            raise UsageError(
                f"settings are {self.settings!r:.40}; give them by section, such as "
                '{"encoder": {"trainable_layers": 0}}'
            )
        if self.settings:
            for name in ("method", "preset"):
                if name in self.settings:
                    raise UsageError(f"settings name a {name}; give it as {name}=... instead")
            config = updated(config, self.settings)
        return config

    def _publish(self) -> None:
        self.intents_: tuple[Intent, ...] = self.model_.intents
        self.classes_ = np.array([intent.name for intent in self.intents_], dtype=object)

    def _fitted(self) -> Any:
        if not hasattr(self, "model_"):
            raise NotFittedError(
                f"this {type(self).__name__} is not fitted yet; call fit(X, y) first"
            )
        return self.model_


class RoNID(IntentDiscovery):
    """Recognise known intents and discover new ones by RoNID.

    Args:
        n_intents: How many intents there are, known and new together; None to find out. A number
            is kept unless the data show fewer, which a warning tells.
        encoder: A model folder or a hub id; None for that of the recipe, which is the embedded one
            where it reads with an encoder. Not used when X is a matrix.
        preset: `default` (all layers learn; for a GPU), `fast` (frozen encoder and adapter; for
            laptops), `paper` (as published), or `auto`: `default` where there is a GPU, else
            `fast`, with a warning.
        settings: Further settings by section, such as `{"m_step": {"alpha": 0.5}}`.
        random_state: Seed; the same seed gives the same labels on CPU.
        device: `auto`, `cpu` or `cuda`.
        exact: Whether `n_intents` is certain.

    Attributes:
        labels_: (n,) index into `intents_` for every utterance of `fit`.
        intents_: What was found: name, known or new, size, exemplars, keyphrases, confidence.
        classes_: (k,) names of the intents, in the order of `predict_proba`.
        model_: The fitted model.

    Example:
        >>> model = RoNID(n_intents=24).fit(texts, labels)     # doctest: +SKIP
        >>> model.predict(["the bike will not unlock"])        # doctest: +SKIP
        array(['unlock_failed'], dtype=object)
    """

    def __init__(
        self,
        n_intents: int | None = None,
        *,
        encoder: str | None = None,
        preset: str = AUTO,
        settings: Mapping[str, Any] | None = None,
        random_state: int | np.random.RandomState | None = 0,
        device: str = "auto",
        exact: bool = False,
    ) -> None:
        super().__init__(
            n_intents,
            encoder=encoder,
            preset=preset,
            settings=settings,
            random_state=random_state,
            device=device,
            exact=exact,
        )


def _corpus(X: Any, y: Any) -> Corpus:
    """Return the corpus of what a user passes to `fit`."""
    inputs = _inputs(X)
    if isinstance(inputs, np.ndarray):
        return corpus_from(None, y, embeddings=inputs)
    return corpus_from(inputs, y)


def _inputs(X: Any) -> list[str] | FloatArray:
    """Return texts as a list, or a matrix of numbers as float32."""
    if isinstance(X, str):
        raise UsageError("X is one string; give a list of utterances")
    array = X if isinstance(X, np.ndarray) else None
    if array is None and hasattr(X, "to_numpy") and len(getattr(X, "shape", ())) == 2:
        array = X.to_numpy()
    if array is not None and array.ndim == 2 and np.issubdtype(array.dtype, np.number):
        return np.asarray(array, np.float32)
    if array is not None and array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array is not None and array.ndim != 1:
        raise UsageError(f"X has shape {array.shape}; give n utterances or an (n, d) matrix")
    texts = list(X if array is None else array)
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise UsageError(
                f"X[{row}] is {text!r:.40}, of type {type(text).__name__}, not a text; "
                "give strings, or embeddings as an (n, d) array"
            )
    return [str(text) for text in texts]
