"""What an update counts: what was there, what came, and what earlier ones had collected."""

from pathlib import Path

import numpy as np
import pytest

from ronid.data.corpus import corpus_from
from ronid.model import load_model
from ronid.pipeline import fit_run
from ronid.run import Job, RunFolder, open_finished
from ronid.types import Corpus
from ronid.update import update_run
from ronid.update.flow import seen_elsewhere
from tests.helpers.toy_corpus import Recipe, Toy, make_toy


def test_utterances_nearest_to_another_intent_are_counted() -> None:
    prototypes = np.eye(3, dtype=np.float32)
    vectors = prototypes[[0, 0, 1, 2, 2]]
    assert seen_elsewhere(vectors, np.array([0, 0, 1, 2, 2]), prototypes, "cosine") == 0
    assert seen_elsewhere(vectors, np.array([0, 1, 1, 0, 2]), prototypes, "cosine") == 2
    assert seen_elsewhere(None, np.array([0]), prototypes, "cosine") is None


def part(toy: Toy, *names: str, start: int = 0, step: int = 1) -> Corpus:
    texts = [t for t, name in zip(toy.texts, toy.truth, strict=True) if name in names]
    texts = texts[start::step]
    return corpus_from(texts, [None] * len(texts))


OLD = ("battery", "cancel", "delivery", "invoice")
NEW = ("refund", "login")


@pytest.fixture(scope="module")
def toy() -> Toy:
    return make_toy(300, 6)


@pytest.fixture
def run(tmp_path: Path, toy: Toy, recipe: Recipe) -> Path:
    job = Job(part(toy, *OLD, step=2), None, 4, recipe("fast"), 0, "cpu")
    fit_run(RunFolder.create(tmp_path / "run", job, "first.csv"))
    return tmp_path / "run"


def test_what_predict_says_otherwise_is_counted(run: Path, toy: Toy) -> None:
    before = open_finished(run).assignments()
    done = update_run(run, part(toy, *NEW), least=10, device="cpu")
    assert done.new
    assert done.old == len(before)
    answer = load_model(run, "cpu").predict(before["text"].to_pylist())
    other = int((answer.labels != before["index"].to_numpy()).sum())
    assert done.elsewhere == pytest.approx(other, abs=1)  # a tie may fall either way
    kept = open_finished(run).assignments()["index"].to_pylist()[: len(before)]
    assert kept == before["index"].to_pylist()
    told = open_finished(run).facts()["updates"][0]
    assert (told["elsewhere"], told["old"]) == (done.elsewhere, done.old)


def test_what_was_collected_earlier_is_counted_when_it_fits(run: Path, toy: Toy) -> None:
    strange = part(toy, *NEW, step=6)
    first = update_run(run, strange, threshold=1.0, least=60, device="cpu")
    assert first.waited == 0
    assert first.collected
    one = part(toy, *OLD, start=1, step=1000)
    assert len(one) == 1
    second = update_run(run, one, threshold=0.0, least=60, device="cpu")
    assert second.rows == 1
    assert second.waited == first.collected
    assert second.collected == 0
    assert second.drift == ()  # one utterance came: nothing can be said of a change
    assert second.utterances == first.utterances + 1 + second.waited
