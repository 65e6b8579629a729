from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from ronid.bench.plan import (
    make_plan,
    read_encoders,
    read_k_rule,
    read_plan,
    read_seeds,
)
from ronid.bench.rows import coordinates
from ronid.bench.variants import VARIANTS
from ronid.config import updated
from ronid.data.pile import PILE_KEYS
from ronid.errors import ConfigError, UsageError
from ronid.presets import PRESETS, preset
from tests.helpers import ROOT

SMALL: dict[str, Any] = {"datasets": ["clinc"], "presets": ["fast"], "seeds": [0]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dataset": ["clinc"]}, "unknown key 'dataset'; did you mean 'datasets'?"),
        ({"datasets": ["clink"]}, "datasets names 'clink'.*did you mean 'clinc'?"),
        ({"methods": ["ronod"]}, "methods names 'ronod'.*did you mean 'ronid'?"),
        ({"presets": ["fats"]}, "presets names 'fats'.*did you mean 'fast'?"),
        ({"variants": ["-Ot"]}, "variants names '-Ot'.*did you mean '-OT'?"),
        ({"keep": ["maps"]}, "keep names 'maps'.*did you mean 'map'?"),
        ({"scored_on": "train"}, "scored_on names 'train'"),
        ({"split": "owned"}, "split names 'owned'.*did you mean 'own'?"),
        ({"split": "own"}, "split: 'clinc' publishes no split"),
        ({"split": "own", "datasets": ["bolt-trec"], "seeds": "0-5"}, "'bolt-trec' has no fold 5"),
        (
            {"split": "own", "datasets": ["tlsa-hwu"], "known_ratios": [0.3]},
            "split: 'tlsa-hwu' publishes splits for known ratios 0.25, 0.5 and 0.75",
        ),
        (
            {"split": "own", "datasets": ["tlsa-hwu"], "dominants": [0, 0.5]},
            "split = 'own' does not allow dominant",
        ),
        ({"dominants": [1]}, "dominants: dominant is 1; give 0 or more and below 1"),
        ({"entity_ratios": [2]}, "entity_ratios: entities is 2; give a number from 0 to 1"),
        ({"mixed_shots": [True]}, "mixed_shots has True; give numbers"),
        ({"datasets": []}, "datasets is .*give a list of one or more"),
        ({"datasets": "clinc"}, "datasets is 'clinc'; give a list"),
        ({"presets": ["fast", "fast"]}, "presets names something twice"),
        ({"tails": [0.5]}, "tails: tail is 0.5; give 1 or more"),
        ({"shots": [1.5]}, "shots: shots is 1.5; give a whole number"),
        ({"chatter_ratios": ["a lot"]}, "chatter_ratios has 'a lot'; give numbers"),
        ({"known_ratios": [75]}, "known_ratios has 75; give numbers from 0 to 1"),
        ({"known_ratios": [True]}, "known_ratios has True"),
        ({"seeds": "0-x"}, "seeds is '0-x'; write"),
        ({"seeds": "3-1"}, "seeds is '3-1'; write"),
        ({"seeds": [-1]}, "seeds is .-1.; write"),
        ({"seeds": [0, 0]}, "seeds is .0, 0.; write"),
        ({"seeds": 3}, "seeds is 3; write"),
        ({"format_version": 2}, "format_version is 2, this release reads 1"),
        ({"settings": {"m_stepp": {}}}, "unknown setting 'm_stepp'; did you mean 'm_step'?"),
        ({"settings": {"encoder": {"name": "x"}}}, "settings name an encoder"),
        ({"encoders": ["/models/x"]}, "give a title there, and its folder with --encoder"),
        (
            {"variants": ["-X"], "variant": {"-X": {"e_step": {"etta": 1.0}}}},
            "unknown setting 'e_step.etta'; did you mean 'eta'?",
        ),
    ],
)
def test_wrong_config_is_one_line_that_helps(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        make_plan(SMALL | changes)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("key", ["datasets", "presets", "seeds"])
def test_missing_key_comes_with_an_example(key: str) -> None:
    values = {name: value for name, value in SMALL.items() if name != key}
    with pytest.raises(ConfigError, match=f"'{key}' is missing; write for example: {key} = "):
        make_plan(values)


def test_config_that_cannot_be_read_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    with pytest.raises(ConfigError, match="x.toml"):
        read_plan(path)
    path.write_text("seeds = [")
    with pytest.raises(ConfigError, match="x.toml.*not TOML"):
        read_plan(path)
    path.write_text('datasets = ["clinc"]\npresets = ["fast"]\nseeds = "a"\n')
    with pytest.raises(ConfigError, match="x.toml: seeds is 'a'"):
        read_plan(path)


def test_cells_are_the_product_with_shared_encodings_next_to_each_other() -> None:
    plan = make_plan(
        {
            "datasets": ["clinc", "banking"], "presets": ["fast", "paper"],
            "encoders": ["all-MiniLM-L6-v2", "big"], "known_ratios": [0.25, 0.75],
            "seeds": "0-2", "variants": ["", "-OT", "-Intra", "-Inter"],
        }
    )  # fmt: skip
    assert len(plan.cells) == len(set(plan.cells)) == 2 * 2 * 2 * 2 * 3 * 4
    shared = [(cell.dataset, cell.encoder) for cell in plan.cells]
    changes = sum(a != b for a, b in zip(shared, shared[1:], strict=False))
    assert changes == len(set(shared)) - 1
    splits = [(c.dataset, c.encoder, c.known_ratio, c.seed) for c in plan.cells]
    assert sum(a != b for a, b in zip(splits, splits[1:], strict=False)) == len(set(splits)) - 1


def test_seeds_are_read_as_ranges() -> None:
    assert read_seeds("0-2,7") == [0, 1, 2, 7]
    assert read_seeds("4") == [4]


@pytest.mark.parametrize("name", ["fast", "default"])
@pytest.mark.parametrize("variant", ["", *VARIANTS])
def test_variant_changes_the_preset_and_the_hash(variant: str, name: str) -> None:
    plan = make_plan(SMALL | {"presets": [name], "variants": ["", *VARIANTS]})
    cells = {cell.variant: cell for cell in plan.cells}
    expected = updated(preset(name), VARIANTS.get(variant, {}))
    assert plan.config(cells[variant]) == expected
    changed = expected != preset(name)  # a preset may lack what a variant leaves out
    assert (plan.config_hash(cells[variant]) != plan.config_hash(cells[""])) == changed
    assert changed or variant not in ("-OT", "-Intra", "-Inter")


def test_settings_apply_to_all_cells_and_own_variants_on_top() -> None:
    plan = make_plan(
        SMALL
        | {
            "settings": {"m_step": {"epochs": 2, "alpha": 0.5}},
            "variants": ["", "-Short"],
            "variant": {"-Short": {"m_step": {"epochs": 1}}},
        }
    )
    found = [(plan.config(c).m_step.epochs, plan.config(c).m_step.alpha) for c in plan.cells]
    assert found == [(2, 0.5), (1, 0.5)]


def test_folder_of_an_encoder_changes_no_hash() -> None:
    values = SMALL | {"encoders": ["big"], "encoder_paths": {"big": "owner/big"}}
    here, there = make_plan(values), make_plan(values, {"big": "/models/big"})
    assert there.encoder_path("big") == "/models/big"
    assert here.encoder_path("big") == "owner/big"
    assert here.config_hash(here.cells[0]) == there.config_hash(there.cells[0])


def test_encoder_option_is_checked() -> None:
    assert read_encoders(["a=b=c"]) == {"a": "b=c"}
    with pytest.raises(UsageError, match="--encoder x is not TITLE=FOLDER"):
        read_encoders(["x"])
    with pytest.raises(ConfigError, match="--encoder names 'bigg'.*did you mean 'big'"):
        make_plan(SMALL | {"encoders": ["big"]}, {"bigg": "x"})


@pytest.mark.parametrize(
    "path", sorted((ROOT / "benchmarks/configs").glob("*.toml")), ids=lambda path: path.stem
)
def test_committed_configs_are_whole(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PRESETS, "default", PRESETS.get("default", PRESETS["fast"]))
    plan = read_plan(path)
    assert plan.cells
    assert not any(folder.startswith("/") for folder in plan.encoder_paths.values())


@pytest.mark.parametrize(
    ("text", "rule"),
    [("given", ("given", 0)), ("auto", ("auto", 0)), ("auto@2", ("auto", 2)),
     ("guess@1.5", ("guess", 1.5)), ("dpn@3", ("dpn", 3))],
)  # fmt: skip
def test_rules_for_the_number_of_intents(text: str, rule: tuple[str, float]) -> None:
    assert read_k_rule(text) == rule
    assert make_plan(SMALL | {"k_rules": [text]}).cells[0].k_rule == text


@pytest.mark.parametrize("text", ["filter", "given@2", "dpn", "guess", "auto@", "auto@x", "dpn@-1"])
def test_rules_that_there_are_not(text: str) -> None:
    with pytest.raises(ConfigError, match="k_rules has '.*give given, auto"):
        make_plan(SMALL | {"k_rules": [text]})


def test_piles_are_crossed_and_shots_stand_for_any_ratio() -> None:
    wanted = {"labelled_ratios": [0.05, 0.1], "shots": [0, 2], "tails": [1, 50]}
    cells = make_plan(SMALL | {"presets": ["fast"], "seeds": [3], **wanted}).cells
    found = {(cell.labelled_ratio, cell.shots, cell.tail) for cell in cells}
    assert found == {(r, s, t) for r, s in ((0.05, 0), (0.1, 0), (0.0, 2)) for t in (1, 50)}
    assert len(cells) == 6 * len(SMALL["datasets"])
    assert "shots 2 tail 50" in str(next(c for c in cells if c.shots and c.tail == 50))


def test_pile_is_part_of_what_tells_cells_apart_and_old_rows_are_as_published() -> None:
    usual, unusual = make_plan(SMALL | {"chatter_ratios": [0, 0.2]}).cells[:2]
    row = {name: value for name, value in asdict(usual).items() if name not in PILE_KEYS}
    assert coordinates(row) == coordinates(asdict(usual)) == usual.coordinates
    assert unusual.coordinates != usual.coordinates


def test_own_split_is_part_of_what_tells_jobs_apart() -> None:
    values = SMALL | {"datasets": ["bolt-trec", "tlsa-hwu"], "seeds": "0-4"}
    own, drawn = make_plan(values | {"split": "own"}).cells, make_plan(values).cells
    assert {cell.split for cell in own} == {"own"}
    assert {cell.split for cell in drawn} == {"drawn"}
    assert not {cell.coordinates for cell in own} & {cell.coordinates for cell in drawn}
    assert str(own[0]).endswith("seed 0 own split")


def test_new_changes_are_crossed_and_mixed_shots_stand_for_any_ratio() -> None:
    wanted = {
        "labelled_ratios": [0.05, 0.1], "mixed_shots": [0, 1], "thin_shots": [0, 1],
        "dominants": [0, 0.5], "entity_ratios": [0, 0.3], "small_talk_ratios": [0, 0.2],
    }  # fmt: skip
    cells = make_plan(SMALL | wanted).cells
    assert len(cells) == len(set(cells)) == 3 * 2**4
    assert {cell.labelled_ratio for cell in cells if cell.mixed_shots} == {0}
    changed = "mixed_shots 1 thin_shots 1 dominant 0.5 entities 0.3 small_talk 0.2"
    assert any(changed in str(cell) for cell in cells)


def test_jobs_of_a_config_are_current_and_old_rows_are_drawn_and_current() -> None:
    (cell,) = make_plan(SMALL).cells
    later = ("split", "version", "dominant", "entities", "small_talk", "mixed_shots", "thin_shots")
    row = {name: value for name, value in asdict(cell).items() if name not in later}
    assert coordinates(row) == cell.coordinates
    assert (cell.split, cell.version) == ("drawn", "")
    assert coordinates(row | {"version": "before"}) != cell.coordinates
