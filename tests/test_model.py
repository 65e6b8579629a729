"""A fitted model answers, is saved, and answers the same when loaded."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ronid.config import ALL_LAYERS
from ronid.data.corpus import corpus_from
from ronid.errors import DataError, RonidError, UsageError
from ronid.model import IntentModel, load_model
from ronid.pipeline import discover
from tests.helpers.toy_corpus import Recipe, TinyEncoder, Toy

ALLOWED = {".json", ".toml", ".safetensors"}


def fitted(recipe: Recipe, toy: Toy, name: str, changes: dict | None = None) -> IntentModel:
    corpus = corpus_from(toy.texts, toy.labels())
    return discover(corpus, len(toy.names), recipe(name, changes), device="cpu").model


@pytest.fixture(scope="module")
def model(recipe: Recipe, utterances: Toy) -> IntentModel:
    return fitted(recipe, utterances, "fast")


def test_answer_is_consistent(model: IntentModel, utterances: Toy) -> None:
    answer = model.predict(utterances.texts)
    n, k = len(utterances.texts), len(utterances.names)
    assert answer.probabilities.shape == (n, k)
    np.testing.assert_allclose(answer.probabilities.sum(1), 1.0)
    assert np.array_equal(answer.labels, answer.probabilities.argmax(1))
    np.testing.assert_allclose(answer.confidence, answer.probabilities.max(1), rtol=1e-6)
    assert [model.intents[i].name for i in answer.labels] == answer.names.tolist()
    assert answer.belonging.shape == answer.accepted.shape == (n,)
    assert answer.accepted.mean() > 0.9  # they were learnt from


def test_utterances_of_another_world_are_of_none_of_the_intents(model: IntentModel) -> None:
    strange = ["zzz qqq xxx", "sing a song of sixpence", "12345 67890"]
    answer = model.predict(strange)
    assert not answer.accepted.any()
    assert set(answer.names) <= {intent.name for intent in model.intents}
    everything = model.predict(strange, threshold=0)
    assert everything.accepted.all()
    assert np.array_equal(everything.labels, answer.labels)
    assert np.array_equal(model.predict(strange, threshold=1).accepted, answer.belonging >= 1)


@pytest.mark.parametrize("threshold", [-0.1, 1.5, float("nan")])
def test_impossible_thresholds_are_refused(model: IntentModel, threshold: float) -> None:
    with pytest.raises(UsageError, match="the threshold is"):
        model.predict(["refund"], threshold=threshold)


def test_model_of_an_older_version_accepts_everything(
    model: IntentModel, utterances: Toy, tmp_path: Path
) -> None:
    from safetensors.torch import load_file, save_file

    model.save(tmp_path)
    about, weights = tmp_path / "model.json", tmp_path / "encoder" / "weights.safetensors"
    values = json.loads(about.read_text())
    values.pop("scope")
    about.write_text(json.dumps(values))
    tensors = load_file(str(weights))
    save_file({n: t for n, t in tensors.items() if not n.startswith("scope.")}, str(weights))
    old = load_model(tmp_path, device="cpu")
    answer = old.predict(["zzz qqq xxx"])
    assert answer.accepted.all()
    assert old.predict(["zzz"], threshold=0).accepted.all()
    assert np.array_equal(answer.labels, model.predict(["zzz qqq xxx"]).labels)
    with pytest.raises(UsageError, match="cannot tell what is out of scope"):
        old.predict(["zzz"], threshold=0.2)


def test_vectors_have_length_one(model: IntentModel, utterances: Toy) -> None:
    vectors = model.transform(utterances.texts[:9])
    assert vectors.shape == (9, 32)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, rtol=1e-5)


@pytest.mark.parametrize("name", ["fast", "paper"])
def test_text_alone_is_answered_as_in_a_batch(recipe: Recipe, utterances: Toy, name: str) -> None:
    model = fitted(recipe, utterances, name)
    together = model.predict(utterances.texts[:40])
    for i, text in enumerate(utterances.texts[:40]):
        alone = model.predict([text])
        assert alone.labels[0] == together.labels[i]
        assert alone.belonging[0] == pytest.approx(together.belonging[i], abs=1e-3)
        np.testing.assert_allclose(
            alone.probabilities[0], together.probabilities[i], atol=1e-6, rtol=0
        )


def test_no_texts_get_no_answers(model: IntentModel) -> None:
    answer = model.predict([])
    assert answer.labels.shape == answer.names.shape == answer.confidence.shape == (0,)
    assert answer.belonging.shape == answer.accepted.shape == (0,)
    assert answer.probabilities.shape == (0, 8)
    assert model.transform([]).shape == (0, 32)


def test_predictions_do_not_pile_up_in_the_cache(model: IntentModel, utterances: Toy) -> None:
    cache = model.encoder.cache
    before = cache._bytes()
    model.predict([f"{text} again" for text in utterances.texts])
    assert model.encoder.cache is cache
    assert cache._bytes() == before


@pytest.mark.parametrize(
    ("name", "masked_lm", "changes"),
    [
        ("fast", False, {}),
        ("paper", False, {}),
        ("paper", True, {}),
        ("paper", True, {"pretrain": {"trainable_layers": 2}}),
        ("paper", True, {"encoder": {"trainable_layers": ALL_LAYERS}}),
        ("paper", False, {"pretrain": {"trainable_layers": ALL_LAYERS}}),
    ],
)
def test_loaded_model_answers_the_same(
    recipe: Recipe,
    tiny: TinyEncoder,
    few_utterances: Toy,
    tmp_path: Path,
    name: str,
    masked_lm: bool,
    changes: dict,
) -> None:
    encoder = {"name": tiny("bert", masked_lm), **changes.get("encoder", {})}
    model = fitted(recipe, few_utterances, name, {**changes, "encoder": encoder})
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model", device="cpu")
    texts = [*few_utterances.texts, "something never seen"]
    one, two = model.predict(texts), loaded.predict(texts)
    assert np.array_equal(one.probabilities, two.probabilities)
    assert np.array_equal(one.names, two.names)
    assert np.array_equal(one.belonging, two.belonging)
    assert np.array_equal(one.accepted, two.accepted)
    assert np.array_equal(model.transform(texts), loaded.transform(texts))
    assert loaded.intents == model.intents
    assert loaded.config == model.config
    assert np.array_equal(loaded.prior, model.prior)


def test_folder_holds_no_pickle(model: IntentModel, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    files = [path for path in (tmp_path / "model").rglob("*") if path.is_file()]
    assert {path.suffix for path in files} == ALLOWED
    assert not any(b"pickle" in path.read_bytes() for path in files)
    about = json.loads((tmp_path / "model" / "model.json").read_text())
    assert about["format_version"] == 1


def test_another_encoder_is_refused(model: IntentModel, tiny: TinyEncoder, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    for other in (tiny("bert", seed=1), tiny("mpnet")):
        with pytest.raises(RonidError, match="is not the one model .* was trained on"):
            load_model(tmp_path / "model", device="cpu", encoder=other)


def test_encoder_with_one_changed_weight_is_refused(
    model: IntentModel, tiny: TinyEncoder, tmp_path: Path
) -> None:
    import torch
    from safetensors.torch import load_file, save_file

    model.save(tmp_path / "model")
    changed = tmp_path / "changed"
    shutil.copytree(tiny("bert"), changed)
    weights = load_file(str(changed / "model.safetensors"))
    name = next(n for n in weights if "layer.1.output.dense.weight" in n)
    weights[name] = weights[name] + torch.ones_like(weights[name])
    save_file(weights, str(changed / "model.safetensors"), metadata={"format": "pt"})
    with pytest.raises(RonidError, match="is not the one"):
        load_model(tmp_path / "model", device="cpu", encoder=str(changed))


def test_moved_encoder_can_be_named(
    model: IntentModel, tiny: TinyEncoder, few_utterances: Toy, tmp_path: Path
) -> None:
    model.save(tmp_path / "model")
    moved = tmp_path / "moved"
    shutil.copytree(tiny("bert"), moved)
    loaded = load_model(tmp_path / "model", device="cpu", encoder=str(moved))
    texts = few_utterances.texts
    assert np.array_equal(loaded.predict(texts).labels, model.predict(texts).labels)


def test_missing_encoder_is_named(model: IntentModel, tmp_path: Path) -> None:
    gone = str(tmp_path / "gone")
    config = replace(model.config, encoder=replace(model.config.encoder, name=gone))
    replace(model, config=config).save(tmp_path / "model")
    with pytest.raises(UsageError, match="does not exist"):
        load_model(tmp_path / "model", device="cpu")


def test_folder_that_is_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"has no model\.json"):
        load_model(tmp_path, device="cpu")


def test_damaged_or_newer_descriptions_are_refused(model: IntentModel, tmp_path: Path) -> None:
    model.save(tmp_path)
    about = tmp_path / "model.json"
    values = json.loads(about.read_text())
    about.write_text(json.dumps(values | {"format_version": 99}))
    with pytest.raises(DataError, match=r"model\.json' was written by a newer ronid"):
        load_model(tmp_path, device="cpu")
    about.write_text("{")
    with pytest.raises(DataError, match=r"model\.json' is damaged"):
        load_model(tmp_path, device="cpu")


def test_folder_without_or_with_damaged_weights_is_refused(
    model: IntentModel, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    model.save(folder)
    weights = folder / "encoder" / "weights.safetensors"
    weights.write_bytes(b"broken")
    with pytest.raises(RonidError, match=r"weights\.safetensors.* cannot be read"):
        load_model(folder, device="cpu")
    weights.unlink()
    with pytest.raises(RonidError, match=r"weights\.safetensors.* cannot be read"):
        load_model(folder, device="cpu")
