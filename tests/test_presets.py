"""Recipes by name, the one that suits the machine, and what `default` leaves out."""

import json
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pytest
import torch

import ronid.methods.ronid as recipe_module
import ronid.train.pretrain as pretrain_module
from ronid.config import EncoderConfig, PretrainConfig, to_dict, updated
from ronid.data.corpus import corpus_from
from ronid.encode.encoder import build_encoder
from ronid.errors import ConfigError
from ronid.methods import from_toml
from ronid.pipeline import discover
from ronid.presets import AUTO, PRESETS, WITHOUT_GPU, preset
from ronid.toml import to_toml
from ronid.train.state import Training
from ronid.train.stopping import AllEpochs
from ronid.types import Split
from tests.helpers import ROOT
from tests.helpers.toy_corpus import Recipe, TinyEncoder, Toy

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("gpu", "vectors", "name"),
    [
        (True, False, "default"),
        (False, False, "fast"),
        (True, True, "fast"),  # given vectors have no layers to train
        (False, True, "fast"),
    ],
)
def test_auto_suits_the_machine_and_the_input(gpu: bool, vectors: bool, name: str) -> None:
    assert preset(AUTO, gpu=gpu, vectors=vectors) == PRESETS[name]


@pytest.mark.parametrize("name", list(PRESETS))
@pytest.mark.parametrize("gpu", [False, True])
def test_a_named_preset_is_itself_on_every_machine(name: str, gpu: bool) -> None:
    found = preset(name, gpu=gpu, vectors=not gpu)
    assert found == PRESETS[name]
    assert found.preset == name


def test_auto_is_no_recipe_of_its_own() -> None:
    assert AUTO not in PRESETS
    assert list(PRESETS) == ["paper", "default", "fast"]


@pytest.mark.parametrize("name", ["slow", "", "Fast", "AUTO"])
def test_unknown_preset_is_refused_with_all_choices(name: str) -> None:
    with pytest.raises(ConfigError) as error:
        preset(name)
    assert str(error.value) == f"no preset '{name}'; choose one of: auto, paper, default, fast"


def test_what_auto_says_is_one_line() -> None:
    assert "\n" not in WITHOUT_GPU
    assert "'fast'" in WITHOUT_GPU
    assert "'default'" in WITHOUT_GPU


@pytest.mark.claims
def test_what_auto_says_of_the_cost_is_what_the_stored_rows_say() -> None:
    results = ROOT / "benchmarks" / "results"

    def accuracy(name: str) -> dict[str, float]:
        lines = (results / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        rows = [json.loads(line) for line in lines]
        return {
            dataset: mean(r["scores"]["argmax"]["acc"] for r in rows if r["dataset"] == dataset)
            for dataset in {row["dataset"] for row in rows}
        }

    full, fast = accuracy("main-minilm"), accuracy("fast")
    gaps = [round(full[dataset] - fast[dataset]) for dataset in fast]
    assert f"{min(gaps)} to {max(gaps)} points below" in WITHOUT_GPU


def test_fast_trains_no_layer_and_default_trains_all() -> None:
    assert PRESETS["fast"].encoder.trainable_layers == 0
    assert PRESETS["fast"].pretrain.epochs == 0
    assert PRESETS["default"].encoder.trainable_layers == -1
    assert not PRESETS["default"].encoder.adapter_reads_words  # needs a frozen encoder


@pytest.fixture
def toml(tmp_path: Path) -> Any:
    """Return a function that writes a settings file."""

    def write(text: str) -> Path:
        path = tmp_path / "settings.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


class TestFromToml:
    @pytest.mark.parametrize("name", list(PRESETS))
    def test_every_preset_survives_the_round_trip(self, toml: Any, name: str) -> None:
        path = toml(to_toml({"format_version": 1, **to_dict(PRESETS[name])}))
        assert from_toml(path) == PRESETS[name]

    @pytest.mark.parametrize("name", list(PRESETS))
    def test_a_named_preset_is_the_start(self, toml: Any, name: str) -> None:
        path = toml(f'preset = "{name}"\n[m_step]\nalpha = 0.25\n')
        assert from_toml(path) == updated(PRESETS[name], {"m_step": {"alpha": 0.25}})

    @pytest.mark.parametrize("head", ["", 'preset = "auto"\n', 'method = "ronid"\n'])
    def test_without_a_name_or_with_auto_fast_is_the_start(self, toml: Any, head: str) -> None:
        path = toml(f"{head}[m_step]\nalpha = 0.25\n")
        assert from_toml(path) == updated(PRESETS["fast"], {"m_step": {"alpha": 0.25}})

    @pytest.mark.parametrize("name", ['"slow"', "3", '"Auto"'])
    def test_unknown_preset_in_a_file_is_refused(self, toml: Any, name: str) -> None:
        with pytest.raises(ConfigError, match="no preset '.*'; choose one of: auto, paper"):
            from_toml(toml(f"preset = {name}\n"))


class TestPretrainingOfDefault:
    """`default` reads masked words only: labels come in later, all of them."""

    config = replace(PRESETS["default"].pretrain, epochs=2, language_batch=16)

    def pretrained(self, name: str, split: Split, config: PretrainConfig) -> Training:
        encoder = build_encoder(EncoderConfig(name=name), CPU, seed=0)
        training = Training(encoder)
        rows, dev = encoder.prepare(split.texts), encoder.prepare(split.dev_texts)
        pretrain_module.pretrain(training, split, rows, dev, config)
        return training

    def test_an_epoch_reads_every_row_and_no_class_head_is_made(
        self, monkeypatch: pytest.MonkeyPatch, tiny: TinyEncoder, few_utterances: Toy
    ) -> None:
        calls: list[Any] = []
        monkeypatch.setattr(pretrain_module, "run_epochs", lambda *a, **_: calls.append(a))
        self.pretrained(tiny("bert"), few_utterances.split(dev=10), self.config)
        ((_, stage, state, batches, _),) = calls
        assert set(state.heads) == {"language"}
        assert (stage.epochs, stage.steps) == (2, 4)  # 60 rows
        assert isinstance(stage.stopper, AllEpochs)
        classified, read = zip(*batches(np.random.default_rng(0)), strict=True)
        assert [len(group) for group in classified] == [0] * 4
        assert set(np.concatenate(read)) == set(range(60))

    def test_only_the_language_loss_is_learnt(self, tiny: TinyEncoder, few_utterances: Toy) -> None:
        name, split = tiny("bert"), few_utterances.split(dev=10)
        training = self.pretrained(name, split, self.config)
        keys = {"stage", "epoch", "loss", "loss_mlm"}
        assert [set(row) for row in training.history] == [keys, keys]
        assert training.finished == ["pretrain"]
        untouched = self.pretrained(name, split, replace(self.config, epochs=0))
        before = untouched.encoder.trained_state()
        assert any(not p.equal(before[n]) for n, p in training.encoder.trained_state().items())

    def test_with_classes_the_same_call_trains_them(
        self, tiny: TinyEncoder, few_utterances: Toy
    ) -> None:
        config = replace(self.config, cross_entropy=True)
        training = self.pretrained(tiny("bert"), few_utterances.split(dev=10), config)
        assert {"loss_ce", "dev_accuracy"} <= set(training.history[0])

    @pytest.mark.parametrize(("cross_entropy", "epochs"), [(True, 3), (False, 3), (True, 0)])
    def test_labels_are_held_out_only_for_the_classes(
        self,
        monkeypatch: pytest.MonkeyPatch,
        recipe: Recipe,
        few_utterances: Toy,
        cross_entropy: bool,
        epochs: int,
    ) -> None:
        splits: list[Split] = []

        def stop(split: Split, *_: object) -> None:
            splits.append(split)
            raise InterruptedError

        monkeypatch.setattr(recipe_module, "fit", stop)
        known = few_utterances.names[:4]
        given = [name if name in known else None for name in few_utterances.truth]
        change = {"pretrain": {"cross_entropy": cross_entropy, "epochs": epochs}}
        corpus = corpus_from(few_utterances.texts, given)
        with pytest.raises(InterruptedError):
            discover(corpus, 6, recipe("paper", change), device="cpu")
        (split,) = splits
        held_out = 8 if cross_entropy and epochs else 0  # one in five of 40
        assert len(split.dev_texts) == held_out
        assert len(split.labelled) == 40 - held_out
