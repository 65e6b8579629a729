"""What every method of METHODS must keep to, whatever it does inside."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ronid.config import MethodConfig
from ronid.data.corpus import corpus_from
from ronid.encode.encoder import build_encoder
from ronid.errors import UsageError
from ronid.methods import METHODS, fit, method, published, recipe
from ronid.metrics import clustering_accuracy
from ronid.model import load_model
from ronid.pipeline import discover
from ronid.progress import Silent
from ronid.train.checkpoint import Checkpoint
from ronid.train.state import Training, inputs_of
from ronid.types import Discovery, Split
from tests.helpers.method_configs import (
    CASES,
    QUICK,
    SHORT,
    STAGES,
    published_short,
    without_labels,
)
from tests.helpers.toy_corpus import Recipe, TinyEncoder, Toy, make_toy

RONID_QUICK: dict[str, Any] = {"m_step": {"epochs": 2}}
CPU = torch.device("cpu")

Config = Callable[..., MethodConfig]

REPRESENTATIVES = ("kmeans", "dec", "cdac_plus", "gcd", "dwgf", "usnid", "ronid")
"""Methods with different paths through the shared code: no training, an autoencoder, pairs,
contrast, a graph, aligned clusters, and all presets of RoNID."""

every_method = pytest.mark.parametrize(("name", "preset"), CASES)
fast_for_representatives = pytest.mark.parametrize(
    ("name", "preset"),
    [
        pytest.param(*case, marks=[] if case[0] in REPRESENTATIVES else pytest.mark.slow)
        for case in CASES
    ],
)
"""Every method; the fast tier runs the representatives and the slow tier the rest."""


@pytest.fixture(scope="session")
def short(tiny: TinyEncoder, recipe: Recipe) -> Config:
    """Return a function from method and preset to a recipe that learns something in seconds."""

    def make(name: str, preset: str) -> MethodConfig:
        return recipe(preset) if name == "ronid" else published_short(name, tiny, SHORT[name])

    return make


@pytest.fixture(scope="session")
def quick(tiny: TinyEncoder, recipe: Recipe) -> Config:
    """Return the same for tests of mechanics: an epoch or two a stage."""

    def make(name: str, preset: str) -> MethodConfig:
        if name != "ronid":
            return published_short(name, tiny, QUICK[name])
        early = {"pretrain": {"epochs": int(preset != "fast")}}
        return recipe(
            preset, {**RONID_QUICK, **early, "contrast": {"epochs": int(preset != "paper")}}
        )

    return make


@pytest.fixture(scope="session")
def quick_fit(quick: Config, utterances: Toy, few_utterances: Toy) -> Callable[..., Discovery]:
    """Return a function from method, preset and number of rows to a quick fit, made once."""
    splits = {300: utterances.split(dev=30), 60: few_utterances.split(dev=12)}

    @cache
    def fit_once(name: str, preset: str, rows: int) -> Discovery:
        return run(splits[rows], quick(name, preset))

    return fit_once


def run(split: Split, config: MethodConfig, seed: int = 0, **how: Any) -> Discovery:
    dim = None if split.embeddings is None else split.embeddings.shape[1]
    encoder = build_encoder(
        config.encoder, CPU, seed=seed, n_intents=split.n_intents, given_dim=dim
    )
    training = Training(encoder, seed, config.optimiser, **how)
    training.restore()
    found = fit(split, config, training)
    check(found, split, config)
    return found


def check(found: Discovery, split: Split, config: MethodConfig) -> None:
    """Assert what holds of every discovery."""
    n, k = len(split), split.n_intents
    assert found.labels.shape == (n,)
    assert ((found.labels >= 0) & (found.labels < k)).all()
    given = split.labelled
    assert np.array_equal(found.labels[given], split.targets[given])
    assert ((found.confidence >= 0) & (found.confidence <= 1)).all()
    assert np.isfinite(found.embeddings).all()
    assert np.isfinite(found.prototypes).all()
    if found.rule == "cosine":
        np.testing.assert_allclose(np.linalg.norm(found.embeddings, axis=1), 1.0, rtol=1e-5)
        np.testing.assert_allclose(np.linalg.norm(found.prototypes, axis=1), 1.0, rtol=1e-5)
    assert found.prototypes.shape == (k, found.embeddings.shape[1])
    assert found.n_intents == k
    assert found.prior.shape == (k,)
    assert found.prior.sum() == pytest.approx(1.0)
    assert found.known == split.known
    for row in found.history:
        losses = [value for key, value in row.items() if key.startswith("loss")]
        assert losses
        assert np.isfinite(losses).all()


@fast_for_representatives
def test_beats_chance_by_far(name: str, preset: str, short: Config, utterances: Toy) -> None:
    split = utterances.split(dev=30)
    found = run(split, short(name, preset))
    hidden = split.unlabelled
    accuracy = clustering_accuracy(utterances.classes[hidden], found.labels[hidden])
    assert accuracy > 3 * 100 / 8


@every_method
def test_every_stage_trains_and_features_move(
    name: str, preset: str, quick: Config, quick_fit: Callable[..., Discovery], utterances: Toy
) -> None:
    # Untrained features are good enough to beat chance, so that nothing else would notice.
    split, config = utterances.split(dev=30), quick(name, preset)
    found = quick_fit(name, preset, 300)
    assert tuple(dict.fromkeys(row["stage"] for row in found.history)) == STAGES[name, preset]
    encoder = build_encoder(config.encoder, CPU, seed=0, n_intents=split.n_intents)
    untrained = encoder.embed_all(encoder.prepare(inputs_of(split))).numpy()
    moved = not np.allclose(found.embeddings, untrained, atol=1e-4)
    assert moved == bool(STAGES[name, preset])


@fast_for_representatives
def test_same_seed_same_result(
    name: str, preset: str, quick: Config, quick_fit: Callable[..., Discovery], utterances: Toy
) -> None:
    again = run(utterances.split(dev=30), quick(name, preset))
    assert_same(again, quick_fit(name, preset, 300))


def assert_same(one: Discovery, two: Discovery) -> None:
    for field in ("labels", "confidence", "embeddings", "prototypes", "prior"):
        assert np.array_equal(getattr(one, field), getattr(two, field)), field
    assert one.history == two.history


@fast_for_representatives
def test_works_without_labels_or_says_that_it_needs_them(
    name: str, preset: str, quick: Config, few_utterances: Toy
) -> None:
    split = without_labels(few_utterances.split())
    if METHODS[name].needs_labels:
        with pytest.raises(UsageError, match=f"'{name}' learns from labelled utterances"):
            run(split, quick(name, preset))
    else:
        run(split, quick(name, preset))


@fast_for_representatives
@pytest.mark.parametrize("more", [0, 2])
def test_works_with_every_row_labelled(
    name: str, preset: str, quick: Config, few_utterances: Toy, more: int
) -> None:
    split = few_utterances.split(known=6, every=1)
    found = run(replace(split, n_intents=6 + more), quick(name, preset))
    assert np.array_equal(found.labels, few_utterances.classes)


@fast_for_representatives
def test_works_when_all_intents_are_known(
    name: str, preset: str, quick: Config, few_utterances: Toy
) -> None:
    run(few_utterances.split(known=6), quick(name, preset))


@fast_for_representatives
@pytest.mark.parametrize("known", [0, 3])
def test_works_with_one_row_per_intent(name: str, preset: str, quick: Config, known: int) -> None:
    if METHODS[name].needs_labels and not known:
        pytest.skip("needs labels")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(make_toy(6, 6).split(known=known, every=1), quick(name, preset))


@fast_for_representatives
def test_works_with_one_intent(name: str, preset: str, quick: Config, few_utterances: Toy) -> None:
    split = few_utterances.split(known=int(METHODS[name].needs_labels))
    assert set(run(replace(split, n_intents=1), quick(name, preset)).labels) == {0}


@every_method
def test_truth_is_never_used(
    name: str, preset: str, quick: Config, quick_fit: Callable[..., Discovery], few_utterances: Toy
) -> None:
    split = replace(few_utterances.split(dev=12), truth=few_utterances.classes)
    with_truth, without = run(split, quick(name, preset)), quick_fit(name, preset, 60)
    assert np.array_equal(with_truth.labels, without.labels)
    assert np.array_equal(with_truth.prototypes, without.prototypes)


@every_method
def test_given_embeddings_serve_where_nothing_of_an_encoder_is_trained(
    name: str, preset: str, short: Config, utterances: Toy
) -> None:
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(8, 12))
    noisy = (centres[utterances.classes] + rng.normal(size=(300, 12)) / 2).astype(np.float32)
    split = replace(utterances.split(), texts=[""] * 300, embeddings=noisy)
    config = short(name, preset)
    if config.encoder.trainable_layers:
        with pytest.raises(UsageError, match="give texts"):
            run(split, config)
        return
    assert clustering_accuracy(utterances.classes, run(split, config).labels) > 80


@every_method
def test_saved_and_loaded_it_answers_alike_one_sentence_alone_too(
    name: str, preset: str, quick: Config, few_utterances: Toy, tmp_path: Path
) -> None:
    corpus = corpus_from(few_utterances.texts, few_utterances.labels())
    found = discover(corpus, 6, quick(name, preset), device="cpu")
    found.model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model", "cpu")
    assert loaded.config == found.model.config
    texts = ["my parcel has not come", *few_utterances.texts[:9]]
    before, after = found.model.predict(texts), loaded.predict(texts)
    assert np.array_equal(before.probabilities, after.probabilities)
    np.testing.assert_allclose(before.probabilities.sum(axis=1), 1.0)
    for row, text in enumerate(texts):
        alone = loaded.predict([text])
        assert alone.names[0] == after.names[row]
        np.testing.assert_allclose(
            alone.probabilities[0], after.probabilities[row], rtol=1e-4, atol=1e-6
        )


class _Killed(Exception):
    """The power went out."""


class _KillDuring(Silent):
    """Progress that dies when an epoch of a stage is being reported."""

    def __init__(self, stage: str, epoch: int) -> None:
        self.place = (stage, epoch)

    def advance(self, steps: int = 1, figures: Any = None) -> None:
        if figures and (figures["stage"], figures["epoch"]) == self.place:
            raise _Killed


KILLS = [
    *[(*case, True) for case in CASES if case[0] == "ronid"],
    *[(*case, False) for case in CASES if case[0] in REPRESENTATIVES and case[0] != "ronid"],
    *[pytest.param(*case, True, marks=pytest.mark.slow) for case in CASES if case[0] != "ronid"],
]
"""Method, preset and whether the fit is killed in every epoch or only in the last of each stage."""


@pytest.mark.parametrize(("name", "preset", "every_epoch"), KILLS)
def test_killed_fit_ends_as_if_it_had_not_been_killed(
    name: str,
    preset: str,
    every_epoch: bool,
    quick: Config,
    quick_fit: Callable[..., Discovery],
    few_utterances: Toy,
    tmp_path: Path,
) -> None:
    split, config = few_utterances.split(dev=12), quick(name, preset)
    whole = quick_fit(name, preset, 60)
    moments = [(row["stage"], row["epoch"]) for row in whole.history]
    if not every_epoch:
        moments = list(dict(moments).items())
    path = tmp_path / "killed.safetensors"
    for moment in moments:
        killer = _KillDuring(*moment)
        with pytest.raises(_Killed):
            run(split, config, progress=killer, checkpoint=Checkpoint(path, every_s=0.0))
    assert_same(run(split, config, checkpoint=Checkpoint(path, every_s=0.0)), whole)


@pytest.mark.parametrize("name", list(METHODS))
class TestTable:
    def test_names_a_paper_and_a_module(self, name: str) -> None:
        spec = METHODS[name]
        assert spec.title
        assert spec.paper
        assert callable(method(name).fit)

    def test_config_knows_its_method(self, name: str) -> None:
        config = recipe(name)
        assert config.method == name
        assert config.encoder.name
        assert isinstance(config.holds_out, bool)

    def test_constants_of_benchmarks_are_settings_it_has(self, name: str) -> None:
        from ronid.config import updated

        for dataset in ("clinc", "banking", "stackoverflow"):
            updated(recipe(name), published(name, dataset))
