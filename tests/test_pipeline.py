"""The whole flow in memory, and what a work folder adds to it."""

import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ronid.data.corpus import corpus_from
from ronid.encode.cache import FrozenCache
from ronid.errors import ConfigError, RonidWarning, UsageError
from ronid.model import load_model
from ronid.pipeline import Found, discover, fit_run, without_empty
from ronid.progress import Silent
from ronid.run import Job, RunFolder
from ronid.types import Corpus, Discovery
from tests.helpers.toy_corpus import Recipe, Toy


class Killed(Exception):
    """The power went out."""


class KillAt(Silent):
    """Progress that dies at an epoch of the EM loop."""

    def advance(self, steps: int = 1, figures: Mapping[str, Any] | None = None) -> None:
        if figures and (figures["stage"], figures["epoch"]) == ("em", 2):
            raise Killed


@pytest.fixture
def corpus(few_utterances: Toy) -> Corpus:
    return corpus_from(few_utterances.texts, few_utterances.labels(every=1))


def assert_same(one: Found, two: Found) -> None:
    assert np.array_equal(one.discovery.labels, two.discovery.labels)
    assert np.array_equal(one.discovery.embeddings, two.discovery.embeddings)
    assert np.array_equal(one.model.prototypes, two.model.prototypes)
    assert one.model.intents == two.model.intents


def test_corpus_becomes_model_and_discovery(recipe: Recipe, corpus: Corpus) -> None:
    found = discover(corpus, 6, recipe("fast"), device="cpu", seed=3)
    assert found.model.seed == 3
    assert found.discovery.known == corpus.known
    assert [intent.name for intent in found.model.intents[:4]] == list(corpus.known)
    answer = found.model.predict(corpus.texts)
    free = [i for i, name in enumerate(corpus.labels) if name is None]
    assert np.array_equal(answer.labels[free], found.discovery.labels[free])


def test_a_language_that_the_encoder_does_not_know_is_told(recipe: Recipe, corpus: Corpus) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", RonidWarning)
        discover(corpus, 6, recipe("fast"), device="cpu")
    foreign = replace(corpus, texts=[f"Где моя карта {text}" for text in corpus.texts])
    with pytest.warns(RonidWarning, match="100% of the utterances are in a language that the enc"):
        discover(foreign, 6, recipe("fast"), device="cpu")


@pytest.mark.parametrize("name", ["fast", "paper"])
def test_killed_fit_is_taken_up_in_its_work_folder(
    recipe: Recipe, corpus: Corpus, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RONID_CHECKPOINT_S", "0")
    config = recipe(name)
    whole = discover(corpus, 6, config, device="cpu")
    with pytest.raises(Killed):
        discover(corpus, 6, config, device="cpu", work=tmp_path / "work", progress=KillAt())
    assert (tmp_path / "work" / "checkpoint.safetensors").exists()
    assert_same(discover(corpus, 6, config, device="cpu", work=tmp_path / "work"), whole)


def test_wrong_checkpoint_interval_is_refused(
    recipe: Recipe, corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RONID_CHECKPOINT_S", "soon")
    with pytest.raises(ConfigError, match="RONID_CHECKPOINT_S is 'soon'"):
        discover(corpus, 6, recipe("fast"), device="cpu", work=tmp_path)


def test_given_cache_serves_the_next_call(recipe: Recipe, corpus: Corpus) -> None:
    cache = FrozenCache()
    one = discover(corpus, 6, recipe("fast"), device="cpu", cache=cache)
    assert cache.hits == 0
    two = discover(corpus, 6, recipe("fast"), device="cpu", cache=cache)
    assert cache.hits == 1
    assert_same(one, two)


def test_dev_corpus_replaces_held_out_labels(recipe: Recipe, corpus: Corpus) -> None:
    dev = corpus_from(corpus.texts[:20], corpus.labels[:20])
    with pytest.warns(RonidWarning, match="6 of 20 utterances for early stopping"):
        found = discover(corpus, 6, recipe("paper"), dev=dev, device="cpu")
    assert "dev_accuracy" in found.discovery.history[0]


def test_held_out_labels_and_their_confidence_are_given_back(
    recipe: Recipe, corpus: Corpus
) -> None:
    wrong = [name and corpus.known[i % 4] for i, name in enumerate(corpus.labels)]
    found = discover(replace(corpus, labels=wrong), 6, recipe("paper"), device="cpu").discovery
    given = [i for i, name in enumerate(wrong) if name is not None]
    assert [found.known[i] for i in found.labels[given]] == [wrong[i] for i in given]
    cosines = found.embeddings.astype(float) @ found.prototypes.astype(float).T
    odds = np.exp(cosines / found.temperature)
    expected = (odds / odds.sum(1, keepdims=True))[np.arange(len(wrong)), found.labels]
    np.testing.assert_allclose(found.confidence, expected, atol=1e-5)


def test_embeddings_are_refused_where_layers_are_trained(recipe: Recipe) -> None:
    vectors = np.random.default_rng(0).normal(size=(20, 4))
    with pytest.raises(UsageError, match="use preset 'fast' of RoNID.* or give texts"):
        discover(corpus_from(None, embeddings=vectors), 3, recipe("paper"), device="cpu")


def test_run_killed_and_done_again_ends_as_one_that_was_not(
    recipe: Recipe, corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RONID_CHECKPOINT_S", "0")
    job = Job(corpus, None, 6, recipe("paper"), seed=2, device="cpu")
    whole, killed = (RunFolder.create(tmp_path / name, job, "toy") for name in ("a", "b"))
    said: list[str] = []
    expected = fit_run(whole, said=said.append)
    assert said
    with pytest.raises(Killed):
        fit_run(killed, progress=KillAt())
    assert not killed.finished
    assert_same(fit_run(RunFolder(killed.path)), expected)
    assert whole.finished
    assert killed.finished
    loaded = load_model(killed.path, device="cpu")
    answer, again = loaded.predict(corpus.texts), expected.model.predict(corpus.texts)
    assert np.array_equal(answer.probabilities, again.probabilities)
    for name in ("history.jsonl", "intents.json", "encoder/weights.safetensors"):
        assert (whole.path / name).read_bytes() == (killed.path / name).read_bytes()


def test_new_intents_without_an_utterance_are_left_out() -> None:
    found = Discovery(
        labels=np.array([0, 3, 5, 3]),
        confidence=np.ones(4, np.float32),
        embeddings=np.eye(4, 6, dtype=np.float32),
        prototypes=np.eye(6, dtype=np.float32),
        prior=np.array([0.2, 0.1, 0.1, 0.3, 0.1, 0.2]),
        temperature=0.1,
        known=("a", "b"),
    )
    left = without_empty(found)  # known intents stay, even b, which has none
    assert left.labels.tolist() == [0, 2, 3, 2]
    assert np.array_equal(left.prototypes, np.eye(6)[[0, 1, 3, 5]])
    assert left.prior == pytest.approx(np.array([0.2, 0.1, 0.3, 0.2]) / 0.8)
    assert left.n_intents == 4


def test_as_many_as_asked_for_are_kept_where_that_is_certain(
    recipe: Recipe, corpus: Corpus
) -> None:
    many = len(corpus) - 2
    exact = discover(corpus, many, recipe("fast"), exact=True, device="cpu")
    assert exact.discovery.n_intents == len(exact.model.intents) == many
    assert min(intent.size for intent in exact.model.intents) == 0
    free = discover(corpus, None, recipe("fast"), device="cpu")
    assert min(intent.size for intent in free.model.intents) > 0
