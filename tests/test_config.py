"""Settings: checks of keys, types and choices, TOML there and back."""

import tomllib
from dataclasses import FrozenInstanceError, fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronid import settings
from ronid.config import EncoderConfig, RoNIDConfig, differences, to_dict, updated
from ronid.errors import ConfigError
from ronid.methods import METHODS, recipe
from ronid.presets import PRESETS, preset
from ronid.toml import read_toml, to_toml


def test_paper_preset_holds_the_constants_of_the_paper() -> None:
    paper = preset("paper")
    assert paper == RoNIDConfig()
    assert (paper.e_step.eta, paper.e_step.prior_momentum) == (0.05, 0.95)
    step = paper.m_step
    constants = (step.temperature, step.prototype_momentum, step.alpha, step.lr)
    assert constants == (0.07, 0.99, 0.7, 1e-5)
    assert paper.encoder.trainable_layers == 1
    assert paper.contrast.epochs == 0


def test_fast_preset_leaves_the_encoder_alone() -> None:
    fast = preset("fast")
    assert fast.encoder.trainable_layers == 0
    assert fast.encoder.adapter_width > 0
    assert fast.pretrain.epochs == 0


def test_presets_carry_their_names() -> None:
    assert {config.preset: config for config in PRESETS.values()} == PRESETS


def test_update_changes_what_it_names_and_nothing_else() -> None:
    base = preset("fast")
    changed = updated(base, {"m_step": {"alpha": 0.5, "intra": False}})
    assert (changed.m_step.alpha, changed.m_step.intra) == (0.5, False)
    assert updated(changed, {"m_step": {"alpha": base.m_step.alpha, "intra": True}}) == base
    assert updated(base, {}) == base


@pytest.mark.parametrize("name", list(PRESETS))
@pytest.mark.parametrize("base", list(PRESETS))
def test_differences_are_what_an_update_needs(name: str, base: str) -> None:
    changed = updated(PRESETS[name], {"m_step": {"alpha": 0.125}, "start": {"restarts": 77}})
    found = differences(changed, PRESETS[base])
    rebuilt = updated(PRESETS[base], {"preset": name, **found})
    assert rebuilt == changed
    assert differences(changed, changed) == {}
    if name == base:
        assert found == {"m_step": {"alpha": 0.125}, "start": {"restarts": 77}}


def test_configs_cannot_be_changed_in_place() -> None:
    with pytest.raises(FrozenInstanceError):
        preset("fast").m_step.alpha = 0.1  # type: ignore[misc]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"m_step": {"aplha": 0.5}}, "unknown setting 'm_step.aplha'; did you mean 'alpha'?"),
        ({"mstep": {}}, "unknown setting 'mstep'; did you mean 'm_step'?"),
        ({"start": {"zzz": 1}}, "unknown setting 'start.zzz'; known: prototypes, restarts"),
        ({"m_step": 3}, r"setting 'm_step' is a section; write [m_step] and its keys"),
        ({"m_step": {"alpha": "0.5"}}, "'m_step.alpha' is '0.5' (str), expected float"),
        ({"m_step": {"alpha": True}}, "'m_step.alpha' is True (bool), expected float"),
        ({"m_step": {"epochs": 2.0}}, "'m_step.epochs' is 2.0 (float), expected int"),
        ({"m_step": {"epochs": True}}, "'m_step.epochs' is True (bool), expected int"),
        ({"m_step": {"intra": 1}}, "'m_step.intra' is 1 (int), expected bool"),
        ({"encoder": {"name": None}}, "'encoder.name' is None (NoneType), expected str"),
        ({"m_step": {"alpha": {"x": 1}}}, "(dict), expected float"),
        ({"e_step": {"rows": "some"}}, "choose one of: 'unlabelled', 'all'"),
        ({"e_step": {"pseudo_labels": []}}, "choose one of: 'transport', 'kmeans'"),
        (
            {"start": {"prototypes": "random"}},
            "choose one of: 'kmeans', 'semisup_kmeans', 'density'",
        ),
        ({"e_step": {"prior": "even"}}, "choose one of: 'moving', 'shrunk', 'uniform'"),
        ({"m_step": {"prototype_update": 1}}, "choose one of: 'item', 'batch'"),
    ],
)
def test_wrong_settings_are_refused_by_name(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        updated(preset("paper"), changes)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"m_step": {"batch": 0}}, "setting 'm_step.batch' is 0; give a number above 0"),
        ({"m_step": {"temperature": 0}}, "'m_step.temperature' is 0.0; give a number above 0"),
        ({"e_step": {"eta": float("inf")}}, "'e_step.eta' is inf; give a number above 0"),
        ({"e_step": {"eta": float("nan")}}, "'e_step.eta' is nan; give a number above 0"),
        ({"m_step": {"alpha": 1.5}}, "'m_step.alpha' is 1.5; give a number from 0 to 1"),
        ({"m_step": {"epochs": -1}}, "'m_step.epochs' is -1; give 0 or more"),
        ({"m_step": {"lr": float("nan")}}, "'m_step.lr' is nan; give 0 or more"),
        ({"start": {"breaths": -1}}, "'start.breaths' is -1; give 0 or more"),
        ({"m_step": {"certainty": 1.5}}, "'m_step.certainty' is 1.5; give a number from 0 to 1"),
        ({"encoder": {"trainable_layers": -2}}, "is -2; give 0 or more, or -1 for all"),
    ],
)
def test_impossible_numbers_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        updated(preset("paper"), changes)
    assert message in str(error.value)


@pytest.mark.parametrize("name", list(PRESETS))
def test_presets_keep_to_the_ranges(name: str) -> None:
    values = to_dict(PRESETS[name])
    assert updated(PRESETS[name], values) == PRESETS[name]


def test_every_range_belongs_to_a_setting() -> None:
    keys: set[str] = set()
    for name in METHODS:
        for key, value in to_dict(recipe(name)).items():
            keys |= set(value) if isinstance(value, dict) else {key}
    assert keys >= settings._SHARES | settings._POSITIVE
    assert not settings._SHARES & settings._POSITIVE


def test_whole_numbers_serve_as_fractions() -> None:
    alpha = updated(preset("paper"), {"m_step": {"alpha": 1}}).m_step.alpha
    assert alpha == 1.0
    assert isinstance(alpha, float)


VALUES = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"])),
)


@given(plain=VALUES, inner=st.dictionaries(st.sampled_from("abc"), VALUES, min_size=1))
def test_any_value_survives_toml(plain: Any, inner: dict[str, Any]) -> None:
    back = tomllib.loads(to_toml({"section": inner, "plain": plain}))
    assert back == {"plain": plain, "section": inner}
    assert type(back["plain"]) is type(plain)


@given(name=st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_encoder_name_survives_toml(name: str) -> None:
    config = updated(preset("fast"), {"encoder": {"name": name}})
    text = to_toml(to_dict(config))
    assert updated(preset("paper"), tomllib.loads(text)) == config


def test_golden_toml() -> None:
    values = {"a": True, "b": 'quote " back \\ line \n', "c": {"x": 1e-05, "y": 3}}
    text = 'a = true\nb = "quote \\" back \\\\ line \\u000a"\n\n[c]\nx = 1e-05\ny = 3\n'
    assert to_toml(values) == text


def test_missing_or_broken_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read config '.*': No such file"):
        read_toml(tmp_path / "none.toml")
    for content in (b"a = ", b"\xff\xfe", b"a = 1\na = 2\n"):
        (tmp_path / "bad.toml").write_bytes(content)
        with pytest.raises(ConfigError, match="is not TOML") as error:
            read_toml(tmp_path / "bad.toml")
        assert "\n" not in str(error.value)


def test_every_setting_is_plain_and_documented() -> None:
    for section in fields(RoNIDConfig):
        value = getattr(RoNIDConfig(), section.name)
        if is_dataclass(value):
            assert type(value).__doc__
            for item in fields(value):
                assert isinstance(getattr(value, item.name), bool | int | float | str)


def test_dictionary_of_a_config_is_nested_and_plain() -> None:
    values = to_dict(preset("fast"))
    assert values["encoder"] == to_dict(preset("fast").encoder)
    assert isinstance(values["encoder"], dict)
    assert EncoderConfig(**values["encoder"]) == preset("fast").encoder
