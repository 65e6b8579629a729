"""The stage that finds the number of intents, alone and inside a fit."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ronid.assign.novelty import Novelty
from ronid.config import EncoderConfig
from ronid.encode.encoder import Encoder, build_encoder
from ronid.encode.rows import Rows
from ronid.pipeline import discover
from ronid.train.checkpoint import Checkpoint
from ronid.train.count import count_intents, count_on_frozen, rather_too_many
from ronid.train.state import Training
from ronid.types import Corpus, DataReport
from tests.helpers.toy_corpus import Recipe, TinyEncoder, Toy


def training_of(name: str, checkpoint: Checkpoint | None = None) -> Training:
    config = EncoderConfig(name=name, trainable_layers=0)
    encoder = build_encoder(config, torch.device("cpu"), seed=0)
    return Training(encoder, checkpoint=checkpoint)


def corpus_of(toy: Toy) -> Corpus:
    report = DataReport(len(toy.texts), len(toy.texts))
    return Corpus(toy.texts, toy.labels(), report)


def test_a_given_number_is_left_alone(tiny: TinyEncoder, utterances: Toy) -> None:
    training, split = training_of(tiny("bert")), utterances.split()
    assert count_on_frozen(training, split) is split
    assert training.history == []


@pytest.mark.parametrize("rule", ["auto", "deep_aligned", "dpn", "usnid"])
def test_the_number_is_found_by_every_rule(tiny: TinyEncoder, utterances: Toy, rule: Any) -> None:
    training = training_of(tiny("bert"))
    start = 0 if rule == "auto" else 16
    split = replace(utterances.split(), n_intents=start, count_rule=rule)
    found = count_on_frozen(training, split)
    assert (found.count_rule, training.finished) == ("given", ["count"])
    assert len(split.known) <= found.n_intents <= 40
    row = training.history[0]
    assert (row["stage"], row["rule"], row["k"]) == ("count", rule, found.n_intents)


def test_a_guess_is_kept_up_to_the_largest_possible_number(
    tiny: TinyEncoder, utterances: Toy
) -> None:
    split, first = utterances.split(), training_of(tiny("bert"))
    auto = count_on_frozen(first, replace(split, n_intents=0, count_rule="auto"))
    high = first.history[0]["high"]
    for guess, kept in ((auto.n_intents, True), (high, True), (high + 1, False), (200, False)):
        asked = replace(split, n_intents=guess, count_rule="guess")
        training = training_of(tiny("bert"))
        found = count_on_frozen(training, asked)
        assert found.n_intents == (guess if kept else auto.n_intents)
        assert training.history[0]["estimate"] == auto.n_intents


def test_a_guess_has_no_say_in_the_rough_idea(tiny: TinyEncoder, utterances: Toy) -> None:
    split, found = utterances.split(), []
    for rule, start in (("auto", 0), ("guess", 9), ("guess", 200)):
        training = training_of(tiny("bert"))
        rows = training.encoder.prepare(split.texts)
        asked = replace(split, n_intents=start, count_rule=rule)
        found.append(count_intents(training, asked, rows, "rough_count").n_intents)
    assert len(set(found)) == 1


def test_more_new_utterances_mean_more_intents(
    tiny: TinyEncoder, utterances: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    split, found = utterances.split(), []
    known = len(split.known)
    for share, at_most in ((0.5, 0), (0.0, 0), (0.5, known)):
        relative = np.where(np.arange(len(split)) < share * len(split), 0.0, 1.0)
        stub = Novelty(relative, np.zeros(len(split), np.int64))
        monkeypatch.setattr("ronid.train.count.find_novelty", lambda *_, stub=stub: stub)
        training = training_of(tiny("bert"))
        asked = replace(split, n_intents=at_most, count_rule="auto")
        rows = training.encoder.prepare(split.texts)
        found.append(count_intents(training, asked, rows).n_intents)
        row = training.history[0]
        assert known <= row["low"] <= row["estimate"] <= row["high"]
    half, none, bounded = found
    assert known <= none < half
    assert bounded == known


def test_a_fit_taken_up_again_finds_its_number(
    tiny: TinyEncoder, utterances: Toy, tmp_path: Path
) -> None:
    split = replace(utterances.split(), n_intents=0, count_rule="auto")
    first = training_of(tiny("bert"), Checkpoint(tmp_path / "c"))
    found = count_on_frozen(first, split)
    again = training_of(tiny("bert"), Checkpoint(tmp_path / "c"))
    again.restore()
    again.history[0]["k"] = found.n_intents + 1  # read there, not found anew
    rows = again.encoder.prepare(split.texts)
    assert count_intents(again, split, rows).n_intents == found.n_intents + 1


@pytest.mark.parametrize("name", ["ronid", "kmeans"])
def test_a_fit_without_a_number_finds_one(recipe: Recipe, utterances: Toy, name: str) -> None:
    config: Any = recipe("fast")
    if name != "ronid":
        from ronid.methods import recipe as other

        config = replace(other(name), encoder=config.encoder)
    found = discover(corpus_of(utterances), None, config)
    k = found.discovery.n_intents
    assert 4 <= k <= 40
    assert set(found.discovery.labels) <= set(range(k))
    row = next(row for row in found.discovery.history if row["stage"] == "count")
    assert row["k"] == k
    assert row["low"] <= row["k"] <= row["high"]
    assert len(row["numbers"]) == len(row["rise"])
    assert np.isfinite(row["rise"]).all()


def test_the_same_seed_finds_the_same_number(recipe: Recipe, utterances: Toy) -> None:
    config = recipe("fast")
    labels = [discover(corpus_of(utterances), None, config, seed=3).discovery.labels for _ in "ab"]
    assert (labels[0] == labels[1]).all()


def test_golden_most_intents_of_a_rough_idea() -> None:
    assert [rather_too_many(k) for k in (1, 9, 15, 59, 128)] == [2, 12, 20, 79, 171]


@pytest.mark.parametrize("given", [True, False])
def test_words_are_weighed_at_the_most_intents_there_may_be(
    recipe: Recipe, utterances: Toy, monkeypatch: pytest.MonkeyPatch, given: bool
) -> None:
    seen: list[int] = []

    def note(encoder: Encoder, rows: Rows, targets: torch.Tensor, n_intents: int) -> torch.Tensor:
        seen.append(n_intents)
        return encoder.embed_all(rows)

    monkeypatch.setattr("ronid.train.contrast.likeness", note)
    found = discover(corpus_of(utterances), 8 if given else None, recipe("fast"))
    rough = [row["k"] for row in found.discovery.history if row["stage"] == "rough_count"]
    assert seen == ([8] if given else [rather_too_many(rough[0])])
