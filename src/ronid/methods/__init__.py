"""Methods of new intent discovery: one recipe per module, one literal table.

A module has a frozen dataclass `Config` whose defaults are the published constants, `PUBLISHED`
with those that were published per benchmark, and `fit(split, config, training) -> Discovery`.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ronid.config import DEFAULT_ENCODER, TFIDF, EncoderConfig, MethodConfig, updated
from ronid.errors import ConfigError, UsageError
from ronid.presets import AUTO, PRESETS, preset
from ronid.toml import read_toml
from ronid.types import Discovery, Split

if TYPE_CHECKING:
    from ronid.train.state import Training

PUBLISHED = "published"
"""The one preset of every method but RoNID: the constants of its paper or of its authors' code."""


@dataclass(frozen=True)
class Spec:
    """One method.

    Args:
        title: Name in tables.
        paper: Where it was published.
        module: Where its recipe is.
        kind: Whether it uses labels at all.
        needs_labels: Whether it cannot do without them.
        compares_known: Whether it needs labels of two intents at least.
        counts: Whether it finds the number of intents itself, where that is not given.
        takes_embeddings: Whether it has settings that work on given embeddings in place of texts;
            the others train the layers of an encoder.
        wants_gpu: Whether its published length takes hours without a GPU.
        estimates_prior: Whether it estimates the share of every intent apart from the labels found.
        inference: How its published figures were made: by the intent that it gives to an utterance
            (`argmax`), or by clustering the scored file anew (`refit`).
        note: What must be said of it.
        printed: What must be said of the figures that are printed under its name.
    """

    title: str
    paper: str
    module: str
    kind: Literal["unsupervised", "semi-supervised"]
    needs_labels: bool = False
    compares_known: bool = False
    counts: bool = False
    takes_embeddings: bool = False
    wants_gpu: bool = True
    estimates_prior: bool = False
    inference: Literal["argmax", "refit"] = "argmax"
    note: str = ""
    printed: str = ""

    @property
    def full_title(self) -> str:
        """Name with what must be said of it, wherever it stands."""
        return f"{self.title} ({self.note})" if self.note else self.title

    @property
    def table_title(self) -> str:
        """The same beside figures that were printed elsewhere."""
        said = ", ".join(filter(None, (self.note, self.printed)))
        return f"{self.title} ({said})" if said else self.title


METHODS: dict[str, Spec] = {
    "kmeans": Spec(
        "K-means",
        "MacQueen, 1967",
        "ronid.methods.kmeans",
        "unsupervised",
        takes_embeddings=True,
        wants_gpu=False,
    ),
    "agglomerative": Spec(
        "AC",
        "Gowda and Krishna, 1978",
        "ronid.methods.agglomerative",
        "unsupervised",
        takes_embeddings=True,
        wants_gpu=False,
        inference="refit",
    ),
    "sae_kmeans": Spec(
        "SAE-KM",
        "Xie et al., ICML 2016",
        "ronid.methods.sae_kmeans",
        "unsupervised",
        takes_embeddings=True,
    ),
    "dec": Spec(
        "DEC", "Xie et al., ICML 2016", "ronid.methods.dec", "unsupervised", takes_embeddings=True
    ),
    "dcn": Spec(
        "DCN",
        "Yang et al., ICML 2017",
        "ronid.methods.dcn",
        "unsupervised",
        takes_embeddings=True,
        printed="the printed row is IDEC",
    ),
    "dac": Spec("DAC", "Chang et al., ICCV 2017", "ronid.methods.dac", "unsupervised"),
    "deepcluster": Spec(
        "DeepCluster",
        "Caron et al., ECCV 2018",
        "ronid.methods.deepcluster",
        "unsupervised",
        inference="refit",
        note="guesses for text",
    ),
    "kcl": Spec(
        "KCL",
        "Hsu et al., ICLR 2018",
        "ronid.methods.kcl",
        "semi-supervised",
        needs_labels=True,
        compares_known=True,
    ),
    "cdac_plus": Spec(
        "CDAC+", "Lin et al., AAAI 2020", "ronid.methods.cdac_plus", "semi-supervised"
    ),
    "gcd": Spec("GCD", "Vaze et al., CVPR 2022", "ronid.methods.gcd", "semi-supervised"),
    "deep_aligned": Spec(
        "DeepAligned",
        "Zhang et al., AAAI 2021",
        "ronid.methods.deep_aligned",
        "semi-supervised",
        inference="refit",
    ),
    "dsscc": Spec(
        "DSSCC",
        "Kumar et al., NAACL 2022",
        "ronid.methods.dsscc",
        "semi-supervised",
        note="reconstruction",
    ),
    "dpn": Spec(
        "DPN",
        "An et al., AAAI 2023",
        "ronid.methods.dpn",
        "semi-supervised",
        needs_labels=True,
        inference="refit",
    ),
    "clnn": Spec(
        "CLNN", "Zhang et al., ACL 2022", "ronid.methods.clnn", "semi-supervised", inference="refit"
    ),
    "latent_em": Spec(
        "LatentEM",
        "Zhou et al., ACL 2023",
        "ronid.methods.latent_em",
        "semi-supervised",
        inference="refit",
    ),
    "usnid": Spec(
        "USNID",
        "Zhang et al., TKDE 2023",
        "ronid.methods.usnid",
        "semi-supervised",
        inference="refit",
    ),
    "dwgf": Spec(
        "DWGF", "Shi et al., EMNLP 2023", "ronid.methods.dwgf", "semi-supervised", inference="refit"
    ),
    "ronid": Spec(
        "RoNID",
        "Zhang et al., DASFAA 2024",
        "ronid.methods.ronid",
        "semi-supervised",
        counts=True,
        takes_embeddings=True,
        wants_gpu=False,  # `auto` chooses the preset that suits the machine
        estimates_prior=True,
    ),
}
"""In the order of the table of RoNID's paper."""


@dataclass(frozen=True)
class Asked:
    """What a file of settings asks for.

    Args:
        method: Name of the method, "" where it names none.
        preset: Name of the preset, `auto` where it names none.
        changes: Its sections.
    """

    method: str
    preset: str
    changes: Mapping[str, Any]


def method(name: str) -> Any:
    """Import and return the module of a method.

    Raises:
        ConfigError: No such method.
    """
    if not isinstance(name, str):
        raise ConfigError(f"method is {name!r:.40}; give the name of one: {', '.join(METHODS)}")
    if name not in METHODS:
        near = difflib.get_close_matches(name, METHODS, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"choose one of: {', '.join(METHODS)}"
        raise ConfigError(f"no method '{name}'; {hint}")
    return import_module(METHODS[name].module)


def presets_of(name: str) -> tuple[str, ...]:
    """Return the presets of a method."""
    return tuple(PRESETS) if name == "ronid" else (PUBLISHED,)


def recipe(
    name: str, preset_name: str = AUTO, *, gpu: bool = False, vectors: bool = False
) -> MethodConfig:
    """Return the settings of a method.

    Args:
        name: A key of `METHODS`.
        preset_name: One of its presets, or `auto`.
        gpu: Whether training happens on a GPU; only `auto` asks.
        vectors: Whether embeddings are given instead of texts; only `auto` asks.

    Raises:
        ConfigError: No such method or preset.
    """
    if not isinstance(preset_name, str):
        raise ConfigError(f"preset is {preset_name!r:.40}; give the name of one, such as '{AUTO}'")
    if name == "ronid":
        return preset(preset_name, gpu=gpu, vectors=vectors)
    module = method(name)
    if preset_name not in (AUTO, PUBLISHED):
        raise ConfigError(
            f"method '{name}' has no preset '{preset_name}'; choose one of: {AUTO}, {PUBLISHED}"
        )
    config: MethodConfig = module.Config()
    return config


def frozen_recipe(encoder: EncoderConfig) -> EncoderConfig:
    """Return the settings of the encoder as it is before training, for a first look at the rows.

    Counts of words, which tell too little, give way to the embedded encoder.
    """
    name = DEFAULT_ENCODER if encoder.name == TFIDF else encoder.name
    return EncoderConfig(name=name, trainable_layers=0)


def published(name: str, dataset: str) -> Mapping[str, Any]:
    """Return the constants that were published for one benchmark only."""
    found: Mapping[str, Any] = getattr(method(name), "PUBLISHED", {}).get(dataset, {})
    return found


def fit(split: Split, config: MethodConfig, training: "Training") -> Discovery:
    """Discover the intents of `split` by the method that `config` belongs to.

    Args:
        split: The problem.
        config: The recipe.
        training: Encoder, seed, progress and checkpoint of this fit.

    Raises:
        UsageError: The method needs labels and there are none.
    """
    check_labels(config.method, len(split.labelled), len(split.known), split.n_intents)
    found: Discovery = method(config.method).fit(split, config, training)
    return found


def check_labels(name: str, labelled: int, known: int, intents: int | None = None) -> None:
    """Refuse a corpus without labels, or of one known intent, where a method needs more.

    Args:
        name: The method.
        labelled: How many utterances are labelled.
        known: With how many intents.
        intents: How many intents there are, if that is known: of one, none can differ.

    Raises:
        UsageError: It is so.
    """
    if METHODS[name].compares_known and labelled and known == 1 != intents:
        raise UsageError(
            f"method '{name}' learns from labelled utterances which two are alike and which are "
            "not, and all labels here are of one intent; label some of another, or choose a method "
            "that needs no labels, such as ronid"
        )
    if METHODS[name].needs_labels and not labelled:
        without = [key for key, spec in METHODS.items() if not spec.needs_labels]
        raise UsageError(
            f"method '{name}' learns from labelled utterances and there are none; label some, or "
            f"choose a method that needs none: {', '.join(without)}"
        )


def check_inputs(config: MethodConfig, *, embeddings: bool) -> None:
    """Refuse given embeddings and counts of words where a method trains the layers of an encoder.

    Args:
        config: The recipe.
        embeddings: Whether embeddings are given in place of texts.

    Raises:
        UsageError: It is so.
    """
    name, words = config.method, config.encoder.name == TFIDF
    if not (embeddings or words) or METHODS[name].takes_embeddings:
        return
    if config.encoder.trainable_layers:
        taking = [key for key, spec in METHODS.items() if spec.takes_embeddings]
        what, instead = ("embeddings", "give texts") if embeddings else (
            "counts of words", "choose another encoder"
        )  # fmt: skip
        raise UsageError(
            f"method '{name}' trains the layers of an encoder, so {what} are of no use to it; "
            f"{instead}, or choose a method that takes {what}: {', '.join(taking)}"
        )


def read_settings(path: Path) -> Asked:
    """Read a TOML file of settings."""
    changes = read_toml(path)
    changes.pop("format_version", None)
    named, preset_name = str(changes.pop("method", "")), str(changes.pop("preset", AUTO))
    return Asked(named, preset_name, changes)


def from_toml(path: Path) -> MethodConfig:
    """Return the config of a TOML file: its method and preset, with its sections applied."""
    return configured(read_settings(path))


def configured(asked: Asked, *, gpu: bool = False) -> MethodConfig:
    """Return the recipe that is asked for, RoNID's where no method is named.

    Args:
        asked: Method, preset and changes.
        gpu: Whether training happens on a GPU; only `auto` asks.

    Raises:
        ConfigError: No such method, preset or setting.
    """
    chosen = recipe(asked.method or "ronid", asked.preset, gpu=gpu)
    try:
        config: MethodConfig = updated(chosen, asked.changes)
    except ConfigError as error:
        # To look at the others takes torch, which is slow to import: not for a slip of the pen.
        strange = str(error).startswith("unknown setting") and "did you mean" not in str(error)
        others = METHODS if strange and not asked.method else ()
        meant = [name for name in others if _has(name, asked.changes)]
        if not meant:
            raise
        raise ConfigError(
            f"{error}; no method is named, so these are settings of RoNID: name the one you mean, "
            f"they fit {', '.join(meant)}"
        ) from None
    return config


def _has(name: str, changes: Mapping[str, Any]) -> bool:
    """Whether a method has all these settings."""
    try:
        updated(recipe(name), changes)
    except ConfigError:
        return False
    return True
