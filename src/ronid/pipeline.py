"""The whole data flow in one place; read this file first.

    path -> load -> Corpus -> split -> Split -> encode -> train -> Discovery -> name -> Intents

`discover` is that flow in memory. `fit_run` is the same flow in a folder: what it needs to go on
is written before the work starts, and what it found when the work is done.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ronid.config import MethodConfig
from ronid.data.splits import split_corpus
from ronid.encode.cache import FrozenCache
from ronid.encode.encoder import build_encoder
from ronid.encode.language import warn_of_language
from ronid.errors import ConfigError
from ronid.export.card import write_card
from ronid.export.projection import project
from ronid.export.run_report import report_of_run
from ronid.head import calibrated
from ronid.methods import METHODS, check_inputs, fit, frozen_recipe
from ronid.model import IntentModel
from ronid.name.intents import name_intents
from ronid.progress import Progress, Silent, Stopwatch
from ronid.run import RunFolder
from ronid.train.checkpoint import Checkpoint
from ronid.train.count import count_on_frozen
from ronid.train.optim import choose_device
from ronid.train.state import Training
from ronid.types import Corpus, Discovery


@dataclass(frozen=True)
class Found:
    """What `discover` returns: the model to predict with, and what it says about the corpus."""

    model: IntentModel
    discovery: Discovery


def discover(  # noqa: PLR0913 - the one front door: what, how, and where to keep it
    corpus: Corpus,
    n_intents: int | None,
    config: MethodConfig,
    *,
    exact: bool = True,
    dev: Corpus | None = None,
    seed: int = 0,
    device: str = "auto",
    progress: Progress | None = None,
    work: Path | None = None,
    cache: FrozenCache | None = None,
) -> Found:
    """Discover the intents of `corpus`.

    Args:
        corpus: Utterances, some of them labelled.
        n_intents: How many intents there are, known and new together; None to find out.
        config: The recipe, such as `ronid.methods.recipe("ronid", "fast")`; it names its method.
        exact: Whether `n_intents` is certain; else fewer are found where there clearly are.
        dev: Held-out labelled utterances for early stopping; without it some labelled ones serve.
        seed: Everything random derives from it.
        device: `auto`, `cpu` or `cuda`.
        progress: Told what is going on.
        work: Folder for checkpoint and cache; an earlier interrupted call is taken up there.
        cache: Keeps the output of frozen layers between calls, instead of `work`.
    """
    progress = progress or Silent()
    check_inputs(config, embeddings=corpus.embeddings is not None)
    split = split_corpus(
        corpus, n_intents, exact=exact, dev=dev, seed=seed, hold_out=config.holds_out
    )
    how: dict[str, Any] = {
        "seed": seed,
        "given_dim": None if corpus.embeddings is None else corpus.embeddings.shape[1],
        "cache": cache or FrozenCache(work / "cache" if work else None),
    }
    place, certain = choose_device(device), split.count_rule == "given"
    counted: list[dict[str, Any]] = []
    if split.count_rule != "given" and not METHODS[config.method].counts:
        frozen = build_encoder(frozen_recipe(config.encoder), place, **how)
        split = count_on_frozen(Training(frozen, seed, progress=progress, history=counted), split)
    encoder = build_encoder(config.encoder, place, n_intents=split.n_intents, **how)
    warn_of_language(corpus.texts, encoder.backbone)
    checkpoint = Checkpoint(work / "checkpoint.safetensors", _every_s()) if work else None
    training = Training(encoder, seed, config.optimiser, progress, checkpoint, counted)
    training.restore()

    found = _keep_given(fit(split, config, training), corpus)
    discovery, scope = calibrated(found if certain else without_empty(found))
    intents = name_intents(corpus.texts, discovery)
    model = IntentModel(
        config=config,
        encoder=encoder,
        prototypes=discovery.prototypes,
        prior=discovery.prior,
        temperature=discovery.temperature,
        rule=discovery.rule,
        intents=intents,
        seed=seed,
        scope=scope,
    )
    return Found(model, discovery)


def _every_s() -> float:
    """Return the seconds between two checkpoints: RONID_CHECKPOINT_S, or 20."""
    value = os.environ.get("RONID_CHECKPOINT_S", "20")
    try:
        return float(value)
    except ValueError:
        raise ConfigError(f"RONID_CHECKPOINT_S is '{value}'; give a number of seconds") from None


def _keep_given(discovery: Discovery, corpus: Corpus) -> Discovery:
    """Write every given label over what was found, those held out for early stopping too.

    Confidences are made after that, by `calibrated`.
    """
    index = {name: i for i, name in enumerate(discovery.known)}
    given = np.array([-1 if name is None else index[name] for name in corpus.labels], np.int64)
    return replace(discovery, labels=np.where(given >= 0, given, discovery.labels))


def without_empty(discovery: Discovery) -> Discovery:
    """Leave out new intents that hold no utterance; the others move up."""
    kept = np.bincount(discovery.labels, minlength=discovery.n_intents) > 0
    kept[: len(discovery.known)] = True
    number = kept.cumsum() - 1
    prior = discovery.prior[kept]
    return replace(
        discovery,
        labels=number[discovery.labels],
        prototypes=discovery.prototypes[kept],
        prior=prior / prior.sum(),
    )


def fit_run(
    run: RunFolder,
    *,
    progress: Progress | None = None,
    said: Callable[[str], None] = lambda _: None,
) -> Found:
    """Do, or finish, the fit that a run folder describes.

    Args:
        run: A folder made by `RunFolder.create`.
        progress: Told what is going on.
        said: Receives one line per step that has no progress of its own.
    """
    job = run.job()
    watch = Stopwatch(progress)
    started = time.perf_counter()
    found = discover(
        job.corpus,
        job.n_intents,
        job.config,
        exact=job.exact,
        dev=job.dev,
        seed=job.seed,
        device=job.device,
        progress=watch,
        work=run.work,
    )
    seconds = watch.seconds | {"total": time.perf_counter() - started}
    said("drawing the map")
    coordinates = project(found.discovery.embeddings, seed=job.seed, labels=found.discovery.labels)
    found.model.save(run.path)
    run.write_results(job.corpus, found.discovery, found.model.intents, coordinates)
    run.write_metrics(job.corpus, found.discovery, seconds)
    write_card(run)
    report_of_run(run)
    if job.config.encoder.trainable_layers == 0:
        run.keep_frozen(len(job.corpus))
    run.finish()
    return found
