"""The table of methods: recipes by name, settings from files, and what is refused."""

from pathlib import Path
from typing import Any

import pytest

from ronid.config import to_dict, updated
from ronid.errors import ConfigError, UsageError
from ronid.methods import (
    METHODS,
    Asked,
    check_inputs,
    check_labels,
    configured,
    from_toml,
    method,
    presets_of,
    published,
    read_settings,
    recipe,
)
from ronid.presets import PRESETS
from ronid.toml import to_toml


@pytest.mark.parametrize("name", [name for name in METHODS if name != "ronid"])
def test_other_methods_have_one_preset(name: str) -> None:
    assert presets_of(name) == ("published",)
    assert recipe(name) == recipe(name, "auto") == recipe(name, "published")
    assert recipe(name).preset == "published"
    with pytest.raises(ConfigError, match=f"'{name}' has no preset 'fast'; choose one of: auto"):
        recipe(name, "fast")


def test_ronid_has_its_own() -> None:
    assert presets_of("ronid") == tuple(PRESETS)
    assert recipe("ronid", "paper") == PRESETS["paper"]
    assert recipe("ronid", gpu=True) == PRESETS["default"]
    assert recipe("ronid") == PRESETS["fast"]


@pytest.mark.parametrize(
    ("name", "hint"), [("kmean", "did you mean 'kmeans'"), ("zzz", "choose one of: kmeans")]
)
def test_unknown_methods_are_refused_with_a_hint(name: str, hint: str) -> None:
    for ask in (method, recipe):
        with pytest.raises(ConfigError, match=f"no method '{name}'; {hint}"):
            ask(name)


@pytest.mark.parametrize("name", list(METHODS))
def test_every_recipe_survives_a_file(name: str, tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    config = updated(recipe(name), {"encoder": {"max_length_tokens": 40}})
    path.write_text(to_toml({"format_version": 1, **to_dict(config)}))
    assert from_toml(path) == config
    assert read_settings(path).method == name


def test_a_file_that_names_no_method_is_ronids(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('preset = "paper"\n')
    assert from_toml(path) == PRESETS["paper"]
    assert read_settings(path).method == ""


def test_only_methods_that_need_labels_refuse_to_work_without() -> None:
    for name, spec in METHODS.items():
        check_labels(name, 2, 2)
        if spec.needs_labels:
            with pytest.raises(UsageError, match="choose a method that needs none: kmeans"):
                check_labels(name, 0, 0)
        else:
            check_labels(name, 0, 0)


def test_a_method_of_pairs_needs_labels_of_two_intents() -> None:
    assert [name for name, spec in METHODS.items() if spec.compares_known] == ["kcl"]
    with pytest.raises(UsageError, match="'kcl' learns .* all labels here are of one intent"):
        check_labels("kcl", 5, 1)
    check_labels("kcl", 5, 1, intents=1)
    check_labels("dpn", 5, 1)


@pytest.mark.parametrize("name", list(METHODS))
def test_given_embeddings_are_for_methods_that_train_no_layer(name: str) -> None:
    frozen = recipe(name, vectors=True).encoder.trainable_layers == 0
    assert METHODS[name].takes_embeddings == frozen


@pytest.mark.parametrize("wrong", [None, 3, ["kmeans"]])
def test_names_that_are_none_are_refused_in_one_line(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="give the name of one: kmeans"):
        recipe(wrong)
    with pytest.raises(ConfigError, match="give the name of one, such as 'auto'"):
        recipe("ronid", wrong)


def test_settings_of_another_method_say_which_when_none_is_named() -> None:
    projected = {"contrast": {"projection_width": 64}}
    with pytest.raises(ConfigError, match=r"'contrast.projection_width'.*they fit clnn$"):
        configured(Asked("", "auto", projected))
    with pytest.raises(ConfigError, match=r"^unknown setting 'contrast' *; known"):
        configured(Asked("kmeans", "auto", projected))
    assert configured(Asked("clnn", "auto", projected)).method == "clnn"
    assert configured(Asked("", "auto", {}), gpu=True) == PRESETS["default"]


def test_constants_of_an_unknown_dataset_are_none() -> None:
    assert all(published(name, "mine") == {} for name in METHODS)


@pytest.mark.parametrize("name", list(METHODS))
def test_others_say_which_methods_take_embeddings(name: str) -> None:
    config = recipe(name)
    words = updated(config, {"encoder": {"name": "tfidf"}})
    check_inputs(config, embeddings=False)
    if METHODS[name].takes_embeddings:
        check_inputs(config, embeddings=True)
        check_inputs(words, embeddings=False)
        return
    with pytest.raises(UsageError, match=f"'{name}' trains the layers.*: kmeans, .*, ronid$"):
        check_inputs(config, embeddings=True)
    with pytest.raises(UsageError, match=r"counts of words are of no use.* choose another encoder"):
        check_inputs(words, embeddings=False)
    check_inputs(updated(config, {"encoder": {"trainable_layers": 0}}), embeddings=True)


def test_what_must_be_said_of_a_method_is_part_of_its_title() -> None:
    assert METHODS["dsscc"].full_title == METHODS["dsscc"].table_title == "DSSCC (reconstruction)"
    assert METHODS["dcn"].full_title == "DCN"
    assert METHODS["dcn"].table_title == "DCN (the printed row is IDEC)"
    assert METHODS["ronid"].full_title == METHODS["ronid"].table_title == "RoNID"
